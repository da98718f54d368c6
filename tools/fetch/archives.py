"""Unpacking what may be hostile: zip, tar (also compressed by gzip, bzip2 or xz), gzip, or a file that is not packed.

Of an archive only plain files are written, each under its own new name below the given folder. Anything else in it
(links, devices, names that leave the folder, two files of one name), or too much, refuses the whole archive.
"""

import bz2
import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lib.datasets.files import DataError
from tools.fetch.disk import disk_errors

BLOCK = 2**20
RATIO, SLACK = 200, 2**24  # an archive of n bytes may hold RATIO * n + SLACK
COMPRESSED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
SEVEN_ZIP = b"7z\xbc\xaf\x27\x1c"
TOO_MUCH = "unpacks to far more than the published file does; delete it, it is not that file"
DAMAGED = (EOFError, OSError, tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
Member = tuple[str, int, BinaryIO | None]  # name, bytes as stated (0: not stated), content (None: a folder)


class _Refused(Exception):
    """What is wrong with an archive, to follow its name."""


def unpack(
    archive: Path, into: Path, most_bytes: int = 2**30, patterns: tuple[str, ...] = ("*",), most_members: int = 10**6
) -> None:
    """Writes the files whose names match one of the patterns below the folder `into`, which must be new.

    Raises:
        DataError: unknown form, damage, an unsafe name or kind of member, too many members or bytes, a full disk.
    """
    into.mkdir(parents=True)
    try:
        _write(archive, into, min(most_bytes, archive.stat().st_size * RATIO + SLACK), patterns, most_members)
    except _Refused as error:
        raise DataError(f"{archive} {error}") from None
    except DAMAGED as error:
        raise DataError(f"{archive} is damaged ({str(error)[:80]}); delete it and fetch it again") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{archive} has the member {error.object[:80]!r}, whose name is not UTF-8") from None
    except (NotImplementedError, RuntimeError) as error:  # a compression that zipfile does not know; a password
        raise DataError(f"{archive} cannot be unpacked ({str(error)[:80]}); allowed: plain zip and tar") from None


def _write(archive: Path, into: Path, most_bytes: int, patterns: tuple[str, ...], most_members: int) -> None:
    left, seen = most_bytes, set()
    for number, (name, size, content) in enumerate(_members(archive, most_bytes), start=1):
        left -= size
        if left < 0:
            raise _Refused(TOO_MUCH)
        if number > most_members:
            raise _Refused(f"has more than {most_members:,} members; delete it, it is not the published file")
        path = _safe(name)
        if content is None:
            continue
        if path in seen or not path.parts:
            raise _Refused(f"has the member {name[:80]!r} twice, or without a name")
        seen.add(path)
        if any(fnmatchcase(str(path), pattern) for pattern in patterns):
            _copy(content, into / path)


def _members(archive: Path, most_bytes: int) -> Iterator[Member]:
    with archive.open("rb") as file:
        start = file.read(6)
    if start == SEVEN_ZIP:
        advice = "unpack it with 7-Zip and put its files where data/README.md says"
        raise _Refused(f"is a 7z archive, which no library here unpacks; {advice}")
    if start.startswith(b"PK"):
        yield from _zip_members(archive)
        return
    opened = next((opener for magic, opener in COMPRESSED.items() if start.startswith(magic)), open)
    with opened(archive, "rb") as file:
        is_tar = file.read(512)[257:262] == b"ustar"
    with opened(archive, "rb") as file:
        if is_tar:
            yield from _tar_members(_Bounded(file, most_bytes))
        else:
            yield archive.name if opened is open else archive.stem, 0, _Bounded(file, most_bytes)


def _zip_members(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as packed:
        for info in packed.infolist():
            name = info.orig_filename
            if not info.flag_bits & 0x800 and not name.isascii():
                raise _Refused(f"has the member {name[:80]!r}, whose name is not UTF-8")
            if info.is_dir():
                yield name, 0, None
                continue
            if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
                raise _Refused(f"has the member {name[:80]!r}, a link or device; allowed: plain files and folders")
            with packed.open(info) as content:
                yield name, info.file_size, content


def _tar_members(file: "_Bounded") -> Iterator[Member]:
    with tarfile.open(fileobj=file, mode="r|", encoding="utf-8", errors="strict") as packed:
        for info in packed:
            if not info.isdir() and (not info.isreg() or info.issparse()):
                raise _Refused(f"has the member {info.name[:80]!r}, a link or device; allowed: plain files and folders")
            yield info.name, info.size, None if info.isdir() else packed.extractfile(info)


class _Bounded:
    """A file of which no more than `most` bytes can be read, however small its compressed form."""

    def __init__(self, file: BinaryIO, most: int):
        self.file, self.left = file, most

    def read(self, size: int) -> bytes:
        found = self.file.read(min(size, self.left + 1))
        self.left -= len(found)
        if self.left < 0:
            raise _Refused(TOO_MUCH)
        return found


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


def _copy(content: BinaryIO, to: Path) -> None:
    with disk_errors(to):
        to.parent.mkdir(parents=True, exist_ok=True)
        file = to.open("xb")
    with file:
        while block := content.read(BLOCK):
            with disk_errors(to):
                file.write(block)
