"""Every published value with ours, and whether it lies within our interval and within the tolerance."""

from collections.abc import Iterable

import pandas as pd

from lib import published
from lib.papers import PAPERS, Paper
from lib.published import COUNTED, KEYS
from tools.summary.partners import COLUMNS, partners
from tools.summary.studies import ABOUT, Study, preferred

TOLERANCE = 0.06  # of fractions and of tau-b: the difference beyond which this project owes an explanation
SHARE = 0.1  # of the published value: the same for values in nats, which have no common scale
ROUNDING = 1e-9  # .76 - .70 is a little more than .06 in floating point, and is meant to be inside
PLACE = ["paper", "table", *KEYS]


def tolerance(unit: str, value: float) -> float:
    """The largest difference from a published value that counts as the same, in its unit."""
    return TOLERANCE if unit in ("fraction", "tau-b") else SHARE * abs(value)


def values(studies: Iterable[Study]) -> pd.DataFrame:
    """One row for each row of published.csv, in its order, whether we have a value or not.

    A paper's values are looked up in the studies of its notebook; of several studies the first of `preferred` that
    has the value is taken.

    Returns:
        paper, table, the keys, theirs, unit, ours, low, high, seeds, difference, inside (our interval; missing where
        there is none), tolerance, within (it; missing where we have no value), where ours comes from, note.
    """
    studies = preferred(studies)
    parts = [of_paper(paper, [one for one in studies if one.notebook == name]) for name, paper in PAPERS.items()]
    found = published.table()[PLACE].merge(pd.concat(parts), on=PLACE, how="left", validate="1:1")
    found["tolerance"] = [tolerance(*row) for row in zip(found["unit"], found["theirs"], strict=True)]
    close = found["difference"].abs() <= found["tolerance"] + ROUNDING
    found["within"] = close.astype("boolean").where(found["ours"].notna())
    measured = ["ours", "low", "high", "seeds", "difference", "inside", "tolerance", "within"]
    found[list(ABOUT)] = found[list(ABOUT)].fillna("")
    return found[[*PLACE, "theirs", "unit", *measured, *ABOUT, "note"]]


def of_paper(paper: Paper, studies: list[Study]) -> pd.DataFrame:
    """The published values of a paper beside those of its studies, the preferred one first."""
    about = pd.DataFrame([one.about() for one in studies], columns=ABOUT)
    ours = [partners(one).assign(study=number) for number, one in enumerate(studies)]
    ours = pd.concat(ours) if ours else pd.DataFrame(columns=[*COLUMNS, "study"])
    ours = ours.drop_duplicates(KEYS).astype(dict.fromkeys(("value", "low", "high", "seeds"), float))
    beside = published.beside(ours, paper.published())
    beside = beside[beside["theirs"].notna()].merge(ours[[*KEYS, "study"]], on=KEYS, how="left")
    return beside.merge(about, left_on="study", right_index=True, how="left")


def is_setting_or_size(values: pd.DataFrame) -> pd.Series:
    """Whether a published value is no result: the size of a dataset or of a vocabulary, or a setting such as lambda."""
    return values["unit"].isin(COUNTED) | values["quantity"].eq("lambda") | values["encoder"].eq("")


def counts(values: pd.DataFrame, *by: str) -> pd.DataFrame:
    """How many published values there are, and what became of them, for each value of the columns `by`.

    Returns:
        the columns `by`, published, sizes (of data, and settings), ours, with_interval, inside (the interval), within
        (the tolerance), quick (ours are of a profile other than `paper`).
    """
    told = values[list(by)].assign(
        published=1,
        sizes=is_setting_or_size(values),
        ours=values["ours"].notna(),
        with_interval=values["inside"].notna(),
        inside=values["inside"].fillna(False),
        within=values["within"].fillna(False),
        quick=values["ours"].notna() & values["profile"].ne("paper"),
    )
    return told.astype({name: int for name in told if name not in by}).groupby(list(by), sort=False).sum().reset_index()
