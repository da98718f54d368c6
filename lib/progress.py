"""How far a long computation is: a bar with what is done, and how long it took and will take."""

import sys

from tqdm import tqdm


def spoken(seconds: float) -> str:
    """Seconds in short words: 8 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


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

    def __init__(self, title: str, total: int):
        super().__init__(desc=title, total=total, file=sys.stdout, mininterval=0)

    def advance(self, message: str = "") -> None:
        """One step more is done; `message` names it."""
        self.set_postfix_str(message, refresh=False)
        self.update()

    def say(self, message: str) -> None:
        """A remark that is no step, on a line of its own."""
        self.write(message, file=sys.stdout)
