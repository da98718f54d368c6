"""The plan of a sweep: which reports are to be made, which trainings are missing, and which jobs do them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lib.training import Run, cache, stages
from lib.training.sharing import gpu_memory_mb
from lib.training.trained import entry_name
from tools.sweep import costs
from tools.sweep.needs import Corpora, Request, chosen_on_dev, needed

REPORT_GPU_MB = 8_000  # of a report's measures, which go in chunks; a guess on the safe side
BUNDLE = 90.0  # seconds: runs that take less share a job with others of their kind


class Told(NamedTuple):
    """Of a run its name in the cache, the seconds that it is expected to take, and its memory on a GPU in MiB."""

    name: str
    seconds: float
    gpu_mb: int = 0


@dataclass
class Work:
    """What a report lacks: missing runs, and what dev must choose before others are known."""

    missing: dict[Run, Told]
    finished: list[Told]
    chooses: list[str]
    seconds: float
    device: str
    later: float = 0.0  # expected seconds of the trainings that are known only then


def told_of(run: Run, corpora: Corpora) -> Told:
    """What a plan knows of a run."""
    corpus = corpora.of(run)
    memory = gpu_memory_mb(run, corpus) if run.device_kind == "cuda" else 0
    return Told(entry_name(run, corpus, corpora.home), costs.of_training(run, corpus), memory)


def work_of(request: Request, corpora: Corpora) -> Work:
    """What a report lacks.

    Raises:
        DataError, KeyError, ValueError: its parameters cannot be; the message says what was seen and what is allowed.
    """
    runs, chooses = needed(request)
    every = {run: told_of(run, corpora) for run in runs}
    missing = {run: told for run, told in every.items() if not cache.finished(told.name)}
    if chooses and not missing:
        return work_of(chosen_on_dev(request, corpora), corpora)
    finished = [told for run, told in every.items() if run not in missing]
    seconds = costs.of_report(request.notebook, corpora.of(runs[-1]) if runs else None)
    work = Work(missing, finished, chooses, seconds, runs[-1].device_kind if runs else "")
    if chooses:
        whole, _ = needed(Request(request.notebook, request.settings | dict.fromkeys(chooses, 1.0)))
        work.later = sum(costs.of_training(run, corpora.of(run)) for run in whole if run not in every)
    return work


def bundles(missing: dict[Run, Told], least: float) -> list[list[Run]]:
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
                seconds += missing[run].seconds
    return found


def jobs_of(report: str, work: Work, taken: dict[str, str], least: float) -> dict[str, dict[str, Any]]:
    """Jobs for what a report lacks, by their ids; `taken` maps runs' cache names to the jobs that have them, and grows.

    Args:
        report: its name, by which a job finds its runs again.
        least: seconds; 0: each run is a job of its own.
    """
    free = {run: told for run, told in work.missing.items() if told.name not in taken}
    jobs = {}
    for bundle in bundles(free, least):
        names = [free[run].name for run in bundle]
        identity = cache.digest(names)[:12]
        bases = [work.missing[run.base].name for run in bundle if run.base in work.missing]
        jobs[identity] = {
            "report": report,
            "runs": names,
            "after": sorted({taken[name] for name in bases} - {identity}),
            "told": str(bundle[0]) + (f" and {len(bundle) - 1} more" if len(bundle) > 1 else ""),
            "seconds": round(costs.STARTING + sum(free[run].seconds for run in bundle), 1),
            "device": bundle[0].device_kind,
            "gpu_mb": max(free[run].gpu_mb for run in bundle),
        }
        taken |= dict.fromkeys(names, identity)
    return jobs


def rank(jobs: dict[str, dict[str, Any]], reports: dict[str, dict[str, Any]]) -> None:
    """Adds to each job its "rank", the seconds from its start to the end of the longest chain that waits for it.

    Where jobs of high rank begin first, the last hours of a sweep are not one long chain on a single core.
    """
    waiting: dict[str, list[str]] = {identity: [] for identity in jobs}
    after = dict.fromkeys(jobs, 0.0)
    for told in reports.values():
        for identity in set(told["needs"]) & jobs.keys():
            after[identity] = max(after[identity], told["later"] + told["seconds"])
    for identity, job in jobs.items():
        for before in set(job["after"]) & jobs.keys():
            waiting[before].append(identity)

    def of(identity: str) -> float:
        if "rank" not in jobs[identity]:
            rest = max([after[identity], *map(of, waiting[identity])])
            jobs[identity]["rank"] = round(jobs[identity]["seconds"] + rest, 1)
        return jobs[identity]["rank"]

    for identity in jobs:
        of(identity)


def needs_of(work: Work, taken: dict[str, str]) -> list[str]:
    """The jobs that must be done before a report is made."""
    return sorted({taken[told.name] for told in work.missing.values()})


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
            "gpu_mb": REPORT_GPU_MB if work.device == "cuda" else 0,
        }
    rank(jobs, told)
    finished = {found.name: found.seconds for work in works.values() for found in work.finished}
    return settings | {"jobs": jobs, "reports": told, "least": least, "pace": costs.pace(finished)}


def request_of(found: dict[str, Any], report: str) -> Request:
    """The request of a planned report."""
    told = found["reports"][report]
    return Request(Path(told["notebook"]).stem, told["settings"])
