"""How high the memory of this process has stood."""

import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def highest() -> float:
    """Megabytes that the process held at its highest, so far.

    Linux tells it of the process alone as VmHWM; its ru_maxrss also counts the process that started this one.
    """
    if STATUS.exists():
        lines = (line.split() for line in STATUS.read_text(encoding="utf-8").splitlines())
        return next(int(line[1]) for line in lines if line[0] == "VmHWM:") / 2**10
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, else kilobytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
