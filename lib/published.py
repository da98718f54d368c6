"""The papers' printed and released values, beside ours."""

from functools import cache
from pathlib import Path

import pandas as pd

from lib.quantity import RUN_COLUMNS

KEYS = [*RUN_COLUMNS, "quantity"]
SOURCE = Path(__file__).parent.parent / "data" / "published.csv"
COUNTED = ("instances", "tokens", "words", "sentences", "types", "classes")


@cache
def _published() -> pd.DataFrame:
    frame = pd.read_csv(SOURCE, keep_default_na=False, dtype=str)
    frame["value"] = frame["value"].astype(float)
    frame["sd"] = pd.to_numeric(frame["sd"])  # NaN where none is printed
    return frame


def table(paper: str | None = None, dataset: str | None = None) -> pd.DataFrame:
    """The published values, of one paper and of one dataset where given; none for a dataset that no paper reports.

    Columns: those of data/published.csv; value in `unit`, sd NaN where none is printed, all else text.

    Raises:
        KeyError: unknown paper.
    """
    frame = _published()
    if paper is not None and paper not in set(frame["paper"]):
        raise KeyError(f"unknown paper {paper!r}; known: {', '.join(sorted(set(frame['paper'])))}")
    for column, wanted in (("paper", paper), ("dataset", dataset)):
        frame = frame if wanted is None else frame[frame[column] == wanted]
    return frame.reset_index(drop=True)


def counts(dataset: str) -> pd.DataFrame:
    """What the papers' data tables say about a dataset: paper, table, quantity, value, unit; empty where none does."""
    frame = table(dataset=dataset)
    frame = frame[(frame["encoder"] == "") & frame["unit"].isin(COUNTED)]
    return frame[["paper", "table", "quantity", "value", "unit"]].reset_index(drop=True)


def beside(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Each published value next to ours, by dataset, encoder, attention, projection, variant, layers and quantity.

    A value that is in two tables or papers has a row for each, with ours repeated. What has no partner on the
    other side is kept with NaN there. Values are compared as they are: no unit is converted.

    Args:
        ours: the columns of lib.analysis.summarise; low and high may be missing.
        theirs: the columns of `table`.
    Returns:
        the keys, unit, ours, low, high, sd_seeds, seeds, paper, table, theirs, difference (ours less theirs), inside
        (whether theirs lies within our interval; missing where there is nothing to compare), note.
    Raises:
        ValueError: a key occurs twice in ours, or the units of two partners differ.
    """
    ours, theirs = with_text_keys(ours), with_text_keys(theirs)
    twice = ours[ours.duplicated(KEYS)]
    if len(twice):
        raise ValueError(f"ours has {named(twice.iloc[0])} more than once; summarise it first")
    ours = ours.reindex(columns=[*KEYS, "value", "unit", "low", "high", "sd_seeds", "seeds"])
    theirs = theirs.reindex(columns=[*KEYS, "value", "unit", "paper", "table", "note"])
    ours, theirs = (frame.assign(place=range(len(frame))) for frame in (ours, theirs))
    both = ours.merge(theirs, on=KEYS, how="outer", suffixes=("", "_theirs"))
    both = both.sort_values(["place", "place_theirs"], ignore_index=True)  # as ours, then what is theirs alone
    refuse_other_units(both)
    both["unit"] = both["unit"].fillna(both["unit_theirs"])
    both = both.rename(columns={"value": "ours", "value_theirs": "theirs"})
    both["difference"] = both["ours"] - both["theirs"]
    within = (both["low"] <= both["theirs"]) & (both["theirs"] <= both["high"])
    comparable = both[["low", "high", "theirs"]].notna().all(axis=1)
    both["inside"] = within.astype("boolean").where(comparable)
    both[["paper", "table", "note"]] = both[["paper", "table", "note"]].fillna("")
    of_ours, of_theirs = ("ours", "low", "high", "sd_seeds", "seeds"), ("paper", "table", "theirs")
    return both[[*KEYS, "unit", *of_ours, *of_theirs, "difference", "inside", "note"]]


def with_text_keys(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with every key as text, "" for a missing one: one layer is "1", not 1 or 1.0."""
    missing = [name for name in (*KEYS, "value", "unit") if name not in frame]
    if missing:
        raise ValueError(f"a table of values needs the columns {', '.join(missing)}; it has {', '.join(frame.columns)}")
    return frame.assign(**{name: [text_key(value) for value in frame[name]] for name in KEYS})


def text_key(value) -> str:
    """A key's value as text; whole numbers without a decimal point."""
    if pd.isna(value):
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def named(row: pd.Series) -> str:
    """The keys of a row, for a message."""
    return " ".join(row[name] for name in KEYS if row[name])


def refuse_other_units(both: pd.DataFrame) -> None:
    """Raises ValueError where two partners are in different units."""
    wrong = both[both["unit"].notna() & both["unit_theirs"].notna() & (both["unit"] != both["unit_theirs"])]
    if len(wrong):
        row = wrong.iloc[0]
        raise ValueError(
            f"{named(row)} is in {row['unit']} here and in {row['unit_theirs']} in {row['paper']} {row['table']} "
            f"({len(wrong)} such rows); both must be in one unit"
        )
