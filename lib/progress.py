"""How far a long computation is: a bar with what is done, and how long it took and will take."""

import sys
import time
from typing import ClassVar

from tqdm import tqdm

EVERY = 5  # seconds, at least, between two notes


def spoken(seconds: float) -> str:
    """Seconds in short words: 8 s, 3 min 20 s, 2 h 5 min."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def counted(number: int, noun: str) -> str:
    """A number of things: "1 seed", "2 seeds"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Progress(tqdm):
    """tqdm's bar on standard output: text, so that logs and reports have it too; a report keeps its last state.

    >>> with Progress("training", total=len(runs)) as progress:
    ...     for run in runs:
    ...         train(run)
    ...         progress.advance(run.encoder)
    """

    shown: ClassVar["Progress | None"] = None  # the last that was opened, while it is

    def __init__(self, title: str, total: int):
        super().__init__(desc=title, total=total, file=sys.stdout, mininterval=0)
        self.noted = time.monotonic()
        Progress.shown = self

    def close(self) -> None:
        """Leaves the bar as it is."""
        super().close()
        Progress.shown = None if Progress.shown is self else Progress.shown

    def advance(self, message: str = "") -> None:
        """One step more is done; `message` names it."""
        self.set_postfix_str(message, refresh=False)
        self.update()
        self.noted = time.monotonic()

    def note(self, message: str) -> None:
        """How far a long step is, where nothing was printed for a while."""
        if time.monotonic() > self.noted + EVERY:
            self.set_postfix_str(message)
            self.noted = time.monotonic()


def note(message: str) -> None:
    """`Progress.note` of the bar that is open, if one is: how far a long step is, from within it."""
    if Progress.shown is not None:
        Progress.shown.note(message)
