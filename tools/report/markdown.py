"""Markdown with formulas as MathML, which browsers draw without any script."""

import re
from html import escape

from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

Contents = list[tuple[int, str, str]]  # level, anchor, text of each heading


class _Renderer(IPythonRenderer):
    """Formulas become MathML, headings are collected for the list of contents."""

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
    """LaTeX as MathML, `display` being inline or block; as it was written where that cannot be done."""
    plain = re.sub(r"\\(begin|end)\{(equation|gather|displaymath)\*?\}", "", latex.strip())
    plain = re.sub(r"\{(aligned|gathered)\}", "{split}", plain).replace("{align}", "{align*}")  # no numbers
    try:
        drawn = convert(plain, display=display)
    except Exception:  # the converter's errors have no common base; a formula must not cost the report
        drawn = f"<code>{escape(latex)}</code>"
    drawn = re.sub(r"<(?!/?(?:m[a-z]+|code)[ />])", "&lt;", drawn)  # the converter leaves < and & as they are
    drawn = re.sub(r"&(?!#?\w+;)", "&amp;", drawn)
    return f'<span class="formula">{drawn}</span>' if display == "block" else drawn


def markdown(text: str, contents: Contents, trusted: bool) -> str:
    """HTML of a text in Markdown; raw HTML in it stays only where `trusted`, that is, written in the notebook."""
    return MarkdownWithMath(renderer=_Renderer(contents, trusted)).render(text)
