"""Runs a plan by Snakemake: one master a folder, a line as each job ends, and what went wrong at the end."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

from lib.atomic_write import alone
from lib.processes import gpu_runs
from lib.progress import spoken
from tools.report.parameters import PROJECT
from tools.sweep import plan as plans

EVERY = 0.5  # seconds between two looks for finished jobs
SILENT = 60.0  # seconds after which a line is printed even when no job ended


class Busy(RuntimeError):
    """Another master works in this folder."""


@contextmanager
def only_master(folder: Path) -> Iterator[None]:
    """Holds the folder of a sweep, or Busy; the system frees it when its holder dies, so no lock is ever stale."""
    folder.mkdir(parents=True, exist_ok=True)

    def refuse():
        raise Busy(f"another sweep is at work in {folder}; wait until it ends, or stop it")

    with alone(folder / "master.lock", refuse):
        yield


def run(folder: Path, profile: str, workers: int) -> bool:
    """Runs the plan in `folder`; whether all its jobs were done.

    Args:
        profile: the name of a folder in profiles/: where jobs run, and what each may use.
        workers: jobs at a time on this machine; on a cluster its profile decides.
    """
    from snakemake.cli import main as snakemake

    arguments = ["--snakefile", PROJECT / "Snakefile", "--directory", folder, "--workflow-profile"]
    arguments += [PROJECT / "profiles" / profile]
    if profile == "here":
        arguments += ["--cores", workers, "--resources", f"gpu_runs={gpu_runs()}"]
    if chooses := [f"chosen/{name}.json" for name, one in plans.read(folder)["reports"].items() if one["chooses"]]:
        arguments += ["--prioritize", *chooses]  # or what waits for them would be last, and alone
    os.environ.setdefault("XDG_CACHE_HOME", str(folder / ".cache"))  # a home that cannot be written is no obstacle
    say, ended = partial(print, file=sys.stdout, flush=True), Event()  # to the terminal, not into Snakemake's log
    reporter = Thread(target=report_progress, args=(Progress(folder, workers), say, ended), daemon=True)
    reporter.start()
    try:
        with (folder / "snakemake.log").open("w") as log, redirect_stdout(log), redirect_stderr(log):
            snakemake([str(word) for word in arguments])
    except SystemExit as stopped:
        return not stopped.code
    finally:
        ended.set()
        reporter.join()
    return True


def report_progress(progress: "Progress", say: Callable[[str], None], ended: Event) -> None:
    """Prints which jobs ended, how many are left and an estimate, until `ended` is set."""
    last, over = time.monotonic(), False
    while not over:
        over = ended.wait(EVERY)
        lines = progress.news()
        if not lines and not over and time.monotonic() - last > SILENT:
            lines = [progress.line(plans.read(progress.folder))]
        for line in lines:
            say(line)
            last = time.monotonic()


class Progress:
    """How much of a plan is done, by the marks that its jobs leave."""

    def __init__(self, folder: Path, workers: int):
        self.folder, self.workers, self.started = folder, workers, time.monotonic()
        self.took: dict[str, float] = {}  # seconds of each job that ended

    def news(self) -> list[str]:
        """A line for each job that ended since the last call."""
        found = (mark for kind in ("trained", "made") for mark in (self.folder / kind).glob("*"))
        marks = {f"{mark.parent.name}/{mark.name}" for mark in found}
        if marks <= self.took.keys():
            return []  # without reading the plan, which may be long
        plan, lines = plans.read(self.folder), []
        titles = {f"trained/{name}": f"trained {job['title']}" for name, job in plan["jobs"].items()}
        titles |= {f"made/{name}": f"made {name}" for name in plan["reports"]}
        for name in sorted(marks & titles.keys() - self.took.keys(), reverse=True):  # trainings, then reports
            self.took[name] = json.loads((self.folder / name).read_text())["seconds"]
            lines.append(f"{self.line(plan)} · {titles[name]} in {spoken(self.took[name])}")
        return lines

    def line(self, plan: dict[str, Any]) -> str:
        """How far the plan is: `12 of 43 jobs, 3 min 10 s, about 8 min left`."""
        costs = {f"trained/{name}": job["seconds"] for name, job in plan["jobs"].items()}
        reports = {} if plan["trainings_only"] else plan["reports"]
        costs |= {f"made/{name}": report["seconds"] for name, report in reports.items()}
        unknown = [name for name in plan["reports"] if not (self.folder / "chosen" / f"{name}.json").exists()]
        later = sum(plan["reports"][name]["later"] for name in unknown)
        expected = sum(costs[name] for name in self.took)
        pace = sum(self.took.values()) / expected if expected else 1.0
        left = [cost * pace for name, cost in costs.items() if name not in self.took]
        rest = f", about {spoken(max((sum(left) + later * pace) / self.workers, max(left)))} left" if left else ""
        return f"{len(self.took)} of {len(costs)} jobs, {spoken(time.monotonic() - self.started)}{rest}"


def failures(folder: Path) -> list[str]:
    """A sentence for each report of the plan that was not made, and for each job that failed, with its log."""
    plan = plans.read(folder)
    reports = [] if plan["trainings_only"] else plan["reports"]
    missing = [name for name in reports if not (folder / "made" / name).exists()]
    lines = [f"not made: {', '.join(missing)}"] if missing else []
    for log in sorted((folder / "logs").glob("*.log")):
        name = log.stem.removeprefix("choose-")
        done = any((folder / kind / name).exists() for kind in ("trained", "made"))
        known = name in plan["jobs"] or name in plan["reports"]
        text = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        if known and not done and text:
            failed = [line for line in text if " was not made. " in line or " failed: " in line]
            title = plan["jobs"].get(name, {}).get("title", name)
            lines.append(f"{title}: {(failed or text)[-1]}\n    log: {log}")
    return lines if len(lines) > bool(missing) else [*lines, f"for the reason see {folder / 'snakemake.log'}"]
