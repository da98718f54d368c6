"""What the verdicts on a paper's claims rest on: each effect with its interval, its seeds and its bound."""

import altair as alt
import pandas as pd

from lib.analysis.verdicts import ANSWERS
from lib.charts.theme import COLORS, INK, WIDTH, number_tips, titled
from lib.papers.claims import CONTRAST, WEAK

LABELS = 230  # pixels for the names of models
STEP = 20  # from one model to the next
COLOR_OF = dict(zip((*ANSWERS, CONTRAST), (*(COLORS[number] for number in (2, 1, 0, 4, 5)), INK), strict=True))
BANDS = {  # of a kind of claim, from its bound: where the effect would be none, or too little
    "direction": lambda bound: (-bound, bound),
    "little": lambda bound: (-bound, bound),
    "at least": lambda bound: (bound, bound),
    "most runs": lambda bound: (0.5, 0.5),
    "trend": lambda bound: (0.0, 0.0),
}


def effects(found: pd.DataFrame) -> alt.TopLevelMixin:
    """Rows of lib.papers.verdicts, a panel for each claim: effect, 95% interval, single seeds, and the bound as a band.

    Raises:
        ValueError: no verdict has an effect.
    """
    known = found[found["effect"].notna()]
    if known.empty:
        raise ValueError("nothing to draw: no verdict has an effect")
    words = [word for word in COLOR_OF if word in set(known["verdict"])]
    drawn = [panel(same, words) for _, same in known.groupby("short", sort=False)]
    see = "Large: the effect, its 95% interval and its verdict; small: single seeds; band: the bound stated beforehand."
    weak = "Pale: models that are weak witnesses." if known["witness"].eq(WEAK).any() else ""
    return titled(alt.vconcat(*drawn, spacing=14), "What each verdict rests on", [see, weak])


def panel(same: pd.DataFrame, words: list[str]) -> alt.LayerChart:
    """The effects on one claim, a row for each model; `words`: those of all panels."""
    first = same.iloc[0]
    ends = dict(zip(("start", "end"), BANDS[first["kind"]](first["bound"]), strict=True))
    rows = same[["model", "verdict", "effect", "low", "high", "p"]].assign(pale=same["witness"].eq(WEAK))
    y = alt.Y("model:N", title=None, sort=rows["model"].tolist(), axis=alt.Axis(grid=True, labelLimit=LABELS))
    x = alt.X("effect:Q", title=first["unit"], scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    scale = alt.Scale(domain=words, range=[COLOR_OF[word] for word in words])
    color = alt.Color("verdict:N", title=None, scale=scale)
    faint = alt.condition("datum.pale", alt.value(0.35), alt.value(1))
    tips = ["model:N", "verdict:N", *number_tips("+.3f", "effect", "low", "high"), *number_tips(".2g", "p")]
    band, seeds = alt.Chart(pd.DataFrame([ends])), single_seeds(same)
    points = [alt.Chart(seeds).mark_point(size=16, color=INK, opacity=0.8).encode(alt.X("value:Q"), y)]
    layers = [
        band.mark_rect(color=INK, opacity=0.13).encode(alt.X("start:Q"), alt.X2("end")),
        band.mark_rule(color=INK, strokeDash=[4, 3]).encode(alt.X("end:Q")),
        alt.Chart(rows).mark_rule(strokeWidth=2.5).encode(alt.X("low:Q"), alt.X2("high"), y, color, opacity=faint),
        *(points if len(seeds) else []),  # an empty layer has no scale
        alt.Chart(rows).mark_point(filled=True, size=60).encode(x, y, color, opacity=faint, tooltip=tips),
    ]
    drawn = alt.layer(*layers).properties(width=WIDTH - LABELS, height=alt.Step(STEP))
    return drawn.properties(title=alt.TitleParams(first["short"], fontSize=12, offset=4))


def single_seeds(same: pd.DataFrame) -> pd.DataFrame:
    """model, value: the effect in each seed; of "most runs" none, as it is whether each run holds."""
    if same["kind"].iloc[0] == "most runs":
        return pd.DataFrame({"model": [], "value": []}).astype({"value": float})
    pairs = [(model, float(value)) for model, text in zip(same["model"], same["of_seeds"], strict=True)
             for value in text.split()]  # fmt: skip
    return pd.DataFrame(pairs, columns=["model", "value"]).astype({"value": float})
