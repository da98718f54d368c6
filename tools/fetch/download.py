"""The download of one file, over connections that break, stall or lie.

What has arrived is kept in `<file>.partial`, and where it came from in `<file>.partial.json`; the next attempt, by this
process or another, continues from there. The file itself appears only whole and with its checksum verified.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import requests
import urllib3
from tqdm import tqdm

from lib.atomic_write import write_json
from lib.datasets.files import DataError
from tools.fetch.disk import digest_of, disk_errors, has_digest, refuse_full_disk
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


@dataclass(frozen=True)
class Partial:
    """What has arrived of a file so far, and the url, validator (ETag or date) and total of its first response."""

    path: Path
    origin: Path

    @property
    def size(self) -> int:
        """Bytes that have arrived."""
        return self.path.stat().st_size if self.path.exists() else 0

    def read_origin(self) -> dict:
        """What was recorded about the download."""
        return json.loads(self.origin.read_text(encoding="utf-8")) if self.origin.exists() else {}

    def delete(self) -> None:
        """Deletes the file and what was recorded about it."""
        self.path.unlink(missing_ok=True)
        self.origin.unlink(missing_ok=True)


def download(address: Address, to: Path, patience: Patience | None = None) -> None:
    """Puts the file of an address at `to`, whole and with its digest verified.

    Raises:
        Refused: the address does not give the file; what has arrived may be kept.
        DataError: the disk is full, or the file cannot be written.
    """
    partial = Partial(to.with_name(f"{to.name}.partial"), to.with_name(f"{to.name}.partial.json"))
    with disk_errors(to):
        _persist(address, partial, patience or Patience())
        if not has_digest(partial.path, address.digest):
            found = digest_of(partial.path, address.digest.partition(":")[0])
            partial.delete()
            raise Refused(f"{address.url} gave other bytes than published: {found}, expected {address.digest}")
        partial.path.replace(to)
        partial.delete()


class _Session(requests.Session):
    """A session that sends no login from ~/.netrc, to the host of a redirect neither."""

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        prepared_request.headers.pop("Authorization", None)


def _persist(address: Address, partial: Partial, patience: Patience) -> None:
    """Attempts until the partial file is whole, with pauses of 1, 2, 4, ... seconds; Refused after too many."""
    furthest, failures = partial.size, 0
    with _Session() as session:
        session.max_redirects = 10
        session.auth = lambda request: request  # no login from ~/.netrc
        session.adapters.pop("http://")  # https alone, but for servers on this machine
        session.mount("http://127.0.0.1:", requests.adapters.HTTPAdapter())
        while True:
            try:
                return _attempt(session, address, partial, patience)
            except Broken as broken:
                failures = 1 if partial.size > furthest else failures + 1
                furthest = max(furthest, partial.size)
                if failures >= patience.tries:
                    kept = f"; {partial.size:,} bytes are kept, run it again to go on from there" * (partial.size > 0)
                    raise Refused(f"{address.url}: {broken}; given up after {failures} tries{kept}") from None
                patience.sleep(min(LONGEST_PAUSE, max(broken.after, 2.0 ** (failures - 1))))


def _attempt(session: requests.Session, address: Address, partial: Partial, patience: Patience) -> None:
    """Continues the partial file to its end, or starts it anew."""
    origin, have = partial.read_origin(), partial.size
    resume = have > 0 and origin.get("url") == address.url and bool(origin.get("validator") or address.digest)
    headers = HEADERS | ({"Range": f"bytes={have}-"} if resume else {})
    if resume and origin.get("validator"):
        headers["If-Range"] = origin["validator"]
    try:
        timeout = (patience.connect, patience.stall)
        with session.get(address.url, headers=headers, stream=True, timeout=timeout) as response:
            _check(response, address)
            resumed = resume and response.status_code in (206, 416)
            total = _resumed(response, partial) if resumed else _started(response, address, partial)
            if address.size is not None and total not in (None, address.size):
                raise Refused(f"{address.url} announces {total:,} bytes; the published file has {address.size:,}")
            if response.status_code != 416:  # which means that all of it is here
                _copy(response, address, partial, total if total is not None else address.size)
    except (requests.exceptions.InvalidSchema, requests.TooManyRedirects) as error:
        raise Refused(f"{address.url} is not to be had by https alone: {error}") from None
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise Broken(f"the connection failed or broke off ({type(error).__name__})") from None
    if resumed and not has_digest(partial.path, address.digest):
        partial.delete()
        raise Broken("the parts of two attempts do not fit together")


def _check(response: requests.Response, address: Address) -> None:
    """Raises Broken or Refused for a response that is not the file."""
    status, url, headers = response.status_code, address.url, response.headers
    if status in (408, 425, 429) or status >= 500:
        raise Broken(f"the server answers {status} {response.reason}", _number(headers.get("Retry-After")) or 0)
    if status not in (200, 206, 416):
        login = ": it wants a login, or does not serve this place" if status in (401, 403) else ""
        raise Refused(f"{url} answers {status} {response.reason}{login}")
    if status != 416 and headers.get("Content-Type", "").lower().startswith("text/html"):
        raise Refused(f"{url} sends a web page in place of the file (usually a login, a consent form or a warning)")


def _validator(response: requests.Response) -> str | None:
    tag = response.headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


def _started(response: requests.Response, address: Address, partial: Partial) -> int | None:
    """Bytes of a file that comes from its beginning, if announced."""
    if response.status_code != 200:
        raise Broken(f"the server answers {response.status_code} to a request for the whole file")
    total = _number(response.headers.get("Content-Length"))
    partial.delete()
    write_json(partial.origin, {"url": address.url, "validator": _validator(response), "total": total})
    return total


def _resumed(response: requests.Response, partial: Partial) -> int | None:
    """Bytes of the file whose rest comes now; if it is of another file, Broken, and what had arrived is deleted."""
    span, _, total = response.headers.get("Content-Range", "").partition("/")
    origin = partial.read_origin()
    validators = {origin.get("validator"), _validator(response)} - {None}
    totals = {origin.get("total"), _number(total)} - {None}
    start = total if response.status_code == 416 else span.removeprefix("bytes ").partition("-")[0]
    if len(validators) > 1 or len(totals) > 1 or _number(start) != partial.size:
        partial.delete()
        raise Broken("the file changed between two attempts")
    return _number(total)


def _copy(response: requests.Response, address: Address, partial: Partial, total: int | None) -> None:
    """Appends the body to the partial file, with a progress bar."""
    have = partial.size
    refuse_full_disk(partial.path.parent, (total or 0) - have, partial.path)
    shown = {"mininterval": 1 if sys.stderr.isatty() else 60, "maxinterval": 60, "leave": False}
    bar = tqdm(desc=address.file[:40], total=total, initial=have, unit="B", unit_scale=True, **shown)
    with bar, partial.path.open("ab", buffering=0) as file:
        while block := response.raw.read1(BLOCK):
            have += len(block)
            if total is not None and have > total:
                partial.delete()
                raise Refused(f"{address.url} sends more than {total:,} bytes, the size that the file should have")
            with disk_errors(partial.path):
                file.write(block)
            bar.update(len(block))
    if total is not None and have < total:
        raise Broken(f"the connection broke off after {have:,} of {total:,} bytes")
