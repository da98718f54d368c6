"""Files on the disk: checksums, one sentence for a full disk, and unpacking what may be hostile.

An archive is zip, tar (also compressed by gzip, bzip2 or xz), or one file that is not packed. Of it only plain files
are written, each under its own new name below the given folder. Anything else in it (links, devices, names that leave
the folder, two files of one name), or too much, refuses the whole archive.
"""

import errno
import hashlib
import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lib.datasets.files import DataError

RATIO, SLACK = 200, 2**24  # an archive of n bytes may hold RATIO * n + SLACK
HEADER = 512  # bytes for which every member counts, so that empty ones are bounded too
# NotImplementedError: a compression that zipfile does not know; RuntimeError: a password
DAMAGED = (
    *(EOFError, OSError, tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(NotImplementedError, RuntimeError),
)


def digest_of(path: Path, algorithm: str = "sha256") -> str:
    """ "sha256:..." of a file."""
    with path.open("rb") as file:
        return f"{algorithm}:{hashlib.file_digest(file, algorithm).hexdigest()}"


def has_digest(path: Path, digest: str | None) -> bool:
    """Whether a file has this digest; True where none is known."""
    return digest is None or digest_of(path, digest.partition(":")[0]) == digest


@contextmanager
def disk_errors(what: Path) -> Iterator[None]:
    """Turns the OSError of a full or write-protected disk into a DataError."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # damaged gzip or bzip2, which is no fault of the disk
            raise
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            full = f"the disk of {what.parent} is full while {what.name} is written; free some space and run it again"
            raise DataError(f"{full}, or choose another place with --into") from None
        raise DataError(f"{what} cannot be written: {error.strerror or error}") from None


# --- archives


class _Refused(Exception):
    """What is wrong with an archive, to follow its name."""


def unpack(archive: Path, into: Path, most_bytes: int = 2**30, patterns: tuple[str, ...] = ("*",)) -> None:
    """Writes the files whose names match one of the patterns below the folder `into`, which must be new.

    Raises DataError for damage, an unsafe name or kind of member, too many members or bytes, a full disk.
    """
    into.mkdir(parents=True)
    left, seen = min(most_bytes, archive.stat().st_size * RATIO + SLACK), set()
    try:
        for name, size, content in _members(archive):
            left -= size + HEADER
            if left < 0:
                raise _Refused("unpacks to far more than the published file does; delete it, it is not that file")
            path = _safe(name)
            if content is None:
                continue
            if path in seen or not path.parts:
                raise _Refused(f"has the member {name[:80]!r} twice, or without a name")
            seen.add(path)
            if any(fnmatchcase(str(path), pattern) for pattern in patterns):
                with disk_errors(into / path):
                    (into / path).parent.mkdir(parents=True, exist_ok=True)
                    with (into / path).open("xb") as file:
                        shutil.copyfileobj(content, file)
    except _Refused as error:
        raise DataError(f"{archive} {error}") from None
    except DAMAGED as error:
        raise DataError(f"{archive} is damaged ({str(error)[:80]}); delete it and fetch it again") from None


def _members(archive: Path) -> Iterator[tuple[str, int, BinaryIO | None]]:
    """(name, bytes, content; None: a folder) of each member; a file that is no archive is its own only member."""
    with archive.open("rb") as file:
        if file.read(2) == b"PK":
            with zipfile.ZipFile(archive) as packed:
                for info in packed.infolist():
                    plain = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG)
                    _refuse_link(info.orig_filename, plain or info.is_dir())
                    with packed.open(info) as content:
                        yield info.orig_filename, info.file_size, None if info.is_dir() else content
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive) as packed:
                for info in packed:
                    _refuse_link(info.name, info.isreg() or info.isdir())
                    yield info.name, info.size, None if info.isdir() else packed.extractfile(info)
        else:
            file.seek(0)
            yield archive.name, 0, file


def _refuse_link(name: str, plain: bool) -> None:
    if not plain:
        raise _Refused(f"has the member {name[:80]!r}, a link or device; allowed: plain files and folders")


def _safe(name: str) -> PurePosixPath:
    """A member's name as a path below a folder, on any operating system."""
    path = PurePosixPath(name)
    unsafe = (
        path.is_absolute()
        or ".." in path.parts
        or any(sign in name for sign in "\\:\0")
        or not all(part.isprintable() and len(part.encode()) <= 255 for part in path.parts)
        or len(name) > 1000
    )
    if unsafe:
        raise _Refused(f"has the member {name[:80]!r}, which leads out of its folder or cannot be a name")
    return path
