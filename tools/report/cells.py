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
        printed = "".join(output.text for output in outputs if output.output_type == "stream")
        return log(printed) + "".join(self.output(output) for output in outputs if output.output_type != "stream")

    def output(self, output: Any) -> str:
        """One output in the richest form that the page can show; only this project's own HTML is taken as HTML.

        The findings are shown at the page's top alone.
        """
        if output.output_type == "error":
            return log("\n".join(output.traceback))
        data = output.data
        if HEADLINE in data:
            return ""
        if charts := [data[kind] for kind in data if VEGALITE.fullmatch(kind)]:
            return self.figure(charts[0])
        if "text/html" in data:
            return f'<div class="output scroll">{data["text/html"]}</div>'
        if "text/markdown" in data:
            return f'<div class="output">{untrusted_markdown(data["text/markdown"])}</div>'
        return f'<pre class="output">{escape(strip_ansi(data.get("text/plain", "")))}</pre>'


def split_lead(text: str) -> tuple[str, str]:
    """The first sentence or line of a text, and the rest."""
    lead, *rest = re.split(r"(?<=[.:?])\s+|\n+", text, maxsplit=1)
    return lead, "".join(rest)


def untrusted_markdown(text: str) -> str:
    """HTML of an output in Markdown, which may have text from data: raw HTML in it is escaped."""
    return MarkdownWithMath(renderer=_Renderer([], trusted=False)).render(text)


def log(text: str) -> str:
    """What a cell printed, folded; of an overwritten line the last."""
    if not text.strip():
        return ""
    lines = [line.rsplit("\r", 1)[-1] for line in strip_ansi(text).replace("\r\n", "\n").rstrip().split("\n")]
    shown = f'<pre class="log">{escape(chr(10).join(lines))}</pre>'
    return f'<details class="log"><summary>Log</summary>{shown}</details>'


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
