"""Processes that do tasks: what becomes of one that fails or dies, and how many share a GPU."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lib import processes


def end_as_named(task: str) -> str:
    """A worker's task that ends as its name has it."""
    if task == "raises":
        raise ValueError("no such luck")
    if task == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "takes long":
        print("started", flush=True)
        time.sleep(600)
    return task


def ends(*tasks: str) -> list[str]:
    return sorted(processes.run_all(end_as_named, [(task,) for task in tasks], 2))


def test_a_failing_and_a_dying_worker_are_reported_and_stop_the_others():
    before = psutil.Process().children()
    with pytest.raises(ValueError, match="no such luck") as raised:
        ends("takes long", "raises", "never")
    assert "in end_as_named" in str(raised.value.__cause__), "the worker's traceback is shown"
    with pytest.raises(processes.WorkerDied, match="a process was killed, or out of memory; what was finished is kept"):
        ends("takes long", "dies")
    assert ends("a", "b", "c") == ["a", "b", "c"], "and later ones are not disturbed"
    left = [process for process in psutil.Process().children() if process not in before]
    assert not any("popen_loky" in " ".join(one.cmdline()) for one in left)


def test_workers_end_with_the_process_that_started_them():
    abandoned = [sys.executable, "-c", "from test_workers import ends\nends('takes long', 'a')"]
    paths = os.pathsep.join(map(str, (Path(__file__).parents[1], Path(__file__).parent)))
    given = {"stdout": subprocess.PIPE, "text": True, "env": os.environ | {"PYTHONPATH": paths}}
    with subprocess.Popen(abandoned, **given) as parent:
        assert parent.stdout.readline() == "started\n", "what a worker prints is seen at once"
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
