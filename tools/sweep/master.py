"""Runs a plan by Snakemake: one master a folder, a line as each job ends, and what went wrong at the end."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from threading import Event, Thread
from typing import Any, TextIO

from lib.atomic_write import alone
from lib.processes import gpu_runs
from lib.progress import spoken
from tools.report.parameters import PROJECT
from tools.sweep.plan import write

EVERY = 0.5  # seconds between two looks for finished jobs


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


def run(plan: dict[str, Any], folder: Path, profile: str, workers: int) -> bool:
    """Runs a plan in its folder; whether all its jobs were done.

    Args:
        profile: the name of a folder in profiles/: where jobs run, and what each may use.
        workers: jobs at a time on this machine; on a cluster its profile decides.
    """
    from snakemake.cli import main as snakemake

    write(folder, plan)
    arguments = ["--snakefile", PROJECT / "Snakefile", "--directory", folder, "--workflow-profile"]
    arguments += [PROJECT / "profiles" / profile]
    if profile == "here":
        arguments += ["--cores", workers, "--resources", f"gpu_runs={gpu_runs()}"]
    os.environ.setdefault("XDG_CACHE_HOME", str(folder / ".cache"))  # a home that cannot be written is no obstacle
    ended = Event()
    reporter = Thread(target=report_progress, args=(plan, folder, sys.stdout, ended), daemon=True)
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


def report_progress(plan: dict[str, Any], folder: Path, terminal: TextIO, ended: Event) -> None:
    """Prints a line for each job that ends, until `ended` is set: `12 of 43 jobs, 3 min 10 s · sparsity-sst`."""
    started, left, over = time.monotonic(), dict(plan["jobs"]), False
    while not over:
        over = ended.wait(EVERY)
        for name in [name for name in left if (folder / "done" / name).exists()]:
            title, passed = left.pop(name)["title"], spoken(time.monotonic() - started)
            done = len(plan["jobs"]) - len(left)
            print(f"{done} of {len(plan['jobs'])} jobs, {passed} · {title}", file=terminal, flush=True)


def failures(plan: dict[str, Any], folder: Path) -> list[str]:
    """A sentence for the reports of the plan that were not made, and for each job that failed, with its log."""
    failed = {name: job for name, job in plan["jobs"].items() if not (folder / "done" / name).exists()}
    missing = [name for name in failed if name in plan["reports"]]
    lines = [f"not made: {', '.join(missing)}"] if missing else []
    for name, job in failed.items():
        log = folder / "logs" / f"{name}.log"
        text = [line for line in log.read_text(errors="replace").splitlines() if line.strip()] if log.exists() else []
        if text:
            reasons = [line for line in text if " was not made. " in line or " failed: " in line]
            lines.append(f"{job['title']}: {(reasons or text)[-1]}\n    log: {log}")
    return lines if len(lines) > bool(missing) else [*lines, f"for the reason see {folder / 'snakemake.log'}"]
