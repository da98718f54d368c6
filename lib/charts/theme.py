"""How every chart looks and is displayed, and what charts share.

A new chart is a module beside this one: a function that takes a table and returns `titled(drawn, title, what to see)`,
where `drawn` are layers in `panels` (one for each encoder and attention) or in `facets` (one for each value of a
column), `series_color` colours its lines and `number_tips` are what the pointer shows. A chart holds few rows: bins,
means and quantiles are computed in pandas, never by Vega from instances.
"""

import os
from collections.abc import Callable, Sequence
from functools import wraps
from html import escape
from textwrap import wrap

import altair as alt
import pandas as pd
from IPython.display import HTML

from lib.quantity import RUN_COLUMNS, title_of

INK = "#717985"  # text: readable on white and on near-black
FAINT = "#8a92a055"  # grid lines
COLORS = ("#3a86c8", "#d9652b", "#1f9d78", "#a06cc0", "#b8902b", "#7b8794")  # apart also for colour-blind readers
SHAPES = ("circle", "diamond", "triangle-up", "square", "cross", "triangle-down")  # of points, one a series
WIDTH = 700  # of the drawing, in a column of 760 pixels
WIDEST = 420  # of one panel
ACROSS = 3  # panels beside each other
STATIC = "STATIC_CHARTS"
MIME = "application/vnd.vegalite.v5+json"
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


class Empty(ValueError):
    """No row has a value to draw; the message says why."""


def or_a_sentence(chart: Callable[..., alt.TopLevelMixin]) -> Callable[..., alt.TopLevelMixin | HTML]:
    """The chart for a notebook: where there is nothing to draw it says so, and the notebook goes on."""

    @wraps(chart)
    def drawn(*args, **kwargs) -> alt.TopLevelMixin | HTML:
        try:
            return chart(*args, **kwargs)
        except Empty as error:
            return HTML(f"<p>{escape(f'{error}'[:1].upper() + f'{error}'[1:], quote=False)}.</p>")

    return drawn


def enable() -> None:
    """Use this theme, and display charts as the MIME type that JupyterLab and the report draw."""
    alt.theme.register("calm", enable=True)(theme)
    alt.renderers.register("calm", render)
    alt.renderers.enable("calm")


def render(spec: dict, **metadata) -> dict:
    """A chart's display: its specification, its description, and a picture for programs that do not draw charts.

    With the environment variable STATIC_CHARTS=no there is no picture: a report draws its charts itself.
    """
    shown = {MIME: spec, "text/plain": spec.get("description", "a chart")}
    if os.environ.get(STATIC) == "no":
        return shown
    import vl_convert  # takes a second to start

    return shown | {"image/svg+xml": vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])}


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


# --- the frame of a chart


def titled(chart: alt.TopLevelMixin, title: str, subtitle: Sequence[str]) -> alt.TopLevelMixin:
    """The chart with a title, lines under it that explain what to see, and both as its description.

    Args:
        subtitle: paragraphs; empty ones are left out.
    """
    lines = [line for paragraph in subtitle if paragraph for line in wrap(paragraph, 106)]
    parts = (title, *filter(None, subtitle))
    description = " ".join(part if part.endswith((".", "?")) else f"{part}." for part in parts)
    return chart.properties(title=alt.TitleParams(title, subtitle=lines), description=description)


def panels(frame: pd.DataFrame, layers: Sequence[alt.Chart], height: int) -> alt.FacetChart:
    """The layers once for each encoder (side by side) and attention (below each other) that occurs in the frame.

    The layers have no data of their own, `alt.Chart()`: each draws what its filter takes from `frame`.
    """
    titles = {name: [title_of(str(value)) for value in frame[name]] for name in ("encoder", "attention")}
    across, down = (list(dict.fromkeys(values)) for values in titles.values())
    width = min(WIDEST, (WIDTH - 60) // len(across) - 18)
    drawn = alt.layer(*layers, data=frame.assign(**titles)).properties(width=width, height=height)
    grid = {"column": alt.Column("encoder:N", title=None, sort=across)}
    if len(down) > 1:
        grid["row"] = alt.Row("attention:N", title=None, sort=down)
    return drawn.facet(**grid)


def facets(
    frame: pd.DataFrame,
    layers: Sequence[alt.Chart],
    by: str,
    height: int | alt.Step,
    axes: int = 60,
    widest: int = WIDEST,
    columns: int = ACROSS,
    **options,
) -> alt.FacetChart:
    """The layers once for each value of the column `by`, in the order of the frame, at most `columns` in a row.

    Args:
        layers: without data of their own, as in `panels`.
        axes: pixels that the y axis and its labels take. widest: the largest width of a panel, in pixels.
        options: of alt.Facet, such as a header, or `sort`: the values in another order.
    """
    options = {"sort": frame[by].drop_duplicates().tolist()} | options
    across = min(columns, len(options["sort"]))
    width = min(widest, (WIDTH - axes) // across - 18)
    drawn = alt.layer(*layers, data=frame).properties(width=width, height=height)
    return drawn.facet(facet=alt.Facet(f"{by}:N", title=None, **options), columns=across)


# --- channels and marks


def series_color(names: Sequence[str], column: str = "series", title: str | None = None, **options) -> alt.Color:
    """The colour of each series, in the order of `names`; `options` are those of alt.Color, such as a legend."""
    names = list(names)
    scale = alt.Scale(domain=names, range=list(COLORS[: len(names)]))
    return alt.Color(f"{column}:N", title=title, scale=scale, **options)


def number_tips(digits: str, *columns: str, **titles: str) -> list[alt.Tooltip]:
    """Tooltips of numbers in one format: number_tips(".3f", "value", "low", "high", middle="median").

    Args:
        titles: a column's title, where that is not its name.
    """
    shown = {name: name for name in columns} | titles
    return [alt.Tooltip(f"{name}:Q", title=title, format=digits) for name, title in shown.items()]


def dashed_line(channel: str, at: str | float) -> alt.Chart:
    """A dashed line across each panel at the mean of a column, or at a number: dashed_line("x", "median")."""
    value = f"datum.{at}" if isinstance(at, str) else f"{at}"
    line = alt.Chart().transform_calculate(line=value).mark_rule(color=INK, strokeDash=[4, 3])
    return line.encode(**{channel: "mean(line):Q"})  # one line, not one for each row


# --- rows and their caption


def defined(instances: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The rows in which the numbers of all columns are defined.

    Raises:
        Empty: no row has a value.
    """
    for column in columns:
        if instances[column].isna().all():
            raise Empty(f"nothing to draw: {column!r} is undefined or left out for all {len(instances):,} rows")
        instances = instances[instances[column].notna()]
    return instances


def caption_of_rows(instances: pd.DataFrame, *columns: str) -> str:
    """What all rows have in common, "sst · BiLSTM · additive · 1,725 texts · 3 seeds pooled.", and what is not drawn.

    Args:
        columns: those that are drawn; of each that is not always defined follows a sentence on how often it is not.
    """
    named = [name for name in RUN_COLUMNS if name in instances and name != "layers" and instances[name].nunique() == 1]
    parts = [title_of(str(instances[name].iloc[0])) for name in named]
    texts, seeds = len(instances.drop_duplicates(["dataset", "instance"])), instances["seed"].nunique()
    parts = [part for part in parts if part not in ("", "softmax", "base")]
    common = " · ".join([*parts, f"{texts:,} texts", f"{seeds} seeds pooled" if seeds > 1 else "1 seed"])
    missing = filter(None, (int(instances[column].isna().sum()) for column in columns))
    return " ".join([f"{common}.", *(f"{n:,} values undefined or left out, not drawn." for n in missing)])


def with_classes(instances: pd.DataFrame, classes: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Instances and class names; of more classes than there are colours all count as one prediction, 0."""
    if len(classes) > len(COLORS):
        return instances.assign(prediction=0), [f"any of {len(classes)}"]
    return instances, list(classes)
