"""How far a long computation is: one line in place in JupyterLab, plain lines in a log and in a report."""

import os
import sys
import time
from html import escape


def in_jupyterlab() -> bool:
    """Whether a person watches this kernel: Jupyter's server names the session, papermill and plain Python do not."""
    return "IPython" in sys.modules and bool(os.environ.get("JPY_SESSION_NAME"))


def spoken(seconds: float) -> str:
    """Seconds in words that are short: 8 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Progress:
    """Tells how far something with a known number of steps is.

    >>> with Progress("training", total=len(runs)) as progress:
    ...     for run in runs:
    ...         train(run)
    ...         progress.advance(run.encoder)

    In JupyterLab one display is updated in place; elsewhere every step prints one line, which papermill writes to its
    log and the report folds away.
    """

    def __init__(self, title: str, total: int):
        if total < 0:
            raise ValueError(f"progress of {title!r}: the number of steps is {total}; it cannot be negative")
        self.title, self.total, self.done = title, total, 0
        self._started = time.monotonic()
        self._display = None

    def __enter__(self) -> "Progress":
        self._started = time.monotonic()
        if in_jupyterlab():
            from IPython.display import HTML, display

            self._display = display(HTML(self._bar("")), display_id=True)
        return self

    def __exit__(self, kind, error, traceback) -> None:
        if kind is not None:
            self.say(f"stopped by {kind.__name__}")

    def advance(self, message: str = "") -> None:
        """One step more is done; `message` says which."""
        self.done += 1
        self._show(message)

    def say(self, message: str) -> None:
        """A remark that is no step."""
        self._show(message)

    def line(self, message: str = "") -> str:
        """The state in one line, for example `training: 3 of 20, 12 s, about 68 s left · bilstm`."""
        passed = time.monotonic() - self._started
        left = ""
        if 0 < self.done < self.total and passed >= 1:
            left = f", about {spoken(passed / self.done * (self.total - self.done))} left"
        remark = f" · {message}" if message else ""
        return f"{self.title}: {self.done} of {self.total}, {spoken(passed)}{left}{remark}"

    def _show(self, message: str) -> None:
        if self._display is None:
            print(self.line(message), flush=True)
            return
        from IPython.display import HTML

        self._display.update(HTML(self._bar(message)))

    def _bar(self, message: str) -> str:
        label = escape(self.line(message))
        return f'<progress value="{self.done}" max="{max(self.total, 1)}" aria-label="{label}"></progress> {label}'
