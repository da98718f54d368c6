"""Curves: quantities over a hyperparameter, and how far attention went against what that cost in the prediction."""

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd

from lib.charts.theme import INK, SHAPES, WIDTH, Empty, in_order, or_a_sentence, ordered, panels, series_color, titled
from lib.quantity import JSD_BOUNDS, title_of, unit_of


@or_a_sentence
def sweep(summary: pd.DataFrame, setting: str, title: str, see: str, scale: str = "linear") -> alt.TopLevelMixin:
    """One line per quantity over the values of a hyperparameter, with its interval; a panel for each model.

    The hyperparameter is in the column `setting`; `scale` is linear, or symlog: linear near 0, else logarithmic.
    """
    if setting not in summary or summary.loc[summary["value"].notna(), setting].nunique() < 2:
        raise Empty(f"there are no two values of {title_of(setting)}")
    frame = summary.assign(series=summary["quantity"].map(title_of))
    columns = ["encoder", "attention", "series", setting, "value", "low", "high"]
    ticks = alt.Axis(values=sorted(summary[setting].unique()), grid=False, format=".4~g")
    across = alt.Scale(nice=True) if scale == "linear" else alt.Scale(type=scale, constant=0.1, nice=False)
    x = alt.X(f"{setting}:Q", title=title_of(setting), scale=across, axis=ticks)
    y = alt.Y("value:Q", title=unit_of(summary["quantity"].iloc[0]), scale=alt.Scale(zero=True))
    color = series_color(frame["series"].unique())
    layers, notes = [alt.Chart().mark_line(point=True, strokeWidth=2, tooltip=True).encode(x, y, color)], [see]
    if frame["low"].notna().any():
        bands = alt.Chart().mark_area(opacity=0.25).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), color)
        layers, notes = [bands, *layers], [see, "Bands: 95% intervals."]
    height = 240 if len(frame.drop_duplicates(["encoder", "attention"])) == 1 else 170
    return titled(panels(frame[columns], layers, height), title, [" ".join(notes)])


@or_a_sentence
def tradeoff(points: pd.DataFrame, title: str, see: str) -> alt.TopLevelMixin:
    """Mean JSD (x) against mean TVD (y) of each run (Wiegreffe & Pinter 2019, figure 5).

    A series with values of lambda has a curve for each seed, by growing lambda, and its chord; the last seed's names
    its ends. A series without has marks. Rows of lib.analysis.adversaries.points; bars are 95% intervals over texts.
    """
    if points.empty or not points["at"].notna().any():
        raise Empty("no model was trained to attend elsewhere")
    by_seed, last = points.groupby(["series", "seed"])["at"], points.groupby("series")["seed"].transform("max")
    ends = points["at"].eq(by_seed.transform("min")) | points["at"].eq(by_seed.transform("max"))
    words = np.where(ends & points["seed"].eq(last), points["at"].map("λ {:g}".format), "")
    x = alt.X("jsd:Q", title="mean JSD to the original attention (nats)", scale=alt.Scale(domain=list(JSD_BOUNDS)))
    y = alt.Y("tvd:Q", title="mean TVD to the original prediction (|Δp|, not its half)", scale=alt.Scale(domainMin=0))
    order = points["series"].drop_duplicates().tolist()
    shape = alt.Shape("series:N", title=None, scale=alt.Scale(domain=order, range=SHAPES[: len(order)]))
    base, color = alt.Chart(), series_color(order)
    curves = base.transform_filter("isValid(datum.at)").mark_line(strokeWidth=1.5)
    chords = base.transform_filter("datum.end").mark_line(strokeDash=[3, 4], strokeWidth=1, opacity=0.7)
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.6)
    layers = [
        *(line.encode(x, y, color, order="at:Q", detail="seed:N") for line in (curves, chords)),
        bars.encode(alt.X("jsd_low:Q"), y, color, x2="jsd_high"),
        bars.encode(x, alt.Y("tvd_low:Q"), color, y2="tvd_high"),
        base.mark_point(filled=True, size=70, opacity=1, tooltip=True).encode(x, y, color, shape),
        base.mark_text(align="left", dx=7, dy=9, fontSize=11, color=INK).encode(x, y, text="words:N"),
    ]
    drawn = alt.layer(*layers, data=points.assign(end=ends, words=words)).properties(width=WIDTH - 70, height=320)
    note = "A point for each run, bars: 95% over texts; the base itself would be at 0. λ: the weight of distance. "
    return titled(drawn, title, [see, note + "Dashed: each curve's chord."])


@or_a_sentence
def price(summary: pd.DataFrame, title: str, see: str) -> alt.TopLevelMixin:
    """Accuracy (y) against the mean JSD to the base's attention (x), a line for each variant; a panel for each model.

    Rows of lib.analysis.adversaries.summarise_adversaries; those with a `table` are printed values.
    """
    keys = ["encoder", "attention", "variant", "lambda", "table"]
    rows = summary.reindex(columns=[*keys, "quantity", "value", "low", "high"])
    jsd, accuracy = (rows[rows["quantity"] == name].drop(columns="quantity") for name in ("jsd", "accuracy"))
    both = accuracy.merge(jsd[[*keys, "value"]].rename(columns={"value": "jsd"}), on=keys)
    if both["table"].notna().all():
        raise Empty("there is no adversary")
    both = both.assign(series=both["variant"].map(title_of), of=np.where(both["table"].isna(), "ours", "printed"))
    x = alt.X("jsd:Q", title="mean JSD (nats)", scale=alt.Scale(domain=list(JSD_BOUNDS)))
    y, color = alt.Y("value:Q", title="accuracy", scale=alt.Scale(zero=False)), series_color(both["series"].unique())
    shape = alt.Shape("of:N", title=None, scale=alt.Scale(domain=["ours", "printed"], range=["circle", "diamond"]))
    ours = alt.Chart().transform_filter("datum.of == 'ours'")
    layers = [
        ours.mark_line(strokeWidth=1.5).encode(x, y, color, order="jsd:Q"),
        ours.mark_rule(strokeWidth=1.5, opacity=0.6).encode(x, alt.Y("low:Q"), alt.Y2("high"), color),
        alt.Chart().mark_point(filled=True, size=70, opacity=1, tooltip=True).encode(x, y, color, shape),
    ]
    return titled(panels(both.drop(columns="table"), layers, 280), title, [see, "Bars: 95% intervals."])


@or_a_sentence
def plane(summary: pd.DataFrame, axes: Mapping[str, str], title: str, see: str) -> alt.TopLevelMixin:
    """One quantity of each explanation against another, a point with its intervals; a panel for each model.

    Args:
        summary: of `summarise`. axes: how the names of the quantities begin, and the axis' title: of x, then of y.
    """
    sides = []
    for start in axes:
        rows = summary[summary["quantity"].str.startswith(start) & summary["value"].notna()]
        rows = rows.assign(of=rows["quantity"].str.removeprefix(start).map(title_of))
        sides.append(rows[["encoder", "attention", "of", "value", "low", "high"]])
    both = sides[0].merge(sides[1], on=["encoder", "attention", "of"])
    if both.empty:
        raise Empty("there is nothing of which both are known")
    cells = [(both[name] / (np.ptp(both[name]) + 1e-9) * n).round() for name, n in (("value_x", 2), ("value_y", 14))]
    near = both.groupby([both["encoder"], *cells])["of"]  # which share one label
    both["words"] = near.transform(", ".join).where(near.cumcount() == 0, "")
    ends = [alt.Axis(title=name, format=".2~f", tickCount=6) for name in axes.values()]
    x = alt.X("value_x:Q", axis=ends[0], scale=alt.Scale(zero=False))
    y, bars = alt.Y("value_y:Q", axis=ends[1]), alt.Chart().mark_rule(opacity=0.4)
    layers = [
        *(bars.encode(alt.X("low_x:Q"), y, x2="high_x"), bars.encode(x, alt.Y("low_y:Q"), y2="high_y")),
        alt.Chart().mark_point(filled=True, size=60, opacity=1, tooltip=True).encode(x, y),
        alt.Chart().mark_text(align="left", dx=6, dy=-6, fontSize=11, color=INK).encode(x, y, text="words:N"),
    ]
    both = ordered(both.assign(encoder=both["encoder"].map(title_of)), "encoder")
    drawn = alt.layer(*layers, data=both).properties(width=WIDTH - 210, height=280)
    return titled(drawn.facet(facet=in_order(alt.Facet, "encoder"), columns=1), title, [see, "Bars: 95% intervals."])
