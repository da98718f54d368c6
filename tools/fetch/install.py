"""Fetching a source as a whole: one process at a time, and its final name only when all of it is ready.

In the data folder `.downloads/NAME` holds what a source's archive becomes, and the archive itself until it is prepared.
"""

import gzip
import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import pooch
import requests

from lib.atomic_write import alone
from lib.datasets.files import DataError
from tools.fetch.prepare import prepare
from tools.fetch.sources import Source

TIMEOUT = (20, 60)  # seconds to wait for a connection, and without data
RATIO, SLACK = 25, 2**24  # an archive of n bytes may hold RATIO * n + SLACK
AT_ONCE = 2**20  # bytes of a header, as of those that are read at a time
OF_PACKING = (gzip.BadGzipFile, zlib.error, lzma.LZMAError)
DAMAGED = (EOFError, tarfile.TarError, zipfile.BadZipFile, NotImplementedError, *OF_PACKING)


def fetch(source: Source, home: Path) -> bool:
    """Downloads and prepares what `home` lacks of a source; whether it lacked anything; DataError where that fails."""
    work = home / ".downloads" / source.name
    try:
        work.mkdir(parents=True, exist_ok=True)
        with alone(work.with_suffix(".lock")):
            lacking = [name for name in source.makes if not (home / name).exists()]
            if lacking:
                archive = download(source, work)
                for folder in (work / "unpacked", work / "made"):
                    shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
                unpack(archive, work / "unpacked")
                prepare(work / "unpacked", work / "made", source)
                for name in lacking:
                    (home / name).parent.mkdir(parents=True, exist_ok=True)
                    (work / "made" / name).replace(home / name)
                shutil.rmtree(work)
            return bool(lacking)
    except OSError as error:
        why = f"{error.filename or work} cannot be written: {error.strerror or error}"
        raise DataError(f"{why}; make space, or choose another place with --into") from None


def download(source: Source, folder: Path) -> Path:
    """The published file in a folder, whole and with its digest verified; one that is there already is taken."""
    downloader = pooch.HTTPDownloader(
        progressbar=True, headers={"Accept-Encoding": "identity"}, timeout=TIMEOUT, auth=lambda request: request
    )  # auth: no login from ~/.netrc
    registry, urls = {source.file: source.digest}, {source.file: source.url}
    keeper = pooch.create(folder, base_url="", registry=registry, urls=urls, retry_if_failed=3)
    try:
        return Path(keeper.fetch(source.file, downloader=downloader))
    except requests.RequestException as error:
        answer = error.response
        why = f"answers {answer.status_code} {answer.reason}" if answer is not None else "cannot be reached"
    except ValueError:
        why = f"gave other bytes than published, {source.digest}: perhaps a web page that asks for something"
    by_hand = f"download it with a browser, see {source.page}, as {folder / source.file}, and run this again"
    raise DataError(f"{source.name} could not be downloaded: {source.url} {why}. By hand: {by_hand}")


def unpack(archive: Path, into: Path) -> None:
    """Writes the files of a zip or tar archive, or the one file that is not packed, into the new folder `into`.

    Raises:
        DataError: it is damaged, or a member is no plain file or folder below `into`, or too large.
    """
    into.mkdir(parents=True)
    with archive.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                plain = (0, stat.S_IFREG, stat.S_IFDIR)
                kinds = [(one, stat.S_IFMT(one.external_attr >> 16) in plain) for one in packed.infolist()]
                check(archive, ((one.orig_filename, one.file_size, fits) for one, fits in kinds))
                packed.extractall(into)
        elif is_gzip:
            with Bounded(archive) as stream, tarfile.open(fileobj=stream, mode="r:") as packed:
                check(archive, ((one.name, one.size, one.isreg() or one.isdir()) for one in packed))
                packed.extractall(into, filter="data")
        else:
            shutil.copy(archive, into)
    except DAMAGED as error:
        raise DataError(f"{archive} is damaged ({str(error)[:80]}); delete it and fetch it again") from None


class Bounded(gzip.GzipFile):
    """A .tar.gz for tarfile, which reads a header whole: an error for a large one, or too many."""

    def read(self, size: int = -1) -> bytes:
        if size > AT_ONCE or self.tell() > Path(self.name).stat().st_size * RATIO + SLACK:
            raise tarfile.ReadError(f"a header of {size:,} bytes, or too many")
        return super().read(size)


def check(archive: Path, members: Iterable[tuple[str, int, bool]]) -> None:
    """Raises DataError for the first member (name, bytes, whether it is a plain file or folder) that is unsafe."""
    left = archive.stat().st_size * RATIO + SLACK
    for name, size, plain in members:
        path = PurePosixPath(name)
        left -= size
        if not plain or path.is_absolute() or ".." in path.parts or any(sign in name for sign in "\\:\0") or left < 0:
            allowed = f"plain files and folders below its own, {RATIO} times its size in all. Delete it, it is another"
            raise DataError(f"{archive} has the member {name[:80]!r}; allowed: {allowed}")
