"""Work that one process at a time may do."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def alone(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Holds the lock of a file; calls `waiting` once, and waits, where another process holds it.

    The system frees the lock if its holder is killed. What `waiting` raises is raised, and the lock is not waited for.
    """
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        waiting()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
