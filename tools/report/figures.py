"""Charts in a report: drawn by the page's own Vega, with title, description and the data they were made from."""

import json
import re
from collections.abc import Iterator
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from lib import tables

TEMPLATES = Path(__file__).parent / "templates"
ROWS = 200  # of a chart's data that its table shows
LONGEST_CELL = 300  # characters
COMPOSED = ("facet", "repeat", "concat", "hconcat", "vconcat")


def figure(spec: dict[str, Any], number: int) -> str:
    """One chart of the report as HTML: its title, the place it is drawn in, its specification, and its data folded."""
    title, subtitle = titles(spec)
    description, sets = described(spec), datasets(spec)
    marks = {mark.get("type") if isinstance(mark, dict) else mark for mark in (p.get("mark") for p in _parts(spec))}
    kind = "fixed" if _has_own_width(spec) else "fluid"
    kind += " own-text" * ({"rect", "text"} <= marks)  # its colour was chosen for a cell: dark pages leave it alone
    shown = {"number": number, "title": title, "subtitle": subtitle, "description": description, "kind": kind}
    shown |= {"chart": json_for_html(prepared(spec, description)), "sets": sets, "table": _table, "most": ROWS}
    return environment().get_template("figure.html.j2").render(shown)


@cache
def environment() -> jinja2.Environment:
    """The templates; every value is escaped, unless a template marks it as safe."""
    loader = jinja2.FileSystemLoader(TEMPLATES)
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)


def titles(spec: dict[str, Any]) -> tuple[str, str]:
    """Title and subtitle of a chart, each one line; of layers, the first that has a title."""
    title = next((part["title"] for part in _titled(spec) if part.get("title")), "")
    if not isinstance(title, dict):
        title = {"text": title}
    return _joined(title.get("text")), _joined(title.get("subtitle"))


def described(spec: dict[str, Any]) -> str:
    """What a chart shows, in words: its description, or its title, or those of its parts."""
    of_parts = [part.get("description") or _joined(part.get("title")) for part in _parts(spec)]
    return spec.get("description") or titles(spec)[0] or ". ".join(dict.fromkeys(filter(None, of_parts))) or "A chart"


def prepared(spec: dict[str, Any], description: str) -> dict[str, Any]:
    """The chart as the page draws it: title in the caption, no background of its own, and as wide as the column."""
    spec = rounded(spec)
    for part in _titled(spec):
        part.pop("title", None)
    spec["background"] = "transparent"
    spec["description"] = description
    if not _has_own_width(spec):
        spec["width"] = "container"
        spec.pop("autosize", None)  # a width of "container" has its own
    return spec


def rounded(value: Any) -> Any:
    """A copy of a specification whose fractions have five digits: more cannot be seen, and they are most of a page."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) and isfinite(value) else value


def datasets(spec: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The rows that a chart was made from: each data set once, in the order of use."""
    named = spec.get("datasets", {})
    found: dict[str, list] = {}
    for part in _parts(spec):
        data = part.get("data")
        if isinstance(data, dict):
            values = data.get("values", named.get(data.get("name")))
            if isinstance(values, list) and values:
                rows = [row if isinstance(row, dict) else {"value": row} for row in values]
                found.setdefault(data.get("name") or json.dumps(values, default=str), rows)
    return list(found.values())


def json_for_html(value: Any) -> str:
    """JSON for a <script> of an HTML page: no character in it can end the element."""
    finite = json.loads(json.dumps(value, default=str), parse_constant=lambda _: None)  # NaN is no JSON
    text = json.dumps(finite, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def small_drawing(spec: dict[str, Any], identity: str) -> str:
    """A chart as SVG text, small, for the list of reports; `identity` keeps the names in it apart."""
    import vl_convert

    spec = prepared(spec, described(spec))
    if spec.get("width") == "container":
        spec |= {"width": 280, "height": 150}
    drawing = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    return re.sub(r'(\bid="|url\(#)', rf"\g<1>{identity}-", drawing)


def _table(rows: list[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    texts = pd.DataFrame([[_text(row.get(name)) for name in columns] for row in rows[:ROWS]], columns=columns)
    return tables.html(texts, styled=False)


def _text(value: Any) -> str:
    """A value of a chart's data as text; none for a missing one."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = "" if value is None else str(value)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}… ({len(text):,} characters)"


def _parts(spec: Any) -> Iterator[dict[str, Any]]:
    """The specification and every view inside it; data is not searched."""
    if isinstance(spec, dict):
        yield spec
        for name in ("layer", "hconcat", "vconcat", "concat", "spec"):
            inner = spec.get(name)
            for part in inner if isinstance(inner, list) else [inner]:
                yield from _parts(part)


def _titled(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Where a title is the whole chart's: the chart itself and its layers, not the charts in a row of charts."""
    return [spec, *(part for layer in spec.get("layer", []) for part in _titled(layer))]


def _has_own_width(spec: dict[str, Any]) -> bool:
    """Whether the chart's width follows from what is in it: several views, or so much per category."""
    if any(name in spec for name in COMPOSED) or isinstance(spec.get("width"), dict):
        return True
    return any({"row", "column", "facet"} & set(part.get("encoding", {})) for part in _parts(spec))


def _joined(text: Any) -> str:
    if isinstance(text, dict):
        text = text.get("text")
    return " ".join(str(line) for line in text) if isinstance(text, list) else str(text or "")
