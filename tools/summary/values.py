"""Every published value beside ours, from all studies: the table, its counts, and its rows to read."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from lib.analysis.statistics import FEW
from lib.quantity import title_of
from lib.tables import text
from papers import PAPERS, TITLES, Paper, published
from papers.published import DIFFERENT, INTERVALS, KEYS, NOT_EXPLAINED, OUTCOMES, PLACE, SAME, once, out_of_reach
from tools.summary.studies import ABOUT, Study, preferred

OURS = [*KEYS, "value", "unit", *INTERVALS]
# A row with one of these is one of several, and none of them is the value of the model alone.
SERIES = ("trains", "lambda", "rate", "ranking", "way", "series", "at", "first", "against", "start", "epoch")
SERIES += ("vector_scale",)
# Of the texts that the papers train on (dev, where it is cut from them, among them) the share that the kept runs read.
INCOMPLETE = {"agnews": 0.31, "snli": 0.04, "babi3": 0.1}
IN_PART = "In part"  # how causes begin that are a part; all are probable at best: no paper states every setting


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


def values(studies: Iterable[Study]) -> pd.DataFrame:
    """One row for each row of published.csv, in its order, whether we have a value or not.

    A paper's values are looked up in the studies of its notebook; of several studies the first of `preferred` that
    has the value is taken.

    Returns:
        paper, table, the keys, theirs, unit, ours, low, high, seeds, difference, tolerance, answer, reason and cause
        (`papers.published.beside`), where ours comes from, note.
    """
    studies = preferred(studies)
    with_values = {name: paper for name, paper in PAPERS.items() if len(paper.published())}
    parts = [of_paper(paper, [one for one in studies if one.notebook == name]) for name, paper in with_values.items()]
    found = published.table()[PLACE].merge(pd.concat(parts), on=PLACE, how="left", validate="1:1")
    measured = ["ours", "low", "high", "seeds", "difference", "tolerance", "answer", "reason", "cause"]
    found[list(ABOUT)] = found[list(ABOUT)].fillna("")
    return found[[*PLACE, "theirs", "unit", *measured, *ABOUT, "note"]]


def of_paper(paper: Paper, studies: list[Study]) -> pd.DataFrame:
    """The published values of a paper beside those of its studies, the preferred one first."""
    about = pd.DataFrame([one.about() for one in studies], columns=ABOUT)
    ours = [partners(one).assign(study=number) for number, one in enumerate(studies)]
    ours = pd.concat(ours) if ours else pd.DataFrame(columns=[*OURS, "study"])
    ours = ours.drop_duplicates(KEYS).astype(dict.fromkeys(("value", *INTERVALS), float))
    beside = published.beside(ours, paper.published())
    beside = beside[beside["theirs"].notna()].merge(ours[[*KEYS, "study"]], on=KEYS, how="left")
    return beside.merge(about, left_on="study", right_index=True, how="left")


def counts(values: pd.DataFrame, *by: str) -> pd.DataFrame:
    """How many published values there are, each once, and what ours say, for each value of the columns `by`.

    Returns:
        the columns `by`, published, out of reach (`papers.published.out_of_reach`), those with one of ours,
        same, different and open, few (in one run or two) and few_same, explained and partly (of the different), quick
        (ours are of a profile other than `paper`).
    """
    values = once(values)
    ours = values["ours"].notna()
    flags = {"published": values["theirs"].notna(), "out_of_reach": out_of_reach(values), "ours": ours}
    flags |= {answer: values["answer"].eq(answer) for answer in OUTCOMES}
    flags["few"] = ours & values["seeds"].lt(FEW)
    flags["few_same"] = flags["few"] & values["answer"].eq(SAME)
    known, partly = explained(values), values["cause"].str.startswith(IN_PART)
    flags |= {"explained": known & ~partly, "partly": known & partly, "quick": ours & values["profile"].ne("paper")}
    numbers = pd.DataFrame(flags).astype(int)
    return numbers.groupby([values[name] for name in by], sort=False).sum().reset_index()


def explained(values: pd.DataFrame) -> pd.Series:
    """Which of the different values have a cause on record; what was tried and does not explain a value is none."""
    return values["cause"].ne("") & ~values["cause"].str.startswith(NOT_EXPLAINED)


def unexplained(values: pd.DataFrame) -> dict[str, list[str]]:
    """The different values without a cause on record, by name, with theirs and ours: of each paper and dataset."""
    values = once(values)
    values = values[values["answer"].eq(DIFFERENT) & ~explained(values)]
    return {
        f"{TITLES[paper]}, {dataset}": [
            f"{model(row)}: {title_of(row['quantity'])} {number(row['theirs'])}, ours {number(row['ours'])}"
            for _, row in same.iterrows()
        ]
        for (paper, dataset), same in values.groupby(["paper", "dataset"], sort=False)
    }


def groups(values: pd.DataFrame) -> list[dict[str, Any]]:
    """Of each paper with a printed value: counts, and those by dataset with their rows, first those with ours."""
    values, papers = once(values), []
    for paper, name in TITLES.items():
        of_paper = values[values["paper"] == paper]
        if of_paper.empty:
            continue
        datasets = counts(of_paper, "dataset").sort_values("ours", ascending=False, kind="stable").to_dict("records")
        rows = {dataset: same.to_dict("records") for dataset, same in of_paper.groupby("dataset")}
        parts = [one | {"rows": rows[one["dataset"]]} for one in datasets]
        papers.append({"name": name, "datasets": parts, "together": counts(of_paper, "paper").to_dict("records")[0]})
    return papers


def model(row: Mapping[str, Any]) -> str:
    """The model that a value is of, without what it is by default; "the data" for a value of no model."""
    layers = "" if row["layers"] in ("", "1") else f"{row['layers']} layers"
    variant = "" if row["variant"] == "base" else row["variant"]
    named = [title_of(name) for name in (row["encoder"], row["attention"], row["projection"], variant) if name]
    return " · ".join(filter(None, [*named, layers])) or "the data"


def number(given: float) -> str:
    """A number for a reader, three digits after the point; a dash for none."""
    return text(given, "", 3)
