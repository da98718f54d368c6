"""Histograms: lengths of texts, rank correlations, how far attention can move. Charts hold bins, never instances."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from lib.charts.theme import (
    COLORS,
    Empty,
    caption_of_rows,
    dashed_line,
    facets,
    number_tips,
    or_a_sentence,
    panels,
    series_color,
    titled,
)
from lib.datasets import Corpus
from lib.datasets.card import lengths
from lib.quantity import JSD_BOUNDS, tau_name, title_of

LENGTH_BINS = 40  # about


# --- lengths of texts


@or_a_sentence
def length_histogram(corpus: Corpus) -> alt.TopLevelMixin:
    """How long the texts of each split are, in tokens, and where they are cut into sentences in these too."""
    of_splits = {split.name: lengths(split) for split in corpus.splits if len(split)}
    if not of_splits:
        raise Empty("no split has a text")
    units = list(next(iter(of_splits.values())))
    drawn, notes = zip(
        *(lengths_in(unit, {name: np.asarray(of[unit]) for name, of in of_splits.items()}) for unit in units),
        strict=True,
    )
    see = "The dashed line is the median. Train and test should look alike."
    chart = alt.vconcat(*drawn) if len(drawn) > 1 else drawn[0]
    return titled(chart, f"Lengths of the texts of {corpus.title}", [see, " ".join(notes)])


def lengths_in(unit: str, of_splits: Mapping[str, np.ndarray]) -> tuple[alt.FacetChart, str]:
    """A histogram for each split, lengths in tokens or in sentences, and a note on the longest."""
    pooled = np.concatenate(list(of_splits.values()))
    end = max(int(np.quantile(pooled, 0.995)), 2)
    step = max(1, round(end / LENGTH_BINS))
    edges = np.arange(0, end + step, step) + 0.5
    over = int((pooled > edges[-1]).sum())
    note = f"The longest text has {pooled.max():,} {unit}."
    note += f" {over:,} of {len(pooled):,} are longer than the axis and are counted in its last bar." if over else ""
    titles = {name: f"{name}: {len(x):,} texts, median {np.median(x):.0f}" for name, x in of_splits.items()}
    frame = pd.concat(binned(x, edges).assign(split=titles[n], median=np.median(x)) for n, x in of_splits.items())
    x = alt.X("start:Q", bin="binned", title=f"length in {unit}", axis=alt.Axis(tickMinStep=1, format=",d"))
    y = alt.Y("share:Q", title="share of the split", axis=alt.Axis(format="%", tickCount=4))
    bars = alt.Chart().mark_bar(color=COLORS[0]).encode(x, alt.X2("end"), y, tooltip=bin_tips("split:N", ".0f"))
    return facets(frame, [bars, dashed_line("x", "median")], "split", height=120), note


# --- histograms of a quantity


@or_a_sentence
def tau_histogram(instances: pd.DataFrame, pair: tuple[str, str], classes: list[str]) -> alt.TopLevelMixin:
    """Kendall's tau-b of two measures over all texts, by predicted class (Jain & Wallace 2019, Figure 2)."""
    column = tau_name(pair)
    rows, names = with_classes(defined(instances, column), classes)
    rows = rows.assign(series=rows["class"], value=rows[column])
    drawn = overlaid(
        rows, names, np.linspace(-1, 1, 21), "predicted class", "Kendall tau-b", "texts of the class", [-1, 0, 1]
    )
    see = "1: both rank a text's tokens alike; 0: as chance would. Lines are means."
    return titled(drawn, f"Rank correlation: {title_of(column)}", [see, caption_of_rows(instances, column)])


@or_a_sentence
def jsd_histogram(instances: pd.DataFrame, columns: Mapping[str, str], epsilon: float) -> alt.TopLevelMixin:
    """How far attention can move while the prediction stays (Jain & Wallace 2019, Figure 7), one series a method.

    Args:
        columns: the name of a method -> its column, in nats, such as {"exact": "jsd_exact"}.
        epsilon: the bound on the change of the prediction, named in the title.
    """
    largest = JSD_BOUNDS[1]
    rows, edges = one_row_per_value(instances, columns), np.linspace(0, largest, 29)
    drawn = overlaid(rows, list(columns), edges, "found by", "JSD (nats)", "texts", [0, 0.2, 0.4, 0.6], dashed=largest)
    see = "Jensen-Shannon divergence from the model's own attention. Right: an attention that shares almost nothing "
    see += "with it gives the same prediction. The dashed line is the most that is possible, "
    see += f"ln 2 = {largest:.3f} nats. Coloured lines are means."
    title = f"How far attention can move while the prediction stays within {epsilon:g}"
    return titled(drawn, title, [see, caption_of_rows(instances, *columns.values())])


@or_a_sentence
def difference_histogram(
    instances: pd.DataFrame, columns: Mapping[str, str], title: str, see: str
) -> alt.TopLevelMixin:
    """Differences of two taus over all texts, one series each, with a line at 0 (Jain & Wallace 2019, Figures 3, 4).

    Args:
        columns: the name of a series -> its column.
    """
    rows, edges = one_row_per_value(instances, columns), np.linspace(-1.5, 1.5, 31)
    drawn = overlaid(
        rows, list(columns), edges, "with leave-one-out", "difference of tau-b", "texts", [-1, 0, 1], dashed=0
    )
    return titled(drawn, title, [f"{see} Coloured lines are means.", caption_of_rows(instances, *columns.values())])


def one_row_per_value(instances: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """encoder, attention, series and value: what is defined of several columns, each a series by its name."""
    rows = {name: defined(instances, column)[["encoder", "attention", column]] for name, column in columns.items()}
    return pd.concat(rows[name].rename(columns={of: "value"}).assign(series=name) for name, of in columns.items())


def overlaid(
    rows: pd.DataFrame,
    names: list[str],
    edges: np.ndarray,
    legend: str,
    x_title: str,
    y_title: str,
    ticks: list[float],
    dashed: float | None = None,
) -> alt.FacetChart:
    """A panel for each encoder and attention: histograms of each series over each other, with a line at each mean.

    Args:
        rows: encoder, attention, series, value. names: of the series, in order.
        edges: of the bins. ticks: of the x axis. dashed: where a dashed line is.
    """
    parts = []
    for (encoder, attention, name), values in rows.groupby(["encoder", "attention", "series"], sort=False)["value"]:
        words = f"mean {values.mean():z.2f}, n {len(values):,}".replace("-", "−")  # beside the first bin
        columns = {"encoder": encoder, "attention": attention, "series": name, "mean": values.mean()}
        parts.append(binned(values.to_numpy(), edges).assign(**columns, words=[words, *[""] * (len(edges) - 2)]))
    color, scale = series_color(names, title=legend), alt.Scale(domain=[edges[0], edges[-1]], nice=False)
    axis = alt.Axis(values=ticks, format=".1f")
    x = alt.X("start:Q", bin="binned", title=x_title, scale=scale, axis=axis)
    y = alt.Y("share:Q", stack=None, title=y_title, axis=alt.Axis(format="%", tickCount=4))
    bars = alt.Chart().mark_bar(opacity=0.5, binSpacing=0)
    layers = [
        bars.encode(x, alt.X2("end"), y, color, tooltip=bin_tips("series:N", ".2f")),
        alt.Chart().mark_rule(strokeWidth=2).encode(x="mean(mean):Q", color=color),
    ]
    for place, name in enumerate(reversed(names)):
        words = alt.Chart().transform_filter((alt.datum.series == name) & (alt.datum.words != ""))
        layers.append(words.mark_text(align="left", x=2, y=-3 - 12 * place).encode(text="words:N", color=color))
    layers += [] if dashed is None else [dashed_line("x", dashed)]
    return panels(pd.concat(parts), layers, height=130)


# --- rows and bins


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


def with_classes(rows: pd.DataFrame, classes: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """The rows with the name of the predicted class, and all names; more than there are colours count as one."""
    names = list(classes) if len(classes) <= len(COLORS) else [f"any of {len(classes)}"]
    predicted = rows["prediction"].astype(int) if len(names) > 1 else np.zeros(len(rows), dtype=int)
    return rows.assign(**{"class": [names[place] for place in predicted]}), names


def binned(values: np.ndarray, edges: np.ndarray) -> pd.DataFrame:
    """start, end, texts and share (of all values) per bin; values beyond the edges fall into the outer bins."""
    texts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
    share = texts / max(1, texts.sum())
    return pd.DataFrame({"start": edges[:-1].round(6), "end": edges[1:].round(6), "texts": texts, "share": share})


def bin_tips(first: str, digits: str) -> list:
    """Tooltips of a bar of `binned`: what it is of, from where to where, share and number of texts."""
    tips = [first, *number_tips(digits, start="from", end="to")]
    return [*tips, *number_tips(".1%", "share"), *number_tips(",", "texts")]
