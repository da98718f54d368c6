"""Fetching a source as a whole: one process at a time, and its final name only when all of it is ready.

In the data folder `.downloads/NAME` holds what a source's archive becomes, and the archive itself until it is prepared.
"""

import os
import shutil
import time
from pathlib import Path

import pooch
import requests

from lib.atomic_write import alone, write_json
from lib.datasets import files
from lib.datasets.files import DataError
from tools.fetch.archive import unpack
from tools.fetch.prepare import prepare
from tools.fetch.sources import Source

RETRIES = 3  # after a connection that failed or broke off, or wrong bytes; with growing pauses
TIMEOUT = (20, 60)  # seconds to wait for a connection, and without data


def data_folder(into: str | Path | None = None) -> Path:
    """Where datasets are put: `into`, else $DATA_HOME if it can be written, else data/raw of the project."""
    if into:
        return Path(into).expanduser()
    homes = files.homes()
    return homes[0] if homes[0].is_dir() and os.access(homes[0], os.W_OK | os.X_OK) else homes[-1]


def fetch(source: Source, home: Path, again: bool = False) -> bool:
    """Downloads and prepares a source in the data folder `home`; whether anything had to be done.

    Args:
        again: also if it is there already; only what was fetched before is replaced.
    Raises:
        DataError: it could not be downloaded, unpacked, prepared or written.
    """
    work = home / ".downloads" / source.name
    try:
        work.mkdir(parents=True, exist_ok=True)
        with alone(work.with_suffix(".lock"), lambda: print(f"{source.name}: waiting for another process")):
            if not _wanted(source, home, again):
                return False
            archive = download(source, work)
            for folder in (work / "unpacked", work / "made"):
                shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
            unpack(archive, work / "unpacked")
            prepare(work / "unpacked", work / "made", source)
            _place(source, home, work / "made", f"sha256:{pooch.file_hash(archive)}")
            shutil.rmtree(work)
            return True
    except OSError as error:
        why = f"{error.filename or work} cannot be written: {error.strerror or error}"
        raise DataError(f"{why}; make space, or choose another place with --into") from None


def _wanted(source: Source, home: Path, again: bool) -> bool:
    """Whether something is missing, or is to be replaced; DataError rather than replace what was not fetched."""
    there = [home / name for name in source.makes if (home / name).exists()]
    if len(there) == len(source.makes) and not again:
        return False
    for product in there:
        if not record_path(product).exists():
            kept = f"{product} is there and was not fetched by this program, so it is not replaced"
            raise DataError(f"{kept}; move it away, or choose another place with --into")
    return True


def download(source: Source, folder: Path) -> Path:
    """The published file in a folder, whole and with its digest verified; one that is there already is taken."""
    downloader = pooch.HTTPDownloader(
        progressbar=True, headers={"Accept-Encoding": "identity"}, timeout=TIMEOUT, auth=lambda request: request
    )  # auth: no login from ~/.netrc
    registry, urls = {source.file: source.digest}, {source.file: source.url}
    keeper = pooch.create(folder, base_url="", registry=registry, urls=urls, retry_if_failed=RETRIES)
    try:
        return Path(keeper.fetch(source.file, downloader=downloader))
    except requests.RequestException as error:
        answer = error.response
        why = f"answers {answer.status_code} {answer.reason}" if answer is not None else "cannot be reached"
    except ValueError:
        why = f"gave other bytes than published, {source.digest}: perhaps a web page that asks for something"
    by_hand = f"download it with a browser, see {source.page}, as {folder / source.file}, and run this again"
    raise DataError(f"{source.name} could not be downloaded: {source.url} {why}. By hand: {by_hand}")


def record_path(product: Path) -> Path:
    """The file that records where a folder or file of the data folder was fetched from."""
    return product.with_name(f"{product.stem}.fetched.json") if product.suffix == ".npz" else product / "fetched.json"


def _place(source: Source, home: Path, made: Path, archive: str) -> None:
    """Renames every product to its final name, in place of what was there before, with a record of its origin."""
    origin = {"source": source.name, "licence": source.licence, "citation": source.citation, "address": source.url}
    origin |= {"archive": archive, "date": time.strftime("%Y-%m-%d", time.gmtime())}
    for name in source.makes:
        new, final = made / name, home / name
        final.parent.mkdir(parents=True, exist_ok=True)
        write_json(record_path(new if new.is_dir() else final), origin)
        if final.is_dir():
            shutil.rmtree(final)
        new.replace(final)
