"""Unpacking what may be hostile: zip, tar (also packed by gzip, bzip2 or xz), gzip, or a file that is not packed.

Of an archive only plain files are written, each under its own new name below the given folder; whatever else it holds,
or too much of anything, refuses the whole of it.
"""

import bz2
import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lib.datasets.fetching.disk import told_of_full_disk
from lib.datasets.files import DataError

BLOCK = 2**20
SLACK = 2**24  # bytes that any archive may hold, however small it is
PACKED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
SEVEN_ZIP = b"7z\xbc\xaf\x27\x1c"
DAMAGED = (EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


@dataclass(frozen=True)
class Limits:
    """What an archive may hold: files and folders, bytes altogether, and bytes for each byte that it is packed in."""

    members: int = 1_000_000
    unpacked: int = 2**30
    ratio: int = 200

    def bytes_of(self, archive: Path) -> int:
        return min(self.unpacked, archive.stat().st_size * self.ratio + SLACK)


def unpack(archive: Path, into: Path, limits: Limits, members: tuple[str, ...] = ("*",)) -> None:
    """The files of an archive whose names match one of the patterns, below the folder `into`, which is made.

    Raises:
        DataError: unknown form, damage, an unsafe name or kind of member, too many members or bytes, a full disk.
    """
    into.mkdir(parents=True)
    with archive.open("rb") as file:
        start = file.read(6)
    if start == SEVEN_ZIP:
        raise DataError(
            f"{archive} is a 7z archive, which no library here unpacks; unpack it with 7-Zip and put its files where "
            "data/README.md says"
        )
    try:
        if start.startswith(b"PK"):
            with zipfile.ZipFile(archive) as packed:
                _write(_of_zip(archive, packed, limits), archive, into, limits, members)
        else:
            _unpack_stream(archive, into, limits, members, start)
    except DAMAGED as error:
        raise DataError(f"{archive} is damaged ({str(error)[:80]}); delete it and fetch it again") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{archive} has the member {error.object[:80]!r}, whose name is not UTF-8") from None
    except (NotImplementedError, RuntimeError) as error:  # packed in a way that zipfile does not know; a password
        raise DataError(f"{archive} cannot be unpacked ({str(error)[:80]}); allowed: plain zip and tar") from None


def _unpack_stream(archive: Path, into: Path, limits: Limits, members: tuple[str, ...], start: bytes) -> None:
    opened = next((opener for magic, opener in PACKED.items() if start.startswith(magic)), open)
    with opened(archive, "rb") as file:
        head = _Bounded(file, archive, limits.bytes_of(archive)).read(512)
    is_tar = len(head) == 512 and head[257:262] == b"ustar"
    with opened(archive, "rb") as file:
        bounded = _Bounded(file, archive, limits.bytes_of(archive))
        if is_tar:
            with tarfile.open(fileobj=bounded, mode="r|", encoding="utf-8", errors="strict") as packed:
                _write(_of_tar(archive, packed), archive, into, limits, members)
        else:
            name = archive.name if opened is open else archive.stem
            _write(iter([_Member(name, None, bounded)]), archive, into, limits, ("*",))


@dataclass(frozen=True)
class _Member:
    """A plain file of an archive; `size` is what the archive says, None where it does not."""

    name: str
    size: int | None
    content: BinaryIO | None  # None: a folder


class _Bounded:
    """A file of which no more than `most` bytes can be read, however they are packed."""

    def __init__(self, file: BinaryIO, archive: Path, most: int):
        self.file, self.archive, self.left = file, archive, most

    def read(self, size: int = -1) -> bytes:
        found = self.file.read(min(size if size >= 0 else self.left + 1, self.left + 1))
        self.left -= len(found)
        if self.left < 0:
            raise _too_much(self.archive)
        return found


def _too_much(archive: Path) -> DataError:
    return DataError(f"{archive} unpacks to far more than the published file does; delete it, it is not what it says")


def _of_zip(archive: Path, packed: zipfile.ZipFile, limits: Limits) -> Iterator[_Member]:
    if sum(info.file_size for info in packed.infolist()) > limits.bytes_of(archive):
        raise _too_much(archive)
    for info in packed.infolist():
        if not info.flag_bits & 0x800 and not info.orig_filename.isascii():
            raise DataError(f"{archive} has the member {info.orig_filename[:80]!r}, whose name is not UTF-8")
        kind = stat.S_IFMT(info.external_attr >> 16)
        if info.is_dir():
            yield _Member(info.orig_filename, 0, None)
        elif kind in (0, stat.S_IFREG):
            with packed.open(info) as content:
                yield _Member(info.orig_filename, info.file_size, content)
        else:
            raise _no_plain_file(archive, info.orig_filename)


def _of_tar(archive: Path, packed: tarfile.TarFile) -> Iterator[_Member]:
    for info in packed:
        if info.isdir():
            yield _Member(info.name, 0, None)
        elif info.isreg() and not info.issparse():
            yield _Member(info.name, info.size, packed.extractfile(info))
        else:
            raise _no_plain_file(archive, info.name)


def _no_plain_file(archive: Path, name: str) -> DataError:
    return DataError(f"{archive} has the member {name[:80]!r}, a link or device; allowed: plain files and folders")


def _safe(archive: Path, name: str) -> PurePosixPath:
    """A member's name as a path below a folder, whatever the system."""
    path = PurePosixPath(name)
    unsafe = (
        path.is_absolute()
        or ".." in path.parts
        or any(sign in name for sign in "\\:\0")
        or not all(part.isprintable() for part in path.parts)
        or any(len(part.encode()) > 255 for part in path.parts)
        or len(name) > 1000
    )
    if unsafe:
        raise DataError(f"{archive} has the member {name[:80]!r}, which leads out of its folder or cannot be a name")
    return path


def _write(found: Iterator[_Member], archive: Path, into: Path, limits: Limits, members: tuple[str, ...]) -> None:
    seen, left = set(), limits.bytes_of(archive)
    for number, member in enumerate(found, start=1):
        if number > limits.members:
            raise DataError(f"{archive} has more than {limits.members:,} members; delete it, it is not what it says")
        path = _safe(archive, member.name)
        if member.content is None:
            continue
        if path in seen or not path.parts:
            raise DataError(f"{archive} has the member {member.name[:80]!r} twice, or without a name")
        seen.add(path)
        if any(fnmatchcase(str(path), pattern) for pattern in members):
            left -= _copied(archive, member, into / path, left)


def _copied(archive: Path, member: _Member, to: Path, most: int) -> int:
    """Writes one file and gives its bytes, at most so many and exactly as many as the archive says."""
    size = 0
    with told_of_full_disk(to):
        to.parent.mkdir(parents=True, exist_ok=True)
        file = to.open("xb")
    with file:
        while block := member.content.read(BLOCK):
            size += len(block)
            if size > most:
                raise _too_much(archive)
            with told_of_full_disk(to):
                file.write(block)
    if member.size is not None and size != member.size:
        raise DataError(f"{archive} is damaged: {member.name[:80]!r} has {size:,} bytes, not {member.size:,}")
    return size
