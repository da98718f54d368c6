"""Fetching a source as a whole: one process at a time, and its final name only when all of it is ready.

In the data folder `.downloads` holds archives, what has arrived of them, work in progress, and `recorded.json`: the
checksums of first downloads where none is publicly known, which later downloads from the same address must match.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from lib.atomic_write import alone, write_json
from lib.datasets import files
from lib.datasets.files import DataError
from tools.fetch.archives import unpack
from tools.fetch.disk import digest_of, disk_errors, has_digest, refuse_full_disk
from tools.fetch.download import Patience, Refused, download
from tools.fetch.prepare import prepare
from tools.fetch.sources import Address, Source

DOWNLOADS = ".downloads"
RECORDED = "recorded.json"


@dataclass(frozen=True)
class Archive:
    """A whole and verified archive; `url` is empty if it was in `.downloads` already."""

    path: Path
    url: str
    digest: str


def data_folder(into: str | Path | None = None) -> Path:
    """Where datasets are put: `into`, else $DATA_HOME if it can be written, else data/raw of the project."""
    if into:
        return Path(into).expanduser()
    homes = files.homes()
    return homes[0] if homes[0].is_dir() and os.access(homes[0], os.W_OK | os.X_OK) else homes[-1]


def fetch(
    source: Source,
    home: Path,
    again: bool = False,
    keep: bool = False,
    patience: Patience | None = None,
    report: Callable[[str], None] = print,
) -> bool:
    """Downloads and prepares a source in the data folder `home`; whether anything had to be done.

    Args:
        again: also if it is there already; only what was fetched before is replaced.
        keep: the archive stays in `.downloads`.
    Raises:
        DataError: it could not be downloaded, unpacked, prepared or written.
    """
    downloads = home / DOWNLOADS
    with disk_errors(downloads):
        downloads.mkdir(parents=True, exist_ok=True)
    with alone(downloads / f"{source.name}.lock", lambda: report(f"{source.name}: waiting for another process")):
        work = downloads / f"{source.name}.making"
        _restore(source, home, work)
        if not _wanted(source, home, again):
            return False
        archive = _archive(source, downloads, patience)
        _make(source, archive, work)
        _remember(archive, downloads)
        _place(source, home, work)
        if not keep:
            archive.path.unlink(missing_ok=True)
        return True


def _wanted(source: Source, home: Path, again: bool) -> bool:
    """Whether something is missing, or is to be replaced; DataError rather than replace what was not fetched."""
    products = [home / name for name in source.makes]
    there = [product for product in products if product.exists()]
    if len(there) == len(products) and not again:
        return False
    foreign = next((product for product in there if not record_path(product).exists()), None)
    if foreign:
        raise DataError(
            f"{foreign} is there and was not fetched by this program, so it is not replaced; move it away, or choose "
            "another place with --into"
        )
    return True


def _archive(source: Source, folder: Path, patience: Patience | None) -> Archive:
    """The archive that a person has put into `folder`, else the download from the first address that gives it."""
    if there := _already_there(source, folder):
        return there
    reasons = []
    for address in source.addresses:
        path = folder / address.file
        try:
            download(_with_recorded_digest(address, folder), path, patience)
            return Archive(path, address.url, digest_of(path))
        except Refused as refused:
            reasons.append(str(refused))
    names = " or ".join(dict.fromkeys(str(folder / address.file) for address in source.addresses))
    raise DataError(
        f"{source.name} could not be downloaded: {'; '.join(reasons)}. By hand: download it with a browser, see "
        f"{source.page}, as {names}, and run this again" + (f". Or: {source.by_hand}" if source.by_hand else "")
    )


def _already_there(source: Source, folder: Path) -> Archive | None:
    """An archive in `folder` under the file name of an address; DataError unless it has the digest of one."""
    for path in dict.fromkeys(folder / address.file for address in source.addresses):
        if path.is_file():
            known = [_with_recorded_digest(one, folder).digest for one in source.addresses if one.file == path.name]
            if not any(has_digest(path, digest) for digest in known):
                found = f"{path.stat().st_size:,} bytes with {digest_of(path)}, expected {known[0]}"
                raise DataError(f"{path} is not the published file: {found}; delete it and run this again")
            return Archive(path, "", digest_of(path))
    return None


def _recorded(folder: Path) -> dict[str, dict]:
    """{url: digest, size and date of its first download}."""
    try:
        found = json.loads((folder / RECORDED).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        raise DataError(f"{folder / RECORDED} is not JSON; delete it to record checksums anew") from None
    return found if isinstance(found, dict) else {}


def _with_recorded_digest(address: Address, folder: Path) -> Address:
    if address.digest:
        return address
    known = _recorded(folder).get(address.url, {})
    return replace(address, digest=known.get("digest"), size=address.size or known.get("size"))


def _remember(archive: Archive, folder: Path) -> None:
    """Records the digest of an archive that could be prepared, if it is the first from its address."""
    if archive.url:
        with alone(folder / "recorded.lock"):
            first = {"digest": archive.digest, "size": archive.path.stat().st_size, "date": _today()}
            write_json(folder / RECORDED, {archive.url: first} | _recorded(folder))


def _today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def _make(source: Source, archive: Archive, work: Path) -> None:
    """The finished products with their records, in the folder `made` of the work."""
    unpacked, made = work / "unpacked", work / "made"
    refuse_full_disk(work.parent, archive.path.stat().st_size, archive.path)
    unpack(archive.path, unpacked, source.unpacked_gib * 2**30, source.members)
    with disk_errors(work):
        made.mkdir()
        prepare(unpacked, made, source)
        for name in source.makes:
            _record(source, archive, made / name)


def record_path(product: Path) -> Path:
    """The file that records where a folder or file of the data folder was fetched from."""
    name = "fetched.json"
    return product.with_name(f"{product.stem}.{name}") if product.suffix == ".npz" else product / name


def _record(source: Source, archive: Archive, product: Path) -> None:
    inside = sorted(product.iterdir()) if product.is_dir() else [product]
    found = {
        "source": source.name,
        "address": archive.url or f"found in {DOWNLOADS}",
        "archive": archive.digest,
        "date": _today(),
        "licence": source.licence,
        "citation": source.citation,
        "files": {path.name: digest_of(path) for path in inside},
    }
    write_json(record_path(product), found)
    for path in inside:
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _place(source: Source, home: Path, work: Path) -> None:
    """Renames every product to its final name; what was there before is kept in `old` until all is done."""
    for name in source.makes:
        new, final, old = work / "made" / name, home / name, work / "old" / name
        with disk_errors(final):
            final.parent.mkdir(parents=True, exist_ok=True)
            old.parent.mkdir(parents=True, exist_ok=True)
            if record_path(new).parent != new:
                record_path(new).replace(record_path(final))
            if final.is_dir():
                final.rename(old)
            new.replace(final)
    shutil.rmtree(work)


def _restore(source: Source, home: Path, work: Path) -> None:
    """Puts back what a killed process had moved aside, and deletes its unfinished work."""
    for name in source.makes:
        old, final = work / "old" / name, home / name
        if old.exists() and not final.exists():
            old.rename(final)
    shutil.rmtree(work, ignore_errors=True)


def differences(product: Path) -> list[str] | None:
    """How a fetched folder or file differs from its record, in words; None if it has no record."""
    record = record_path(product)
    if not record.exists():
        return None
    try:
        expected = json.loads(record.read_text(encoding="utf-8"))["files"].items()
    except (ValueError, KeyError, TypeError, AttributeError):
        return [f"{record.name} is damaged"]
    folder = product if product.is_dir() else product.parent
    missing = [f"{name} is missing" for name, _ in expected if not (folder / name).is_file()]
    there = [(folder / name, digest) for name, digest in expected if (folder / name).is_file()]
    return missing + [f"{path.name} was changed" for path, digest in there if digest_of(path) != digest]
