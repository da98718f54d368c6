"""How values are spread over the texts: histograms, boxes, violins. Charts hold bins and quantiles, never instances."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde

from lib.charts.theme import (
    COLORS,
    INK,
    Empty,
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
from lib.datasets import Corpus
from lib.datasets.card import lengths
from lib.quantity import JSD_BOUNDS, tau_name, title_of, unit_of

LENGTH_BINS = 40  # about
WHISKERS = {"90%": "90% of them", "1.5 IQR": "at most 1.5 times the box's height"}
QUANTILES = {"least": 0.05, "lower": 0.25, "median": 0.5, "upper": 0.75, "most": 0.95}
BINS = ("0 – .25", ".25 – .5", ".5 – .75", ".75 – 1")  # of the largest weight; the last holds 1 too
FEWEST = 5  # texts; fewer are drawn one by one
SEE_CHANGE = "Were attention the reason for the prediction, the upper rows would lie to the right."
SEE_JSD = (
    "Were attention the reason for the prediction, the upper rows would lie to the left: a sharp attention could not "
    "move far."
)
POINTS = 2000  # of all violins of a chart together


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


def length_histogram(corpus: Corpus) -> alt.TopLevelMixin:
    """How long the texts of each split are, in tokens, and where they are cut into sentences in these too."""
    title = f"Lengths of the texts of {corpus.title}"
    of_splits = {split.name: lengths(split) for split in corpus.splits}
    units = next(iter(of_splits.values()))
    by_unit = {unit: {name: of[unit] for name, of in of_splits.items()} for unit in units}
    drawn, notes = zip(*(lengths_in(unit, of_unit) for unit, of_unit in by_unit.items()), strict=True)
    chart = alt.vconcat(*drawn) if len(drawn) > 1 else drawn[0]
    return titled(chart, title, ["The dashed line is the median. Train and test should look alike.", " ".join(notes)])


def lengths_in(unit: str, of_splits: Mapping[str, np.ndarray]) -> tuple[alt.FacetChart, str]:
    """A histogram for each split, lengths in tokens or in sentences, and a note on the longest."""
    of_splits = {name: np.asarray(values) for name, values in of_splits.items() if len(values)}
    if not of_splits:
        raise Empty("nothing to draw: no split has a text")
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


def tau_histogram(instances: pd.DataFrame, pair: tuple[str, str], classes: Sequence[str]) -> alt.TopLevelMixin:
    """Kendall's tau-b of two measures over all texts, by predicted class (Jain & Wallace 2019, Figure 2)."""
    column = tau_name(pair)
    rows, names = with_classes(defined(instances, column), classes)
    rows = rows.assign(**{"class": [names[int(predicted)] for predicted in rows["prediction"]]})
    frame = histograms(rows, column, "class", np.linspace(-1, 1, 21))
    axis, ticks = "Kendall tau-b", [-1, -0.5, 0, 0.5, 1]
    layers = overlaid(names, "class", "predicted class", axis, "texts of the class", ticks, ends=(-1, 1))
    means = rows.groupby(["encoder", "attention"], sort=False)[column].mean()
    named = [f"{mean:.2f} ({' + '.join(map(title_of, filter(None, of)))})" for of, mean in means.items()]
    see = f"On average {', '.join(named)}. 1: both rank a text's tokens alike; 0: as chance would. Lines are means."
    drawn = panels(frame, layers, height=130)
    return titled(drawn, f"Rank correlation: {title_of(column)}", [see, caption_of_rows(instances, column)])


def jsd_histogram(instances: pd.DataFrame, columns: Mapping[str, str], epsilon: float) -> alt.TopLevelMixin:
    """How far attention can move while the prediction stays (Jain & Wallace 2019, Figure 7), one series a method.

    Args:
        columns: the name of a method -> its column, in nats, such as {"exact": "jsd_exact"}.
        epsilon: the bound on the change of the prediction, named in the title.
    """
    largest = JSD_BOUNDS[1]
    frame = histograms_of(instances, columns, "method", np.linspace(0, largest, 29))
    layers = overlaid(columns, "method", "found by", "JSD (nats)", "texts", [0, 0.2, 0.4, 0.6], ends=(0, 0.75))
    see = "Jensen-Shannon divergence from the model's own attention. Right: an attention that shares almost nothing "
    see += "with it gives the same prediction. The dashed line is the most that is possible, "
    see += f"ln 2 = {largest:.3f} nats. Coloured lines are means."
    drawn = panels(frame, [*layers, dashed_line("x", largest)], height=130)
    title = f"How far attention can move while the prediction stays within {epsilon:g}"
    return titled(drawn, title, [see, caption_of_rows(instances, *columns.values())])


def difference_histogram(
    instances: pd.DataFrame, columns: Mapping[str, str], title: str, see: str
) -> alt.TopLevelMixin:
    """Differences of two taus over all texts, one series each, with a dashed line at 0.

    Args:
        columns: the name of a series -> its column.
    """
    frame = histograms_of(instances, columns, "of", np.linspace(-1.5, 1.5, 31))
    layers = overlaid(columns, "of", "with leave-one-out", "tau-b", "texts", [-1, 0, 1], ends=(-1.5, 1.5))
    drawn = panels(frame, [*layers, dashed_line("x", 0)], height=130)
    return titled(drawn, title, [see, caption_of_rows(instances, *columns.values())])


def histograms(rows: pd.DataFrame, column: str, series: str, edges: np.ndarray) -> pd.DataFrame:
    """The bins of a column for each encoder, attention and value of `series`, with the mean and the number of texts."""
    by = ["encoder", "attention", series]
    return pd.concat(
        binned(of.to_numpy(), edges).assign(**dict(zip(by, keys, strict=True)), mean=of.mean(), n=len(of))
        for keys, of in rows.groupby(by, sort=False)[column]
    )


def histograms_of(instances: pd.DataFrame, columns: Mapping[str, str], series: str, edges: np.ndarray) -> pd.DataFrame:
    """`histograms` of several columns, each a value of `series`: its name in `columns`."""
    rows = {name: defined(instances, column).assign(**{series: name}) for name, column in columns.items()}
    return pd.concat([histograms(rows[name], column, series, edges) for name, column in columns.items()])


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
        .mark_text(align="left", fontSize=11, x=2, y=-3 - 12 * (len(names) - 1 - index))
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
        Empty: no text has a value.
    """
    rows = [
        {**box_of(values, whiskers), "encoder": title_of(encoder), along: title_of(at), "series": title_of(quantity)}
        | {"texts": values.count()}
        for quantity in quantities
        for (encoder, at), values in instances.groupby(["encoder", along], sort=False)[quantity]
        if values.notna().any()
    ]
    if not rows:
        raise Empty(f"nothing to draw: no text has a value of {', '.join(quantities)}")
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


# --- violins, by the largest attention weight and the predicted class


def violins_by_max_attention(
    instances: pd.DataFrame,
    value: str,
    classes: Sequence[str],
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
    points = max(8, min(40, POINTS // len(groups)))
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
    note = "Ticks are medians. Every violin has the same height, whatever n, its number of texts (each seed counts); "
    note += f"fewer than {FEWEST} texts, or equal values, are dots."
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
    rows = alt.Axis(values=[0, 1, 2, 3], labelExpr=labels, grid=False, ticks=False, domain=False, minExtent=55)
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
    ).mark_text(align="left" if to_the_left else "right", fontSize=11, color=INK, dx=4 if to_the_left else 0, dy=-1)
    return [
        shapes.encode(x, y, alt.Y2("high"), color, stroke, detail=["class:N", "bin:N"], tooltip=tips),
        dots.mark_point(filled=True, size=22, opacity=0.8).encode(x, y, color, tooltip=tips),
        medians.mark_rule(strokeWidth=2, color=INK).encode(x, y, alt.Y2("high"), tooltip=tips),
        numbers.encode(alt.X(datum=0 if to_the_left else end), alt.Y("middle_of:Q"), text="words:N"),
    ]
