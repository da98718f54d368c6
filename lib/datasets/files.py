"""Finding a dataset's folder and reading its files, so that whatever is wrong is said in one sentence."""

import csv
import gzip
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SUFFIX = ".jsonl.gz"


class DataError(ValueError):
    """Something is wrong with the data: the message says what was found, what is allowed and what to do."""


@dataclass(frozen=True)
class Row:
    """One line of a file: its record, and where it stands."""

    record: dict
    split: str
    line: int

    @property
    def id(self) -> str:
        """The record's own `id`, else "<split>-<line number>"."""
        return str(self.record.get("id", f"{self.split}-{self.line}"))

    @property
    def place(self) -> str:
        return f"{self.split}{SUFFIX}, line {self.line}"


def homes(data_home: str | Path | None = None) -> list[Path]:
    """The folders where datasets are looked for: `data_home`, else $DATA_HOME if set; then data/raw of the project."""
    first = data_home or os.environ.get("DATA_HOME")
    return [*([Path(first).expanduser()] if first else []), PROJECT / "data" / "raw"]


def find(name: str, data_home: str | Path | None = None, access: str = "") -> Path:
    """The folder `name` in the first home that has it.

    Args:
        access: how its files are had, where a person has to ask for them.
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


def read_bytes(path: Path) -> bytes:
    """A file's content, unpacked where it is gzip (by its name)."""
    with soundly_read(path):
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            there = ", ".join(sorted(other.name for other in path.parent.glob("*"))[:8]) or "nothing"
            raise DataError(f"{path} is missing; its folder has {there}") from None
        return gzip.decompress(content) if path.suffix == ".gz" else content


@contextmanager
def soundly_read(path: Path) -> Iterator[None]:
    """While a file is read, what is wrong with it (not readable, damaged gzip) becomes a DataError that says so."""
    try:
        yield
    except EOFError:
        raise DataError(f"{path} ends too early: the gzip file is cut off; copy or download it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is no sound gzip file ({error}); copy or download it again") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


def decode(content: bytes, where: str) -> str:
    """UTF-8 text without a NUL."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where} is not UTF-8: byte {error.object[error.start]:#04x}; save the file as UTF-8"
        ) from None
    if "\0" in text:
        raise DataError(f"{where} holds a NUL character, which is no text; take it out")
    return text


def description(folder: Path) -> dict:
    """What dataset.json says: at least its list of classes.

    Raises:
        DataError: missing, no JSON, or without at least two classes.
    """
    found = about(folder)
    classes = found.get("classes")
    if not isinstance(classes, list) or len(classes) < 2 or not all(isinstance(name, str) for name in classes):
        raise DataError(f"{folder / 'dataset.json'} has classes = {classes!r}; allowed: a list of at least two names")
    return found


def about(folder: Path) -> dict:
    """What dataset.json says; DataError where it is missing or no JSON object."""
    path = folder / "dataset.json"
    try:
        found = json.loads(decode(read_bytes(path), str(path)))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is no JSON ({error}); it must hold an object") from None
    if not isinstance(found, dict):
        raise DataError(f"{path} is a JSON {type(found).__name__}; it must hold an object")
    return found


def rows(folder: Path, split: str) -> Iterator[Row]:
    """The records of a split, in the order of its file; empty lines are passed over.

    Raises:
        DataError: file missing, empty or damaged; a line that is not a JSON object in UTF-8.
    """
    path = folder / f"{split}{SUFFIX}"
    content, found = read_bytes(path), False
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            found, where = True, f"{path}, line {number},"
            yield Row(record_of(decode(line, where), where), split, number)
    if not found:
        raise DataError(f"{path} is empty: found no record; it needs one JSON object a line")


def record_of(line: str, where: str, advice: str = "each line must be one object") -> dict:
    """The JSON object of a line; where it is none a DataError that starts with `where` and ends in `advice`."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is no JSON ({str(error)[:80]}); {advice}") from None
    if not isinstance(record, dict):
        raise DataError(f"{where} is a JSON {type(record).__name__}; {advice}")
    return record


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


def sound(text: str, where: str) -> str:
    """The text itself, where it can be written into a page; DataError for a NUL or half a surrogate pair."""
    if "\0" in text:
        raise DataError(f"{where} holds a NUL character, which is no text; take it out")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise DataError(f"{where} holds half a surrogate pair, which is no text; take it out")
    return text


@contextmanager
def csv_fields_of(characters: int) -> Iterator[None]:
    """CSV fields of up to so many characters are read; the limit is global, so it is put back afterwards."""
    before = csv.field_size_limit(characters)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def label_of(row: Row, classes: list[str]) -> int:
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


def refuse_duplicate_ids(all_rows: list[Row]) -> None:
    """Raises DataError, naming both places, if two records have one id."""
    seen: dict[str, Row] = {}
    for row in all_rows:
        if row.id in seen:
            raise DataError(f"{row.place}: the id {row.id[:80]!r} is that of {seen[row.id].place} too; ids must differ")
        seen[row.id] = row
