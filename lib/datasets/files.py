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

PROJECT = Path(__file__).resolve().parents[2]
SUFFIX = ".jsonl.gz"
Home = str | Path | None  # a folder of datasets; None: $DATA_HOME
MOST = 512  # MB (2**20 bytes) of a file of texts, unpacked: what is read takes several times that in memory


class DataError(ValueError):
    """Something is wrong with the data: the message has what was found, what is allowed and what to do."""


@dataclass(frozen=True)
class Row:
    """A record, its id, and its place in the files for messages."""

    record: dict
    id: str
    place: str

    def text(self, field: str = "text") -> str:
        """The text of a record; DataError where it is missing, no string, or not `sound`."""
        text = self.record.get(field)
        if not isinstance(text, str):
            raise DataError(f"{self.place}: {field!r} is {repr(text)[:60]}; allowed: a string in every record")
        return sound(text, f"{self.place}: {field!r}")

    def label(self, classes: Sequence[str]) -> int:
        """The number of a record's class; DataError where it is missing, no whole number, or out of range."""
        label = self.record.get("label")
        if type(label) is not int or not 0 <= label < len(classes):
            allowed = f"whole numbers from 0 to {len(classes) - 1} (the {len(classes)} classes of dataset.json)"
            raise DataError(f"{self.place}: 'label' is {repr(label)[:60]}; allowed: {allowed}")
        return label


def homes(data_home: str | Path | None = None) -> list[Path]:
    """The folders where datasets are looked for: `data_home`, else $DATA_HOME if set; then data/raw of the project."""
    first = data_home or os.environ.get("DATA_HOME")
    return [*([as_path(first)] if first else []), PROJECT / "data" / "raw"]


def as_path(name: str | Path) -> Path:
    """The path that a person names; DataError for what can be none."""
    try:
        str(name).encode()
        path = Path(name).expanduser()
        path.exists()  # of a name that is too long an error
    except (OSError, RuntimeError, UnicodeEncodeError):
        raise DataError(f"{str(name)[:60]!r} is no path here: it is too long, not UTF-8, or ~ of nobody") from None
    return path


def places_of(name: str, data_home: str | Path | None = None) -> list[Path]:
    """Where the folder `name` is looked for: in the homes; one with a slash, `./mine`, first from the project."""
    return [home / name for home in (*([PROJECT] if "/" in name else []), *homes(data_home))]


def find(name: str, data_home: str | Path | None = None) -> Path:
    """The folder `name` in the first of its places that has it; DataError where none has it."""
    places = places_of(name, data_home)
    for place in filter(os.path.isdir, places):
        return place
    raise DataError(
        f"no folder {name!r} of data: looked for {' and '.join(map(str, places))}; set DATA_HOME (or the parameter "
        f"data_home) to the folder that holds {name}/, or use the dataset 'planted', which needs no download"
    )


def find_file(name: str | Path, data_home: str | Path | None = None, allowed: str = "a file") -> Path:
    """A file by its path from here, the project, a home of data or its folder vectors/; DataError where none has it."""
    of_homes = [folder for home in homes(data_home) for folder in (home, home / "vectors")]
    places = [folder / as_path(name) for folder in (Path.cwd(), PROJECT, *of_homes)]
    for place in filter(os.path.isfile, places):
        return place
    for place in filter(os.path.exists, places):
        raise DataError(f"{place} is a folder, a pipe or a device; allowed: {allowed}")
    looked = ", ".join(dict.fromkeys(map(str, places)))
    raise DataError(f"there is no file {str(name)!r}: looked for {looked}; allowed: {allowed}")


@contextmanager
def soundly_read(path: Path) -> Iterator[None]:
    """While a file is read, an error that says that it is damaged or not readable becomes a DataError."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is damaged or cut off ({error}); copy or download it again") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


def read_bytes(path: Path, most: int = MOST) -> bytes:
    """A file's content, unpacked where its name says gzip; DataError: damaged, empty, or more than `most` MB."""
    with soundly_read(path):
        size = path.stat().st_size
        if not size:  # as /proc says of its files, which may never end
            raise DataError(f"{path} is empty")
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            content = file.read(most * 2**20 + 1) if size <= most * 2**20 else b""
    if max(size, len(content)) > most * 2**20:
        raise DataError(f"{path} has more than {most:,} MB; take a part of it")
    return content


def decode(content: bytes, where: str) -> str:
    """UTF-8 text without a NUL."""
    return sound(content.decode("utf-8", "surrogateescape"), where)


def sound(text: str, where: str) -> str:
    """The text itself; DataError for a NUL, half a surrogate pair, or bytes that were not UTF-8 ("surrogateescape")."""
    if not text.isascii() and re.search("[\ud800-\udfff]", text):
        raise DataError(f"{where} is not UTF-8, or holds half a surrogate pair; save the file as UTF-8")
    if "\0" in text:
        raise DataError(f"{where} holds a NUL character, which is no text; take it out")
    return text


def about(folder: Path, with_classes: bool = True) -> dict:
    """What dataset.json holds; DataError where it is missing, no JSON object, or without a list of two classes."""
    path = folder / "dataset.json"
    description = record_of(decode(read_bytes(path), str(path)), str(path), "it must hold an object")
    classes = description.get("classes")
    if with_classes and not (isinstance(classes, list) and len(classes) > 1):
        raise DataError(f"{path} has classes = {classes!r}; allowed: a list of at least two names")
    return description


def rows(folder: Path, splits: Sequence[str]) -> dict[str, list[Row]]:
    """The records of each split, in the order of its file; an id that is not given is "<split>-<line>"."""
    records = {}
    for split in splits:
        path, records[split] = folder / f"{split}{SUFFIX}", []
        for number, line in enumerate(read_bytes(path).split(b"\n"), start=1):
            if line.strip():
                place = f"{path.name}, line {number}"
                record = record_of(decode(line, place), place)
                records[split].append(Row(record, str(record.get("id", f"{split}-{number}")), place))
        if not records[split]:
            raise DataError(f"{path} is empty; it needs one JSON object a line")
    return records


def record_of(line: str, where: str, advice: str = "each line must be one object") -> dict:
    """The JSON object of a line; where it is none a DataError that starts with `where` and ends in `advice`."""
    try:
        record = json.loads(line)
        if "\\u" in line:  # an escape may be half a surrogate pair, which is no text
            json.dumps(record, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is no JSON ({str(error)[:80]}); {advice}") from None
    if not isinstance(record, dict):
        raise DataError(f"{where} is a JSON {type(record).__name__}; {advice}")
    return record
