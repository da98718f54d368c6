"""The settings of a notebook: its parameters by their names, checked once."""

import re
from ast import literal_eval
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import cache
from math import inf, isfinite
from os import PathLike
from types import GenericAlias
from typing import Any, ClassVar, Self, get_args, get_type_hints

import torch

from lib.datasets import SHOW_TEXT, Own, own_text, spec
from lib.models import ATTENTIONS, ENCODERS
from lib.profiles import PROFILES
from lib.projections import projection
from lib.training import Run

DEVICES = ("auto", "cpu", "cuda")
WORDS = {str: "text", int: "whole number", float: "number", bool: "yes or no"}
Kind = type | GenericAlias  # str, int, float, bool; object for anything; or a list or tuple of one of them
MOST_SEEDS = 100
INJECTED = "# Parameters\n"  # how the cell begins that papermill adds after the one tagged `parameters`
YES_OR_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def device_kind(device: str) -> str:
    """cpu or cuda: what `device` names, or for "auto" a GPU where there is one.

    Runs for a GPU may be planned where there is none, such as on a cluster's login node; they are trained elsewhere.
    """
    if device not in DEVICES:
        raise ValueError(f"unknown device {device!r}; known: {', '.join(DEVICES)}")
    return "cuda" if device == "cuda" or (device == "auto" and torch.cuda.is_available()) else "cpu"


def setting(default: Any = (), **rules: Any) -> Any:
    """A field of `Settings`, with what its values must be; of a list these hold for each element.

    Args:
        rules: allowed: a closed list, such as a registry. check: a function that raises an error for an unknown name.
            least: of numbers. may_be_empty: a list, though its default is not. may_repeat: a list, its values. alters:
            any other value than the default makes it another experiment than the paper's.
    """
    return field(default=default, metadata=rules)


@dataclass(frozen=True)
class Settings:
    """The parameters that notebooks share; a paper's module extends them by its own.

    Every value may be given as text too, as on a command line: "0,1" for the seeds 0 and 1.

    dataset        a name that lib.datasets.spec knows; where `data` names your own file: that (lib.datasets.own_text)
    encoders       none: the paper's
    attentions     at least one
    seeds          themselves, or as a number how many (`seeds_of`); none: as many as the profile has
    projection     of the attention, in notebooks that do not compare projections

    Raises:
        ValueError: a value of another type, or not allowed; with what is.
    """

    answers_questions: ClassVar[bool] = False  # whether the paper has models for texts with a question

    dataset: str = setting("planted", check=spec)
    data: str = ""
    text_column: str = ""
    label_column: str = ""
    split_column: str = ""
    model: str = ""
    profile: str = setting("quick", allowed=PROFILES)
    encoders: tuple[str, ...] = setting(allowed=ENCODERS)
    attentions: tuple[str, ...] = setting(tuple(ATTENTIONS), allowed=ATTENTIONS)
    seeds: tuple[int, ...] = ()
    projection: str = setting("softmax", check=projection, alters=True)
    vectors: str = "auto"
    show_text: str = setting("auto", allowed=SHOW_TEXT)
    device: str = setting("auto", allowed=DEVICES)
    data_home: str = ""

    def __post_init__(self):
        object.__setattr__(self, "seeds", seeds_of(self.seeds))
        for one in fields(self):
            rules = one.metadata
            value = value_of(one.name, getattr(self, one.name), types(type(self))[one.name], rules.get("least", 0))
            may_be_empty = rules.get("may_be_empty") or not one.default
            refuse(one.name, value, rules.get("allowed"), rules.get("check"), may_be_empty, rules.get("may_repeat"))
            object.__setattr__(self, one.name, value)
        if not isinstance(self.dataset, Own):
            columns = self.text_column, self.label_column, self.split_column
            object.__setattr__(self, "dataset", own_text(self.data, *columns, self.data_home) or self.dataset)
        if spec(self.dataset).asks and not self.answers_questions:
            raise ValueError(
                f"{self.dataset!r} asks questions, which only the models of 'correlation' answer; choose another"
            )

    @classmethod
    def altering(cls) -> list[str]:
        """The settings that make another experiment than the paper's of it; others choose what is run, and on what."""
        return [one.name for one in fields(cls) if one.metadata.get("alters")]

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self:
        """The settings among `values`, which may have other names too: `Settings.of(globals())` in a notebook.

        Raises:
            ValueError: papermill was given a parameter that the notebook does not have.
        """
        refuse_unknown(values.get("In", ()), types(cls))
        return cls(**{name: values[name] for name in types(cls) if name in values})

    def seeds_or(self, number: int | None = None) -> list[int]:
        """The seeds; where none were chosen 0 to `number` - 1, or as many as the profile has."""
        return list(self.seeds or range(number or PROFILES[self.profile].seeds))

    def first_seeds(self) -> list[int]:
        """The seeds; in profile quick the first alone."""
        return self.seeds_or()[: 1 if self.profile == "quick" else None]

    def run(self, encoder: str, attention: str, seed: int, **more) -> Run:
        """A run of these settings; `more` are other fields of Run."""
        given = {"projection": self.projection, "profile": self.profile, "vectors": self.vectors}
        return Run(self.dataset, encoder, attention, seed=seed, device_kind=device_kind(self.device), **given, **more)


def seeds_of(given: Any) -> Any:
    """The seeds that a number, or its text, stands for: 3 is 0, 1 and 2, and 0 is the seed 0; a list is itself.

    Raises:
        ValueError: a number of more than MOST_SEEDS, which is rather a seed.
    """
    number = literal(given.strip()) if isinstance(given, str) else given
    if type(number) is not int or number < 0:
        return given
    if number > MOST_SEEDS:
        raise ValueError(f"parameter 'seeds' is {number}, which is how many; for that seed alone write [{number}]")
    return tuple(range(number)) or (0,)


def refuse_unknown(cells: Iterable[str], known: Iterable[str]) -> None:
    """Raises ValueError where papermill's cell sets what neither `known` has nor a cell before it."""
    there = set(known)
    for cell in cells:
        names = re.findall(r"^([A-Za-z_]\w*) *(?::[^=\n]*)?=", cell, re.MULTILINE)
        unknown = [name for name in names if name not in there] if cell.startswith(INJECTED) else []
        if unknown:
            raise ValueError(f"unknown parameter {unknown[0]!r}; known: {', '.join(known)}")
        there.update(names)


@cache
def types(settings: type[Settings]) -> dict[str, Kind]:
    """The type of each setting by its name."""
    hints = get_type_hints(settings)
    return {one.name: hints[one.name] for one in fields(settings)}


def value_of(name: str, given: Any, kind: Kind, least: float = -inf) -> Any:
    """What was given for a parameter, a value or its text, as its type.

    Lists may be written `[0, 1]`, `0,1` and `0 1`; they become tuples.

    Raises:
        ValueError: it is of another type, or a number below `least`.
    """
    if not get_args(kind):
        value = scalar(given, kind, least)
        if value is None:
            raise ValueError(f"parameter {name!r} is a {WORDS[kind]}{from_up(kind, least)}, not {given!r}")
        return value
    of, found = get_args(kind)[0], []
    for element in elements(given, of):
        value = scalar(element, of, least)
        if value is None:
            words = f"{WORDS[of]}s{from_up(of, least)}"
            raise ValueError(f"parameter {name!r} is a list of {words}; {element!r} is none")
        found.append(value)
    return tuple(found)


def from_up(kind: type, least: float) -> str:
    """The lower bound of a number, for a message."""
    return f" from {least:g} up" if kind in (int, float) and isfinite(least) else ""


def scalar(given: Any, kind: type, least: float) -> Any:
    """One value as `kind`; None where it is none."""
    if kind is object:
        return literal(given) if isinstance(given, str) else given
    if kind is str:
        return given if isinstance(given, str) else str(given) if isinstance(given, PathLike) else None
    if kind is bool:
        return YES_OR_NO.get(str(given).lower())
    value = literal(given) if isinstance(given, str) else given
    fits = type(value) is int or (kind is float and type(value) is float and isfinite(value))
    return kind(value) if fits and value >= least else None


def elements(given: Any, kind: type) -> list:
    """The elements of a list, or of its text; anything else is a list of itself."""
    if not isinstance(given, str):
        return list(given) if isinstance(given, list | tuple) else [given]
    parts = [part.strip("\"'") for part in re.split(r"[,\s]+", given.strip().strip("[]()")) if part]
    return parts if kind is str else [literal(part) for part in parts]


def literal(text: str) -> Any:
    """The Python value that a text is; else the text."""
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def refuse(
    name: str,
    value: Any,
    allowed: Iterable[str] | None = None,
    check: Callable[[str], object] | None = None,
    may_be_empty: bool = True,
    may_repeat: bool = False,
) -> None:
    """Raises ValueError where a value is not allowed, or a list that may not is empty or has an element twice."""
    items = value if isinstance(value, tuple) else (value,)
    if not items and not may_be_empty:
        raise ValueError(f"parameter {name!r} is an empty list; it needs at least one element")
    for item in items:
        if allowed is not None and item not in allowed:
            raise ValueError(f"parameter {name!r} cannot be {item!r}; allowed: {', '.join(allowed)}")
        if items.count(item) > 1 and not may_repeat:
            raise ValueError(f"parameter {name!r} has {item!r} {items.count(item)} times; allowed: each value once")
        if check:
            check(item)
