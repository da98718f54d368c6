"""Processes that do tasks: what becomes of one that fails or dies, and how many share a GPU."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lib import processes


class Unsendable(Exception):
    """An error that a pipe cannot carry: it takes more than it keeps."""

    def __init__(self, first: str, second: str):
        super().__init__(f"{first} {second}")


def fail(task: str, say) -> None:
    """A worker's task that ends as its name has it."""
    if task == "raises":
        raise ValueError("no such luck")
    if task == "raises what cannot be sent":
        raise Unsendable("one", "two")
    if task == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "takes long":
        say("started")
        time.sleep(600)
    say(task)


def test_a_failing_and_a_dying_worker_are_reported():
    done = []
    with pytest.raises(ValueError, match="no such luck") as raised:
        processes.run_all(fail, ["raises"], 1, print, done.append)
    assert "in fail" in str(raised.value.__cause__), "the worker's traceback is shown"
    with pytest.raises(RuntimeError, match="Unsendable: one two"):
        processes.run_all(fail, ["raises what cannot be sent"], 1, print, done.append)
    with pytest.raises(processes.WorkerDied, match="a process was killed, or out of memory, before 1 of 1 were done"):
        processes.run_all(fail, ["dies"], 1, print, done.append)
    processes.run_all(fail, ["a", "b", "c"], 2, print, done.append)
    assert sorted(done) == ["a", "b", "c"]


def test_messages_arrive_before_their_task_is_done():
    seen = []
    processes.run_all(fail, ["a", "b", "c"], 1, seen.append, lambda task: seen.append(task.upper()))
    assert sorted(seen) == [*"ABCabc"] and all(seen.index(task) < seen.index(task.upper()) for task in "abc")


def test_the_first_failure_stops_the_others():
    started = time.monotonic()
    with pytest.raises(ValueError, match="no such luck"):
        processes.run_all(fail, ["takes long", "raises", "never"], 2, print, pytest.fail)
    assert time.monotonic() - started < 300 and not multiprocessing.active_children()


ABANDONED = """
from lib import processes
from test_workers import fail

if __name__ == "__main__":
    processes.run_all(fail, ["takes long"], 1, lambda message: print(message, flush=True), print)
"""


def test_workers_end_with_the_process_that_started_them(tmp_path):
    (tmp_path / "abandoned.py").write_text(ABANDONED)
    paths = os.pathsep.join(map(str, (Path(__file__).parents[1], Path(__file__).parent)))
    given = {"stdout": subprocess.PIPE, "text": True, "env": os.environ | {"PYTHONPATH": paths}}
    with subprocess.Popen([sys.executable, str(tmp_path / "abandoned.py")], **given) as parent:
        assert parent.stdout.readline() == "started\n"
        workers = psutil.Process(parent.pid).children(recursive=True)
        parent.kill()
    gone, alive = psutil.wait_procs(workers, timeout=100)
    assert gone and not alive


def test_a_gpu_is_shared_by_its_free_memory_or_as_the_environment_says(monkeypatch):
    import torch  # here alone: workers that import this module start sooner

    monkeypatch.delenv("GPU_RUNS", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for free, expected in ((80e9, 11), (15e9, 2), (4e9, 1)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda free=free: (free, 80e9))
        assert processes.gpu_runs() == expected
    monkeypatch.setenv("GPU_RUNS", "3")
    assert processes.gpu_runs() == 3
    for wrong in ("0", "-1", "many"):
        monkeypatch.setenv("GPU_RUNS", wrong)
        with pytest.raises(ValueError, match="GPU_RUNS is .*; allowed: a whole number from 1 up"):
            processes.gpu_runs()
