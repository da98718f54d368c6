"""The summary as a page of Markdown, for those who read the repository and have run nothing."""

from collections.abc import Iterable
from html import escape

import pandas as pd

from lib.papers import TITLES
from tools.summary.studies import Study
from tools.summary.values import SHARE, TOLERANCE, counts, values
from tools.summary.verdicts import in_words, verdicts

OPENING = """\
# Every claim on every dataset

From the kept tables of whole runs in profile `paper`, beside this file, written by `python -m tools.summary`. `make reports` writes the same with the evidence of each verdict and with every report made here, quick ones too, into `reports/summary.html`.

A claim is *supported* or *contradicted* for a model where our 95% interval leaves no doubt, else *undecided*; "2 of 4" counts models.
"""  # noqa: E501
VALUES = """\
## The published values

How many of each paper's published values have one of ours beside them, in how many the published one lies within our 95% interval, and in how many ours lies within the tolerance of it: {absolute:g} for fractions and tau-b, {share:.0%} of the published value for the rest. Sizes of data and settings, such as lambda, are published, and not measured here.
"""  # noqa: E501
HEADS = {
    "published": "published",
    "sizes": "of these sizes and settings",
    "ours": "ours",
    "inside": "inside the interval",
    "within": "inside the tolerance",
}


def markdown(studies: Iterable[Study]) -> str:
    """The claims of each paper by dataset, and the counts of published values by paper and dataset."""
    studies = list(studies)
    found, told = verdicts(studies), values(studies)
    parts = [OPENING, *(of_paper(found[found["paper"] == paper], name) for paper, name in TITLES.items())]
    return "\n".join([*parts, VALUES.format(absolute=TOLERANCE, share=SHARE), of_values(told)])


def of_paper(rows: pd.DataFrame, name: str) -> str:
    """A paper's claims as rows and datasets as columns."""
    if rows.empty:
        return f"## {name}\n\nNot run yet.\n"
    datasets = sorted(rows["dataset"].unique())
    said = rows.groupby(["short", "dataset"], sort=False)[["verdict"]].apply(in_words).unstack(fill_value="–")
    lines = [[f"*{short}*: {claim}", *said.loc[short, datasets]] for short, claim in claims_of(rows).items()]
    return f"## {name}\n\n{grid(['claim', *datasets], lines)}\n"


def claims_of(rows: pd.DataFrame) -> dict[str, str]:
    """Each claim's sentence by its few words; of one that is said in several ways the first."""
    return dict(rows.drop_duplicates("short")[["short", "claim"]].itertuples(index=False))


def of_values(told: pd.DataFrame) -> str:
    """The counts of each paper and dataset with a value of ours, then those of all others together."""
    rows = counts(told, "paper", "dataset")
    have = rows[rows["ours"] > 0]
    rest = rows[rows["ours"] == 0].groupby("paper", sort=False)[list(HEADS)].sum().reset_index()
    rest = rest.assign(dataset="others, not run")
    order = pd.concat([have, rest]).sort_values("paper", key=lambda names: names.map(list(TITLES).index), kind="stable")
    lines = [
        [TITLES[row.paper], row.dataset, *(str(getattr(row, name)) for name in HEADS)] for row in order.itertuples()
    ]
    total = ["all", "", *(str(rows[name].sum()) for name in HEADS)]
    return grid(["paper", "dataset", *HEADS.values()], [*lines, total]) + "\n"


def grid(head: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown; no text can end a cell or become HTML."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(escape(cell, quote=False).replace('|', chr(92) + '|') for cell in row)} |" for row in lines
    )
