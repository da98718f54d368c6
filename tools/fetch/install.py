"""Fetching a source as a whole: one process at a time, and its final name only when all of it is ready.

In the data folder `.downloads` holds archives, what has arrived of them, work in progress, and `recorded.json`: the
checksums of first downloads where none is publicly known, which later downloads from the same address must match.
"""

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

from lib.atomic_write import alone, write_json
from lib.datasets import files
from lib.datasets.files import DataError
from tools.fetch.disk import digest_of, disk_errors, has_digest, unpack
from tools.fetch.download import Patience, Refused, download
from tools.fetch.prepare import prepare
from tools.fetch.sources import Address, Source

DOWNLOADS = ".downloads"


def data_folder(into: str | Path | None = None) -> Path:
    """Where datasets are put: `into`, else $DATA_HOME if it can be written, else data/raw of the project."""
    if into:
        return Path(into).expanduser()
    homes = files.homes()
    return homes[0] if homes[0].is_dir() and os.access(homes[0], os.W_OK | os.X_OK) else homes[-1]


def fetch(source: Source, home: Path, again: bool = False, patience: Patience | None = None) -> bool:
    """Downloads and prepares a source in the data folder `home`; whether anything had to be done.

    Args:
        again: also if it is there already; only what was fetched before is replaced.
    Raises:
        DataError: it could not be downloaded, unpacked, prepared or written.
    """
    downloads = home / DOWNLOADS
    with disk_errors(downloads):
        downloads.mkdir(parents=True, exist_ok=True)
    with alone(downloads / f"{source.name}.lock", lambda: print(f"{source.name}: waiting for another process")):
        work = downloads / f"{source.name}.making"
        shutil.rmtree(work, ignore_errors=True)  # of a process that was killed
        if not _wanted(source, home, again):
            return False
        archive, url = _archive(source, downloads, patience)
        digest = digest_of(archive)
        _make(source, archive, work, {"address": url or f"found in {DOWNLOADS}", "archive": digest})
        if url:
            _remember(url, digest, archive.stat().st_size, downloads)
        _place(source, home, work)
        archive.unlink()
        return True


def _wanted(source: Source, home: Path, again: bool) -> bool:
    """Whether something is missing, or is to be replaced; DataError rather than replace what was not fetched."""
    products = [home / name for name in source.makes]
    there = [product for product in products if product.exists()]
    if len(there) == len(products) and not again:
        return False
    foreign = next((product for product in there if not record_path(product).exists()), None)
    if foreign:
        kept = f"{foreign} is there and was not fetched by this program, so it is not replaced"
        raise DataError(f"{kept}; move it away, or choose another place with --into")
    return True


def _archive(source: Source, folder: Path, patience: Patience | None) -> tuple[Path, str]:
    """The archive, and the URL it came from: "" if it is in `folder` already, downloaded earlier or by a person.

    Otherwise it comes from the first address that gives it.
    """
    reasons = []
    for address in sorted(source.addresses, key=lambda one: not (folder / one.file).exists()):
        path = folder / address.file
        if path.exists():
            digests = [_with_record(one, folder).digest for one in source.addresses if one.file == path.name]
            if any(has_digest(path, digest) for digest in digests):
                return path, ""
            found = f"{path.stat().st_size:,} bytes with {digest_of(path)}, expected {digests[0]}"
            raise DataError(f"{path} is not the published file: {found}; delete it and run this again")
        try:
            download(_with_record(address, folder), path, patience)
            return path, address.url
        except Refused as refused:
            reasons.append(str(refused))
    names = " or ".join(dict.fromkeys(str(folder / address.file) for address in source.addresses))
    raise DataError(
        f"{source.name} could not be downloaded: {'; '.join(reasons)}. By hand: download it with a browser, see "
        f"{source.page}, as {names}, and run this again" + (f". Or: {source.by_hand}" if source.by_hand else "")
    )


def _recorded(folder: Path) -> dict[str, dict]:
    """{url: digest, size and date of its first download}."""
    path = folder / "recorded.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _with_record(address: Address, folder: Path) -> Address:
    """The address with the digest and size of its first download where they are not publicly known."""
    known = {} if address.digest else _recorded(folder).get(address.url, {})
    return replace(address, digest=address.digest or known.get("digest"), size=address.size or known.get("size"))


def _remember(url: str, digest: str, size: int, folder: Path) -> None:
    """Records the digest of an archive that could be prepared, if it is the first from its address."""
    with alone(folder / "recorded.lock"):
        first = {"digest": digest, "size": size, "date": _today()}
        write_json(folder / "recorded.json", {url: first} | _recorded(folder))


def _today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def _make(source: Source, archive: Path, work: Path, origin: dict[str, str]) -> None:
    """The finished products with their records, in the folder `made` of the work."""
    unpacked, made = work / "unpacked", work / "made"
    unpack(archive, unpacked, source.unpacked_gib * 2**30, source.members)
    about = {"source": source.name, "licence": source.licence, "citation": source.citation, "date": _today()}
    with disk_errors(work):
        made.mkdir()
        prepare(unpacked, made, source)
        for name in source.makes:
            write_json(record_path(made / name), about | origin)


def record_path(product: Path) -> Path:
    """The file that records where a folder or file of the data folder was fetched from."""
    return product.with_name(f"{product.stem}.fetched.json") if product.suffix == ".npz" else product / "fetched.json"


def _place(source: Source, home: Path, work: Path) -> None:
    """Renames every product to its final name, in place of what was there before."""
    for name in source.makes:
        new, final = work / "made" / name, home / name
        with disk_errors(final):
            final.parent.mkdir(parents=True, exist_ok=True)
            if record_path(new).parent != new:
                record_path(new).replace(record_path(final))
            if final.is_dir():
                shutil.rmtree(final)
            new.replace(final)
    shutil.rmtree(work)
