"""A notebook's cells as HTML: text with formulas, folded code, outputs. Nothing in the data can become code."""

import re
from html import escape
from itertools import pairwise
from typing import Any

from latex2mathml.converter import convert
from nbconvert.filters.ansi import strip_ansi
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from lib.notebook import HEADLINE
from tools.report.figures import figure

Contents = list[tuple[int, str, str]]  # level, anchor and text (as HTML) of each heading
VEGALITE = re.compile(r"application/vnd\.vegalite\.v\d+\+json")
LONG_TABLE = 8  # rows; a longer table is folded
SHORT_OUTPUT = 3  # lines; a longer output is a log, and folded
DETAIL = "detail"  # the tag of a text that most readers skip: folded with all up to the next text


class Cells:
    """Turns cells into HTML, one after the other; collects the headings and counts the charts."""

    def __init__(self):
        self.contents: Contents = []
        self.charts = 0
        self.highlight = Highlight2HTML(pygments_lexer="ipython3")

    def parts(self, cells: list[Any]) -> list[str]:
        """The cells as HTML, those of a detail as one part: open, and closed by the page's script when all is drawn."""
        starts = [i for i, cell in enumerate(cells) if i == 0 or cell.cell_type == "markdown"]
        found = []
        for start, end in pairwise([*starts, len(cells)]):
            text, *rest = cells[start:end]
            if DETAIL in text.metadata.get("tags", []):
                lead, *more = re.split(r"(?<=[.:?])\s+|\n+", text.source, maxsplit=1)
                title = re.sub(r"^<p>|</p>\s*$", "", markdown(lead, self.contents, trusted=True))
                inside = "".join(markdown(one, self.contents, trusted=True) for one in more)
                inside += "".join(map(self.html, rest))
                found.append(f'<details class="detail" open><summary>{title}</summary>{inside}</details>')
            else:
                found += map(self.html, cells[start:end])
        return found

    def html(self, cell: Any) -> str:
        """One cell as HTML."""
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
        """The outputs of a cell as HTML."""
        parts, stream = [], {"stdout": "", "stderr": ""}
        for output in outputs:
            if output.output_type == "stream":
                stream[output.name] = stream.get(output.name, "") + output.text
            elif output.output_type == "error":
                parts.append(log("\n".join(output.traceback), "Error"))
            else:
                parts.append(self.output(output.data))
        return log(stream["stdout"], "Log") + log(stream["stderr"], "Warnings", fold=True) + "".join(parts)

    def output(self, data: dict[str, Any]) -> str:
        """One output in the richest form that the page can show; only this project's own HTML is taken as HTML.

        The findings are shown at the page's top alone.
        """
        if HEADLINE in data:
            return ""
        for kind in data:
            if VEGALITE.fullmatch(kind):
                self.charts += 1
                return figure(data[kind], self.charts)
        if "text/html" in data:
            return folded(data["text/html"], f'<div class="output scroll">{data["text/html"]}</div>')
        if "text/markdown" in data:
            shown = f'<div class="output">{markdown(data["text/markdown"], [], trusted=False)}</div>'
            return folded_source(data["text/markdown"], shown)
        return f'<pre class="output">{escape(strip_ansi(data.get("text/plain", "")))}</pre>'


def folded(html: str, shown: str) -> str:
    """A table of more than LONG_TABLE rows behind a line that says what is in it; all else as `shown`."""
    rows = html.count("<tr") - 1
    if html.count("<table") != 1 or rows <= LONG_TABLE or "class='beside'" in html:
        return shown
    heads = re.findall(r"<th\b[^>]*>(.*?)</th>", html.partition("<tbody")[0], re.DOTALL)  # escaped where it was made
    about = ", ".join(filter(None, (re.sub(r"<[^>]+>", "", head).strip() for head in heads)))
    title = f'Table of {rows:,} rows: <span dir="auto">{about}</span>'
    return f'<details class="table"><summary>{title}</summary>{shown}</details>'


def folded_source(text: str, shown: str) -> str:
    """The source of functions behind a line with their names; any other text as `shown`."""
    names = re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE)
    if not text.startswith("```python") or not names:
        return shown
    return f'<details class="source"><summary>Source of {escape(", ".join(names))}</summary>{shown}</details>'


def log(text: str, name: str, fold: bool = False) -> str:
    """What a cell printed; folded where it is more than a few lines."""
    if not text.strip():
        return ""
    lines = [line.rsplit("\r", 1)[-1] for line in strip_ansi(text).replace("\r\n", "\n").rstrip().split("\n")]
    shown = f'<pre class="log">{escape(chr(10).join(lines))}</pre>'
    if len(lines) <= SHORT_OUTPUT and not fold:
        return shown
    count = f"{len(lines)} line{'s' if len(lines) > 1 else ''}"
    return f'<details class="log"><summary>{name}: {count}</summary>{shown}</details>'


def markdown(text: str, contents: Contents, trusted: bool) -> str:
    """HTML of a text in Markdown, formulas as MathML; its headings are added to `contents`.

    Args:
        trusted: raw HTML stays as it is, which only the notebook's own text may ask for.
    """
    return MarkdownWithMath(renderer=_Renderer(contents, trusted)).render(text)


class _Renderer(IPythonRenderer):
    """Formulas become MathML, which browsers draw without a script; headings get anchors of their own."""

    def __init__(self, contents: Contents, trusted: bool):
        super().__init__(escape=not trusted, allow_harmful_protocols=False, exclude_anchor_links=True)
        self.contents = contents

    def heading(self, text: str, level: int, **attrs) -> str:
        plain = re.sub(r"<annotation.*?</annotation>|<[^>]+>", "", text, flags=re.DOTALL).strip()
        taken = {anchor for _, anchor, _ in self.contents}
        anchor = stem = re.sub(r"[^\w]+", "-", plain.lower()).strip("-") or "part"
        number = 2
        while anchor in taken:
            anchor, number = f"{stem}-{number}", number + 1
        self.contents.append((level, anchor, plain))
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
