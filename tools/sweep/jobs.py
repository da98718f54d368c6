"""What one job of a sweep does, in a process of its own: train runs, choose on dev, make a report."""

import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from lib.atomic_write import write_json
from lib.training import Run, cache, train
from lib.training.trained import Corpora, entry_name
from tools.sweep import plan as plans

MARKS = {"train": "trained", "report": "made"}  # folders of the marks that a job is done, and how long it took


def train_planned(plan: dict[str, Any], job: dict[str, Any]) -> None:
    """Trains the runs of a job of the plan, one after the other; one that fails does not keep the others from it.

    Raises RuntimeError where the plan does not fit the data or code any more, or runs failed.
    """
    request = request_of(plan, job["report"])
    corpora, failed = Corpora(request.data_home), []

    def named(request: plans.Request) -> dict[str, Run]:
        return {entry_name(run, corpora.of(run), corpora.home): run for run in plans.needed(request)[0]}

    by_name = named(request)
    if request.swept and not by_name.keys() >= set(job["runs"]) and all(map(cache.finished, by_name)):  # dev can choose
        by_name = named(plans.chosen_on_dev(request, corpora))
    if gone := [name for name in job["runs"] if name not in by_name]:
        raise RuntimeError(f"{gone[0]} is not needed any more: data or code changed; start again")
    for run in (by_name[name] for name in job["runs"]):
        try:
            train(run, corpora.home, corpora.of(run), lambda line: print(line, flush=True))
        except (FloatingPointError, RuntimeError) as error:
            traceback.print_exc()
            failed.append(f"{run}: {error}")
    if failed:
        raise RuntimeError(f"{len(failed)} of {len(job['runs'])} runs failed; {failed[0]}")


def add_chosen(plan: dict[str, Any], report: str, folder: Path) -> None:
    """Chooses on dev; the jobs that the report needs then, and all that it needs, go to chosen/<report>.json."""
    request = request_of(plan, report)
    corpora = Corpora(request.data_home)
    work = plans.work_of(plans.chosen_on_dev(request, corpora), corpora)
    taken = {name: identity for identity, job in plan["jobs"].items() for name in job["runs"]}
    jobs = plans.jobs_of(report, work, taken, plan["least"])
    needs = sorted({taken[one.name] for one in work.missing.values()})
    plans.rank(jobs, {report: plan["reports"][report] | {"needs": needs, "later": 0.0}})
    write_json(folder / "chosen" / f"{report}.json", {"jobs": jobs, "needs": needs})


def request_of(plan: dict[str, Any], report: str) -> plans.Request:
    """The request of a planned report."""
    planned = plan["reports"][report]
    return plans.Request(Path(planned["notebook"]).stem, planned["settings"])


def do(kind: str, folder: Path, name: str) -> None:
    """Does a job of the plan in `folder`; RuntimeError, which names the place, where a notebook or runs failed."""
    plan = plans.read(folder)
    planned = plan["jobs" if kind == "train" else "reports"][name]
    if planned["device"] == "cpu":  # it stays there, also where its machine has a GPU: other weights were planned
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if kind == "train":
        train_planned(plan, planned)
    elif kind == "choose":
        add_chosen(plan, name, folder)
    else:
        from tools.report.run import make_report  # with papermill: not for jobs that train

        make_report(Path(planned["notebook"]), planned["values"], Path(plan["output"]))


def main(given: list[str]) -> int:
    """`train FOLDER JOB`, `choose FOLDER REPORT`, `report FOLDER REPORT`; exit code 0, or 1 with a sentence."""
    kind, folder, name = given[0], Path(given[1]), given[2]
    started = time.monotonic()
    try:
        do(kind, folder, name)
        if kind in MARKS:
            write_json(folder / MARKS[kind] / name, {"seconds": round(time.monotonic() - started, 1)})
    except (OSError, RuntimeError) as error:
        reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        print(f"{kind} {name} failed: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
