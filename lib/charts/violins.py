"""Violins by the largest attention weight and the predicted class."""

import altair as alt
import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde

from lib.analysis.summaries import with_class_names
from lib.charts.histograms import defined
from lib.charts.theme import INK, caption_of_rows, or_a_sentence, panels, series_color, titled
from lib.quantity import JSD_BOUNDS, title_of, unit_of

BINS = ("0 – .25", ".25 – .5", ".5 – .75", ".75 – 1")  # of the largest weight; the last holds 1 too
FEWEST = 5  # texts of a violin
POINTS = 25  # at which its outline is computed
HOW_TO_READ = "Lines are medians. Every violin has the same height, whatever n, its number of texts (each seed "
HOW_TO_READ += f"counts); fewer than {FEWEST} texts, or equal values, have their median alone."


@or_a_sentence
def violins_by_max_attention(
    instances: pd.DataFrame, value: str, classes: list[str], title: str, see: str
) -> alt.TopLevelMixin:
    """A value by the largest attention weight in four equal bins and by predicted class.

    Of the median |change of p| of permuted attention Jain & Wallace 2019, Figure 6; of the adversary's JSD Figure 8.

    Args:
        instances: with the largest weight, in [0, 1], in the column "max_attention". value: a column.
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
    layers = violin_layers(names, f"{title_of(value)} ({unit})", end, rows[value].median() > end / 2)
    return titled(panels(frame, layers, height=200), title, [see, HOW_TO_READ, caption_of_rows(instances)])


def violin(values: np.ndarray) -> pd.DataFrame:
    """x and height (at most 1): a row of kind "median", and of kind "shape" a kernel density where there is one."""
    median = pd.DataFrame({"kind": "median", "x": [np.median(values)], "height": 1.0})
    if len(values) < FEWEST or np.ptp(values) < 1e-6:
        return median
    x = np.linspace(values.min(), values.max(), POINTS)
    height = gaussian_kde(values)(x)
    return pd.concat([pd.DataFrame({"kind": "shape", "x": x, "height": height / height.max()}), median])


def violin_layers(names: list[str], axis: str, end: float, to_the_right: bool) -> list[alt.Chart]:
    """Shapes, medians and n; the rows of the y axis are numbers with the bins as their labels.

    Args:
        end: of the x axis, which begins at 0. to_the_right: whether most values are there, so that n is on the left.
    """
    color = series_color(names, "class", "predicted class")
    stroke = alt.Stroke("class:N", title="predicted class", scale=color["scale"])  # a long thin tail stays a line
    labels = {"labelExpr": f"{list(BINS)}[datum.value]", "grid": False, "ticks": False, "domain": False}
    x = alt.X("x:Q", title=axis, axis=alt.Axis(tickCount=4), scale=alt.Scale(domain=[0, end]))
    scale = alt.Scale(domain=[-0.5, 3.5], nice=False)
    y = alt.Y("low:Q", title="largest weight", axis=alt.Axis(values=[0, 1, 2, 3], **labels), scale=scale)
    shapes, medians = (alt.Chart().transform_filter(alt.datum.kind == kind) for kind in ("shape", "median"))
    shapes = shapes.mark_area(opacity=0.65, orient="vertical", strokeWidth=0.8)
    lines = medians.mark_rule(strokeWidth=2, color=INK)
    numbers = medians.mark_text(align="left" if to_the_right else "right", fontSize=11, color=INK)
    return [
        shapes.encode(x, y, alt.Y2("high"), color, stroke, detail=["class:N", "bin:N"]),
        lines.encode(x, y, alt.Y2("high"), tooltip=alt.Tooltip("x:Q", title="median")),
        numbers.encode(alt.X(datum=0 if to_the_right else end), alt.Y("centre:Q"), text="n:N"),
    ]
