"""A sweep in a process of its own, which tests kill, starve and lock out; and what it left."""

import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import snakemake.cli  # noqa: F401 - imported once, before processes fork, so that the first job of a sweep starts sooner

from lib.training import cache
from tools.sweep.__main__ import main

FORK = multiprocessing.get_context("fork")  # torch and Snakemake are imported once


class Sweep:
    """A master, started with the arguments of `python -m tools.sweep`; `before` runs in its process first."""

    def __init__(self, arguments: Sequence[str], log: Path, before: Callable[[], None] = lambda: None):
        self.log = log
        self.process = FORK.Process(target=self._live, args=(list(arguments), before))
        self.process.start()

    def _live(self, arguments: list[str], before: Callable[[], None]) -> None:
        os.setsid()
        output = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(output, stream)
        sys.stdout = sys.stderr = os.fdopen(output, "w", buffering=1)
        before()
        os._exit(main(arguments))

    def ended(self, seconds: float = 300) -> int:
        """Its exit code; negative where it was killed."""
        self.process.join(seconds)
        assert self.process.exitcode is not None, f"the sweep still runs after {seconds} s: {self.output}"
        return self.process.exitcode

    @property
    def output(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def processes(self, words: str) -> list[psutil.Process]:
        """Those that it started, with the words in their command line."""
        found = []
        for process in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                found += [process] if words in " ".join(process.cmdline()) else []
        return found

    def wait_for(self, words: str) -> None:
        """Waits until one of them is at work, or the sweep has ended."""
        while self.process.is_alive() and not self.processes(words):
            time.sleep(0.05)

    def kill(self, draw: random.Random, words: str, share: float) -> None:
        """Kills the master, or with the chance `share` a job of its where there is one."""
        with suppress(psutil.NoSuchProcess):
            victims = self.processes(words) if draw.random() < share else []
            (draw.choice(victims) if victims else psutil.Process(self.process.pid)).kill()


def wait_for_orphans(words: str, seconds: float = 120) -> None:
    """Waits until no process with the words in its command line runs on."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(words in " ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])):
            return
        time.sleep(0.2)
    raise AssertionError(f"{words} still runs after {seconds} s")


def finished(home: Path) -> Iterator[str]:
    """The names of the sound entries of a cache."""
    for contents in home.glob("[!.]*/contents.json"):
        digests = json.loads(contents.read_text())
        if all(cache.file_digest(contents.parent / file) == digest for file, digest in digests.items()):
            yield contents.parent.name


def traces(home: Path) -> dict[str, tuple[int, int]]:
    """Of each sound entry what changes when it is made again: inode and time of its weights."""
    of = {name: (home / name / "weights.safetensors").stat() for name in finished(home)}
    return {name: (file.st_ino, file.st_mtime_ns) for name, file in of.items()}


def weights(home: Path) -> dict[str, bytes]:
    """The bytes of the weights of each entry."""
    return {name: (home / name / "weights.safetensors").read_bytes() for name in finished(home)}
