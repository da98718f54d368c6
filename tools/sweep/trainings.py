"""The jobs of a sweep that train: the runs of the plan, and those that dev chooses among."""

import traceback
from pathlib import Path
from typing import Any

from lib.atomic_write import write_json
from lib.training import train
from lib.training.trained import entry_name
from tools.sweep.needs import Corpora, chosen_on_dev, needed
from tools.sweep.plan import jobs_of, needs_of, rank, request_of, work_of


class Stale(RuntimeError):
    """The plan does not fit what is there: data or code changed after it was made."""


def train_planned(found: dict[str, Any], job: dict[str, Any]) -> None:
    """Trains the runs of a job of the plan, one after the other; one that fails does not keep the others from it.

    Raises:
        Stale: a run is not the planned one. RuntimeError: how many runs failed.
    """
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


def add_chosen(found: dict[str, Any], report: str, folder: Path) -> None:
    """Writes the jobs that a report needs once dev has chosen, and all that it needs, to chosen/<report>.json."""
    request = request_of(found, report)
    corpora = Corpora(request.data_home)
    work = work_of(chosen_on_dev(request, corpora), corpora)
    taken = {name: identity for identity, job in found["jobs"].items() for name in job["runs"]}
    jobs = jobs_of(report, work, taken, found["least"])
    for job in jobs.values():
        job["chosen"] = True
    needs = needs_of(work, taken)
    rank(jobs, {report: found["reports"][report] | {"needs": needs, "later": 0.0}})
    write_json(folder / "chosen" / f"{report}.json", {"jobs": jobs, "needs": needs})
