"""Attention drawn on the words themselves."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np
from IPython.display import HTML

HUES = ("58, 134, 200", "217, 101, 43", "31, 157, 120", "160, 108, 192")
STRONGEST = 0.75  # opacity of the ground under the largest weight
AROUND = 8  # tokens kept on either side of a high weight when a text is shortened
DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def attention_text(
    tokens: Sequence[str],
    weights: Mapping[str, np.ndarray],
    rationale: Iterable[tuple[int, int]] | None = None,
    title: str = "",
    most: int = 300,
) -> HTML:
    """A text once per attention map, each token on a ground as strong as its weight; hovering shows the weight.

    All maps share one scale, so that grounds compare. A text of more than `most` tokens is shortened to what surrounds
    its highest weights, and says so. Tokens are escaped, kept from changing the direction of their neighbours, and
    invisible control characters are spelled out.

    Args:
        tokens: the text's own tokens. weights: name of a map -> (token,) weights, at least 0.
        rationale: spans [start, end) of the tokens that decide the label, underlined.
    Raises:
        ValueError: no map, or one that has not exactly one finite weight of at least 0 per token.
    """
    maps = {name: checked(name, values, len(tokens)) for name, values in weights.items()}
    if not maps or not len(tokens):
        raise ValueError(f"nothing to draw: {len(tokens)} tokens and {len(maps)} attention maps")
    largest = max(float(values.max()) for values in maps.values()) or 1.0
    decisive = np.zeros(len(tokens), dtype=bool)
    for start, end in rationale or ():
        decisive[start:end] = True
    keep = kept(np.maximum.reduce(list(maps.values())), most)
    blocks = []
    for index, (name, values) in enumerate(maps.items()):
        hue = HUES[index % len(HUES)]
        text = "".join(pieces(tokens, values, values / largest * STRONGEST, hue, decisive, keep))
        blocks.append(
            f'<div style="margin:.5em 0"><div style="font-size:.85em;opacity:.75">{escape(name)} · largest weight '
            f'{values.max():.3f}</div><p dir="auto" style="margin:.1em 0;line-height:1.9;overflow-wrap:anywhere">{text}'
            "</p></div>"
        )
    heading = f'<figcaption style="font-weight:600">{escape(title)}</figcaption>' if title else ""
    note = legend(maps, largest, decisive.any(), keep)
    return HTML(f'<figure class="attention-text" style="margin:1em 0">{heading}{"".join(blocks)}{note}</figure>')


def checked(name: str, values, number: int) -> np.ndarray:
    """The weights as an array; ValueError where they are not one finite weight of at least 0 per token."""
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (number,) or not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(
            f"attention map {name!r} has shape {values.shape}; it must have one finite weight of at least 0 for each "
            f"of the {number} tokens"
        )
    return values


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


def pieces(tokens, values, alphas, hue: str, decisive: np.ndarray, keep: np.ndarray):
    """The HTML of the shown tokens and, for each gap between them, how many are not shown."""
    hidden = 0
    for position, token in enumerate(tokens):
        if not keep[position]:
            hidden += 1
            continue
        yield gap(hidden)
        hidden = 0
        underline = ";text-decoration:underline;text-decoration-thickness:2px" if decisive[position] else ""
        yield (
            f'<span title="{values[position]:.4f}" style="background:rgba({hue}, {alphas[position]:.3f});'
            f'padding:.1em .15em;border-radius:.2em{underline}"><bdi>{escape(visible(token))}</bdi></span> '
        )
    yield gap(hidden)


def gap(hidden: int) -> str:
    """What stands for tokens that are not shown."""
    return f'<span style="opacity:.65">… {hidden:,} token{"s" if hidden > 1 else ""} …</span> ' if hidden else ""


def visible(token: str) -> str:
    """The token with control characters, also those that turn the direction of text, spelled out as <U+202E>."""
    hostile = (c in DIRECTIONS or unicodedata.category(c) in ("Cc", "Cs") for c in token)
    shown = "".join(f"<U+{ord(c):04X}>" if bad else c for c, bad in zip(token, hostile, strict=True))
    return shown if shown.strip() else "␣"


def legend(maps: Mapping[str, np.ndarray], largest: float, rationale: bool, keep: np.ndarray) -> str:
    """One line: the scale, what is underlined, what is not shown."""
    ground = "background:rgba({}, {:.3f});padding:.1em .5em"
    steps = "".join(
        f'<span style="{ground.format(HUES[0], STRONGEST * step)}">{step * largest:.2g}</span>'
        for step in (0, 0.25, 0.5, 0.75, 1)
    )
    parts = [f"weight {steps}, the same scale for all" if len(maps) > 1 else f"weight {steps}"]
    if rationale:
        parts.append("underlined: the words that decide the label")
    if not keep.all():
        held = ", ".join(
            f"{values[keep].sum() / max(values.sum(), 1e-12):.0%} ({escape(n)})" for n, values in maps.items()
        )
        parts.append(f"{keep.sum():,} of {len(keep):,} tokens shown, around the highest weights; they hold {held}")
    return f'<div style="font-size:.85em;opacity:.85">{" · ".join(parts)}</div>'
