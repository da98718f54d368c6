"""Scores as a heat map, each cell with its value and its 95% interval."""

import altair as alt
import pandas as pd

from lib.charts.theme import COLORS, WIDTH, Empty, in_order, or_a_sentence, ordered, titled
from lib.quantity import title_of

CHANCE = "The bluer, the nearer to 1; white: no better than chance; empty: not known. Small: 95% intervals."
NAMES = 215  # pixels for those of explanations


@or_a_sentence
def heat_map(cells: pd.DataFrame, across: str, by: str, title: str, see: str, note: str = CHANCE) -> alt.TopLevelMixin:
    """Explanations (rows) by the values of a column `across`; a panel for each value of the column `by`.

    `cells` are rows of `lib.analysis.ground_truth.cells_of`: `share` is the colour, value and interval are the text.
    """
    if cells.empty:
        raise Empty("nothing was scored")
    text = cells[["value", "low", "high"]].map(lambda one: f"{one:.2f}".replace("-", "−").replace("0.", ".", 1))
    frame = cells[["explanation", "share"]].assign(**cells[[across, by]].astype(str).map(title_of), value=text["value"])
    frame["interval"] = (text["low"] + " – " + text["high"]).where(cells["low"].notna(), "")
    axis = alt.Axis(labelAngle=0, labelFontSize=10, labelExpr="split(datum.label, ' ')")
    x = alt.X(f"{across}:N", sort=None, title=None, axis=axis)
    chart = alt.Chart().encode(x, alt.Y("explanation:N", sort=None, title=None, axis=alt.Axis(labelLimit=NAMES)))
    shade = alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0, 1], clamp=True), legend=None)
    layers = [chart.mark_rect(color="white"), chart.mark_rect(color=COLORS[0]).encode(shade)]  # also on a dark page
    for name, below, size in (("value", -5 if frame["interval"].any() else 0, 12), ("interval", 8, 9)):
        layers.append(chart.mark_text(fontSize=size, dy=below, color="#16191d").encode(text=f"{name}:N"))
    panel = alt.layer(*layers, data=ordered(frame, by)).properties(height=alt.Step(32), width=WIDTH - NAMES)
    return titled(panel.facet(facet=in_order(alt.Facet, by), columns=1), title, [see, note])
