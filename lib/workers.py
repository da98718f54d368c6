"""Independent tasks in processes of their own, one thread each."""

import multiprocessing
import os
import queue
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


class WorkerDied(RuntimeError):
    """A process ended in the middle of a task, without an exception: killed, or out of memory."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


def _work(function: Callable, tasks: Sequence, numbers, reports) -> None:
    """A worker's life: take the next number, do that task, report; until a None comes."""
    while (number := numbers.get()) is not None:
        reports.put(("started", number, os.getpid()))
        try:
            function(tasks[number], lambda message: reports.put(("said", None, message)))
            reports.put(("done", number, None))
        except Exception as error:
            reports.put(("failed", number, error))


def run_all(function: Callable, tasks: Sequence, workers: int, say: Callable[[str], None], done: Callable) -> None:
    """Calls function(task, say) for every task, in at most `workers` spawned processes of one thread each.

    `done(task)` is called here as each one ends. The first failure stops the others and is raised here.

    Raises:
        WorkerDied: a process was killed. Whatever a task raised.
    """
    context = multiprocessing.get_context("spawn")
    numbers, reports = context.Queue(), context.Queue()
    for number in [*range(len(tasks)), *[None] * workers]:
        numbers.put(number)
    processes = [
        context.Process(target=_work, args=(function, tasks, numbers, reports), daemon=True) for _ in range(workers)
    ]
    with environment(ONE_THREAD):
        for process in processes:
            process.start()
    try:
        _follow(processes, reports, tasks, say, done)
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _follow(processes, reports, tasks: Sequence, say: Callable[[str], None], done: Callable) -> None:
    """Reads the reports until every task is done, or one failed, or a process died."""
    left, busy = len(tasks), {}
    while left:
        try:
            kind, number, detail = reports.get(timeout=1)
        except queue.Empty:
            dead = [process for process in processes if process.exitcode not in (None, 0)]
            if dead:
                task = tasks[busy[dead[0].pid]] if dead[0].pid in busy else "no task yet"
                raise WorkerDied(
                    f"the process of {task} ended with exit code {dead[0].exitcode}: killed, or out of memory; "
                    "what was finished is kept, start again to go on"
                ) from None
            continue
        if kind == "started":
            busy[detail] = number
        elif kind == "said":
            say(detail)
        elif kind == "failed":
            raise detail
        else:
            left -= 1
            done(tasks[number])
