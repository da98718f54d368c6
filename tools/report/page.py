"""The pages: a report, and the list of reports. Nothing is loaded from anywhere, and only known scripts may run."""

import base64
import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from pygments.formatters import HtmlFormatter

from lib.atomic_write import write_text
from lib.notebook import HEADLINE, LEFT
from lib.profiles import PROFILES
from lib.progress import spoken
from tools.report.cells import Cells
from tools.report.figures import json_for_html, small_drawing
from tools.report.meter import EVERY

TEMPLATES = Path(__file__).parent / "templates"


def page(notebook: Any, summary: dict[str, Any], parameters: list[dict[str, Any]]) -> str:
    """The report of a notebook that ran.

    Args:
        notebook: nbformat's node, with outputs.
        summary: what the list of reports shows of this one; kept in the page, where the list reads it.
        parameters: name, value, default and help of each parameter.
    """
    cells = Cells()
    parts = [cells.html(cell) for cell in notebook.cells if _is_shown(cell)]
    opening = parts.pop(0) if parts and notebook.cells[0].cell_type == "markdown" else ""
    scripts = [vega(), (TEMPLATES / "page.js").read_text(encoding="utf-8")] if cells.charts else []
    template = environment().get_template("report.html.j2")
    return template.render(
        summary=summary,
        kept=json_for_html(summary),
        left=json_for_html(left(notebook)),
        time=spoken(summary["seconds"]),
        memory=memory,
        every=EVERY,
        quick=quick(summary["parameters"]),
        parameters=parameters,
        opening=opening,
        parts=parts,
        contents=[entry for entry in cells.contents if entry[0] in (2, 3)],
        style=style(),
        scripts=scripts,
        policy=policy(scripts),
    )


def _is_shown(cell: Any) -> bool:
    """Parameters have a place of their own on the page."""
    return not {"parameters", "injected-parameters"} & set(cell.metadata.get("tags", []))


def memory(peak: float | None) -> str:
    """A number of MiB in words: 1,204 MiB; "unknown" where no memory could be read."""
    return "unknown" if peak is None else f"{peak:,.0f} MiB"


def quick(parameters: dict[str, Any]) -> str:
    """How a run in profile `quick` differs from one in `paper`, in words; "" for a run in any other profile."""
    if parameters.get("profile") != "quick":
        return ""
    from lib.datasets import spec

    here = PROFILES["quick"]
    fewer = "epochs" if parameters.get("seeds") else "epochs and seeds"
    train, test = f"{here.train_tokens:,} tokens", f"{here.test_tokens:,} tokens"
    dataset = "" if parameters.get("data") else parameters.get("dataset")
    if not dataset or not spec(dataset).asks:  # texts with a question are limited by their tokens alone
        train, test = f"{train} or {here.train_texts:,} texts", f"{test} or {here.test_texts:,} texts"
    train, test = f"{train} of train", f"{test} of dev and of test"
    return f"fewer {fewer} than in the papers, and at most {train} and {test} are read."


def findings(notebook: Any) -> list[dict[str, Any]]:
    """What the notebook found, by `headline`: sentence and chart of each."""
    return _outputs(notebook, HEADLINE)


def left(notebook: Any) -> dict[str, str]:
    """The tables that the notebook left by `lib.results.keep`; empty where it left none."""
    return next(iter(_outputs(notebook, LEFT)), {})


def _outputs(notebook: Any, kind: str) -> list[Any]:
    """The notebook's outputs of one MIME type."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [output.data[kind] for output in outputs if kind in output.get("data", {})]


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


def write_index(folder: Path) -> Path:
    """Write the list of all reports in `folder`, index.html, the newest first."""
    summaries = [summary for path in folder.glob("*.html") if (summary := kept_summary(path))]
    summaries.sort(key=lambda summary: summary["made"], reverse=True)
    reports = [
        summary | {"link": quote(summary["file"]), "drawing": _drawing(summary), "cost": _cost(summary)}
        for summary in summaries
    ]
    text = environment().get_template("index.html.j2").render(reports=reports, style=style(), policy=policy([]))
    return write_text(folder / "index.html", text)


def _cost(summary: dict[str, Any]) -> str:
    """Time and peak memory in words."""
    peak = f", peak memory {memory(summary['peak'])}" if "peak" in summary else ""
    return spoken(summary["seconds"]) + peak


def _drawing(summary: dict[str, Any]) -> str:
    charts = [finding["chart"] for finding in summary["findings"] if finding.get("chart")]
    identity = "c" + hashlib.sha256(summary["file"].encode()).hexdigest()[:6]
    return small_drawing(charts[0], identity) if charts else ""


def policy(scripts: list[str]) -> str:
    """Content-Security-Policy: no request to anywhere; of scripts only these, known by their hash."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
    styles, images = "style-src 'unsafe-inline'", "img-src data: blob:"
    return f"default-src 'none'; script-src {allowed}; {styles}; {images}; base-uri 'none'; form-action 'none'"


@cache
def vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, in a function of its own; once per page."""
    import vl_convert

    bundle = vl_convert.javascript_bundle().replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return f"(function () {{\n{bundle}\n}})();"


@cache
def style() -> str:
    """The page's style sheet, with the colours of code in light and in dark."""
    sheet = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    light, dark = (
        "\n".join(_code_colours(name, block) for block in ("body .highlight", "body .output_html"))
        for name in ("xcode", "github-dark")
    )
    return f"{sheet}\n{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _code_colours(name: str, block: str) -> str:
    rules = HtmlFormatter(style=name).get_style_defs(block).splitlines()
    return "\n".join(rule for rule in rules if rule.startswith(f"{block} .") and "linenos" not in rule)


def environment() -> jinja2.Environment:
    """The templates; every value is escaped, unless a template marks it as safe."""
    loader = jinja2.FileSystemLoader(TEMPLATES)
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
