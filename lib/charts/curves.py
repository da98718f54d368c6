"""Lines: training by epoch, and quantities over a hyperparameter."""

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from lib.charts.theme import COLORS, WIDTH, Empty, facets, number_tips, or_a_sentence, panels, series_color, titled
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
    line = line.encode(x, y, color=color, detail="run:N", tooltip=["run:N", "epoch:Q", *number_tips(".3f", "value")])
    drawn = facets(frame, [line], "quantity", height=130, axes=130, widest=WIDTH).resolve_scale(y="independent")
    return titled(drawn, title, [f"Each line is a run. {see}"])


@or_a_sentence
def sweep(
    summary: pd.DataFrame,
    setting: str,
    title: str,
    see: str,
    setting_title: str | None = None,
    scale: str = "linear",
    theirs: pd.DataFrame | None = None,
) -> alt.TopLevelMixin:
    """One line per quantity over the values of a hyperparameter, with its interval; a panel for each model.

    Args:
        summary: rows of lib.analysis.summarise, with the hyperparameter in the column `setting`.
        scale: of the x axis: linear, log, or symlog, which is linear near 0 and logarithmic on both sides.
        theirs: published values: encoder, attention, quantity, value; those of the summary's quantities are dashed.
    """
    if setting not in summary or summary[setting].nunique() < 2:
        raise Empty(f"there are no two values of {title_of(setting)}")
    models = summary[["encoder", "attention", "quantity"]].drop_duplicates()
    printed = models.iloc[:0] if theirs is None else models.merge(theirs[[*models, "value"]])
    frame = pd.concat([summary.assign(kind="ours"), printed.assign(kind="published")])
    frame["series"] = frame["quantity"].map(title_of)
    columns = ["encoder", "attention", "kind", "series", setting, "value", "low", "high"]
    x = alt.X(
        f"{setting}:Q",
        title=setting_title or title_of(setting),
        scale=alt.Scale(type=scale, nice=scale == "linear", **({"constant": 0.1} if scale == "symlog" else {})),
        axis=alt.Axis(values=sorted(summary[setting].unique()), grid=False, format=".4~g"),
    )
    layers = lines_over(x, unit_of(models["quantity"].iloc[0]), series_color(frame["series"].unique()))
    shown = {"line": True, "band": frame["low"].notna().any(), "published": len(printed) > 0}
    height = 240 if len(models.drop_duplicates(["encoder", "attention"])) == 1 else 170
    drawn = panels(frame[columns], [layer for name, layer in layers.items() if shown[name]], height)
    notes = [see, "Bands: 95% intervals." if shown["band"] else "", "Dashed: published." if shown["published"] else ""]
    return titled(drawn, title, [" ".join(filter(None, notes))])


def lines_over(x: alt.X, unit: str, color: alt.Color) -> dict[str, alt.Chart]:
    """Layers over a hyperparameter: the interval of each series, its line, and the published values."""
    y = alt.Y("value:Q", title=unit, scale=alt.Scale(zero=True))
    ours, published = (alt.Chart().transform_filter(alt.datum.kind == kind) for kind in ("ours", "published"))
    tips = [alt.Tooltip("series:N", title="of"), alt.Tooltip(x.shorthand), *number_tips(".3f", "value")]
    return {
        "band": ours.mark_area(opacity=0.25).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), color),
        "line": ours.mark_line(point=True, strokeWidth=2).encode(x, y, color, tooltip=tips),
        "published": published.mark_rule(strokeDash=[5, 4], strokeWidth=1.5).encode(
            y, color, tooltip=["series:N", "value:Q"]
        ),
    }
