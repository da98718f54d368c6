"""What one job of a sweep does, in a process of its own: train runs, choose on dev, make a report."""

import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from lib.sweep import plan as plans
from lib.sweep.needs import Corpora, chosen_on_dev, needed
from lib.sweep.plan import jobs_of, needs_of, rank, request_of, work_of
from lib.training import cache, train
from lib.training.trained import entry_name

MARKS = {"train": "trained", "report": "made"}  # folders of what says that a job is done, and how long it took


class Stale(RuntimeError):
    """The plan does not fit what is there: data or code changed after it was made."""


def train_job(folder: Path, identity: str) -> None:
    """Trains the runs of a planned job, one after the other; one that fails does not keep the others from it.

    Raises:
        Stale: a run is not the planned one. RuntimeError: how many runs failed.
    """
    found = plans.read(folder)
    job = found["jobs"][identity]
    _hide_gpu(job["device"])
    request = request_of(found, job["report"])
    corpora, wrong = Corpora(request.data_home), []
    if job.get("chosen"):
        request = chosen_on_dev(request, corpora)
    by_name = {entry_name(run, corpora.of(run), corpora.home): run for run in needed(request)[0]}
    if gone := [name for name in job["runs"] if name not in by_name]:
        raise Stale(f"{gone[0]} is not needed any more: data or code changed; start again")
    for run in (by_name[name] for name in job["runs"]):
        try:
            train(run, corpora.home, corpora.of(run), lambda said: print(said, flush=True))
        except (FloatingPointError, RuntimeError) as error:
            traceback.print_exc()
            wrong.append(f"{run}: {error}")
    if wrong:
        raise RuntimeError(f"{len(wrong)} of {len(job['runs'])} runs failed; {wrong[0]}")


def choose_job(folder: Path, report: str) -> None:
    """Writes the jobs that a report needs once dev has chosen, and all that it needs, to chosen/<report>.json."""
    found = plans.read(folder)
    request = request_of(found, report)
    corpora = Corpora(request.data_home)
    work = work_of(chosen_on_dev(request, corpora), corpora)
    taken = {name: identity for identity, job in found["jobs"].items() for name in job["runs"]}
    jobs = jobs_of(report, work, taken, found["least"])
    for job in jobs.values():
        job["chosen"] = True
    needs = needs_of(work, taken)
    rank(jobs, {report: found["reports"][report] | {"needs": needs, "later": 0.0}})
    cache.write_json(folder / "chosen" / f"{report}.json", {"jobs": jobs, "needs": needs})


def report_job(folder: Path, report: str) -> None:
    """Makes a report.

    Raises:
        RuntimeError: the notebook stopped; the message says where.
    """
    from lib.report.run import make_report

    found = plans.read(folder)
    told = found["reports"][report]
    _hide_gpu(told["device"])
    make_report(Path(told["notebook"]), told["values"], Path(found["output"]))


def _hide_gpu(device: str) -> None:
    """A job that was planned for the CPU stays there, also where its machine has a GPU: other weights were planned."""
    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def main(given: list[str]) -> int:
    """`train FOLDER JOB`, `choose FOLDER REPORT`, `report FOLDER REPORT`; exit code 0, or 1 with a sentence."""
    kind, folder, name = given
    work: dict[str, Any] = {"train": train_job, "choose": choose_job, "report": report_job}
    started = time.monotonic()
    try:
        work[kind](Path(folder), name)
        if kind in MARKS:
            cache.write_json(Path(folder, MARKS[kind], name), {"seconds": round(time.monotonic() - started, 1)})
    except (OSError, RuntimeError) as error:
        place = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        print(f"{kind} {name} failed: {place}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
