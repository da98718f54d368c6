"""Finding a dataset's folder and reading its files; whatever is wrong is reported in one sentence."""

import gzip
import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

PROJECT = Path(__file__).resolve().parents[2]
SUFFIX = ".jsonl.gz"
# Options of pandas.read_csv: everything is read as text, and blank rows too, so that the index + 1 is a record's row
# as a spreadsheet counts it; bytes that are not UTF-8 become surrogates, which `sound` refuses and names.
CSV = {
    "header": None,
    "dtype": object,
    "keep_default_na": False,
    "skip_blank_lines": False,
    "encoding_errors": "surrogateescape",
}


class DataError(ValueError):
    """Something is wrong with the data: the message has what was found, what is allowed and what to do."""


@dataclass(frozen=True)
class Row:
    """A record, its id, and its place in the files for messages."""

    record: dict
    id: str
    place: str


def homes(data_home: str | Path | None = None) -> list[Path]:
    """The folders where datasets are looked for: `data_home`, else $DATA_HOME if set; then data/raw of the project."""
    first = data_home or os.environ.get("DATA_HOME")
    return [*([Path(first).expanduser()] if first else []), PROJECT / "data" / "raw"]


def find(name: str, data_home: str | Path | None = None, access: str = "") -> Path:
    """The folder `name` in the first home that has it.

    Args:
        access: how to get its files, where they are given only on request.
    Raises:
        DataError: no home has it.
    """
    places = [home / name for home in homes(data_home)]
    for place in places:
        if place.is_dir():
            return place
    looked = " and ".join(str(place) for place in places)
    raise DataError(
        f"no folder {name!r} of data: looked for {looked}; set DATA_HOME (or the parameter data_home) to the folder "
        f"that holds {name}/, or use the dataset 'planted', which needs no download" + (f". {access}" if access else "")
    )


def listing(folder: Path) -> str:
    """The first names in a folder, for messages."""
    return ", ".join(sorted(ascii(place.name)[1:-1] for place in folder.glob("*"))[:8]) or "nothing"


@contextmanager
def soundly_read(path: Path) -> Iterator[None]:
    """While a file is read, what is wrong with it (not readable, damaged, no CSV) becomes a DataError."""
    try:
        yield
    except EOFError:
        raise DataError(f"{path} ends too early: the file is cut off; copy or download it again") from None
    except (gzip.BadGzipFile, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged ({error}); copy or download it again") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    except pd.errors.EmptyDataError:
        raise DataError(f"{path} is empty; copy or download it again") from None
    except pd.errors.ParserError as error:
        raise DataError(
            f"{path} is no CSV ({str(error).strip()}); a delimiter in a field needs quotation marks"
        ) from None


def csv_chunks(path: Path, size: int) -> Iterator[pd.DataFrame]:
    """The rows of a CSV file that are not blank, some at a time, as text; the index is the row, from 1."""
    with soundly_read(path), pd.read_csv(path, chunksize=size, **CSV) as chunks:
        for chunk in chunks:
            chunk.index += 1
            yield chunk[(chunk != "").any(axis=1)]


def read_bytes(path: Path) -> bytes:
    """A file's content, unpacked where it is gzip (by its name)."""
    with soundly_read(path):
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise DataError(f"{path} is missing; its folder has {listing(path.parent)}") from None
        return gzip.decompress(content) if path.suffix == ".gz" else content


def decode(content: bytes, where: str) -> str:
    """UTF-8 text without a NUL."""
    return sound(content.decode("utf-8", "surrogateescape"), where)


def sound(text: str, where: str) -> str:
    """The text itself, where it can be written into a page.

    Raises:
        DataError: a NUL, half a surrogate pair, or bytes that were not UTF-8 (read by "surrogateescape").
    """
    if "\0" in text:
        raise DataError(f"{where} holds a NUL character, which is no text; take it out")
    if not text.isascii() and re.search("[\ud800-\udfff]", text):
        raise DataError(f"{where} is not UTF-8, or holds half a surrogate pair; save the file as UTF-8")
    return text


def about(folder: Path) -> dict:
    """What dataset.json holds; DataError where it is missing or no JSON object."""
    path = folder / "dataset.json"
    return record_of(decode(read_bytes(path), str(path)), str(path), "it must hold an object")


def description(folder: Path) -> dict:
    """What dataset.json holds: at least its list of classes.

    Raises:
        DataError: missing, no JSON, or without at least two classes.
    """
    found = about(folder)
    classes = found.get("classes")
    if not isinstance(classes, list) or len(classes) < 2 or not all(isinstance(name, str) for name in classes):
        raise DataError(f"{folder / 'dataset.json'} has classes = {classes!r}; allowed: a list of at least two names")
    return found


def rows(folder: Path, split: str) -> list[Row]:
    """The records of a split, in the order of its file, without empty lines; ids default to "<split>-<line>".

    Raises:
        DataError: file missing, empty or damaged; a line that is not a JSON object in UTF-8.
    """
    path, found = folder / f"{split}{SUFFIX}", []
    for number, line in enumerate(read_bytes(path).split(b"\n"), start=1):
        if line.strip():
            where = f"{path}, line {number},"
            record = record_of(decode(line, where), where)
            found.append(Row(record, str(record.get("id", f"{split}-{number}")), f"{path.name}, line {number}"))
    if not found:
        raise DataError(f"{path} is empty: found no record; it needs one JSON object a line")
    return found


def rows_of(folder: Path, splits: Sequence[str]) -> dict[str, list[Row]]:
    """The records of each split.

    Raises:
        DataError: as `rows`; two records with one id.
    """
    found, seen = {split: rows(folder, split) for split in splits}, {}
    for row in (row for split in splits for row in found[split]):
        if row.id in seen:
            raise DataError(f"{row.place}: the id {row.id[:80]!r} is that of {seen[row.id].place} too; ids must differ")
        seen[row.id] = row
    return found


def record_of(line: str, where: str, advice: str = "each line must be one object") -> dict:
    """The JSON object of a line; where it is none a DataError that starts with `where` and ends in `advice`."""
    record = json_of(line, where, advice)
    if not isinstance(record, dict):
        raise DataError(f"{where} is a JSON {type(record).__name__}; {advice}")
    return record


def json_of(text: str, where: str, advice: str) -> object:
    """The value of a JSON text; DataError as `record_of`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is no JSON ({str(error)[:80]}); {advice}") from None


def text_of(row: Row, field: str = "text") -> str:
    """The text of a record.

    Raises:
        DataError: missing, not a string, with a NUL or half a surrogate pair.
    """
    text = row.record.get(field)
    if not isinstance(text, str):
        seen = "is missing" if text is None else f"is of type {type(text).__name__}"
        raise DataError(f"{row.place}: {field!r} {seen}; every record needs one, a string")
    return sound(text, f"{row.place}: {field!r}")


def label_of(row: Row, classes: Sequence[str]) -> int:
    """The label of a record: the number of its class.

    Raises:
        DataError: missing, not a whole number, or out of range.
    """
    label = row.record.get("label")
    allowed = f"allowed: whole numbers from 0 to {len(classes) - 1} (the {len(classes)} classes of dataset.json)"
    if label is None:
        raise DataError(f"{row.place}: 'label' is missing; {allowed}")
    if not isinstance(label, int) or isinstance(label, bool) or not 0 <= label < len(classes):
        raise DataError(f"{row.place}: the label is {str(label)[:40]!r}; {allowed}")
    return label


def spans_of(row: Row, tokens: int, field: str = "rationale") -> tuple[tuple[int, int], ...] | None:
    """The spans [start, end) of tokens that a record names, in order, without empty ones; None where it names none.

    Raises:
        DataError: not a list of pairs of whole numbers within the text.
    """
    found = row.record.get(field) or []
    whole = isinstance(found, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(type(bound) is int for bound in pair) for pair in found
    )
    if not whole or not all(0 <= start <= end <= tokens for start, end in found):
        raise DataError(
            f"{row.place}: {field!r} is {str(found)[:60]}; allowed: a list of [start, end) pairs of tokens, of which "
            f"this text has {tokens:,}"
        )
    return tuple(sorted((start, end) for start, end in found if start < end)) or None
