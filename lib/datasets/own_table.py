"""Your own file (CSV, TSV, JSON lines, Parquet): how it is found, decoded and read as a table."""

import codecs
import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lib.datasets import files
from lib.datasets.files import PROJECT, DataError, homes

FORMATS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "CSV"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "JSON lines"),
    ".parquet": "Parquet",
}
SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "development", "val", "valid", "validation"), "dev"),
    **dict.fromkeys(("test", "testing"), "test"),
}
DELIMITERS = ",;\t|"
# What spreadsheet programs write where it is not UTF-8; a short text fits many of Python's encodings.
CODE_PAGES = [f"cp{number}" for number in (*range(1250, 1258), 932, 949)] + ["gb18030", "big5"]
SAMPLE = 1_000_000  # bytes from which the encoding is guessed
LISTED = 12  # names of columns in a message
NEEDS = "it needs one record for each text, with its label"


@dataclass(frozen=True)
class Table:
    """The records of a file.

    kind   its format: CSV, JSON lines or Parquet
    frame  named columns of Python objects, None where a value is missing. The index is the record's row as a
           spreadsheet counts it, the names of the columns being row 1; of JSON lines its line; of Parquet from 1
    """

    path: Path
    kind: str
    frame: pd.DataFrame
    notes: tuple[str, ...]

    def place(self, row: int) -> str:
        """The file's name and a row's number, for a message."""
        return f"{self.path.name}, {'line' if self.kind == 'JSON lines' else 'row'} {row}"

    def listed(self) -> str:
        """The columns, for a message."""
        names = [repr(name[:40]) for name in self.frame.columns]
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        return f"its columns: {', '.join(names[:LISTED]) or 'none'}{more}"


def ending(path: Path) -> tuple[str, str]:
    """("my", ".csv") of my.csv.gz: stem and ending of a file's name; DataError for one that is not in FORMATS."""
    name = Path(path.name.removesuffix(".gz"))
    suffix = name.suffix.lower()
    if suffix not in FORMATS:
        raise DataError(f"{path} ends in {suffix or 'nothing'}; allowed: {', '.join(FORMATS)}, and each with .gz")
    return name.stem, suffix


def find(data: str, data_home: str | Path | None = None) -> dict[str, Path]:
    """The files of `data` by split, or {"": file} where one file holds them all; DataError where there is none."""
    if re.match(r"[a-z][a-z0-9+]+://", data):
        raise DataError(f"{data} is an address; allowed: a file, so download it first")
    if not data.isprintable():
        raise DataError(f"the name {data!a} has characters that cannot be shown; rename the file or its folder")
    given = Path(data).expanduser()
    places = [given] if given.is_absolute() else [home / given for home in (Path.cwd(), PROJECT, *homes(data_home))]
    for place in dict.fromkeys(place.absolute() for place in places):
        with files.soundly_read(place):
            if place.exists() and not (place.is_file() and stem_of(place)[1]):
                return {"": place}
            if place.suffix and (found := _siblings(place)):
                return found
    folder = next((place.parent for place in places if place.parent.is_dir()), None)
    there = files.listing(folder) if folder else "nothing"
    raise DataError(f"there is no file {data}; {folder or 'its folder'} has {there}")


def stem_of(path: Path) -> tuple[str, str]:
    """The name that the files of all splits share, and the split that this file's name has: my, train of my.train.csv.

    The split is "" where the name has none.
    """
    stem = ending(path)[0]
    split = SPLITS.get(re.split(r"[._-]", stem)[-1].lower(), "")
    return (re.sub(r"[._-]?[A-Za-z]+$", "", stem) if split else stem), split


def _siblings(place: Path) -> dict[str, Path]:
    """The files beside a place that are its splits: of my.csv or my.train.csv, my.train.csv and so on; {} for none.

    DataError where two files are of one split, or train or test is missing.
    """
    (shared, own_split), found = stem_of(place), {}
    for name in SPLITS:
        for between in (".", "_", "-") if shared else ("",):
            path = place.with_name(f"{shared}{between}{name}{place.name[len(ending(place)[0]) :]}")
            if path.exists():
                found.setdefault(SPLITS[name], []).append(path)
    if own_split and place.exists() and len(found) == 1:
        return {"": place}  # alone: a name like any other
    for split, paths in found.items():
        if len(paths) > 1:
            raise DataError(f"{paths[0].name} and {paths[1].name} are both of {split}; allowed: one of them")
    if found and not {"train", "test"} <= set(found):
        there = ", ".join(path.name for [path] in found.values())
        raise DataError(f"of the files of splits there is {there}; allowed: at least one of train and one of test")
    return {split: found[split][0] for split in ("train", "dev", "test") if split in found}


def table_of(path: Path, content: bytes) -> Table:
    """The table of a file.

    Raises:
        DataError: no text, or not in the form of the file's ending; a column's name twice; no record.
    """
    kind, notes = FORMATS[ending(path)[1]], ()
    if kind == "Parquet":
        frame = _parquet(path, content)
    else:
        text, notes = _text(path, content)
        if not text.strip():
            raise DataError(f"{path} is empty; {NEEDS}")
        frame = _json_lines(path, text) if kind == "JSON lines" else _csv(path, text)
    for name in frame.columns[frame.columns.duplicated()]:
        raise DataError(f"{path.name} has {(frame.columns == name).sum()} columns {name[:40]!r}; names must differ")
    if frame.empty:
        raise DataError(f"{path} has no record, only names of columns; {NEEDS}")
    return Table(path, kind, frame.astype(object).where(frame.notna(), None), notes)


def _text(path: Path, content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file, with a note where its encoding is a guess."""
    utf_16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text, notes = content.decode("utf-16" if utf_16 else "utf-8-sig"), ()
    except UnicodeDecodeError:
        text, notes = _guessed(path, content)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(f"{path}, line {line:,}, holds a NUL character, which is no text; save the file as UTF-8")
    return text, notes


def _guessed(path: Path, content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file that is not UTF-8, by its lines beyond ASCII, and a note with words by which to check it."""
    from charset_normalizer import from_bytes  # takes a moment, and few files need it

    foreign = b"\n".join(line for line in content.split(b"\n") if not line.isascii())
    best = from_bytes(foreign[:SAMPLE], cp_isolation=CODE_PAGES).best()
    try:
        text = content.decode(best.encoding if best else "ascii")
    except UnicodeDecodeError:
        unknown = "is not UTF-8, nor in any other encoding that is known here; save it as UTF-8"
        raise DataError(f"{path} {unknown}") from None
    words = list(dict.fromkeys(word.strip('",;|.')[:30] for word in text[:SAMPLE].split() if not word.isascii()))
    return text, (
        f"{path.name} is not UTF-8. It was read as {best.encoding}, a guess from its bytes, with words such as "
        f"{', '.join(map(repr, words[:3]))}: if that is wrong, save the file as UTF-8.",
    )


def _csv(path: Path, text: str) -> pd.DataFrame:
    body = text.lstrip(" \r\n")
    skipped, header = text[: len(text) - len(body)].count("\n"), re.match(r"[^\r\n]*", body)[0]
    try:
        delimiter = "\t" if ending(path)[1] == ".tsv" else csv.Sniffer().sniff(header[:10_000], DELIMITERS).delimiter
    except csv.Error:
        delimiter = ","  # one column alone
    with files.soundly_read(path):
        frame = pd.read_csv(io.StringIO(body), sep=delimiter, **files.CSV)
    names = frame.iloc[0].str.strip()
    frame.index += skipped + 1
    body = frame.iloc[1:]
    filled = body.apply(lambda column: column.str.strip() != "").any(axis=1)
    return body.loc[filled, (names != "").to_numpy()].set_axis(names[names != ""].tolist(), axis=1)


def _json_lines(path: Path, text: str) -> pd.DataFrame:
    lines = ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())
    records = {number: files.record_of(line, f"{path}, line {number},") for number, line in lines}
    return pd.DataFrame(list(records.values()), index=list(records), dtype=object)


def _parquet(path: Path, content: bytes) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(io.BytesIO(content))
    except Exception as error:  # each engine has errors of its own
        raise DataError(f"{path} is no sound Parquet file ({str(error).splitlines()[0][:80]})") from None
    return frame.set_axis(map(str, frame.columns), axis=1).set_axis(range(1, len(frame) + 1))
