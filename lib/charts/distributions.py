"""How a value is spread over the texts: histograms and boxes. Charts hold bins and quartiles, never instances."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from lib.analysis.summaries import with_class_names
from lib.charts.theme import Empty, caption_of_rows, dashed_line, facets, or_a_sentence, panels, series_color, titled
from lib.quantity import JSD_BOUNDS, title_of, unit_of

ALIKE = "1: both rank a text's tokens alike; 0: as chance would."
APART = "Right: an attention that shares almost nothing with the model's own gives the same prediction. "
APART += "The dashed line is the most that is possible, ln 2 = .693 nats."
AXES = {  # of a unit: the title of the x axis, the edges of the bins, the ticks, and what to see
    "tau-b": ("Kendall tau-b", np.linspace(-1, 1, 21), [-1, 0, 1], ALIKE),
    "nats": ("JSD (nats)", np.linspace(*JSD_BOUNDS, 29), [0, 0.2, 0.4, 0.6], APART),
}
BINS = ("0 – .25", ".25 – .5", ".5 – .75", ".75 – 1")  # of the largest weight; the last holds 1 too
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
    color = series_color(names, "class", "predicted class")
    scale, at = alt.Scale(domain=[edges[0], edges[-1]], nice=False), alt.Axis(values=ticks, format=".1f")
    x = alt.X("start:Q", bin="binned", title=axis, scale=scale, axis=at)
    y = alt.Y("share:Q", stack=None, title="texts of the class", axis=alt.Axis(format="%", tickCount=4))
    bars = alt.Chart().mark_bar(opacity=0.5, binSpacing=0, tooltip=True).encode(x, alt.X2("end"), y, color)
    means = alt.Chart().mark_rule(strokeWidth=2).encode(x="mean(mean):Q", color=color)
    layers = [bars, means, *([dashed_line("x", edges[-1])] if edges[0] == 0 else [])]  # at the largest JSD
    title = title or f"{title_of(column)}, by predicted class"
    drawn = panels(pd.concat(parts), layers, height=130)
    return titled(drawn, title, [f"{see} Lines are means.", caption_of_rows(instances)])


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
def boxes_by_max_attention(
    instances: pd.DataFrame, value: str, classes: list[str], title: str, see: str
) -> alt.TopLevelMixin:
    """A value by the largest attention weight (max_attention) in four equal bins and by predicted class.

    Of the median |change of p| of permuted attention Jain & Wallace 2019, Figure 6; of the adversary's JSD Figure 8.
    Differs from the paper, which draws violins.
    """
    rows, names = with_class_names(defined(instances, value, "max_attention"), classes)
    bins = [BINS[min(int(weight * len(BINS)), len(BINS) - 1)] for weight in rows["max_attention"]]
    rows = rows.assign(series=rows["class"], value=rows[value], **{"largest weight": bins})
    drawn = drawn_boxes(rows, "largest weight", names, [value], BINS)
    return titled(drawn, title, [see, HOW_TO_READ_BOXES, caption_of_rows(instances)])


@or_a_sentence
def boxes(instances: pd.DataFrame, quantities: list[str], along: str, title: str, see: str) -> alt.TopLevelMixin:
    """A box for each value of the column `along` and each quantity, all seeds together; a panel for each model.

    Meister et al. 2021, figure 2 (entropies by projection); Serrano & Smith 2019, figure 6 (fractions erased).
    """
    rows = instances.melt(["encoder", "attention", along], quantities, "series").dropna(subset="value")
    if rows.empty:
        raise Empty(f"no text has a value of {', '.join(quantities)}")
    rows = rows.assign(**rows[[along, "series"]].map(title_of))
    drawn = drawn_boxes(rows, along, [title_of(name) for name in quantities], quantities)
    return titled(drawn, title, [see, HOW_TO_READ_BOXES, caption_of_rows(instances)])


def drawn_boxes(
    rows: pd.DataFrame, along: str, series: list[str], quantities: list[str], order: Sequence[str] | None = None
) -> alt.FacetChart:
    """A box for each series and value of `along`, in that order, of rows with their model, `series` and `value`."""
    named, keys, unit = rows[["encoder", "attention"]].map(title_of), ["model", along, "series"], unit_of(quantities[0])
    several = named["attention"].nunique() > 1
    rows = rows.assign(model=named["encoder"] + (" · " + named["attention"] if several else ""))
    groups = rows.groupby(keys, sort=False)["value"]
    frame = pd.DataFrame([dict(zip(keys, key, strict=True)) | box_of(values) for key, values in groups])
    frame = frame.assign(place=frame["series"].map(series.index))
    x = alt.X(f"{along}:N", sort=order and list(order), title=along, axis=alt.Axis(labelAngle=-45))
    base = alt.Chart().encode(x, alt.XOffset("place:O", sort="ascending"), series_color(series))
    scale = {"scale": alt.Scale(domain=list(JSD_BOUNDS))} if unit == "nats" else {}  # charts of JSDs share one axis
    y = scale | {"title": f"{title_of(quantities[0])} ({unit})" if len(quantities) == 1 else unit}
    width, tooltip = alt.RelativeBandSize(0.8), ["lower:Q", "median:Q", "upper:Q", "n:Q"]
    layers = [
        base.mark_rule(strokeWidth=1.5).encode(alt.Y("least:Q", **y), alt.Y2("most")),
        base.mark_bar(opacity=0.55, width=width).encode(alt.Y("lower:Q", **y), alt.Y2("upper"), tooltip=tooltip),
        base.mark_tick(thickness=2, width=width).encode(alt.Y("median:Q", **y), tooltip=tooltip),
    ]
    return facets(frame, layers, "model", height=200 if frame["model"].nunique() < 3 else 150)


def box_of(values: pd.Series) -> dict[str, float]:
    """lower, median and upper of the box, least and most of its line, and the number n of values."""
    lower, median, upper = values.quantile([0.25, 0.5, 0.75])
    reach = 1.5 * (upper - lower)
    inside = values[values.between(lower - reach, upper + reach)]
    ends = {"least": inside.min(), "most": inside.max()}
    return ends | {"lower": lower, "median": median, "upper": upper, "n": len(values)}
