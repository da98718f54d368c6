"""Fetching a source as a whole: one process at a time, and nothing half-made ever stands under its final name.

In the home of data the folder `.downloads` holds archives, what has arrived of them, and the work in progress.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from lib.atomic_write import alone
from lib.datasets import files
from lib.datasets.fetching.archives import Limits, unpack
from lib.datasets.fetching.disk import digest_of, refuse_full_disk, told_of_full_disk
from lib.datasets.fetching.download import Patience
from lib.datasets.fetching.obtaining import Archive, obtain, remember
from lib.datasets.fetching.preparing import prepare
from lib.datasets.fetching.sources import Source
from lib.datasets.files import DataError

DOWNLOADS = ".downloads"
RECORD = "fetched.json"


def target(into: str | Path | None = None) -> Path:
    """Where datasets are put: `into`, else $DATA_HOME if it can be written, else data/raw of the project."""
    if into:
        return Path(into).expanduser()
    homes = files.homes()
    return homes[0] if homes[0].is_dir() and os.access(homes[0], os.W_OK | os.X_OK) else homes[-1]


def record_of(product: Path) -> Path:
    """Where it is written down what a folder or file of the home was fetched from."""
    return product.with_name(f"{product.stem}.{RECORD}") if product.suffix == ".npz" else product / RECORD


def fetch(
    source: Source,
    home: Path,
    again: bool = False,
    keep: bool = False,
    patience: Patience | None = None,
    say: Callable[[str], None] = print,
) -> bool:
    """Brings a source into the home of data; whether anything had to be done.

    Args:
        again: also where it is there already; only what was fetched before is replaced.
        keep: the archive stays in the folder .downloads.
    Raises:
        DataError: it could not be downloaded, unpacked, prepared or written.
    """
    downloads = home / DOWNLOADS
    with told_of_full_disk(downloads):
        downloads.mkdir(parents=True, exist_ok=True)
    with alone(downloads / f"{source.name}.lock", lambda: say(f"{source.name}: waiting for another process")):
        work = downloads / f"{source.name}.making"
        _restore(source, home, work)
        if not _wanted(source, home, again):
            return False
        archive = obtain(source, downloads, patience)
        _make(source, archive, work)
        remember(archive, downloads)
        _place(source, home, work)
        if not keep:
            archive.path.unlink(missing_ok=True)
        return True


def _wanted(source: Source, home: Path, again: bool) -> bool:
    """Whether something is missing, or is to be replaced; refuses to replace what was not fetched."""
    products = [home / name for name in source.makes]
    there = [product for product in products if product.exists()]
    if len(there) == len(products) and not again:
        return False
    foreign = next((product for product in there if not record_of(product).exists()), None)
    if foreign:
        raise DataError(
            f"{foreign} is there and was not fetched by this program, so it is not replaced; move it away, or choose "
            "another place with --into"
        )
    return True


def _make(source: Source, archive: Archive, work: Path) -> None:
    """The finished products with their records, in the folder `made` of the work."""
    unpacked, made = work / "unpacked", work / "made"
    refuse_full_disk(work.parent, archive.path.stat().st_size, archive.path)
    unpack(archive.path, unpacked, Limits(unpacked=source.unpacked), source.members)
    with told_of_full_disk(work):
        made.mkdir()
        prepare(unpacked, made, source)
        for name in source.makes:
            _record(source, archive, made / name)


def _record(source: Source, archive: Archive, product: Path) -> None:
    inside = sorted(product.iterdir()) if product.is_dir() else [product]
    found = {
        "source": source.name,
        "address": archive.url or f"found in {DOWNLOADS}",
        "archive": archive.digest,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "licence": source.licence,
        "citation": source.citation,
        "files": {path.name: digest_of(path) for path in inside},
    }
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    record_of(product).write_text(text, encoding="utf-8", newline="\n")
    for path in [*inside, record_of(product)]:
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _place(source: Source, home: Path, work: Path) -> None:
    """Renames every product to its final name. What stood there waits in `old` until all is done."""
    for name in source.makes:
        new, final, old = work / "made" / name, home / name, work / "old" / name
        with told_of_full_disk(final):
            final.parent.mkdir(parents=True, exist_ok=True)
            old.parent.mkdir(parents=True, exist_ok=True)
            if record_of(new).parent != new:
                record_of(new).replace(record_of(final))
            if final.exists() and final.is_dir():
                final.rename(old)
            new.replace(final)
    shutil.rmtree(work)


def _restore(source: Source, home: Path, work: Path) -> None:
    """Puts back what a killed process had moved aside, and clears its work away."""
    for name in source.makes:
        old, final = work / "old" / name, home / name
        if old.exists() and not final.exists():
            old.rename(final)
    shutil.rmtree(work, ignore_errors=True)


def problems(product: Path) -> list[str] | None:
    """What differs from the record of a fetched folder or file, in words; None where it has no record."""
    record = record_of(product)
    if not record.exists():
        return None
    try:
        expected = json.loads(record.read_text(encoding="utf-8"))["files"].items()
    except (ValueError, KeyError, TypeError, AttributeError):
        return [f"{record.name} is damaged"]
    folder = product if product.is_dir() else product.parent
    wrong = [f"{name} is missing" for name, _ in expected if not (folder / name).is_file()]
    there = [(folder / name, digest) for name, digest in expected if (folder / name).is_file()]
    return wrong + [f"{path.name} was changed" for path, digest in there if digest_of(path) != digest]
