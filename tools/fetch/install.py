"""Fetching a source as a whole: one process at a time, and its final name only when all of it is ready.

In the data folder `.downloads/NAME` holds what a source's archive becomes, and the archive itself until it is prepared.
"""

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pooch
import requests

from lib.atomic_write import alone, write_json
from lib.datasets import files
from lib.datasets.files import DataError
from tools.fetch.archive import unpack
from tools.fetch.prepare import prepare
from tools.fetch.sources import Address, Source

DOWNLOADS = ".downloads"
RETRIES = 5  # after a connection that failed or broke off, a busy server, or wrong bytes; with growing pauses
TIMEOUT = (20, 60)  # seconds to wait for a connection, and without data
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "attention-and-explanation"}


class Refused(Exception):
    """This address does not give the file, however often one tries; a mirror may."""


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
    work = home / DOWNLOADS / source.name
    with disk_errors(work):
        work.mkdir(parents=True, exist_ok=True)
        with alone(work.with_suffix(".lock"), lambda: print(f"{source.name}: waiting for another process")):
            if not _wanted(source, home, again):
                return False
            for left in [*work.glob("tmp*"), work / "unpacked", work / "made"]:  # of a process that was killed
                shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
            archive, url = _archive(source, work)
            unpack(archive, work / "unpacked")
            (work / "made").mkdir()
            prepare(work / "unpacked", work / "made", source)
            _place(source, home, work / "made", {"address": url, "archive": f"sha256:{pooch.file_hash(archive)}"})
            shutil.rmtree(work)
            return True


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turns the OSError of a full or write-protected disk into a DataError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            full = f"the disk of {folder} is full; free some space and run it again"
            raise DataError(f"{full}, or choose another place with --into") from None
        raise DataError(f"{error.filename or folder} cannot be written: {error.strerror or error}") from None


def _wanted(source: Source, home: Path, again: bool) -> bool:
    """Whether something is missing, or is to be replaced; DataError rather than replace what was not fetched."""
    there = [home / name for name in source.makes if (home / name).exists()]
    if len(there) == len(source.makes) and not again:
        return False
    foreign = next((product for product in there if not record_path(product).exists()), None)
    if foreign:
        kept = f"{foreign} is there and was not fetched by this program, so it is not replaced"
        raise DataError(f"{kept}; move it away, or choose another place with --into")
    return True


def _archive(source: Source, folder: Path) -> tuple[Path, str]:
    """The archive and its URL, from the first address that gives it; one that is in `folder` already is taken."""
    reasons = []
    for address in sorted(source.addresses, key=lambda one: not (folder / one.file).exists()):
        try:
            return download(address, folder), address.url
        except Refused as refused:
            reasons.append(str(refused))
    names = " or ".join(dict.fromkeys(str(folder / address.file) for address in source.addresses))
    raise DataError(
        f"{source.name} could not be downloaded: {'; '.join(reasons)}. By hand: download it with a browser, see "
        f"{source.page}, as {names}, and run this again" + (f". Or: {source.by_hand}" if source.by_hand else "")
    )


def download(address: Address, folder: Path) -> Path:
    """The file of an address in a folder, whole and with its digest verified; Refused where it cannot be had."""
    try:
        downloader = pooch.HTTPDownloader(
            progressbar=True, chunk_size=2**18, headers=HEADERS, timeout=TIMEOUT,
            auth=lambda request: request,  # no login from ~/.netrc
            hooks={"response": partial(refuse_response, address)},
        )  # fmt: skip
        registry, urls = {address.file: address.digest}, {address.file: address.url}
        keeper = pooch.create(folder, base_url="", registry=registry, urls=urls, retry_if_failed=RETRIES)
        return Path(keeper.fetch(address.file, downloader=downloader))
    except requests.TooManyRedirects as error:
        raise Refused(f"{address.url}: {error}") from None
    except (requests.RequestException, ValueError) as error:
        again = f"given up after {RETRIES + 1} tries"
        if isinstance(error, ValueError) and not isinstance(error, requests.RequestException):
            raise Refused(f"{address.url} gave other bytes than published, {address.digest}; {again}") from None
        answer = error.response
        reason = f"the server answers {answer.status_code} {answer.reason}" if answer is not None else "no connection"
        raise Refused(f"{address.url}: {reason} ({type(error).__name__}); {again}") from None


def refuse_response(address: Address, response: requests.Response, **_) -> None:
    """Raises Refused for an answer that is not the file; errors that may pass are left to pooch, which tries again."""
    status, url, headers = response.status_code, response.url, response.headers
    if not url.startswith(("https://", "http://127.0.0.1:")):  # or a server on this machine
        raise Refused(f"{address.url} is not to be had by https alone: it leads to {url}")
    if 400 <= status < 500 and status not in (408, 425, 429):
        login = ": it wants a login, or does not serve this place" if status in (401, 403) else ""
        raise Refused(f"{url} answers {status} {response.reason}{login}")
    if status == 200 and headers.get("Content-Type", "").lower().startswith("text/html"):
        raise Refused(f"{url} sends a web page in place of the file (usually a login, a consent form or a warning)")
    size = headers.get("Content-Length")
    if status == 200 and None not in (address.size, size) and int(size) != address.size:
        raise Refused(f"{url} announces {int(size):,} bytes; the published file has {address.size:,}")


def record_path(product: Path) -> Path:
    """The file that records where a folder or file of the data folder was fetched from."""
    return product.with_name(f"{product.stem}.fetched.json") if product.suffix == ".npz" else product / "fetched.json"


def _place(source: Source, home: Path, made: Path, origin: dict[str, str]) -> None:
    """Renames every product to its final name, in place of what was there before, with a record of its origin."""
    about = {"source": source.name, "licence": source.licence, "citation": source.citation}
    about |= {"date": time.strftime("%Y-%m-%d", time.gmtime())}
    for name in source.makes:
        new, final = made / name, home / name
        final.parent.mkdir(parents=True, exist_ok=True)
        write_json(record_path(new if new.is_dir() else final), about | origin)
        if final.is_dir():
            shutil.rmtree(final)
        new.replace(final)
