"""The pages: a report, and the list of reports. Nothing is loaded from anywhere, and only known scripts may run."""

import base64
import hashlib
import json
import re
from functools import cache
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pygments.formatters import HtmlFormatter

from lib.atomic_write import write_text
from lib.notebook import LEFT
from lib.progress import spoken
from lib.training.cache import home
from tools.report.cells import Cells
from tools.report.figures import TEMPLATES, environment, figure, json_for_html, small_drawing


def page(notebook: Any, summary: dict[str, Any], parameters: list[dict[str, Any]], found: dict[str, Any]) -> str:
    """The report of a notebook that ran.

    Args:
        notebook: nbformat's node, with outputs.
        summary: what the list of reports shows of this one; kept in the page, where the list reads it.
        parameters: name, value, default and help of each parameter.
        found: of `papers.show.headline`: what stands at the top.
    """
    cells = Cells()
    elsewhere = {"parameters", "injected-parameters"}  # they have a place of their own on the page
    cells.charts = int(bool(found.get("chart")) and not found["own"])
    top = figure(found["chart"], 1) if cells.charts else ""
    parts = cells.parts([cell for cell in notebook.cells if not elsewhere & set(cell.metadata.get("tags", []))])
    opening = parts.pop(0) if parts and notebook.cells[0].cell_type == "markdown" else ""
    heading, end, introduction = opening.rpartition("</h1>")
    heading = heading.replace(escape(title(notebook), quote=False), escape(summary["title"], quote=False))
    scripts = [vega(), (TEMPLATES / "page.js").read_text(encoding="utf-8")] if cells.charts else []
    return environment().get_template("report.html.j2").render(
        summary=summary, kept=json_for_html(summary), left=json_for_html(next(iter(outputs(notebook, LEFT)), {})),
        time=spoken(summary["seconds"]), parameters=parameters, found=found, top=top,
        heading=heading + end, introduction=introduction, parts=parts,
        contents=[entry for entry in cells.contents if entry[0] in (2, 3)],
        style=style(), scripts=scripts, policy=policy(scripts),
    )  # fmt: skip


def outputs(notebook: Any, kind: str) -> list[Any]:
    """The notebook's outputs of one MIME type: HEADLINE, its findings, or LEFT, the tables of `papers.results.keep`."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [output.data[kind] for cell in cells for output in cell.outputs if kind in output.get("data", {})]


def title(notebook: Any) -> str:
    """The notebook's first heading."""
    texts = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    headings = (re.search(r"^#\s+(.+)$", text, re.MULTILINE) for text in texts)
    return next((found[1].strip() for found in headings if found), "Report")


def kept(page: Path, *names: str) -> list[Any]:
    """What a finished report keeps under each name ("summary", "tables"); None where it or the page is missing."""
    try:
        text = page.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        text = ""
    finished = text if text.rstrip().endswith("</html>") else ""
    patterns = [rf'<script type="application/json" id="{name}">(.*?)</script>' for name in names]
    found = [re.search(pattern, finished, re.DOTALL) for pattern in patterns]
    return [json.loads(one[1]) if one else None for one in found]


def kept_summary(page: Path) -> dict[str, Any] | None:
    """The summary that a finished report keeps of itself; None where there is no such report. See `page`."""
    return kept(page, "summary")[0]


def summaries_in(folder: Path) -> list[dict[str, Any]]:
    """`kept_summary` of each report in `folder`, by their files' names."""
    return [summary for path in sorted(folder.glob("*.html")) if (summary := kept_summary(path))]


def write_index(folder: Path) -> Path:
    """Write the list of all reports in `folder`, index.html, the newest first."""
    summaries = summaries_in(folder)
    summaries.sort(key=lambda summary: summary["made"], reverse=True)
    reports = [{"drawing": ""} | one | {"link": quote(one["file"])} for one in summaries]  # older pages keep none
    shown = {"reports": reports, "spoken": spoken, "style": style(), "policy": policy([])}
    return write_text(folder / "index.html", environment().get_template("index.html.j2").render(shown))


def first_chart(file: str, chart: dict[str, Any] | None) -> str:
    """The chart of a report's findings as SVG text, small, for the list of reports; "" where there is none."""
    return small_drawing(chart, "c" + hashlib.sha256(file.encode()).hexdigest()[:6]) if chart else ""


def policy(scripts: list[str]) -> str:
    """Content-Security-Policy: no request to anywhere; of scripts only these, known by their hash."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
    styles, images = "style-src 'unsafe-inline'", "img-src data: blob:"
    return f"default-src 'none'; script-src {allowed}; {styles}; {images}; base-uri 'none'; form-action 'none'"


@cache
def vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, in a function of its own; once per page.

    Bundling takes three seconds, so the bundle is kept beside the trained models.
    """
    path = home() / f"vega-{version('vl-convert-python')}.js"
    if not path.exists():
        import vl_convert

        write_text(path, vl_convert.javascript_bundle())
    bundle = path.read_text(encoding="utf-8").replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return f"(function () {{\n{bundle}\n}})();"


@cache
def style() -> str:
    """The page's style sheet, with the colours of code in light and in dark."""
    sheet = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    colours = []
    for name in ("xcode", "github-dark"):
        rules = HtmlFormatter(style=name).get_style_defs(["body .highlight", "body .output_html"]).splitlines()
        of_code = [rule for rule in rules if re.match(r"body \.highlight \.\w+,", rule) and "linenos" not in rule]
        colours.append("\n".join(of_code))
    return f"{sheet}\n{colours[0]}\n@media screen and (prefers-color-scheme: dark) {{\n{colours[1]}\n}}\n"
