"""Lines: training by epoch, quantities over a hyperparameter, and what moving attention costs in the prediction."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from lib.charts.theme import (
    ACROSS,
    COLORS,
    INK,
    SHAPES,
    WIDTH,
    Empty,
    caption_of_rows,
    defined,
    facets,
    number_tips,
    panels,
    series_color,
    titled,
)
from lib.quantity import JSD_BOUNDS, title_of, unit_of

NEAR = 0.1  # where a symlog axis turns from linear to logarithmic
MOST = 0.5  # the largest value on the axis of `shares_within`
DASHED, SEE_DASHED = {"strokeDash": [5, 4], "strokeWidth": 1.5}, " Dashed: the published values."
TRADEOFF_AXES = (
    alt.X("jsd:Q", title="mean JSD to the base's attention (nats)", scale=alt.Scale(domain=list(JSD_BOUNDS))),
    alt.Y("tvd:Q", title="mean TVD to the base's prediction (fraction)", scale=alt.Scale(domainMin=0)),
)


# --- training


def learning_curves(
    histories: Mapping[str, Sequence[dict]],
    quantities: Sequence[str],
    title: str = "Training",
    see: str = "A dev score that still rises at the last epoch needs more epochs.",
) -> alt.TopLevelMixin:
    """What training reports after each epoch, one line a run: a mapping from a run (or its name) to its history.

    Runs whose names differ only after ", seed" have one colour.

    Args:
        histories: per run a list of records with `epoch` and the quantities.
    """
    frame = pd.DataFrame([{"run": str(run), **record} for run, history in histories.items() for record in history])
    if frame.empty:
        raise Empty("nothing to draw: no run has a history")
    frame["model"] = frame["run"].str.split(", seed").str[0]
    across = min(ACROSS, len(quantities))
    drawn = [by_epoch(frame, name).properties(width=WIDTH // across - 60, height=130) for name in quantities]
    return titled(alt.concat(*drawn, columns=across), title, [f"Each line is a run. {see}"])


def by_epoch(frame: pd.DataFrame, quantity: str) -> alt.Chart:
    """One quantity by epoch, a line a run, coloured by model where there are colours enough."""
    models = frame["model"].unique()
    color = alt.value(COLORS[0])
    if 1 < len(models) <= len(COLORS):
        color = series_color(models, "model", legend=alt.Legend(columns=3))
    data = frame[["run", "model", "epoch", quantity]].rename(columns={quantity: "value"}).dropna()
    points = alt.OverlayMarkDef(size=18) if data["epoch"].nunique() <= 12 else False
    x = alt.X("epoch:Q", title="epoch", axis=alt.Axis(format="d", tickMinStep=1, grid=False))
    y = alt.Y("value:Q", title=f"{title_of(quantity)} ({unit_of(quantity)})", scale=alt.Scale(zero=False))
    tips = ["run:N", "epoch:Q", *number_tips(".3f", value=title_of(quantity))]
    line = alt.Chart(data).mark_line(point=points, strokeWidth=1.5, opacity=0.8)
    return line.encode(x, y, color=color, detail="run:N", tooltip=tips)


# --- a hyperparameter


def sweep(
    summary: pd.DataFrame,
    setting: str,
    title: str,
    see: str,
    setting_title: str | None = None,
    scale: str = "linear",
) -> alt.TopLevelMixin:
    """One line per quantity over the values of a hyperparameter, with its interval.

    Args:
        summary: rows of lib.analysis.summarise of one configuration, with the hyperparameter in the column `setting`.
        scale: of the x axis: linear, log, or symlog, which is linear near 0 and logarithmic on both sides.
    """
    columns = [setting, "quantity", "value", "low", "high"]
    frame = summary.reindex(columns=columns).assign(series=summary["quantity"].map(title_of))
    order = frame["series"].unique()
    color = series_color(order, legend=alt.Legend(columns=2 if len(order) > 3 else 3))
    constant = {"constant": NEAR} if scale == "symlog" else {}
    x = alt.X(
        f"{setting}:Q",
        title=setting_title or title_of(setting),
        scale=alt.Scale(type=scale, nice=scale == "linear", **constant),
    )
    zero = alt.Chart(pd.DataFrame({"value": [0.0]})).mark_rule(color=INK).encode(y="value:Q")
    layers = [zero, *lines_over(alt.Chart(frame), summary, setting, x, color)]
    return titled(alt.layer(*layers).properties(width=WIDTH - 200, height=240), title, [see])


def sweep_by_model(
    summary: pd.DataFrame, setting: str, title: str, see: str, theirs: pd.DataFrame, setting_title: str | None = None
) -> alt.TopLevelMixin:
    """`sweep` of several models, a panel for each encoder and attention, over a setting on a logarithmic axis.

    Args:
        summary: rows of lib.analysis.summarise, with the hyperparameter in the column `setting`.
        theirs: published values: encoder, attention, quantity, value; those of the summary's quantities are dashed.
    """
    models = summary[["encoder", "attention", "quantity"]].drop_duplicates()
    known = models.merge(theirs[[*models, "value"]], how="inner")
    frame = pd.concat([summary.assign(kind="ours"), known.assign(kind="published")])
    frame = frame.assign(series=frame["quantity"].map(title_of))
    frame = frame[["encoder", "attention", "kind", "series", setting, "value", "low", "high"]]
    color = series_color(frame["series"].unique(), legend=alt.Legend(columns=3))
    ours, published = (alt.Chart().transform_filter(alt.datum.kind == kind) for kind in ("ours", "published"))
    x = alt.X(f"{setting}:Q", title=setting_title or title_of(setting), scale=alt.Scale(type="log"))
    layers = lines_over(ours, summary, setting, x, color)
    if len(known):
        y = layers[-1].encoding.y
        layers.append(published.mark_rule(**DASHED).encode(y=y, color=color, tooltip=["series:N", "value:Q"]))
        see += SEE_DASHED
    return titled(panels(frame, layers, height=170), title, [see])


def lines_over(base: alt.Chart, summary: pd.DataFrame, setting: str, x: alt.X, color: alt.Color) -> list[alt.Chart]:
    """Layers over a hyperparameter: the interval of each series, and its line."""
    if summary[setting].nunique() < 2:
        raise Empty(f"nothing to draw: there are no two values of {title_of(setting)}")
    x = x.axis(values=sorted(summary[setting].unique()), grid=False, format=".4~g")
    y = alt.Y("value:Q", title=unit_of(summary["quantity"].iloc[0]))
    tips = [alt.Tooltip("series:N", title="of"), alt.Tooltip(f"{setting}:Q"), *number_tips(".3f", "value")]
    line = base.mark_line(point=True, strokeWidth=2).encode(x, y, color, tooltip=tips)
    if summary["low"].isna().all():  # of a single seed there may be none, and an empty layer has no scale
        return [line]
    return [base.mark_area(opacity=0.25).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), color), line]


# --- the share of the texts


def shares_within(
    instances: pd.DataFrame, column: str, bounds: Sequence[float], title: str, see: str
) -> alt.TopLevelMixin:
    """In how many texts a value is at most x, by x from 0 to MOST: a line for each model, all its seeds together.

    Args:
        column: of the value. bounds: where dashed lines are drawn.
    """
    grid, rows = np.linspace(0, MOST, 101), []
    for (encoder, attention), of in defined(instances, column).groupby(["encoder", "attention"], sort=False)[column]:
        values = np.sort(of.to_numpy(dtype=np.float64))
        shares = np.searchsorted(values, grid, side="right") / len(values)
        model = " + ".join(map(title_of, filter(None, (encoder, attention))))
        rows.append(pd.DataFrame({"series": model, "bound": grid.round(6), "share": shares.round(6)}))
    frame = pd.concat(rows)
    x = alt.X("bound:Q", title=f"{title_of(column)}, at most ({unit_of(column)})", axis=alt.Axis(grid=False))
    y = alt.Y("share:Q", title="share of the texts", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    color = series_color(frame["series"].unique(), legend=alt.Legend(columns=3))
    tips = ["series:N", *number_tips(".3f", bound="at most"), *number_tips(".1%", "share")]
    marks = alt.Chart(pd.DataFrame({"bound": list(bounds)})).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="bound:Q")
    lines = alt.Chart(frame).mark_line(strokeWidth=2).encode(x, y, color, tooltip=tips)
    drawn = alt.layer(lines, marks).properties(width=WIDTH - 200, height=240)
    return titled(drawn, title, [see, caption_of_rows(instances, column)])


# --- how far attention went, and what it cost


def tradeoff(points: pd.DataFrame, title: str, see: str) -> alt.TopLevelMixin:
    """Mean JSD (x) against mean TVD (y), a panel for each value of `texts` (Wiegreffe & Pinter 2019, figure 5).

    A series with values of lambda has a curve for each seed, by growing lambda; one without has marks. Bars are 95%
    intervals over texts. The base itself is at (0, 0).

    Args:
        points: rows of lib.analysis.points.
    """
    if points.empty:
        raise Empty("nothing to draw: there is no point")
    order, panels = (points[name].drop_duplicates().tolist() for name in ("series", "texts"))
    frame = points.sort_values("at", kind="stable").assign(place=range(len(points)))
    color = series_color(order, legend=alt.Legend(columns=3))
    curves = points.loc[points["at"].notna(), "series"].drop_duplicates().tolist()
    layers = [*line_layers(color, curves), *mark_layers(color, order)]
    height = 300 if len(panels) == 1 else 240
    drawn = facets(frame, layers, "texts", height, axes=70, widest=WIDTH, sort=panels)
    bent = points.groupby(["series", "texts", "seed"])["at"].count().gt(2).any()
    note = "A point for each run, bars: 95% over texts; the base itself would be at 0. λ: the weight of distance."
    note += " Dashed: each curve's chord." if bent else ""
    return titled(drawn, title, [see, note])


def line_layers(color: alt.Color, curves: list[str]) -> list[alt.Chart]:
    """The curves, which are the series named in `curves`, and their chords."""
    lines = alt.Chart().transform_filter(alt.FieldOneOfPredicate("series", curves))
    chords = lines.transform_joinaggregate(first="min(at)", last="max(at)", groupby=["series", "texts", "seed"])
    chords = chords.transform_filter("datum.at == datum.first || datum.at == datum.last")
    drawn = lines.mark_line(strokeWidth=1.5), chords.mark_line(strokeDash=[3, 4], strokeWidth=1, opacity=0.7)
    return [line.encode(*TRADEOFF_AXES, color, order="place:Q", detail="seed:N") for line in drawn]


def mark_layers(color: alt.Color, order: list[str]) -> list[alt.Chart]:
    """The points, their intervals in both directions, and lambda beside those of curves."""
    x, y = TRADEOFF_AXES
    shape = alt.Shape("series:N", title=None, scale=alt.Scale(domain=order, range=SHAPES[: len(order)]))
    tips = ["series:N", alt.Tooltip("at:Q", title="lambda"), "seed:N", *number_tips(".3f", "jsd", "tvd"), "n:Q"]
    points = alt.Chart()
    bars = points.mark_rule(strokeWidth=1.5, opacity=0.6)
    words = points.transform_filter("isValid(datum.at)").transform_calculate(words="'λ ' + datum.at")
    return [
        bars.encode(alt.X("jsd_low:Q"), y, color, x2="jsd_high"),
        bars.encode(x, alt.Y("tvd_low:Q"), color, y2="tvd_high"),
        points.mark_point(filled=True, size=70, opacity=1).encode(x, y, color, shape, tooltip=tips),
        words.mark_text(align="left", dx=7, dy=9, fontSize=11, color=INK).encode(x, y, text="words:N"),
    ]
