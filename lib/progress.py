"""How far a long computation is: one line in place in JupyterLab, plain lines in a log and in a report."""

import os
import sys

from tqdm import tqdm


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


class Lines:
    """A stream for tqdm that prints each of its updates as a line."""

    def write(self, text: str) -> None:
        """Prints a line, unless it is empty."""
        if line := text.strip():
            print(line, flush=True)

    def flush(self) -> None:
        """Every line is flushed."""


class Progress(tqdm):
    """tqdm that prints a line for each step, where it is not watched in JupyterLab.

    >>> with Progress("training", total=len(runs)) as progress:
    ...     for run in runs:
    ...         train(run)
    ...         progress.advance(run.encoder)

    papermill writes the lines to its log, and the report folds them away.
    """

    monitor_interval = 0  # no thread that redraws the line

    def __init__(self, title: str, total: int):
        if total < 0:
            raise ValueError(f"progress of {title!r}: the number of steps is {total}; it cannot be negative")
        watched = in_jupyterlab()
        where = {"file": sys.stdout} if watched else {"file": Lines(), "delay": 1e-9, "leave": False}
        self.message = ""
        super().__init__(desc=title, total=total, bar_format="{desc}: {line}", **where)

    @property
    def format_dict(self) -> dict:
        """tqdm's values, and what follows the title: `3 of 20, 12 s, about 68 s left · bilstm`."""
        values = super().format_dict
        passed, left = values["elapsed"], ""
        if 0 < self.n < self.total and passed >= 1:
            left = f", about {spoken(passed / self.n * (self.total - self.n))} left"
        remark = f" · {self.message}" if self.message else ""
        return values | {"line": f"{self.n} of {self.total}, {spoken(passed)}{left}{remark}"}

    def advance(self, message: str = "") -> None:
        """One step more is done; `message` names it."""
        self.n += 1
        self.say(message)

    def say(self, message: str) -> None:
        """A remark that is no step."""
        self.message = message
        self.refresh()

    def __exit__(self, kind, error, traceback) -> None:
        if kind is not None:
            self.say(f"stopped by {kind.__name__}")
        super().__exit__(kind, error, traceback)
