"""Charts in a page: drawn by its own Vega, with title, description and the data they were made from."""

import json
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


@cache
def environment() -> jinja2.Environment:
    """The templates; every value is escaped, unless a template marks it as safe."""
    loader = jinja2.FileSystemLoader(TEMPLATES)
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)


def figure(spec: dict[str, Any], number: int) -> str:
    """One chart as HTML: its title, the place it is drawn in, its specification, and its data folded."""
    title, subtitle = titles(spec)
    description = describe(spec)
    marks = {mark.get("type") if isinstance(mark, dict) else mark for mark in (p.get("mark") for p in _parts(spec))}
    kind = "fixed" if _has_own_width(spec) else "fluid"
    kind += " own-text" * ({"rect", "text"} <= marks)  # its colour was chosen for a cell: dark pages leave it alone
    return environment().get_template("figure.html.j2").render(
        number=number, title=title, subtitle=subtitle, description=description, kind=kind, most=ROWS, table=data_table,
        chart=json_for_html(prepare(spec, description)), sets=list(spec.get("datasets", {}).values()),
    )  # fmt: skip


def titles(spec: dict[str, Any]) -> tuple[str, str]:
    """Title and subtitle of a chart, each one line; of layers, the first that has a title."""
    title = next((part["title"] for part in _titled(spec) if part.get("title")), "")
    title = title if isinstance(title, dict) else {"text": title}
    return _joined(title.get("text")), _joined(title.get("subtitle"))


def describe(spec: dict[str, Any]) -> str:
    """What a chart shows, in words: its description, or its title, or those of its parts."""
    of_parts = [part.get("description") or _joined(part.get("title")) for part in _parts(spec)]
    return spec.get("description") or titles(spec)[0] or ". ".join(dict.fromkeys(filter(None, of_parts))) or "A chart"


def prepare(spec: dict[str, Any], description: str) -> dict[str, Any]:
    """The chart as the page draws it: title in the caption, no background of its own, and as wide as the column."""
    spec = rounded(spec)
    for part in _titled(spec):
        part.pop("title", None)
    spec |= {"background": "transparent", "description": description}
    if not _has_own_width(spec):
        spec["width"] = "container"
        spec.pop("autosize", None)  # a width of "container" has its own
    return spec


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


def data_table(rows: list[dict[str, Any]]) -> str:
    """The first rows of a chart's data as an HTML table."""
    return tables.html(pd.DataFrame(rows[:ROWS]).map(_text), styled=False)


def _text(value: Any) -> str:
    """A value of a chart's data as text; none for a missing one."""
    if isinstance(value, float):
        return f"{value:.6g}" if isfinite(value) else ""
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
    text = text.get("text") if isinstance(text, dict) else text
    return " ".join(str(line) for line in text) if isinstance(text, list) else str(text or "")
