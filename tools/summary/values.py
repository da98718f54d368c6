"""Every published value beside ours, from all studies: the table, its counts, and its rows to read."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from lib import published
from lib.papers import PAPERS, TITLES, Paper
from lib.published import COUNTED, KEYS
from lib.quantity import title_of
from lib.tables import text
from tools.summary.studies import ABOUT, Study, preferred, source

OURS = [*KEYS, "value", "unit", "low", "high", "sd_seeds", "seeds"]
# A row with one of these is one of several, and none of them is the value of the model alone.
SERIES = ("trains", "lambda", "rate", "ranking", "way", "series", "at", "first", "against", "start", "epoch")
TOLERANCE = 0.06  # of fractions and of tau-b: the difference beyond which this project owes an explanation
SHARE = 0.1  # of the published value: the same for values in nats, which have no common scale
ROUNDING = 1e-9  # .76 - .70 is a little more than .06 in floating point, and is meant to be inside
PLACE = ["paper", "table", *KEYS]


def partners(study: Study) -> pd.DataFrame:
    """A study's values under the names that published.csv has for them: the columns OURS, each key once."""
    table = study.values.reindex(columns=list(dict.fromkeys([*study.values, *OURS, *SERIES])))
    of_models = table[table["value"].notna() & table[list(SERIES)].isna().all(axis=1)]
    parts = [of_models, *PAPERS[study.notebook].partners(table, of_models)]
    parts = [part[OURS] for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=OURS)
    found = published.with_text_keys(pd.concat(parts, ignore_index=True))
    return found.drop_duplicates(KEYS, ignore_index=True)


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
    with_values = {name: paper for name, paper in PAPERS.items() if len(paper.published())}
    parts = [of_paper(paper, [one for one in studies if one.notebook == name]) for name, paper in with_values.items()]
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
    ours = pd.concat(ours) if ours else pd.DataFrame(columns=[*OURS, "study"])
    ours = ours.drop_duplicates(KEYS).astype(dict.fromkeys(("value", "low", "high", "seeds"), float))
    beside = published.beside(ours, paper.published())
    beside = beside[beside["theirs"].notna()].merge(ours[[*KEYS, "study"]], on=KEYS, how="left")
    return beside.merge(about, left_on="study", right_index=True, how="left")


def counts(values: pd.DataFrame, *by: str) -> pd.DataFrame:
    """How many published values there are, and how many have one of ours, for each value of the columns `by`.

    Returns:
        the columns `by`, published, sizes (of data and vocabularies, and settings such as lambda: no results), ours,
        with_interval, inside (the interval), within (the tolerance), quick (ours are of a profile other than `paper`).
    """
    sizes = values["unit"].isin(COUNTED) | values["quantity"].eq("lambda") | values["encoder"].eq("")
    flags = {
        "published": values["theirs"].notna(),
        "sizes": sizes,
        "ours": values["ours"].notna(),
        "with_interval": values["inside"].notna(),
        "inside": values["inside"].fillna(False),
        "within": values["within"].fillna(False),
        "quick": values["ours"].notna() & values["profile"].ne("paper"),
    }
    numbers = pd.DataFrame(flags).astype(int)
    return numbers.groupby([values[name] for name in by], sort=False).sum().reset_index()


def groups(values: pd.DataFrame) -> list[dict[str, Any]]:
    """Of each paper the published values by dataset, those with a value of ours first: counts, and rows to read."""
    by_dataset = counts(values, "paper", "dataset")
    papers = []
    for paper, name in TITLES.items():
        datasets = by_dataset[by_dataset["paper"] == paper].sort_values("ours", ascending=False, kind="stable")
        of_paper = values[values["paper"] == paper]
        if of_paper.empty:
            continue  # a paper without a printed value
        parts = [
            row_of_counts(row) | {"rows": [value(one) for _, one in same.iterrows()]}
            for _, row in datasets.iterrows()
            if len(same := of_paper[of_paper["dataset"] == row["dataset"]])
        ]
        together = row_of_counts(counts(of_paper, "paper").iloc[0])
        papers.append({"name": name, "datasets": parts, "together": together})
    return papers


def row_of_counts(row: pd.Series) -> dict[str, Any]:
    """The counts of `counts` as plain numbers."""
    return {name: number if isinstance(number, str) else int(number) for name, number in row.items()}


def value(row: pd.Series) -> dict[str, Any]:
    """One published value to read, with ours where there is one."""
    interval = "–" if pd.isna(row["low"]) else f"{number(row['low'])} to {number(row['high'])}"
    return {
        "table": row["table"],
        "model": model(row),
        "quantity": title_of(row["quantity"]),
        "unit": row["unit"],
        "theirs": number(row["theirs"]),
        "ours": number(row["ours"]),
        "interval": interval,
        "difference": ("+" if row["difference"] > 0 else "") + number(row["difference"]),
        "inside": answer(row["inside"]),
        "within": answer(row["within"]),
        "source": source(row) if row["profile"] else None,
        "note": row["note"],
    }


def model(row: pd.Series) -> str:
    """The model that a value is of, without what it is by default; "the data" for a value of no model."""
    layers = "" if row["layers"] in ("", "1") else f"{row['layers']} layers"
    variant = "" if row["variant"] == "base" else row["variant"]
    named = [title_of(name) for name in (row["encoder"], row["attention"], row["projection"], variant) if name]
    return " · ".join(filter(None, [*named, layers])) or "the data"


def number(given: float) -> str:
    """A number for a reader, three digits after the point; a dash for none."""
    return text(given, "", 3)


def answer(given: object) -> str:
    """yes, no, or a dash without a value."""
    return "–" if pd.isna(given) else "yes" if given else "no"
