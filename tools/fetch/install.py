"""Fetching a source as a whole: one process at a time, and its final name only when all of it is ready.

In the data folder `.downloads/NAME` holds what a source's archive becomes, and the archive itself until it is prepared.
"""

import gzip
import lzma
import shutil
import tarfile
import zipfile
import zlib
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

import pooch
import requests

from lib.atomic_write import alone
from lib.datasets.files import DataError
from tools.fetch.prepare import prepare
from tools.fetch.sources import Source

TIMEOUT = (20, 60)  # seconds to wait for a connection, and without data
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
                installed = [Path(spec.origin).parent for spec in map(find_spec, source.packages) if spec]
                for folder in (work / "unpacked", work / "made"):
                    shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
                if not installed:
                    archive = download(source, work)
                    for name in source.beside:
                        download(replace(source, url=source.url.replace(source.file, name), digest=None), work)
                    if not source.beside:
                        unpack(archive, work / "unpacked", source.members)
                prepare([*installed, work / ("" if source.beside else "unpacked")][0], work / "made", source)
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


def unpack(archive: Path, into: Path, members: str = "*") -> None:
    """Writes the `members` of a zip archive, or all of a tar, into a new folder.

    Raises:
        DataError: it is damaged, or tarfile's filter of data refuses a member, such as a link out of the folder.
    """
    into.mkdir(parents=True)
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(into, [name for name in packed.namelist() if PurePosixPath(name).match(members)])
        else:
            with tarfile.open(archive, mode="r:gz") as packed:
                packed.extractall(into, filter="data")
    except DAMAGED as error:
        raise DataError(f"{archive} is damaged ({str(error)[:80]}); delete it and fetch it again") from None
