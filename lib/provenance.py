"""Where a result comes from: commit, versions, device, time and memory."""

import platform
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import torch

PROJECT = Path(__file__).resolve().parent.parent
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "altair")
MIB = 1024**2 if sys.platform == "darwin" else 1024  # in the system's unit of memory


def commit(folder: Path = PROJECT) -> str:
    """The commit of `folder`, with "modified" where a tracked file differs; "unknown" and the reason without one.

    Kept tables and rendered pages, in reports/, make nothing: one report after another finds them changed.
    """
    try:
        top, head = _git(folder, "rev-parse", "--show-toplevel", "HEAD").split("\n")[:2]
        if Path(top).resolve() != Path(folder).resolve():
            return "unknown (no git checkout)"  # a checkout around the project is not the project's
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!reports")
    except FileNotFoundError:
        return "unknown (git is not installed)"
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired, ValueError):
        return "unknown (no git checkout)"
    return f"{head[:12]}, modified" if changed else head[:12]


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]  # a killed report leaves no lock behind
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()


@dataclass(frozen=True)
class Start:
    """The start of a notebook: what its results come from, even if the code is edited before it ends.

    commit      of the project
    seconds     time.time()
    children    memory of the largest process started so far, in the system's unit; see `_children`
    """

    commit: str
    seconds: float
    children: int


def start() -> Start:
    """Records the commit and the time; called in a notebook's first cell."""
    return Start(commit(), time.time(), _children())  # git counts as large as what started it, so it is no child later


def provenance(trained: Sequence, started: Start) -> pd.DataFrame:
    """What made a result, as a table `what | value`.

    Args:
        trained: the models, all on one device. started: what `start` returned at the beginning.
    """
    rows = {
        "commit": started.commit,
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "torch": torch.__version__,
        **{name: version(name) for name in PACKAGES},
        "device": _device_name(torch.device(trained[0].run.device_kind)),
        "threads": str(torch.get_num_threads()),
        "seeds": ", ".join(map(str, seeds_of(trained))),
        "run time": f"{max(time.time() - started.seconds, 0):.1f} seconds",
        "peak memory": _peak_memory(started),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
    return pd.DataFrame({"what": list(rows), "value": list(rows.values())})


def seeds_of(trained: Sequence) -> list[int]:
    """The seeds of models; that of an adversary is its base's, whatever its own."""
    return sorted({(one.run.base or one.run).seed for one in trained})


def _device_name(device: torch.device) -> str:
    if device.type == "cuda" and torch.cuda.is_available():
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return f"{device} ({platform.processor() or platform.machine()})"


def _peak_memory(started: Start) -> str:
    """Of this process and of the largest process that it started, in MiB."""
    memory = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB:.0f} MiB"
    if _children() > started.children:
        memory += f", {_children() / MIB:.0f} MiB in the largest process beside it"
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        memory += f", {torch.cuda.max_memory_allocated() / 1024**2:.0f} MiB on the GPU"
    return memory


def _children() -> int:
    """The memory of the largest process that this one started, in the system's own unit."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
