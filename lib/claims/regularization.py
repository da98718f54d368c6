"""The claims of Tutek & Snajder (2020)."""

from collections.abc import Callable, Iterator
from functools import partial

import pandas as pd

from lib.analysis import difference, fragility_difference, score_difference
from lib.analysis.statistics import t_interval
from lib.analysis.word_states import NAME, SAMPLES, information_difference
from lib.claims.claim import Claim, signed, verdict
from lib.quantity import title_of

PAPER = "tutek2020"
RECOMMENDED = ("tying", "mlm")
REGULARIZERS = ("residual", *RECOMMENDED)  # residual is the paper's best case of information; it claims no more of it
ON_PAR = 0.02  # of F1: the paper's own largest loss with the variants that it recommends, on all but one dataset
UNIFORM = 0.95  # of the entropy of equal weights: from here on attention counts as uniform


def regularization_claims(
    measured: pd.DataFrame, information: pd.DataFrame, prices: pd.DataFrame, deeper: pd.DataFrame, starts: pd.DataFrame
) -> list[Claim]:
    """Each claim with its verdict.

    Args:
        measured: every variant of one layer, measured with substituted attention and token_probability_mean, with the
            rationale's average precision where there is one.
        information: rows of lib.analysis.information. prices: rows of lib.analysis.price_difference.
        deeper: the base with one layer and with the most layers. starts: rows of `evenness`.
    """
    return [
        *fragile(measured),
        *on_par(measured),
        *informed(information),
        *costly(prices),
        *grounded(measured),
        *robust_by_depth(deeper),
        *collapses(starts),
        *on_the_rationale(measured),
    ]


def against_base(measured: pd.DataFrame, names: tuple[str, ...] = RECOMMENDED) -> Iterator[tuple[str, tuple]]:
    """(model in words, (the variant, the base)) for each variant and attention that was measured."""
    for attention in measured["attention"].unique():
        known = set(measured.loc[measured["attention"] == attention, "variant"])
        for name in names:
            if {name, "base"} <= known:
                pair = tuple({"attention": attention, "variant": variant} for variant in (name, "base"))
                yield f"{title_of(name)} + {title_of(attention)}", pair


def told(row: pd.Series) -> str:
    """F1 (fraction): 0.830, base 0.842; difference -0.012 [-0.020, -0.004]"""
    return (
        f"{title_of(row['quantity'])} ({row['unit']}): {row['first']:.3f}, base {row['second']:.3f}; "
        f"difference {signed(row)}"
    )


def beyond_freezing(measured: pd.DataFrame, between: tuple[dict, dict], compare: Callable) -> str:
    """The same difference to the base whose embeddings do not learn either, where it was measured."""
    frozen = between[1] | {"variant": "frozen"}
    rows = measured[(measured["attention"] == frozen["attention"]) & (measured["variant"] == "frozen")]
    return (
        f"; to the base with frozen embeddings {signed(compare(measured, (between[0], frozen)))}" if len(rows) else ""
    )


def fragile(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 4.1: with attention permuted, regularised models lose more F1."""
    claim = "It loses more F1 than the base when its attention is permuted"

    def compare(rows: pd.DataFrame, pair: tuple[dict, dict]) -> pd.Series:
        return fragility_difference(rows, pair, ["f1_drop_permuted"]).iloc[0]

    for model, between in against_base(measured):
        row = compare(measured, between)
        said = told(row) + beyond_freezing(measured, between, compare)
        yield Claim(PAPER, "attention matters more", claim, model, verdict(-row["high"], -row["low"]), said)


def on_par(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 4.1: they classify about as well."""
    claim = f"It classifies about as well as the base: less than {ON_PAR:g} below in F1"
    for model, between in against_base(measured):
        row = score_difference(measured, "f1", between)
        yield Claim(PAPER, "without a loss", claim, model, verdict(row["low"], row["high"], -ON_PAR), told(row))


def informed(information: pd.DataFrame) -> Iterator[Claim]:
    """Section 4.2: their hidden states tell more about the words."""
    claim = "Its hidden states share more information with their words than the base's"
    for name in REGULARIZERS:
        row = information_difference(information, NAME + SAMPLES[0], (name, "base"))
        said = told(row) + f", above what shuffled labels give, over {row['seeds'][0]} seeds"
        yield Claim(PAPER, "words are kept", claim, title_of(name), verdict(row["low"], row["high"]), said)


def costly(prices: pd.DataFrame) -> Iterator[Claim]:
    """Section 4.3: an imitation of theirs pays more in its predictions for the same distance."""
    claim = "A trained adversary pays more TVD for the same JSD than with the base"
    for _, row in prices.iterrows():
        said = f"TVD at equal JSD ({row['from']:.2f} to {row['to']:.2f} nats): {signed(row)} over the texts of one seed"
        if not row["to"] > row["from"]:
            said = "one value of lambda makes no curve" if row["points"] < 2 else "the two curves share no JSD"
        model = title_of(row["variant"])
        yield Claim(PAPER, "adversaries are harder to find", claim, model, verdict(row["low"], row["high"]), said)


def grounded(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 5: most of their tokens alone decide less."""
    claim = "Its tokens, each read alone, are less sure of the prediction than the base's"
    right = measured[measured["label"] == measured["prediction"]]
    compare = partial(paired_difference, quantity="token_probability_mean")
    for model, between in against_base(right):
        row = compare(right, between)
        said = told(row) + beyond_freezing(right, between, compare)
        yield Claim(PAPER, "neutral words stay neutral", claim, model, verdict(-row["high"], -row["low"]), said)


def paired_difference(measured: pd.DataFrame, between: tuple[dict, dict], quantity: str) -> pd.Series:
    return difference(measured, quantity, between, paired=True)


def robust_by_depth(deeper: pd.DataFrame) -> Iterator[Claim]:
    """Appendix B: the more layers, the less the base loses."""
    fewest, most = deeper["layers"].min(), deeper["layers"].max()
    if fewest == most:
        return
    between = tuple({"variant": "base", "layers": layers} for layers in (most, fewest))
    row = fragility_difference(deeper, between, ["f1_drop_permuted"]).iloc[0]
    claim = f"With {most} layers the base loses less F1 to permuted attention than with {fewest}"
    said = told(row).replace(", base", f", {fewest} layer")
    yield Claim(PAPER, "depth makes attention matter less", claim, "base", verdict(row["low"], row["high"]), said)


def evenness(histories: dict[tuple[str, int], tuple[dict, ...]]) -> pd.DataFrame:
    """The attention's entropy on dev at the last epoch, a row for each start of the query and seed."""
    rows = [
        {"start": start, "seed": seed, "entropy": history[-1]["dev_attention_entropy"]}
        for (start, seed), history in histories.items()
    ]
    return pd.DataFrame(rows)


def collapses(starts: pd.DataFrame) -> Iterator[Claim]:
    """Appendix C: dot attention stays uniform under the framework's default initialisation, not under N(0, 1)."""
    for start, claim, sign in (
        ("default", "Dot attention with the default initialisation of its query ends up uniform", 1),
        ("normal", "Dot attention with a query from N(0, 1) does not", -1),
    ):
        values = starts.loc[starts["start"] == start, "entropy"].to_numpy()
        low, high = sorted(sign * bound for bound in t_interval(values))
        said = (
            f"entropy as a share of that of equal weights: {values.mean():.3f} over {len(values)} seeds; it counts as "
            f"uniform from {UNIFORM:g}"
        )
        word = verdict(low, high, sign * UNIFORM)
        yield Claim(PAPER, "initialisation decides", claim, f"dot, {start}", word, said)


def on_the_rationale(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 6, the paper's open question: does attention come onto the words that people name?"""
    column = "rationale_average_precision_attention"
    if column not in measured or measured[column].isna().all():
        return
    claim = "Open in the paper: its attention ranks the words that decide the label higher than the base's does"
    compare = partial(paired_difference, quantity=column)
    for model, between in against_base(measured, REGULARIZERS):
        row = compare(measured, between)
        said = told(row) + beyond_freezing(measured, between, compare)
        short = "attention comes onto the reason, which the paper leaves open"
        yield Claim(PAPER, short, claim, model, verdict(row["low"], row["high"]), said)
