"""The summary of the kept results as pages: README, summary.md, summary.html, and the picture."""

import hashlib
import sys
from collections.abc import Iterable
from html import escape
from pathlib import Path

import pandas as pd
from nbconvert.filters import markdown2html

from lib.analysis.summaries import join_seeds
from lib.atomic_write import write_file
from lib.provenance import PROJECT
from lib.quantity import RUN_COLUMNS
from papers import PAPERS, judge, published, results, show
from papers.effects import FINDINGS
from papers.paper import Paper
from tools.report.cells import TEMPLATES, environment, figure
from tools.report.page import drawing_scripts, style
from tools.summary.answer import Answer, Missing, counts_by_paper

RENDERED = PROJECT / "reports" / "rendered"
PICTURE = ("J6", "J1", "J4", "J7", "W1", "T1", "M1", "S3")  # one panel a question


def answer() -> Answer:
    """The answer from the kept results."""
    findings, values = map(results.kept, ("findings", "values"))
    findings = results.with_second(results.main_runs(findings, "findings"), findings)
    # Of two encoders of one dataset, the first has its place in the tables: the one that learns, before the frozen one.
    findings = findings.sort_values("model", key=lambda names: names.str.endswith(", frozen"), kind="stable")
    values = join_seeds(results.main_runs(values, "values"), ["notebook", *RUN_COLUMNS, *results.OPTIONS])
    parts = [compared(paper, values[values["notebook"].eq(name)]) for name, paper in PAPERS.items()]
    both = pd.concat(parts, ignore_index=True)
    return Answer(judge.judge(findings), both[both["theirs"].notna()])


def compared(paper: Paper, values: pd.DataFrame) -> pd.DataFrame:
    """The printed values of a paper beside the kept ones of its notebook."""
    parts = [paper.ours(same) for _, same in values.groupby("dataset", sort=False)] or [paper.ours(values)]
    return published.compare(pd.concat(parts).drop_duplicates(published.KEYS), paper.published())


def by_vectors(values: pd.DataFrame) -> pd.DataFrame:
    """Printed values beside ours from each set of word vectors, of seeds 0 to 2, where two sets have ours."""
    parts = []
    for (name, vectors, _), rows in values[values["seed"].lt(3)].groupby(["notebook", "vectors", "dataset"]):
        parts.append(PAPERS[name].compare(PAPERS[name].ours(results.main_runs(rows, "values"))).assign(vectors=vectors))
    wide = pd.concat(parts).pivot_table("ours", [*published.PLACE, "theirs"], "vectors", sort=False)
    return wide[wide.notna().sum(axis=1) > 1].reset_index()


def by_dataset(found: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """The rows of some findings in the models that each is about, one model for each dataset: the paper's own first."""
    rows = show.about(found[found["finding"].isin(list(names))]).replace({"dataset": {":subwords=": ", "}}, regex=True)
    places = [(*FINDINGS[row.finding].datasets, row.dataset).index(row.dataset) for row in rows.itertuples()]
    return rows.iloc[pd.Series(places).argsort(kind="stable")].drop_duplicates(["finding", "dataset"])


def render(template: str, of: Answer, **more) -> str:
    """A template with the answer's numbers; "" where one of them is missing, which `failed` names then."""
    given = {name: getattr(of, name) for name in dir(of) if not name.startswith("_")}
    try:
        return environment(Path(__file__).parent).get_template(template).render(**given, **more)
    except Missing as error:
        of.failed.append(str(error))
        return ""


def picture(of: Answer):
    """The forest plots of PICTURE, by dataset, and below them the printed values against ours."""
    rows = by_dataset(of.found, PICTURE)
    rows = rows.sort_values("finding", key=lambda names: names.map(PICTURE.index), kind="stable")
    return show.forest(rows, "dataset", 2), show.scatter(of.values)


def markdown(of: Answer) -> str:
    """summary.md: the findings by dataset, and how the printed values compare."""
    found = by_dataset(of.found, FINDINGS)
    brief = pd.Series([show.in_brief(row) for row in found.to_dict("records")], found.index, dtype=str)
    found = found.assign(shown=brief.where(found["left_out"].eq(""), "–"), dataset=found["dataset"].map(escape))
    wide = found.pivot(index="finding", columns="dataset", values="shown").fillna("")
    by_paper = wide.groupby([FINDINGS[name].notebook for name in wide.index])
    tables = {notebook: rows.loc[:, rows.ne("").any()] for notebook, rows in by_paper}
    parts = [(paper.title, tables[name]) for name, paper in PAPERS.items() if name in tables]
    missing = [name for name in FINDINGS if name not in wide.index]
    known = {"FINDINGS": FINDINGS, "TITLES": published.TITLES}
    return render("summary.md.j2", of, parts=parts, counts=counts_by_paper(of.values), missing=missing, **known)


def page(of: Answer, mark: str = "") -> str:
    """summary.html: the answer, the picture, the papers, and every finding by dataset, as in summary.md."""
    charts = [chart for chart in picture(of) if hasattr(chart, "to_dict")]
    drawings = [figure(chart.to_dict(), number) for number, chart in enumerate(charts, start=1)]
    _, heading, findings = markdown(of).partition("## ")
    texts = {name: render(f"{name}.md.j2", of) for name in ("answer", "papers")} | {"findings": heading + findings}
    parts = {name: markdown2html(text) for name, text in texts.items()}
    return render("summary.html.j2", of, mark=mark, drawings=drawings, style=style(), **parts, **drawing_scripts())


def write_summary(folder: Path, of: Answer | None = None) -> Path | None:
    """Writes summary.html and its values where they rest on other files; None, after a sentence, where it cannot."""
    path = folder / "summary.html"
    try:
        mark = fingerprint()
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        if f'name="fingerprint" content="{mark}"' in text and text.rstrip().endswith("</html>"):
            return path
        print(f"{path}: making it of all kept results", flush=True)
        of = of or answer()
        values = of.values.drop(columns="source").to_csv(index=False, float_format="%.6g")
        write_file(folder / "summary-values.csv", values)
        return write_file(path, page(of, mark))
    except (OSError, ValueError) as error:
        print(f"the summary was not written: {error}", file=sys.stderr)


def fingerprint() -> str:
    """What the summary rests on: the kept tables, the printed values, and the code of papers and of the summary."""
    rooms = (PROJECT / "papers", PROJECT / "tools" / "summary", TEMPLATES)
    tables = [path for path in results.home().glob("*-*.csv") if path.is_file()]
    paths = [*tables, published.SOURCE, *(path for room in rooms for path in room.glob("*.*"))]
    parts = [path.name.encode() + path.read_bytes() for path in sorted(paths, key=lambda path: path.name)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
