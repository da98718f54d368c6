"""The archive of a source: one that a person has put there, or from the first of its addresses that gives it.

A checksum that is not publicly known is recorded, once the first download has been unpacked and prepared, in
`recorded.json` of the folder of archives: later downloads from the same address must have it too.
"""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path

from lib.datasets.fetching.disk import digest_mismatch, digest_of
from lib.datasets.fetching.download import Patience, Refused, download
from lib.datasets.fetching.sources import Address, Source
from lib.datasets.files import DataError

RECORDED = "recorded.json"


@dataclass(frozen=True)
class Archive:
    """A whole and checked archive. `url` is empty for one that was there already."""

    path: Path
    url: str
    digest: str


def obtain(source: Source, folder: Path, patience: Patience | None = None) -> Archive:
    """The archive of a source in `folder`.

    Raises:
        DataError: no address gives it (why not, address by address, and what to do by hand); a full disk.
    """
    there = _there(source, folder)
    if there:
        return there
    why = []
    for address in source.addresses:
        path = folder / address.file
        try:
            download(_with_record(address, folder), path, patience)
        except Refused as refused:
            why.append(str(refused))
            continue
        return Archive(path, address.url, digest_of(path))
    names = " or ".join(dict.fromkeys(str(folder / address.file) for address in source.addresses))
    raise DataError(
        f"{source.name} could not be downloaded: {'; '.join(why)}. By hand: download it with a browser, see "
        f"{source.page}, as {names}, and run this again" + (f". Or: {source.by_hand}" if source.by_hand else "")
    )


def _there(source: Source, folder: Path) -> Archive | None:
    """An archive that lies there under its own name, if it has the digest of any address of that name."""
    for address in source.addresses:
        path = folder / address.file
        same_name = [_with_record(one, folder) for one in source.addresses if one.file == address.file]
        if not path.is_file():
            continue
        wrong = [digest_mismatch(path, one.digest) for one in same_name]
        if all(wrong):
            raise DataError(f"{path} is not the published file: {wrong[0]}; delete it and run this again")
        return Archive(path, "", digest_of(path))
    return None


def _records(folder: Path) -> dict[str, dict]:
    try:
        found = json.loads((folder / RECORDED).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        raise DataError(f"{folder / RECORDED} is no JSON; delete it to record checksums anew") from None
    return found if isinstance(found, dict) else {}


def _with_record(address: Address, folder: Path) -> Address:
    """The address with the checksum of its first download, where none is publicly known."""
    if address.digest:
        return address
    known = _records(folder).get(address.url, {})
    return replace(address, digest=known.get("digest"), size=address.size or known.get("size"))


def remember(archive: Archive, folder: Path) -> None:
    """Records the checksum of an archive that has proved sound, where none is recorded for its address."""
    if not archive.url:
        return
    records = _records(folder)
    day = time.strftime("%Y-%m-%d", time.gmtime())
    records.setdefault(archive.url, {"digest": archive.digest, "size": archive.path.stat().st_size, "date": day})
    passing = folder / f"{RECORDED}.new"
    passing.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    passing.replace(folder / RECORDED)
