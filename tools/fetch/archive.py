"""Unpacking what may be hostile: zip, tar (also compressed by gzip, bzip2 or xz), or one file that is not packed.

Only plain files are written, below the given folder. Anything else (links, devices, names that leave the folder, two
files of one name), or too much, refuses the whole archive.
"""

import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from lib.datasets.files import DataError

RATIO, SLACK = 25, 2**24  # an archive of n bytes may hold RATIO * n + SLACK
HEADER = 512  # bytes for which every member counts, so that empty ones are bounded too
DAMAGED = (EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError)
Members = Iterable[tuple[str, int, bool]]  # name, bytes, whether it is a plain file or a folder


def unpack(archive: Path, into: Path) -> None:
    """Writes the files of an archive below the folder `into`, which must be new.

    Raises DataError for damage, an unsafe name or kind of member, too many members or bytes.
    """
    into.mkdir(parents=True)
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                check(archive, _zip_members(packed))
                packed.extractall(into)
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive) as packed:
                check(archive, ((info.name, info.size, info.isreg() or info.isdir()) for info in packed))
                packed.extractall(into, filter="data")
        else:
            shutil.copy(archive, into)
    except DAMAGED as error:
        raise DataError(f"{archive} is damaged ({str(error)[:80]}); delete it and fetch it again") from None


def check(archive: Path, members: Members) -> None:
    """Raises DataError for the first member that is unsafe, or more than the published file holds."""
    left, names = archive.stat().st_size * RATIO + SLACK, set()
    for name, size, plain in members:
        path = PurePosixPath(name)
        left -= size + HEADER
        if not plain:
            wrong = f"has the member {name[:80]!r}, a link or device; allowed: plain files and folders"
        elif path.is_absolute() or ".." in path.parts or any(sign in name for sign in "\\:\0"):
            wrong = f"has the member {name[:80]!r}, which leads out of its folder"
        elif path in names:
            wrong = f"has the member {name[:80]!r} twice"
        elif left < 0:
            wrong = "unpacks to far more than the published file does"
        else:
            names.add(path)
            continue
        raise DataError(f"{archive} {wrong}; delete it, it is not that file")


def _zip_members(packed: zipfile.ZipFile) -> Iterator[tuple[str, int, bool]]:
    for info in packed.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        yield info.orig_filename, info.file_size, kind in (0, stat.S_IFREG, stat.S_IFDIR)
