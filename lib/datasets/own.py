"""One's own text as a dataset: a file, its columns of texts and of labels, its splits."""

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.datasets.assembly import Draft, Spec, draft_of
from lib.datasets.documents import OPTIONS, Raw, documents
from lib.datasets.files import DataError, Row, read_bytes, sound
from lib.datasets.own_table import SPLITS, Table, find, stem_of, table_of

LONGEST = 200  # characters of a label
NONE = ("nan", "NaN", "NAN", "NaT", "None", "null", "NULL", "NA", "N/A", "<NA>")  # as programs write a missing value
WORDS, CHARACTERS = 3, 15  # of a column of texts on average, at least one of the two
REPEATED = 3  # times that a label occurs on average, at least
SAMPLE = 1_000  # values by which a column is judged
SHARE = 0.15  # of dev, and of test
SEED = 2019  # any fixed number: the splits must not depend on the seed of a run


class Columns(NamedTuple):
    """The names of the columns of texts, of labels, and of splits ("": there is none)."""

    text: str
    label: str
    split: str = ""


class Own(str):
    """The name of your own text as a dataset, such as "own:reviews-1f3c9a2b", with its files and columns.

    As a string it has no folder in it and depends on the content alone, so that runs, the cache and reports treat it as
    any other name; files and columns go along to other processes.
    """

    files: dict[str, Path]
    columns: Columns

    def __new__(cls, name: str, files: dict[str, Path], columns: Columns) -> "Own":
        made = super().__new__(cls, name)
        made.files, made.columns = files, columns
        return made

    def __getnewargs__(self) -> tuple:
        return str(self), self.files, self.columns


def own_text(
    data: str = "",
    text_column: str = "",
    label_column: str = "",
    split_column: str = "",
    data_home: str | Path | None = None,
) -> Own | str:
    """Your own file as a dataset; "" where `data` names no file.

    >>> dataset = own_text(data, text_column, label_column) or dataset

    Args:
        data: a file, by its path or its path in a home of data; or "my.csv" for my.train.csv, my.test.csv, ...
        text_column, label_column, split_column: names of columns; "": the ones called text, label and split, else the
            only one that looks like texts and the only one that looks like labels.
    Raises:
        DataError: whatever is wrong with the file, in one sentence.
    """
    given = Columns(str(text_column), str(label_column), str(split_column))
    if not data:
        for role, value in given._asdict().items():
            if value:
                raise DataError(f"{role}_column is {value!r}, but there is no file; name it by data")
        return ""
    paths = find(str(data), data_home)
    content, tables = _read(paths)
    columns = _columns(list(tables.values()), given)
    _records(tables, columns)
    return Own(_name(content, paths, columns), paths, columns)


def spec_of(name: Own) -> Spec:
    """How your own text is prepared."""
    words = "spaCy's English tokens, lower-case, in the sentences of its rule-based splitter; words in at least 2 texts"
    return Spec(name, read, f"{words}.", options=OPTIONS, min_df=2, sentences=True)


def read(spec: Spec, folder: None, options: dict) -> Draft:
    """The draft of your own text, in spaCy's tokens and in sentences; DataError where the file has changed."""
    name, first = spec.name, next(iter(spec.name.files.values()))
    content, tables = _read(name.files)
    if _name(content, name.files, name.columns) != name:
        raise DataError(f"{first} has changed since it was first read; start again")
    classes, records, notes = _records(tables, name.columns)
    splits = {split: documents(of_split, options, split, notes) for split, of_split in records.items()}
    return draft_of(spec, first, {"title": f"One's own text, {first.name}"}, classes, splits, notes)


def _read(paths: dict[str, Path]) -> tuple[str, dict[str, Table]]:
    """(digest of the contents, the tables by split)."""
    digest, tables = hashlib.sha256(), {}
    for split, path in paths.items():
        content = read_bytes(path)
        digest.update(f"{split}\0{len(content)}\0".encode() + content)
        tables[split] = table_of(path, content)
    return digest.hexdigest(), tables


def _name(content: str, paths: dict[str, Path], columns: Columns) -> str:
    """ "own:", the name of the file without its ending, and a digest of contents and columns."""
    stem, _ = stem_of(next(iter(paths.values())))
    digest = hashlib.sha256(repr((content, columns)).encode("utf-8", "backslashreplace")).hexdigest()
    return f"own:{re.sub(r'[^A-Za-z0-9]+', '_', stem)[:24].strip('_') or 'text'}-{digest[:8]}"


# --- columns


def _columns(tables: Sequence[Table], given: Columns) -> Columns:
    """The columns as given, else as they look; the same in all files."""
    first, (text, label, split) = tables[0], given
    named = [name for name in given if name]
    if len(set(named)) < len(named):
        raise DataError(f"text_column, label_column and split_column are {', '.join(named)}; allowed: different ones")
    if split and len(tables) > 1:
        raise DataError(f"split_column is {split!r}, but the splits are files: {_names(tables)}; leave it out")
    if not split and len(tables) == 1:  # a column of that name, if it is free and names a split in any record
        free = first.frame[[name for name in first.frame if name not in named and name.lower() == "split"]]
        split = next((name for name in free if free[name].map(_split_name).isin(SPLITS).any()), "")
    text = text or _only(first, "text", looks_like_texts, {label, split})
    label = label or _only(first, "label", looks_like_labels, {text, split})
    for table in tables:
        for name in (text, label, split):
            if name and name not in table.frame:
                raise DataError(f"{table.path.name} has no column {name!r}; {table.listed()}")
    return Columns(text, label, split)


def _only(table: Table, role: str, looks_like: Callable[[Sequence], bool], taken: set[str]) -> str:
    """The column called as its role, else the only one that looks like it."""
    free, file = [name for name in table.frame if name not in taken], table.path.name
    called = [name for name in free if name.lower() == role]
    found = called or [name for name in free if looks_like(table.frame[name].tolist())]
    if len(found) != 1:
        seen = f"{len(found)} columns look like it" if found else "no column looks like it"
        same = [repr(name) for name in free if role == "label" and table.frame[name].astype(str).nunique() == 1]
        seen += f" ({', '.join(same)}: one value in all rows, and two classes or more are needed)" if same else ""
        raise DataError(f"{file}: which column is the {role}? {seen}; name it by {role}_column; {table.listed()}")
    if not called and table.kind == "CSV" and role == "label" and found[0] in set(table.frame[found[0]]):
        raise DataError(
            f"{file}: the first row must name the columns, but {found[0][:40]!r}, which is there, is a label below "
            "too; add a first row such as text,label"
        )
    return found[0]


def looks_like_texts(values: Sequence) -> bool:
    """Whether a column holds running text: strings of several words, or long ones, most of them different."""
    texts = [value for value in values[:SAMPLE] if isinstance(value, str) and value.strip()]
    if not texts or 2 * len(texts) < len(values[:SAMPLE]) or 2 * len(set(texts)) < len(texts):
        return False
    return mean(len(text.split()) for text in texts) >= WORDS or mean(map(len, texts)) >= CHARACTERS


def looks_like_labels(values: Sequence) -> bool:
    """Whether a column holds names of classes: short, at least two, and each of them often."""
    if not all(isinstance(value, str | int | float) for value in values):
        return False
    names = [str(value).strip() for value in values]
    return 2 <= len(set(names)) <= len(names) / REPEATED and max(map(len, names)) <= LONGEST


def _names(tables: Iterable[Table]) -> str:
    return ", ".join(table.path.name for table in tables)


# --- records


def _records(tables: dict[str, Table], columns: Columns) -> tuple[tuple[str, ...], dict[str, list[Raw]], list[str]]:
    """(classes, records by split, notes)."""
    first, read = next(iter(tables.values())), _names(tables.values())
    records, names = [], []
    for split, table in tables.items():
        for row, values in zip(table.frame.index, table.frame.to_dict("records"), strict=True):
            place = table.place(row)
            text, name = Row(values, "", place).text(columns.text), _label(place, columns.label, values)
            of_split = _split(place, columns.split, values) if columns.split else split
            records.append((of_split, f"{split or 'text'}-{row}", text))
            names.append(name)
    if all(re.fullmatch(r"[\s\d.,+-]*", text) for _, _, text in records):
        raise DataError(f"{first.path.name}: the column {columns.text!r} holds no words; {first.listed()}")
    notes = [f"In {read} {columns.text!r} is the text, {columns.label!r} is the label."]
    notes += [f"The splits are those of the column {columns.split!r}."] if columns.split else []
    notes += [f"The splits are files: {read}."] if len(tables) > 1 else []
    (classes, labels), splits = _classes(read, names), {}
    for (split, id, text), label in zip(records, labels, strict=True):
        splits.setdefault(split, []).append(Raw(id, text, label))
    splits, drawn = _completed(splits, classes, first.path.name)
    return classes, splits, [*notes, *drawn, *(note for table in tables.values() for note in table.notes)]


def _label(place: str, column: str, values: dict) -> str:
    """The name of a record's class."""
    place, value = f"{place}: the label ({column!r})", values[column]
    if value is None or (isinstance(value, str) and not value.strip()):
        raise DataError(f"{place} is missing; every record needs one, so leave the others out")
    if not isinstance(value, str | int | float):
        raise DataError(f"{place} is of type {type(value).__name__}; allowed: a text or a number")
    name = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()
    if name in NONE:
        allowed = "leave such records out; a class of that name needs another one"
        raise DataError(f"{place} is {name!r}, as programs write a missing value; {allowed}")
    if len(name) > LONGEST:
        raise DataError(f"{place} has {len(name):,} characters; allowed: at most {LONGEST}; is it the column of texts?")
    return sound(name, place)


def _split(place: str, column: str, values: dict) -> str:
    """A record's split."""
    if (name := _split_name(values[column])) not in SPLITS:
        seen = repr(str(values[column])[:40]) if name else "missing"
        raise DataError(f"{place}: the split ({column!r}) is {seen}; allowed: {', '.join(SPLITS)}")
    return SPLITS[name]


def _split_name(value: object) -> str:
    return "" if value is None else str(value).strip().lower()


def _classes(file: str, names: list[str]) -> tuple[tuple[str, ...], list[int]]:
    """(classes, the number of each record's class); numbers in their order, all else as people sort it."""
    numbers = pd.to_numeric(pd.Series(names), errors="coerce").replace([math.inf, -math.inf], math.nan)
    if numbers.notna().all():
        keys, order = numbers.tolist(), sorted(set(numbers))  # 1 and 1.0 are one class, as first written
    else:
        keys, order = names, sorted(set(names), key=natural)
    if len(order) < 2:
        raise DataError(
            f"{file}: all {len(names):,} records have the label {names[0]!r}; a classifier needs at least two classes"
        )
    ids = {key: number for number, key in enumerate(order)}
    return tuple(names[keys.index(key)] for key in order), [ids[key] for key in keys]


def natural(name: str) -> list:
    """The key by which people sort names: "class 2" before "class 10"."""
    parts = re.split(r"(\d+)", name.casefold())
    return [(int(part), "") if part.isdecimal() else (math.inf, part) for part in parts if part] + [(math.inf, name)]


# --- splits


def _completed(given: dict[str, list[Raw]], classes: tuple[str, ...], file: str) -> tuple[dict[str, list], list[str]]:
    """Train, dev and test; what is not given is drawn, of each class in its share, with a note.

    Raises:
        DataError: a class has too few texts.
    """
    if "" in given:
        _refuse_rare(given[""], classes, 3, f"{file}: to draw train, dev and test")
        rest, test = _drawn(given[""], SHARE, SEED)
        train, dev = _drawn(rest, SHARE / (1 - SHARE), SEED + 1)
        shares = f"{1 - 2 * SHARE:.0%} are train, {SHARE:.0%} dev and {SHARE:.0%} test"
        note = f"The splits were drawn at random, always the same: of each class {shares}."
        return {"train": train, "dev": dev, "test": test}, [note]
    if not {"train", "test"} <= set(given):
        raise DataError(f"{file}: the records are of {', '.join(given)}; allowed: train and test, and dev")
    if "dev" in given:
        _refuse_rare(given["train"], classes, 1, f"{file}: to learn it from train")
        return {split: given[split] for split in ("train", "dev", "test")}, []
    _refuse_rare(given["train"], classes, 2, f"{file}: to learn it from train and to draw dev from train")
    train, dev = _drawn(given["train"], SHARE, SEED)
    return {"train": train, "dev": dev, "test": given["test"]}, [f"{SHARE:.0%} of train, of each class, are dev."]


def _refuse_rare(records: list[Raw], classes: tuple[str, ...], least: int, purpose: str) -> None:
    counts = np.bincount([one.label for one in records], minlength=len(classes))
    if len(rare := np.flatnonzero(counts < least)):
        others = f", and {len(rare) - 1:,} of the other {len(classes) - 1:,} classes too few as well" * (len(rare) > 1)
        raise DataError(
            f"{purpose}, every class needs at least {least} text{'s' * (least > 1)}; {classes[rare[0]][:40]!r} has "
            f"{counts[rare[0]]}{others}: leave such records out, or name another label_column"
        )


def _drawn(records: list[Raw], share: float, seed: int) -> tuple[list[Raw], list[Raw]]:
    """(the others, `share` of the records of each class, at least one), both in their first order."""
    labels, random = np.array([one.label for one in records]), np.random.default_rng(seed)
    chosen = set()
    for label in np.unique(labels):
        places = random.permutation(np.flatnonzero(labels == label))
        chosen.update(places[: max(1, round(share * len(places)))].tolist())
    rest = [record for place, record in enumerate(records) if place not in chosen]
    return rest, [records[place] for place in sorted(chosen)]
