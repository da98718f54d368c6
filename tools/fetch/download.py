"""The download of one file, over connections that break, stall or lie.

What has arrived is kept in `<file>.partial`. Where a digest will tell whether the parts fit together, the next attempt,
by this process or another, continues from there. The file itself appears only whole and with its digest verified.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import requests
import urllib3
from tqdm import tqdm

from lib.datasets.files import DataError
from tools.fetch.disk import digest_of, disk_errors, has_digest
from tools.fetch.sources import Address

BLOCK = 2**18  # bytes read at once
LONGEST_PAUSE = 120.0  # seconds between two attempts
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "attention-and-explanation"}


class Refused(DataError):
    """This address does not give the file, however often one tries; a mirror may."""


class Broken(Exception):
    """This attempt failed; another may succeed, not before `after` seconds."""

    def __init__(self, message: str, after: float = 0.0):
        super().__init__(message)
        self.after = after


@dataclass(frozen=True)
class Patience:
    """Seconds to wait for a connection, and without data; attempts in a row that may bring no new byte."""

    connect: float = 20.0
    stall: float = 60.0
    tries: int = 6
    sleep: Callable[[float], None] = time.sleep


def download(address: Address, to: Path, patience: Patience | None = None) -> None:
    """Puts the file of an address at `to`, whole and with its digest verified.

    Raises:
        Refused: the address does not give the file; what has arrived may be kept.
        DataError: the disk is full, or the file cannot be written.
    """
    partial = to.with_name(f"{to.name}.partial")
    with disk_errors(to):
        _persist(address, partial, patience or Patience())
        partial.replace(to)


class _Session(requests.Session):
    """A session that sends no login from ~/.netrc, to the host of a redirect neither."""

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        prepared_request.headers.pop("Authorization", None)


def _persist(address: Address, partial: Path, patience: Patience) -> None:
    """Attempts until the partial file is whole, with pauses of 1, 2, 4, ... seconds; Refused after too many."""
    furthest, failures = _size(partial), 0
    with _Session() as session:
        session.max_redirects = 10
        session.auth = lambda request: request  # no login from ~/.netrc
        session.adapters.pop("http://")  # https alone, but for servers on this machine
        session.mount("http://127.0.0.1:", requests.adapters.HTTPAdapter())
        while True:
            try:
                return _attempt(session, address, partial, patience)
            except Broken as broken:
                size = _size(partial)
                failures = 1 if size > furthest else failures + 1
                furthest = max(furthest, size)
                if failures >= patience.tries:
                    kept = f"; {size:,} bytes are kept, run it again to go on from there"
                    kept = kept if size and address.digest else ""
                    raise Refused(f"{address.url}: {broken}; given up after {failures} tries{kept}") from None
                patience.sleep(min(LONGEST_PAUSE, max(broken.after, 2.0 ** (failures - 1))))


def _attempt(session: requests.Session, address: Address, partial: Path, patience: Patience) -> None:
    """Continues the partial file to its end where its digest is known, else starts it anew; then verifies it."""
    have = _size(partial) if address.digest else 0
    headers = HEADERS | ({"Range": f"bytes={have}-"} if have else {})
    try:
        timeout = (patience.connect, patience.stall)
        with session.get(address.url, headers=headers, stream=True, timeout=timeout) as response:
            _check(response, address, resuming=have > 0)
            if response.status_code == 200:  # the file from its beginning
                partial.unlink(missing_ok=True)
                have = 0
            if response.status_code != 416:  # which means that all of it is here
                _copy(response, address, partial, have)
    except (requests.exceptions.InvalidSchema, requests.TooManyRedirects) as error:
        raise Refused(f"{address.url} is not to be had by https alone: {error}") from None
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise Broken(f"the connection failed or broke off ({type(error).__name__})") from None
    if not has_digest(partial, address.digest):
        found = digest_of(partial, address.digest.partition(":")[0])
        partial.unlink()
        if have:
            raise Broken("the parts of two attempts do not fit together")
        raise Refused(f"{address.url} gave other bytes than published: {found}, expected {address.digest}")


def _size(partial: Path) -> int:
    return partial.stat().st_size if partial.exists() else 0


def _check(response: requests.Response, address: Address, resuming: bool) -> None:
    """Raises Broken or Refused for a response that is not the file."""
    status, url, headers = response.status_code, address.url, response.headers
    if status in (408, 425, 429) or status >= 500:
        raise Broken(f"the server answers {status} {response.reason}", _number(headers.get("Retry-After")) or 0)
    if status not in ((200, 206, 416) if resuming else (200,)):
        login = ": it wants a login, or does not serve this place" if status in (401, 403) else ""
        raise Refused(f"{url} answers {status} {response.reason}{login}")
    if status != 416 and headers.get("Content-Type", "").lower().startswith("text/html"):
        raise Refused(f"{url} sends a web page in place of the file (usually a login, a consent form or a warning)")


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


def _copy(response: requests.Response, address: Address, partial: Path, have: int) -> None:
    """Appends the body to the `have` bytes of the partial file, with a progress bar."""
    rest = _number(response.headers.get("Content-Length"))
    total = address.size if rest is None else have + rest
    if address.size is not None and total != address.size:
        raise Refused(f"{address.url} announces {total:,} bytes; the published file has {address.size:,}")
    shown = {"mininterval": 1 if sys.stderr.isatty() else 60, "maxinterval": 60, "leave": False}
    bar = tqdm(desc=address.file[:40], total=total, initial=have, unit="B", unit_scale=True, **shown)
    with bar, partial.open("ab", buffering=0) as file:
        while block := response.raw.read1(BLOCK):
            have += len(block)
            if total is not None and have > total:
                partial.unlink()
                raise Refused(f"{address.url} sends more than {total:,} bytes, the size that the file should have")
            with disk_errors(partial):
                file.write(block)
            bar.update(len(block))
    if total is not None and have < total:
        raise Broken(f"the connection broke off after {have:,} of {total:,} bytes")
