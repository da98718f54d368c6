"""What one job of a sweep does, in a process of its own: train runs, choose on dev, make a report.

Each kind imports what it needs: the job of a report waits for its kernel, and has no use for torch.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lib.sweep import planned
from lib.whole_files import write_json

MARKS = {"train": "trained", "report": "made"}  # folders of what says that a job is done, and how long it took


def report_job(folder: Path, report: str) -> None:
    """Makes a report.

    Raises:
        RuntimeError: the notebook stopped; the message says where.
    """
    from lib.report.run import make_report

    found = planned.read(folder)
    told = found["reports"][report]
    make_report(Path(told["notebook"]), told["values"], Path(found["output"]))


def train_job(folder: Path, identity: str) -> None:
    """Trains the runs of a planned job."""
    from lib.sweep.trainings import train_planned

    train_planned(folder, identity)


def choose_job(folder: Path, report: str) -> None:
    """Adds the jobs that a report needs once dev has chosen."""
    from lib.sweep.trainings import add_chosen

    add_chosen(folder, report)


def _hide_gpu(found: dict[str, Any], kind: str, name: str) -> None:
    """A job that was planned for the CPU stays there, also where its machine has a GPU: other weights were planned."""
    if found["jobs" if kind == "train" else "reports"][name]["device"] == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def main(given: list[str]) -> int:
    """`train FOLDER JOB`, `choose FOLDER REPORT`, `report FOLDER REPORT`; exit code 0, or 1 with a sentence."""
    kind, folder, name = given[0], Path(given[1]), given[2]
    work: dict[str, Callable] = {"train": train_job, "choose": choose_job, "report": report_job}
    started = time.monotonic()
    try:
        _hide_gpu(planned.read(folder), kind, name)
        work[kind](folder, name)
        if kind in MARKS:
            write_json(folder / MARKS[kind] / name, {"seconds": round(time.monotonic() - started, 1)})
    except (OSError, RuntimeError) as error:
        place = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        print(f"{kind} {name} failed: {place}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
