"""Writing what the loaders read, splits of texts and word vectors: the same bytes for the same content everywhere."""

import gzip
import json
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from lib.datasets.files import SUFFIX, DataError
from tools.fetch.disk import disk_errors
from tools.fetch.sources import Source

SIZE = 300  # numbers of a word vector
LONGEST = 64  # characters of a word: each word of the file takes the space of the longest


def write_dataset(to: Path, source: Source, splits: dict[str, Iterable[dict]], title: str = "") -> None:
    """Writes a folder of splits, and its dataset.json, which notes splits with more or fewer texts than published."""
    to.mkdir(parents=True, exist_ok=True)
    counts = {split: _write_split(to / f"{split}{SUFFIX}", records) for split, records in splits.items()}
    other = {split: count for split, count in counts.items() if count != source.texts.get(split, count)}
    notes = [source.note, *(f"{split} has {n:,} texts of {source.texts[split]:,}" for split, n in other.items())]
    about = {
        "name": to.name,
        "title": title or source.title,
        "task": source.task,
        "classes": list(source.classes),
        "citation": source.citation,
        "licence": source.licence,
        "complete": not other,
        "note": "; ".join(filter(None, notes)),
    }
    text = json.dumps(
        {key: value for key, value in about.items() if value not in ("", [])}, indent=1, ensure_ascii=False
    )
    (to / "dataset.json").write_text(text + "\n", encoding="utf-8", newline="\n")


def _write_split(path: Path, records: Iterable[dict]) -> int:
    """Writes one record a line and returns their number."""
    with path.open("xb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        count = 0
        for record in records:
            line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
            with disk_errors(path):
                packed.write(line)
            count += 1
    if not count:
        raise DataError(f"{path.name} of {path.parent.name} would be empty: no text was found in the official files")
    return count


def write_vectors(text: Path, to: Path, kind: np.dtype) -> None:
    """Turns word vectors in text form into an .npz of `words` and `vectors`, which loads many times faster.

    The text is read twice, for the words and for the numbers, so that memory never holds all numbers. Words that are
    not UTF-8 or longer than 64 characters are left out; no vocabulary has them.
    """
    words = [word for _, word, _ in _rows(text)]
    if not words:
        raise DataError(f"{text.name} has no word vectors of {SIZE} numbers")
    to.parent.mkdir(parents=True, exist_ok=True)
    with disk_errors(to), zipfile.ZipFile(to, "x", allowZip64=True) as packed:
        with packed.open(zipfile.ZipInfo("words.npy"), "w", force_zip64=True) as file:
            np.lib.format.write_array(file, np.array(words), allow_pickle=False)
        with packed.open(zipfile.ZipInfo("vectors.npy"), "w", force_zip64=True) as file:
            about = {"descr": kind.str, "fortran_order": False, "shape": (len(words), SIZE)}
            np.lib.format.write_array_header_2_0(file, about)
            for number, _, fields in _rows(text):
                row = np.array(fields, dtype="S").astype(np.float32).astype(kind)
                if not np.isfinite(row).all():
                    raise DataError(f"{text.name}, line {number}: NaN, infinity or too large; allowed: finite numbers")
                file.write(row.tobytes())


def _rows(text: Path) -> Iterator[tuple[int, str, list[bytes]]]:
    """(line, word, its numbers as text) of each word that is kept; a first line of counts is skipped."""
    with text.open("rb") as file:
        for number, line in enumerate(file, start=1):
            fields = line.rstrip().split(b" ")
            if number == 1 and len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit():
                continue
            if len(fields) <= SIZE:
                seen = f"{len(fields) - 1} numbers after {fields[0][:30].decode(errors='replace')!r}"
                raise DataError(f"{text.name}, line {number}, has {seen}; allowed: a word and {SIZE} numbers")
            try:
                word = b" ".join(fields[:-SIZE]).decode("utf-8")
            except UnicodeDecodeError:
                continue
            if len(word) <= LONGEST and not word.endswith("\0"):
                yield number, word, fields[-SIZE:]
