"""How far attention went from a base's, and what that cost in the prediction."""

import altair as alt
import pandas as pd

from lib.charts.theme import INK, SHAPES, WIDTH, Empty, or_a_sentence, series_color, titled
from lib.quantity import JSD_BOUNDS


@or_a_sentence
def tradeoff(points: pd.DataFrame, title: str, see: str) -> alt.TopLevelMixin:
    """Mean JSD (x) against mean TVD (y) of each run (Wiegreffe & Pinter 2019, figure 5).

    A series with values of lambda has a curve for each seed, by growing lambda, which one of them names; a series
    without has marks. Bars are 95% intervals over texts. The base itself is at (0, 0).

    Args:
        points: rows of lib.analysis.points.
    """
    if points.empty:
        raise Empty("there is no point")
    x = alt.X("jsd:Q", title="mean JSD to the base's attention (nats)", scale=alt.Scale(domain=list(JSD_BOUNDS)))
    y = alt.Y("tvd:Q", title="mean TVD to the base's prediction (fraction)", scale=alt.Scale(domainMin=0))
    order = points["series"].drop_duplicates().tolist()
    color = series_color(order)
    layers = [*curve_layers(x, y, color), *mark_layers(x, y, color, order)]
    note = "A point for each run, bars: 95% over texts; the base itself would be at 0. λ: the weight of distance."
    bent = points.groupby(["series", "seed"])["at"].count().gt(2).any()
    note += " Dashed: each curve's chord." if bent else ""
    return titled(alt.layer(*layers, data=points).properties(width=WIDTH - 70, height=320), title, [see, note])


def curve_layers(x: alt.X, y: alt.Y, color: alt.Color) -> list[alt.Chart]:
    """A line through the points of each seed that have a lambda, and the chord from its first to its last."""
    lines = alt.Chart().transform_filter("isValid(datum.at)")
    chords = lines.transform_joinaggregate(first="min(at)", last="max(at)", groupby=["series", "seed"])
    chords = chords.transform_filter("datum.at == datum.first || datum.at == datum.last")
    drawn = lines.mark_line(strokeWidth=1.5), chords.mark_line(strokeDash=[3, 4], strokeWidth=1, opacity=0.7)
    return [line.encode(x, y, color, order="at:Q", detail="seed:N") for line in drawn]


def mark_layers(x: alt.X, y: alt.Y, color: alt.Color, order: list[str]) -> list[alt.Chart]:
    """The points, their intervals in both directions, and lambda beside those of the last seed that have one."""
    shape = alt.Shape("series:N", title=None, scale=alt.Scale(domain=order, range=SHAPES[: len(order)]))
    tips = ["series:N", alt.Tooltip("at:Q", title="lambda"), "seed:N", "jsd:Q", "tvd:Q", "n:Q"]
    points = alt.Chart()
    bars = points.mark_rule(strokeWidth=1.5, opacity=0.6)
    of_series = points.transform_filter("isValid(datum.at)").transform_joinaggregate(
        last="max(seed)", groupby=["series"]
    )
    lambdas = of_series.transform_filter("datum.seed == datum.last").transform_calculate(words="'λ ' + datum.at")
    return [
        bars.encode(alt.X("jsd_low:Q"), y, color, x2="jsd_high"),
        bars.encode(x, alt.Y("tvd_low:Q"), color, y2="tvd_high"),
        points.mark_point(filled=True, size=70, opacity=1).encode(x, y, color, shape, tooltip=tips),
        lambdas.mark_text(align="left", dx=7, dy=9, fontSize=11, color=INK).encode(x, y, text="words:N"),
    ]
