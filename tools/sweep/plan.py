"""The plan of a sweep: the reports to make, and the trainings that they lack, in jobs; and Snakemake, which runs it."""

import os
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, TextIO

import psutil

from lib.atomic_write import write_json
from lib.datasets import DataError
from lib.processes import gpu_runs
from lib.progress import spoken
from lib.training import Run, cache, stages, with_bases
from lib.training.trained import Corpora, entry_name
from papers import PAPERS
from papers.settings import device_kind
from tools.report.parameters import PROJECT, Refused, all_values, report_name


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
    def choices(self) -> list[str]:
        """The options that dev chooses: the report trains what waits for them itself, and so takes long."""
        paper = PAPERS.get(self.notebook.stem)
        return [name for name in (paper.swept if paper else ()) if not self.settings[name]]

    def runs(self, corpora: Corpora) -> dict[str, Run]:
        """Its runs by their names in the cache, bases first; of an option that dev chooses those to choose from.

        Raises:
            Refused: for a parameter that the notebook would refuse.
        """
        paper = PAPERS.get(self.notebook.stem)
        if paper is None or self.settings.get("model"):
            return {}
        try:
            settings = paper.settings.of(self.settings)
            choices = set(self.choices)
            runs = [run for name in self.choices for run in paper.swept[name](settings)]
            others = (run for part in paper.parts for run in part(settings))
            runs += [one for one in others if not any(choices & run.defaults.keys() for run in with_bases([one]))]
            return {entry_name(run, corpora.load(run), corpora.home): run for run in with_bases(runs)}
        except (DataError, KeyError, ValueError) as error:
            raise Refused(error.args[0]) from error


def plan(
    lacking: Iterable[tuple[Report, dict[str, Run]]], output: Path, workers: int, trainings_only: bool = False
) -> dict[str, Any]:
    """What is left to do for reports, each with the runs that are not trained, as the Snakefile and its jobs read it.

    A job has its report's `notebook` and `values`, `title`, `after` (the jobs before it), `device`, `first` (of a long
    report) and, to train, `runs` by their names in the cache. In profile `quick` the runs of a report that can be
    trained side by side are dealt to as many jobs as there are workers; else each is a job of its own.
    """
    jobs, job_of = {}, {}
    for report, missing in lacking:
        about = {"notebook": str(report.notebook), "values": report.values, "first": bool(report.choices)}
        about["device"] = device_kind(report.settings.get("device", "auto"))
        most = workers if report.settings.get("profile") == "quick" else len(missing)
        jobs |= {name: about | job for name, job in trainings(missing, job_of, most).items()}
        if not trainings_only:
            needs = sorted({job_of[name] for name in missing})
            jobs[report.name] = about | {"title": report.name, "after": needs}
    return {"jobs": jobs, "project": str(PROJECT), "python": sys.executable, "output": str(output)}


def trainings(missing: dict[str, Run], job_of: dict[str, str], most: int) -> dict[str, dict[str, Any]]:
    """Jobs that train the missing runs, of each stage at most so many, dealt round robin; each after its runs' bases'.

    `job_of` has the jobs that train runs for other reports, by the runs' names; those of this report are added.
    """
    jobs, name_of = {}, {run: name for name, run in missing.items()}
    for stage in stages([run for run, name in name_of.items() if name not in job_of]):
        for runs in (stage[number::most] for number in range(min(most, len(stage)))):
            names = [name_of[run] for run in runs]
            identity = cache.digest(names)[:12]
            bases = {job_of[name_of[run.base]] for run in runs if run.base in name_of}
            title = str(runs[0]) + (f" and {len(runs) - 1} more" if len(runs) > 1 else "")
            jobs[identity] = {"runs": names, "after": sorted(bases), "title": title}
            job_of |= dict.fromkeys(names, identity)
    return jobs


def run(plan: dict[str, Any], folder: Path, profile: str, workers: int) -> bool:
    """Runs a plan in its folder, as a folder in profiles/ says; whether all its jobs were done.

    On this machine there are at most so many workers at a time. KeyboardInterrupt where it was interrupted or ended.
    """
    from snakemake.cli import main as snakemake
    from snakemake.scheduling.job_scheduler import JobScheduler

    write(plan, folder)
    arguments = ["--snakefile", PROJECT / "Snakefile", "--directory", folder]
    arguments += ["--workflow-profile", PROJECT / "profiles" / profile]
    arguments += ["--cores", workers, "--resources", f"gpu_runs={gpu_runs()}"] if profile == "here" else []
    os.environ.setdefault("XDG_CACHE_HOME", str(folder / ".cache"))  # a home that cannot be written is no obstacle
    ended, interrupted = Event(), Event()
    JobScheduler.exit_gracefully = partial(end_jobs, interrupted)  # its answer to SIGTERM
    signal.signal(signal.SIGINT, JobScheduler.exit_gracefully)
    reporter = Thread(target=report_progress, args=(plan, folder, sys.stdout, ended), daemon=True)
    reporter.start()
    try:
        with (folder / "snakemake.log").open("w") as log, redirect_stdout(log), redirect_stderr(log):
            snakemake([str(word) for word in arguments])
    except SystemExit as stopped:
        if interrupted.is_set():
            raise KeyboardInterrupt from None
        return not stopped.code
    finally:
        ended.set()
        reporter.join()
    return True


def end_jobs(interrupted: Event, *_: object) -> None:
    """Answers SIGINT and SIGTERM: ends the jobs at once, where Snakemake would wait for them, and interrupts it."""
    interrupted.set()
    for job in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            job.terminate()
    raise KeyboardInterrupt


def write(plan: dict[str, Any], folder: Path) -> None:
    """Writes plan.json, and removes what jobs of earlier plans left in the folder: marks and logs."""
    for name in ("done", "logs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for mark in (folder / name).iterdir():
            mark.unlink()
    write_json(folder / "plan.json", plan)


def report_progress(plan: dict[str, Any], folder: Path, terminal: TextIO, ended: Event) -> None:
    """Prints a line for each job that ends, until `ended` is set: `12 of 43 jobs, 3 min 10 s · sparsity-sst`."""
    started, left, over = time.monotonic(), dict(plan["jobs"]), False
    while not over:
        over = ended.wait(0.5)
        for name in [name for name in left if (folder / "done" / name).exists()]:
            title, passed = left.pop(name)["title"], spoken(time.monotonic() - started)
            done = len(plan["jobs"]) - len(left)
            print(f"{done} of {len(plan['jobs'])} jobs, {passed} · {title}", file=terminal, flush=True)


def failures(plan: dict[str, Any], folder: Path) -> list[str]:
    """Which jobs of the plan were not done and, of each that began, why: the last line of its log."""
    lines = []
    for name, job in plan["jobs"].items():
        log = folder / "logs" / f"{name}.log"
        if not (folder / "done" / name).exists():
            text = log.read_text(errors="replace").splitlines() if log.exists() else []
            reasons = [line for line in text if " failed: " in line] or text[-1:] or ["not begun"]
            lines.append(f"{job['title']} was not made: {reasons[-1].removeprefix(job['title'] + ' failed: ')}")
    return [*lines, f"logs: {folder / 'logs'}, {folder / 'snakemake.log'}"]
