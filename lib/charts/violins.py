"""Violins of a value by the model's largest attention weight and the predicted class."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde

from lib.charts.theme import COLORS, INK, absent, by_few_classes, panels, said_once, some, titled
from lib.quantity import title_of, unit_of

BINS = ("0 – .25", ".25 – .5", ".5 – .75", ".75 – 1")  # of the largest weight; the last holds 1 too
FEWEST = 5  # texts; fewer are drawn one by one
SEE = (
    "Were attention the reason for the prediction, the upper rows would lie to the right.",
    "Were attention the reason for the prediction, the upper rows would lie to the left: a sharp attention could not "
    "move far.",
)
POINTS = 3500  # of all violins of a chart together


def outline(values: np.ndarray, points: int, lowest: float, highest: float) -> tuple[np.ndarray, np.ndarray]:
    """(x, height): a Gaussian kernel density from the least to the largest value, its peak 1.

    What the kernels put beyond the bounds of the value is reflected back, so that a heap at 0 does not look hollow.
    """
    x = np.linspace(values.min(), values.max(), points)
    kernel = gaussian_kde(values)
    height = kernel(x) + kernel(2 * lowest - x) + kernel(2 * highest - x)
    return x, height / height.max()


def is_a_heap(values: np.ndarray) -> bool:
    """Too few or too equal for a density."""
    return len(values) < FEWEST or np.ptp(values) < 1e-6


def violin(values: np.ndarray, centre: float, sides: tuple[float, float], points: int, bounds: tuple) -> pd.DataFrame:
    """Rows of one violin: `shape` (x, low, high), one `median`, and `dot`s where a density makes no sense."""
    down, up = sides
    median = {"kind": "median", "x": np.median(values), "low": centre - down, "high": centre + up}
    if is_a_heap(values):
        dots = [{"kind": "dot", "x": x, "low": centre + (up - down) / 2} for x in np.unique(values.round(6))]
        return pd.DataFrame([*dots, median])
    x, height = outline(values, points, *bounds)
    shape = pd.DataFrame({"kind": "shape", "x": x, "low": centre - down * height, "high": centre + up * height})
    return pd.concat([shape, pd.DataFrame([median])], ignore_index=True)


def places(number: int) -> list[tuple[float, tuple[float, float]]]:
    """(offset of the centre, (down, up)) of each class in a row of height 1: two back to back, else side by side."""
    if number == 2:
        return [(0.02, (0.0, 0.42)), (-0.02, (0.42, 0.0))]
    step = 0.9 / number
    return [(0.45 - step * (index + 0.5), (step * 0.46, step * 0.46)) for index in range(number)]


def violins_by_max_attention(
    instances: pd.DataFrame,
    value: str,
    by: str = "max_attention",
    classes: Sequence[str] | None = None,
    title: str | None = None,
    see: str | None = None,
    axis: str | None = None,
) -> alt.TopLevelMixin:
    """A value by the largest attention weight in four equal bins and by predicted class (Jain & Wallace 2019, Fig. 6).

    For the median |change of p| of permuted attention, and for the adversary's JSD alike.

    Args:
        value: a column, for example "permutation". by: the column of the largest weight, in [0, 1].
        title, see, axis: in place of what is said by default.
    """
    defined, names = by_few_classes(some(some(instances, value), by), classes)
    keys = ["encoder", "attention", "prediction"]
    rows = np.minimum((defined[by].to_numpy() * 4).astype(int), 3)
    groups = list(defined.assign(row=rows).groupby([*keys, "row"], sort=False))
    bounds = (0.0, float(np.log(2)) if unit_of(value) == "nats" else max(1.0, float(defined[value].max())))
    points = max(8, min(60, POINTS // len(groups)))
    at = places(len(names))
    parts = []
    for (encoder, attention, predicted, row), group in groups:
        offset, sides = at[int(predicted)]
        part = violin(group[value].to_numpy(dtype=np.float64), row + offset, sides, points, bounds)
        said = {"encoder": encoder, "attention": attention, "class": names[int(predicted)], "bin": BINS[row]}
        parts.append(part.assign(**said, texts=len(group), middle=float(group[value].median())))
    frame = pd.concat(parts, ignore_index=True)
    axis = axis or f"{title_of(value)} ({unit_of(value)})"
    return titled(
        panels(frame, violin_layers(names, axis, frame, unit_of(value) == "nats"), height=200),
        title or f"{title_of(value)[:1].upper()}{title_of(value)[1:]} by the largest attention weight",
        [
            see or SEE[unit_of(value) == "nats"],
            "Ticks are medians. Every violin has the same height, whatever n, its number of texts (each seed counts); "
            f"fewer than {FEWEST} texts, or equal values, are dots.",
            f"{said_once(instances)}. {absent(instances, value)}",
        ],
    )


def violin_layers(names: list[str], axis: str, frame: pd.DataFrame, unit_is_nats: bool) -> list[alt.Chart]:
    """Shapes, dots and medians; the rows of the y axis are numbers with the bins as their labels."""
    scale = alt.Scale(domain=names, range=list(COLORS))
    color = alt.Color("class:N", title="predicted class", scale=scale)
    stroke = alt.Stroke("class:N", title="predicted class", scale=scale)  # a long thin tail stays a line
    labels = " : ".join(f"datum.value == {index} ? '{label}'" for index, label in enumerate(BINS)) + " : ''"
    rows = alt.Axis(values=[0, 1, 2, 3], labelExpr=labels, grid=False, ticks=False, domain=False)
    y = alt.Y("low:Q", title="largest weight", axis=rows, scale=alt.Scale(domain=[-0.5, 3.5], nice=False))
    end = float(np.log(2)) if unit_is_nats else max(float(frame["x"].max()), 0.01)  # charts of JSDs share one axis
    x = alt.X("x:Q", title=axis, axis=alt.Axis(tickCount=4), scale=alt.Scale(domain=[0, end]))
    tips = [
        alt.Tooltip("class:N"),
        alt.Tooltip("bin:N", title="largest weight"),
        alt.Tooltip("texts:Q", format=","),
        alt.Tooltip("middle:Q", title="median", format=".3f"),
    ]
    kind = alt.datum.kind
    shape = alt.Chart().transform_filter(kind == "shape").mark_area(opacity=0.65, orient="vertical", strokeWidth=0.8)
    dots = alt.Chart().transform_filter(kind == "dot").mark_point(filled=True, size=22, opacity=0.8)
    numbers = (
        alt.Chart()
        .transform_filter(kind == "median")
        .transform_calculate(middle_of="(datum.low + datum.high) / 2", words="'n ' + format(datum.texts, ',')")
    )
    # where the violins are thin: adversaries lie to the right, changes of p to the left
    left = float(frame["middle"].mean()) > end / 2
    numbers = numbers.mark_text(align="left" if left else "right", fontSize=9, color=INK, dx=4 if left else 0, dy=-1)
    medians = alt.Chart().transform_filter(kind == "median").mark_rule(strokeWidth=2, color=INK)
    return [
        shape.encode(
            x,
            y,
            alt.Y2("high"),
            color,
            stroke,
            detail=["class:N", "bin:N"],
            tooltip=tips,
        ),
        dots.encode(x, y, color=color, tooltip=tips),
        medians.encode(x, y, alt.Y2("high"), tooltip=tips),
        numbers.encode(alt.X(datum=0 if left else end), alt.Y("middle_of:Q"), text="words:N"),
    ]
