"""The claims of Meister et al. (2021)."""

from collections.abc import Iterator

import pandas as pd

from lib.analysis import along, changes_of_score, difference, summarise
from lib.claims.claim import Claim, models, signed, verdict
from lib.quantity import declare, tau_name, title_of

PAPER = "meister2021"
INPUT, HIDDEN = (("attention", f"gradient_of_{of}") for of in ("input", "hidden"))
TO_HIDDEN = "entropy_of_input_to_hidden_importance"
OF_INPUT = ("entropy_of_gradient_of_input", "entropy_of_leave_one_out_of_input")
DISPERSED = 0.4  # of the entropy of equal importance: the paper's lowest, .46, it calls high
SPARSER = 0.05  # of that entropy: our choice of a difference that would matter; the paper names none
AWAY = 0.1  # nats of JSD: an adversary that stays nearer does not attend elsewhere
LOSS = 0.02  # of accuracy: the largest that the paper prints for adversaries that were trained anew


def sparsity_claims(measured: pd.DataFrame, sweep: pd.DataFrame, adversaries: pd.DataFrame) -> list[Claim]:
    """Each claim with its verdict.

    Args:
        measured: every encoder under softmax and sparsemax, with the taus, the entropies and TO_HIDDEN.
        sweep: every encoder under sparsegen along the column lambda, with the same, and the support against the
            rationale where there is one. adversaries: rows of `measure_against`, those of the models themselves too.
    """
    several = sweep["lambda"].nunique() > 1  # of one lambda there is no trend
    return [
        *not_interchangeable(measured),
        *contextual(measured),
        *no_sparser(measured),
        *(falls_or_rises(sweep) if several else ()),
        *(less_correlated(sweep) if several else ()),
        *misled(adversaries),
        *(on_the_reason(sweep) if several else ()),
    ]


def not_interchangeable(measured: pd.DataFrame) -> Iterator[Claim]:
    """Figure 1: attention agrees with the importance of hidden states more than with that of the inputs."""
    claim = "Attention agrees with the gradient of the hidden states more than with that of the inputs"
    hidden, inputs = tau_name(HIDDEN), tau_name(INPUT)
    for model, rows in models(measured, "encoder", "projection"):
        gap = declare("gap_of_taus", "tau-b", bounds=(-2, 2))
        row = summarise(rows.assign(**{gap: rows[hidden] - rows[inputs]}), [gap]).iloc[0]
        means = summarise(rows, [hidden, inputs])["value"]
        said = f"tau-b {means[0]:.3f} with hidden states, {means[1]:.3f} with inputs; {signed(row, 'value')}"
        short = "inputs and hidden states are not interchangeable"
        yield Claim(PAPER, short, claim, model, verdict(row["low"], row["high"]), said)


def contextual(measured: pd.DataFrame) -> Iterator[Claim]:
    """Table 1: no single input stands behind a hidden state."""
    claim = f"The inputs' importance to a hidden state is spread: its entropy is above {DISPERSED:g} of the largest"
    for model, rows in models(measured, "encoder", "projection"):
        row = summarise(rows, [TO_HIDDEN]).iloc[0]
        said = f"normalised entropy {row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        yield Claim(PAPER, "states mix inputs", claim, model, verdict(row["low"], row["high"], DISPERSED), said)


def no_sparser(measured: pd.DataFrame) -> Iterator[Claim]:
    """Figure 2: sparse attention does not make the importance of the inputs sparser."""
    for quantity in OF_INPUT:
        claim = f"The inputs' {title_of(quantity)} is less than {SPARSER:g} lower under sparsemax than under softmax"
        for encoder, rows in models(measured, "encoder"):
            row = difference(rows, quantity, ({"projection": "sparsemax"}, {"projection": "softmax"}))
            said = f"{row['first']:.3f}, softmax {row['second']:.3f}; difference {signed(row)}"
            word = verdict(row["low"], row["high"], -SPARSER)
            yield Claim(PAPER, "sparse attention, importance as spread as ever", claim, encoder, word, said)


def falls_or_rises(sweep: pd.DataFrame) -> Iterator[Claim]:
    """Table 2 has the entropy of the inputs' importance fall along sparsegen's lambda; the text says that it rises."""
    slopes = {encoder: along(rows, "lambda", OF_INPUT[0]) for encoder, rows in models(sweep, "encoder")}
    for way, sign, where in (("falls", -1, "their table 2"), ("rises", 1, "their text")):
        claim = f"The entropy of the inputs' gradients {way} as sparsegen's lambda rises ({where})"
        short = f"importance gets {'sparser' if sign < 0 else 'less sparse'} with attention ({where})"
        for encoder, row in slopes.items():
            low, high = sorted(sign * row[name] for name in ("tau_low", "tau_high"))
            yield Claim(PAPER, short, claim, encoder, verdict(low, high), told(row))


def told(row: pd.Series) -> str:
    """tau-b with lambda -0.87 [...] over 9 lambdas"""
    return (
        f"tau-b with lambda {row['tau']:+.3f} [{row['tau_low']:+.3f}, {row['tau_high']:+.3f}], Spearman "
        f"{row['spearman']:+.3f}, of {row['points']} lambdas in {row['seeds']} seeds"
    )


def less_correlated(sweep: pd.DataFrame) -> Iterator[Claim]:
    """Figure 3: the sparser attention is, the less it agrees with the importance of the inputs."""
    claim = "Attention agrees less with the gradient of the inputs as sparsegen's lambda rises"
    for encoder, rows in models(sweep, "encoder"):
        row = along(rows, "lambda", tau_name(INPUT))
        word = verdict(-row["tau_high"], -row["tau_low"])
        yield Claim(PAPER, "sparser attention agrees less with importance", claim, encoder, word, told(row))


def misled(adversaries: pd.DataFrame) -> Iterator[Claim]:
    """Table 5: with frozen weights other attention costs accuracy, trained anew it does not."""
    of = {
        "attention": (1, f"An adversary whose attention alone learns loses more than {LOSS:g} of accuracy"),
        "all": (-1, f"An adversary that is trained anew loses less than {LOSS:g} of accuracy"),
    }
    changes = changes_of_score(adversaries)
    for trains, (sign, claim) in of.items():
        for _, row in changes[changes["trains"] == trains].iterrows():
            low, high = sorted(-sign * row[name] for name in ("low", "high"))
            word = verdict(low, high, sign * LOSS) if row["jsd"] >= AWAY else "undecided"
            said = f"{row['first']:.3f}, base {row['second']:.3f}: {signed(row)}; mean JSD "
            said += f"{row['jsd']:.2g} nats" + ("" if row["jsd"] >= AWAY else ": it does not attend elsewhere")
            model = f"{title_of(row['encoder'])} + {row['projection']}, lambda {row['lambda']:g}"
            short = "frozen adversaries lose accuracy" if sign > 0 else "adversaries trained anew do not"
            yield Claim(PAPER, short, claim, model, word, said)


def on_the_reason(sweep: pd.DataFrame) -> Iterator[Claim]:
    """Open in the paper: does the support close in on the words that decide?"""
    column = "rationale_support_precision"
    if column not in sweep or sweep[column].isna().all():
        return
    claim = "Open in the paper: more of the support are words that decide the label as sparsegen's lambda rises"
    for encoder, rows in models(sweep, "encoder"):
        row = along(rows, "lambda", column)
        short = "the support closes in on the reason, which the paper leaves open"
        yield Claim(PAPER, short, claim, encoder, verdict(row["tau_low"], row["tau_high"]), told(row))
