"""Ours beside the papers': a dot with its interval, and a mark for each published value."""

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from lib.charts.theme import COLORS, INK, WIDTH, titled
from lib.papers import TITLES
from lib.quantity import columns_of_encoders, describe_encoders, title_of

OURS = "ours, with 95% interval"
SHAPES = ("diamond", "triangle-up", "square", "cross", "triangle-down")


def taus_beside(beside: pd.DataFrame) -> alt.TopLevelMixin:
    """Every mean tau of a table made by lib.published.beside, one panel per pair of measures."""
    taus = beside["quantity"].str.startswith("kendall_tau_") & ~beside["quantity"].str.endswith(("_significant", "_p"))
    return dots(
        beside[taus],
        "Rank correlation of measures, beside the published values",
        "1: both measures rank tokens alike; 0: as chance would.",
        "mean Kendall tau-b",
        alt.Scale(zero=True),
        ".1f",
    )


def performance_beside(
    beside: pd.DataFrame, quantities: Sequence[str] = ("f1", "accuracy", "auc"), baseline: pd.DataFrame | None = None
) -> alt.TopLevelMixin:
    """F1, accuracy and AUC of a table made by lib.published.beside, one panel each.

    Args:
        baseline: scores of one model without attention, rows of lib.analysis.classification: a dashed line each.
    """
    see = "A model that classifies worse than the papers' would be a poor witness for or against attention."
    lines = {} if baseline is None else dict(zip(baseline["quantity"], baseline["value"], strict=True))
    if lines:
        see += f" Dashed: {baseline['encoder'].iloc[0]}."
    return dots(
        beside[beside["quantity"].isin(quantities)],
        "How well the models classify, beside the published values",
        see,
        "percent",
        alt.Scale(zero=False, nice=True),
        ".0%",
        lines=lines,
    )


def values_beside(
    beside: pd.DataFrame, title: str, see: str, axis: str, percent: bool = False, shared: bool = False
) -> alt.TopLevelMixin:
    """Every quantity of a table made by lib.published.beside, one panel each.

    Args:
        axis: the title of the x axis. shared: one scale for all panels, else each has its own.
    """
    scale, digits = alt.Scale(zero=False, nice=True), ".0%" if percent else ".1f"
    drawn = dots(beside, title, see, axis, scale, digits, ticks=3)
    return drawn if shared else drawn.resolve_scale(x="independent")


def dots(
    beside: pd.DataFrame,
    title: str,
    see: str,
    axis: str,
    scale: alt.Scale,
    digits: str,
    ticks: int = 4,
    lines: Mapping[str, float] | None = None,
) -> alt.TopLevelMixin:
    """One panel per quantity, one line per configuration, ours and theirs on it.

    Args:
        lines: quantity -> where its panel has a dashed rule.
    """
    frame = long(beside)
    if lines:
        frame["dashed"] = frame["quantity"].map({title_of(name): value for name, value in lines.items()})
    quantities = frame["quantity"].drop_duplicates().tolist()
    series = [OURS, *(name for name in frame["series"].drop_duplicates() if name != OURS)]
    shapes = ["circle", *SHAPES[: len(series) - 1]]
    key = alt.Scale(domain=series, range=list(COLORS[: len(series)]))
    x = alt.X("value:Q", title=axis, scale=scale, axis=alt.Axis(format=digits, tickCount=ticks))
    y = alt.Y("model:N", title=None, sort=frame["model"].drop_duplicates().tolist(), axis=alt.Axis(grid=True))
    tips = [
        alt.Tooltip("model:N"),
        alt.Tooltip("series:N", title="from"),
        alt.Tooltip("value:Q", format=".3f"),
        alt.Tooltip("low:Q", format=".3f"),
        alt.Tooltip("high:Q", format=".3f"),
        alt.Tooltip("table:N"),
    ]
    color = alt.Color("series:N", title=None, scale=key)
    shape = alt.Shape("series:N", title=None, scale=alt.Scale(domain=series, range=shapes))
    ranges = alt.Chart().mark_rule(strokeWidth=2.5, opacity=0.6).encode(x=alt.X("low:Q"), x2="high", y=y, color=color)
    points = alt.Chart().mark_point(filled=True, size=50, opacity=1).encode(x, y, color, shape, tooltip=tips)
    zero = alt.Chart().transform_calculate(zero="0").mark_rule(color=INK, strokeDash=[4, 3]).encode(x="mean(zero):Q")
    dashed = alt.Chart().mark_rule(color=INK, strokeDash=[4, 3]).encode(x="mean(dashed):Q")
    layers = [zero, ranges, points] if axis.startswith("mean Kendall") else [ranges, points]
    layers = [dashed, *layers] if lines else layers
    across = min(3, len(quantities))
    two_lines = alt.Header(labelExpr="split(replace(datum.label, ' / ', ' /|'), '|')")
    drawn = alt.layer(*layers, data=frame).properties(width=(WIDTH - 110) // across - 12, height=alt.Step(20))
    drawn = drawn.facet(facet=alt.Facet("quantity:N", title=None, sort=quantities, header=two_lines), columns=across)
    return titled(drawn, title, [see, said_of(beside)])


def long(beside: pd.DataFrame) -> pd.DataFrame:
    """A row per value: quantity, model, series (ours or a paper), value, low, high, table."""
    if beside[["ours", "theirs"]].notna().sum().sum() == 0:
        raise ValueError("nothing to draw: the table has neither values of ours nor published ones")
    names = varying(beside)
    common = pd.DataFrame(
        {
            "quantity": beside["quantity"].map(title_of),
            "model": [" · ".join(title_of(str(row[n])) for n in names) or "all" for _, row in beside.iterrows()],
        }
    )
    ours = common.assign(series=OURS, value=beside["ours"], low=beside["low"], high=beside["high"], table="")
    papers = beside["paper"].map(lambda paper: TITLES.get(paper, paper))
    theirs = common.assign(series=papers, value=beside["theirs"], low=None, high=None, table=beside["table"])
    both = [part.dropna(subset="value").astype({"low": float, "high": float}) for part in (ours, theirs)]
    return pd.concat(both, ignore_index=True).drop_duplicates()


def varying(beside: pd.DataFrame) -> list[str]:
    """The run's columns that tell the rows apart; encoder and attention always, unless variants are compared."""
    others = [name for name in ("dataset", "projection", "variant", "layers") if beside[name].nunique() > 1]
    always = [name for name in ("encoder", "attention") if "variant" not in others or beside[name].nunique() > 1]
    return [name for name in (*always, *others) if name not in columns_of_encoders(beside)]


def said_of(beside: pd.DataFrame) -> str:
    """Dataset and seeds of what is drawn, and how many published values have no partner."""
    parts = [", ".join(title_of(str(name)) for name in beside["dataset"].unique()), describe_encoders(beside)]
    seeds = beside["seeds"].dropna()
    if len(seeds):
        most = int(seeds.max())
        parts.append(
            f"ours: mean over {most} seeds, interval over texts and seeds"
            if most > 1
            else "ours: 1 seed, interval over texts"
        )
    alone = int((beside["theirs"].isna() & beside["ours"].notna()).sum())
    if alone:
        parts.append(f"{alone} of ours without a published value")
    return " · ".join(filter(None, parts)) + "."
