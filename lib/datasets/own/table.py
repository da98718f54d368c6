"""From a file of one's own (CSV, TSV, JSON lines, Parquet) to its columns, whatever its encoding and delimiter."""

import codecs
import csv
import io
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lib.datasets import files
from lib.datasets.files import DataError

FORMATS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "delimited"),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "JSON lines"),
    ".parquet": "Parquet",
}
DELIMITERS = ",;\t|"
MOST_BYTES = 2 * 1024**3  # of a file, which is read whole
MOST_CHARACTERS = 1_000_000  # of a field: far beyond what the models read, and what a lost quotation mark makes
MARKS = {  # byte order marks, the longer before the shorter that it starts with
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# What spreadsheet programs write where it is not UTF-8; among all that Python knows a short text fits many.
CODE_PAGES = [f"cp{number}" for number in (*range(1250, 1258), 932, 949)] + ["gb18030", "big5"]
SAMPLE = 1_000_000  # bytes from which the encoding is guessed


@dataclass(frozen=True)
class Table:
    """The named columns of a file, each with a value per record; `rows` has the line on which each ends."""

    path: Path
    columns: dict[str, list]
    rows: Sequence[int]
    notes: tuple[str, ...] = ()
    kind: str = "delimited"

    def place(self, record: int) -> str:
        return f"{self.path.name}, {'row' if self.kind == 'Parquet' else 'line'} {self.rows[record]}"


def ending(path: Path) -> tuple[str, str]:
    """(stem, ending) of a file's name, its .gz taken off: ("my", ".csv") of my.csv.gz.

    Raises:
        DataError: an ending that is not in FORMATS.
    """
    name = Path(path.name.removesuffix(".gz"))
    suffix = name.suffix.lower()
    if suffix not in FORMATS:
        raise DataError(f"{path} ends in {suffix or 'nothing'}; allowed: {', '.join(FORMATS)}, and each with .gz")
    return name.stem, suffix


def has_known_ending(path: Path) -> bool:
    return Path(path.name.removesuffix(".gz")).suffix.lower() in FORMATS


def refuse_unprintable(path: Path) -> None:
    """Raises DataError for a name that cannot be shown: bytes that are not UTF-8, line breaks and the like."""
    if not str(path).isprintable():
        raise DataError(f"the name {str(path)!a} has characters that cannot be shown; rename the file or its folder")


def exists(path: Path) -> bool:
    """Whether there is something of that name; DataError where that cannot even be asked."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    return True


def refuse_irregular(path: Path) -> None:
    """Raises DataError for what is no regular file: it is not opened, since a pipe may never end."""
    mode = path.stat().st_mode
    kinds = {
        stat.S_ISDIR: "folder: name a file in it",
        stat.S_ISFIFO: "pipe: write it into a file first",
        stat.S_ISSOCK: "socket",
        stat.S_ISCHR: "device",
        stat.S_ISBLK: "device",
    }
    for is_kind, said in kinds.items():
        if is_kind(mode):
            raise DataError(f"{path} is a {said}; allowed: a file in {', '.join(FORMATS)}")


def content_of(path: Path) -> bytes:
    """A file's bytes, unpacked where it is gzip.

    Raises:
        DataError: no regular file, too large, empty, not readable, or a damaged gzip file.
    """
    refuse_irregular(path)
    if (size := path.stat().st_size) > MOST_BYTES:
        most = MOST_BYTES // 1024**3
        raise DataError(f"{path} has {size / 1024**3:.1f} GiB; allowed: at most {most} GiB, so take a part of it")
    content = files.read_bytes(path)
    if not content:
        raise DataError(f"{path} is empty; {ROW}")
    return content


ROW = "it needs one record for each text, with its label"


def table(path: Path, content: bytes) -> Table:
    """The columns of a file.

    Raises:
        DataError: what is no text or not in the form that the file's ending says; a column's name twice; no record.
    """
    kind = FORMATS[ending(path)[1]]
    if kind == "Parquet":
        found = _parquet(path, content)
    else:
        text, notes = _text(path, content)
        found = _lines(path, text, notes) if kind == "JSON lines" else _delimited(path, text, notes)
    if not len(found.rows):
        raise DataError(f"{path} has no record, only names of columns; {ROW}")
    return found


def _text(path: Path, content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file, with a note where its encoding is not told by the file itself."""
    marked = next((name for mark, name in MARKS.items() if content.startswith(mark)), None)
    try:
        text, notes = content.decode(marked or "utf-8"), ()
    except UnicodeDecodeError as error:
        if marked:
            said = f"byte {error.object[error.start]:#04x} at {error.start:,}"
            raise DataError(
                f"{path} starts as {marked.upper().removesuffix('-SIG')} and is not: {said}; save it as UTF-8"
            ) from None
        text, notes = _guessed(path, content)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(f"{path}, line {line:,}, holds a NUL character, which is no text; save the file as UTF-8")
    return text, notes


def _guessed(path: Path, content: bytes) -> tuple[str, tuple[str, ...]]:
    from charset_normalizer import from_bytes  # takes a moment, and few files need it

    lines = (line for line in content.split(b"\n") if not line.isascii())  # the others tell nothing
    best = from_bytes(b"\n".join(lines)[:SAMPLE], cp_isolation=CODE_PAGES).best() if b"\0" not in content else None
    try:
        text = content.decode(best.encoding) if best else ""
    except UnicodeDecodeError:
        best = None
    if best is None:
        raise DataError(f"{path} is not UTF-8, nor in any other encoding that is known here; save it as UTF-8")
    words = list(dict.fromkeys(word.strip('",;|.') for word in text[:SAMPLE].split() if not word.isascii()))
    return text, (
        f"{path.name} is not UTF-8. It was read as {best.encoding}, a guess from its bytes, which makes it say "
        f"{', '.join(repr(word[:30]) for word in words[:3])}: if that is wrong, save the file as UTF-8.",
    )


def _delimited(path: Path, text: str, notes: tuple[str, ...]) -> Table:
    lines = (line.strip() for line in io.StringIO(text))
    header = next(filter(None, lines), "")
    if not header:
        raise DataError(f"{path} is empty; {ROW}")
    with files.csv_fields_of(MOST_CHARACTERS):
        (_, names), *rows = _rows(path, text, _delimiter(path, header))
    names = [name.strip() for name in names]
    for number, row in rows:
        if len(row) != len(names):
            raise DataError(
                f"{path.name}, line {number}: {len(row)} field{'s' * (len(row) != 1)} where the first row has "
                f"{len(names)}; a field that holds the delimiter must stand in quotation marks"
            )
    _refuse_twice(path, [name for name in names if name])  # an unnamed one is nobody's
    columns = {name: [row[place] for _, row in rows] for place, name in enumerate(names) if name}
    return Table(path, columns, [number for number, _ in rows], notes)


def _delimiter(path: Path, header: str) -> str:
    if ending(path)[1] == ".tsv":
        return "\t"
    try:
        return csv.Sniffer().sniff(header[:10_000], DELIMITERS).delimiter
    except csv.Error:
        return ","  # one column alone


def _rows(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(line on which it ends, fields) of each row that is not blank."""
    reader, before = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), 0
    try:
        for row in reader:
            if any(field.strip() for field in row):
                yield reader.line_num, row
            before = reader.line_num
    except csv.Error as error:
        place = f"{path.name}, line {before + 1}:"
        if "limit" in str(error):
            said = f"a field has more than {MOST_CHARACTERS:,} characters, or its quotation mark is never closed"
        elif "end of data" in str(error):
            said = "a quotation mark is opened and never closed"
        else:
            said = "a quotation mark stands within a field in quotation marks; write it twice there"
        raise DataError(f"{place} {said}") from None


def _refuse_twice(path: Path, names: list[str]) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"{path.name} has {names.count(twice[0])} columns {twice[0][:40]!r}; names must differ")


def _lines(path: Path, text: str, notes: tuple[str, ...]) -> Table:
    """The fields of the records, one JSON object a line; one that a record lacks is None there."""
    if text.lstrip().startswith("["):
        raise DataError(f"{path} is one JSON array; allowed: JSON lines, one object a line")
    records = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            records.append((number, files.record_of(line, f"{path}, line {number},")))
    if not records:
        raise DataError(f"{path} is empty; {ROW}")
    names = dict.fromkeys(name for _, record in records for name in record)
    columns = {name: [record.get(name) for _, record in records] for name in names}
    return Table(path, columns, [number for number, _ in records], notes, "JSON lines")


def _parquet(path: Path, content: bytes) -> Table:
    import pandas as pd

    try:
        frame = pd.read_parquet(io.BytesIO(content))
    except ImportError:
        raise DataError(
            f"{path} is Parquet, which is read by a package that is not installed: pip install pyarrow, or save the "
            "file as CSV"
        ) from None
    except Exception as error:  # each engine has errors of its own
        raise DataError(f"{path} is no sound Parquet file ({str(error).splitlines()[0][:80]})") from None
    _refuse_twice(path, [str(name) for name in frame.columns])
    frame = frame.astype(object).where(frame.notna(), None)
    columns = {str(name): frame[name].tolist() for name in frame.columns}
    return Table(path, columns, range(1, len(frame) + 1), kind="Parquet")
