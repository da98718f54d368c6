"""The plan of a sweep: which reports are to be made, which trainings are missing, and which jobs do them."""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from lib.atomic_write import write_json
from lib.datasets import DataError
from lib.datasets.corpus import Corpus
from lib.training import Run, cache, stages, train_all, with_bases
from lib.training.trained import Corpora, entry_name
from papers import PAPERS, Settings
from tools.report import parameters

BUNDLE = 200.0  # seconds: runs that take less share a job with others of their kind
# Of one pass over a million tokens; by the encoder's name, else 60. Measured on one core of a machine of 2023.
TRAINING = {"bilstm": 75.0, "average": 9.0, "conv": 40.0, "transformer": 60.0, "flan-noenc": 15.0, "han-noenc": 15.0}
VARIANTS = {"mlm": 3.0, "adversary": 1.2}  # times as long; one whose encoder is frozen takes a sixth
SPEED = {"cpu": 1.0, "cuda": 30.0}  # an H100 that ten runs share trains on IMDb 30 times as fast as that core
ADVERSARY_EPOCHS = 60  # of those that it may have, until it ends by itself; a run with patience has about twice that
STARTING = 8.0  # until a job's process has imported and read what it needs
OPENING = 20.0  # of any report: its kernel, its imports, its page
REPORT_TOKENS = 8_000  # of the test split that Paper.seconds are about


@dataclass(frozen=True)
class Request:
    """A report's notebook, and the values of all its parameters."""

    notebook: str
    settings: dict[str, Any]

    @property
    def data_home(self) -> str | None:
        """The folder of datasets; None or "": the default."""
        return self.settings.get("data_home")

    @property
    def swept(self) -> list[str]:
        """The options that dev chooses."""
        paper = PAPERS.get(self.notebook)
        return [option for option in paper.swept if not self.settings[option]] if paper else []

    def chosen(self) -> Settings:
        """The settings of its paper, checked."""
        return PAPERS[self.notebook].settings.of(self.settings)


def needed(request: Request) -> tuple[list[Run], list[str]]:
    """The runs of a report, bases first, and the options that dev has yet to choose before the others are known.

    Raises DataError, KeyError or ValueError for a parameter that the notebook would refuse, in one sentence.
    """
    paper, swept = PAPERS.get(request.notebook), request.swept
    if paper is None or request.settings.get("model"):
        return [], []
    settings = request.chosen()
    parts = [paper.swept[option] for option in swept] or [*paper.parts, *paper.beside]
    return with_bases([run for part in parts for run in part(settings)]), swept


def chosen_on_dev(request: Request, corpora: Corpora) -> Request:
    """The same report with what dev chooses; trains the runs of the sweep that are not there."""
    from lib.analysis import on_dev, tried

    settings, found = request.chosen(), {}
    for option in request.swept:
        runs = PAPERS[request.notebook].swept[option](settings)
        train = partial(train_all, data_home=corpora.home, processes=1, corpus=corpora.of(runs[0]))
        found[option] = on_dev(tried(runs, option, train), option)
    return Request(request.notebook, request.settings | found)


class Training(NamedTuple):
    """A run's name in the cache and the seconds that it is expected to take."""

    name: str
    seconds: float


@dataclass
class Work:
    """What a report lacks: missing runs, and the options that dev must choose before further runs are known."""

    missing: dict[Run, Training]
    chooses: list[str]
    seconds: float  # expected, of the report itself
    device: str
    later: float = 0.0  # expected seconds of the trainings that are known only after the choice on dev


@dataclass(frozen=True)
class Report:
    """A notebook, by its file, and the parameters that were given for it."""

    notebook: Path
    values: dict[str, Any]

    @cached_property
    def name(self) -> str:
        """The report's file name, without its ending."""
        return parameters.report_name(self.notebook, self.values)

    @cached_property
    def request(self) -> Request:
        """The notebook with all its parameters."""
        return Request(self.notebook.stem, parameters.all_values(self.notebook, self.values))

    def is_up_to_date(self, folder: Path) -> bool:
        """Whether `folder` has its page, made from what is here now."""
        from tools.report.run import fingerprint, is_made_from  # with papermill: not for jobs that train

        page = folder / f"{self.name}.html"
        return page.exists() and is_made_from(page, fingerprint(self.notebook, self.values))

    def work(self, corpora: dict[str | None, Corpora]) -> Work:
        """What it lacks, or Refused; `corpora`, by the folder of the datasets, are loaded once for all reports."""
        home = self.request.data_home
        try:
            return work_of(self.request, corpora.setdefault(home, Corpora(home)))
        except (DataError, KeyError, ValueError) as error:
            raise parameters.Refused(error.args[0]) from error


def work_of(request: Request, corpora: Corpora) -> Work:
    """What a report lacks; raises as `needed`."""
    runs, chooses = needed(request)
    trainings = {
        run: Training(entry_name(run, corpus, corpora.home), training_seconds(run, corpus))
        for run, corpus in ((run, corpora.of(run)) for run in runs)
    }
    missing = {run: one for run, one in trainings.items() if not cache.finished(one.name)}
    if chooses and not missing:
        return work_of(chosen_on_dev(request, corpora), corpora)
    device = runs[-1].device_kind if runs else ""
    seconds = report_seconds(request.notebook, corpora.of(runs[-1]) if runs else None, device)
    work = Work(missing, chooses, seconds, device)
    if chooses:
        whole, _ = needed(Request(request.notebook, request.settings | dict.fromkeys(chooses, 1.0)))
        work.later = sum(training_seconds(run, corpora.of(run)) for run in whole if run not in trainings)
    return work


def plan(
    works: Iterable[tuple[Report, Work]], output: Path, trainings_only: bool = False, least: float = BUNDLE
) -> dict[str, Any]:
    """The plan as the Snakefile and the jobs read it: `jobs` and `reports` by name, expected seconds, and settings.

    Args:
        works: the reports to make, each with what it lacks.
        output: the folder of the reports' pages.
        trainings_only: no report is made.
        least: expected seconds of a job that trains several runs; 0: each run is a job of its own.
    """
    taken: dict[str, str] = {}
    jobs, reports = {}, {}
    for report, work in works:
        jobs |= jobs_of(report.name, work, taken, least)
        reports[report.name] = {
            "notebook": str(report.notebook),
            "values": report.values,
            "settings": report.request.settings,
            "needs": sorted({taken[one.name] for one in work.missing.values()}),
            "chooses": bool(work.chooses),
            "seconds": round(STARTING + work.seconds, 1),
            "later": round(work.later, 1),
            "device": work.device,
        }
    rank(jobs, reports)
    where = {"project": str(parameters.PROJECT), "python": sys.executable, "output": str(output)}
    how = {"trainings_only": trainings_only, "least": least}
    return {"jobs": jobs, "reports": reports} | where | how


def jobs_of(report: str, work: Work, taken: dict[str, str], least: float) -> dict[str, dict[str, Any]]:
    """Jobs for what a report lacks, by their ids, each after those of its runs' bases.

    Args:
        report: its name, by which a job finds its runs again.
        taken: cache names of runs -> the jobs that train them; those of this report are added.
        least: as in `plan`.
    """
    free = {run: one for run, one in work.missing.items() if one.name not in taken}
    jobs = {}
    for bundle in bundles(free, least):
        names = [free[run].name for run in bundle]
        identity = cache.digest(names)[:12]
        bases = [work.missing[run.base].name for run in bundle if run.base in work.missing]
        jobs[identity] = {
            "report": report,
            "runs": names,
            "after": sorted({taken[name] for name in bases} - {identity}),
            "title": str(bundle[0]) + (f" and {len(bundle) - 1} more" if len(bundle) > 1 else ""),
            "seconds": round(STARTING + sum(free[run].seconds for run in bundle), 1),
            "device": bundle[0].device_kind,
        }
        taken |= dict.fromkeys(names, identity)
    return jobs


def bundles(missing: dict[Run, Training], least: float) -> list[list[Run]]:
    """Runs in groups that each make a job: of one stage and device, and of at least `least` seconds together."""
    found: list[list[Run]] = []
    for stage in stages(list(missing)):
        for kind in dict.fromkeys(run.device_kind for run in stage):
            seconds = least
            for run in sorted((run for run in stage if run.device_kind == kind), key=lambda run: str(run.data)):
                if seconds >= least:
                    seconds = 0.0
                    found.append([])
                found[-1].append(run)
                seconds += missing[run].seconds
    return found


def rank(jobs: dict[str, dict[str, Any]], reports: dict[str, dict[str, Any]]) -> None:
    """Adds to each job its "rank", the seconds from its start to the end of the longest chain that waits for it.

    Where jobs of high rank begin first, the last hours of a sweep are not one long chain on a single core.
    """
    rest = dict.fromkeys(jobs, 0.0)
    for report in reports.values():
        for identity in set(report["needs"]) & jobs.keys():
            rest[identity] = max(rest[identity], report["later"] + report["seconds"])
    for identity, job in reversed(jobs.items()):  # a job comes after those that it waits for
        job["rank"] = round(job["seconds"] + rest[identity], 1)
        for before in set(job["after"]) & jobs.keys():
            rest[before] = max(rest[before], job["rank"])


def write(folder: Path, plan: dict[str, Any]) -> None:
    """Writes a plan into its folder, plan.json, and removes what jobs of earlier plans left there: marks and logs."""
    for name in ("trained", "made", "chosen", "logs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for mark in (folder / name).iterdir():
            mark.unlink()
    write_json(folder / "plan.json", plan)


def read(folder: Path) -> dict[str, Any]:
    """The plan in a folder, with the jobs that were added after a choice on dev."""
    plan = json.loads((folder / "plan.json").read_text())
    for path in sorted((folder / "chosen").glob("*.json")):
        plan["jobs"] |= json.loads(path.read_text())["jobs"]
    return plan


# --- how long jobs are expected to take


def training_seconds(run: Run, corpus: Corpus) -> float:
    """The expected seconds of a run, on one core of the machine that TRAINING is about, or on a GPU."""
    usual = ADVERSARY_EPOCHS if run.variant == "adversary" else 2 * (run.option("patience") or run.epochs)
    millions = float(corpus.train.lengths.sum()) * min(run.epochs, usual) / 1e6
    frozen = run.variant == "adversary" and run.option("trains") == "attention"
    times = VARIANTS.get(run.variant, 1.0) / (6 if frozen else 1)
    width = run.option("embedding_size") / 300  # 300: of the models that TRAINING is about
    return millions * TRAINING.get(run.encoder, 60.0) * times * run.layers * width / SPEED[run.device_kind] + 0.5


def report_seconds(notebook: str, corpus: Corpus | None, device: str) -> float:
    """The expected seconds of a report whose models are trained, by the length of its test texts."""
    tokens = float(corpus.test.lengths.sum()) if corpus else REPORT_TOKENS
    seconds = PAPERS[notebook].seconds if notebook in PAPERS else 60.0
    return OPENING + seconds * tokens / REPORT_TOKENS / SPEED.get(device, 1.0)
