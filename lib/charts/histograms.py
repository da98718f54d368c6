"""Histograms: rank correlations, how far attention can move. Charts hold bins, never instances."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from lib.analysis.summaries import with_class_names
from lib.charts.theme import Empty, caption_of_rows, dashed_line, or_a_sentence, panels, series_color, titled
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


@or_a_sentence
def histogram_by_class(
    instances: pd.DataFrame, column: str, classes: Sequence[str], title: str | None = None
) -> alt.TopLevelMixin:
    """A quantity over all texts, by predicted class, in a panel for each encoder and attention.

    Of Kendall's tau-b Jain & Wallace 2019, Figure 2; of the adversary's JSD Figure 7, with a dashed line at ln 2.

    Args:
        column: in tau-b or in nats. title: by default it follows from the column.
    """
    axis, edges, ticks, see = AXES[unit_of(column)]
    rows, names = with_class_names(defined(instances, column), classes)
    drawn = panels(bins_by_class(rows, column, edges), layers_by_class(names, edges, axis, ticks), height=130)
    title = title or f"{title_of(column)}, by predicted class"
    return titled(drawn, title, [f"{see} Lines are means.", caption_of_rows(instances)])


def bins_by_class(rows: pd.DataFrame, column: str, edges: np.ndarray) -> pd.DataFrame:
    """The bins of each encoder, attention and class, with the mean of all its values."""
    by, parts = ["encoder", "attention", "class"], []
    for names, values in rows.groupby(by, sort=False)[column]:
        parts.append(binned(values, edges).assign(**dict(zip(by, names, strict=True)), mean=values.mean()))
    return pd.concat(parts)


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
    """The rows in which the numbers of all columns are defined.

    Raises:
        Empty: no row has a value.
    """
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
