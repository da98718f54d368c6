"""Files that are there whole or not at all, whatever happens while they are written."""

import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


def write_file(path: Path, content: str | bytes) -> Path:
    """Writes a file whole or not at all: no reader sees half of it, and a full disk leaves nothing. Text is UTF-8."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    with part.open("xb") as file:
        try:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            part.unlink()
            raise
    return part.replace(path)


def write_json(path: Path, value: object) -> Path:
    """The same of a value as JSON, its keys in order."""
    return write_file(path, json.dumps(value, indent=1, sort_keys=True, default=str) + "\n")


@contextmanager
def alone(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Holds the lock of a file; calls `waiting` once, and waits, where another process holds it.

    The system frees the lock if its holder is killed. What `waiting` raises is raised, and the lock is not waited for.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
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
