"""The claims of Jain & Wallace (2019), and the evidence on them; the paper itself is papers.correlation."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

import pandas as pd

from lib import analysis, models
from lib.analysis import difference, mean_effect, witness_of
from lib.analysis.statistics import weighted_mean, weighted_median
from lib.analysis.summarising import configurations, rows_where
from lib.quantity import CHANGE_BOUNDS, declare, tau_name, title_of
from papers.claims import UNIFORM, Claim, adversary_of, uniform_attention
from papers.published import printed_effect

KEY = "jain2019"
GRADIENT = ("attention", "gradient_times_input")
LEAVE_ONE_OUT = ("attention", "leave_one_out_of_input")
EACH_OTHER = ("gradient_times_input", "leave_one_out_of_input")
BY_NORM = ("gradient_of_input", "leave_one_out_of_input")
MEASURES = ("attention_times_norm", "attention_times_contribution", "gradient_times_input")  # beside attention
SMALL_CHANGE = 0.05  # of the probability: the bound within which Jain & Wallace's adversary counts as unchanged
RECURRENT = "BiLSTM encoders, as the paper's two findings; a model of your own is judged as one"
CONTRASTED = (
    "the average encoder beside the BiLSTM with the same attention, in pairs of one seed; the convolution, which the "
    "paper expects between the two, is shown as contrast"
)
SIMPLER = ("average", "conv")  # encoders that are held against the BiLSTM, the claims' own first
VIOLATION = "the most attended token speaks for the prediction, beyond chance"
NO_WITNESS = "A model that learned nothing, or whose attention is nearly uniform, gives no verdict."

CLAIMS = {
    claim.short: claim
    for claim in (
        Claim(
            KEY,
            "attention correlates weakly",
            "Attention agrees less with gradient × input than gradient × input does with leave-one-out",
            "section 4.1",
            "direction",
            0.05,
            "tau-b",
            RECURRENT,
            "A part of the gap is built in, as gradient × input is the first-order guess of leave-one-out: the next "
            f"claim takes a gradient that is none. {NO_WITNESS}",
            "attention that agrees with gradient × input as well as leave-one-out does",
            ("gradient × input with leave-one-out", "attention with gradient × input"),
            speaks="against",
            question="ranks",
            refuted_by_none=True,
        ),
        Claim(
            KEY,
            "attention correlates weakly, by another gradient",
            "Attention agrees less with leave-one-out than the norm of the gradient does",
            "ours, for section 4.1",
            "direction",
            0.05,
            "tau-b",
            RECURRENT,
            f"The norm of the gradient is no guess of leave-one-out, so no gap is built in. {NO_WITNESS}",
            "attention that agrees with leave-one-out as well as the norm of the gradient does",
            ("norm of the gradient with leave-one-out", "attention with leave-one-out"),
            speaks="against",
            question="ranks",
            refuted_by_none=True,
        ),
        Claim(
            KEY,
            "a simple encoder's attention correlates more",
            "The simple encoder's attention agrees more with gradient × input than the BiLSTM's",
            "introduction, section 4.1",
            "direction",
            0.05,
            "tau-b",
            CONTRASTED,
            "It speaks for neither side: untrained models support it, as a state of the average encoder is its word's "
            "alone, so that attention is a factor of gradient × input. The next claim subtracts what chance gives.",
            "a BiLSTM whose attention agrees as much or more",
            ("simple encoder", "BiLSTM"),
            proves_little=True,
        ),
        Claim(
            KEY,
            "a simple encoder's attention correlates more, beyond chance",
            "The simple encoder's attention agrees more with gradient × input than the BiLSTM's, beyond chance",
            "ours, for section 4.1",
            "direction",
            0.05,
            "tau-b",
            CONTRASTED,
            "Gradient × input has the weight of the token as a factor, and so agrees with any attention: with one that "
            "is shuffled among the tokens and imposed too, most of all in the average encoder, where a state is its "
            "word's alone. Each tau is less that of the shuffled attention: attention by chance gives a difference of "
            "0. No verdict where of what chance leaves, up to 1, the other reaches more.",
            "a BiLSTM whose attention agrees as much or more, beyond chance",
            ("simple encoder, less chance", "BiLSTM, less chance"),
        ),
        Claim(
            KEY,
            "permuting it changes little",
            "Permuting the attention hardly changes the prediction of most texts",
            "section 4.2.1",
            "little",
            SMALL_CHANGE,
            "TVD in the median text",
            RECURRENT,
            f"Permuting equal weights changes nothing: texts whose attention has an entropy above {UNIFORM} of that of "
            "equal weights do not count. It speaks for neither side: permuting weights that chance has placed changes "
            f"as much on made-up reviews, see the next claim. {NO_WITNESS}",
            "a change beyond the bound in most texts: the effect is the median over the texts",
            proves_little=True,
        ),
        Claim(
            KEY,
            "permuting it changes more than by chance",
            "Permuting the attention changes the prediction more than permuting weights that chance has placed",
            "ours, for section 4.2.1",
            "direction",
            0.05,
            "of the largest change",
            RECURRENT,
            "Permuting moves any uneven attention. So both are shares of the largest change that all weight on one "
            "token gives, and the model's is held against that of the same weights shuffled among the tokens before: "
            "attention by chance gives a difference of 0.",
            "permuting that changes no more than by chance",
            ("the model's", "by chance"),
            speaks="for",
            question="needed",
            refuted_by_none=True,
        ),
        Claim(
            KEY,
            "permuting a simple encoder's changes more",
            "Permuting the attention changes the simple encoder's prediction more than the BiLSTM's",
            "introduction, finding 2",
            "direction",
            0.02,
            "TVD",
            CONTRASTED,
            "It speaks for neither side: weights that chance has placed, permuted, move the average encoder more too.",
            "a BiLSTM that permuting changes as much or more",
            ("simple encoder", "BiLSTM"),
            proves_little=True,
        ),
        Claim(
            KEY,
            "an adversary gets as far as by chance",
            "Other attention with the same prediction gets about as far from the model's own as it would by chance",
            "ours, for section 4.2.2",
            "little",
            0.05,
            "of the largest JSD",
            RECURRENT,
            "That there is an adversary proves nothing: by random logits nearly every text of many tokens has one too, "
            "and it gets nearly as far as any attention can. So the question is whether the model's own attention "
            "holds it back: it is compared with the adversary of the same weights shuffled among the tokens. Random "
            "logits give a difference of 0, and support the claim: it speaks for neither side.",
            "an adversary that stays nearer than the one by chance: attention is where the prediction depends on it",
            ("the model's", "by chance"),
            proves_little=True,
        ),
        Claim(
            KEY,
            "a simple encoder leaves an adversary less room",
            "The adversary of the simple encoder gets less far, beyond chance, than the BiLSTM's",
            "ours, for finding 2 of the introduction",
            "direction",
            0.05,
            "of the largest JSD",
            CONTRASTED,
            "Either adversary is held against that of its own shuffled weights; random logits give a difference of 0.",
            "a BiLSTM whose adversary gets no farther",
            ("BiLSTM, less chance", "simple encoder, less chance"),
        ),
        Claim(
            KEY,
            VIOLATION,
            "The most attended token, not one at random, is evidence for the prediction more often than by chance",
            "ours, after Liu et al. 2022",
            "direction",
            0.05,
            "of the texts",
            RECURRENT,
            "A token is evidence against where removing it raises the predicted class's probability. The most attended "
            "one has the most say in any prediction: how much less often it is against than a random one is held "
            f"against the same where the model reads by attention that is shuffled among the tokens. {NO_WITNESS}",
            "a most attended token that speaks for the prediction no more than shuffled attention's",
            ("the model's", "by chance"),
            speaks="for",
            question="matters",
            refuted_by_none=True,
        ),
    )
}
SEARCH = "adversary_gradient_jsd"
GAP = declare("violation_gap", "fraction", "faithfulness violation / random less attention", CHANGE_BOUNDS)
BEYOND = declare("violation_beyond_chance", "fraction", f"{title_of(GAP)}, less chance", (-2, 2))
# Of a claim on single models the column of its effect, the two that it compares (if so), and the mean over the texts
SINGLE = {
    "attention correlates weakly": ("gap_to_gradient", (tau_name(EACH_OTHER), tau_name(GRADIENT)), weighted_mean),
    "attention correlates weakly, by another gradient": (
        "gap_to_norm",
        (tau_name(BY_NORM), tau_name(LEAVE_ONE_OUT)),
        weighted_mean,
    ),
    "permuting it changes little": ("permutation_of_uneven", (), weighted_median),
    "permuting it changes more than by chance": (
        "permutation_beyond_chance",
        ("permutation_share", "permutation_share_by_chance"),
        weighted_mean,
    ),
    "an adversary gets as far as by chance": (
        "adversary_beyond_chance",
        ("adversary_share", "chance_share"),
        weighted_mean,
    ),
    VIOLATION: (BEYOND, (GAP, "violation_by_chance"), weighted_mean),
}
# Of a claim on two encoders the column, and whether the simple encoder's is claimed to be the larger
BETWEEN = {
    "a simple encoder's attention correlates more": (tau_name(GRADIENT), True),
    "a simple encoder's attention correlates more, beyond chance": ("agreement_beyond_chance", True),
    "permuting a simple encoder's changes more": ("permutation", True),
    "a simple encoder leaves an adversary less room": ("adversary_beyond_chance", False),
}


def with_gaps(instances: pd.DataFrame) -> pd.DataFrame:
    """The instances with how much less attention agrees than other measures do: differences of taus (tau-b).

    gap_to_gradient         gradient × input / leave-one-out less attention / gradient × input
    gap_to_leave_one_out    gradient × input / leave-one-out less attention / leave-one-out
    gap_to_norm             norm of the gradient / leave-one-out less attention / leave-one-out
    agreement_beyond_chance    attention / gradient × input less agreement_by_chance
    """
    taus = {pair: instances[tau_name(pair)] for pair in (GRADIENT, LEAVE_ONE_OUT, EACH_OTHER, BY_NORM)}
    gaps = {
        "gap_to_gradient": (EACH_OTHER, GRADIENT),
        "gap_to_leave_one_out": (EACH_OTHER, LEAVE_ONE_OUT),
        "gap_to_norm": (BY_NORM, LEAVE_ONE_OUT),
    }
    titles = {name: " less ".join(title_of(tau_name(pair)) for pair in pairs) for name, pairs in gaps.items()}
    found = {name: taus[one] - taus[less] for name, (one, less) in gaps.items()}
    titles["agreement_beyond_chance"] = f"{title_of(tau_name(GRADIENT))} less that by chance"
    found["agreement_beyond_chance"] = taus[GRADIENT] - instances["agreement_by_chance"]
    return instances.assign(**{declare(name, "tau-b", titles[name], (-2, 2)): one for name, one in found.items()})


def with_violation_gaps(instances: pd.DataFrame) -> pd.DataFrame:
    """`lib.analysis.with_violations` of attention and MEASURES, and random less attention, as it is and beyond chance.

    The columns violation_gap, and violation_beyond_chance: it less `violation_by_chance`.
    """
    found = analysis.with_violations(instances, ("attention", *MEASURES))
    gap = found["violation_random"] - found["violation_attention"]
    return found.assign(**{GAP: gap, BEYOND: gap - found["violation_by_chance"]})


def with_shares(instances: pd.DataFrame) -> pd.DataFrame:
    """The instances with what permuting and the adversary do, as fractions; NaN where a text says nothing about it.

    permutation_of_uneven    `permutation`, of texts whose attention is not uniform
    permutation_share        of the largest change, of these texts
    permutation_beyond_chance        it less permutation_share_by_chance
    adversary_share, chance_share    JSD of the adversary, and of the one by chance, of the largest that there is
    search_share             the same of the gradient search, where the adversary is the exact optimum
    adversary_beyond_chance          the one less the other

    Needs `permutation`, `largest_change`, permutation_share_by_chance, the adversary (`adversary_of`), the one by
    chance, `largest_jsd`, and entropy_of_attention.
    """
    jsd, most = adversary_of(instances), instances["largest_jsd"].where(instances["length"] > 1)
    uneven, change = instances["entropy_of_attention"] <= UNIFORM, instances["largest_change"]
    own, chance = (instances[name] / most for name in (jsd, by_chance_of(jsd)))
    share = (instances["permutation"] / change).where(uneven & (change > 0))
    columns = {
        "permutation_of_uneven": instances["permutation"].where(uneven),
        "permutation_share": share,
        "permutation_beyond_chance": share - instances["permutation_share_by_chance"],
        "adversary_share": own,
        "chance_share": chance,
        "adversary_beyond_chance": own - chance,
    }
    columns |= {"search_share": instances[SEARCH] / most} if jsd != SEARCH and SEARCH in instances else {}
    return instances.assign(**{declare(name, "fraction", *TITLES[name]): one for name, one in columns.items()})


TITLES = {  # and bounds, where a difference has others
    "permutation_of_uneven": ("permutation, where attention is not uniform",),
    "permutation_share": ("permutation, share of the largest change",),
    "permutation_beyond_chance": ("permutation less that by chance", (-1, 1)),
    "adversary_share": ("adversary, share of the largest JSD",),
    "search_share": ("gradient search, share of the largest JSD",),
    "chance_share": ("adversary by chance, share of the largest JSD",),
    "adversary_beyond_chance": ("adversary less the one by chance", (-1, 1)),
}


def by_chance_of(jsd: str) -> str:
    """The column of the adversary by chance that belongs to an adversary's: adversary_exact_jsd."""
    return jsd.replace("_jsd", "_by_chance")


def evidence(
    instances: pd.DataFrame, witnesses: pd.DataFrame, shares: pd.DataFrame, theirs: pd.DataFrame
) -> pd.DataFrame:
    """What each claim is judged by: rows of EVIDENCE.

    Args:
        instances: with `with_gaps`, `with_violation_gaps` and `with_shares`. witnesses: of `lib.analysis.witnesses`.
        shares: of `lib.analysis.significance` of GRADIENT and LEAVE_ONE_OUT, with the column quantity.
        theirs: the published values of the dataset.
    """
    rows = []
    for short, (column, sides, middle) in SINGLE.items():
        for key, group in configurations(instances):
            of_model = {name: key[name] for name in ("encoder", "attention")}
            row = mean_effect(group, column, middle=middle).to_dict()
            counted = group[group[column].notna()].groupby("seed")
            means = [counted[side].mean().to_dict() for side in sides]
            row |= dict(zip(("first", "second"), means, strict=False))
            more = {"within": recurrent(key["encoder"]), "note": note_of(short, group, shares, of_model)}
            if short == "attention correlates weakly":
                one, less = (printed_effect(theirs, tau_name(pair), of_model) for pair in (EACH_OTHER, GRADIENT))
                more["printed"] = one - less
            model = " + ".join(map(title_of, filter(None, of_model.values())))
            rows.append(CLAIMS[short].compared(model, row, **more, **known_of(witnesses, group)))
    for short, simple in product(BETWEEN, SIMPLER):
        rows += list(contrasts(instances, witnesses, theirs, short, simple))
    order = list(CLAIMS)
    found = pd.concat(rows, ignore_index=True)
    return found.sort_values("short", key=lambda names: names.map(order.index), kind="stable", ignore_index=True)


def contrasts(
    instances: pd.DataFrame, witnesses: pd.DataFrame, theirs: pd.DataFrame, short: str, simple: str
) -> Iterator[pd.DataFrame]:
    """The rows of one claim on a simple encoder and the BiLSTM, for each attention that both have."""
    column, larger = BETWEEN[short]
    pair = (simple, "bilstm") if larger else ("bilstm", simple)
    claimed, other = simple == SIMPLER[0], f", {title_of(simple)}"
    for attention, rows in instances.groupby("attention", sort=False):
        groups = [rows[rows["encoder"] == encoder] for encoder in pair]
        if any(group[column].isna().all() for group in groups):
            continue
        of_pair = [{"encoder": encoder, "attention": attention} for encoder in pair]
        row = difference(rows, column, tuple(of_pair), paired=True)
        model = title_of(attention) + ("" if claimed else other)
        note, turned = agreement_of(groups) if column == "agreement_beyond_chance" else ("", "")
        more = {"within": claimed, "note": note, "printed": printed_effect(theirs, column, *of_pair)}
        yield CLAIMS[short].compared(model, row, **more, **known_of(witnesses, *groups, reasons=[turned]))


def agreement_of(groups: list[pd.DataFrame]) -> tuple[str, str]:
    """The taus of attention and gradient × input of two encoders, and those by chance, in words.

    And why they allow no verdict: of what chance leaves, from its tau to 1, the other encoder reaches the larger share.
    """
    means = [(group[tau_name(GRADIENT)].mean(), group["agreement_by_chance"].mean()) for group in groups]
    names = [title_of(group["encoder"].iloc[0]) for group in groups]
    beyond, shares = zip(*((own - chance, (own - chance) / (1 - chance)) for own, chance in means), strict=True)
    parts = [f"{name} {own:.3f}, by chance {chance:.3f}" for name, (own, chance) in zip(names, means, strict=True)]
    reached = ", ".join(f"{name} {share:.0%}" for name, share in zip(names, shares, strict=True))
    turned = (beyond[0] - beyond[1]) * (shares[0] - shares[1]) < 0
    return "; ".join(parts), f"of what chance leaves it is the other way round: {reached}" if turned else ""


def recurrent(encoder: str) -> bool:
    """Whether the paper's findings are about an encoder: a BiLSTM, or a model of your own, which is judged as one."""
    return encoder == "bilstm" or encoder not in models.ENCODERS


def known_of(witnesses: pd.DataFrame, *groups: pd.DataFrame, reasons: Iterable[str] = ()) -> dict[str, str]:
    """`witness` of models, and `excluded`: what they learned, uniform attention, or other reasons for no verdict."""
    even = [uniform_attention(group, f"the {title_of(group['encoder'].iloc[0])}'s") for group in groups]
    return witness_of(witnesses, *groups, reasons=[*even, *reasons])


def note_of(short: str, group: pd.DataFrame, shares: pd.DataFrame, of_model: Mapping[str, str]) -> str:
    """What stands beside the effect of one model: shares of texts, or the JSDs."""
    if short.startswith("attention"):
        pair = GRADIENT if short == "attention correlates weakly" else LEAVE_ONE_OUT
        row = rows_where(shares, {"quantity": tau_name(pair), **of_model}).iloc[0]
        found, chance = (f"{row[name]:.0%}" for name in ("significant", "significant_null"))
        shown = f"{title_of(tau_name(pair))} has p ≤ .05 in {found} of the texts, {chance} by chance"
        by_chance = f"; the tau of shuffled attention is {group['agreement_by_chance'].mean():.3f}"
        return shown + (by_chance if pair == GRADIENT else "")
    if short == VIOLATION:
        names = {"a random token": "violation_random", "the most attended": "violation_attention"}
        names |= {f"the top by {title_of(name)}": f"violation_{name}" for name in MEASURES}
        means = [f"{name} {group[column].mean():.3f}" for name, column in names.items() if column in group]
        return f"against the prediction: {', '.join(means)}"
    if short == "an adversary gets as far as by chance":
        names = {"exact optimum": "adversary_exact_jsd", "search": SEARCH}
        names |= {"by chance": by_chance_of(adversary_of(group)), "at most": "largest_jsd"}
        means = [f"{name} {group[column].mean():.3f}" for name, column in names.items() if column in group]
        return f"JSD in nats: {', '.join(means)}"
    counted = group["permutation_of_uneven"].notna().mean()
    return f"{counted:.0%} of the texts count" if counted < 1 else ""
