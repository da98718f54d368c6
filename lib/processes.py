"""Independent tasks in processes of their own, one thread each."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Thread

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import BrokenProcessPool

GB_OF_A_RUN = 7  # of 15 trainings on IMDb side by side, adversaries among them, none needed more
if sys.platform == "linux":  # batches differ in length: a process would keep several times the GPU memory that it uses
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")


class WorkerDied(RuntimeError):
    """A process ended in the middle of a task, without an exception: killed, or out of memory."""


def gpu_runs() -> int:
    """How many trainings and reports share a GPU: $GPU_RUNS, else one for each GB_OF_A_RUN of its free memory.

    ValueError: GPU_RUNS is no whole number from 1 up.
    """
    if given := os.environ.get("GPU_RUNS"):
        return whole(given, "GPU_RUNS")
    import torch

    return max(1, int(torch.cuda.mem_get_info()[0] / (GB_OF_A_RUN * 1e9))) if torch.cuda.is_available() else 1


def whole(text: str, name: str) -> int:
    """A whole number from 1 up; ValueError with the name of what it is for any other text."""
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{name} is {text!r}; allowed: a whole number from 1 up")
    return int(text)


def run_all(function: Callable, tasks: Sequence[tuple], workers: int) -> Iterator:
    """What function(*task) returns for every task, as each one ends, in at most `workers` processes.

    What they print appears at once. The first failure stops the others and is raised here, with the worker's traceback
    as its cause. WorkerDied: a process was killed.
    """
    with parallel_config("loky", inner_max_num_threads=1):
        parallel = Parallel(workers, return_as="generator_unordered", batch_size=1)
    try:
        yield from parallel(delayed(call_in_worker)(os.getpid(), function, task) for task in tasks)
    except BrokenProcessPool as error:
        raise WorkerDied("a process was killed, or out of memory; what was finished is kept, start again") from error
    finally:  # idle processes would keep their memory, and the environment that they started in
        get_reusable_executor(reuse=True).shutdown(kill_workers=True)


def call_in_worker(parent: int, function: Callable, task: tuple):
    """function(*task), in a process that ends with its parent, also where that one is killed."""

    def end_with_parent():
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    Thread(target=end_with_parent, daemon=True).start()
    return function(*task)
