"""What a quantity does as one dial is turned."""

import altair as alt
import pandas as pd

from lib.charts.theme import INK, WIDTH, titled
from lib.quantity import title_of, unit_of

NEAR = 0.1  # where a symlog axis turns from linear to logarithmic


def sweep(
    summary: pd.DataFrame,
    dial: str,
    title: str,
    see: str,
    theirs: pd.DataFrame | None = None,
    dial_title: str | None = None,
    scale: str = "linear",
) -> alt.TopLevelMixin:
    """One line per quantity over the values of a dial, with its interval; published values as dashed rules.

    Args:
        summary: rows of lib.analysis.summarise of one configuration, with the dial's value in the column `dial`.
        theirs: rows of lib.published.table of the same configuration; only the quantities of the summary are drawn.
        scale: of the dial's axis: linear, log, or symlog, which is linear near 0 and logarithmic on both sides.
    """
    if summary.empty:
        raise ValueError("nothing to draw: the summary has no row")
    order = [title_of(name) for name in summary["quantity"].drop_duplicates()]
    frame = summary[[dial, "quantity", "value", "low", "high"]].assign(series=summary["quantity"].map(title_of))
    key = alt.Legend(columns=2 if len(order) > 3 else 3)
    color = alt.Color("series:N", title=None, sort=order, scale=alt.Scale(domain=order), legend=key)
    x = alt.X(
        f"{dial}:Q",
        title=dial_title or title_of(dial),
        scale=alt.Scale(type=scale, nice=scale == "linear", **({"constant": NEAR} if scale == "symlog" else {})),
        axis=alt.Axis(values=sorted(frame[dial].unique()), grid=False, format="~r"),
    )
    y = alt.Y("value:Q", title=unit_of(summary["quantity"].iloc[0]))
    tips = [alt.Tooltip("series:N", title="of"), alt.Tooltip(f"{dial}:Q"), alt.Tooltip("value:Q", format=".3f")]
    band = alt.Chart(frame).mark_area(opacity=0.25).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), color)
    line = alt.Chart(frame).mark_line(point=True, strokeWidth=2).encode(x, y, color, tooltip=tips)
    layers = [band, line]
    if theirs is not None and len(theirs):
        known = theirs[theirs["quantity"].isin(summary["quantity"])]
        rules = known.assign(series=known["quantity"].map(title_of))[["series", "value", "paper"]]
        dashed = alt.Chart(rules).mark_rule(strokeDash=[5, 4], strokeWidth=1.5)
        layers.append(dashed.encode(y="value:Q", color=color, tooltip=["series:N", "paper:N", "value:Q"]))
        see += " Dashed: the published values."
    zero = alt.Chart(pd.DataFrame({"value": [0.0]})).mark_rule(color=INK).encode(y="value:Q")
    return titled(alt.layer(zero, *layers).properties(width=WIDTH - 200, height=240), title, [see])
