"""Independent tasks in processes of their own, one thread each."""

import multiprocessing
import os
import pickle
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait

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


def _work(function: Callable, tasks: Sequence, pipe: Connection) -> None:
    """A worker's life: receive a number, do that task, report; until a None comes."""
    while (number := pipe.recv()) is not None:
        try:
            function(tasks[number], lambda message: pipe.send(("said", message)))
            pipe.send(("done", None))
        except Exception as error:
            pipe.send(("failed", _sendable(error)))


def _sendable(error: Exception) -> Exception:
    """The error with its traceback as a note; one that does not survive the way is told in words."""
    error.add_note(traceback.format_exc())
    try:
        pickle.loads(pickle.dumps(error))  # made in this process a moment ago: nothing foreign is read
    except Exception:
        told = RuntimeError(f"{type(error).__name__}: {error}")
        told.add_note(traceback.format_exc())
        return told
    return error


def run_all(function: Callable, tasks: Sequence, workers: int, say: Callable[[str], None], done: Callable) -> None:
    """Calls function(task, say) for every task, in at most `workers` spawned processes of one thread each.

    `done(task)` is called here as each one ends. The first failure stops the others and is raised here.

    Raises:
        WorkerDied: a process was killed. Whatever a task raised.
    """
    context = multiprocessing.get_context("spawn")
    started: dict[Connection, multiprocessing.Process] = {}
    try:
        with environment(ONE_THREAD):
            for _ in range(min(workers, len(tasks))):
                ours, theirs = context.Pipe()
                started[ours] = context.Process(target=_work, args=(function, tasks, theirs), daemon=True)
                started[ours].start()
                theirs.close()  # the worker holds the only other end: when it dies, ours says so
        _follow(started, tasks, say, done)
    finally:
        for process in started.values():
            process.terminate()
            process.join()


def run_here(function: Callable, tasks: Sequence, workers: int, say: Callable[[str], None], done: Callable) -> None:
    """The same as `run_all`, one task after the other in this process."""
    for task in tasks:
        function(task, say)
        done(task)


def _follow(started: dict, tasks: Sequence, say: Callable[[str], None], done: Callable) -> None:
    """Hands out the tasks and hears the reports, until every task is done, or one failed, or a process died."""
    waiting, busy = iter(range(len(tasks))), {}

    def next_task(pipe: Connection) -> None:
        busy.pop(pipe, None)
        if (number := next(waiting, None)) is not None:
            busy[pipe] = tasks[number]
            pipe.send(number)

    for pipe in started:
        next_task(pipe)
    while busy:
        for pipe in wait(list(busy)):
            try:
                kind, detail = pipe.recv()
            except (EOFError, ConnectionError):
                started[pipe].join()
                raise WorkerDied(
                    f"the process of {busy[pipe]} ended with exit code {started[pipe].exitcode}"
                    f"{': killed, or out of memory' if (started[pipe].exitcode or 0) < 0 else ''}; "
                    "what was finished is kept, start again to go on"
                ) from None
            if kind == "said":
                say(detail)
            elif kind == "failed":
                raise detail
            else:
                done(busy[pipe])
                next_task(pipe)
