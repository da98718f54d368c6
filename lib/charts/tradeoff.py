"""The plane of Wiegreffe & Pinter's figure 5: how far attention went, and what it cost in the prediction."""

import altair as alt
import numpy as np
import pandas as pd

from lib.charts.theme import COLORS, INK, WIDTH, titled

LARGEST = float(np.log(2))  # nats: the largest JSD there is
SHAPES = ("circle", "diamond", "triangle-up", "square", "cross", "triangle-down")


def tradeoff(points: pd.DataFrame, title: str, see: str, panel: str = "texts") -> alt.TopLevelMixin:
    """Mean JSD (x) against mean TVD (y), a panel for each value of `panel`.

    A series with values of lambda is a curve by growing lambda; one without is a mark. Bars are 95% intervals over
    texts and seeds. The base itself is at (0, 0).

    Args:
        points: rows of lib.analysis.points, with the column `panel`.
    """
    if points.empty:
        raise ValueError("nothing to draw: there is no point")
    curves, order = curves_of(points), points["series"].drop_duplicates().tolist()
    frame = points.sort_values("at", kind="stable").assign(place=range(len(points)))
    color = alt.Color(
        "series:N",
        title=None,
        sort=order,
        scale=alt.Scale(domain=order, range=list(COLORS[: len(order)])),
        legend=alt.Legend(columns=3),
    )
    drawn = alt.layer(*line_layers(color, curves, panel), *mark_layers(color, order), data=frame)
    panels = points[panel].drop_duplicates().tolist()
    across = min(3, len(panels))
    drawn = drawn.properties(width=(WIDTH - 70) // across - 20, height=300 if across == 1 else 240)
    drawn = drawn.facet(facet=alt.Facet(f"{panel}:N", title=None, sort=panels), columns=across)
    return titled(drawn, title, [see, "The base is at 0. Dashed: the chord of each curve. Bars: 95% intervals."])


def curves_of(points: pd.DataFrame) -> list[str]:
    """The series that lambda runs along."""
    return points.loc[points["at"].notna(), "series"].drop_duplicates().tolist()


AXES = (
    alt.X("jsd:Q", title="mean JSD to the base's attention (nats)", scale=alt.Scale(domain=[0, LARGEST])),
    alt.Y("tvd:Q", title="mean TVD to the base's prediction (fraction)", scale=alt.Scale(domainMin=0)),
)


def line_layers(color: alt.Color, curves: list[str], panel: str) -> list[alt.Chart]:
    """The curves and their chords."""
    lines = alt.Chart().transform_filter(alt.FieldOneOfPredicate("series", curves))
    ends = {"first": "min(at)", "last": "max(at)"}
    chords = lines.transform_joinaggregate(**ends, groupby=["series", panel])
    chords = chords.transform_filter("datum.at == datum.first || datum.at == datum.last")
    return [
        lines.mark_line(strokeWidth=1.5).encode(*AXES, color, order="place:Q"),
        chords.mark_line(strokeDash=[3, 4], strokeWidth=1, opacity=0.7).encode(*AXES, color, order="place:Q"),
    ]


def mark_layers(color: alt.Color, order: list[str]) -> list[alt.Chart]:
    """The points, their intervals in both directions, and lambda beside those of curves."""
    x, y = AXES
    shape = alt.Shape("series:N", title=None, sort=order, scale=alt.Scale(domain=order, range=SHAPES[: len(order)]))
    tips = ["series:N", alt.Tooltip("at:Q", title="lambda"), alt.Tooltip("jsd:Q", format=".3f")]
    tips += [alt.Tooltip("tvd:Q", format=".3f"), "n:Q", "seeds:Q"]
    seen = alt.Chart()
    bars = seen.mark_rule(strokeWidth=1.5, opacity=0.6)
    words = seen.transform_filter("isValid(datum.at)").transform_calculate(said="'λ ' + datum.at")
    return [
        bars.encode(alt.X("jsd_low:Q"), y, color, x2="jsd_high"),
        bars.encode(x, alt.Y("tvd_low:Q"), color, y2="tvd_high"),
        seen.mark_point(filled=True, size=70, opacity=1).encode(x, y, color, shape, tooltip=tips),
        words.mark_text(align="left", dx=7, dy=9, fontSize=9, color=INK).encode(x, y, text="said:N"),
    ]
