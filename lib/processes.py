"""Independent tasks in processes of their own, one thread each."""

import multiprocessing
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
GB_OF_A_RUN = 7  # of 15 trainings on IMDb side by side, adversaries among them, none needed more
EVERY = 0.2  # seconds between two looks at what the workers report
Say = Callable[[str], None]
if sys.platform == "linux":  # batches differ in length: a process would keep several times the GPU memory that it uses
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")


class WorkerDied(RuntimeError):
    """A process ended in the middle of a task, without an exception: killed, or out of memory."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpu_runs() -> int:
    """How many trainings and reports share a GPU: $GPU_RUNS, else one for each GB_OF_A_RUN of its free memory."""
    if given := os.environ.get("GPU_RUNS"):
        if not given.isdecimal() or int(given) < 1:
            raise ValueError(f"GPU_RUNS is {given!r}; allowed: a whole number from 1 up")
        return int(given)
    import torch

    return max(1, int(torch.cuda.mem_get_info()[0] / (GB_OF_A_RUN * 1e9))) if torch.cuda.is_available() else 1


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """These environment variables, for the processes started inside."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def run_all(function: Callable, tasks: Sequence, workers: int, say: Say, done: Callable) -> None:
    """Calls function(task, say) for every task, in at most `workers` spawned processes of one thread each.

    `done(task)` is called here as each one ends. The first failure stops the others and is raised here, with the
    worker's traceback as its cause.

    Raises:
        WorkerDied: a process was killed. Whatever a task raised.
    """
    context = multiprocessing.get_context("spawn")
    messages, others = context.SimpleQueue(), set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, context, _start, (function, tasks, messages))
    waiting = {}
    try:
        with environment(ONE_THREAD):  # each process starts as a task is submitted
            for number, task in enumerate(tasks):
                waiting[pool.submit(_do, number)] = task
        while waiting:
            ended, _ = wait(waiting, EVERY, FIRST_COMPLETED)
            while not messages.empty():
                say(messages.get())
            for future in sorted(ended, key=lambda one: one.exception() is None):  # failures first
                future.result()
                done(waiting.pop(future))
    except BrokenProcessPool as error:
        raise WorkerDied(
            f"a process was killed, or out of memory, before {len(waiting)} of {len(tasks)} were done; "
            "what was finished is kept, start again to go on"
        ) from error
    finally:
        for process in set(multiprocessing.active_children()) - others if waiting else ():
            process.terminate()
        pool.shutdown(cancel_futures=True)


def _start(function: Callable, tasks: Sequence, messages) -> None:
    """Prepares a worker, which ends with the process that started it, also where that one is killed."""
    global _work  # of this process alone: corpora are sent once to each
    _work = function, tasks, messages
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)


def _do(number: int) -> None:
    function, tasks, messages = _work
    try:
        function(tasks[number], messages.put)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))  # made in this process a moment ago: nothing foreign is read
        except Exception:
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
        raise
