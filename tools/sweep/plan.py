"""The plan of a sweep: the reports to make, and the trainings that they lack, in jobs of equal size."""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any

from lib.analysis import chosen_values
from lib.atomic_write import write_json
from lib.datasets import DataError
from lib.training import Run, cache, stages, train_all, with_bases
from lib.training.trained import Corpora, entry_name, is_trained
from papers import PAPERS
from papers.settings import device_kind
from tools.report.names import report_name
from tools.report.parameters import PROJECT, Refused, all_values

SIZES = {"quick": 16}  # trainings of a job, by profile; else each is a job of its own


@dataclass(frozen=True)
class Report:
    """A notebook, and the parameters that were given for it."""

    notebook: Path
    values: dict[str, Any]

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The values of all parameters."""
        return all_values(self.notebook, self.values)

    @property
    def name(self) -> str:
        """The report's file name, without its ending."""
        return report_name(self.notebook, self.values)

    @property
    def swept(self) -> list[str]:
        """The options that dev chooses."""
        paper = PAPERS.get(self.notebook.stem)
        return [option for option in paper.swept if not self.settings[option]] if paper else []

    @property
    def data_home(self) -> str | None:
        """The folder of datasets; None: the default."""
        return self.settings.get("data_home")

    def is_up_to_date(self, folder: Path) -> bool:
        """Whether `folder` has its page, made from what is here now."""
        from tools.report.run import fingerprint, is_made_from  # with papermill: not for jobs that train

        return is_made_from(folder / f"{self.name}.html", fingerprint(self.notebook, self.values))

    def runs(self, corpora: Corpora) -> dict[str, Run]:
        """Its runs by their names in the cache, bases first.

        Until those are trained from which dev chooses an option, these alone.

        Raises:
            Refused: for a parameter that the notebook would refuse.
        """
        try:
            runs = self.list_runs(corpora)
            return {entry_name(run, corpora.load(run), corpora.home): run for run in runs}
        except (DataError, KeyError, ValueError) as error:
            raise Refused(error.args[0]) from error

    def list_runs(self, corpora: Corpora) -> list[Run]:
        """See `runs`."""
        paper = PAPERS.get(self.notebook.stem)
        if paper is None or self.settings.get("model"):
            return []
        settings = paper.settings.of(self.settings)
        tried = with_bases([run for option in self.swept for run in paper.swept[option](settings)])
        if not all(is_trained(run, corpora.load(run), corpora.home) for run in tried):
            return tried
        chosen = {option: self.choose_on_dev(option, corpora) for option in self.swept}
        settings = paper.settings.of(self.settings | chosen)
        return with_bases([*tried, *(run for part in paper.parts for run in part(settings))])

    def choose_on_dev(self, option: str, corpora: Corpora) -> Any:
        """What dev chooses; trains the runs that it lacks."""
        paper = PAPERS[self.notebook.stem]
        runs = paper.swept[option](paper.settings.of(self.settings))
        trained = train_all(runs, data_home=corpora.home, processes=1, corpus=corpora.load(runs[0]))
        return chosen_values(trained, option)


def plan(
    lacking: Iterable[tuple[Report, dict[str, Run]]], output: Path, size: int = 0, trainings_only: bool = False
) -> dict[str, Any]:
    """What is left to do, as the Snakefile and its jobs read it: jobs and reports by name.

    A job has `report`, `title`, `after` (the jobs before it), `device`, `chooses` (whether dev has yet to choose for
    its report) and, where it trains, `runs` by their names in the cache.

    Args:
        lacking: the reports, each with the runs that are not trained.
        output: the folder of the reports' pages.
        size: trainings of a job; 0: as many as the profile has (SIZES).
        trainings_only: no report is made.
    """
    jobs, reports, job_of = {}, {}, {}
    for report, missing in lacking:
        device = device_kind(report.settings.get("device", "auto"))
        about = {"report": report.name, "device": device, "chooses": bool(report.swept)}
        chunks = trainings(missing, job_of, size or SIZES.get(report.settings.get("profile"), 1))
        jobs |= {name: about | job for name, job in chunks.items()}
        if not trainings_only:
            needs = sorted({job_of[name] for name in missing})
            jobs[report.name] = about | {"title": report.name, "after": needs}
        reports[report.name] = {"notebook": str(report.notebook), "values": report.values}
    where = {"project": str(PROJECT), "python": sys.executable, "output": str(output)}
    return {"jobs": jobs, "reports": reports} | where


def trainings(missing: dict[str, Run], job_of: dict[str, str], size: int) -> dict[str, dict[str, Any]]:
    """Jobs that train the missing runs, `size` or fewer each, dealt round robin; each after those of its runs' bases.

    Args:
        job_of: names of runs -> the jobs that train them for other reports; those of this report are added.
    """
    jobs, name_of = {}, {run: name for name, run in missing.items()}
    for stage in stages([run for run, name in name_of.items() if name not in job_of]):
        count = ceil(len(stage) / size)
        for runs in (stage[number::count] for number in range(count)):
            names = [name_of[run] for run in runs]
            identity = cache.digest(names)[:12]
            bases = [name_of[run.base] for run in runs if run.base in name_of]
            title = str(runs[0]) + (f" and {len(runs) - 1} more" if len(runs) > 1 else "")
            jobs[identity] = {"runs": names, "after": sorted({job_of[name] for name in bases}), "title": title}
            job_of |= dict.fromkeys(names, identity)
    return jobs


def write(folder: Path, plan: dict[str, Any]) -> None:
    """Writes plan.json, and removes what jobs of earlier plans left in the folder: marks and logs."""
    for name in ("done", "logs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for mark in (folder / name).iterdir():
            mark.unlink()
    write_json(folder / "plan.json", plan)


def read(folder: Path) -> dict[str, Any]:
    """The plan in a folder."""
    return json.loads((folder / "plan.json").read_text())
