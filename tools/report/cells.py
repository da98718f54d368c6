"""What the templates ask of a notebook's cells: formulas, outputs, charts. Nothing in the data can become code."""

import json
import re
from collections.abc import Callable
from functools import cache
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

import jinja2
from latex2mathml.converter import convert
from nbconvert.filters import Highlight2HTML, strip_ansi
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from lib.notebook import HEADLINE

VEGALITE = re.compile(r"application/vnd\.vegalite\.v\d+\+json")
TEMPLATES = Path(__file__).parent / "templates"
SEVERAL_VIEWS = {"facet", "repeat", "concat", "hconcat", "vconcat"}


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

    def markdown(self, text: str, trusted: bool = True) -> str:
        """HTML of Markdown; formulas become MathML. Raw HTML is escaped where it is not trusted, but may be data."""
        return MarkdownWithMath(renderer=_Renderer(self.headings if trusted else [], trusted)).render(text)

    def outputs(self, outputs: list[Any]) -> str:
        """The outputs of a cell; first all that it printed."""
        printed = "".join(output.text for output in outputs if output.output_type == "stream")
        return log(printed) + "".join(self.output(output) for output in outputs if output.output_type != "stream")

    def output(self, output: Any) -> str:
        """One output in the richest form that the page can show.

        The findings are shown at the page's top alone.
        """
        data = output.data
        if HEADLINE in data:
            return ""
        if charts := [data[kind] for kind in data if VEGALITE.fullmatch(kind)]:
            return self.figure(charts[0])
        if "text/html" in data:
            return f'<div class="output scroll">{data["text/html"]}</div>'
        if "text/markdown" in data:
            return f'<div class="output">{self.markdown(data["text/markdown"], trusted=False)}</div>'
        return f'<pre class="output">{escape(strip_ansi(data.get("text/plain", "")))}</pre>'


def split_lead(text: str) -> tuple[str, str]:
    """The first sentence or line of a text, and the rest."""
    lead, *rest = re.split(r"(?<=[.:?])\s+|\n+", text, maxsplit=1)
    return lead, "".join(rest)


def log(text: str) -> str:
    """What a cell printed, folded; of an overwritten line the last."""
    kept = re.sub(r"[^\n]*\r(?!\n)", "", strip_ansi(text)).strip()
    shown = f'<details class="log"><summary>Log</summary><pre class="log">{escape(kept)}</pre></details>'
    return shown if kept else ""


class _Renderer(IPythonRenderer):
    """Formulas become MathML, which browsers draw without a script; headings get anchors of their own."""

    def __init__(self, headings: list[tuple[int, str, str]], trusted: bool):
        super().__init__(escape=not trusted, allow_harmful_protocols=False, exclude_anchor_links=True)
        self.headings = headings

    def heading(self, text: str, level: int, **attrs) -> str:
        plain = re.sub(r"<annotation.*?</annotation>|<[^>]+>", "", text, flags=re.DOTALL).strip()
        stem = re.sub(r"[^\w]+", "-", plain.lower()).strip("-") or "part"
        anchor = f"{stem}-{len(self.headings)}" if stem in [taken for _, taken, _ in self.headings] else stem
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


@cache
def environment(folder: Path = TEMPLATES) -> jinja2.Environment:
    """The templates of a folder and of reports; in HTML every value is escaped, unless a template marks it as safe."""
    loader, escaped = jinja2.FileSystemLoader([folder, TEMPLATES]), jinja2.select_autoescape(["html.j2"])
    return jinja2.Environment(loader=loader, autoescape=escaped, undefined=jinja2.StrictUndefined, trim_blocks=True)


def figure(spec: dict[str, Any], number: int) -> str:
    """One chart as HTML: its title as a caption, which breaks into lines, and its specification.

    A single view is drawn as wide as the page, several in the width that they have. Fractions have five digits: more
    cannot be seen, and they are most of a page.
    """
    several = SEVERAL_VIEWS & set(spec) or {"row", "column", "facet"} & set(spec.get("encoding", {}))
    single = not several and not isinstance(spec.get("width"), dict)
    spec = json.loads(json.dumps(spec, default=str), parse_float=lambda number: float(f"{float(number):.5g}"))
    title = spec.pop("title", "")
    title = title if isinstance(title, dict) else {"text": title}
    words = {name: title.get(name) or "" for name in ("text", "subtitle")}
    words = {name: " ".join(text) if isinstance(text, list) else text for name, text in words.items()}
    words["description"] = spec.get("description") or words["text"] or "A chart"
    spec |= {"background": "transparent", "description": words["description"]}
    spec |= {"width": "container"} if single else {}
    template = environment().get_template("figure.html.j2")
    return template.render(words, number=number, single=single, chart=json_for_html(spec))


def json_for_html(value: Any) -> str:
    """JSON for a <script> of an HTML page: no character in it can end the element."""
    finite = json.loads(json.dumps(value, default=str), parse_constant=lambda _: None)  # NaN is no JSON
    text = json.dumps(finite, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
