"""python -m tools.summary: what the repository shows of the kept tables: findings in README, pictures, summary.md."""

import re
from collections.abc import Iterable
from html import escape
from pathlib import Path

import pandas as pd

from lib import charts, published
from lib.papers import PAPERS, TITLES
from lib.papers.claims import CONTRAST
from lib.provenance import PROJECT
from lib.results import FOLDER
from tools.summary.claims import in_words, verdicts
from tools.summary.studies import Study, kept
from tools.summary.values import SHARE, TOLERANCE, counts, values

PICTURED = ("correlation",)
OPENING = """\
# Every claim on every dataset

From the kept tables of whole runs in profile `paper`, beside this file, written by `python -m tools.summary`. `make reports` writes the same with the evidence of each verdict and with every report made here, quick ones too, into `reports/summary.html`.

A claim is *supported*, *contradicted* or *negligible* for a model where our 95% interval leaves no doubt, else *open*; *no verdict* where its model cannot be a witness, *contrast* outside the claim's scope; "2 of 4" counts models.
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


def finding(rows: pd.DataFrame, dataset: str) -> str:
    """One paragraph for the README: each claim's verdict by model, those outside its scope left out."""
    sentences = []
    for short, same in rows[rows["verdict"] != CONTRAST].groupby("short", sort=False):
        models = {word: list(models) for word, models in same.groupby("verdict", sort=False)["model"]}
        parts = [f"{word} for {', '.join(names) if len(models) > 1 else 'all'}" for word, names in models.items()]
        sentences.append(f"*{short}*: {'; '.join(parts)}")
    seeds = len(rows["run_seeds"].iloc[0].split())
    return f"**{dataset}**, {seeds} seed{'' if seeds == 1 else 's'}. {'. '.join(sentences)}."


def readme(text: str, folder: Path = FOLDER) -> str:
    """The README's text with what is kept between `<!-- findings: NOTEBOOK -->` and `<!-- end -->`."""
    found = verdicts(kept(folder))

    def findings(match: re.Match) -> str:
        rows = found[found["paper"] == PAPERS[match[1]].key]
        parts = [finding(same, dataset) for dataset, same in rows.groupby("dataset")]
        return f"<!-- findings: {match[1]} -->{' '.join(parts) or 'not run yet'}<!-- end -->"

    return re.sub(r"<!-- findings: (\w+) -->.*?<!-- end -->", findings, text, flags=re.DOTALL)


def picture(notebook: str, dataset: str, folder: Path = FOLDER) -> Path | None:
    """Draws the taus of a kept table beside the published ones: <notebook>-<dataset>.svg; None where there are none."""
    ours = pd.read_csv(folder / f"{notebook}-{dataset}.csv")
    ours = ours[ours["quantity"].str.startswith("kendall_tau")]
    theirs = PAPERS[notebook].published(dataset)
    beside = published.beside(ours, theirs[theirs["quantity"].isin(ours["quantity"])])
    beside = beside[beside["theirs"].notna()]
    if beside.empty:
        return None
    path = folder / f"{notebook}-{dataset}.svg"
    charts.enable()
    charts.taus_beside(beside).save(path)
    return path


def markdown(studies: Iterable[Study]) -> str:
    """The claims of each paper by dataset, and the counts of published values by paper and dataset."""
    studies = list(studies)
    claims = verdicts(studies)
    parts = [OPENING, *(claims_of(claims[claims["paper"] == paper], title) for paper, title in TITLES.items())]
    return "\n".join([*parts, VALUES.format(absolute=TOLERANCE, share=SHARE), counts_of(values(studies))])


def claims_of(rows: pd.DataFrame, title: str) -> str:
    """A paper's claims as rows and datasets as columns; of a claim in several sentences the first is shown."""
    if rows.empty:
        return f"## {title}\n\nNot run yet.\n"
    datasets = sorted(rows["dataset"].unique())
    cells = rows.groupby(["short", "dataset"], sort=False)[["verdict"]].apply(in_words).unstack(fill_value="–")
    claims = rows.drop_duplicates("short")[["short", "claim"]].itertuples(index=False)
    lines = [[f"*{short}*: {claim}", *cells.loc[short, datasets]] for short, claim in claims]
    return f"## {title}\n\n{grid(['claim', *datasets], lines)}\n"


def counts_of(found: pd.DataFrame) -> str:
    """The counts of each paper and dataset with a value of ours, then those of all others together."""
    rows = counts(found, "paper", "dataset")
    have = rows[rows["ours"] > 0]
    rest = rows[rows["ours"] == 0].groupby("paper", sort=False)[list(HEADS)].sum().reset_index()
    order = pd.concat([have, rest.assign(dataset="others, not run")])
    order = order.sort_values("paper", key=lambda names: names.map(list(TITLES).index), kind="stable")
    lines = [[TITLES[row["paper"]], row["dataset"], *(str(row[name]) for name in HEADS)] for _, row in order.iterrows()]
    total = ["all", "", *(str(rows[name].sum()) for name in HEADS)]
    return grid(["paper", "dataset", *HEADS.values()], [*lines, total]) + "\n"


def grid(head: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown; no text can end a cell or become HTML."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(escape(cell, quote=False).replace('|', chr(92) + '|') for cell in row)} |" for row in lines
    )


def main() -> None:
    """Writes README's findings, the pictures and summary.md from the kept results."""
    studies = kept(FOLDER)
    for one in studies:
        if one.notebook in PICTURED:
            print(picture(one.notebook, one.dataset) or f"no published values of {one.dataset}")
    page = PROJECT / "README.md"
    page.write_text(readme(page.read_text(encoding="utf-8")), encoding="utf-8")
    (FOLDER / "summary.md").write_text(markdown(studies), encoding="utf-8")
    print(page, FOLDER / "summary.md", sep="\n")


if __name__ == "__main__":
    main()
