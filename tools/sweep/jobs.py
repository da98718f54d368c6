"""What one job of a sweep does, in a process of its own: train runs, or make a report."""

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from lib.training import train, train_all
from lib.training.trained import Corpora
from tools.report.parameters import Refused
from tools.sweep import plan as plans
from tools.sweep.plan import Report


def train_runs(report: Report, names: Sequence[str]) -> None:
    """Trains runs of a report, one after the other; one that fails does not keep the others from it.

    Raises RuntimeError where the plan does not fit the data or code any more, or runs failed.
    """
    corpora, failed = Corpora(report.data_home), []
    runs = report.runs(corpora)
    if gone := [name for name in names if name not in runs]:
        raise RuntimeError(f"{gone[0]} is not needed any more: data or code changed; start again")
    for run in (runs[name] for name in names):
        try:
            train(run, corpora.home, corpora.load(run))
        except (FloatingPointError, RuntimeError) as error:
            traceback.print_exc()
            failed.append(f"{run}: {error}")
    if failed:
        raise RuntimeError(f"{len(failed)} of {len(names)} runs failed; {failed[0]}")


def make(report: Report, output: Path) -> None:
    """Makes a report; first trains what is known only now that dev can choose."""
    from tools.report.run import make_report  # with papermill: not for jobs that train

    if report.swept:
        corpora = Corpora(report.data_home)
        train_all(list(report.runs(corpora).values()), corpora.home)
    make_report(report.notebook, report.values, output)


def main(folder: Path, name: str) -> int:
    """Does a job of the plan in a folder, and writes its mark; exit code 0, or 1 with a sentence."""
    plan = plans.read(folder)
    job = plan["jobs"][name]
    planned = plan["reports"][job["report"]]
    report = Report(Path(planned["notebook"]), planned["values"])
    if job["device"] == "cpu":  # it stays there, also where its machine has a GPU: other weights were planned
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    try:
        train_runs(report, job["runs"]) if "runs" in job else make(report, Path(plan["output"]))
        (folder / "done" / name).touch()
    except (OSError, RuntimeError, Refused) as error:
        reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        print(f"{job['title']} failed: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
