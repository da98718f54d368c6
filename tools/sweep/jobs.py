"""What one job of a sweep does, in a process of its own: train runs, choose on dev, make a report.

Each kind imports what it needs: the job of a report waits for its kernel, and has no use for torch.
"""

import os
import sys
import time
from pathlib import Path

from lib.atomic_write import write_json
from tools.sweep import planned

MARKS = {"train": "trained", "report": "made"}  # folders of what says that a job is done, and how long it took


def do(kind: str, folder: Path, name: str) -> None:
    """Does a job of the plan in `folder`.

    Raises:
        RuntimeError: the notebook stopped, or runs failed; the message says where.
    """
    found = planned.read(folder)
    told = found["jobs" if kind == "train" else "reports"][name]
    if told["device"] == "cpu":  # it stays there, also where its machine has a GPU: other weights were planned
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if kind == "report":
        from tools.report.run import make_report

        make_report(Path(told["notebook"]), told["values"], Path(found["output"]))
        return
    from tools.sweep import trainings

    if kind == "train":
        trainings.train_planned(found, told)
    else:
        trainings.add_chosen(found, name, folder)


def main(given: list[str]) -> int:
    """`train FOLDER JOB`, `choose FOLDER REPORT`, `report FOLDER REPORT`; exit code 0, or 1 with a sentence."""
    kind, folder, name = given[0], Path(given[1]), given[2]
    started = time.monotonic()
    try:
        do(kind, folder, name)
        if kind in MARKS:
            write_json(folder / MARKS[kind] / name, {"seconds": round(time.monotonic() - started, 1)})
    except (OSError, RuntimeError) as error:
        place = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        print(f"{kind} {name} failed: {place}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
