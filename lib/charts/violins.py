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
FEWEST = 5  # texts; fewer are drawn one by one
POINTS = 25  # at which the outline of a violin is computed
SEE_CHANGE = "Were attention the reason for the prediction, the upper rows would lie to the right."
SEE_JSD = "Were attention the reason for the prediction, the upper rows would lie to the left: "
SEE_JSD += "a sharp attention could not move far."
HOW_TO_READ = "Ticks are medians. Every violin has the same height, whatever n, its number of texts (each seed "
HOW_TO_READ += f"counts); fewer than {FEWEST} texts, or equal values, are dots."


@or_a_sentence
def violins_by_max_attention(
    instances: pd.DataFrame,
    value: str,
    classes: list[str],
    title: str,
    see: str | None = None,
    axis: str | None = None,
) -> alt.TopLevelMixin:
    """A value by the largest attention weight in four equal bins and by predicted class.

    Of the median |change of p| of permuted attention Jain & Wallace 2019, Figure 6; of the adversary's JSD Figure 8.

    Args:
        instances: with the largest weight, in [0, 1], in the column "max_attention".
        value: a column, for example "permutation".
        see, axis: the line that explains what to see, the title of the x axis; by default as the value's unit says.
    """
    rows, names = with_class_names(defined(instances, value, "max_attention"), classes)
    in_nats = unit_of(value) == "nats"
    bounds = JSD_BOUNDS if in_nats else (0.0, max(1.0, float(rows[value].max())))
    frame = all_violins(rows, value, names, bounds)
    end = bounds[1] if in_nats else max(float(frame["x"].max()), 0.01)  # charts of JSDs share one axis
    axis = axis or f"{title_of(value)} ({unit_of(value)})"
    drawn = panels(frame, violin_layers(frame, names, axis, end), height=200)
    see = see or (SEE_JSD if in_nats else SEE_CHANGE)
    return titled(drawn, title, [see, HOW_TO_READ, caption_of_rows(instances, value)])


def all_violins(rows: pd.DataFrame, value: str, names: list[str], bounds: tuple[float, float]) -> pd.DataFrame:
    """The rows of a violin for each encoder, attention, class and bin of the largest weight."""
    rows = rows.assign(bin=np.minimum((rows["max_attention"].to_numpy() * len(BINS)).astype(int), len(BINS) - 1))
    places, parts, by = places_of(names), [], ["encoder", "attention", "class", "bin"]
    for (encoder, attention, name, row), values in rows.groupby(by, sort=False)[value]:
        offset, sides = places[name]
        part = violin(values.to_numpy(dtype=np.float64), row + offset, sides, bounds)
        columns = {"encoder": encoder, "attention": attention, "class": name, "bin": BINS[row]}
        parts.append(part.assign(**columns, texts=len(values), middle=float(values.median())))
    return pd.concat(parts, ignore_index=True)


def places_of(names: list[str]) -> dict[str, tuple[float, tuple[float, float]]]:
    """Class -> (offset of its centre, (down, up)) in a row of height 1: two back to back, else side by side."""
    if len(names) == 2:
        return dict(zip(names, [(0.02, (0.0, 0.42)), (-0.02, (0.42, 0.0))], strict=True))
    step = 0.9 / len(names)
    return {name: (0.45 - step * (index + 0.5), (step * 0.46,) * 2) for index, name in enumerate(names)}


def violin(values: np.ndarray, centre: float, sides: tuple[float, float], bounds: tuple[float, float]) -> pd.DataFrame:
    """Rows of one violin: `shape` (x, low, high), one `median`, and `dot`s for values too few or too equal for one."""
    down, up = sides
    median = pd.DataFrame({"kind": "median", "x": [np.median(values)], "low": centre - down, "high": centre + up})
    if len(values) < FEWEST or np.ptp(values) < 1e-6:
        dots = {"kind": "dot", "x": np.unique(values.round(6)), "low": centre + (up - down) / 2}
        return pd.concat([pd.DataFrame(dots), median])
    x, height = density(values, bounds)
    shape = {"kind": "shape", "x": x, "low": centre - down * height, "high": centre + up * height}
    return pd.concat([pd.DataFrame(shape), median])


def density(values: np.ndarray, bounds: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """(x, height): a Gaussian kernel density from the least to the largest value, its peak 1.

    What the kernels put beyond the bounds of the value is reflected back, so that a heap at 0 does not look hollow.
    """
    x, (lowest, highest) = np.linspace(values.min(), values.max(), POINTS), bounds
    kernel = gaussian_kde(values)
    height = kernel(x) + kernel(2 * lowest - x) + kernel(2 * highest - x)
    return x, height / height.max()


def violin_layers(frame: pd.DataFrame, names: list[str], axis: str, end: float) -> list[alt.Chart]:
    """Shapes, dots, medians and n; the rows of the y axis are numbers with the bins as their labels.

    Args:
        end: of the x axis, which begins at 0.
    """
    color = series_color(names, "class", "predicted class")
    stroke = alt.Stroke("class:N", title="predicted class", scale=color["scale"])  # a long thin tail stays a line
    bare = {"grid": False, "ticks": False, "domain": False}
    labels = alt.Axis(values=[0, 1, 2, 3], labelExpr=f"{list(BINS)}[datum.value]", **bare)
    y = alt.Y("low:Q", title="largest weight", axis=labels, scale=alt.Scale(domain=[-0.5, 3.5], nice=False))
    x = alt.X("x:Q", title=axis, axis=alt.Axis(tickCount=4), scale=alt.Scale(domain=[0, end]))
    kinds = ("shape", "dot", "median")
    shapes, dots, medians = (alt.Chart().transform_filter(alt.datum.kind == kind) for kind in kinds)
    shapes = shapes.mark_area(opacity=0.65, orient="vertical", strokeWidth=0.8)
    return [
        shapes.encode(x, y, alt.Y2("high"), color, stroke, detail=["class:N", "bin:N"]),
        dots.mark_point(filled=True, size=22, opacity=0.8).encode(x, y, color),
        medians.mark_rule(strokeWidth=2, color=INK).encode(
            x, y, alt.Y2("high"), tooltip=alt.Tooltip("x:Q", title="median")
        ),
        numbers_of_texts(medians, to_the_left=frame["middle"].mean() > end / 2, end=end),
    ]


def numbers_of_texts(medians: alt.Chart, to_the_left: bool, end: float) -> alt.Chart:
    """n beside each violin, where it is thin: adversaries' are on the right, changes of p on the left."""
    words = medians.transform_calculate(
        centre="(datum.low + datum.high) / 2", words="'n ' + format(datum.texts, ',')"
    ).mark_text(align="left" if to_the_left else "right", fontSize=11, color=INK, dx=4 if to_the_left else 0, dy=-1)
    return words.encode(alt.X(datum=0 if to_the_left else end), alt.Y("centre:Q"), text="words:N")
