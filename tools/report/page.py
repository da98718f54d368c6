"""A notebook that ran, as one HTML page: nothing is loaded from anywhere, and nothing in the data can become code."""

import base64
import hashlib
import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import jinja2
from nbconvert.filters.ansi import strip_ansi
from nbconvert.filters.highlight import Highlight2HTML
from pygments.formatters import HtmlFormatter

from lib.notebook import HEADLINE
from lib.profiles import PROFILES
from lib.progress import spoken
from tools.report.figures import figure, json_for_html
from tools.report.markdown import Contents, formula, markdown
from tools.report.parts import EVERY
from tools.report.tables import aligned
from tools.summary import LEFT

TEMPLATES = Path(__file__).parent / "templates"
VEGALITE = re.compile(r"application/vnd\.vegalite\.v\d+\+json")
SHORT_OUTPUT = 3  # lines; a longer one is a log, and folded


def page(notebook: Any, summary: dict[str, Any], parameters: list[dict[str, Any]]) -> str:
    """The report of a notebook that ran.

    Args:
        notebook: nbformat's node, with outputs.
        summary: what the list of reports tells of this one; kept in the page, where the list reads it.
        parameters: name, value, default and help of each parameter.
    """
    contents: Contents = []
    cells = _Cells(contents)
    parts = [cells.html(cell) for cell in notebook.cells if _is_shown(cell)]
    opening = parts.pop(0) if parts and notebook.cells[0].cell_type == "markdown" else ""
    script = (TEMPLATES / "page.js").read_text(encoding="utf-8")
    return (
        environment()
        .get_template("report.html.j2")
        .render(
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
            contents=[entry for entry in contents if entry[0] in (2, 3)],
            style=style(),
            scripts=[vega(), script] if cells.charts else [],
            policy=policy([vega(), script] if cells.charts else []),
        )
    )


def memory(peak: float | None) -> str:
    """A number of MiB in words: 1,204 MiB; "unknown" where no memory could be read."""
    return "unknown" if peak is None else f"{peak:,.0f} MiB"


def quick(parameters: dict[str, Any]) -> str:
    """How a run in profile `quick` differs from one in `paper`, in words; "" for a run in any other profile."""
    if parameters.get("profile") != "quick":
        return ""
    from lib.datasets import spec

    here = PROFILES["quick"]
    fewer = "epochs" if parameters.get("seeds") else "epochs and seeds"  # given seeds are nobody's default
    train, test = f"{here.train_tokens:,} tokens", f"{here.test_tokens:,} tokens"
    dataset = "" if parameters.get("data") else parameters.get("dataset")
    if not dataset or not spec(dataset).asks:  # of texts with a question the tokens alone count
        train, test = f"{train} or {here.train_texts:,} texts", f"{test} or {here.test_texts:,} texts"
    train, test = f"{train} of train", f"{test} of dev and of test"
    return f"fewer {fewer} than in the papers, and at most {train} and {test} are read."


class _Cells:
    """Turns cells into HTML, one after the other; counts the charts."""

    def __init__(self, contents: Contents):
        self.contents, self.charts = contents, 0
        self.highlight = Highlight2HTML(pygments_lexer="ipython3")

    def html(self, cell: Any) -> str:
        if cell.cell_type == "markdown":
            return f'<section class="text">{markdown(cell.source, self.contents, trusted=True)}</section>'
        if cell.cell_type != "code":
            return ""
        return f'<section class="cell">{self.code(cell.source)}{self.outputs(cell.outputs)}</section>'

    def code(self, source: str) -> str:
        """A cell's source, folded behind its first line."""
        lines = source.strip().splitlines()
        if not lines:
            return ""
        more = " …" if len(lines) > 1 else ""
        summary = f"<summary><span>Code</span> <code>{escape(lines[0])}{more}</code></summary>"
        return f'<details class="code">{summary}<div class="scroll">{self.highlight(source)}</div></details>'

    def outputs(self, outputs: list[Any]) -> str:
        parts, stream = [], {"stdout": "", "stderr": ""}
        for output in outputs:
            if output.output_type == "stream":
                stream[output.name] = stream.get(output.name, "") + output.text
            elif output.output_type == "error":
                parts.append(log("\n".join(output.traceback), "Error"))
            else:
                parts.append(self.shown(output.data))
        return log(stream["stdout"], "Log") + log(stream["stderr"], "Warnings", fold=True) + "".join(parts)

    def shown(self, data: dict[str, Any]) -> str:
        """One output in the richest form that the page can show; only this project's own HTML is taken as HTML."""
        for kind in data:
            if VEGALITE.fullmatch(kind):
                self.charts += 1
                return figure(data[kind], self.charts)
        if "text/html" in data:
            kind = "finding" if HEADLINE in data else "scroll"
            return f'<div class="output {kind}">{aligned(data["text/html"])}</div>'
        for kind in ("image/svg+xml", "image/png", "image/jpeg"):
            if kind in data:
                return image(kind, data[kind], data.get("text/plain", "picture"))
        if "text/markdown" in data:
            return f'<div class="output">{markdown(data["text/markdown"], [], trusted=False)}</div>'
        if "text/latex" in data:
            return f'<div class="output">{formula(data["text/latex"].strip("$ "), "block")}</div>'
        return f'<pre class="output">{escape(strip_ansi(data.get("text/plain", "")))}</pre>'


def log(text: str, name: str, fold: bool = False) -> str:
    """What a cell printed; folded where it is more than a few lines."""
    lines = [line.rsplit("\r", 1)[-1] for line in strip_ansi(text).replace("\r\n", "\n").rstrip().split("\n")]
    shown = f'<pre class="log">{escape(chr(10).join(lines))}</pre>'
    if not text.strip():
        return ""
    if len(lines) <= SHORT_OUTPUT and not fold:
        return shown
    count = f"{len(lines)} line{'s' if len(lines) > 1 else ''}"
    return f'<details class="log"><summary>{name}: {count}</summary>{shown}</details>'


def image(kind: str, content: str, alternative: str) -> str:
    """A picture as data: inside <img> not even an SVG can run anything."""
    if kind == "image/svg+xml":
        content = base64.b64encode(content.encode()).decode()
    return f'<img class="output" src="data:{kind};base64,{content.strip()}" alt="{escape(alternative)}">'


def findings(notebook: Any) -> list[dict[str, Any]]:
    """What the notebook said by `headline`: sentence and chart of each."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [output.data[HEADLINE] for output in outputs if HEADLINE in output.get("data", {})]


def left(notebook: Any) -> dict[str, str]:
    """The tables that the notebook left by `lib.results.keep`; empty where it left none."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return next((output.data[LEFT] for output in outputs if LEFT in output.get("data", {})), {})


def title(notebook: Any) -> str:
    """The notebook's first heading."""
    texts = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    headings = (re.search(r"^#\s+(.+)$", text, re.MULTILINE) for text in texts)
    return next((found[1].strip() for found in headings if found), "Report")


def policy(scripts: list[str]) -> str:
    """Content-Security-Policy: no request to anywhere; of scripts only these, known by their hash."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
    styles, images = "style-src 'unsafe-inline'", "img-src data: blob:"
    return f"default-src 'none'; script-src {allowed}; {styles}; {images}; base-uri 'none'; form-action 'none'"


@cache
def vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, kept in a function of its own; once per page."""
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


def environment() -> jinja2.Environment:
    """Templates with everything escaped, unless it says otherwise there."""
    loader = jinja2.FileSystemLoader(TEMPLATES)
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)


def _code_colours(name: str, block: str) -> str:
    rules = HtmlFormatter(style=name).get_style_defs(block).splitlines()
    return "\n".join(rule for rule in rules if rule.startswith(f"{block} .") and "linenos" not in rule)


def _is_shown(cell: Any) -> bool:
    """Parameters have a place of their own on the page."""
    return not {"parameters", "injected-parameters"} & set(cell.metadata.get("tags", []))
