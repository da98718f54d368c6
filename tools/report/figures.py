"""Charts in a page: a caption, and the specification that the page's own Vega draws."""

import json
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

import jinja2

TEMPLATES = Path(__file__).parent / "templates"
SEVERAL_VIEWS = {"facet", "repeat", "concat", "hconcat", "vconcat"}


@cache
def environment() -> jinja2.Environment:
    """The templates; every value is escaped, unless a template marks it as safe."""
    loader = jinja2.FileSystemLoader(TEMPLATES)
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)


def figure(spec: dict[str, Any], number: int) -> str:
    """One chart as HTML: its title as a caption, which breaks into lines, and its specification.

    A single view is drawn as wide as the page, several in the width that they have.
    """
    spec, single = rounded(spec), is_single_view(spec)
    title = spec.pop("title", "")
    title = title if isinstance(title, dict) else {"text": title}
    words = {name: joined(title.get(name)) for name in ("text", "subtitle")}
    words["description"] = spec.get("description") or words["text"] or "A chart"
    spec |= {"background": "transparent", "description": words["description"]}
    spec |= {"width": "container"} if single else {}
    template = environment().get_template("figure.html.j2")
    return template.render(words, number=number, single=single, chart=json_for_html(spec))


def is_single_view(spec: dict[str, Any]) -> bool:
    """Whether a chart is one drawing whose width may be chosen, and not so much for each category."""
    several = SEVERAL_VIEWS & set(spec) or {"row", "column", "facet"} & set(spec.get("encoding", {}))
    return not several and not isinstance(spec.get("width"), dict)


def rounded(value: Any) -> Any:
    """A copy of a specification whose fractions have five digits: more cannot be seen, and they are most of a page."""
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) and isfinite(value) else value


def json_for_html(value: Any) -> str:
    """JSON for a <script> of an HTML page: no character in it can end the element."""
    finite = json.loads(json.dumps(value, default=str), parse_constant=lambda _: None)  # NaN is no JSON
    text = json.dumps(finite, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def joined(text: Any) -> str:
    """A title, which Vega-Lite has as one text or a list of lines."""
    return " ".join(map(str, text)) if isinstance(text, list) else str(text or "")
