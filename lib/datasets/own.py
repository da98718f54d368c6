"""One's own text as a dataset: a file (CSV, TSV, JSON lines), its columns of texts and labels, its splits."""

import codecs
import csv
import hashlib
import io
import re
import reprlib
import unicodedata
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.datasets import files, text
from lib.datasets.assembly import SIZES, Draft, Spec, draft_of, drawn
from lib.datasets.files import DataError
from lib.datasets.text import PAIR

ALLOWED = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json")
SPLITS = {"train": "train", "training": "train", "test": "test", "testing": "test"}
SPLITS |= dict.fromkeys(("dev", "development", "val", "valid", "validation"), "dev")
JOINERS = "\u200c\u200d"  # cannot be seen, but letters and emojis beside them can look otherwise
MISSING = ("nan", "NaN", "NAN", "NaT", "None", "null", "NULL", "NA", "N/A", "<NA>")  # as programs write it
WHOLE = r"(?:0|-?[1-9]\d*)(?:\.0)?"  # a number as spreadsheets write it, where 1 and 1.0 are the same
NUMBER = re.compile(r"[-+]?\d*\.?\d+([eE][-+]?\d{1,2})?")
SHARE = 0.15  # of dev, and of test
PREPARED = "spaCy's English tokens, lower-case, in the sentences of its rule-based splitter; words in at least 2 texts."


class Reading(NamedTuple):
    """How a file is read."""

    text: str = ""  # the names of its columns; "": none
    label: str = ""
    split: str = ""
    skip_incomplete: bool = False  # records without a text or a label are left out
    most_tokens: int | None = None  # longer texts are cut there
    subwords: str = ""  # the pretrained model whose tokenizer cuts the texts


class Own(str):
    """Your own text's name, such as "own:reviews-1f3c9a2b": no folder, by content and reading; with its file."""

    path: Path
    reading: Reading

    def __new__(cls, name: str, path: Path, reading: Reading) -> "Own":
        made = super().__new__(cls, name)
        made.path, made.reading = path, reading
        return made

    def __getnewargs__(self) -> tuple:
        return str(self), self.path, self.reading


def own_text(
    data: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    split_column: str | None = None,
    data_home: Path | str | None = None,
    skip_incomplete: bool = False,
    most_tokens: int | None = None,
) -> Own | str:
    """Your own file as a dataset; "" where `data` names no file.

    Args:
        data: a file, by its path or its path in a home of data.
        text_column, label_column, split_column: names of columns; None: the ones called text, label and split.
        skip_incomplete: leaves out the records without a text or a label. most_tokens: longer texts are cut there.
    Raises:
        DataError: whatever is wrong with the file, in one sentence.
    """
    given = Reading(text_column or "", label_column or "", split_column or "", skip_incomplete, most_tokens)
    if not data:
        if alone := [f"{name} {value!r}" for name, value in given._asdict().items() if value]:
            raise DataError(f"no file is named by data, but how to read one is given: {', '.join(alone)}")
        return ""
    path = files.find_file(data, data_home)
    content = files.read_bytes(path)
    reading = _columns(path.name, frame := _table(path, content), given)
    _records(path.name, frame, reading)
    return Own(_name(path, content, reading), path, reading)


def read_as(path: Path, reading: Reading) -> Own:
    """A file that is read in that way, as a dataset."""
    return Own(_name(path, files.read_bytes(path), reading), path, reading)


def spec_of(name: Own) -> Spec:
    """How your own text is prepared."""
    how = {"most_tokens": name.reading.most_tokens, "subwords": name.reading.subwords}
    return Spec(name, read, PREPARED, None, text.spacy_words, options=SIZES, min_df=2, sentences=True, **how)


def read(spec: Spec, folder: None, options: dict) -> Draft:
    """The draft of your own text; DataError where the file has changed."""
    path, reading = spec.name.path, spec.name.reading
    content = files.read_bytes(path)
    if _name(path, content, reading) != spec.name:
        raise DataError(f"{path} has changed since it was first read; start again")
    classes, records, notes = _records(path.name, _table(path, content), reading)
    splits = {}
    for split in ("train", "dev", "test"):
        of_split = records.loc[records["split"] == split, ["id", "text", "label"]].values.tolist()
        splits[split] = [spec.instance(*record) for record in drawn(of_split, split, options, notes)]
    if most := spec.most_tokens:
        texts = list(chain(*splits.values()))
        cut = sum(len(spec.tokens(one.text)) > most for one in texts if len(one.tokens) == most)
        notes.append(f"{cut:,} of {len(texts):,} texts were cut to their first {most:,} tokens (most_tokens).")
    return draft_of(spec, path, {"title": f"One's own text, {path.name}"}, classes, splits, notes)


def _name(path: Path, content: bytes, reading: Reading) -> str:
    """ "own:", the name of the file without its ending, and a digest of content and reading."""
    inside = hashlib.sha256(f"\0{len(content)}\0".encode() + content).hexdigest()
    digest = hashlib.sha256(repr((inside, reading)).encode("utf-8", "backslashreplace")).hexdigest()
    return f"own:{re.sub(r'[^A-Za-z0-9]+', '_', path.name.split('.')[0])[:24].strip('_') or 'text'}-{digest[:8]}"


def _table(path: Path, content: bytes) -> pd.DataFrame:
    """The records of a file, None where a value is missing; by row, names being row 1, of JSON lines by line.

    DataError: not in the form of the file's ending; a column's name twice; no record.
    """
    form = Path(path.name.removesuffix(".gz")).suffix.lower()
    if form not in ALLOWED:
        raise DataError(f"{path} is not read; allowed: {', '.join(ALLOWED)}, and each with .gz")
    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        text = files.sound(content.decode(encoding), str(path))
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8; save it as UTF-8 (in Excel: CSV UTF-8)") from None
    if form in (".csv", ".tsv", ".txt"):
        frame = _csv(path, text)
    else:
        lines = {number: line for number, line in enumerate(text.split("\n"), start=1) if line.strip()}
        records = [files.record_of(line, f"{path}, line {number},") for number, line in lines.items()]
        frame = pd.DataFrame(records, index=list(lines), dtype=object)
    if twice := list(frame.columns[frame.columns.duplicated()]):
        raise DataError(f"{path.name} has two columns {twice[0][:40]!r}; names must differ")
    if frame.empty:
        raise DataError(f"{path} is empty; it needs one record for each text, with its label")
    return frame.astype(object).where(frame.notna(), None)


def _csv(path: Path, text: str) -> pd.DataFrame:
    body = io.StringIO(re.sub(r"^\s*sep=[^\r\n]\s*", "", text).lstrip(" \r\n"))  # Excel's first line
    first = re.match(r"[^\r\n]*", body.getvalue())[0]
    try:
        delimiter = csv.Sniffer().sniff(first[:10_000], ",;\t|").delimiter
    except csv.Error:
        delimiter = ","  # one column alone
    options = {"dtype": object, "keep_default_na": False, "skip_blank_lines": False}
    try:
        frame = pd.read_csv(body, sep=delimiter, header=None, **options)
    except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
        advice = "a delimiter in a field needs quotation marks, and each quotation mark its second"
        raise DataError(f"{path} is no CSV ({str(error).strip()}); {advice}") from None
    frame.index += 1
    names, records = frame.iloc[0].map(_visible), frame.iloc[1:]
    filled = records.apply(lambda column: column.str.strip() != "").any(axis=1)
    return records.loc[filled, (names != "").to_numpy()].set_axis(names[names != ""].tolist(), axis=1)


def _columns(file: str, frame: pd.DataFrame, given: Reading) -> Reading:
    """The reading with its columns as given, else those of their names."""
    text, label, split, *_ = given
    if unknown := [name for name in (*_of_text(frame, text), label, split) if name and name not in frame]:
        raise DataError(f"{file} has no column {unknown[0]!r}; its columns: {str([*frame])[1:-1][:300]}")
    if not split:  # a column of that name, if it is free and names a split in any record
        free = [name for name in frame if name not in (text, label) and name.lower() == "split"]
        split = next((name for name in free if _splits(frame[name]).notna().any()), "")
    text = text or _called(file, frame, "text", {label, split})
    label = label or _called(file, frame, "label", {text, split})
    texts = set(_of_text(frame, text))
    if twice := {*texts, label} & {split} or texts & {label}:
        raise DataError(f"{file}: the column {twice.pop()!r} can be one of text, label and split alone")
    return given._replace(text=text, label=label, split=split)


def _of_text(frame: pd.DataFrame, column: str) -> list[str]:
    """The column of texts; of a name such as "premise,hypothesis" the two."""
    parts = [part.strip() for part in column.split(",")]
    return parts if column not in frame and len(parts) == 2 else [column]


def _called(file: str, frame: pd.DataFrame, role: str, taken: set[str]) -> str:
    """The column called as its role."""
    named = [name for name in frame if name not in taken and name.lower() == role]
    if len(named) != 1:
        columns = str([*frame])[1:-1][:300]
        raise DataError(f"{file}: which column is the {role}? Name it by {role}_column; its columns: {columns}")
    if named[0] in frame[named[0]].tolist():
        header = f"the first row alone must name the columns, but {named[0][:40]!r} there is a {role} below too"
        raise DataError(f"{file}: {header}; leave such records out")
    return named[0]


def _records(file: str, frame: pd.DataFrame, reading: Reading) -> tuple[tuple[str, ...], pd.DataFrame, list[str]]:
    """(classes, in the order of numbers or the alphabet; id, text, label and split of each record; notes)."""
    records, left_out = _usable(file, frame, reading)
    names = records["label"]
    if names.str.fullmatch(WHOLE).all():
        names = names.groupby(names.str.removesuffix(".0")).transform("first")
    known = sorted(set(names))
    if len(known) < 2:
        all_same = f"all {len(names):,} records have the label {known[0]!r}"
        raise DataError(f"{file}: {all_same}; a classifier needs at least two classes")
    classes = tuple(sorted(known, key=float) if all(map(NUMBER.fullmatch, known)) else known)
    notes = [f"In {file} {reading.text!r} is the text, {reading.label!r} is the label."]
    notes += [f"The splits are those of the column {reading.split!r}."] if reading.split else []
    records["label"] = names.map({name: label for label, name in enumerate(classes)})
    drawn = _draw_splits(records, classes, file, bool(reading.split))
    return classes, records, [*notes, *left_out, *drawn]


def _usable(file: str, frame: pd.DataFrame, reading: Reading) -> tuple[pd.DataFrame, list[str]]:
    """(id, text, label by name and split of the records with a text and a label; a note on those that are left out)."""
    split = "train"
    if reading.split:
        split = _splits(frame[reading.split])
        if (unknown := split.isna()).any():
            seen = f"row {unknown.idxmax()}: {reading.split!r} is {frame.at[unknown.idxmax(), reading.split]!r}"
            raise DataError(f"{file}, {seen[:200]}; allowed: {', '.join(SPLITS)}")
    texts, names = frame[_of_text(frame, reading.text)], frame[reading.label].map(_class_name)
    lacking = ~texts.map(lambda text: isinstance(text, str) and bool(text.strip())).all(axis=1) | (names == "")
    number = f"{lacking.sum():,} of {len(lacking):,} records"
    if lacking.all() or (lacking.any() and not reading.skip_incomplete):
        cells = frame.loc[lacking, [*texts, reading.label]].map(reprlib.repr)
        seen = "; ".join(f"row {row}: {', '.join(cell)}" for row, *cell in cells[:3].itertuples())
        needed = f"each needs a text in {reading.text!r} and a name or number in {reading.label!r}"
        raise DataError(f"{file}: {number} cannot be used ({seen}); {needed}; skip_incomplete leaves such out")
    records = pd.DataFrame({"id": "text-" + frame.index.astype(str), "label": names, "split": split})[~lacking]
    records = records.assign(text=[PAIR.join(row) for row in texts[~lacking].itertuples(index=False)])
    for row, *values in records[["text", "label"]].itertuples():
        files.sound(" ".join(values), f"{file}, row {row}: {reading.text!r} or {reading.label!r}")
    left_out = f"{number} were left out, since they have no text or no label (skip_incomplete)."
    return records, [left_out] * bool(lacking.any())


def _class_name(label: object) -> str:
    """The name of a record's class: 2.0 is "2"; "" where it is missing or can be none."""
    if isinstance(label, float) and not np.isfinite(label):
        return ""
    name = _visible(str(int(label) if isinstance(label, float) and label.is_integer() else label))
    return name if isinstance(label, str | int | float) and name not in MISSING else ""


def _visible(name: str) -> str:
    """A name without what cannot be seen: Unicode's composed form, plain single spaces, no marks of no width."""
    signs = unicodedata.normalize("NFC", name)
    return " ".join("".join(one for one in signs if unicodedata.category(one) != "Cf" or one in JOINERS).split())


def _splits(values: pd.Series) -> pd.Series:
    """The split that each value names; NaN where it names none."""
    return values.astype(str).map(_visible).str.lower().map(SPLITS)


def _draw_splits(records: pd.DataFrame, classes: tuple[str, ...], file: str, given: bool) -> list[str]:
    """Draws the splits that are not given from train, of each class its share and at least one; a note says so."""
    names = list(records["split"].unique())
    if given and not {"train", "test"} <= set(names):
        raise DataError(f"{file}: the records are of {', '.join(names)}; allowed: train and test, and dev")
    missing = [("dev", SHARE)] * ("dev" not in names) if given else [("test", SHARE), ("dev", SHARE / (1 - SHARE))]
    counts = np.bincount(records.loc[records["split"] == "train", "label"], minlength=len(classes))
    if (few := (counts <= len(missing)).sum()) > 0:
        least = ", ".join(f"{classes[k][:40]!r} has {counts[k]}" for k in counts.argsort()[: min(few, 3)])
        seen = f"{few:,} of {len(classes):,} classes have too few texts in train: {least}"
        numbers = " (are they measured numbers, and no classes?)" if all(map(NUMBER.fullmatch, classes)) else ""
        needed = f"{1 + len(missing)} are needed to learn one and to draw splits"
        advice = "leave such records out, or name another label_column."
        raise DataError(f"{file}: {seen}{numbers}; {needed}: {advice}")
    for seed, (split, share) in enumerate(missing, start=2019):  # not the seed of a run
        train, random = records[records["split"] == "train"], np.random.default_rng(seed)
        for label in range(len(classes)):
            places = random.permutation(np.flatnonzero(train["label"] == label))
            records.loc[train.index[places[: max(1, round(share * len(places)))]], "split"] = split
    if not given:
        shares = f"{1 - 2 * SHARE:.0%} are train, {SHARE:.0%} dev and {SHARE:.0%} test"
        return [f"The splits were drawn at random, always the same: of each class {shares}."]
    return [f"{SHARE:.0%} of train, of each class, are dev."] * len(missing)
