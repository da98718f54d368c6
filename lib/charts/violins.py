"""Violins of a value by the model's largest attention weight and the predicted class."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde

from lib.charts.theme import INK, caption_of_rows, defined, number_tips, panels, series_color, titled, with_classes
from lib.quantity import JSD_BOUNDS, title_of, unit_of

BINS = ("0 – .25", ".25 – .5", ".5 – .75", ".75 – 1")  # of the largest weight; the last holds 1 too
FEWEST = 5  # texts; fewer are drawn one by one
SEE_CHANGE = "Were attention the reason for the prediction, the upper rows would lie to the right."
SEE_JSD = (
    "Were attention the reason for the prediction, the upper rows would lie to the left: a sharp attention could not "
    "move far."
)
POINTS = 3500  # of all violins of a chart together


def violins_by_max_attention(
    instances: pd.DataFrame,
    value: str,
    classes: Sequence[str] | None = None,
    title: str | None = None,
    see: str | None = None,
    axis: str | None = None,
) -> alt.TopLevelMixin:
    """A value by the largest attention weight in four equal bins and by predicted class (Jain & Wallace 2019, Fig. 6).

    For the median |change of p| of permuted attention, and for the adversary's JSD alike.

    Args:
        instances: with the largest weight, in [0, 1], in the column "max_attention".
        value: a column, for example "permutation".
        title, see, axis: the chart's title, the line that explains what to see, the title of the x axis; by default
            they follow from the value and its unit.
    """
    rows, names = with_classes(defined(instances, value, "max_attention"), classes)
    in_nats = unit_of(value) == "nats"
    rows = rows.assign(row=np.minimum((rows["max_attention"].to_numpy() * 4).astype(int), 3))
    groups = list(rows.groupby(["encoder", "attention", "prediction", "row"], sort=False))
    bounds = JSD_BOUNDS if in_nats else (0.0, max(1.0, float(rows[value].max())))
    points = max(8, min(60, POINTS // len(groups)))
    places, parts = places_of(len(names)), []
    for (encoder, attention, predicted, row), group in groups:
        offset, sides = places[int(predicted)]
        part = violin(group[value].to_numpy(dtype=np.float64), row + offset, sides, points, bounds)
        columns = {"encoder": encoder, "attention": attention, "class": names[int(predicted)], "bin": BINS[row]}
        parts.append(part.assign(**columns, texts=len(group), middle=float(group[value].median())))
    frame = pd.concat(parts, ignore_index=True)
    end = bounds[1] if in_nats else max(float(frame["x"].max()), 0.01)  # charts of JSDs share one axis
    name = title_of(value)
    drawn = panels(frame, violin_layers(names, axis or f"{name} ({unit_of(value)})", frame, end), height=200)
    note = (
        "Ticks are medians. Every violin has the same height, whatever n, its number of texts (each seed counts); "
        f"fewer than {FEWEST} texts, or equal values, are dots."
    )
    title = title or f"{name[:1].upper()}{name[1:]} by the largest attention weight"
    return titled(drawn, title, [see or (SEE_JSD if in_nats else SEE_CHANGE), note, caption_of_rows(instances, value)])


def places_of(number: int) -> list[tuple[float, tuple[float, float]]]:
    """(offset of the centre, (down, up)) of each class in a row of height 1: two back to back, else side by side."""
    if number == 2:
        return [(0.02, (0.0, 0.42)), (-0.02, (0.42, 0.0))]
    step = 0.9 / number
    return [(0.45 - step * (index + 0.5), (step * 0.46, step * 0.46)) for index in range(number)]


def violin(
    values: np.ndarray, centre: float, sides: tuple[float, float], points: int, bounds: tuple[float, float]
) -> pd.DataFrame:
    """Rows of one violin: `shape` (x, low, high), one `median`, and `dot`s for values too few or too equal for one."""
    down, up = sides
    median = {"kind": "median", "x": np.median(values), "low": centre - down, "high": centre + up}
    if len(values) < FEWEST or np.ptp(values) < 1e-6:
        dots = [{"kind": "dot", "x": x, "low": centre + (up - down) / 2} for x in np.unique(values.round(6))]
        return pd.DataFrame([*dots, median])
    x, height = density(values, points, bounds)
    shape = pd.DataFrame({"kind": "shape", "x": x, "low": centre - down * height, "high": centre + up * height})
    return pd.concat([shape, pd.DataFrame([median])], ignore_index=True)


def density(values: np.ndarray, points: int, bounds: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """(x, height): a Gaussian kernel density from the least to the largest value, its peak 1.

    What the kernels put beyond the bounds of the value is reflected back, so that a heap at 0 does not look hollow.
    """
    x, (lowest, highest) = np.linspace(values.min(), values.max(), points), bounds
    kernel = gaussian_kde(values)
    height = kernel(x) + kernel(2 * lowest - x) + kernel(2 * highest - x)
    return x, height / height.max()


def violin_layers(names: list[str], axis: str, frame: pd.DataFrame, end: float) -> list[alt.Chart]:
    """Shapes, dots and medians; the rows of the y axis are numbers with the bins as their labels.

    Args:
        end: of the x axis, which begins at 0.
    """
    color = series_color(names, "class", "predicted class")
    stroke = alt.Stroke("class:N", title="predicted class", scale=color["scale"])  # a long thin tail stays a line
    labels = " : ".join(f"datum.value == {index} ? '{label}'" for index, label in enumerate(BINS)) + " : ''"
    rows = alt.Axis(values=[0, 1, 2, 3], labelExpr=labels, grid=False, ticks=False, domain=False)
    y = alt.Y("low:Q", title="largest weight", axis=rows, scale=alt.Scale(domain=[-0.5, 3.5], nice=False))
    x = alt.X("x:Q", title=axis, axis=alt.Axis(tickCount=4), scale=alt.Scale(domain=[0, end]))
    tips = [alt.Tooltip("class:N"), alt.Tooltip("bin:N", title="largest weight")]
    tips += [*number_tips(",", "texts"), *number_tips(".3f", middle="median")]
    shapes, dots, medians = (
        alt.Chart().transform_filter(alt.datum.kind == kind) for kind in ("shape", "dot", "median")
    )
    shapes = shapes.mark_area(opacity=0.65, orient="vertical", strokeWidth=0.8)
    # n is written where the violins are thin: adversaries are on the right, changes of p on the left
    to_the_left = float(frame["middle"].mean()) > end / 2
    numbers = medians.transform_calculate(
        middle_of="(datum.low + datum.high) / 2", words="'n ' + format(datum.texts, ',')"
    ).mark_text(align="left" if to_the_left else "right", fontSize=9, color=INK, dx=4 if to_the_left else 0, dy=-1)
    return [
        shapes.encode(x, y, alt.Y2("high"), color, stroke, detail=["class:N", "bin:N"], tooltip=tips),
        dots.mark_point(filled=True, size=22, opacity=0.8).encode(x, y, color, tooltip=tips),
        medians.mark_rule(strokeWidth=2, color=INK).encode(x, y, alt.Y2("high"), tooltip=tips),
        numbers.encode(alt.X(datum=0 if to_the_left else end), alt.Y("middle_of:Q"), text="words:N"),
    ]
