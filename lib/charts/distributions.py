"""How a value is spread over the texts: histograms, violins, boxes. Charts hold bins and outlines, never instances."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde

from lib.analysis.summaries import with_class_names
from lib.charts.theme import (
    INK,
    Empty,
    caption_of_rows,
    dashed_line,
    facets,
    or_a_sentence,
    panels,
    series_color,
    titled,
)
from lib.quantity import JSD_BOUNDS, title_of, unit_of

AXES = {  # of a unit: the title of the x axis, the edges of the bins, the ticks, and what to see
    "tau-b": (
        "Kendall tau-b",
        np.linspace(-1, 1, 21),
        [-1, 0, 1],
        "1: both rank a text's tokens alike; 0: as chance would.",
    ),
    "nats": (
        "JSD (nats)",
        np.linspace(*JSD_BOUNDS, 29),
        [0, 0.2, 0.4, 0.6],
        "Right: an attention that shares almost nothing with the model's own gives the same prediction. "
        "The dashed line is the most that is possible, ln 2 = .693 nats.",
    ),
}
BINS = ("0 – .25", ".25 – .5", ".5 – .75", ".75 – 1")  # of the largest weight; the last holds 1 too
FEWEST = 5  # texts of a violin
POINTS = 25  # at which its outline is computed
HOW_TO_READ_VIOLINS = "Lines are medians. Every violin has the same height, whatever n, its number of texts (each seed "
HOW_TO_READ_VIOLINS += f"counts); fewer than {FEWEST} texts, or equal values, have their median alone."
HOW_TO_READ_BOXES = "Box: the middle half of the texts; line: texts at most 1.5 times its height away from it."


@or_a_sentence
def histogram_by_class(
    instances: pd.DataFrame, column: str, classes: Sequence[str], title: str | None = None
) -> alt.TopLevelMixin:
    """A quantity over all texts, by predicted class, in a panel for each encoder and attention.

    Of Kendall's tau-b Jain & Wallace 2019, Figure 2; of the adversary's JSD (nats) Figure 7, a dashed line at ln 2.
    """
    axis, edges, ticks, see = AXES[unit_of(column)]
    rows, names = with_class_names(defined(instances, column), classes)
    groups, parts = rows.groupby(by := ["encoder", "attention", "class"], sort=False)[column], []
    for names_of, values in groups:
        parts.append(binned(values, edges).assign(**dict(zip(by, names_of, strict=True)), mean=values.mean()))
    drawn = panels(pd.concat(parts), layers_by_class(names, edges, axis, ticks), height=130)
    title = title or f"{title_of(column)}, by predicted class"
    return titled(drawn, title, [f"{see} Lines are means.", caption_of_rows(instances)])


def layers_by_class(names: list[str], edges: np.ndarray, x_title: str, ticks: list[float]) -> list[alt.Chart]:
    """Bars of each class over each other and a line at each mean; of JSDs a dashed line at the largest."""
    color = series_color(names, "class", "predicted class")
    x_scale, axis = alt.Scale(domain=[edges[0], edges[-1]], nice=False), alt.Axis(values=ticks, format=".1f")
    x = alt.X("start:Q", bin="binned", title=x_title, scale=x_scale, axis=axis)
    y = alt.Y("share:Q", stack=None, title="texts of the class", axis=alt.Axis(format="%", tickCount=4))
    bars = alt.Chart().mark_bar(opacity=0.5, binSpacing=0, tooltip=True).encode(x, alt.X2("end"), y, color)
    means = alt.Chart().mark_rule(strokeWidth=2).encode(x="mean(mean):Q", color=color)
    return [bars, means, *([dashed_line("x", edges[-1])] if edges[0] == 0 else [])]


def defined(instances: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The rows in which the numbers of all columns are defined; Empty: there is none."""
    for column in columns:
        if instances[column].isna().all():
            raise Empty(f"{column!r} is undefined or left out for all {len(instances):,} rows")
        instances = instances[instances[column].notna()]
    return instances


def binned(values: Sequence[float], edges: np.ndarray) -> pd.DataFrame:
    """start, end, texts and share (of all values) per bin; values beyond the edges fall into the outer bins."""
    texts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
    share = texts / max(1, texts.sum())
    return pd.DataFrame({"start": edges[:-1].round(6), "end": edges[1:].round(6), "texts": texts, "share": share})


@or_a_sentence
def violins_by_max_attention(
    instances: pd.DataFrame, value: str, classes: list[str], title: str, see: str
) -> alt.TopLevelMixin:
    """A value by the largest attention weight (max_attention) in four equal bins and by predicted class.

    Of the median |change of p| of permuted attention Jain & Wallace 2019, Figure 6; of the adversary's JSD Figure 8.
    """
    rows, names = with_class_names(defined(instances, value, "max_attention"), classes)
    rows = rows.assign(bin=(rows["max_attention"] * len(BINS)).astype(int).clip(upper=len(BINS) - 1))
    by, size, parts = ["encoder", "attention", "class", "bin"], 0.9 / len(names), []
    for (encoder, attention, name, row), values in rows.groupby(by, sort=False)[value]:
        centre, half = row + 0.45 - size * (names.index(name) + 0.5), 0.46 * size
        part = violin(values.to_numpy(dtype=np.float64))
        part = part.assign(low=centre - half * part["height"], high=centre + half * part["height"], centre=centre)
        parts.append(part.assign(**dict(zip(by, (encoder, attention, name, row), strict=True)), n=f"n {len(values):,}"))
    frame, unit = pd.concat(parts, ignore_index=True), unit_of(value)
    end = JSD_BOUNDS[1] if unit == "nats" else max(float(frame["x"].max()), 0.01)  # charts of JSDs share one axis
    layers = violin_layers(names, f"{title_of(value)} ({unit})", 1.2 * end)  # beyond the violins is room for n
    return titled(panels(frame, layers, height=200), title, [see, HOW_TO_READ_VIOLINS, caption_of_rows(instances)])


def violin(values: np.ndarray) -> pd.DataFrame:
    """x and height (at most 1): a row of kind "median", and of kind "shape" a kernel density where there is one."""
    median = pd.DataFrame({"kind": "median", "x": [np.median(values)], "height": 1.0})
    if len(values) < FEWEST or np.ptp(values) < 1e-6:
        return median
    x = np.linspace(values.min(), values.max(), POINTS)
    height = gaussian_kde(values)(x)
    return pd.concat([pd.DataFrame({"kind": "shape", "x": x, "height": height / height.max()}), median])


def violin_layers(names: list[str], axis: str, end: float) -> list[alt.Chart]:
    """Shapes, medians and n at the end of the x axis; rows of the y axis are numbers with the bins as their labels."""
    color = series_color(names, "class", "predicted class")
    stroke = alt.Stroke("class:N", title="predicted class", scale=color["scale"])  # a long thin tail stays a line
    labels = {"labelExpr": f"{list(BINS)}[datum.value]", "grid": False, "ticks": False, "domain": False}
    x = alt.X("x:Q", title=axis, axis=alt.Axis(tickCount=4), scale=alt.Scale(domain=[0, end], nice=False))
    scale = alt.Scale(domain=[-0.5, 3.5], nice=False)
    y = alt.Y("low:Q", title="largest weight", axis=alt.Axis(values=[0, 1, 2, 3], **labels), scale=scale)
    shapes, medians = (alt.Chart().transform_filter(alt.datum.kind == kind) for kind in ("shape", "median"))
    shapes = shapes.mark_area(opacity=0.65, orient="vertical", strokeWidth=0.8)
    lines = medians.mark_rule(strokeWidth=2, color=INK)
    numbers = medians.mark_text(align="right", fontSize=11, color=INK)
    return [
        shapes.encode(x, y, alt.Y2("high"), color, stroke, detail=["class:N", "bin:N"]),
        lines.encode(x, y, alt.Y2("high"), tooltip=alt.Tooltip("x:Q", title="median")),
        numbers.encode(alt.X(datum=end), alt.Y("centre:Q"), text="n:N"),
    ]


@or_a_sentence
def boxes(instances: pd.DataFrame, quantities: Sequence[str], along: str, title: str, see: str) -> alt.TopLevelMixin:
    """A box for each value of the column `along` and each quantity, one panel an encoder, all seeds together.

    Meister et al. 2021, figure 2 (entropies by projection); Serrano & Smith 2019, figure 6 (fractions erased).
    """
    rows = [
        box_of(values.dropna()) | {"encoder": title_of(encoder), along: title_of(at), "series": title_of(quantity)}
        for quantity in quantities
        for (encoder, at), values in instances.groupby(["encoder", along], sort=False)[quantity]
        if values.notna().any()
    ]
    if not rows:
        raise Empty(f"no text has a value of {', '.join(quantities)}")
    frame, series = pd.DataFrame(rows), [title_of(name) for name in quantities]
    x = alt.X(f"{along}:N", sort=None, title=along, axis=alt.Axis(labelAngle=-45))
    base = alt.Chart().encode(x, alt.XOffset("series:N", sort=series), series_color(series))
    width, unit = alt.RelativeBandSize(0.8), unit_of(quantities[0])
    layers = [
        base.mark_rule(strokeWidth=1.5).encode(alt.Y("least:Q", title=unit), alt.Y2("most")),
        base.mark_bar(opacity=0.55, width=width).encode(alt.Y("lower:Q", title=unit), alt.Y2("upper")),
        base.mark_tick(thickness=2, width=width, tooltip=True).encode(alt.Y("median:Q", title=unit)),
    ]
    drawn = facets(frame, layers, "encoder", height=200 if frame["encoder"].nunique() < 3 else 150)
    return titled(drawn, title, [see, HOW_TO_READ_BOXES, caption_of_rows(instances)])


def box_of(values: pd.Series) -> dict[str, float]:
    """lower, median and upper of the box, least and most of its line."""
    lower, median, upper = values.quantile([0.25, 0.5, 0.75])
    reach = 1.5 * (upper - lower)
    inside = values[values.between(lower - reach, upper + reach)]
    return {"least": inside.min(), "lower": lower, "median": median, "upper": upper, "most": inside.max()}
