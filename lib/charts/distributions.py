"""How values are spread over the texts: histograms, and boxes. A chart holds bins and quantiles, never instances."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from lib.charts.theme import (
    COLORS,
    caption_of_rows,
    dashed_line,
    defined,
    facets,
    number_tips,
    panels,
    series_color,
    titled,
    with_classes,
)
from lib.datasets.card import lengths
from lib.quantity import JSD_BOUNDS, tau_name, title_of, unit_of

LENGTH_BINS = 40  # about
WHISKERS = {"90%": "90% of them", "1.5 IQR": "as far as the box is high, 1.5 times"}
QUANTILES = {"least": 0.05, "lower": 0.25, "median": 0.5, "upper": 0.75, "most": 0.95}


def binned(values: np.ndarray, edges: np.ndarray) -> pd.DataFrame:
    """start, end, texts and share (of all values) per bin; values beyond the edges fall into the outer bins."""
    texts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
    share = texts / max(1, texts.sum())
    return pd.DataFrame({"start": edges[:-1].round(6), "end": edges[1:].round(6), "texts": texts, "share": share})


def bin_tips(first: str, digits: str) -> list:
    """Tooltips of a bar of `binned`: what it is of, from where to where, share and number of texts."""
    tips = [first, *number_tips(digits, start="from", end="to")]
    return [*tips, *number_tips(".1%", "share"), *number_tips(",", "texts")]


# --- lengths of texts


def length_histogram(corpus_or_lengths) -> alt.TopLevelMixin:
    """How long the texts of each split are: a Corpus, or a mapping from a split's name to its lengths in tokens.

    Of a corpus that is cut into sentences, below it, the lengths in sentences too.
    """
    title, by_unit = "Lengths of the texts", {"tokens": corpus_or_lengths}
    if not isinstance(corpus_or_lengths, Mapping):
        title = f"Lengths of the texts of {corpus_or_lengths.title}"
        of_splits = {split.name: lengths(split) for split in corpus_or_lengths.splits}
        units = next(iter(of_splits.values()))
        by_unit = {unit: {name: of[unit] for name, of in of_splits.items()} for unit in units}
    drawn, notes = zip(*(lengths_in(unit, of_unit) for unit, of_unit in by_unit.items()), strict=True)
    chart = alt.vconcat(*drawn) if len(drawn) > 1 else drawn[0]
    return titled(chart, title, ["The dashed line is the median. Train and test should look alike.", " ".join(notes)])


def lengths_in(unit: str, of_splits: Mapping[str, np.ndarray]) -> tuple[alt.FacetChart, str]:
    """A histogram for each split, lengths in tokens or in sentences, and a note on the longest."""
    of_splits = {name: np.asarray(values) for name, values in of_splits.items() if len(values)}
    if not of_splits:
        raise ValueError("nothing to draw: no split has a text")
    pooled = np.concatenate(list(of_splits.values()))
    end = max(int(np.quantile(pooled, 0.995)), 2)
    edges = np.arange(0, end + (step := max(1, round(end / LENGTH_BINS))), step) + 0.5
    over = int((pooled > edges[-1]).sum())
    note = f"The longest text has {pooled.max():,} {unit}."
    note += f" {over:,} of {len(pooled):,} are longer than the axis and are counted in its last bar." if over else ""
    names = {name: f"{name}: {len(x):,} texts, median {np.median(x):.0f}" for name, x in of_splits.items()}
    frame = pd.concat([binned(x, edges).assign(split=names[n], median=np.median(x)) for n, x in of_splits.items()])
    x = alt.X("start:Q", bin="binned", title=f"length in {unit}", axis=alt.Axis(tickMinStep=1, format=",d"))
    y = alt.Y("share:Q", title="share of the split", axis=alt.Axis(format="%", tickCount=4))
    bars = alt.Chart().mark_bar(color=COLORS[0]).encode(x, alt.X2("end"), y, tooltip=bin_tips("split:N", ".0f"))
    return facets(frame, [bars, dashed_line("x", "median")], "split", height=120), note


# --- histograms of a quantity


def tau_histogram(
    instances: pd.DataFrame, pair: tuple[str, str], classes: Sequence[str] | None = None
) -> alt.TopLevelMixin:
    """Kendall's tau-b of two measures over all texts, by predicted class (Jain & Wallace 2019, Figure 2)."""
    column = tau_name(pair)
    rows, names = with_classes(defined(instances, column), classes)
    rows = rows.assign(**{"class": [names[int(predicted)] for predicted in rows["prediction"]]})
    frame = histograms(rows, column, "class", np.linspace(-1, 1, 21))
    axis, ticks = "Kendall tau-b", [-1, -0.5, 0, 0.5, 1]
    layers = overlaid(names, "class", "predicted class", axis, "texts of the class", ticks, ends=(-1, 1))
    see = "1: both measures rank a text's tokens alike; 0: as chance would. The nearer to 0, the less the one reveals "
    see += "about the other. Lines are means."
    drawn = panels(frame, layers, height=130)
    return titled(drawn, f"Rank correlation: {title_of(column)}", [see, caption_of_rows(instances, column)])


def jsd_histogram(
    instances: pd.DataFrame, columns: Mapping[str, str], epsilon: float | None = None
) -> alt.TopLevelMixin:
    """How far attention can move while the prediction stays (Jain & Wallace 2019, Figure 7), one series a method.

    Args:
        columns: the name of a method -> its column, in nats, such as {"exact": "jsd_exact"}.
        epsilon: the bound on the change of the prediction, to be named in the title.
    """
    largest = JSD_BOUNDS[1]
    edges = np.linspace(0, largest, 29)
    rows = {method: defined(instances, column).assign(method=method) for method, column in columns.items()}
    frame = pd.concat([histograms(rows[m], column, "method", edges) for m, column in columns.items()])
    layers = overlaid(columns, "method", "found by", "JSD (nats)", "texts", [0, 0.2, 0.4, 0.6], ends=(0, 0.75))
    within = "" if epsilon is None else f" within {epsilon:g}"
    see = (
        "Jensen-Shannon divergence from the model's own attention. Right: an attention that shares almost nothing with "
        f"it gives the same prediction. The dashed line is the most that is possible, ln 2 = {largest:.3f} nats. "
        "Coloured lines are means."
    )
    drawn = panels(frame, [*layers, dashed_line("x", largest)], height=130)
    title = f"How far attention can move while the prediction stays{within}"
    return titled(drawn, title, [see, caption_of_rows(instances, *columns.values())])


def difference_histogram(
    instances: pd.DataFrame, columns: Mapping[str, str], title: str, see: str
) -> alt.TopLevelMixin:
    """Differences of two taus over all texts, one series each, with a dashed line at 0.

    Args:
        columns: the name of a series -> its column.
    """
    edges, ticks = np.linspace(-1.5, 1.5, 31), [-1, 0, 1]
    rows = {name: defined(instances, column).assign(of=name) for name, column in columns.items()}
    frame = pd.concat([histograms(rows[name], column, "of", edges) for name, column in columns.items()])
    layers = overlaid(columns, "of", "with leave-one-out", "tau-b", "texts", ticks, ends=(-1.5, 1.5))
    drawn = panels(frame, [*layers, dashed_line("x", 0)], height=130)
    return titled(drawn, title, [see, caption_of_rows(instances, *columns.values())])


def histograms(rows: pd.DataFrame, column: str, series: str, edges: np.ndarray) -> pd.DataFrame:
    """The bins of a column for each encoder, attention and value of `series`, with the mean and the number of texts."""
    by = ["encoder", "attention", series]
    return pd.concat(
        binned(of.to_numpy(), edges).assign(**dict(zip(by, keys, strict=True)), mean=of.mean(), n=len(of))
        for keys, of in rows.groupby(by, sort=False)[column]
    )


def overlaid(
    names: Sequence[str], column: str, legend: str, x_title: str, y_title: str, ticks: list, ends: tuple[float, float]
) -> list[alt.Chart]:
    """Layers: bars of each series over each other, a line at each mean, and the mean in figures.

    Args:
        names: of the series, values of `column`. ticks, ends: of the x axis.
    """
    names, color = list(names), series_color(names, column, legend)
    axis = alt.Axis(values=ticks, format=".1f")
    x = alt.X("start:Q", bin="binned", title=x_title, scale=alt.Scale(domain=list(ends)), axis=axis)
    y = alt.Y("share:Q", stack=None, title=y_title, axis=alt.Axis(format="%", tickCount=4))
    bars = alt.Chart().mark_bar(opacity=0.5, binSpacing=0)
    mean = alt.Chart().mark_rule(strokeWidth=2).encode(x="mean(mean):Q", color=color)
    figures = [
        alt.Chart()
        .transform_filter(alt.datum[column] == name)
        .transform_aggregate(mean="mean(mean)", n="mean(n)", groupby=[column, "encoder", "attention"])
        .transform_calculate(words="'mean ' + format(datum.mean, '.2f') + ', n ' + format(datum.n, ',')")
        .mark_text(align="left", fontSize=10, x=2, y=-3 - 12 * (len(names) - 1 - index))
        .encode(text="words:N", color=color)
        for index, name in enumerate(names)
    ]
    return [bars.encode(x, alt.X2("end"), y, color, tooltip=bin_tips(f"{column}:N", ".2f")), mean, *figures]


# --- boxes


def boxes(
    instances: pd.DataFrame, quantities: Sequence[str], along: str, title: str, see: str, whiskers: str = "90%"
) -> alt.TopLevelMixin:
    """A box for each value of the column `along` and each quantity, one panel an encoder (Meister et al. 2021, fig. 2).

    The box holds the middle half of the texts, the line 90% of them, or with whiskers="1.5 IQR" those at most 1.5 times
    the height of the box away. All seeds together.

    Args:
        instances: rows of lib.analysis.measure; `along` has texts, drawn in the order in which they come.
    Raises:
        ValueError: no text has a value.
    """
    rows = [
        {**box_of(values, whiskers), "encoder": title_of(encoder), along: title_of(at), "series": title_of(quantity)}
        | {"texts": values.count()}
        for quantity in quantities
        for (encoder, at), values in instances.groupby(["encoder", along], sort=False)[quantity]
        if values.notna().any()
    ]
    if not rows:
        raise ValueError(f"nothing to draw: no text has a value of {', '.join(quantities)}")
    frame = pd.DataFrame(rows)
    order, series = [title_of(value) for value in instances[along].unique()], [title_of(name) for name in quantities]
    x = alt.X(f"{along}:N", sort=order, title=along, axis=alt.Axis(labelAngle=-45))
    tips = [alt.Tooltip(f"{along}:N"), alt.Tooltip("series:N", title="of")]
    tips += [*number_tips(".3f", *QUANTILES), *number_tips(",", texts="values")]
    y = {name: alt.Y(f"{name}:Q", title=unit_of(quantities[0])) for name in ("least", "lower", "median")}
    base = alt.Chart().encode(x, alt.XOffset("series:N", sort=series), series_color(series), tooltip=tips)
    width = alt.RelativeBandSize(0.8)
    layers = [
        base.mark_rule(strokeWidth=1.5).encode(y["least"], alt.Y2("most")),
        base.mark_bar(opacity=0.55, width=width).encode(y["lower"], alt.Y2("upper")),
        base.mark_tick(thickness=2, width=width).encode(y["median"]),
    ]
    drawn = facets(frame, layers, "encoder", height=200 if frame["encoder"].nunique() < 3 else 150)
    note = f"Box: half of the texts; line: {WHISKERS[whiskers]}. {caption_of_rows(instances)}"
    return titled(drawn, title, [see, note])


def box_of(values: pd.Series, whiskers: str) -> dict[str, float]:
    """least, lower, median, upper and most of the box and its line."""
    box = values.quantile(list(QUANTILES.values())).set_axis(list(QUANTILES))
    if whiskers == "1.5 IQR":
        reach = 1.5 * (box["upper"] - box["lower"])
        inside = values[values.between(box["lower"] - reach, box["upper"] + reach)]
        box["least"], box["most"] = inside.min(), inside.max()
    return box.to_dict()
