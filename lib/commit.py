"""The commit that a result comes from."""

import subprocess
from pathlib import Path

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
