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

import torch

from lib.atomic_write import alone
from lib.progress import spoken
from lib.training.sharing import KEPT_FREE, MIB
from tools.report.parameters import PROJECT
from tools.sweep import planned

EVERY = 0.5  # seconds between two looks at what is done
SILENT = 60.0  # seconds after which a word is said even when no job ended


class Busy(RuntimeError):
    """Another master works in this folder."""


@contextmanager
def only_master(folder: Path) -> Iterator[None]:
    """Holds the folder of a sweep; the system frees it when its holder dies, so no lock is ever stale.

    Raises:
        Busy: another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)

    def refuse():
        raise Busy(f"another sweep is at work in {folder}; wait until it ends, or stop it")

    with alone(folder / "master.lock", refuse):
        yield


def run(folder: Path, profile: str, workers: int) -> bool:
    """Runs the plan in `folder`; whether all its jobs were done.

    Args:
        profile: the name of a folder in profiles/: where jobs run, and what each may use.
        workers: jobs at a time on this machine; a cluster's number stands in its profile.
    """
    from snakemake.cli import main as snakemake

    terminal = sys.stdout
    say = partial(print, file=terminal, flush=True)  # not into the log
    arguments = ["--snakefile", PROJECT / "Snakefile", "--directory", folder, "--workflow-profile"]
    arguments += [PROJECT / "profiles" / profile, *(of_this_machine(workers) if profile == "here" else [])]
    if chooses := [f"chosen/{name}.json" for name, told in planned.read(folder)["reports"].items() if told["chooses"]]:
        arguments += ["--prioritize", *chooses]  # what waits for them would be last, and alone
    os.environ.setdefault("XDG_CACHE_HOME", str(folder / ".cache"))  # a home that cannot be written is no obstacle
    with (folder / "snakemake.log").open("w") as log, told(folder, workers, say):
        try:
            with redirect_stdout(log), redirect_stderr(log):
                snakemake([str(word) for word in arguments])
        except SystemExit as ended:
            return not ended.code
    return True


def of_this_machine(workers: int) -> list[str]:
    """Options of Snakemake: so many jobs at a time, and on a GPU no more than its free memory holds."""
    free = int(KEPT_FREE * torch.cuda.mem_get_info()[0] / MIB) if torch.cuda.is_available() else 0
    return ["--cores", str(workers), *(["--resources", f"gpu_mb={free}"] if free else [])]


@contextmanager
def told(folder: Path, workers: int, say: Callable[[str], None]) -> Iterator[None]:
    """Says in a thread of its own which jobs ended, how many are left, and an estimate."""
    ended = Event()
    thread = Thread(target=_watch, args=(Watch(folder, workers), say, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class Watch:
    """What of a plan is done, by the marks that its jobs leave."""

    def __init__(self, folder: Path, workers: int):
        self.folder, self.workers, self.started = folder, workers, time.monotonic()
        self.took: dict[str, float] = {}

    def news(self) -> list[str]:
        """A line for each job that ended since the last time."""
        marks = [mark for kind in ("trained", "made") for mark in sorted((self.folder / kind).glob("*"))]
        marks = {f"{mark.parent.name}/{mark.name}": mark for mark in marks}
        if marks.keys() <= self.took.keys():
            return []  # without a look at the plan, which may be long
        found, lines = planned.read(self.folder), []
        told = {f"trained/{name}": f"trained {job['told']}" for name, job in found["jobs"].items()}
        told |= {f"made/{name}": f"made {name}" for name in found["reports"]}
        for name in (name for name in marks if name in told and name not in self.took):
            self.took[name] = json.loads(marks[name].read_text())["seconds"]
            lines.append(f"{self.line(found)} · {told[name]} in {spoken(self.took[name])}")
        return lines

    def line(self, found: dict[str, Any] | None = None) -> str:
        """How far the plan is: `12 of 43 jobs, 3 min 10 s, about 8 min left`."""
        found = found or planned.read(self.folder)
        costs = {f"trained/{name}": job["seconds"] for name, job in found["jobs"].items()}
        waiting = {name for name in found["reports"] if not (self.folder / "chosen" / f"{name}.json").exists()}
        reports = {} if found["trainings_only"] else found["reports"]
        costs |= {f"made/{name}": told["seconds"] for name, told in reports.items()}
        later = sum(found["reports"][name]["later"] for name in waiting)
        expected = sum(costs[name] for name in self.took)
        pace = sum(self.took.values()) / expected if expected else found["pace"]
        left = [cost * pace for name, cost in costs.items() if name not in self.took]
        rest = f", about {spoken(max((sum(left) + later * pace) / self.workers, max(left)))} left" if left else ""
        return f"{len(self.took)} of {len(costs)} jobs, {spoken(time.monotonic() - self.started)}{rest}"


def _watch(watch: Watch, say: Callable[[str], None], ended: Event) -> None:
    last, over = time.monotonic(), False
    while not over:
        over = ended.wait(EVERY)
        news = watch.news()
        if not news and not over and time.monotonic() - last > SILENT:
            news = [watch.line()]
        for line in news:
            say(line)
            last = time.monotonic()


def failures(folder: Path) -> list[str]:
    """A sentence for each report of the plan that was not made, and for each job that failed, with its log."""
    found = planned.read(folder)
    reports = [] if found["trainings_only"] else found["reports"]
    missing = [name for name in reports if not (folder / "made" / name).exists()]
    lines = [f"not made: {', '.join(missing)}"] if missing else []
    for log in sorted((folder / "logs").glob("*.log")):
        name = log.stem.removeprefix("choose-")
        done = any((folder / kind / name).exists() for kind in ("trained", "made"))
        known = name in found["jobs"] or name in found["reports"]
        said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        if known and not done and said:
            lines.append(f"{found['jobs'].get(name, {}).get('told', name)}: {_reason(said)}\n    log: {log}")
    return lines if len(lines) > bool(missing) else [*lines, f"why, Snakemake says in {folder / 'snakemake.log'}"]


def _reason(said: list[str]) -> str:
    failed = [line for line in said if " was not made. " in line or " failed: " in line]
    return (failed or said)[-1]


def project() -> dict[str, str]:
    """What the Snakefile must know of this machine."""
    return {"project": str(PROJECT), "python": sys.executable}
