"""The summary of all reports: reports/summary.html, and its tables as CSV."""

from pathlib import Path

from lib.atomic_write import write_text
from lib.quantity import title_of
from papers import PAPERS, TITLES
from papers.claims import CONTRAST, anchor
from tools.report.figures import environment
from tools.report.page import TERMS, kept, policy, style
from tools.summary import claims as judged
from tools.summary import studies as summary
from tools.summary.answers import DATASETS, Tables, answer
from tools.summary.studies import Study
from tools.summary.values import counts, groups, model, number, unexplained

SIGNS = {"supported": "✓", "contradicted": "✗", "negligible": "≈", "open": "?", "no verdict": "–", CONTRAST: "·"}
SIGNS |= {"mixed": "±"}
FILES = ("summary-claims.csv", "summary-values.csv", "summary-matrix.csv")  # the last: a row for each cell of claims


def found_in(folder: Path, results: Path | None = None) -> Tables:
    """What is found in the reports in `folder`, and in the kept tables as `tools.summary.studies.kept` has them."""
    return Tables.of([*studies_of(folder), *summary.kept(results)])


def write_summary(folder: Path, found: Tables | None = None) -> Path:
    """Write summary.html and its tables into `folder`, by default from what is `found_in` it."""
    claims, table, values, studies = found or found_in(folder)
    page, matrix = environment().get_template("summary.html.j2"), table.assign(marks=table["marks"].map("; ".join))
    for name, one in zip(FILES, (claims, values, matrix), strict=True):
        write_text(folder / name, one.to_csv(index=False))
    shown = page.render(
        made_here=sum(bool(one.page) for one in studies), kept=sum(not one.page for one in studies), files=FILES,
        answer=answer(table, values), cells=table.set_index(["paper", "short", "dataset"]).to_dict("index"),
        anchor=anchor, papers=[(name, claims[claims["paper"] == paper]) for paper, name in TITLES.items()],
        groups=groups(values), total=counts(values.assign(all="all"), "all").to_dict("records")[0],
        verdicts=judged.totals(claims), rate=f"{judged.RATE:.0%}", unexplained=unexplained(values),
        of=judged, model=model, number=number, title_of=title_of, source=summary.source,
        signs=SIGNS, terms=TERMS | DATASETS, style=style(), policy=policy([]),
    )  # fmt: skip
    return write_text(folder / "summary.html", shown)


def studies_of(folder: Path) -> list[Study]:
    """The studies of the finished reports in `folder` that left their tables."""
    studies = []
    for path in sorted(folder.glob("*.html")):
        about, left = kept(path, "summary", "tables")
        if about and left and about["notebook"] in PAPERS and "evidence" in left:
            profile = str(about["parameters"].get("profile", ""))
            altering = PAPERS[about["notebook"]].settings.altering()
            altered = tuple(name for name in about.get("changed", ()) if name in altering)
            tables = left["dataset"], left["values"], left["evidence"]
            source = {"page": path.name, "made": about["made"], "altered": altered}
            studies.append(summary.study(about["notebook"], *tables, profile, **source))
    return studies
