"""Writing a dataset in the form that the loaders read: the same bytes for the same texts, whenever and wherever."""

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from lib.datasets.fetching.disk import told_of_full_disk
from lib.datasets.fetching.sources import Source
from lib.datasets.files import SUFFIX, DataError, decode, record_of


def write_split(to: Path, split: str, records: Iterable[dict]) -> int:
    """Writes `<split>.jsonl.gz`, one record a line, and gives their number."""
    path, count = to / f"{split}{SUFFIX}", 0
    to.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        for record in records:
            line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
            with told_of_full_disk(path):
                packed.write(line)
            count += 1
    if not count:
        raise DataError(f"{path.name} of {to.name} would be empty: no text was found in the official files")
    return count


def write_description(to: Path, source: Source, counts: dict[str, int], title: str = "", note: str = "") -> None:
    """Writes `dataset.json`, which says where fewer or more texts were found than are published."""
    other = {split: n for split, n in counts.items() if n != source.texts.get(split, n)}
    notes = [source.note, note, *(f"{split} has {n:,} texts of {source.texts[split]:,}" for split, n in other.items())]
    about = {
        "name": to.name,
        "title": title or source.title,
        "task": source.task,
        **({"classes": list(source.classes)} if source.classes else {}),
        "citation": source.citation,
        "licence": source.licence,
        "complete": not other,
        "note": "; ".join(filter(None, notes)),
    }
    text = json.dumps({key: value for key, value in about.items() if value != ""}, indent=1, ensure_ascii=False)
    (to / "dataset.json").write_text(text + "\n", encoding="utf-8", newline="\n")


def write_dataset(to: Path, source: Source, splits: dict[str, Iterable[dict]], title: str = "", note: str = ""):
    """A whole folder."""
    counts = {split: write_split(to, split, records) for split, records in splits.items()}
    write_description(to, source, counts, title, note)


def one(unpacked: Path, *patterns: str) -> Path:
    """The single file that matches the first pattern which any file matches.

    Raises:
        DataError: none, or more than one.
    """
    for pattern in patterns:
        found = [path for path in sorted(unpacked.rglob(pattern)) if path.is_file()]
        if len(found) == 1:
            return found[0]
        if found:
            raise DataError(f"the archive has {len(found)} files {pattern!r}, where one is expected")
    there = ", ".join(sorted(str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file())[:5])
    raise DataError(f"the archive has no file {' or '.join(map(repr, patterns))}; it has {there or 'nothing'}")


def folder(unpacked: Path, name: str) -> Path:
    """The folder of that name, at whatever depth; DataError where there is none."""
    found = sorted(path for path in unpacked.rglob(name) if path.is_dir())
    if not found:
        raise DataError(f"the archive has no folder {name!r}; it is not what it should be")
    return found[0]


def text_of(path: Path) -> str:
    """The whole of a text file, strictly UTF-8."""
    return decode(path.read_bytes(), f"{path.parent.name}/{path.name}")


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """(where it stands, the line without its end) of every line that is not blank, strictly UTF-8."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                where = f"{path.parent.name}/{path.name}, line {number},"
                yield where, decode(line, where).rstrip("\r\n")


def objects_of(path: Path) -> Iterator[tuple[str, dict]]:
    """(where it stands, the object) of every line of a file of JSON lines."""
    for where, line in lines_of(path):
        yield where, record_of(line, where, "the archive is not what it should be")
