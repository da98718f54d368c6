"""Lines: quantities over a hyperparameter."""

import altair as alt
import pandas as pd

from lib.charts.theme import Empty, or_a_sentence, panels, series_color, titled
from lib.quantity import title_of, unit_of


@or_a_sentence
def sweep(summary: pd.DataFrame, setting: str, title: str, see: str, scale: str = "linear") -> alt.TopLevelMixin:
    """One line per quantity over the values of a hyperparameter, with its interval; a panel for each model.

    Args:
        summary: rows of lib.analysis.summarise, with the hyperparameter in the column `setting`.
        scale: of the x axis: linear, or symlog, which is linear near 0 and logarithmic on both sides.
    """
    if setting not in summary or summary[setting].nunique() < 2:
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
