"""What the template asks of a notebook's cells: text with formulas, outputs. Nothing in the data can become code."""

import re
from collections.abc import Callable
from html import escape
from itertools import chain, count
from typing import Any

from latex2mathml.converter import convert
from nbconvert.filters import Highlight2HTML, strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from lib.notebook import HEADLINE
from tools.report.figures import figure, json_for_html

VEGALITE = re.compile(r"application/vnd\.vegalite\.v\d+\+json")
LONG_TABLE = 8  # rows; a longer table is folded
SHORT_OUTPUT = 3  # lines; a longer output is a log, and folded


class Cells:
    """The filters of the template, which count charts and collect headings: level, anchor and HTML of each."""

    def __init__(self):
        self.headings: list[tuple[int, str, str]] = []
        self.numbers = count(1)

    def filters(self) -> dict[str, Callable]:
        """All by the names that the template has for them."""
        own = {"markdown": self.markdown, "outputs": self.outputs, "figure": self.figure}
        return own | {"json": json_for_html, "split_lead": split_lead, "highlight": Highlight2HTML("ipython3")}

    def figure(self, spec: dict[str, Any]) -> str:
        """A chart, with the next number."""
        return figure(spec, next(self.numbers))

    def markdown(self, text: str) -> str:
        """HTML of the notebook's own text, in which raw HTML stays as it is; formulas become MathML."""
        return MarkdownWithMath(renderer=_Renderer(self.headings, trusted=True)).render(text)

    def outputs(self, outputs: list[Any]) -> str:
        """The outputs of a cell; first all that it printed."""
        printed = {"stdout": "", "stderr": ""}
        for output in outputs:
            if output.output_type == "stream":
                printed[output.name] += output.text
        rest = [self.output(output) for output in outputs if output.output_type != "stream"]
        return "".join([fold_log(printed["stdout"], "Log"), fold_log(printed["stderr"], "Warnings"), *rest])

    def output(self, output: Any) -> str:
        """One output in the richest form that the page can show; only this project's own HTML is taken as HTML.

        The findings are shown at the page's top alone.
        """
        if output.output_type == "error":
            return fold_log("\n".join(output.traceback), "Error")
        data = output.data
        if HEADLINE in data:
            return ""
        if charts := [data[kind] for kind in data if VEGALITE.fullmatch(kind)]:
            return self.figure(charts[0])
        if "text/html" in data:
            return fold_table(data["text/html"])
        if "text/markdown" in data:
            return fold_source(data["text/markdown"])
        return f'<pre class="output">{escape(strip_ansi(data.get("text/plain", "")))}</pre>'


def split_lead(text: str) -> tuple[str, str]:
    """The first sentence or line of a text, and the rest."""
    lead, *rest = re.split(r"(?<=[.:?])\s+|\n+", text, maxsplit=1)
    return lead, "".join(rest)


def fold(kind: str, title: str, shown: str) -> str:
    """What is behind a line."""
    return f'<details class="{kind}"><summary>{title}</summary>{shown}</details>'


def fold_table(html: str) -> str:
    """Output as HTML; a table of more than LONG_TABLE rows is behind a line that says what is in it."""
    shown, rows = f'<div class="output scroll">{html}</div>', html.count("<tr") - 1
    if html.count("<table") != 1 or rows <= LONG_TABLE or "class='beside'" in html:
        return shown
    heads = re.findall(r"<th\b[^>]*>(.*?)</th>", html.partition("<tbody")[0], re.DOTALL)  # escaped where it was made
    about = ", ".join(filter(None, (re.sub(r"<[^>]+>", "", head).strip() for head in heads)))
    return fold("table", f'Table of {rows:,} rows: <span dir="auto">{about}</span>', shown)


def fold_source(text: str) -> str:
    """Output in Markdown; the source of functions is behind a line with their names."""
    shown = MarkdownWithMath(renderer=_Renderer([], trusted=False)).render(text)
    names = re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE) if text.startswith("```python") else []
    shown = f'<div class="output">{shown}</div>'
    return fold("source", f"Source of {escape(', '.join(names))}", shown) if names else shown


def fold_log(text: str, name: str) -> str:
    """What a cell printed, of an overwritten line the last; behind a line where it is long, or a warning."""
    if not text.strip():
        return ""
    lines = [line.rsplit("\r", 1)[-1] for line in strip_ansi(text).replace("\r\n", "\n").rstrip().split("\n")]
    shown = f'<pre class="log">{escape(chr(10).join(lines))}</pre>'
    if len(lines) <= SHORT_OUTPUT and name == "Log":
        return shown
    return fold("log", f"{name}: {len(lines)} line{'s' if len(lines) > 1 else ''}", shown)


class _Renderer(IPythonRenderer):
    """Formulas become MathML, which browsers draw without a script; headings get anchors of their own."""

    def __init__(self, headings: list[tuple[int, str, str]], trusted: bool):
        super().__init__(escape=not trusted, allow_harmful_protocols=False, exclude_anchor_links=True)
        self.headings = headings

    def heading(self, text: str, level: int, **attrs) -> str:
        plain = re.sub(r"<annotation.*?</annotation>|<[^>]+>", "", text, flags=re.DOTALL).strip()
        stem = re.sub(r"[^\w]+", "-", plain.lower()).strip("-") or "part"
        taken = {anchor for _, anchor, _ in self.headings}
        anchor = next(name for name in chain([stem], (f"{stem}-{number}" for number in count(2))) if name not in taken)
        self.headings.append((level, anchor, plain))
        return f'<h{level} id="{escape(anchor)}">{text}</h{level}>\n'

    def inline_math(self, body: str) -> str:
        return formula(body, display="inline")

    def block_math(self, body: str) -> str:
        return formula(body, display="block")

    def latex_environment(self, name: str, body: str) -> str:
        return formula(rf"\begin{{{name}}}{body}\end{{{name}}}", display="block")


def formula(latex: str, display: str) -> str:
    """LaTeX as MathML, `display` being inline or block; as it was written where it cannot be converted."""
    plain = re.sub(r"\\(begin|end)\{(equation|gather|displaymath)\*?\}", "", latex.strip())
    plain = re.sub(r"\{(aligned|gathered)\}", "{split}", plain).replace("{align}", "{align*}")  # no numbers
    try:
        drawn = convert(plain, display=display)
    except Exception:  # the converter's errors have no common base; a formula must not cost the report
        drawn = f"<code>{escape(latex)}</code>"
    drawn = re.sub(r"<(?!/?(?:m[a-z]+|code)[ />])", "&lt;", drawn)  # the converter leaves < and & as they are
    drawn = re.sub(r"&(?!#?\w+;)", "&amp;", drawn)
    return f'<span class="formula">{drawn}</span>' if display == "block" else drawn
