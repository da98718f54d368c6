"""python -m tools.summary: what the repository shows of the kept tables and the rendered reports.

README's answer and table, claims.svg and summary.md beside them, and the summary's page among the rendered reports.
"""

import argparse
import re
from html import escape
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from lib import charts
from lib.provenance import PROJECT
from papers import TITLES
from papers.claims import QUESTIONS
from papers.results import FOLDER
from tools.report.figures import environment
from tools.report.page import summaries_in, terms_in
from tools.summary.answers import DATASETS, Tables, answer, of_papers
from tools.summary.claims import RATE, in_order, totals
from tools.summary.page import found_in, write_summary
from tools.summary.values import counts, unexplained

RENDERED = PROJECT / "reports" / "rendered"
HEADS = {"published": "published", "out_of_reach": "out of reach", "ours": "ours", "same": "same"}
HEADS |= {"different": "different", "explained": "of these with a probable cause"}
HEADS |= {"partly": "with a part of one", "open": "open"}


def readme(text: str, found: Tables) -> str:
    """README's text with what is found in place of what stands between `<!-- answer -->`, `<!-- papers -->` or
    `<!-- rendered -->` and `<!-- end -->`.
    """
    rows = [[*words, f"[{name}](notebooks/{name}.ipynb)"] for *words, name in of_papers(found.cells, found.values)]
    lead, by_question, counting, rest = answer(found.cells, found.values)
    listed = [f"- **{one.question.asked}** {one.short}" for one in by_question]
    tests = [f"- **{one.question.asked}**\n" + "\n".join(f"  - {test}" for test in one.tests) for one in by_question]
    details = [folded("A test for each answer", "\n".join(tests))] if tests else []
    table = grid(["paper", "claim", "what we find", "tests", "notebook"], rows)
    known = terms_in("\n".join([lead, *listed, *details, counting, table, rest])) | DATASETS
    terms = "; ".join(f"*{term}*: {meaning}" for term, meaning in known.items())
    details += [folded("How it was counted, and the words", "\n\n".join(filter(None, (counting, f"{terms}."))))]
    parts = {
        "answer": "\n\n".join(filter(None, (lead, "\n".join(listed), *details))),
        "papers": "\n\n".join(filter(None, (table, rest))),
        "rendered": pages_of(RENDERED),
    }
    places = r"<!-- (answer|papers|rendered) -->.*?<!-- end -->"
    return re.sub(places, lambda m: f"<!-- {m[1]} -->\n\n{parts[m[1]]}\n\n<!-- end -->", text, flags=re.DOTALL)


def folded(title: str, text: str) -> str:
    """Text under a title that opens it."""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def pages_of(folder: Path) -> str:
    """A link to each report in `folder`, and to their summary."""
    words = [(f"{one['notebook']} on {one['dataset']}", quote(one["file"])) for one in summaries_in(folder)]
    links = [f"[{text}]({folder.relative_to(PROJECT)}/{file})" for text, file in [*words, ("summary", "summary.html")]]
    return f"Full-size reports, to download and open in a browser: {', '.join(links)}."


def picture(found: Tables, folder: Path = FOLDER) -> Path:
    """Draws what the claims say of attention as an explanation, by datasets: claims.svg."""
    charts.enable()
    path = folder / "claims.svg"
    asked = {name: one.asked for name, one in QUESTIONS.items()}
    of_all = [found.cells[found.cells["question"].eq(name)] for name in asked]
    cells = pd.concat(of_all, ignore_index=True)
    cells["question"] = cells["question"].map(asked)
    charts.claims(cells, in_order(cells["dataset"])).save(path)
    return path


def markdown(found: Tables) -> str:
    """The claims of each paper by dataset, and the counts of published values by paper and dataset."""
    heads = {
        "word": "verdict",
        "count": "verdicts",
        "weak": "by weak witnesses",
        "fails": "could be chance",
        "stale": "stale",
    }
    page = environment().overlay(autoescape=False).get_template("summary.md.j2")
    return page.render(
        rate=f"{RATE:.0%}",
        verdicts=grid(list(heads.values()), [[str(one[name]) for name in heads] for one in totals(found.claims)]),
        papers={title: claims_of(found.cells[found.cells["paper"] == paper]) for paper, title in TITLES.items()},
        counts=counts_of(found.values),
        unexplained={
            where: escape("; ".join(names), quote=False) for where, names in unexplained(found.values).items()
        },
    )


def claims_of(rows: pd.DataFrame) -> str:
    """A paper's claims as rows and datasets as columns, of rows of `cells`: the verdicts, the effect of one model."""
    if rows.empty:
        return "Not run yet."
    datasets = in_order(rows["dataset"])
    chance = rows["marks"].map(lambda marks: "; could be chance" if "could be chance" in marks else "")
    alone = (rows["size"] + ": ").where(rows["model"].ne("") & rows["size"].ne(""), "")
    rows = rows.assign(written=alone + rows["words"] + chance)
    table = rows.pivot(index="short", columns="dataset", values="written").fillna("–")
    claims = rows.drop_duplicates("short")[["short", "claim"]].itertuples(index=False)
    lines = [[f"*{short}*: {claim}", *table.loc[short, datasets]] for short, claim in claims]
    return grid(["claim", *datasets], lines)


def counts_of(found: pd.DataFrame) -> str:
    """The counts of each paper and dataset with a value of ours, then those of all others together."""
    rows = counts(found, "paper", "dataset")
    have = rows[rows["ours"] > 0]
    rest = rows[rows["ours"] == 0].groupby("paper", sort=False)[list(HEADS)].sum().reset_index()
    order = pd.concat([have, rest.assign(dataset="others, not run")])
    order = order.sort_values("paper", key=lambda names: names.map(list(TITLES).index), kind="stable")
    lines = [[TITLES[row["paper"]], row["dataset"], *(str(row[name]) for name in HEADS)] for _, row in order.iterrows()]
    total = ["all", "", *(str(rows[name].sum()) for name in HEADS)]
    return grid(["paper", "dataset", *HEADS.values()], [*lines, total])


def grid(head: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown; no text can end a cell or become HTML."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(escape(cell, quote=False).replace('|', chr(92) + '|') for cell in row)} |" for row in lines
    )


def main() -> None:
    """Writes README's answer and table, the picture, summary.md and the rendered summary."""
    argparse.ArgumentParser(prog="python -m tools.summary", description=main.__doc__).parse_args()
    found, page = found_in(RENDERED, FOLDER), PROJECT / "README.md"
    page.write_text(readme(page.read_text(encoding="utf-8"), found), encoding="utf-8")
    (FOLDER / "summary.md").write_text(markdown(found), encoding="utf-8")
    print(page, FOLDER / "summary.md", picture(found), write_summary(RENDERED, found), sep="\n")


if __name__ == "__main__":
    main()
