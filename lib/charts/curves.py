"""Lines: training by epoch, and quantities over a hyperparameter."""

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from lib.charts.theme import COLORS, Empty, facets, or_a_sentence, panels, series_color, titled
from lib.quantity import title_of, unit_of


@or_a_sentence
def learning_curves(
    histories: Mapping[str, Sequence[dict]],
    quantities: Sequence[str],
    title: str = "Training",
    see: str = "A dev score that still rises at the last epoch needs more epochs.",
) -> alt.TopLevelMixin:
    """What training reports after each epoch, one line a run, one panel a quantity.

    Args:
        histories: the name of a run -> a list of records with `epoch` and the quantities. Runs whose names differ only
            after ", seed" have one colour. quantities: those that no run reports have no panel.
    """
    frame = pd.DataFrame([{"run": run, **record} for run, history in histories.items() for record in history])
    if frame.empty:
        raise Empty("no run has a history")
    frame["model"] = frame["run"].str.split(", seed").str[0]
    frame = frame.melt(["run", "model", "epoch"], frame.columns.intersection(quantities), "quantity").dropna()
    frame["quantity"] = frame["quantity"].map(lambda name: f"{title_of(name)} ({unit_of(name)})")
    models = frame["model"].unique()
    color = series_color(models, "model") if 1 < len(models) <= len(COLORS) else alt.value(COLORS[0])
    points = alt.OverlayMarkDef(size=18) if frame["epoch"].nunique() <= 12 else False
    x = alt.X("epoch:Q", title="epoch", axis=alt.Axis(format="d", tickMinStep=1, grid=False))
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False))
    line = alt.Chart().mark_line(point=points, strokeWidth=1.5, opacity=0.8)
    line = line.encode(x, y, color=color, detail="run:N", tooltip=["run:N", "epoch:Q", "value:Q"])
    drawn = facets(frame, [line], "quantity", height=130, axes=130).resolve_scale(y="independent")
    return titled(drawn, title, [f"Each line is a run. {see}"])


@or_a_sentence
def sweep(
    summary: pd.DataFrame,
    setting: str,
    title: str,
    see: str,
    setting_title: str | None = None,
    scale: str = "linear",
) -> alt.TopLevelMixin:
    """One line per quantity over the values of a hyperparameter, with its interval; a panel for each model.

    Args:
        summary: rows of lib.analysis.summarise, with the hyperparameter in the column `setting`.
        scale: of the x axis: linear, log, or symlog, which is linear near 0 and logarithmic on both sides.
    """
    if setting not in summary or summary[setting].nunique() < 2:
        raise Empty(f"there are no two values of {title_of(setting)}")
    frame = summary.assign(series=summary["quantity"].map(title_of))
    columns = ["encoder", "attention", "series", setting, "value", "low", "high"]
    x = alt.X(
        f"{setting}:Q",
        title=setting_title or title_of(setting),
        scale=alt.Scale(type=scale, nice=scale == "linear", **({"constant": 0.1} if scale == "symlog" else {})),
        axis=alt.Axis(values=sorted(summary[setting].unique()), grid=False, format=".4~g"),
    )
    y = alt.Y("value:Q", title=unit_of(summary["quantity"].iloc[0]), scale=alt.Scale(zero=True))
    color = series_color(frame["series"].unique())
    layers, notes = [alt.Chart().mark_line(point=True, strokeWidth=2, tooltip=True).encode(x, y, color)], [see]
    if frame["low"].notna().any():
        bands = alt.Chart().mark_area(opacity=0.25).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), color)
        layers, notes = [bands, *layers], [see, "Bands: 95% intervals."]
    height = 240 if len(frame.drop_duplicates(["encoder", "attention"])) == 1 else 170
    return titled(panels(frame[columns], layers, height), title, [" ".join(notes)])
