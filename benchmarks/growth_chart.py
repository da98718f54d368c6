"""The chart of growth: CPU seconds over length and over the number of texts, with the promised slopes."""

import altair as alt
import pandas as pd

from benchmarks.growing import LINEAR, UPPER_LENGTH, Work
from lib import charts
from lib.charts.theme import titled

SIZE = 400, 420  # of a panel, in pixels
AXES = {  # the column, its title, where it has ticks
    "length": ("tokens", "tokens of a text", [20, 50, 100, 200, 500, 1000, 2000]),
    "texts": ("texts", "number of texts", [100, 1000, 10_000, 100_000]),
}
HUES = (
    "#3a86c8",
    "#d9652b",
    "#1f9d78",
    "#a06cc0",
    "#b8902b",
    "#7b8794",
    "#c2406b",
    "#5b5bd6",
    "#56a3a6",
    "#8c6d46",
    "#9aa516",
)
SEE = (
    "Points: measured, one thread. Dashed: the slope that the algorithm promises, through the last point. Left: of a "
    "text, so that works on few and on many compare. Right: of all texts together, 8 tokens each."
)


def drawn(points: pd.DataFrame, works: list[Work], upper: float) -> alt.TopLevelMixin:
    """Two panels with logarithmic axes: seconds a text over its tokens, seconds over the number of texts.

    Args:
        upper: texts from which on the promise is drawn; along the length each work knows from where.
    """
    charts.enable()
    names = [work.name for work in works]
    key = alt.Legend(columns=4, title=None, symbolType="circle")
    hues = [HUES[number % len(HUES)] for number in range(len(names))]
    color = alt.Color("work:N", scale=alt.Scale(domain=names, range=hues), legend=key)
    panels = [_panel(points, works, along, upper, color) for along in AXES]
    return titled(alt.hconcat(*panels, spacing=36), "How the cost grows with longer and with more texts", [SEE])


def _panel(points: pd.DataFrame, works: list[Work], along: str, upper: float, color: alt.Color) -> alt.TopLevelMixin:
    axis, name, ticks = AXES[along]
    own = points[points["along"] == along].assign(size=lambda frame: frame[axis])
    own["cost"] = own["seconds"] / own["texts"] if along == "length" else own["seconds"]
    x = alt.X(
        "size:Q",
        title=name,
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(values=ticks, format="~s", grid=False),
    )
    unit = "CPU seconds a text" if along == "length" else "CPU seconds"
    decades = alt.Axis(format="~g", values=[10.0**power for power in range(-7, 4)])
    y = alt.Y("cost:Q", title=unit, scale=alt.Scale(type="log"), axis=decades)
    line = alt.Chart(own).mark_line(strokeWidth=1.5, opacity=0.8).encode(x, y, color)
    dots = alt.Chart(own).mark_point(filled=True, size=28, opacity=1).encode(x, y, color)
    promised = alt.Chart(_promised(own, works, along, upper)).mark_line(strokeDash=[5, 4], strokeWidth=1.2)
    return alt.layer(line, dots, promised.encode(x, y, color)).properties(width=SIZE[0], height=SIZE[1])


def _promised(own: pd.DataFrame, works: list[Work], along: str, upper: float) -> pd.DataFrame:
    """The promised costs from the first of the upper points on, scaled to meet the last point."""
    frames = []
    for work in works:
        cost = work.promise.cost if along == "length" else LINEAR
        above = UPPER_LENGTH if along == "length" else upper
        some = own[(own["work"] == work.name) & (own["size"] >= above)]
        last = some.iloc[-1]
        scaled = [last["cost"] * cost(size) / cost(last["size"]) for size in some["size"]]
        frames.append(some[["work", "size"]].assign(cost=scaled))
    return pd.concat(frames)
