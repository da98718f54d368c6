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
from tools.summary.claims import BEFORE, DECIDED, RATE, in_words, totals, verdicts
from tools.summary.studies import Study, kept
from tools.summary.values import counts, partners, unexplained, values

PICTURED = ("correlation",)
OPENING = """\
# Every claim on every dataset

From the kept results of runs in profile `paper`, beside this file, judged anew by `python -m tools.summary`. `make reports` writes the same with the evidence of each verdict and with every report made here, quick ones too, into `reports/summary.html`.

A claim is *supported*, *contradicted* or *negligible* for a model where our 95% interval over texts and seeds leaves no doubt, by a bound that the claim states, else *open*. *No verdict*: the model is no witness, or its results were kept before those of single seeds were. *Contrast*: outside what the paper claims. "2 of 4" counts models; *fails*: decided by itself, but not among all these verdicts together, at a false discovery rate of {rate:.0%}; *stale*: made by other training code than the present.
"""  # noqa: E501
VALUES = """\
## The published values

Each counts once. Ours is *the same* where it differs by at most the tolerance and its 95% interval is no wider; *different* where it differs by more than the tolerance and by more than other seeds would make it; else *open*: it is too imprecise, has too few seeds, or other seeds could make the difference. The tolerances by kind of quantity are in `lib/published.py`. Out of reach are sizes of data, settings such as lambda, and two counts of Serrano & Smith over all their models and datasets together. The causes on record are in `data/differences.csv`.
"""  # noqa: E501
HEADS = {
    "published": "published",
    "out_of_reach": "out of reach",
    "ours": "ours",
    "same": "same",
    "different": "different",
    "explained": "of these with a cause",
    "open": "open",
}
UNEXPLAINED = "### Different, without a cause on record\n"


def finding(rows: pd.DataFrame, dataset: str) -> str:
    """One paragraph for the README: each claim's verdict by model, those outside its scope left out."""
    if (rows["reason"] == BEFORE).all():
        return f"**{dataset}**: stale, {BEFORE}."
    sentences = []
    for short, same in rows[rows["verdict"] != CONTRAST].groupby("short", sort=False):
        names = pd.Series([named(row) for _, row in same.iterrows()], index=same["verdict"])
        alike = names.index.nunique() == 1 and names.tolist() == same["model"].tolist()  # none is marked
        words = {word: "all" if alike else ", ".join(names[[word]]) for word in names.index}
        parts = [f"{word} for {models}" for word, models in words.items()]
        sentences.append(f"*{short}*: {'; '.join(parts)}")
    many = rows.loc[rows["seeds"] > 0, "seeds"].astype(int)  # none for a model without a value
    seeds = " to ".join(dict.fromkeys((f"{many.min()}", f"{many.max()}"))) if len(many) else "no"
    about = [f"{seeds} seed{'' if seeds == '1' else 's'}", rows["settings"].iloc[0]]
    about += ["stale"] if rows["stale"].eq("stale").any() else []
    return f"**{dataset}**, {', '.join(filter(None, about))}. {'. '.join(sentences) or 'Outside what is claimed'}."


def named(row: pd.Series) -> str:
    """A model, marked where it is a weak witness or its verdict could be chance."""
    marks = ["weak witness"] if row["witness"] == "weak" else []
    marks += ["fails"] if row["verdict"] in DECIDED and not row["passes"] else []
    return row["model"] + (f" ({', '.join(marks)})" if marks else "")


def readme(text: str, folder: Path = FOLDER) -> str:
    """The README's text with what is kept between `<!-- findings: NOTEBOOK -->` and `<!-- end -->`."""
    found = verdicts(kept(folder))

    def findings(match: re.Match) -> str:
        rows = found[found["paper"] == PAPERS[match[1]].key]
        parts = [finding(same, dataset) for dataset, same in rows.groupby("dataset")]
        return f"<!-- findings: {match[1]} -->{' '.join(parts) or 'not run yet'}<!-- end -->"

    return re.sub(r"<!-- findings: (\w+) -->.*?<!-- end -->", findings, text, flags=re.DOTALL)


def picture(study: Study, folder: Path = FOLDER) -> Path | None:
    """Draws a study's taus beside the published ones: <notebook>-<dataset>.svg; None where there are none."""
    ours = partners(study)
    ours = ours[ours["quantity"].str.startswith("kendall_tau")]
    theirs = PAPERS[study.notebook].published(study.dataset)
    beside = published.beside(ours, theirs[theirs["quantity"].isin(ours["quantity"])])
    beside = beside[beside["theirs"].notna()]
    if beside.empty:
        return None
    path = folder / f"{study.notebook}-{study.dataset}.svg"
    charts.enable()
    charts.taus_beside(beside).save(path)
    return path


def markdown(studies: Iterable[Study]) -> str:
    """The claims of each paper by dataset, and the counts of published values by paper and dataset."""
    studies = list(studies)
    claims = verdicts(studies)
    found = values(studies)
    parts = [OPENING.format(rate=RATE), counts_of_verdicts(claims)]
    parts += [claims_of(claims[claims["paper"] == paper], title) for paper, title in TITLES.items()]
    lists = [f"- {where}: {escape('; '.join(names), quote=False)}." for where, names in unexplained(found).items()]
    return "\n".join([*parts, VALUES, counts_of(found), UNEXPLAINED, *lists]) + "\n"


def counts_of_verdicts(found: pd.DataFrame) -> str:
    """How many verdicts of each kind there are, as a table."""
    heads = {"word": "verdict", "count": "models", "weak": "by weak witnesses", "fails": "fail", "stale": "stale"}
    rows = [[str(one[name]) for name in heads] for one in totals(found)]
    return grid(list(heads.values()), rows) + "\n"


def claims_of(rows: pd.DataFrame, title: str) -> str:
    """A paper's claims as rows and datasets as columns; of a claim in several sentences the first is shown."""
    if rows.empty:
        return f"## {title}\n\nNot run yet.\n"
    datasets = sorted(rows["dataset"].unique())
    groups = rows.groupby(["short", "dataset"], sort=False)[["verdict", "witness", "reason"]]
    cells = groups.apply(in_words).unstack(fill_value="–")
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
            print(picture(one) or f"no published values of {one.dataset}")
    page = PROJECT / "README.md"
    page.write_text(readme(page.read_text(encoding="utf-8")), encoding="utf-8")
    (FOLDER / "summary.md").write_text(markdown(studies), encoding="utf-8")
    print(page, FOLDER / "summary.md", sep="\n")


if __name__ == "__main__":
    main()
