"""The pages: a report, and the list of reports. Nothing is loaded from anywhere, and only known scripts may run."""

import base64
import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import vl_convert
from pygments.formatters import HtmlFormatter

from lib.atomic_write import write_file
from lib.notebook import HEADLINE
from lib.progress import spoken
from tools.report.cells import TEMPLATES, Cells, environment

HIDDEN = {"parameters", "injected-parameters"}  # tags of cells that have a place of their own on the page
LISTED = {"title": str, "dataset": str, "made": str, "parameters": dict, "changed": list, "findings": list}


def page(notebook: Any, summary: dict[str, Any], parameters: list[dict[str, Any]], found: dict[str, Any]) -> str:
    """The report of a notebook that ran, with outputs.

    `summary` is what the list of reports shows of it, kept in the page; `found` of `papers.show.headline`.
    """
    cells, templates = Cells(), environment().overlay()
    templates.filters = templates.filters | cells.filters()
    hidden = HIDDEN | {"ours"} if summary["parameters"].get("model") else HIDDEN  # of our models, not one's own
    shown = [cell for cell in notebook.cells if not hidden & set(cell.metadata.get("tags", []))]
    starts = bool(shown) and shown[0].cell_type == "markdown" and shown[0].source.startswith("# ")
    introduction = shown.pop(0).source.partition("\n")[2] if starts else ""
    return templates.get_template("report.html.j2").render(
        cells=shown, summary=summary, parameters=parameters, found=found, introduction=introduction,
        time=spoken(summary["seconds"]), headings=cells.headings, style=style(), **drawing_scripts(),
    )  # fmt: skip


def drawing_scripts() -> dict[str, Any]:
    """The scripts that draw a page's charts, and the policy that allows these alone."""
    scripts = [vega(), (TEMPLATES / "page.js").read_text(encoding="utf-8")]
    return {"scripts": scripts, "policy": policy(scripts)}


def headline(notebook: Any) -> dict[str, Any]:
    """The findings of a notebook that ran, of `papers.show.headline`; {} where it has none."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return next((output.data[HEADLINE] for output in outputs if HEADLINE in output.get("data", {})), {})


def title(notebook: Any) -> str:
    """The notebook's first heading."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return next(iter(re.findall(r"^#\s+(.+)$", text, re.MULTILINE)), "Report").strip()


def kept_summary(page: Path) -> dict[str, Any] | None:
    """The summary that a finished report keeps of itself; None for whatever else has that name."""
    try:
        text = page.read_text(encoding="utf-8", errors="replace") if page.is_file() else ""
        found = re.search(r'<script type="application/json" id="summary">(.*?)</script>', text, re.DOTALL)
        kept = json.loads(found[1]) if found and text.rstrip().endswith("</html>") else {}
        return kept if all(isinstance(kept.get(name), kind) for name, kind in LISTED.items()) else None
    except (OSError, ValueError, AttributeError, RecursionError):
        return None


def write_index(folder: Path) -> Path:
    """Write the list of all reports in `folder`, index.html, the newest first."""
    summaries = {path.name: summary for path in sorted(folder.glob("*.html")) if (summary := kept_summary(path))}
    reports = sorted(summaries.items(), key=lambda report: report[1]["made"], reverse=True)
    page = environment().get_template("index.html.j2").render(reports=reports, style=style(), policy=policy([]))
    return write_file(folder / "index.html", page)


def policy(scripts: list[str]) -> str:
    """Content-Security-Policy: no request to anywhere; of scripts only these, known by their hash."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
    styles, images = "style-src 'unsafe-inline'", "img-src data: blob:"
    return f"default-src 'none'; script-src {allowed}; {styles}; {images}; base-uri 'none'; form-action 'none'"


@cache
def vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; bundled anew in three seconds, as a kept one could be changed."""
    bundle = vl_convert.javascript_bundle().replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return f"(function () {{\n{bundle}\n}})();"


@cache
def style() -> str:
    """The page's style sheet, with the colours of code in light and in dark."""
    sheet = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    styles = (HtmlFormatter(style=name) for name in ("xcode", "github-dark"))
    light, dark = ("\n".join(one.get_token_style_defs("body .highlight")) for one in styles)
    return f"{sheet}\n{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
