"""One's own text as a dataset: a file (CSV, TSV, JSON lines, Parquet), its columns of texts and labels, its splits."""

import codecs
import csv
import hashlib
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.datasets import files, text
from lib.datasets.assembly import SIZES, Draft, Spec, draft_of, drawn
from lib.datasets.files import DataError

ALLOWED = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet")
SPLITS = {"train": "train", "training": "train", "test": "test", "testing": "test"}
SPLITS |= dict.fromkeys(("dev", "development", "val", "valid", "validation"), "dev")
# What spreadsheet programs write where it is not UTF-8; a short text fits many of Python's encodings.
CODE_PAGES = [f"cp{number}" for number in (*range(1250, 1258), 932, 949)] + ["gb18030", "big5"]
MISSING = ("nan", "NaN", "NAN", "NaT", "None", "null", "NULL", "NA", "N/A", "<NA>")  # as programs write it
SHARE = 0.15  # of dev, and of test
PREPARED = "spaCy's English tokens, lower-case, in the sentences of its rule-based splitter; words in at least 2 texts."


class Columns(NamedTuple):
    """The names of the columns of texts, of labels, and of splits ("": there is none)."""

    text: str
    label: str
    split: str = ""


class Own(str):
    """The name of your own text as a dataset, such as "own:reviews-1f3c9a2b", with its file and columns.

    The string has no folder in it and depends on the content alone; file and columns go along to other processes.
    """

    path: Path
    columns: Columns

    def __new__(cls, name: str, path: Path, columns: Columns) -> "Own":
        made = super().__new__(cls, name)
        made.path, made.columns = path, columns
        return made

    def __getnewargs__(self) -> tuple:
        return str(self), self.path, self.columns


def own_text(
    data: str = "", text_column: str = "", label_column: str = "", split_column: str = "", data_home: Path | str = ""
) -> Own | str:
    """Your own file as a dataset; "" where `data` names no file.

    >>> dataset = own_text(data, text_column, label_column) or dataset

    Args:
        data: a file, by its path or its path in a home of data.
        text_column, label_column, split_column: names of columns; "": the ones called text, label and split, else the
            only one that looks like texts and the only one that looks like labels.
    Raises:
        DataError: whatever is wrong with the file, in one sentence.
    """
    given = Columns(text_column, label_column, split_column)
    if not data:
        if any(given):
            raise DataError(f"{' and '.join(filter(None, given))} names a column, but no file is named by data")
        return ""
    path = files.find_file(data, data_home)
    content = files.read_bytes(path)
    columns = _columns(table := _table(path, content), given)
    _records(table, columns)
    return Own(_name(path, content, columns), path, columns)


def spec_of(name: Own) -> Spec:
    """How your own text is prepared."""
    return Spec(name, read, PREPARED, tokens=text.spacy_words, options=SIZES, min_df=2, sentences=True)


def read(spec: Spec, folder: None, options: dict) -> Draft:
    """The draft of your own text; DataError where the file has changed."""
    path, columns = spec.name.path, spec.name.columns
    content = files.read_bytes(path)
    if _name(path, content, columns) != spec.name:
        raise DataError(f"{path} has changed since it was first read; start again")
    classes, records, notes = _records(_table(path, content), columns)
    splits = {}
    for split in ("train", "dev", "test"):
        of_split = records.loc[records["split"] == split, ["id", "text", "label"]].values.tolist()
        splits[split] = [spec.instance(*record) for record in drawn(of_split, split, options, notes)]
    return draft_of(spec, path, {"title": f"One's own text, {path.name}"}, classes, splits, notes)


def _name(path: Path, content: bytes, columns: Columns) -> str:
    """ "own:", the name of the file without its ending, and a digest of content and columns."""
    inside = hashlib.sha256(f"\0{len(content)}\0".encode() + content).hexdigest()
    digest = hashlib.sha256(repr((inside, columns)).encode("utf-8", "backslashreplace")).hexdigest()
    return f"own:{re.sub(r'[^A-Za-z0-9]+', '_', path.name.split('.')[0])[:24].strip('_') or 'text'}-{digest[:8]}"


class Table(NamedTuple):
    """The records of a file: named columns of Python objects, None where a value is missing.

    The index is the record's row as a spreadsheet counts it, names being row 1; of JSON lines its line.
    """

    file: str
    frame: pd.DataFrame
    notes: tuple[str, ...]

    def refuse(self, column: str, wrong: pd.Series, allowed: str) -> None:
        """Raises DataError with the first record whose value in a column is wrong, if any is."""
        if wrong.any():
            value = self.frame.at[wrong.idxmax(), column]
            seen = "missing" if value is None or not str(value).strip() else repr(str(value)[:40])
            raise DataError(f"{self.file}, row {wrong.idxmax()}: {column!r} is {seen}; allowed: {allowed}")


def _table(path: Path, content: bytes) -> Table:
    """The table of a file; DataError: not in the form of the file's ending; a column's name twice; no record."""
    form = Path(path.name.removesuffix(".gz")).suffix.lower()
    if form not in ALLOWED:
        raise DataError(f"{path} is not read; allowed: {', '.join(ALLOWED)}, and each with .gz")
    text, notes = ("", ()) if form == ".parquet" else _decoded(path, content)
    if form == ".parquet":
        frame = pd.read_parquet(io.BytesIO(content)).rename(columns=str)
        frame.index = range(1, len(frame) + 1)
    elif form in (".csv", ".tsv", ".txt"):
        frame = _csv(path, text)
    else:
        lines = {number: line for number, line in enumerate(text.split("\n"), start=1) if line.strip()}
        records = [files.record_of(line, f"{path}, line {number},") for number, line in lines.items()]
        frame = pd.DataFrame(records, index=list(lines), dtype=object)
    if twice := list(frame.columns[frame.columns.duplicated()]):
        raise DataError(f"{path.name} has two columns {twice[0][:40]!r}; names must differ")
    if frame.empty:
        raise DataError(f"{path} is empty; it needs one record for each text, with its label")
    return Table(path.name, frame.astype(object).where(frame.notna(), None), notes)


def _decoded(path: Path, content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file: UTF-8, UTF-16 by its mark, else a guess, with a note of words by which to check it."""
    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return files.sound(content.decode(encoding), str(path)), ()
    except UnicodeDecodeError:
        foreign = b"\n".join(line for line in content.split(b"\n") if not line.isascii())
    from charset_normalizer import from_bytes  # takes a moment, and few files need it

    best = from_bytes(foreign[:1_000_000], cp_isolation=CODE_PAGES).best()
    try:
        text = files.sound(content.decode(best.encoding if best else "ascii"), str(path))
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8, nor in any encoding that is known here; save it as UTF-8") from None
    words = [word.strip('",;|.')[:30] for word in text[:1_000_000].split() if not word.isascii()]
    return text, (
        f"{path.name} is not UTF-8. It was read as {best.encoding}, a guess from its bytes, with words such as "
        f"{', '.join(map(repr, words[:3]))}: if that is wrong, save the file as UTF-8.",
    )


def _csv(path: Path, text: str) -> pd.DataFrame:
    body = io.StringIO(text.lstrip(" \r\n"))
    try:
        delimiter = csv.Sniffer().sniff(re.match(r"[^\r\n]*", body.getvalue())[0][:10_000], ",;\t|").delimiter
    except csv.Error:
        delimiter = ","  # one column alone
    options = {"dtype": object, "keep_default_na": False, "skip_blank_lines": False}
    try:
        frame = pd.read_csv(body, sep=delimiter, header=None, **options)
    except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        advice = "a delimiter in a field needs quotation marks, and each quotation mark its second"
        raise DataError(f"{path} is no CSV ({str(error).strip()}); {advice}") from None
    frame.index += 1
    names, records = frame.iloc[0].str.strip(), frame.iloc[1:]
    filled = records.apply(lambda column: column.str.strip() != "").any(axis=1)
    return records.loc[filled, (names != "").to_numpy()].set_axis(names[names != ""].tolist(), axis=1)


def _columns(table: Table, given: Columns) -> Columns:
    """The columns as given, else as they look."""
    (text, label, split), frame = given, table.frame
    if unknown := [name for name in given if name and name not in frame]:
        raise DataError(f"{table.file} has no column {unknown[0]!r}; its columns: {str([*frame])[1:-1][:300]}")
    if not split:  # a column of that name, if it is free and names a split in any record
        free = [name for name in frame if name not in given and name.lower() == "split"]
        split = next((name for name in free if _splits(frame[name]).notna().any()), "")
    text = text or _only(table, "text", looks_like_texts, {label, split})
    label = label or _only(table, "label", looks_like_labels, {text, split})
    return Columns(text, label, split)


def _only(table: Table, role: str, looks_like: Callable[[Sequence], bool], taken: set[str]) -> str:
    """The column called as its role, else the only one that looks like it."""
    frame = table.frame.drop(columns=taken, errors="ignore")
    called = [name for name in frame if name.lower() == role]
    fitting = called or [name for name in frame if looks_like(frame[name].tolist())]
    if len(fitting) != 1:
        seen = f"{len(fitting)} columns look like it; name it by {role}_column"
        raise DataError(
            f"{table.file}: which column is the {role}? {seen}; its columns: {str([*table.frame])[1:-1][:300]}"
        )
    if not called and fitting[0] in set(frame[fitting[0]]):
        header = f"the first row must name the columns, but {fitting[0][:40]!r}, which is there, is a {role} below too"
        raise DataError(f"{table.file}: {header}; add a first row such as text,label")
    return fitting[0]


def looks_like_texts(values: Sequence) -> bool:
    """Whether a column holds running text: strings of three words or fifteen characters, most of them different."""
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    many = texts and 2 * len(texts) >= len(values) and 2 * len(set(texts)) >= len(texts)
    return bool(many) and (mean(len(text.split()) for text in texts) >= 3 or mean(map(len, texts)) >= 15)


def looks_like_labels(values: Sequence) -> bool:
    """Whether a column holds names of classes: short, at least two, and each of them three times or more."""
    names = [str(value).strip() for value in values if isinstance(value, str | int | float)]
    return len(names) == len(values) and 2 <= len(set(names)) <= len(names) / 3 and max(map(len, names)) <= 200


def _records(table: Table, columns: Columns) -> tuple[tuple[str, ...], pd.DataFrame, list[str]]:
    """(classes; id, text, label and split of each record; notes).

    Classes are in their order if all are numbers, else by the alphabet; 1 and 1.0 are one class, as first written.
    """
    texts, names = table.frame[columns.text], table.frame[columns.label].map(_class_name)
    table.refuse(columns.text, ~texts.map(lambda value: isinstance(value, str)), "a string in every record")
    table.refuse(columns.label, names == "", "a name or number, not what programs write where one is missing")
    for row, value in texts.items():
        files.sound(value, f"{table.file}, row {row}: {columns.text!r}")
    numbers = pd.to_numeric(names, errors="coerce")
    labels, order = pd.factorize(numbers if np.isfinite(numbers).all() else names, sort=True)
    if len(order) < 2:
        all_same = f"all {len(names):,} records have the label {names.iloc[0]!r}"
        raise DataError(f"{table.file}: {all_same}; a classifier needs at least two classes")
    classes, split = tuple(names.groupby(labels).first()), "train"
    notes = [f"In {table.file} {columns.text!r} is the text, {columns.label!r} is the label."]
    if columns.split:
        split = _splits(table.frame[columns.split])
        table.refuse(columns.split, split.isna(), ", ".join(SPLITS))
        notes.append(f"The splits are those of the column {columns.split!r}.")
    ids = "text-" + texts.index.astype(str)
    records = pd.DataFrame({"id": ids, "text": texts, "label": labels, "split": split})
    return classes, records, [*notes, *_draw_splits(records, classes, table.file, bool(columns.split)), *table.notes]


def _class_name(label: object) -> str:
    """The name of a record's class: 2.0 is "2"; "" where it is missing or cannot be one."""
    name = str(int(label) if isinstance(label, float) and label.is_integer() else label).strip()
    return name if isinstance(label, str | int | float) and name not in MISSING else ""


def _splits(values: pd.Series) -> pd.Series:
    """The split that each value names; NaN where it names none."""
    return values.astype(str).str.strip().str.lower().map(SPLITS)


def _draw_splits(records: pd.DataFrame, classes: tuple[str, ...], file: str, given: bool) -> list[str]:
    """Draws the splits that are not given from train, of each class its share and at least one; a note says so."""
    names = list(records["split"].unique())
    if given and not {"train", "test"} <= set(names):
        raise DataError(f"{file}: the records are of {', '.join(names)}; allowed: train and test, and dev")
    missing = [("dev", SHARE)] * ("dev" not in names) if given else [("test", SHARE), ("dev", SHARE / (1 - SHARE))]
    counts = np.bincount(records.loc[records["split"] == "train", "label"], minlength=len(classes))
    if (counts <= len(missing)).any():
        few = f"class {classes[counts.argmin()][:40]!r} has {counts.min()} texts in train"
        needed = f"{1 + len(missing)} are needed to learn it and to draw splits"
        raise DataError(f"{file}: {few}; {needed}: leave such records out, or name another label_column")
    for seed, (split, share) in enumerate(missing, start=2019):  # not the seed of a run
        train, random = records[records["split"] == "train"], np.random.default_rng(seed)
        for label in range(len(classes)):
            places = random.permutation(np.flatnonzero(train["label"] == label))
            records.loc[train.index[places[: max(1, round(share * len(places)))]], "split"] = split
    if not given:
        shares = f"{1 - 2 * SHARE:.0%} are train, {SHARE:.0%} dev and {SHARE:.0%} test"
        return [f"The splits were drawn at random, always the same: of each class {shares}."]
    return [f"{SHARE:.0%} of train, of each class, are dev."] * len(missing)
