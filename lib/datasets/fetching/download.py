"""Downloading one file over connections that break, stall or lie.

What has arrived lies in `<file>.partial`, and beside it in `<file>.partial.json` where it came from; a later try, also
of another process, goes on from there. Under its own name a file appears only whole and checked.
"""

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from tqdm import tqdm

from lib.datasets.fetching.disk import Partial, digest_mismatch, refuse_full_disk, told_of_full_disk
from lib.datasets.fetching.sources import Address
from lib.datasets.files import DataError

BLOCK = 2**18  # bytes read at once
REDIRECTS = 10
SHOWN = {"leave": False, "mininterval": 1 if sys.stderr.isatty() else 60, "maxinterval": 60}  # of the progress, seconds
AT_MOST = 2**35  # bytes of a file whose size nobody tells


class Refused(DataError):
    """This address does not give the file, however often it is asked; another may."""


class Broken(Exception):
    """This try failed; another may succeed, not before `after` seconds."""

    def __init__(self, message: str, after: float = 0.0):
        super().__init__(message)
        self.after = after


@dataclass(frozen=True)
class Patience:
    """How long is waited, and how often tried.

    connect, stall     seconds until a connection stands, and without a byte; a server that sends fewer than `slowest`
                       bytes in `stall` seconds counts as stalled too
    tries, in_all      per address: in a row without a new byte, and altogether
    first, longest     seconds before the second try, doubled for each further one up to `longest`, each shortened by up
                       to half at random, so that many clients do not come back at once
    """

    connect: float = 20.0
    stall: float = 60.0
    slowest: int = 1000
    tries: int = 6
    in_all: int = 200
    first: float = 1.0
    longest: float = 120.0
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = field(default=random.random)

    def wait(self, failures: int, at_least: float = 0.0) -> None:
        pause = min(self.longest, self.first * 2 ** (failures - 1)) * (1 - self.draw() / 2)
        self.sleep(min(self.longest, max(pause, at_least)))


def download(address: Address, to: Path, patience: Patience | None = None) -> None:
    """The file of that address, whole and checked, at `to`.

    Raises:
        Refused: the address does not give it; what arrived of it may be kept.
        DataError: the disk is full, or the file cannot be written.
    """
    patience, partial, mismatches = patience or Patience(), Partial(to), 0
    furthest, failures, tries = partial.size, 0, 0
    with requests.Session() as session:
        while True:
            try:
                glued = _receive(session, address, partial, patience)
                wrong = digest_mismatch(partial.path, address.digest)
                if not wrong:
                    partial.path.replace(to)
                    partial.told.unlink(missing_ok=True)
                    return
                partial.discard()
                mismatches += 1
                if not glued or mismatches > 1:
                    raise Refused(f"{address.url} gave other bytes than published: {wrong}; they were thrown away")
                raise Broken("the pieces of two tries do not fit together")
            except Broken as broken:
                failures = 1 if partial.size > furthest else failures + 1
                furthest, tries = max(furthest, partial.size), tries + 1
                if failures >= patience.tries or tries >= patience.in_all:
                    raise Refused(_given_up(address, partial, str(broken), tries)) from None
                patience.wait(failures, broken.after)


def _given_up(address: Address, partial: Partial, why: str, tries: int) -> str:
    kept = f"; {partial.size:,} bytes are kept, run it again to go on from there" if partial.size else ""
    return f"{address.url}: {why}; given up after {tries} tries{kept}"


def _receive(session: requests.Session, address: Address, partial: Partial, patience: Patience) -> bool:
    """Brings the partial file to its end; whether it is glued from more than one answer."""
    origin, have = partial.origin(), partial.size
    resume = have > 0 and origin.get("url") == address.url and bool(origin.get("validator") or address.digest)
    headers = {"Accept-Encoding": "identity", "User-Agent": "attention-and-explanation"}
    if resume:
        headers["Range"] = f"bytes={have}-"
        if origin.get("validator"):
            headers["If-Range"] = origin["validator"]
    try:
        with _asked(session, address.url, headers, patience) as answer:
            _look_at(answer, address)
            if resume and answer.status_code == 416:
                return _already_whole(answer, partial)
            resumed = resume and answer.status_code == 206
            total = _continued(answer, partial) if resumed else _begun(answer, address, partial)
            if address.size is not None and total not in (None, address.size):
                raise Refused(f"{address.url} announces {total:,} bytes; the published file has {address.size:,}")
            _copy(answer, address, partial, total if total is not None else address.size, patience)
            return resumed
    except requests.exceptions.SSLError as error:
        raise Refused(f"{address.url} has a certificate that is not accepted ({str(error)[:80]})") from None
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise Broken(_spoken(error, patience)) from None


def _asked(session: requests.Session, url: str, headers: dict, patience: Patience) -> requests.Response:
    """The answer after redirects, none of which leaves https."""
    start = url
    for _ in range(REDIRECTS):
        _refuse_unsafe(url, start)
        answer = session.get(
            url,
            headers=headers,
            stream=True,
            allow_redirects=False,
            timeout=(patience.connect, patience.stall),
            auth=lambda request: request,  # no login from ~/.netrc
        )
        if answer.status_code not in (301, 302, 303, 307, 308):
            return answer
        target = answer.headers.get("Location", "")
        answer.close()
        url = urljoin(url, target)
    raise Refused(f"{start} leads from one address to the next, {REDIRECTS} times without an end")


def _refuse_unsafe(url: str, start: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and _loopback(url) and _loopback(start)):
        return
    led = "" if url == start else f"{start} leads to "
    raise Refused(f"{led}{url[:200]}, which is not encrypted; allowed: https")


def _loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _look_at(answer: requests.Response, address: Address) -> None:
    """Refuses answers that are not the file."""
    status, url = answer.status_code, address.url
    if status in (408, 425, 429) or status >= 500:
        after = answer.headers.get("Retry-After", "")
        raise Broken(f"the server answers {status} {answer.reason}", float(after) if after.isdigit() else 0.0)
    if status in (401, 403):
        raise Refused(f"{url} answers {status} {answer.reason}: it wants a login, or does not serve this place")
    if status not in (200, 206, 416):
        raise Refused(f"{url} answers {status} {answer.reason}")
    if answer.headers.get("Content-Encoding", "identity").lower() not in ("", "identity"):
        raise Refused(f"{url} sends the file packed once more ({answer.headers['Content-Encoding'][:40]}), unasked")
    if status != 416 and answer.headers.get("Content-Type", "").lower().startswith("text/html"):
        raise Refused(f"{url} sends a web page in place of the file (a login, a consent or a warning, as a rule)")


def _validator(answer: requests.Response) -> str | None:
    tag = answer.headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified")


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


def _begun(answer: requests.Response, address: Address, partial: Partial) -> int | None:
    """The length of a file that comes from its beginning."""
    if answer.status_code != 200:
        raise Broken(f"the server answers {answer.status_code} to a plain question")
    total = _number(answer.headers.get("Content-Length"))
    if total == 0:
        raise Refused(f"{address.url} is empty")
    partial.begin(address.url, _validator(answer), total)
    return total


def _continued(answer: requests.Response, partial: Partial) -> int | None:
    """The length of a file whose rest comes now; all of it is thrown away where the rest is of another file."""
    origin, (span, _, whole) = partial.origin(), answer.headers.get("Content-Range", "").partition("/")
    start, total = _number(span.removeprefix("bytes ").partition("-")[0]), _number(whole)
    changed = origin.get("validator") and _validator(answer) and _validator(answer) != origin["validator"]
    if changed or start != partial.size or (origin.get("total") is not None and total != origin["total"]):
        partial.discard()
        raise Broken("the file changed between two tries")
    return total


def _already_whole(answer: requests.Response, partial: Partial) -> bool:
    """Nothing is left to send, either because all is here or because the file is another, shorter one."""
    if _number(answer.headers.get("Content-Range", "").partition("/")[2]) != partial.size:
        partial.discard()
        raise Broken("the file changed between two tries")
    return True


def _copy(answer, address: Address, partial: Partial, total: int | None, patience: Patience) -> None:
    have = partial.size
    refuse_full_disk(partial.path.parent, (total or 0) - have, partial.path)
    most = AT_MOST if total is None else total
    began, window = time.monotonic(), 0
    bar = tqdm(total=total, initial=have, unit="B", unit_scale=True, desc=address.file[:40], **SHOWN)
    with bar, partial.path.open("ab", buffering=0) as file:
        while block := answer.raw.read1(BLOCK):
            have, window = have + len(block), window + len(block)
            if have > most:
                partial.discard()
                raise Refused(f"{address.url} sends more than {most:,} bytes, which is what the file should have")
            with told_of_full_disk(partial.path):
                file.write(block)
            bar.update(len(block))
            if (passed := time.monotonic() - began) > patience.stall:
                if window < patience.slowest:
                    raise Broken(f"the server sent only {window:,} bytes in {passed:.0f} s")
                began, window = time.monotonic(), 0
    if total is not None and have < total:
        raise Broken(f"the connection broke off after {have:,} of {total:,} bytes")


def _spoken(error: Exception, patience: Patience) -> str:
    """A network error in a few words."""
    if isinstance(error, requests.ConnectTimeout):
        return f"no connection within {patience.connect:g} s"
    if isinstance(error, requests.ReadTimeout | urllib3.exceptions.ReadTimeoutError):
        return f"the server sent nothing for {patience.stall:g} s"
    if isinstance(error, urllib3.exceptions.ProtocolError | requests.exceptions.ChunkedEncodingError):
        return "the connection broke off"
    return f"no answer ({type(error).__name__})"
