"""Where a result comes from: commit, versions, device, time and memory."""

import platform
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch

PROJECT = Path(__file__).resolve().parent.parent
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "altair")


def commit(folder: Path = PROJECT) -> str:
    """The commit of `folder`, with "modified" where a tracked file differs; "unknown" without git or a checkout.

    Kept tables and rendered pages, in reports/, make nothing: one report after another finds them changed.
    """
    try:
        top, head = _git(folder, "rev-parse", "--show-toplevel", "HEAD").split("\n")[:2]
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!reports")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    if Path(top).resolve() != Path(folder).resolve():  # a checkout around the project is not the project's
        return "unknown"
    return f"{head[:12]}, modified" if changed else head[:12]


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]  # a killed report leaves no lock behind
    return subprocess.run(command, capture_output=True, check=True, timeout=20).stdout.decode(errors="replace").strip()


class Start(NamedTuple):
    """The start of a notebook: what its results come from, even if the code is edited before it ends."""

    commit: str
    seconds: float  # time.time()


def start() -> Start:
    """Records the commit and the time; called in a notebook's first cell."""
    return Start(commit(), time.time())


def provenance(trained: Sequence, started: Start) -> pd.DataFrame:
    """What made a result, as a table `what | value`: the models, all on one device, and what `start` returned."""
    kind = trained[0].run.device_kind
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = {
        "commit": started.commit,
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "torch": torch.__version__,
        **{name: version(name) for name in PACKAGES},
        "device": f"cuda, {torch.cuda.get_device_name()}" if kind == "cuda" else kind,
        "seeds": ", ".join(map(str, seeds_of(trained))),
        "run time": f"{max(time.time() - started.seconds, 0):.1f} seconds",
        "peak memory": f"{peak / (1024**2 if sys.platform == 'darwin' else 1024):.0f} MiB",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
    return pd.DataFrame({"what": list(rows), "value": list(rows.values())})


def seeds_of(trained: Sequence) -> list[int]:
    """The seeds of models; that of an adversary is its base's, whatever its own."""
    return sorted({(one.run.base or one.run).seed for one in trained})
