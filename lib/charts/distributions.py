"""Histograms and learning curves. Everything is counted in pandas first: a chart holds bins, never instances."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from lib.charts.theme import COLORS, INK, WIDTH, absent, by_few_classes, panels, said_once, some, titled
from lib.datasets.card import lengths
from lib.quantity import tau_name, title_of, unit_of

LARGEST_JSD = float(np.log(2))  # nats: of two distributions with nothing in common


def binned(values: np.ndarray, edges: np.ndarray) -> pd.DataFrame:
    """start, end, texts and share (of all values) per bin; values beyond the edges fall into the outer bins."""
    texts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
    share = texts / max(1, texts.sum())
    return pd.DataFrame({"start": edges[:-1].round(6), "end": edges[1:].round(6), "texts": texts, "share": share})


def length_histogram(corpus_or_lengths, bins: int = 40) -> alt.TopLevelMixin:
    """How long the texts of each split are: a Corpus, or a mapping from a split's name to its lengths in tokens.

    Of a corpus that is cut into sentences, below it, the lengths in sentences too.
    """
    title, by_unit = "Lengths of the texts", {"tokens": corpus_or_lengths}
    if not isinstance(corpus_or_lengths, Mapping):
        title = f"Lengths of the texts of {corpus_or_lengths.title}"
        of_splits = {split.name: lengths(split) for split in corpus_or_lengths.splits}
        units = next(iter(of_splits.values()))
        by_unit = {unit: {name: of[unit] for name, of in of_splits.items()} for unit in units}
    drawn, said = zip(*(lengths_in(unit, of_unit, bins) for unit, of_unit in by_unit.items()), strict=True)
    chart = alt.vconcat(*drawn) if len(drawn) > 1 else drawn[0]
    return titled(chart, title, ["The dashed line is the median. Train and test should look alike.", " ".join(said)])


def lengths_in(unit: str, of_splits: Mapping[str, np.ndarray], bins: int) -> tuple[alt.FacetChart, str]:
    """A histogram for each split, lengths in tokens or in sentences, and what is to be said of the longest."""
    of_splits = {name: np.asarray(values) for name, values in of_splits.items() if len(values)}
    if not of_splits:
        raise ValueError("nothing to draw: no split has a text")
    pooled = np.concatenate(list(of_splits.values()))
    end = max(int(np.quantile(pooled, 0.995)), 2)
    edges = np.arange(0, end + (step := max(1, round(end / bins))), step) + 0.5
    over = int((pooled > edges[-1]).sum())
    said = f"The longest text has {pooled.max():,} {unit}."
    said += f" {over:,} of {len(pooled):,} are longer than the axis and stand in its last bar." if over else ""
    named = {name: f"{name}: {len(x):,} texts, median {np.median(x):.0f}" for name, x in of_splits.items()}
    parts = [binned(x, edges).assign(split=named[name], median=np.median(x)) for name, x in of_splits.items()]
    return histogram_of_lengths(pd.concat(parts), unit), said


def histogram_of_lengths(frame: pd.DataFrame, unit: str) -> alt.FacetChart:
    """The bins of each split beside each other, its median dashed."""
    splits = frame["split"].drop_duplicates().tolist()
    bars = (
        alt.Chart()
        .mark_bar(color=COLORS[0])
        .encode(
            alt.X("start:Q", bin="binned", title=f"length in {unit}", axis=alt.Axis(tickMinStep=1, format=",d")),
            alt.X2("end"),
            alt.Y("share:Q", title="share of the split", axis=alt.Axis(format="%", tickCount=4)),
            tooltip=range_tips("split:N"),
        )
    )
    middle = alt.Chart().mark_rule(color=INK, strokeDash=[4, 3]).encode(x="mean(median):Q")
    drawn = alt.layer(bars, middle, data=frame).properties(width=min(420, WIDTH // len(splits) - 36), height=120)
    return drawn.facet(column=alt.Column("split:N", title=None, sort=splits))


def range_tips(first: str, digits: str = ".0f", unit: str = "") -> list[alt.Tooltip]:
    """Tooltips of a bar: what it is of, from where to where, share and number of texts."""
    name = first.split(":")[0]
    return [
        alt.Tooltip(first, title=name),
        alt.Tooltip("start:Q", title=f"from {unit}".strip(), format=digits),
        alt.Tooltip("end:Q", title=f"to {unit}".strip(), format=digits),
        alt.Tooltip("share:Q", format=".1%"),
        alt.Tooltip("texts:Q", format=","),
    ]


def histograms(groups: Sequence[tuple[dict, np.ndarray]], edges: np.ndarray) -> pd.DataFrame:
    """The bins of each group (its columns, its values), with the group's mean and number of texts."""
    parts = [
        binned(values, edges).assign(**columns, mean=values.mean(), n=len(values))
        for columns, values in groups
        if len(values)
    ]
    return pd.concat(parts, ignore_index=True)


def overlaid(series: str, names: Sequence[str], x_title: str, y_title: str, ticks: list, legend: str) -> list:
    """Layers: bars of each series over each other, a rule at each mean, and the mean in figures."""
    color = alt.Color(f"{series}:N", title=legend, scale=alt.Scale(domain=list(names), range=list(COLORS)))
    scale = alt.Scale(domain=[ticks[0], ticks[-1]])
    x = alt.X("start:Q", bin="binned", title=x_title, scale=scale, axis=alt.Axis(values=ticks, format=".1f"))
    y = alt.Y("share:Q", stack=None, title=y_title, axis=alt.Axis(format="%", tickCount=4))
    bars = (
        alt.Chart()
        .mark_bar(opacity=0.5, binSpacing=0)
        .encode(x, alt.X2("end"), y, color, tooltip=range_tips(f"{series}:N", ".2f"))
    )
    mean = alt.Chart().mark_rule(strokeWidth=2).encode(x="mean(mean):Q", color=color)
    figures = [
        alt.Chart()
        .transform_filter(alt.datum[series] == name)
        .transform_aggregate(mean="mean(mean)", n="mean(n)", groupby=[series, "encoder", "attention"])
        .transform_calculate(words="'mean ' + format(datum.mean, '.2f') + ', n ' + format(datum.n, ',')")
        .mark_text(align="left", fontSize=10, x=2, y=-3 - 12 * (len(names) - 1 - index))
        .encode(text="words:N", color=color)
        for index, name in enumerate(names)
    ]
    return [bars, mean, *figures]


def tau_histogram(
    instances: pd.DataFrame, pair: tuple[str, str] | str, classes: Sequence[str] | None = None, bins: int = 20
) -> alt.TopLevelMixin:
    """Kendall's tau-b of two measures over all texts, by predicted class (Jain & Wallace 2019, Figure 2)."""
    column = pair if isinstance(pair, str) else tau_name(pair)
    defined, names = by_few_classes(some(instances, column), classes)
    keys = ["encoder", "attention", "prediction"]
    groups = [
        ({"encoder": encoder, "attention": attention, "class": names[int(predicted)]}, rows[column].to_numpy())
        for (encoder, attention, predicted), rows in defined.groupby(keys, sort=False)
    ]
    frame = histograms(groups, np.linspace(-1, 1, bins + 1))
    layers = overlaid("class", names, "Kendall tau-b", "texts of the class", [-1, -0.5, 0, 0.5, 1], "predicted class")
    return titled(
        panels(frame, layers, height=130),
        f"Rank correlation: {title_of(column)}",
        [
            "1: both measures rank a text's tokens alike; 0: as chance would. The nearer to 0, the less the one says "
            "about the other. Lines are means.",
            f"{said_once(instances)}. {absent(instances, column)}",
        ],
    )


def jsd_histogram(
    instances: pd.DataFrame, columns: Mapping[str, str] | Sequence[str], epsilon: float | None = None
) -> alt.TopLevelMixin:
    """How far attention can move while the prediction stays (Jain & Wallace 2019, Figure 7), one series a method.

    Args:
        columns: columns in nats, or a mapping from the name of a method to its column, such as {"exact": "jsd_exact"}.
        epsilon: the bound on the change of the prediction, to be named in the title.
    """
    columns = columns if isinstance(columns, Mapping) else {title_of(name): name for name in columns}
    groups = [
        ({"encoder": encoder, "attention": attention, "method": method}, rows[column].to_numpy())
        for method, column in columns.items()
        for (encoder, attention), rows in some(instances, column).groupby(["encoder", "attention"], sort=False)
    ]
    frame = histograms(groups, np.linspace(0, LARGEST_JSD, 29))
    layers = overlaid("method", list(columns), "JSD (nats)", "texts", [0, 0.75], "found by")
    layers[0].encoding.x.axis = alt.Axis(values=[0, 0.2, 0.4, 0.6], format=".1f")
    ceiling = alt.Chart().transform_calculate(x=f"{LARGEST_JSD}").mark_rule(color=INK, strokeDash=[4, 3])
    return titled(
        panels(frame, [*layers, ceiling.encode(x="mean(x):Q")], height=130),
        f"How far attention can move while the prediction stays{'' if epsilon is None else f' within {epsilon:g}'}",
        [
            "Jensen-Shannon divergence from the model's own attention. Right: an attention that shares almost nothing "
            "with it gives the same prediction. The dashed line is the most that is possible, "
            f"ln 2 = {LARGEST_JSD:.3f} nats. Coloured lines are means.",
            f"{said_once(instances)}. {' '.join(filter(None, (absent(instances, c) for c in columns.values())))}",
        ],
    )


def learning_curves(
    histories: Mapping[str, Sequence[dict]],
    quantities: Sequence[str] | None = None,
    title: str = "Training",
    see: str = "A dev score that still rises at the last epoch asks for more epochs.",
) -> alt.TopLevelMixin:
    """What training reports after each epoch, one line a run: a mapping from a run (or its name) to its history.

    Runs whose names differ only after ", seed" have one colour.

    Args:
        histories: per run a list of records with `epoch` and numbers. quantities: by default all but `seconds`.
    """
    rows = [
        {"run": str(run), "model": str(run).split(", seed")[0], **record}
        for run, history in histories.items()
        for record in history
    ]
    if not rows:
        raise ValueError("nothing to draw: no run has a history")
    frame = pd.DataFrame(rows)
    quantities = quantities or [name for name in frame if name not in ("run", "model", "epoch", "seconds")]
    across = min(3, len(quantities))
    drawn = [curves(frame, name).properties(width=WIDTH // across - 60, height=130) for name in quantities]
    return titled(alt.concat(*drawn, columns=across), title, [f"Each line is a run. {see}"])


def curves(frame: pd.DataFrame, quantity: str) -> alt.Chart:
    """One quantity by epoch, a line a run, coloured by model where there are colours enough."""
    models = frame["model"].drop_duplicates().tolist()
    scale = alt.Scale(domain=models, range=list(COLORS))
    color = alt.value(COLORS[0])
    if 1 < len(models) <= len(COLORS):
        color = alt.Color("model:N", title=None, scale=scale, legend=alt.Legend(columns=3))
    data = frame[["run", "model", "epoch", quantity]].rename(columns={quantity: "value"}).dropna()
    few = data["epoch"].nunique() <= 12
    tips = ["run:N", "epoch:Q", alt.Tooltip("value:Q", title=title_of(quantity), format=".3f")]
    return (
        alt.Chart(data)
        .mark_line(point=alt.OverlayMarkDef(size=18) if few else False, strokeWidth=1.5, opacity=0.8)
        .encode(
            alt.X("epoch:Q", title="epoch", axis=alt.Axis(format="d", tickMinStep=1, grid=False)),
            alt.Y("value:Q", title=f"{title_of(quantity)} ({unit_of(quantity)})", scale=alt.Scale(zero=False)),
            color=color,
            detail="run:N",
            tooltip=tips,
        )
    )
