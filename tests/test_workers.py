"""Processes that do tasks: what becomes of one that fails or dies. Nothing here imports torch: they start at once."""

import os
import signal

import pytest

from lib.training import processes as workers


class Unsendable(Exception):
    """An error that a pipe cannot carry: it takes more than it keeps."""

    def __init__(self, first: str, second: str):
        super().__init__(f"{first} {second}")


def fail(task: str, say) -> None:
    """A worker's task that ends as its name says."""
    if task == "raises":
        raise ValueError("no such luck")
    if task == "raises what cannot be sent":
        raise Unsendable("one", "two")
    if task == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    say(task)


def test_a_failing_and_a_dying_worker_are_reported():
    done = []
    with pytest.raises(ValueError, match="no such luck") as told:
        workers.run_all(fail, ["raises"], 1, print, done.append)
    assert "in fail" in "".join(told.value.__notes__), "the worker's traceback comes along"
    with pytest.raises(RuntimeError, match="Unsendable: one two"):
        workers.run_all(fail, ["raises what cannot be sent"], 1, print, done.append)
    with pytest.raises(workers.WorkerDied, match="process of dies ended with exit code -9"):
        workers.run_all(fail, ["dies"], 1, print, done.append)
    workers.run_all(fail, ["a", "b", "c"], 2, print, done.append)
    assert sorted(done) == ["a", "b", "c"]
