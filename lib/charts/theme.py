"""How every chart looks and how it is displayed."""

from collections.abc import Sequence
from textwrap import wrap

import altair as alt
import pandas as pd

from lib.quantity import RUN_COLUMNS, title_of

INK = "#717985"  # text: readable on white and on near-black
FAINT = "#8a92a055"  # grid lines
COLORS = ("#3a86c8", "#d9652b", "#1f9d78", "#a06cc0", "#b8902b", "#7b8794")  # apart also for colour-blind readers
WIDTH = 700  # of the drawing, in a column of 760 pixels
MIME = "application/vnd.vegalite.v5+json"
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


def enable() -> None:
    """Use this theme, and display charts as the MIME type that JupyterLab and the report draw."""
    alt.theme.register("calm", enable=True)(theme)
    alt.renderers.register("calm", render)
    alt.renderers.enable("calm")


def render(spec: dict, **metadata) -> dict:
    """A chart's display: its specification, and in words for who cannot draw it."""
    return {MIME: spec, "text/plain": spec.get("description", "a chart")}


def theme() -> alt.theme.ThemeConfig:
    """Transparent ground, quiet axes, text in one grey that the report's style sheet may override."""
    text = {"labelColor": INK, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
    axis = text | {"domainColor": INK, "tickColor": FAINT, "gridColor": FAINT, "labelLimit": 260}
    title = {"color": INK, "subtitleColor": INK, "anchor": "start", "frame": "group", "fontSize": 15, "offset": 12}
    return {
        "config": {
            "background": "transparent",
            "font": FONT,
            "title": title | {"fontWeight": 600, "subtitleFontSize": 12, "subtitlePadding": 6},
            "view": {"stroke": None},
            "axis": axis,
            "legend": text | {"orient": "top", "symbolOpacity": 1, "labelLimit": 400, "titleLimit": 400},
            "header": text | {"labelFontSize": 12, "labelFontWeight": 600, "titlePadding": 4},
            "range": {"category": list(COLORS)},
            "facet": {"spacing": 18},
        }
    }


def titled(chart: alt.TopLevelMixin, title: str, subtitle: Sequence[str]) -> alt.TopLevelMixin:
    """The chart with a title, lines under it that say what to see, and both as its description."""
    lines = [line for paragraph in subtitle if paragraph for line in wrap(paragraph, 106)]
    description = ". ".join(part.rstrip(".") for part in (title, *filter(None, subtitle))) + "."
    return chart.properties(title=alt.TitleParams(title, subtitle=lines), description=description)


def panels(
    frame: pd.DataFrame, layers: Sequence[alt.Chart], height: int, row: str = "attention", column: str = "encoder"
) -> alt.TopLevelMixin:
    """The layers once for each `column` (side by side) and `row` (below each other) that occurs in the frame.

    The layers' charts have no data of their own: each draws what its filter takes from `frame`.
    """
    across, down = (frame[name].drop_duplicates().tolist() for name in (column, row))
    width = min(420, (WIDTH - 60) // len(across) - 18)
    drawn = alt.layer(*layers).properties(width=width, height=height)
    frame = frame.assign(**{name: [title_of(str(value)) for value in frame[name]] for name in (column, row)})
    drawn.data = frame
    facets = {"column": alt.Column(f"{column}:N", title=None, sort=[title_of(str(value)) for value in across])}
    if len(down) > 1:
        facets["row"] = alt.Row(f"{row}:N", title=None, sort=[title_of(str(value)) for value in down])
    return drawn.facet(**facets)


def said_once(instances: pd.DataFrame) -> str:
    """What is the same for all rows: "sst · BiLSTM · additive · 1,725 texts · 3 seeds pooled"."""
    parts = [
        title_of(str(instances[name].iloc[0]))
        for name in RUN_COLUMNS
        if name in instances and instances[name].nunique() == 1 and name != "layers"
    ]
    texts, seeds = instances.drop_duplicates(["dataset", "instance"]).shape[0], instances["seed"].nunique()
    parts = [part for part in parts if part not in ("", "softmax", "base")]
    parts += [f"{texts:,} texts", f"{seeds} seeds pooled" if seeds > 1 else "1 seed"]
    return " · ".join(parts)


def by_few_classes(instances: pd.DataFrame, classes: Sequence[str] | None) -> tuple[pd.DataFrame, list[str]]:
    """The instances and `class_names`; of more classes than there are colours all count as one prediction."""
    names = class_names(instances, classes)
    if len(names) <= len(COLORS):
        return instances, names
    return instances.assign(prediction=0), [f"any of {len(names)}"]


def class_names(instances: pd.DataFrame, classes: Sequence[str] | None) -> list[str]:
    """The names of the classes from 0 to the largest that is predicted; "class 0", "class 1", ... where not given."""
    largest = int(instances["prediction"].max())
    if classes is not None and len(classes) <= largest:
        raise ValueError(f"{len(classes)} class names were given, but class {largest} is predicted")
    return list(classes) if classes is not None else [f"class {index}" for index in range(max(2, largest + 1))]


def some(instances: pd.DataFrame, column: str) -> pd.DataFrame:
    """The rows in which a number is defined; one clear error where there is no such column or no such row."""
    if column not in instances:
        raise KeyError(f"no column {column!r} to draw; there are: {', '.join(map(str, instances.columns))}")
    defined = instances[instances[column].notna()]
    if defined.empty:
        raise ValueError(f"nothing to draw: {column!r} is undefined or left out for all {len(instances):,} rows")
    return defined


def absent(instances: pd.DataFrame, column: str) -> str:
    """A remark on rows that are not drawn: empty where all are."""
    number = int(instances[column].isna().sum())
    return f"{number:,} values undefined or left out, not drawn." if number else ""
