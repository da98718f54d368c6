"""Runs a plan by Snakemake: a line as each job ends, and what went wrong at the end."""

import os
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from threading import Event, Thread
from typing import Any, TextIO

from lib.processes import gpu_runs
from lib.progress import spoken
from tools.report.parameters import PROJECT
from tools.sweep.plan import write

EVERY = 0.5  # seconds between two looks for finished jobs


def run(plan: dict[str, Any], folder: Path, profile: str, workers: int) -> bool:
    """Runs a plan in its folder; whether all its jobs were done.

    Args:
        profile: the name of a folder in profiles/: where jobs run, and what each may use.
        workers: jobs at a time on this machine; on a cluster its profile decides.
    """
    from snakemake.cli import main as snakemake

    write(folder, plan)
    arguments = ["--snakefile", PROJECT / "Snakefile", "--directory", folder]
    arguments += ["--workflow-profile", PROJECT / "profiles" / profile]
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
    """Which reports of the plan were not made, and for each job that failed why, with its log."""
    failed = [name for name in plan["jobs"] if not (folder / "done" / name).exists()]
    missing = [name for name in failed if name in plan["reports"]]
    lines = [f"not made: {', '.join(missing)}"] if missing else []
    for name in failed:
        log = folder / "logs" / f"{name}.log"
        text = log.read_text(errors="replace").splitlines() if log.exists() else []
        if reasons := [line for line in text if " was not made. " in line or " failed: " in line] or text[-1:]:
            lines.append(f"{plan['jobs'][name]['title']}: {reasons[-1]}\n    log: {log}")
    return [*lines, f"all logs: {folder / 'logs'}, {folder / 'snakemake.log'}"]
