"""The plan of a sweep: which reports are to be made, which trainings are missing, and which jobs do them."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lib.datasets.corpus import Corpus
from lib.sweep import costs
from lib.sweep.needs import Request, chosen_on_dev, needed
from lib.training import Run, cache, stages
from lib.training.trained import entry_name, load_corpus

BUNDLE = 60.0  # seconds: runs that take less share a job with others of their kind


@dataclass
class Work:
    """What a report lacks: missing runs with their names in the cache and their cost, and what dev must choose."""

    missing: dict[Run, tuple[str, float]]
    finished: list[tuple[str, float]]
    chooses: list[str]
    seconds: float
    device: str
    later: float = 0.0  # expected seconds of the trainings that are known only then


@dataclass
class Corpora:
    """The corpora that runs read, each loaded once."""

    home: str | None
    loaded: dict[tuple, Corpus] = field(default_factory=dict)

    def of(self, run: Run) -> Corpus:
        if run.data not in self.loaded:
            self.loaded[run.data] = load_corpus(run, self.home)
        return self.loaded[run.data]

    def cost(self, run: Run) -> float:
        """The expected seconds of a run."""
        return costs.of_training(run, self.of(run))


def work_of(request: Request, corpora: Corpora) -> Work:
    """What a report lacks.

    Raises:
        DataError, KeyError, ValueError: its parameters cannot be; the message says what was seen and what is allowed.
    """
    runs, chooses = needed(request)
    costed = {run: (entry_name(run, corpora.of(run), corpora.home), corpora.cost(run)) for run in runs}
    missing = {run: told for run, told in costed.items() if not cache.finished(told[0])}
    if chooses and not missing:
        return work_of(chosen_on_dev(request), corpora)
    finished = [told for run, told in costed.items() if run not in missing]
    seconds = costs.of_report(request.notebook, corpora.of(runs[-1]) if runs else None)
    work = Work(missing, finished, chooses, seconds, runs[-1].device_kind if runs else "")
    if chooses:
        whole, _ = needed(Request(request.notebook, request.settings | dict.fromkeys(chooses, 1.0)))
        work.later = sum(corpora.cost(run) for run in whole if run not in costed)
    return work


def bundles(missing: dict[Run, tuple[str, float]], least: float) -> list[list[Run]]:
    """Runs in groups that each make a job: of one corpus and one stage, and of at least `least` seconds together."""
    found: list[list[Run]] = []
    for stage in stages(list(missing)):
        for kind in dict.fromkeys((run.data, run.device_kind) for run in stage):
            seconds, bundle = least, []
            for run in stage:
                if (run.data, run.device_kind) != kind:
                    continue
                if seconds >= least:
                    seconds, bundle = 0.0, []
                    found.append(bundle)
                bundle.append(run)
                seconds += missing[run][1]
    return found


def jobs_of(report: str, work: Work, taken: dict[str, str], least: float) -> dict[str, dict[str, Any]]:
    """Jobs for what a report lacks, by their ids; `taken` maps runs' cache names to the jobs that have them, and grows.

    Args:
        report: its name, by which a job finds its runs again.
        least: seconds; 0: each run is a job of its own.
    """
    free = {run: told for run, told in work.missing.items() if told[0] not in taken}
    jobs = {}
    for bundle in bundles(free, least):
        names = [free[run][0] for run in bundle]
        identity = cache.digest(names)[:12]
        bases = [work.missing[run.base][0] for run in bundle if run.base in work.missing]
        jobs[identity] = {
            "report": report,
            "runs": names,
            "after": sorted({taken[name] for name in bases} - {identity}),
            "told": str(bundle[0]) + (f" and {len(bundle) - 1} more" if len(bundle) > 1 else ""),
            "seconds": round(costs.STARTING + sum(free[run][1] for run in bundle), 1),
            "device": bundle[0].device_kind,
        }
        taken |= dict.fromkeys(names, identity)
    return jobs


def needs_of(work: Work, taken: dict[str, str]) -> list[str]:
    """The jobs that must be done before a report is made."""
    return sorted({taken[name] for name, _ in work.missing.values()})


def plan(
    works: dict[str, Work], reports: dict[str, dict[str, Any]], settings: dict[str, Any], least: float = BUNDLE
) -> dict[str, Any]:
    """The plan as the Snakefile and the jobs read it: `jobs` and `reports` by name, expected seconds, and settings.

    Args:
        works: of each report what it lacks. reports: of each what its job must know; "settings" are its parameters.
    """
    taken: dict[str, str] = {}
    jobs, told = {}, {}
    for name, work in works.items():
        jobs |= jobs_of(name, work, taken, least)
        told[name] = reports[name] | {
            "needs": needs_of(work, taken),
            "chooses": bool(work.chooses),
            "seconds": round(costs.STARTING + work.seconds, 1),
            "later": round(work.later, 1),
            "device": work.device,
        }
    finished = [found for work in works.values() for found in work.finished]
    return settings | {"jobs": jobs, "reports": told, "least": least, "pace": costs.pace(finished)}


def write(folder: Path, made: dict[str, Any]) -> None:
    """Writes the plan whole or not at all, and removes what jobs of earlier plans left there."""
    for name in ("trained", "made", "chosen"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for mark in (folder / name).iterdir():
            mark.unlink()
    cache.write_json(folder / "plan.json", made)


def read(folder: Path) -> dict[str, Any]:
    """The plan in a folder, with the jobs that were added when dev had chosen."""
    found = json.loads((folder / "plan.json").read_text())
    for path in sorted((folder / "chosen").glob("*.json")):
        found["jobs"] |= json.loads(path.read_text())["jobs"]
    return found


def request_of(found: dict[str, Any], report: str) -> Request:
    """The request of a planned report."""
    told = found["reports"][report]
    return Request(Path(told["notebook"]).stem, told["settings"])
