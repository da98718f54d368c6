"""Single texts: attention on the words themselves, and what each token alone would be read as."""

import unicodedata
from collections.abc import Mapping, Sequence
from html import escape
from itertools import cycle

import altair as alt
import numpy as np
import pandas as pd
from IPython.display import HTML

from lib.charts.theme import INK, WIDTH, series_color, titled
from lib.datasets import question_and_answer, tokens_shown
from lib.datasets.corpus import Corpus
from lib.quantity import title_of

HUES = ("58, 134, 200", "217, 101, 43", "31, 157, 120", "160, 108, 192")
STRONGEST = 0.75  # opacity of the ground under the largest weight
DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
SMALL = "font-size:.85em;opacity:.8"
HEIGHT = 190  # of the curves, in pixels
MOST_CURVES, BEFORE = 60, 10  # tokens of a text that have curves, and of them before the first that decides
LONGEST = 20  # letters of a token on the axis


def attention_text(
    tokens: Sequence[str], weights: Mapping[str, np.ndarray], rationale=None, title: str = "", most: int = 300
) -> HTML:
    """A text once per attention map, each token on a ground as strong as its weight; hovering shows the weight.

    All maps share one scale, so that grounds compare. Of a text of more than `most` tokens those around the highest
    weight are shown. Tokens are escaped, kept from changing the direction of their neighbours, and invisible control
    characters are spelled out.

    Args:
        tokens: the text's own tokens. weights: name of a map -> (token,) weights, at least 0.
        rationale: spans [start, end) of the tokens that decide the label, underlined.
    """
    if not weights:
        return HTML("<p>There is no attention to show.</p>")
    maps = {name: np.asarray(values, dtype=np.float64) for name, values in weights.items()}
    highest = np.maximum.reduce(list(maps.values()))
    largest, (shown, part) = float(highest.max()) or 1.0, window(len(tokens), int(highest.argmax()) - most // 2, most)
    decisive = {place for start, end in rationale or () for place in range(start, end)}
    parts = [f'<figcaption style="font-weight:600">{escape(title)}</figcaption>'] if title else []
    for hue, (name, values) in zip(cycle(HUES), maps.items(), strict=False):
        spans = []
        for place in shown:
            ground = f"background:rgba({hue}, {values[place] / largest * STRONGEST:.3f});border-radius:.2em"
            line = "text-decoration:underline;text-decoration-thickness:2px;" if place in decisive else ""
            word = f"<bdi>{escape(visible(tokens[place]))}</bdi>"
            spans.append(f'<span title="{values[place]:.4f}" style="{line}padding:.1em .15em;{ground}">{word}</span> ')
        parts.append(
            f'<div style="{SMALL}">{escape(name)} · largest weight {values.max():.3f}</div>'
            f'<p dir="auto" style="margin:.1em 0 .5em;line-height:1.9;overflow-wrap:anywhere">{"".join(spans)}</p>'
        )
    notes = [f"strongest ground: a weight of {largest:.2g}"]
    notes += ["underlined: the words that decide the label"] if decisive else []
    parts.append(f'<div style="{SMALL}">{" · ".join([*notes, part] if part else notes)}</div>')
    return HTML(f'<figure class="attention-text" style="margin:1em 0">{"".join(parts)}</figure>')


def window(length: int, first: int, most: int) -> tuple[range, str]:
    """At most so many places of a text, from `first` on where that leaves none empty; which, where it is not all."""
    first = max(0, min(first, length - most))
    shown = range(first, min(first + most, length))
    return shown, f"tokens {first + 1:,} to {shown.stop:,} of {length:,}" if len(shown) < length else ""


def attention_of_texts(
    chosen: pd.DataFrame, maps: Mapping[str, str], numbers: Mapping[str, str], corpus: Corpus, show_text: bool
) -> HTML:
    """`attention_text` of some texts of test, each with why it was chosen, and numbers, in its title.

    `chosen` are rows of `lib.analysis.examples`; `maps` and `numbers` have the name of each -> its column, where there
    is one.
    """
    parts = []
    for row in chosen.to_dict("records"):
        instance = corpus.test.instances[row["instance"]]
        said = ", ".join(f"{name} {row[column]:.3f}" for name, column in numbers.items() if pd.notna(row.get(column)))
        title = f"{row['why']}{question_and_answer(instance, corpus.classes)}: {said}"
        weights = {name: row[column] for name, column in maps.items() if np.ndim(row.get(column))}
        parts.append(attention_text(tokens_shown(corpus, instance, show_text), weights, instance.rationale, title).data)
    return HTML("".join(parts))


def visible(token: str) -> str:
    """The token with control characters, also those that turn the direction of text, spelled out as <U+202E>."""
    hostile = {c for c in token if c in DIRECTIONS or unicodedata.category(c) in ("Cc", "Cs")}
    shown = "".join(f"<U+{ord(c):04X}>" if c in hostile else c for c in token)
    return shown if shown.strip() else "␣"


# --- the probability of a class at each token


def token_curves(rows: pd.DataFrame, corpus: Corpus, title: str, show_text: bool = True) -> alt.TopLevelMixin:
    """What every token of a text alone would be read as, one line a model, each model's own answer as a dotted line.

    Tutek & Snajder (2020), figures 2 to 7. The probability is that of the second of two classes; of more, that of the
    class that a model predicts. The words that decide the label are shaded. Of a text of more than MOST_CURVES tokens
    those around the first such word are shown. `rows` are of one text, one for each variant, with token_probabilities.
    """
    text, two = corpus.test.instances[rows["instance"].iloc[0]], len(corpus.classes) == 2
    spans = pd.DataFrame(text.rationale or (), columns=["start", "end"])
    shown, part = window(len(text.tokens), 0 if spans.empty else spans["start"].iloc[0] - BEFORE, MOST_CURVES)
    tokens = tokens_shown(corpus, text, show_text)[shown.start : shown.stop]
    words = pd.DataFrame({"place": range(len(tokens)), "token": [visible(token)[:LONGEST] for token in tokens]})
    own = pd.DataFrame({"model": rows["variant"].map(title_of), "probability": rows["probability"]})
    lines = []
    for row in rows.to_dict("records"):
        values = row["token_probabilities"][shown.start : shown.stop]  # of the predicted class
        values = 1 - values if two and row["prediction"] == 0 else values
        lines.append(words.assign(model=title_of(row["variant"]), probability=values))
    spans = (spans - shown.start - 0.5).clip(-0.5, len(words) - 0.5).query("start < end")
    shade = alt.Chart(spans).mark_rect(color=INK, opacity=0.15).encode(alt.X("start:Q"), alt.X2("end"))
    lines, of_class = pd.concat(lines), corpus.classes[1] if two else "what the model predicts"
    color = series_color(lines["model"].unique(), "model")
    scale = alt.Scale(domain=[-0.5, len(words) - 0.5], nice=False)
    x = alt.X("place:Q", title=None, scale=scale, axis=alt.Axis(labels=False, ticks=False, grid=False))
    y = alt.Y("probability:Q", title=f"probability of {of_class}", scale=alt.Scale(domain=[0, 1]))
    curves = alt.Chart(lines).mark_line(strokeWidth=1.5, point=alt.OverlayMarkDef(size=16))
    below = alt.Chart(words).mark_text(angle=300, align="right", baseline="middle", fontSize=11, color=INK)
    layers = [
        alt.Chart().mark_rule(color=INK, opacity=0.5).encode(alt.Y(datum=0.5)),
        curves.encode(x, y, color, tooltip=["token:N", "model:N", "probability:Q"]),
        alt.Chart(own).mark_rule(strokeDash=[2, 3], strokeWidth=1.5).encode(y=y, color=color),
        below.encode(x, alt.YValue(HEIGHT + 8), text="token:N"),
    ]
    see = "Lines: were all attention on this token. Dotted: the model's own answer. At .5 a token decides nothing."
    see += "" if spans.empty else " Shaded: the words that decide the label."
    see += f" Shown: {part}." if part else ""
    drawn = alt.layer(*layers, *([] if spans.empty else [shade]))
    drawn = drawn.properties(width=max(300, min(WIDTH, 22 * len(words) + 60)), height=HEIGHT)
    return titled(drawn, f"{title} (label: {corpus.classes[text.label]})", [see])
