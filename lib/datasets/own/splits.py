"""The splits of one's own text: told by a column or by the names of files, or drawn with a fixed seed."""

import re
from pathlib import Path

import numpy as np

from lib.datasets.files import DataError
from lib.datasets.own.table import Table, ending, exists

NAMES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("dev", "development", "val", "valid", "validation"), "dev"),
    **dict.fromkeys(("test", "testing"), "test"),
}
SHARE = 0.15  # of dev, and of test
SEED = 2019  # any fixed number: the splits must not depend on the seed of a run
Record = tuple[str, str, int]  # id, text, label
Records = dict[str, list[Record]]


def split_of_stem(stem: str) -> str | None:
    """The split that a file's name tells: "train" of my.train, my_train and train."""
    return NAMES.get(re.split(r"[._-]", stem)[-1].lower())


def without_split(stem: str) -> str:
    """The name that the files of all splits share."""
    return re.sub(r"[._-]?[A-Za-z]+$", "", stem) if split_of_stem(stem) else stem


def siblings(place: Path) -> dict[str, Path]:
    """The files beside a place that are its splits: of my.csv or my.train.csv, my.train.csv and so on; {} for none.

    Raises:
        DataError: two files of one split; no train, or no test.
    """
    stem, _ = ending(place)
    shared, found = without_split(stem), {}
    own_split = split_of_stem(stem)
    for name in NAMES:
        for between in ".", "_", "-", "":
            path = place.with_name(f"{shared}{between}{name}{place.name[len(stem) :]}")
            if (between or not shared) and exists(path):
                found.setdefault(NAMES[name], []).append(path)
    if own_split and exists(place) and len(found) == 1:
        return {"": place}  # alone: a name like any other
    for split, paths in found.items():
        if len(paths) > 1:
            raise DataError(f"{paths[0].name} and {paths[1].name} are both of {split}; allowed: one of them")
    if found and not {"train", "test"} <= set(found):
        there = ", ".join(path.name for [path] in found.values())
        raise DataError(f"of the files of splits there is {there}; allowed: at least one of train and one of test")
    return {split: found[split][0] for split in ("train", "dev", "test") if split in found}


def column_of(table: Table, taken: set[str]) -> str:
    """The column called split, if it is free and holds nothing but names of splits; else ""."""
    for name, values in table.columns.items():
        if (
            name not in taken
            and name.lower() == "split"
            and all(str(value).strip().lower() in NAMES for value in values)
        ):
            return name
    return ""


def by_column(table: Table, column: str, records: list[Record]) -> tuple[Records, list[str]]:
    """The records by the split that a column tells, with a note."""
    splits: Records = {}
    for number, (record, given) in enumerate(zip(records, table.columns[column], strict=True)):
        name = "" if given is None else str(given).strip()
        if name.lower() not in NAMES:
            seen = repr(name[:40]) if name else "missing"
            raise DataError(f"{table.place(number)}: the split ({column!r}) is {seen}; allowed: {', '.join(NAMES)}")
        splits.setdefault(NAMES[name.lower()], []).append(record)
    for needed in "train", "test":
        if needed not in splits:
            raise DataError(
                f"{table.path.name}: no record is of {needed} by the column {column!r}, which has {', '.join(splits)}; "
                "allowed: train and test, and dev"
            )
    return splits, [f"The column {column!r} tells the splits."]


def completed(given: Records | list[Record], classes: tuple[str, ...], file: str) -> tuple[Records, list[str]]:
    """Train, dev and test, drawn of each class in its share where they are not given, with a note on what was drawn.

    Raises:
        DataError: a class has too few texts.
    """
    if isinstance(given, list):
        _refuse_rare(given, classes, 3, f"{file}: to draw train, dev and test")
        rest, test = _drawn(given, SHARE, SEED)
        train, dev = _drawn(rest, SHARE / (1 - SHARE), SEED + 1)
        return {"train": train, "dev": dev, "test": test}, [
            f"The splits were drawn at random, always the same: of each class {1 - 2 * SHARE:.0%} are train, "
            f"{SHARE:.0%} dev and {SHARE:.0%} test."
        ]
    _refuse_rare(given["train"], classes, 1, f"{file}: to learn it from train")
    if "dev" in given:
        return {split: given[split] for split in ("train", "dev", "test")}, []
    _refuse_rare(given["train"], classes, 2, f"{file}: to draw dev from train")
    train, dev = _drawn(given["train"], SHARE, SEED)
    return {"train": train, "dev": dev, "test": given["test"]}, [f"{SHARE:.0%} of train, of each class, are dev."]


def _refuse_rare(records: list[Record], classes: tuple[str, ...], least: int, purpose: str) -> None:
    counts = np.bincount([label for _, _, label in records], minlength=len(classes))
    rare = [(count, name) for count, name in zip(counts.tolist(), classes, strict=True) if count < least]
    if rare:
        count, name = rare[0]
        others = f", and {len(rare) - 1:,} of the other {len(classes) - 1:,} classes too few as well" * (len(rare) > 1)
        raise DataError(
            f"{purpose}, every class needs at least {least} {'text' if least == 1 else 'texts'}; {name[:40]!r} has "
            f"{count}{others}: leave such records out, or name another label_column"
        )


def _drawn(records: list[Record], share: float, seed: int) -> tuple[list[Record], list[Record]]:
    """(the others, `share` of the records of each class, at least one), both in their first order."""
    labels, random = np.array([label for _, _, label in records]), np.random.default_rng(seed)
    chosen = set()
    for label in np.unique(labels):
        places = np.flatnonzero(labels == label)
        chosen.update(random.permutation(places)[: max(1, round(share * len(places)))].tolist())
    rest = [record for place, record in enumerate(records) if place not in chosen]
    return rest, [record for place, record in enumerate(records) if place in chosen]
