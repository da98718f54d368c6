"""Unpacking what may be hostile: zip, tar (also compressed by gzip, bzip2 or xz), or one file that is not packed.

Only plain files are written, each under its own new name below the given folder. Anything else (links, devices, names
that leave the folder, two files of one name), or too much, refuses the whole archive.
"""

import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lib.datasets.files import DataError

RATIO, SLACK = 25, 2**24  # an archive of n bytes may hold RATIO * n + SLACK
HEADER = 512  # bytes for which every member counts, so that empty ones are bounded too
# NotImplementedError: a compression that zipfile does not know; RuntimeError: a password
DAMAGED = (
    EOFError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    NotImplementedError,
    RuntimeError,
)


class _Refused(Exception):
    """What is wrong with an archive, to follow its name."""


def unpack(archive: Path, into: Path) -> None:
    """Writes the files of an archive below the folder `into`, which must be new.

    Raises DataError for damage, an unsafe name or kind of member, too many members or bytes.
    """
    into.mkdir(parents=True)
    left = archive.stat().st_size * RATIO + SLACK
    try:
        for name, size, content in _members(archive):
            left -= size + HEADER
            if left < 0:
                raise _Refused("unpacks to far more than the published file does; delete it, it is not that file")
            path = into / _safe(name)
            if path.exists():
                raise _Refused(f"has the member {name[:80]!r} twice, or without a name")
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                shutil.copyfileobj(content, file)
    except _Refused as error:
        raise DataError(f"{archive} {error}") from None
    except (*DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # without a number: damaged gzip or bzip2
            raise
        raise DataError(f"{archive} is damaged ({str(error)[:80]}); delete it and fetch it again") from None


def _members(archive: Path) -> Iterator[tuple[str, int, BinaryIO]]:
    """(name, bytes, content) of each file; a file that is no archive is its own only member."""
    with archive.open("rb") as file:
        magic = file.read(2)
    if magic == b"PK":
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                if info.is_dir():
                    continue
                _refuse_link(info.orig_filename, stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG))
                with packed.open(info) as content:
                    yield info.orig_filename, info.file_size, content
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as packed:
            for info in packed:
                _refuse_link(info.name, info.isreg() or info.isdir())
                if info.isreg():
                    yield info.name, info.size, packed.extractfile(info)
    else:
        with archive.open("rb") as file:
            yield archive.name, 0, file


def _refuse_link(name: str, plain: bool) -> None:
    if not plain:
        raise _Refused(f"has the member {name[:80]!r}, a link or device; allowed: plain files and folders")


def _safe(name: str) -> PurePosixPath:
    """A member's name as a path below a folder, on any operating system."""
    path = PurePosixPath(name)
    leaves = path.is_absolute() or ".." in path.parts or any(sign in name for sign in "\\:\0")
    if leaves or len(name) > 1000 or not all(part.isprintable() and len(part.encode()) <= 255 for part in path.parts):
        raise _Refused(f"has the member {name[:80]!r}, which leads out of its folder or cannot be a name")
    return path
