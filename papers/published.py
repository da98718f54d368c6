"""The papers' printed and released values, beside ours."""

from collections.abc import Mapping
from functools import cache
from math import hypot, inf, sqrt
from pathlib import Path

import pandas as pd

from lib.analysis.statistics import FEW, quantile
from lib.quantity import RUN_COLUMNS, title_of

KEYS = [*RUN_COLUMNS, "quantity"]
PLACE = ["paper", "table", *KEYS]
INTERVALS = ("low", "high", "low_texts", "high_texts", "sd_seeds", "seeds", "n")
TITLES = {
    "jain2019": "Jain & Wallace 2019",
    "serrano2019": "Serrano & Smith 2019",
    "wiegreffe2019": "Wiegreffe & Pinter 2019",
    "tutek2020": "Tutek & Šnajder 2020",
    "meister2021": "Meister et al. 2021",
    "ours2026": "Ours: the tests tested",
}
SAME, NEAR, DIFFERENT = ANSWERS = ("same", "within a seed", "different")
SCORES = ("accuracy", "f1", "f1_uniform", "f1_permuted")
EFFECTS = ("f1_drop_uniform", "f1_drop_permuted", "tvd")  # of any size, .01 as well as .8
RUNS = {"tutek2020": 5}  # runs that a printed value is the mean of (section 4.1); the other papers speak of no mean
# The test texts that are the papers', and how many: official splits. IMDB and 20 Newsgroups are sampled, MIMIC's not
# to be had without a licence, Serrano & Smith's Yahoo, Yelp and IMDB other sets than those published.
SAME_TEXTS = {"sst": 1725, "agnews": 3800, "snli": 9824, "babi1": 1000, "babi2": 1000, "babi3": 1000}
ROUNDING = 1e-9  # .76 - .70 is a little more than .06 in floating point, and is meant to be inside
SOURCE = Path(__file__).parent.parent / "data" / "published.csv"
COUNTED = ("instances", "tokens", "words", "sentences", "types", "classes")


@cache
def _published() -> pd.DataFrame:
    frame = pd.read_csv(SOURCE, keep_default_na=False, dtype=str)
    value, sd = pd.to_numeric(frame["value"]), pd.to_numeric(frame["sd"])  # sd is NaN where none is printed
    return frame.assign(counted=frame["counted"] == "yes", value=value, sd=sd)


def table(paper: str | None = None, dataset: str | None = None) -> pd.DataFrame:
    """The published values, of one paper and of one dataset where given: the columns of data/published.csv.

    value is in `unit`, sd NaN where none is printed, counted a bool, all else text.
    """
    frame = _published()
    rows = frame["paper"].eq(paper or frame["paper"]) & frame["dataset"].eq(dataset or frame["dataset"])
    return frame[rows].reset_index(drop=True)


def counts(dataset: str) -> pd.DataFrame:
    """What the papers' data tables say about a dataset: paper, table, quantity, value, unit; empty where none does."""
    frame = table(dataset=dataset).query("encoder == '' and unit in @COUNTED")
    return frame[["paper", "table", "quantity", "value", "unit"]].reset_index(drop=True)


def printed_table(paper: str, number: str, ours: pd.DataFrame, index: str | list[str], columns: str) -> pd.DataFrame:
    """A table of a paper ("table1") on other data than ours, with ours in its first rows or columns; each value once.

    Of ours (dataset, encoder, quantity, value) what the paper does not print is left out.
    """
    theirs = table(paper).query("table == @number")
    ours = ours[ours["quantity"].isin(theirs["quantity"])]
    both = pd.concat([ours.assign(dataset=ours["dataset"] + ", here"), theirs])
    return both.pivot_table("value", index, columns, sort=False).reset_index().rename(columns=title_of)


def compare(ours: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Each published value next to ours, by dataset, encoder, attention, projection, variant, layers and quantity.

    A value that is in two tables or papers has a row for each, with ours repeated; what has no partner has NaN there.

    Args:
        ours: the columns of lib.analysis.summarise; all after `unit` may be missing. theirs: the columns of `table`.
    Returns:
        KEYS, unit, ours, its interval and seeds, paper, table, theirs, source (the paper's title), sd (of theirs),
        difference (ours less theirs), answer (one of ANSWERS; "" where there is nothing to compare), counted.
    Raises:
        ValueError: a key occurs twice in ours, or the units of two partners differ.
    """
    ours, theirs = with_text_keys(ours), with_text_keys(theirs)
    if len(twice := ours[ours.duplicated(KEYS)]):
        raise ValueError(f"ours has {' '.join(twice.iloc[0][KEYS])} more than once; summarise it first")
    ours = ours.reindex(columns=[*KEYS, "value", "unit", *INTERVALS]).rename(columns={"value": "ours"})
    theirs = theirs.reindex(columns=[*PLACE, "value", "unit", "sd", "counted"])
    theirs = theirs.rename(columns={"value": "theirs", "unit": "unit_theirs"})
    both = pd.concat([ours.merge(theirs, on=KEYS, how=how) for how in ("left", "right_anti")], ignore_index=True)
    unit = both["unit"].astype(object).fillna(both["unit_theirs"])
    for _, row in both[unit.ne(both["unit_theirs"].fillna(unit))].iterrows():
        where = f"in {row['unit']} here and in {row['unit_theirs']} in {row['paper']} {row['table']}"
        raise ValueError(f"{' '.join(row[KEYS])} is {where}; both must be in one unit")
    both = both.assign(unit=unit, difference=both["ours"] - both["theirs"], counted=both["counted"].eq(True))
    both[["paper", "table"]] = both[["paper", "table"]].fillna("")
    both["source"] = both["paper"].map(TITLES).fillna(both["paper"])
    spreads = both.loc[both["seeds"] >= FEW].groupby("quantity")["sd_seeds"].median()
    both["spread"] = both["sd_seeds"].where(both["seeds"] >= FEW, both["quantity"].map(spreads))
    both["answer"] = [answer(row) for row in both.to_dict("records")]
    of_ours, of_theirs = ("ours", "low", "high", "sd_seeds", "seeds"), ("paper", "table", "source", "theirs")
    return both[[*KEYS, "unit", *of_ours, *of_theirs, "sd", "difference", "answer", "counted"]]


def with_text_keys(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with every key as text, "" for a missing one: one layer is "1", not 1 or 1.0."""
    keys = frame[KEYS].astype(object)
    texts = keys.map(lambda key: "" if pd.isna(key) else f"{key:g}" if isinstance(key, float) else str(key))
    return frame.assign(**texts)


def tolerance(quantity: str, unit: str, value: float) -> float:
    """The largest difference from a published value that counts as the same, in its unit; a printed sd sets none."""
    if quantity in SCORES:
        return 0.02
    if unit == "tau-b" or quantity.endswith("jsd"):
        return 0.06
    if unit == "nats":
        return abs(value) / 10
    quarter = max(0.01, abs(value) / 4)
    return min(quarter, 0.06) if unit == "fraction" and quantity not in EFFECTS else quarter


def answer(row: Mapping[str, float]) -> str:
    """*same*: they differ by at most the tolerance, or the published value lies in our 95% interval. "": one lacks.

    *within a seed*: it lies where one more run of ours would, with 95% probability (`reach`). *different*: the rest.
    """
    if pd.isna(row["difference"]):
        return ""
    apart, allowed = abs(row["difference"]), tolerance(row["quantity"], row["unit"], row["theirs"])
    if apart <= allowed + ROUNDING or row["low"] <= row["theirs"] <= row["high"]:
        return SAME
    return NEAR if apart <= reach(row) else DIFFERENT


def reach(row: Mapping[str, float]) -> float:
    """How far a published value may lie from ours by chance: the half-width of a 95% prediction interval.

    t s sqrt(1/n + 1/m): s the sd of our n seeds (of fewer than FEW that of like quantities: `spread`), m the runs that
    theirs is a mean of (RUNS). To it is added, as squares of half-widths, what other test texts make: for both sides
    where theirs are others (SAME_TEXTS); where we read a sample of theirs for ours alone, with the correction for a
    finite population; nothing where we read all of them.
    """
    n, m = float(row["seeds"]), RUNS.get(row["paper"], 1)
    t = quantile(n - 1 if n >= FEW else inf)
    of_seeds = t * row["spread"] * sqrt(1 / n + 1 / m)
    wide = row["high"] - row["low"] if pd.isna(row["low_texts"]) else row["high_texts"] - row["low_texts"]
    texts = SAME_TEXTS.get(row["dataset"])
    other = max(0.0, 1 - row["n"] / texts) if texts else 2.0
    return hypot(*(0.0 if pd.isna(part) else part for part in (of_seeds, sqrt(other) * wide / 2)))
