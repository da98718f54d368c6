"""The claims of Serrano & Smith (2019)."""

from collections.abc import Iterator
from itertools import pairwise

import pandas as pd

from lib.analysis import above_the_floor, difference, sooner, summarise
from lib.claims.claim import Claim, models, signed, verdict
from lib.quantity import declare, title_of

PAPER = "serrano2019"
OFTEN = 1.6  # times as often: the least that the paper reports for a model with an encoder
HALF = 0.5
LESS_CONTEXT = ("flan-rnn", "flan-conv", "flan-noenc")


def erasure_claims(measured: pd.DataFrame) -> list[Claim]:
    """Each claim with its verdict.

    Args:
        measured: every model with the columns of lib.interventions.single_erasure as "top", of until_flip as "removed".
    """
    return [
        *matters_more(measured),
        *seldom_decides(measured),
        *gradient_sooner(measured),
        *not_the_fewest(measured),
        *context_delays(measured),
    ]


def with_encoder(measured: pd.DataFrame) -> pd.DataFrame:
    return measured[~measured["encoder"].str.endswith("noenc")]


def matters_more(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 4.1: the item with the largest weight matters more than another."""
    claim = "Erasing the item with the largest attention changes the output more than erasing another, drawn at random"
    gap = measured["top_attention_js"] - measured["top_attention_others_js"]
    for encoder, rows in models(measured.assign(gap_js=gap), "encoder"):
        row = summarise(rows, [declare("gap_js", "nats")]).iloc[0]
        said = f"JSD larger by {signed(row, 'value')} nats, over all other items"
        yield Claim(PAPER, "the top item matters most", claim, encoder, verdict(row["low"], row["high"]), said)


def seldom_decides(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 4.2: and yet most decisions stay without it."""
    claim = "Erasing the item with the largest attention leaves most decisions as they were"
    for encoder, rows in models(measured, "encoder"):
        row = summarise(rows, ["top_attention_flip"]).iloc[0]
        said = f"it flips {row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}] of the decisions"
        word = verdict(1 - row["high"], 1 - row["low"], HALF)
        yield Claim(PAPER, "erasing it flips few decisions", claim, encoder, word, said)


def gradient_sooner(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 5.4: for models with an encoder the gradient finds a smaller set that flips the decision."""
    least = f"at least {OFTEN:g} times as often as the other way round"
    encoders = models(with_encoder(measured), "encoder")
    found = [(encoder, sooner(rows, "gradient", "attention").iloc[0]) for encoder, rows in encoders]
    for threshold, how, short in (
        (1.0, "more often than the other way round", "gradients flip sooner"),
        (OFTEN, least, f"gradients flip sooner {OFTEN:g} times as often"),
    ):
        claim = f"With an encoder, fewer items flip the decision along the gradient than along attention {how}"
        for encoder, row in found:
            said = (
                f"{row['first_sooner']:.3f} of the texts against {row['second_sooner']:.3f}: {row['ratio']:.2f} "
                f"[{row['low']:.2f}, {row['high']:.2f}] times as often; sign test p {row['p']:.2g}"
            )
            yield Claim(PAPER, short, claim, encoder, verdict(row["low"], row["high"], threshold), said)


def not_the_fewest(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 5.4: attention fails to find the fewest items that flip the decision much of the time."""
    claim = "For over half of the texts that can be flipped, attention does not find the fewest items that flip them"
    for encoder, rows in models(above_the_floor(measured, ["attention"]), "encoder"):
        row = summarise(rows, ["optimal_attention"]).iloc[0]
        said = f"it finds them for {row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}] of the texts"
        said = said if row["n"] else "the fewest are known of no text: the read-out is not affine, or nothing flips"
        word = verdict(1 - row["high"], 1 - row["low"], HALF)
        yield Claim(PAPER, "attention does not find the fewest", claim, encoder, word, said)


def context_delays(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 5.6: the further a state reaches, the later decisions flip: FLAN rnn > conv > noenc."""
    there = set(measured["encoder"])
    for ranking, along in (("attention", "along attention"), ("fewest", "with the fewest items possible")):
        claim = f"The further a state reaches, the larger the share of the words that must go ({along})"
        quantity = f"removed_{ranking}_fraction"
        for more, less in pairwise(name for name in LESS_CONTEXT if name in there):
            flips = [measured.loc[measured["encoder"] == name, quantity].notna().any() for name in (more, less)]
            row = difference(measured, quantity, ({"encoder": more}, {"encoder": less})) if all(flips) else None
            said = "no text flips" if row is None else told(row)
            word = "undecided" if row is None else verdict(row["low"], row["high"])
            pair = f"{title_of(more)} against {title_of(less)}"
            short = f"context delays flips ({along})"
            yield Claim(PAPER, short, claim, pair, word, said)


def told(row: pd.Series) -> str:
    return f"{row['first']:.3f}, {row['second']:.3f}; difference {signed(row)}"
