"""Ours, a dot with its interval, beside published values; and what people marked beside what a model uses.

The tables of values have a row for each: RUN_COLUMNS, quantity, unit; ours, with low, high and seeds; and theirs, with
source (who published it) and table. What has no partner is NaN there, and its source and table are "".
"""

from collections.abc import Mapping

import altair as alt
import pandas as pd

from lib.analysis.statistics import interval_source
from lib.charts.theme import COLORS, INK, SHAPES, Empty, dashed_line, facets, number_tips, series_color, titled
from lib.progress import counted
from lib.quantity import columns_of_encoders, describe_encoders, title_of

OURS = "ours, with 95% interval"


def taus_beside(beside: pd.DataFrame) -> alt.TopLevelMixin:
    """Every mean tau beside the published ones, one panel per pair of measures."""
    taus = beside["quantity"].str.startswith("kendall_tau_") & beside["unit"].eq("tau-b")
    title = "Rank correlation of measures, beside the published values"
    see = "1: both measures rank tokens alike; 0: as chance would."
    return values_beside(beside[taus], title, see, "mean Kendall tau-b", shared=True, zero=True)


def performance_beside(beside: pd.DataFrame, baseline: pd.DataFrame) -> alt.TopLevelMixin:
    """F1, accuracy and AUC beside the published ones, one panel each.

    Args:
        baseline: scores of one model without attention, rows of lib.analysis.classification: a dashed line each.
    """
    title = "How well the models classify, beside the published values"
    see = "A model that classifies worse than the papers' says less about attention. "
    see += f"Dashed: {baseline['encoder'].iloc[0]}."
    lines = dict(zip(baseline["quantity"], baseline["value"], strict=True))
    scores = beside[beside["quantity"].isin(["f1", "accuracy", "auc"])]
    return values_beside(scores, title, see, "percent", percent=True, shared=True, lines=lines)


def values_beside(
    beside: pd.DataFrame,
    title: str,
    see: str,
    axis: str,
    percent: bool = False,
    shared: bool = False,
    zero: bool = False,
    lines: Mapping[str, float] | None = None,
) -> alt.TopLevelMixin:
    """Every quantity beside the published values, one panel each, a row for each configuration.

    Args:
        axis: the title of the x axis. shared: one scale for all panels, else each has its own.
        zero: the axis holds 0, and every panel has a dashed line there. lines: quantity -> where it has another.
    """
    frame = one_row_per_value(beside)
    series = list(dict.fromkeys([OURS, *frame["series"]]))
    shapes = alt.Scale(domain=series, range=SHAPES[: len(series)])
    color, shape = series_color(series), alt.Shape("series:N", title=None, scale=shapes)
    ticks = alt.Axis(format=".0%" if percent else ".1f", tickCount=4 if shared else 3)
    x = alt.X("value:Q", title=axis, scale=alt.Scale(zero=zero, nice=True), axis=ticks)
    y = alt.Y("model:N", title=None, sort=frame["model"].drop_duplicates().tolist(), axis=alt.Axis(grid=True))
    tips = [alt.Tooltip("model:N"), alt.Tooltip("series:N", title="from")]
    tips += [*number_tips(".3f", "value", "low", "high"), alt.Tooltip("table:N")]
    layers = [alt.Chart().mark_point(filled=True, size=50, opacity=1).encode(x, y, color, shape, tooltip=tips)]
    if frame["low"].notna().any():
        rule = alt.Chart().mark_rule(strokeWidth=2.5, opacity=0.6)
        layers.insert(0, rule.encode(alt.X("low:Q"), alt.X2("high"), y, color))
    if zero:
        layers.insert(0, dashed_line("x", 0))
    if lines:
        frame["dashed"] = frame["quantity"].map({title_of(name): value for name, value in lines.items()})
        layers.insert(0, dashed_line("x", "dashed"))
    two_lines = alt.Header(labelExpr="split(replace(datum.label, ' / ', ' /|'), '|')")
    drawn = facets(frame, layers, "quantity", alt.Step(20), axes=110, header=two_lines)
    drawn = titled(drawn, title, [see, caption(beside)])
    return drawn if shared else drawn.resolve_scale(x="independent")


def one_row_per_value(beside: pd.DataFrame) -> pd.DataFrame:
    """The table in long form: quantity, model, series (ours or a source), value, low, high, table."""
    if beside[["ours", "theirs"]].notna().sum().sum() == 0:
        raise Empty("nothing to draw: the table has neither values of ours nor published ones")
    others = [name for name in ("dataset", "projection", "variant", "layers") if beside[name].nunique() > 1]
    always = [name for name in ("encoder", "attention") if "variant" not in others or beside[name].nunique() > 1]
    names = [name for name in (*always, *others) if name not in columns_of_encoders(beside)]  # that tell rows apart
    models = [" · ".join(part_of_name(name, str(row[name])) for name in names) or "all" for _, row in beside.iterrows()]
    common = pd.DataFrame({"quantity": beside["quantity"].map(title_of), "model": models})
    ours = common.assign(series=OURS, value=beside["ours"], low=beside["low"], high=beside["high"], table="")
    theirs = common.assign(series=beside["source"], value=beside["theirs"], low=None, high=None, table=beside["table"])
    both = [part.dropna(subset="value").astype({"low": float, "high": float}) for part in (ours, theirs)]
    return pd.concat(both, ignore_index=True).drop_duplicates()


def part_of_name(name: str, value: str) -> str:
    """A value of a column of RUN_COLUMNS as a part of a model's name: "additive", "2 layers"."""
    return counted(int(value), "layer") if name == "layers" and value else title_of(value)


def caption(beside: pd.DataFrame) -> str:
    """Dataset and seeds of what is drawn, and how many of our values have no published partner."""
    parts = [", ".join(title_of(str(name)) for name in beside["dataset"].unique()), describe_encoders(beside)]
    if beside["seeds"].notna().any():
        most = int(beside["seeds"].max())
        mean = "mean over " if most > 1 else ""
        parts.append(f"ours: {mean}{counted(most, 'seed')}, interval over {interval_source(most)}")
    alone = int((beside["theirs"].isna() & beside["ours"].notna()).sum())
    parts.append(f"{alone} of ours without a published value" if alone else "")
    return " · ".join(filter(None, parts)) + "."


def against_people(points: pd.DataFrame, title: str, see: str, ceiling: float) -> alt.TopLevelMixin:
    """What people marked (x) against what the model uses (y): a panel for each model, a point for each explanation.

    Args:
        points: explanation, encoder, attention, and plausible, faithful with _low and _high of each.
        ceiling: of x, a dashed line.
    """
    if points.empty:
        raise Empty("nothing to draw: nobody marked these texts")
    names = points["explanation"].drop_duplicates().map(title_of).tolist()
    frame = points.assign(
        explanation=points["explanation"].map(title_of),
        model=points["encoder"].map(title_of) + " + " + points["attention"].map(title_of),
    )
    frame["number"] = frame["explanation"].map(names.index) + 1
    x = alt.X("plausible:Q", title="token F1 with people's words", scale=alt.Scale(zero=False, nice=True))
    y = alt.Y("faithful:Q", title="normalised comprehensiveness", scale=alt.Scale(zero=False, nice=True))
    base, ends = alt.Chart(), ("plausible", "faithful")
    tips = ["explanation:N", *number_tips(".3f", *(f"{name}{end}" for name in ends for end in ("", "_low", "_high")))]
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.5, color=COLORS[0])
    layers = [
        bars.encode(alt.X("plausible_low:Q"), y, x2="plausible_high"),
        bars.encode(x, alt.Y("faithful_low:Q"), y2="faithful_high"),
        base.mark_point(filled=True, size=60, opacity=1, color=COLORS[0]).encode(x, y, tooltip=tips),
        base.mark_text(align="left", dx=5, dy=-7, fontSize=11, color=INK).encode(x, y, text="number:N"),
        dashed_line("x", ceiling),
    ]
    numbered = "; ".join(f"{number} {name}" for number, name in enumerate(names, start=1))
    return titled(facets(frame, layers, "model", 320, columns=2), title, [see, numbered])
