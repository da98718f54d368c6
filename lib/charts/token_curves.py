"""What each token of a text alone would be read as, under several models."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from lib.charts.text import visible
from lib.charts.theme import COLORS, INK, WIDTH, titled
from lib.quantity import title_of

STEP, NARROWEST, HEIGHT = 22, 300, 190  # pixels
MOST, BEFORE = 60, 10  # tokens of a text that are shown, and of them before the first that decides
LONGEST = 20  # letters of a token on the axis


def token_curves(
    tokens: Sequence[str],
    probabilities: Mapping[str, np.ndarray],
    models: Mapping[str, float],
    of_class: str,
    title: str,
    rationale: Sequence[tuple[int, int]] | None = None,
) -> alt.TopLevelMixin:
    """The probability of a class at every token, one line a model, each model's own as a dotted rule.

    Tutek & Snajder (2020), figures 2 to 7.

    Args:
        probabilities: model -> (token,) as if all attention were on that token. models: model -> its probability.
        rationale: spans [start, end) of the tokens that decide the label, shaded. Of a text of more than MOST tokens
            those around the first span are shown.
    Raises:
        ValueError: a model has not one value per token.
    """
    wrong = [name for name, values in probabilities.items() if len(values) != len(tokens)]
    if wrong or not len(tokens):
        raise ValueError(f"{len(tokens)} tokens, but the values of {', '.join(wrong) or 'no model'} are not as many")
    order = [title_of(name) for name in probabilities]
    first = max(0, min(rationale[0][0] - BEFORE, len(tokens) - MOST)) if rationale else 0
    shown = slice(first, first + MOST)
    cut = f" Tokens {first + 1} to {min(first + MOST, len(tokens))} of {len(tokens):,}." if len(tokens) > MOST else ""
    probabilities = {name: values[shown] for name, values in probabilities.items()}
    tokens = [visible(token)[:LONGEST] for token in tokens[shown]]
    lines = pd.DataFrame(
        [
            {"place": place, "token": token, "model": title_of(name), "probability": float(value)}
            for name, values in probabilities.items()
            for place, (token, value) in enumerate(zip(tokens, values, strict=True))
        ]
    )
    own = pd.DataFrame([{"model": title_of(name), "probability": value} for name, value in models.items()])
    color = alt.Color(
        "model:N", title=None, sort=order, scale=alt.Scale(domain=order, range=list(COLORS[: len(order)]))
    )
    x = alt.X(
        "place:Q",
        title=None,
        scale=alt.Scale(domain=[-0.5, len(tokens) - 0.5], nice=False),
        axis=alt.Axis(labels=False, ticks=False, grid=False),
    )
    y = alt.Y("probability:Q", title=f"probability of {of_class}", scale=alt.Scale(domain=[0, 1]))
    tips = ["model:N", "token:N", alt.Tooltip("probability:Q", format=".3f")]
    even = alt.Chart(pd.DataFrame({"probability": [0.5]})).mark_rule(color=INK, opacity=0.5).encode(y=y)
    dots, below = alt.OverlayMarkDef(size=16), HEIGHT + 8
    words = pd.DataFrame({"place": range(len(tokens)), "token": tokens})
    drawn = [
        even,
        alt.Chart(lines).mark_line(strokeWidth=1.5, point=dots).encode(x, y, color, tooltip=tips),
        alt.Chart(own).mark_rule(strokeDash=[2, 3], strokeWidth=1.5).encode(y=y, color=color, tooltip=tips[::2]),
        alt.Chart(words)
        .mark_text(angle=300, align="right", baseline="middle", fontSize=11, color=INK)
        .encode(x, alt.YValue(below), text="token:N"),
    ]
    see = "Lines: were all attention on this token. Dotted: the model's own answer. At .5 a token decides nothing."
    if rationale:
        moved = [(max(start - first, 0), min(end - first, len(tokens))) for start, end in rationale]
        spans = pd.DataFrame([{"place": start - 0.5, "end": end - 0.5} for start, end in moved if start < end])
        drawn.append(alt.Chart(spans).mark_rect(color=INK, opacity=0.15).encode(x, alt.X2("end")))
        see += " Shaded: the words that decide the label."
    see += cut
    width = max(NARROWEST, min(WIDTH, STEP * len(tokens) + 60))
    return titled(alt.layer(*drawn).properties(width=width, height=HEIGHT), title, [see])
