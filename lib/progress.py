"""How far a long computation is: one line in place in JupyterLab, plain lines in a log and in a report."""

import os
import sys
import time


def in_jupyterlab() -> bool:
    """Whether a person watches this kernel: Jupyter's server names the session, papermill and plain Python do not."""
    return "IPython" in sys.modules and bool(os.environ.get("JPY_SESSION_NAME"))


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


class Progress:
    """Prints a line for each step; in JupyterLab each in place of the last.

    >>> with Progress("training", total=len(runs)) as progress:
    ...     for run in runs:
    ...         train(run)
    ...         progress.advance(run.encoder)

    papermill writes the lines to its log, and the report folds them away.
    """

    def __init__(self, title: str, total: int):
        self.title, self.total, self.done, self.started = title, total, 0, time.monotonic()
        self.in_place, self.width = in_jupyterlab(), 0

    def line(self, message: str = "") -> str:
        """`training: 3 of 20, 12 s, about 1 min 8 s left · bilstm`."""
        passed, left = time.monotonic() - self.started, ""
        if 0 < self.done < self.total and passed >= 1:
            left = f", about {spoken(passed / self.done * (self.total - self.done))} left"
        remark = f" · {message}" if message else ""
        return f"{self.title}: {self.done} of {self.total}, {spoken(passed)}{left}{remark}"

    def advance(self, message: str = "") -> None:
        """One step more is done; `message` names it."""
        self.done += 1
        self.say(message)

    def say(self, message: str) -> None:
        """A remark that is no step."""
        line = self.line(message)
        if self.in_place:
            print(f"\r{line:{self.width}}", end="", flush=True)  # no letter of a longer line before stays
            self.width = len(line)
        else:
            print(line, flush=True)

    def __enter__(self) -> "Progress":
        if self.in_place:
            self.say("")
        return self

    def __exit__(self, kind, error, traceback) -> None:
        if kind is not None:
            self.say(f"stopped by {kind.__name__}")
        if self.in_place:
            print()
