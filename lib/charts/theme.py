"""How every chart looks and is displayed, and what charts share.

A chart is a function that takes a table and returns `titled(drawn, title, what to see)`, where `drawn` are layers in
`panels` (one for each encoder and attention) or in `facets` (one for each value of a column). It holds few rows: bins,
means and quantiles are computed in pandas. A name from data is never in an expression of Vega's, which a list to sort
by becomes: `constructor` would stop it. With `or_a_sentence` it answers with a sentence where it raises `Empty`.
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
TWO_LINES = "split(replace(datum.label, ' / ', ' /|'), '|')"  # of a panel's title, which may be a pair of measures
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


class Empty(ValueError):
    """No row has a value to draw; the message says why."""


def or_a_sentence(chart: Callable[..., alt.TopLevelMixin]) -> Callable[..., alt.TopLevelMixin | HTML]:
    """The chart for a notebook: where it raises Empty, a sentence says why, and the notebook goes on."""

    @wraps(chart)
    def drawn(*args, **kwargs) -> alt.TopLevelMixin | HTML:
        try:
            return chart(*args, **kwargs)
        except Empty as error:
            return HTML(f"<p>Nothing to draw: {escape(str(error), quote=False)}.</p>")

    return drawn


def enable() -> None:
    """Use this theme, and display charts as the MIME type that JupyterLab and the report draw."""
    alt.theme.register("calm", enable=True)(theme)
    alt.renderers.register("calm", render)
    alt.renderers.enable("calm")


def render(spec: dict, **metadata) -> dict:
    """A chart's specification, its description, and a picture for programs that do not draw charts, such as nbconvert.

    With STATIC_CHARTS=no in the environment there is no picture: a report draws its charts itself.
    """
    shown = {MIME: spec, "text/plain": spec.get("description", "a chart")}
    if os.environ.get(STATIC) == "no":
        return shown
    import vl_convert  # takes a second to start

    return shown | {"image/svg+xml": vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])}


def theme() -> alt.theme.ThemeConfig:
    """Transparent ground, quiet axes, text in one grey that the report's style sheet may override."""
    text = {"labelColor": INK, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
    title = {"color": INK, "subtitleColor": INK, "anchor": "start", "frame": "group", "fontSize": 15, "offset": 12}
    return {
        "config": {
            "background": "transparent",
            "font": FONT,
            "title": title | {"fontWeight": 600, "subtitleFontSize": 12, "subtitlePadding": 6},
            "view": {"stroke": None},
            "axis": text | {"domainColor": INK, "tickColor": FAINT, "gridColor": FAINT, "labelLimit": 260},
            "legend": text | {"orient": "top", "symbolOpacity": 1, "labelLimit": 400, "titleLimit": 400, "columns": 3},
            "header": text | {"labelFontSize": 12, "labelFontWeight": 600, "titlePadding": 4, "labelExpr": TWO_LINES},
            "range": {"category": list(COLORS)},
            "tooltipFormat": {"numberFormat": ",.3~f"},
            "facet": {"spacing": 18},
        }
    }


def titled(chart: alt.TopLevelMixin, title: str, subtitle: Sequence[str]) -> alt.TopLevelMixin:
    """The chart with a title, paragraphs under it, and both as its description."""
    lines = [line for paragraph in subtitle for line in wrap(paragraph, 106)]
    sentences = (part if part.endswith((".", "?")) else f"{part}." for part in (title, *subtitle))
    return chart.properties(title=alt.TitleParams(title, subtitle=lines), description=" ".join(sentences))


def panels(frame: pd.DataFrame, layers: Sequence[alt.Chart], height: int) -> alt.FacetChart:
    """The layers once for each encoder (side by side) and attention (below each other) that occurs in the frame.

    Where each encoder has one attention, these are `facets`. The layers have no data of their own, `alt.Chart()`: each
    draws what its filter takes from `frame`.
    """
    titled_rows = frame.assign(**frame[["encoder", "attention"]].astype(str).map(title_of))
    if titled_rows.groupby("encoder")["attention"].nunique().max() == 1:
        return facets(titled_rows, layers, "encoder", height)
    width = min(WIDEST, (WIDTH - 60) // titled_rows["encoder"].nunique() - 18)
    drawn = alt.layer(*layers, data=ordered(titled_rows, "encoder", "attention"))
    drawn = drawn.properties(width=width, height=height)
    return drawn.facet(column=in_order(alt.Column, "encoder"), row=in_order(alt.Row, "attention"))


def facets(frame: pd.DataFrame, layers: Sequence[alt.Chart], by: str, height: int) -> alt.FacetChart:
    """As `panels` once for each value of the column `by`, at most ACROSS in a row."""
    across = min(ACROSS, frame[by].nunique())
    width = min(WIDEST, (WIDTH - 60) // across - 18)
    drawn = alt.layer(*layers, data=ordered(frame, by)).properties(width=width, height=height)
    return drawn.facet(facet=in_order(alt.Facet, by), columns=across)


def ordered(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The frame with the places of the columns' values, as they first come, for `in_order`."""
    return frame.assign(**{f"{column}_place": pd.factorize(frame[column])[0] for column in columns})


def in_order(channel: type, column: str) -> alt.Row | alt.Column | alt.Facet:
    """A facet of a column of `ordered`. By a list of names it would be sorted by an expression that holds them."""
    return channel(f"{column}:N", title=None, sort=alt.EncodingSortField(f"{column}_place", op="min"))


def series_color(names: Sequence[str], column: str = "series", title: str | None = None) -> alt.Color:
    """The colour of each series, in the order of `names`."""
    names = list(names)
    return alt.Color(f"{column}:N", title=title, scale=alt.Scale(domain=names, range=list(COLORS[: len(names)])))


def dashed_line(channel: str, at: float) -> alt.Chart:
    """A dashed line across each panel at a number of the axis x or y."""
    line = alt.Chart().transform_calculate(line=f"{at}").mark_rule(color=INK, strokeDash=[4, 3])
    return line.encode(**{channel: "mean(line):Q"})  # one line, not one for each row


def caption_of_rows(frame: pd.DataFrame) -> str:
    """What all rows have in common, "sst · BiLSTM · additive · 1,725 texts · 3 seeds pooled.", but softmax and base.

    Texts and seeds are counted where a row is a text's.
    """
    columns = [name for name in RUN_COLUMNS if name in frame and name != "layers" and frame[name].nunique() == 1]
    titles = [title_of(str(frame[name].iloc[0])) for name in columns]
    parts = [title for title in titles if title not in ("", "softmax", "base")]
    if "instance" in frame:
        seeds = frame["seed"].nunique()
        parts.append(f"{len(frame.drop_duplicates(['dataset', 'instance'])):,} texts")
        parts.append(f"{seeds} seeds pooled" if seeds > 1 else "1 seed")
    return " · ".join(parts) + "."
