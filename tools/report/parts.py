"""How long each part of a notebook takes, and the most memory that its kernel holds meanwhile."""

import threading
import time
from dataclasses import asdict, dataclass
from html import unescape
from typing import Any

import psutil

from tools.report.markdown import Contents, markdown

EVERY = 0.1  # seconds between two looks at the memory
SPARED = 10  # of the time at least so many times what a look takes is left to others: a full machine has many processes
MIB = 1024**2
FIRST = ("", "Before the first section")  # the kernel's start, parameters, imports


@dataclass
class Part:
    """The cells under one heading. `peak` is in MiB, None where no memory could be read."""

    anchor: str
    name: str
    seconds: float = 0.0
    peak: float | None = None


def sections(notebook: Any, injected: bool) -> list[tuple[str, str]]:
    """The second-level heading over each cell that runs, (anchor, words) as in the page's list of contents.

    Args:
        injected: values are given, which papermill puts into a cell of their own after the parameters.
    """
    contents: Contents = []
    found, section = [], FIRST
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            known = len(contents)
            markdown(cell.source, contents, trusted=True)
            heads = [(anchor, unescape(words)) for level, anchor, words in contents[known:] if level == 2]
            section = heads[-1] if heads else section
        given = injected and "parameters" in cell.metadata.get("tags", [])
        found += [section] * (2 if given else 1)
    return found


class Meter:
    """Measures a notebook while it runs; `cell` says where it is, and `told` afterwards what was measured.

    >>> with Meter(sections(notebook, bool(values))) as meter:
    ...     papermill.execute_notebook(...)  # whose cells call meter.cell(number)

    The time of a part goes to the beginning of the next, by a clock that nobody sets. Memory is what all processes
    hold that this one started since, with those that they started: the kernel, and its trainings side by side.
    """

    def __init__(self, sections: list[tuple[str, str]]):
        self.sections, self.parts = sections, [Part(*FIRST)]
        self._before, self._kernels = None, []
        self._looking, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Meter":
        self._before, self._since = started_by(psutil.Process()), time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_part()
        self._ended.set()
        self._thread.join()

    def cell(self, number: int) -> None:
        """Cell `number`, from 1, begins."""
        section = self.sections[min(number, len(self.sections)) - 1]
        if section[0] != self.parts[-1].anchor:
            self._end_part(Part(*section))

    def told(self) -> dict[str, Any]:
        """parts: anchor, name, seconds and peak (MiB or None) of each; peak: the highest; None where none is known."""
        known = [part.peak for part in self.parts if part.peak is not None]
        parts = [asdict(part) | {"seconds": round(part.seconds, 2)} for part in self.parts]
        return {"parts": parts, "peak": max(known, default=None)}

    def _end_part(self, following: Part | None = None) -> None:
        self._look()  # also a short part is looked at once
        with self._looking:
            now = time.monotonic()
            self.parts[-1].seconds += now - self._since
            self._since = now
            self.parts += [following] if following else []

    def _watch(self) -> None:
        spent = 0.0
        while not self._ended.wait(max(EVERY, SPARED * spent)):
            began = time.monotonic()
            self._look()
            spent = time.monotonic() - began

    def _look(self) -> None:
        with self._looking:
            part, memory = self.parts[-1], self._memory()
            if memory:
                part.peak = max(part.peak or 0.0, round(memory / MIB, 1))

    def _memory(self) -> int:
        """Bytes, 0 where there is no kernel yet or none can be read."""
        if self._before is None:
            return 0
        self._kernels = [kernel for kernel in self._kernels if kernel.is_running()]
        if not self._kernels:
            found = started_by(psutil.Process()) or []
            self._kernels = [process for process in found if process not in self._before]
        below = [process for kernel in self._kernels for process in started_by(kernel, recursive=True) or []]
        return sum(resident(process) for process in {*self._kernels, *below})


def started_by(process: psutil.Process, recursive: bool = False) -> list[psutil.Process] | None:
    """The processes that one started and that still run; None where the system does not tell."""
    try:
        return process.children(recursive)
    except (psutil.Error, OSError, NotImplementedError):
        return None


def resident(process: psutil.Process) -> int:
    """The bytes of memory that a process holds, with those that it shares with others; 0 where it cannot be read."""
    try:
        return process.memory_info().rss
    except (psutil.Error, OSError, NotImplementedError):
        return 0
