"""One's own text as a dataset: a file, its columns of texts and of labels, its splits."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lib.datasets.classification import Draft, Spec, draft_of
from lib.datasets.documents import OPTIONS, documents
from lib.datasets.files import PROJECT, DataError, homes, sound
from lib.datasets.own import labels as labelling
from lib.datasets.own import splits as splitting
from lib.datasets.own.table import (
    Table,
    content_of,
    ending,
    exists,
    has_known_ending,
    refuse_irregular,
    refuse_unprintable,
    table,
)

MOST_CHARACTERS = 1_000_000  # of a text
LISTED = 12  # names of columns in a message


@dataclass(frozen=True)
class Columns:
    """The names of the columns of texts, of labels, and of splits ("": the splits are not told by a column)."""

    text: str
    label: str
    split: str = ""


class Own(str):
    """The name of one's own text as a dataset, such as "own:reviews-1f3c9a2b", which knows the files and the columns.

    As a string it has no folder in it and depends on the content alone, so that runs, the cache and reports take it
    for a name like any other; it goes to other processes with what it knows.
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
    """The dataset that a file of one's own is; "" where `data` names no file.

    >>> dataset = own_text(data, text_column, label_column) or dataset

    Args:
        data: a file, by its path or its path in a home of data; or "my.csv" for my.train.csv, my.test.csv, ...
        text_column, label_column, split_column: names of columns; "": the ones called text, label and split, else the
            only one that looks like texts and the only one that looks like labelling.
    Raises:
        DataError: whatever is wrong with the file, in one sentence.
    """
    if not data:
        given = {"text_column": text_column, "label_column": label_column, "split_column": split_column}
        for name, value in given.items():
            if value:
                raise DataError(f"{name} is {value!r}, but there is no file; name it by data")
        return ""
    paths = find(str(data), data_home)
    name, tables = _read(paths)
    columns = _columns(list(tables.values()), str(text_column), str(label_column), str(split_column))
    _records(tables, columns)
    return Own(_named(name, paths, columns), paths, columns)


def find(data: str, data_home: str | Path | None = None) -> dict[str, Path]:
    """The files of `data` by split, or {"": file} where one file holds them all.

    Raises:
        DataError: there is none, or none can be there.
    """
    if re.match(r"[a-z][a-z0-9+]+://", data):
        raise DataError(f"{data} is an address; allowed: a file, so download it first")
    if "\0" in data:
        raise DataError(f"{data!r} holds a NUL character; allowed: the name of a file")
    try:
        given = Path(data).expanduser()
    except RuntimeError:
        raise DataError(f"{data}: there is no such user here; give the path in full") from None
    refuse_unprintable(given)
    places = [given] if given.is_absolute() else [home / given for home in (Path.cwd(), PROJECT, *homes(data_home))]
    for place in dict.fromkeys(place.absolute() for place in places):
        if found := _files_at(place):
            return found
        if place.is_symlink():
            raise DataError(f"{place} is a link to {place.readlink()}, and there is no such file")
    folder = next((place.parent for place in places if place.parent.is_dir()), None)
    there = ", ".join(sorted(ascii(path.name)[1:-1] for path in folder.glob("*"))[:8]) if folder else ""
    raise DataError(f"there is no file {data}; {folder or 'its folder'} has {there or 'nothing'}")


def _files_at(place: Path) -> dict[str, Path]:
    if not exists(place):
        return splitting.siblings(place) if has_known_ending(place) else {}
    refuse_irregular(place)
    stem, _ = ending(place)
    return splitting.siblings(place) if splitting.split_of_stem(stem) else {"": place}


def _read(paths: dict[str, Path]) -> tuple[str, dict[str, Table]]:
    """(digest of the contents, the tables by split)."""
    digest, tables = hashlib.sha256(), {}
    for split, path in paths.items():
        content = content_of(path)
        digest.update(f"{split}\0{len(content)}\0".encode() + content)
        tables[split] = table(path, content)
    return digest.hexdigest(), tables


def _named(content: str, paths: dict[str, Path], columns: Columns) -> str:
    """ "own:", the name of the file without its ending, and a digest of contents and columns."""
    stem = splitting.without_split(ending(next(iter(paths.values())))[0])
    digest = hashlib.sha256(repr((content, columns)).encode("utf-8", "backslashreplace")).hexdigest()
    return f"own:{re.sub(r'[^A-Za-z0-9]+', '_', stem)[:24].strip('_') or 'text'}-{digest[:8]}"


def _columns(tables: Sequence[Table], text: str, label: str, split: str) -> Columns:
    """The columns as given, else as they look; the same in all files."""
    first = tables[0]
    for parameter, name in (("text_column", text), ("label_column", label), ("split_column", split)):
        for one in tables:
            if name and name not in one.columns:
                raise DataError(f"{one.path.name} has no column {name!r} for {parameter}; {listed(one)}")
    given = [name for name in (text, label, split) if name]
    if len(set(given)) < len(given):
        raise DataError(f"text_column, label_column and split_column are {', '.join(given)}; allowed: different ones")
    if split and len(tables) > 1:
        raise DataError(f"split_column is {split!r}, but the splits are files: {_names(tables)}; leave it out")
    if not split and len(tables) == 1:
        split = splitting.column_of(first, taken={text, label})
    text = text or _only(first, "text", labelling.looks_like_texts, {label, split})
    label = label or _only(first, "label", labelling.looks_like_labels, {text, split})
    chosen = Columns(text, label, split)
    return chosen if len(tables) == 1 else _in_all(chosen, tables)


def _in_all(columns: Columns, tables: Sequence[Table]) -> Columns:
    for one in tables:
        for name in (columns.text, columns.label):
            if name not in one.columns:
                raise DataError(f"{one.path.name} has no column {name!r} as {tables[0].path.name} has; {listed(one)}")
    return columns


def _only(of: Table, what: str, looks_like, taken: set[str]) -> str:
    """The column called `what`, else the only one that looks like it."""
    free = [name for name in of.columns if name not in taken]
    called = [name for name in free if name.lower() == what]
    found = called or [name for name in free if looks_like(of.columns[name])]
    if len(found) != 1:
        said = f"{len(found)} columns look like it" if found else "no column looks like it"
        raise DataError(f"{of.path.name}: which column is the {what}? {said}; say it by {what}_column; {listed(of)}")
    if not called and of.kind == "delimited" and what == "label" and found[0] in of.columns[found[0]]:
        raise DataError(
            f"{of.path.name}: the first row must name the columns, but {found[0][:40]!r}, which stands there, is a "
            "label below too; add a first row such as text,label"
        )
    return found[0]


def listed(of: Table) -> str:
    """The columns of a file, for a message."""
    names = [repr(name[:40]) for name in of.columns]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"its columns: {', '.join(names[:LISTED]) or 'none'}{more}"


def _names(tables: Sequence[Table]) -> str:
    return ", ".join(one.path.name for one in tables)


def _records(tables: dict[str, Table], columns: Columns) -> tuple[tuple[str, ...], dict[str, list[tuple]], list[str]]:
    """(classes, records (id, text, label) by split, notes)."""
    places = [(of, number, split) for split, of in tables.items() for number in range(len(of.rows))]
    texts = [text_of(of, columns.text, number) for of, number, _ in places]
    if all(re.fullmatch(r"[\s\d.,+-]*", text) for text in texts):
        raise DataError(f"{places[0][0].path.name}: the column {columns.text!r} holds no words; {listed(places[0][0])}")
    classes, labels = labelling.labels_of([(of, number) for of, number, _ in places], columns.label)
    ids = _ids(places)
    records = list(zip(ids, texts, labels, strict=True))
    if columns.split:
        splits, notes = splitting.by_column(next(iter(tables.values())), columns.split, records)
    elif len(tables) > 1:
        splits = {
            split: [one for one, (*_, of) in zip(records, places, strict=True) if of == split] for split in tables
        }
        notes = [f"The splits are files: {_names(list(tables.values()))}."]
    else:
        splits, notes = {}, []
    splits, made = splitting.completed(splits or records, classes, places[0][0].path.name)
    read = ", ".join(f"{name!r} is the {what}" for what, name in (("text", columns.text), ("label", columns.label)))
    notes = [f"In {_names(list(tables.values()))} {read}.", *notes, *made]
    return classes, splits, [*notes, *(note for of in tables.values() for note in of.notes)]


def text_of(of: Table, column: str, number: int) -> str:
    """A record's text; DataError where there is none, or it is no text."""
    value = of.columns[column][number]
    if not isinstance(value, str):
        seen = "is missing" if value is None or value != value else f"is of type {type(value).__name__}"
        raise DataError(f"{of.place(number)}: the text ({column!r}) {seen}; every record needs one, a string")
    if len(value) > MOST_CHARACTERS:
        raise DataError(
            f"{of.place(number)}: the text has {len(value):,} characters; allowed: at most {MOST_CHARACTERS:,}, so "
            "cut it, or leave it out"
        )
    return sound(value, f"{of.place(number)}: the text")


def _ids(places: list[tuple[Table, int, str]]) -> list[str]:
    """The column `id` where there is one, else "<split>-<line>"; DataError where two records have one id."""
    seen: dict[str, str] = {}
    for of, number, split in places:
        given = of.columns["id"][number] if "id" in of.columns else None
        name = str(given) if given not in (None, "") else f"{split or 'text'}-{of.rows[number]}"
        if name in seen:
            raise DataError(
                f"{of.place(number)}: the id {name[:40]!r} is that of {seen[name]} too; ids must differ, or the column "
                "must have another name than id"
            )
        seen[name] = of.place(number)
    return list(seen)


def read(spec: Spec, folder: None, options: dict) -> Draft:
    """The draft of one's own text, in spaCy's tokens and in sentences.

    Raises:
        DataError: the file is no longer what it was.
    """
    name, (digest, tables) = spec.name, _read(spec.name.files)
    if _named(digest, name.files, name.columns) != name:
        raise DataError(f"{next(iter(name.files.values()))} has changed since it was first read; start again")
    classes, records, notes = _records(tables, name.columns)
    splits = {split: documents(of_split, options, split, notes) for split, of_split in records.items()}
    first = next(iter(name.files.values()))
    return draft_of(spec, first, {"title": f"One's own text, {first.name}"}, classes, splits, notes)


def spec_of(name: Own) -> Spec:
    """How one's own text is prepared."""
    return Spec(
        name,
        read,
        "spaCy's English tokens, lower-case, in the sentences of its rule-based splitter; words in at least 2 texts.",
        options=OPTIONS,
        min_df=2,
        sentences=True,
    )
