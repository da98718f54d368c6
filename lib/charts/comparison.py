"""Our values, each a dot with its 95% interval, beside published ones.

Tables have a row for each value: RUN_COLUMNS, quantity; ours, with low, high and seeds; and theirs, with source (who
published it) and table. What has no partner is NaN there.
"""

from collections.abc import Mapping

import altair as alt
import pandas as pd

from lib.charts.theme import SHAPES, Empty, caption_of_rows, dashed_line, facets, or_a_sentence, series_color, titled
from lib.quantity import RUN_COLUMNS, title_of

OURS = "ours, with 95% interval"
AXES = 150  # pixels for the models' names


@or_a_sentence
def values_beside(
    beside: pd.DataFrame,
    title: str,
    see: str,
    axis: str,
    shared: bool = False,
    lines: Mapping[str, float] | None = None,
) -> alt.TopLevelMixin:
    """Every quantity beside the published values, one panel each, a row for each model.

    Args:
        axis: the title of the x axis; "percent": fractions are written so. shared: one scale for all panels, else each
            has its own. lines: quantity -> where its panel has a dashed line.
    """
    if beside.empty or beside[["ours", "theirs"]].isna().all(axis=None):
        raise Empty("the table has neither values of ours nor published ones")
    frame = one_row_per_value(beside)
    ticks = alt.Axis(format=".0%" if axis == "percent" else ".1f", tickCount=4 if shared else 3)
    x = alt.X("value:Q", title=axis, scale=alt.Scale(zero=False, nice=True), axis=ticks)
    names = alt.Axis(grid=True, labelLimit=AXES)
    y = alt.Y("model:N", title=None, sort=None, axis=names)
    series = list(dict.fromkeys([OURS, *frame["series"]]))
    color, shapes = series_color(series), alt.Scale(domain=series, range=SHAPES[: len(series)])
    points = alt.Chart().mark_point(filled=True, size=50, opacity=1, tooltip=True)
    layers = [points.encode(x, y, color, alt.Shape("series:N", title=None, scale=shapes))]
    if frame["low"].notna().any():
        intervals = alt.Chart().mark_rule(strokeWidth=2.5, opacity=0.6)
        layers.insert(0, intervals.encode(alt.X("low:Q"), alt.X2("high"), y, color))
    if lines:
        frame["dashed"] = frame["quantity"].map({title_of(name): value for name, value in lines.items()})
        layers.insert(0, dashed_line("x", "dashed"))
    drawn = titled(facets(frame, layers, "quantity", alt.Step(20), axes=AXES), title, [see, caption_of_rows(beside)])
    return drawn if shared else drawn.resolve_scale(x="independent")


def one_row_per_value(beside: pd.DataFrame) -> pd.DataFrame:
    """The table in long form: quantity, model, series (ours or a source), value, low, high, table."""
    varying = [name for name in RUN_COLUMNS if beside[name].nunique() > 1]
    names = beside[varying or ["encoder"]].astype(str).map(title_of)
    common = beside[["table"]].assign(quantity=beside["quantity"].map(title_of), model=names.agg(" · ".join, axis=1))
    ours = common.assign(series=OURS, value=beside["ours"], low=beside["low"], high=beside["high"], table="")
    theirs = common.assign(series=beside["source"], value=beside["theirs"], low=None, high=None)
    both = [part.dropna(subset="value").astype({"low": float, "high": float}) for part in (ours, theirs)]
    return pd.concat(both, ignore_index=True).drop_duplicates()
