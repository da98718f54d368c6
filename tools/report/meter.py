"""How long each section of a notebook takes, and the most memory that its kernel holds meanwhile."""

import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import psutil

EVERY = 0.1  # seconds between two readings of the memory
SPARED = 4  # but a reading is followed by SPARED times as long without: a busy machine has many processes
MIB = 1024**2


@dataclass
class Section:
    """The cells under one heading. `peak` is in MiB, None where no memory could be read."""

    anchor: str
    name: str
    seconds: float = 0.0
    peak: float | None = None


class Meter:
    """Measures a notebook while it runs: `begin` starts the next section, `measured` gives the result afterwards.

    >>> with Meter() as meter:
    ...     meter.begin("data", "1 Data")

    Time is that of a monotonic clock. Memory is what all processes hold together that this one started since,
    with those that they started: the kernel, and its trainings side by side.
    """

    def __init__(self):
        self.sections = [Section("", "Before the first section")]  # the kernel's start, parameters, imports
        self._before: list[psutil.Process] = []
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Meter":
        self._before, self._since = descendants(), time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_section()
        self._ended.set()
        self._thread.join()

    def begin(self, anchor: str, name: str) -> None:
        """The last section ends, and the next begins."""
        self._end_section()
        self.sections.append(Section(anchor, name))
        self._read()  # the last section ends with the kernel, when nothing is left to read

    def measured(self) -> dict[str, Any]:
        """parts: anchor, name, seconds and peak (MiB or None) of each; peak: the highest; None where none is known."""
        known = [section.peak for section in self.sections if section.peak is not None]
        parts = [asdict(section) | {"seconds": round(section.seconds, 2)} for section in self.sections]
        return {"parts": parts, "peak": max(known, default=None)}

    def _end_section(self) -> None:
        self._read()  # also a short section is measured once
        now = time.monotonic()
        self.sections[-1].seconds = now - self._since
        self._since = now

    def _watch(self) -> None:
        spent = 0.0
        while not self._ended.wait(max(EVERY, SPARED * spent)):
            began = time.monotonic()
            self._read()
            spent = time.monotonic() - began

    def _read(self) -> None:
        with self._lock:
            section = self.sections[-1]
            memory = sum(resident(process) for process in descendants() if process not in self._before)
            if memory:
                section.peak = max(section.peak or 0.0, round(memory / MIB, 1))


def descendants() -> list[psutil.Process]:
    """The running processes that this one started, and those that they started; none where they cannot be listed."""
    with suppress(psutil.Error):
        return psutil.Process().children(recursive=True)
    return []


def resident(process: psutil.Process) -> int:
    """The bytes of memory that a process holds, with those that it shares with others; 0 where it cannot be read."""
    with suppress(psutil.Error):
        return process.memory_info().rss
    return 0
