"""Free space and checksums, and one sentence for a disk that is full."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pooch

from lib.datasets.files import DataError

SPARE = 2**26  # bytes that stay free


def digest_of(path: Path, algorithm: str = "sha256") -> str:
    """ "sha256:..." of a file."""
    return f"{algorithm}:{pooch.file_hash(path, algorithm)}"


def has_digest(path: Path, digest: str | None) -> bool:
    """Whether a file has this digest; True where none is known."""
    return digest is None or digest_of(path, digest.partition(":")[0]) == digest


def refuse_full_disk(folder: Path, needed: int, what: Path) -> None:
    """Raises DataError unless `needed` bytes and a few more fit on the disk of a folder."""
    free = shutil.disk_usage(folder).free
    if needed > 0 and free < needed + SPARE:
        raise DataError(
            f"the disk of {folder} has {free:,} bytes free, and {what.name} needs {needed + SPARE:,}; free some space, "
            "or choose another place with --into"
        )


@contextmanager
def disk_errors(what: Path) -> Iterator[None]:
    """Turns the OSError of a full or write-protected disk into a DataError."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # damaged gzip or bzip2, which is no fault of the disk
            raise
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DataError(
                f"the disk of {what.parent} is full while {what.name} is written; free some space and run it again, or "
                "choose another place with --into"
            ) from None
        raise DataError(f"{what} cannot be written: {error.strerror or error}") from None
