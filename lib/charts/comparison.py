"""Ours beside the papers': a dot with its interval, and a mark for each published value."""

from collections.abc import Mapping

import altair as alt
import pandas as pd

from lib.charts.theme import SHAPES, dashed_line, facets, number_tips, series_color, titled
from lib.papers import TITLES
from lib.quantity import columns_of_encoders, describe_encoders, title_of

OURS = "ours, with 95% interval"


def taus_beside(beside: pd.DataFrame) -> alt.TopLevelMixin:
    """Every mean tau of a table made by lib.published.beside, one panel per pair of measures."""
    taus = beside["quantity"].str.startswith("kendall_tau_") & ~beside["quantity"].str.endswith(("_significant", "_p"))
    title = "Rank correlation of measures, beside the published values"
    see = "1: both measures rank tokens alike; 0: as chance would."
    return values_beside(beside[taus], title, see, "mean Kendall tau-b", shared=True, zero=True)


def performance_beside(beside: pd.DataFrame, baseline: pd.DataFrame | None = None) -> alt.TopLevelMixin:
    """F1, accuracy and AUC of a table made by lib.published.beside, one panel each.

    Args:
        baseline: scores of one model without attention, rows of lib.analysis.classification: a dashed line each.
    """
    title = "How well the models classify, beside the published values"
    see = "A model that classifies worse than the papers' would be a poor witness for or against attention."
    lines = {} if baseline is None else dict(zip(baseline["quantity"], baseline["value"], strict=True))
    see += f" Dashed: {baseline['encoder'].iloc[0]}." if lines else ""
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
    """Every quantity of a table made by lib.published.beside, one panel each, a row for each configuration.

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
    layers = [
        alt.Chart().mark_rule(strokeWidth=2.5, opacity=0.6).encode(alt.X("low:Q"), alt.X2("high"), y, color),
        alt.Chart().mark_point(filled=True, size=50, opacity=1).encode(x, y, color, shape, tooltip=tips),
    ]
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
    """The table in long form: quantity, model, series (ours or a paper), value, low, high, table."""
    if beside[["ours", "theirs"]].notna().sum().sum() == 0:
        raise ValueError("nothing to draw: the table has neither values of ours nor published ones")
    names = varying(beside)
    models = [" · ".join(title_of(str(row[name])) for name in names) or "all" for _, row in beside.iterrows()]
    common = pd.DataFrame({"quantity": beside["quantity"].map(title_of), "model": models})
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


def caption(beside: pd.DataFrame) -> str:
    """Dataset and seeds of what is drawn, and how many of our values have no published partner."""
    parts = [", ".join(title_of(str(name)) for name in beside["dataset"].unique()), describe_encoders(beside)]
    if beside["seeds"].notna().any():
        most = int(beside["seeds"].max())
        mean = f"mean over {most} seeds, interval over texts and seeds" if most > 1 else "1 seed, interval over texts"
        parts.append(f"ours: {mean}")
    alone = int((beside["theirs"].isna() & beside["ours"].notna()).sum())
    parts.append(f"{alone} of ours without a published value" if alone else "")
    return " · ".join(filter(None, parts)) + "."
