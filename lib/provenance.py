"""The commit that a result comes from."""

import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pandas as pd
import torch

PROJECT = Path(__file__).resolve().parent.parent


def commit(folder: Path | None = None) -> str:
    """The commit of `folder`, with "modified" where a tracked file differs; where there is none, a word why.

    Without a folder: the project's, as it was when this module was imported. A long run may end after an edit.
    """
    return AT_START if folder is None else _commit(folder)


def _commit(folder: Path) -> str:
    try:
        top, head = _git(folder, "rev-parse", "--show-toplevel", "HEAD").split("\n")[:2]
        if Path(top).resolve() != Path(folder).resolve():
            return "unknown (no git checkout)"  # a checkout around the project is not the project's
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except FileNotFoundError:
        return "unknown (git is not installed)"
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired, ValueError):
        return "unknown (no git checkout)"
    return f"{head[:12]}, modified" if changed else head[:12]


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()


AT_START = _commit(PROJECT)


PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "altair")


def provenance(device: str | torch.device, seeds: Sequence[int], started: float) -> pd.DataFrame:
    """What made a result, as a table `what | value`.

    Args:
        device: on which the models ran, for example "cpu".
        seeds: of the runs.
        started: time.time() at the beginning, in seconds.
    """
    rows = {
        "commit": commit(),
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "torch": torch.__version__,
        **{name: _version(name) for name in PACKAGES},
        "device": _device_name(torch.device(device)),
        "threads": str(torch.get_num_threads()),
        "seeds": ", ".join(str(seed) for seed in seeds) or "none",
        "run time": f"{max(time.time() - started, 0):.1f} seconds",
        "peak memory": _peak_memory(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
    return pd.DataFrame({"what": list(rows), "value": list(rows.values())})


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _device_name(device: torch.device) -> str:
    if device.type == "cuda" and torch.cuda.is_available():
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return f"{device} ({platform.processor() or platform.machine()})"


def _peak_memory() -> str:
    """Of this process and of the largest process that it started, in MiB."""
    try:
        import resource
    except ImportError:  # Windows has no such count
        return "unknown"
    unit = 1024**2 if sys.platform == "darwin" else 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    memory = f"{own:.0f} MiB"
    if _children() > GIT:
        memory += f", {_children() / unit:.0f} MiB in the largest process beside it"
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        memory += f", {torch.cuda.max_memory_allocated() / 1024**2:.0f} MiB on the GPU"
    return memory


def _children() -> int:
    """The memory of the largest process that this one started, in the system's own unit; 0 where it is not counted."""
    try:
        import resource
    except ImportError:  # Windows has no such count
        return 0
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


GIT = _children()  # a forked child counts this process's memory as its own, so git looks as large as what started it
