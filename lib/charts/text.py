"""Single texts: attention on the words themselves, and what each token alone would be read as."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby

import altair as alt
import numpy as np
import pandas as pd
from IPython.display import HTML

from lib.charts.theme import INK, WIDTH, number_tips, series_color, titled
from lib.quantity import title_of

HUES = ("58, 134, 200", "217, 101, 43", "31, 157, 120", "160, 108, 192")
STRONGEST = 0.75  # opacity of the ground under the largest weight
AROUND = 8  # tokens kept on either side of a high weight when a text is shortened
DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
STEP, NARROWEST, HEIGHT = 22, 300, 190  # of the curves, in pixels
MOST, BEFORE = 60, 10  # tokens of a text that have curves, and of them before the first that decides
LONGEST = 20  # letters of a token on the axis


def attention_text(
    tokens: Sequence[str],
    weights: Mapping[str, np.ndarray],
    rationale: Iterable[tuple[int, int]] | None = None,
    title: str = "",
    most: int = 300,
) -> HTML:
    """A text once per attention map, each token on a ground as strong as its weight; hovering shows the weight.

    All maps share one scale, so that grounds compare. A text of more than `most` tokens is shortened to what surrounds
    its highest weights, with a note. Tokens are escaped, kept from changing the direction of their neighbours, and
    invisible control characters are spelled out.

    Args:
        tokens: the text's own tokens. weights: name of a map -> (token,) weights, at least 0.
        rationale: spans [start, end) of the tokens that decide the label, underlined.
    """
    maps = {name: np.asarray(values, dtype=np.float64) for name, values in weights.items()}
    largest = max(float(values.max()) for values in maps.values()) or 1.0
    decisive = np.zeros(len(tokens), dtype=bool)
    for start, end in rationale or ():
        decisive[start:end] = True
    keep = kept(np.maximum.reduce(list(maps.values())), most)
    blocks = []
    for index, (name, values) in enumerate(maps.items()):
        hue = HUES[index % len(HUES)]
        text = "".join(token_spans(tokens, values, values / largest * STRONGEST, hue, decisive, keep))
        blocks.append(
            f'<div style="margin:.5em 0"><div style="font-size:.85em;opacity:.75">{escape(name)} · largest weight '
            f'{values.max():.3f}</div><p dir="auto" style="margin:.1em 0;line-height:1.9;overflow-wrap:anywhere">{text}'
            "</p></div>"
        )
    heading = f'<figcaption style="font-weight:600">{escape(title)}</figcaption>' if title else ""
    blocks.append(legend(maps, largest, decisive.any(), keep))
    return HTML(f'<figure class="attention-text" style="margin:1em 0">{heading}{"".join(blocks)}</figure>')


def kept(weights: np.ndarray, most: int) -> np.ndarray:
    """(token,) True where a token is shown: all, or about `most` around the highest weights."""
    if len(weights) <= most:
        return np.ones(len(weights), dtype=bool)
    keep = np.zeros(len(weights), dtype=bool)
    for position in np.argsort(-weights, kind="stable"):
        keep[max(0, position - AROUND) : position + AROUND + 1] = True
        if keep.sum() >= most:
            break
    return keep


def token_spans(tokens, values, alphas, hue: str, decisive: np.ndarray, keep: np.ndarray):
    """The HTML of the shown tokens and, at each gap between them, how many are not shown."""
    for shown, run in groupby(range(len(tokens)), keep.__getitem__):
        places = list(run)
        if not shown:
            yield f'<span style="opacity:.65">… {len(places):,} token{"s" if len(places) > 1 else ""} …</span> '
            continue
        for place in places:
            underline = ";text-decoration:underline;text-decoration-thickness:2px" if decisive[place] else ""
            yield (
                f'<span title="{values[place]:.4f}" style="background:rgba({hue}, {alphas[place]:.3f});'
                f'padding:.1em .15em;border-radius:.2em{underline}"><bdi>{escape(visible(tokens[place]))}</bdi></span> '
            )


def visible(token: str) -> str:
    """The token with control characters, also those that turn the direction of text, spelled out as <U+202E>."""
    hostile = (c in DIRECTIONS or unicodedata.category(c) in ("Cc", "Cs") for c in token)
    shown = "".join(f"<U+{ord(c):04X}>" if bad else c for c, bad in zip(token, hostile, strict=True))
    return shown if shown.strip() else "␣"


def legend(maps: Mapping[str, np.ndarray], largest: float, rationale: bool, keep: np.ndarray) -> str:
    """One line: the scale, what is underlined, what is not shown."""
    steps = "".join(
        f'<span style="background:rgba({HUES[0]}, {STRONGEST * step:.3f});'
        f'padding:.1em .5em">{step * largest:.2g}</span>'
        for step in (0, 0.25, 0.5, 0.75, 1)
    )
    parts = [f"weight {steps}, the same scale for all" if len(maps) > 1 else f"weight {steps}"]
    if rationale:
        parts.append("underlined: the words that decide the label")
    if not keep.all():
        shares = {name: values[keep].sum() / max(values.sum(), 1e-12) for name, values in maps.items()}
        held = ", ".join(f"{share:.0%} ({escape(name)})" for name, share in shares.items())
        parts.append(f"{keep.sum():,} of {len(keep):,} tokens shown, around the highest weights; they hold {held}")
    return f'<div style="font-size:.85em;opacity:.85">{" · ".join(parts)}</div>'


# --- the probability of a class at each token


def token_curves(
    tokens: Sequence[str],
    probabilities: Mapping[str, np.ndarray],
    models: Mapping[str, float],
    of_class: str,
    title: str,
    rationale: Sequence[tuple[int, int]] | None = None,
) -> alt.TopLevelMixin:
    """The probability of a class at every token, one line a model, each model's own answer as a dotted line.

    Tutek & Snajder (2020), figures 2 to 7.

    Args:
        probabilities: model -> (token,) as if all attention were on that token. models: model -> its probability.
        rationale: spans [start, end) of the tokens that decide the label, shaded. Of a text of more than MOST tokens
            those around the first span are shown.
    """
    first = max(0, min(rationale[0][0] - BEFORE, len(tokens) - MOST)) if rationale else 0
    words = [visible(token)[:LONGEST] for token in tokens[first : first + MOST]]
    places = pd.DataFrame({"place": range(len(words)), "token": words})
    lines = [
        places.assign(model=title_of(name), probability=np.asarray(values, dtype=float)[first : first + MOST])
        for name, values in probabilities.items()
    ]
    own = pd.DataFrame([{"model": title_of(name), "probability": value} for name, value in models.items()])
    layers = curve_layers(pd.concat(lines, ignore_index=True), own, of_class, places)
    see = "Lines: were all attention on this token. Dotted: the model's own answer. At .5 a token decides nothing."
    if rationale:
        spans = [(max(start - first, 0) - 0.5, min(end - first, len(words)) - 0.5) for start, end in rationale]
        spans = pd.DataFrame([span for span in spans if span[0] < span[1]], columns=["place", "end"])
        layers.append(alt.Chart(spans).mark_rect(color=INK, opacity=0.15).encode(layers[1].encoding.x, alt.X2("end")))
        see += " Shaded: the words that decide the label."
    if len(tokens) > MOST:
        see += f" Tokens {first + 1} to {min(first + MOST, len(tokens))} of {len(tokens):,}."
    width = max(NARROWEST, min(WIDTH, STEP * len(words) + 60))
    return titled(alt.layer(*layers).properties(width=width, height=HEIGHT), title, [see])


def curve_layers(lines: pd.DataFrame, own: pd.DataFrame, of_class: str, places: pd.DataFrame) -> list[alt.Chart]:
    """A line at .5, a curve for each model, the models' own answers, and the words below."""
    color = series_color(lines["model"].unique(), "model")
    scale = alt.Scale(domain=[-0.5, len(places) - 0.5], nice=False)
    x = alt.X("place:Q", title=None, scale=scale, axis=alt.Axis(labels=False, ticks=False, grid=False))
    y = alt.Y("probability:Q", title=f"probability of {of_class}", scale=alt.Scale(domain=[0, 1]))
    model, value = alt.Tooltip("model:N"), number_tips(".3f", "probability")
    curves = alt.Chart(lines).mark_line(strokeWidth=1.5, point=alt.OverlayMarkDef(size=16))
    answers = alt.Chart(own).mark_rule(strokeDash=[2, 3], strokeWidth=1.5)
    words = alt.Chart(places).mark_text(angle=300, align="right", baseline="middle", fontSize=11, color=INK)
    return [
        alt.Chart(pd.DataFrame({"probability": [0.5]})).mark_rule(color=INK, opacity=0.5).encode(y=y),
        curves.encode(x, y, color, tooltip=[model, "token:N", *value]),
        answers.encode(y=y, color=color, tooltip=[model, *value]),
        words.encode(x, alt.YValue(HEIGHT + 8), text="token:N"),
    ]
