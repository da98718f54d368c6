"""One's own text as a dataset: a file, its columns of texts and of labels, its splits."""

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np

from lib.datasets.assembly import Draft, Spec, draft_of
from lib.datasets.documents import OPTIONS, documents
from lib.datasets.files import DataError, Row, sound, text_of
from lib.datasets.own_table import SPLITS, Table, content_of, find, stem_of, table_of

LONGEST = 200  # characters of a label
WORDS, CHARACTERS = 3, 15  # of a column of texts on average, at least one of the two
REPEATED = 3  # times that a label occurs on average, at least
SAMPLE = 1_000  # values by which a column is judged
SHARE = 0.15  # of dev, and of test
SEED = 2019  # any fixed number: the splits must not depend on the seed of a run
Records = list[tuple[str, str, int]]  # id, text, label


@dataclass(frozen=True)
class Columns:
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
    given = {"text_column": str(text_column), "label_column": str(label_column), "split_column": str(split_column)}
    if not data:
        for name, value in given.items():
            if value:
                raise DataError(f"{name} is {value!r}, but there is no file; name it by data")
        return ""
    paths = find(str(data), data_home)
    content, tables = _read(paths)
    columns = _columns(list(tables.values()), given)
    _records(tables, columns)
    return Own(_name(content, paths, columns), paths, columns)


def spec_of(name: Own) -> Spec:
    """How your own text is prepared."""
    words = (
        "spaCy's English tokens, lower-case, in the sentences of its rule-based splitter; words in at least 2 texts."
    )
    return Spec(name, read, words, options=OPTIONS, min_df=2, sentences=True)


def read(spec: Spec, folder: None, options: dict) -> Draft:
    """The draft of your own text, in spaCy's tokens and in sentences.

    Raises:
        DataError: the file is no longer what it was.
    """
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
        content = content_of(path)
        digest.update(f"{split}\0{len(content)}\0".encode() + content)
        tables[split] = table_of(path, content)
    return digest.hexdigest(), tables


def _name(content: str, paths: dict[str, Path], columns: Columns) -> str:
    """ "own:", the name of the file without its ending, and a digest of contents and columns."""
    stem, _ = stem_of(next(iter(paths.values())))
    digest = hashlib.sha256(repr((content, columns)).encode("utf-8", "backslashreplace")).hexdigest()
    return f"own:{re.sub(r'[^A-Za-z0-9]+', '_', stem)[:24].strip('_') or 'text'}-{digest[:8]}"


# --- columns


def _columns(tables: Sequence[Table], given: dict[str, str]) -> Columns:
    """The columns as given, else as they look; the same in all files."""
    first, (text, label, split) = tables[0], given.values()
    named = [name for name in given.values() if name]
    if len(set(named)) < len(named):
        raise DataError(f"text_column, label_column and split_column are {', '.join(named)}; allowed: different ones")
    if split and len(tables) > 1:
        raise DataError(f"split_column is {split!r}, but the splits are files: {_names(tables)}; leave it out")
    if not split and len(tables) == 1:
        split = _split_column(first, taken={text, label})
    text = text or _only(first, "text", looks_like_texts, {label, split})
    label = label or _only(first, "label", looks_like_labels, {text, split})
    for table in tables:
        for name in (text, label, split):
            if name and name not in table.frame:
                raise DataError(f"{table.path.name} has no column {name!r}; {table.listed()}")
    return Columns(text, label, split)


def _split_column(table: Table, taken: set[str]) -> str:
    """The column called split, if it is free and holds nothing but names of splits; else ""."""
    for name, values in table.frame.items():
        if name not in taken and name.lower() == "split" and all(str(v).strip().lower() in SPLITS for v in values):
            return name
    return ""


def _only(table: Table, role: str, looks_like: Callable[[Sequence], bool], taken: set[str]) -> str:
    """The column called as its role, else the only one that looks like it."""
    free = [name for name in table.frame if name not in taken]
    called = [name for name in free if name.lower() == role]
    found = called or [name for name in free if looks_like(table.frame[name].tolist())]
    file = table.path.name
    if len(found) != 1:
        seen = f"{len(found)} columns look like it" if found else "no column looks like it"
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


def _records(tables: dict[str, Table], columns: Columns) -> tuple[tuple[str, ...], dict[str, Records], list[str]]:
    """(classes, records by split, notes)."""
    first, read = next(iter(tables.values())), _names(tables.values())
    ids, texts, names, of_split = [], [], [], []
    for split, table in tables.items():
        for row, values in zip(table.frame.index, table.frame.to_dict("records"), strict=True):
            place = table.place(row)
            texts.append(text_of(Row(values, "", place), columns.text))
            names.append(_label(place, columns.label, values[columns.label]))
            of_split.append(_split(place, columns.split, values[columns.split]) if columns.split else split)
            ids.append(f"{split or 'text'}-{row}")
    if all(re.fullmatch(r"[\s\d.,+-]*", text) for text in texts):
        raise DataError(f"{first.path.name}: the column {columns.text!r} holds no words; {first.listed()}")
    notes = [f"In {read} {columns.text!r} is the text, {columns.label!r} is the label."]
    notes += [f"The splits are those of the column {columns.split!r}."] if columns.split else []
    notes += [f"The splits are files: {read}."] if len(tables) > 1 else []
    (classes, labels), splits = _classes(read, names), {}
    for split, *record in zip(of_split, ids, texts, labels, strict=True):
        splits.setdefault(split, []).append(tuple(record))
    splits, drawn = _completed(splits, classes, first.path.name)
    return classes, splits, [*notes, *drawn, *(note for table in tables.values() for note in table.notes)]


def _label(place: str, column: str, value: object) -> str:
    """The name of a record's class."""
    place = f"{place}: the label ({column!r})"
    if value is None or (isinstance(value, str) and not value.strip()):
        raise DataError(f"{place} is missing; every record needs one, so leave the others out")
    if not isinstance(value, str | int | float):
        raise DataError(f"{place} is of type {type(value).__name__}; allowed: a text or a number")
    name = str(int(value) if isinstance(value, float) and value.is_integer() else value).strip()
    if len(name) > LONGEST:
        raise DataError(f"{place} has {len(name):,} characters; allowed: at most {LONGEST}; is it the column of texts?")
    return sound(name, place)


def _split(place: str, column: str, value: object) -> str:
    """A record's split."""
    name = "" if value is None else str(value).strip()
    if name.lower() not in SPLITS:
        seen = repr(name[:40]) if name else "missing"
        raise DataError(f"{place}: the split ({column!r}) is {seen}; allowed: {', '.join(SPLITS)}")
    return SPLITS[name.lower()]


def _classes(file: str, names: list[str]) -> tuple[tuple[str, ...], list[int]]:
    """(classes, the number of each record's class); numbers in their order, all else as people sort it."""
    numbers = {name: _number(name) for name in dict.fromkeys(names)}
    if all(number is not None for number in numbers.values()):
        spelt = {number: name for name, number in reversed(numbers.items())}  # 1 and 1.0 are one class
        names, order = [spelt[numbers[name]] for name in names], [spelt[number] for number in sorted(spelt)]
    else:
        order = sorted(numbers, key=natural)
    if len(order) < 2:
        seen = f"all {len(names):,} records have the label {order[0]!r}"
        raise DataError(f"{file}: {seen}; a classifier needs at least two classes")
    ids = {name: number for number, name in enumerate(order)}
    return tuple(order), [ids[name] for name in names]


def _number(name: str) -> float | None:
    try:
        return number if math.isfinite(number := float(name)) else None
    except ValueError:
        return None


def natural(name: str) -> list:
    """The key by which people sort names: "class 2" before "class 10"."""
    parts = re.split(r"(\d+)", name.casefold())
    return [(int(part), "") if part.isdecimal() else (math.inf, part) for part in parts if part] + [(math.inf, name)]


# --- splits


def _completed(given: dict[str, Records], classes: tuple[str, ...], file: str) -> tuple[dict[str, Records], list[str]]:
    """Train, dev and test; what is not given is drawn, of each class in its share, with a note.

    Raises:
        DataError: a class has too few texts.
    """
    if "" not in given and not {"train", "test"} <= set(given):
        raise DataError(f"{file}: the records are of {', '.join(given)}; allowed: train and test, and dev")
    if "dev" in given:
        _refuse_rare(given["train"], classes, 1, f"{file}: to learn it from train")
        return {split: given[split] for split in ("train", "dev", "test")}, []
    if "train" in given:
        _refuse_rare(given["train"], classes, 2, f"{file}: to learn it from train and to draw dev from train")
        train, dev = _drawn(given["train"], SHARE, SEED)
        return {"train": train, "dev": dev, "test": given["test"]}, [f"{SHARE:.0%} of train, of each class, are dev."]
    _refuse_rare(given[""], classes, 3, f"{file}: to draw train, dev and test")
    rest, test = _drawn(given[""], SHARE, SEED)
    train, dev = _drawn(rest, SHARE / (1 - SHARE), SEED + 1)
    return {"train": train, "dev": dev, "test": test}, [
        f"The splits were drawn at random, always the same: of each class {1 - 2 * SHARE:.0%} are train, "
        f"{SHARE:.0%} dev and {SHARE:.0%} test."
    ]


def _refuse_rare(records: Records, classes: tuple[str, ...], least: int, purpose: str) -> None:
    counts = np.bincount([label for _, _, label in records], minlength=len(classes))
    if len(rare := np.flatnonzero(counts < least)):
        others = f", and {len(rare) - 1:,} of the other {len(classes) - 1:,} classes too few as well" * (len(rare) > 1)
        raise DataError(
            f"{purpose}, every class needs at least {least} {'text' if least == 1 else 'texts'}; "
            f"{classes[rare[0]][:40]!r} has {counts[rare[0]]}{others}: leave such records out, or name another "
            "label_column"
        )


def _drawn(records: Records, share: float, seed: int) -> tuple[Records, Records]:
    """(the others, `share` of the records of each class, at least one), both in their first order."""
    labels, random = np.array([label for _, _, label in records]), np.random.default_rng(seed)
    chosen = set()
    for label in np.unique(labels):
        places = np.flatnonzero(labels == label)
        chosen.update(random.permutation(places)[: max(1, round(share * len(places)))].tolist())
    rest = [record for place, record in enumerate(records) if place not in chosen]
    return rest, [records[place] for place in sorted(chosen)]
