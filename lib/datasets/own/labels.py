"""The labels of one's own text: which columns look like labels or texts, and the classes in their natural order."""

import math
import re
from collections.abc import Sequence
from statistics import mean

from lib.datasets.files import DataError, sound
from lib.datasets.own.table import Table

LONGEST = 200  # characters of a label
WORDS, CHARACTERS = 3, 15  # of a column of texts on average, at least one of the two
REPEATED = 3  # times that a label occurs on average, at least
SAMPLE = 1_000  # values by which a column is judged


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


def labels_of(places: list[tuple[Table, int]], column: str) -> tuple[tuple[str, ...], list[int]]:
    """(classes, the number of each record's class); numbers in their order, all else as people sort it.

    Raises:
        DataError: a label that is missing or no label; one class alone.
    """
    names = [_name(of, column, number) for of, number in places]
    numbers = {name: _number(name) for name in dict.fromkeys(names)}
    if all(number is not None for number in numbers.values()):
        spelt = {number: name for name, number in reversed(numbers.items())}  # 1 and 1.0 are one class
        names, order = [spelt[numbers[name]] for name in names], [spelt[number] for number in sorted(spelt)]
    else:
        order = sorted(numbers, key=natural)
    if len(order) < 2:
        raise DataError(
            f"{places[0][0].path.name}: all {len(names):,} records have the label {order[0]!r}; a classifier needs at "
            "least two classes"
        )
    ids = {name: number for number, name in enumerate(order)}
    return tuple(order), [ids[name] for name in names]


def natural(name: str) -> list:
    """The key by which people sort names: "class 2" before "class 10"."""
    parts = re.split(r"(\d+)", name.casefold())
    return [(int(part), "") if part.isdecimal() else (math.inf, part) for part in parts if part] + [(math.inf, name)]


def _name(of: Table, column: str, number: int) -> str:
    value, place = of.columns[column][number], f"{of.place(number)}: the label ({column!r})"
    if value is None or value != value or (isinstance(value, str) and not value.strip()):
        raise DataError(f"{place} is missing; every record needs one, so leave the others out")
    if not isinstance(value, str | int | float):
        raise DataError(f"{place} is of type {type(value).__name__}; allowed: a text or a number")
    if isinstance(value, float):
        value = int(value) if value.is_integer() else value
    name = str(value).strip()
    if len(name) > LONGEST:
        raise DataError(f"{place} has {len(name):,} characters; allowed: at most {LONGEST}; is it the column of texts?")
    return sound(name, place)


def _number(name: str) -> float | None:
    try:
        number = float(name)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
