"""What Meister et al. (2021) claim, and the evidence on it."""

from collections.abc import Iterable, Iterator
from math import nan

import numpy as np
import pandas as pd

from lib.analysis import difference, excluded_by, group_of, mean_effect, score_difference, witness_of
from lib.analysis.correlation import kendall, share_of_ceiling
from lib.projections import sparsegen_name
from lib.quantity import declare, tau_name, title_of
from papers import published
from papers.claims import Claim, by_model, uniform_attention
from papers.published import printed_effect

KEY = "meister2021"
ENCODERS = ("bilstm", "transformer")  # the paper's
PROJECTIONS = ("softmax", "sparsemax")
# Of published.csv, by what is trained; from all of the base's parameters, as theirs start, only some runs move.
VARIANTS = {"attention": "adversary_frozen", "all": "adversary_unfrozen", "attention from the base": "frozen_from_base"}
CONTROL = "average"  # an encoder without context
MEASURES = {"gradient": "the gradient", "leave_one_out": "leave-one-out"}
TO_HIDDEN, OWN = "inputs_to_states_entropy", "inputs_to_states_own_share"
FACETS = "a state's norm stands for its facets"
PRECISION = "rationale_support_precision"
SLOPE = "kendall_tau_lambda_vs_entropy_of_input_importance"
OF_INPUT = "entropy_of_gradient_of_input"
NOTABLE = 0.06  # tau-b: a smaller difference would not count as a notably stronger correlation
SPARSER = 0.05  # of the entropy of equal importance: our choice of a difference that would matter; the paper names none
AWAY = 0.4  # nats of JSD: an adversary that stays nearer does not attend elsewhere
LOSS = 0.02  # of accuracy: the largest that the paper prints for adversaries that were trained anew
SCOPE = "BiLSTM with additive and Transformer with dot attention"
BOTH = f"{SCOPE}, softmax and sparsemax"
FAR = f"{SCOPE}, softmax: adversaries at a JSD of {AWAY:g} nats or more"
FROZEN, ANEW = "frozen adversaries lose accuracy", "adversaries trained anew lose no accuracy"
FALLS = "importance gets sparser with attention (their table 2)"
MIXED, OTHERS_MORE = "states mix inputs", "a state is mostly of other words"
REASON = "the support closes in on the reason, which the paper leaves open"
BY = {name: f"({words.removeprefix('the ')})" for name, words in MEASURES.items()}
APART = {name: f"inputs and hidden states are not interchangeable {by}" for name, by in BY.items()}
SPREAD = {name: f"sparse attention, importance as spread as ever {by}" for name, by in BY.items()}
AGREES = {name: f"sparser attention agrees less with importance {by}" for name, by in BY.items()}
IMITATES = f"an adversary with lambda 0, which only imitates and must come within {LOSS:g} of the model's accuracy"
AGAINST = {"speaks": "against", "question": "words"}
SHUFFLED = "Lambda shuffled within each seed"


def by_measure(name: str, words: str, figure: str) -> Iterator[Claim]:
    """The three claims that are judged by the gradient and by leave-one-out."""
    yield Claim(
        KEY,
        APART[name],
        f"Attention agrees with {words} of the hidden states more than with {words} of the inputs",
        source=figure,
        kind="direction",
        bound=NOTABLE,
        unit="tau-b",
        scope=BOTH,
        control="An average encoder, with the same zeros, whose states depend on their own word alone: its gap is "
        "subtracted. It speaks for neither side: the importance of a state grows with its weight, so it agrees with "
        "weights in any order; that of an input need not",
        refuted="a gap no larger than where states and inputs are interchangeable",
        sides=("gap of the two tau-b", "average encoder's"),
        proves_little=True,
    )
    yield Claim(
        KEY,
        SPREAD[name],
        f"Sparse attention leaves importance spread: the entropy of {words} of the inputs falls by less than "
        f"{SPARSER:g}",
        source="figure 2",
        kind="at least",
        bound=-SPARSER,
        unit="of the largest entropy",
        scope=SCOPE,
        control="The attention itself, and the average encoder, where sparse attention must make importance sparse: "
        f"where either entropy falls by less than {SPARSER:g} there is no verdict",
        refuted=f"an entropy that is lower by more than {SPARSER:g}",
        sides=("sparsemax", "softmax"),
        **AGAINST,
    )
    yield Claim(
        KEY,
        AGREES[name],
        f"Attention agrees less with {words} of the inputs as sparsegen's lambda rises",
        source="figure 3, of IMDb",
        kind="trend",
        bound=0,
        unit="tau-b",
        scope=SCOPE,
        control=f"{SHUFFLED}; ties: tokens without weight are tied, which alone lowers tau-b, and alone raises its "
        "share of the largest that these ties allow. No verdict where one falls and the other rises in a seed",
        refuted="no trend, or a rising one",
    )


def along(short: str, sentence: str, source: str, control: str, refuted: str, **speaks: str) -> Claim:
    """A claim on what rises along sparsegen's lambda; `sentence` may say that its opposite falls."""
    return Claim(KEY, short, sentence, source, "trend", 0, "tau-b", SCOPE, control, refuted, **speaks)


OTHERS = (
    Claim(
        KEY,
        MIXED,
        "Training makes a hidden state depend on more inputs: their importance to it is more spread than before",
        source="ours, for table 1",
        kind="direction",
        bound=SPARSER,
        unit="of the largest entropy",
        scope=BOTH,
        control="The same model before training: what its architecture spreads by itself is not learned",
        refuted="importance that is less spread than before training",
        sides=("trained", "untrained"),
        **AGAINST,
    ),
    Claim(
        KEY,
        OTHERS_MORE,
        "Most of the importance to a hidden state is that of other words than its own",
        source="ours, for table 1",
        kind="at least",
        bound=0.5,
        unit="of the importance",
        scope=BOTH,
        control="An average encoder has 0. It speaks for neither side: an untrained BiLSTM is beyond the bound too",
        refuted="a state that depends on its own word more than on all others",
        proves_little=True,
    ),
    Claim(
        KEY,
        FACETS,
        "Importance to a state's norm is importance to all of its facets: nearly the same shares of the inputs",
        source="ours, for appendix A, which says it of results",
        kind="little",
        bound=SPARSER,
        unit="of the importance",
        scope=SCOPE,
        control=f"No verdict where the shares by the norm are within {SPARSER:g} of equal ones: any two would agree",
        refuted=f"shares of which more than {SPARSER:g} lie on other inputs",
    ),
    along(
        FALLS,
        "The entropy of the inputs' gradients falls as sparsegen's lambda rises (table 2; by the text it rises)",
        "table 2",
        SHUFFLED,
        "no trend, or a rising one, which the text of section 4 claims",
        **AGAINST | {"speaks": "for"},
    ),
    Claim(
        KEY,
        FROZEN,
        f"An adversary whose attention alone learns loses more than {LOSS:g} of accuracy",
        source="table 5",
        kind="at least",
        bound=LOSS,
        unit="of accuracy",
        scope=FAR,
        control=f"The loss counts beyond that of {IMITATES}",
        refuted=f"a loss of less than {LOSS:g}",
        sides=("imitation", "adversary"),
        speaks="for",
        question="alone",
    ),
    Claim(
        KEY,
        ANEW,
        f"An adversary that is trained anew loses less than {LOSS:g} of accuracy",
        source="table 5",
        kind="at least",
        bound=-LOSS,
        unit="of accuracy",
        scope=FAR,
        control=f"The change counts against {IMITATES}. At the level of the largest class it learned nothing",
        refuted=f"a loss of more than {LOSS:g}",
        sides=("adversary", "imitation"),
        speaks="against",
        question="alone",
    ),
    along(
        REASON,
        "More of the support are words that decide the label as sparsegen's lambda rises",
        "ours",
        f"{SHUFFLED}; a support drawn at random has the same precision at every lambda",
        "no trend, or a falling one",
    ),
)
FIGURES = {"gradient": "figure 1", "leave_one_out": "figure 4"}
CLAIMS = {one.short: one for name in MEASURES for one in by_measure(name, MEASURES[name], FIGURES[name])}
CLAIMS |= {one.short: one for one in OTHERS}


def evidence(
    measured: pd.DataFrame,
    controls: pd.DataFrame,
    before: pd.DataFrame,
    sweep: pd.DataFrame,
    adversaries: pd.DataFrame,
    known: pd.DataFrame,
    known_fast: pd.DataFrame,
    facets: pd.DataFrame,
) -> pd.DataFrame:
    """The rows of EVIDENCE of every claim.

    Args:
        measured: every encoder under softmax and sparsemax, with taus, entropies, TO_HIDDEN and OWN.
        controls: `without_context`, with taus and entropies. before: the models of `measured`, `untrained`, with
            TO_HIDDEN and OWN.
        sweep: every encoder under sparsegen along the column lambda, `with_ceiling`, and with the precision of the
            support where there is a rationale.
        adversaries: rows of `measure_versus_base`, of the bases too, with entropy_of_attention.
        known: `lib.analysis.witnesses` of `measured`. known_fast: of `sweep`, and of the models that are imitated.
        facets: rows of `lib.importance.facets` of models of `measured`.
    """
    theirs = published.table(KEY, str(measured["dataset"].iloc[0]))
    everyone = pd.concat([measured, controls[~controls["encoder"].isin(measured["encoder"])]])
    parts = [
        *not_interchangeable(measured, everyone, known, theirs),
        *contextual(measured, before, known),
        *by_facet(facets, known),
        *no_sparser(measured, everyone, known),
        *along_lambda(sweep, known_fast, theirs),
        *misled(adversaries, known_fast, theirs),
    ]
    return pd.concat(parts, ignore_index=True)


def about(
    known: pd.DataFrame, *groups: pd.DataFrame, attention: bool = True, reasons: Iterable[str] = ()
) -> dict[str, object]:
    """`within`, `witness` and `excluded` of a model; of claims about attention this must not be uniform."""
    uniform = map(uniform_attention, groups) if attention else ()
    found = witness_of(known, *groups, reasons=[*uniform, *reasons])
    return found | {"within": bool(groups[0]["encoder"].isin(ENCODERS).all())}


def of_control(known: pd.DataFrame, everyone: pd.DataFrame) -> str:
    """Why the encoder without context is no control; "" where it is one."""
    why = witness_of(known, everyone[everyone["encoder"] == CONTROL])["excluded"]
    return f"the encoder without context is no control: {why}" if why else ""


def of_models(measured: pd.DataFrame) -> Iterator[tuple[str, dict[str, str], pd.DataFrame]]:
    """(model in words, the columns that select it, its rows) for each encoder and projection."""
    for model, rows in by_model(measured, "encoder", "projection"):
        yield model, {name: rows[name].iloc[0] for name in ("encoder", "projection")}, rows


def not_interchangeable(
    measured: pd.DataFrame, everyone: pd.DataFrame, known: pd.DataFrame, theirs: pd.DataFrame
) -> Iterator[pd.DataFrame]:
    """Figures 1 and 4: the gap between attention's tau with the hidden states and with the inputs."""
    gap = declare("gap_of_taus", "tau-b", bounds=(-2, 2))
    for name, short in APART.items():
        hidden, inputs = (tau_name(("attention", f"{name}_of_{of}")) for of in ("hidden", "input"))
        gaps = everyone.assign(**{gap: everyone[hidden] - everyone[inputs]})
        for model, where, rows in of_models(measured):
            row = difference(gaps, gap, (where, where | {"encoder": CONTROL}), paired=True)
            note = f"tau-b {rows[hidden].mean():.3f} with hidden states, {rows[inputs].mean():.3f} with inputs"
            printed = printed_effect(theirs, hidden, where) - printed_effect(theirs, inputs, where)
            found = about(known, rows, reasons=[of_control(known, everyone)])
            yield CLAIMS[short].compared(model, row, printed=printed, note=note, **found)


def contextual(measured: pd.DataFrame, before: pd.DataFrame, known: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Table 1: how many inputs a hidden state depends on, before training and after, and how much on its own."""
    both = pd.concat([measured.assign(variant="trained"), before.assign(variant="untrained")])
    for model, where, rows in of_models(measured):
        between = tuple(where | {"variant": variant} for variant in ("trained", "untrained"))
        found = about(known, rows, attention=False)
        yield CLAIMS[MIXED].compared(model, difference(both, TO_HIDDEN, between, paired=True), **found)
        others = mean_effect(rows.assign(**{OWN: 1 - rows[OWN]}), OWN)
        note = f"untrained {1 - group_of(before, where)[OWN].mean():.3f}"
        yield CLAIMS[OTHERS_MORE].compared(model, others, note=note, **found)


def by_facet(facets: pd.DataFrame, known: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Appendix A: whether the norm of a state stands for all of its facets."""
    for model, _, rows in of_models(facets):
        uneven = rows["facets_uneven"].mean()
        even = "" if uneven > SPARSER else f"the shares by the norm are within {uneven:.3f} of equal ones"
        found = about(known, rows, attention=False, reasons=[even]) | {"note": f"from equal shares {uneven:.3f}"}
        yield CLAIMS[FACETS].compared(model, mean_effect(rows, "facets_apart"), **found)


def no_sparser(measured: pd.DataFrame, everyone: pd.DataFrame, known: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Figure 2: whether the importance of the inputs is sparser under sparse attention."""
    sides = tuple({"projection": name} for name in reversed(PROJECTIONS))
    for name, short in SPREAD.items():
        for model, rows in by_model(measured, "encoder"):
            falls = {
                "attention": ({"encoder": rows["encoder"].iloc[0]}, "entropy_of_attention"),
                "importance where states are their inputs": ({"encoder": CONTROL}, f"entropy_of_{name}_of_input"),
            }
            falls = {
                what: difference(everyone, entropy, tuple(who | side for side in sides), paired=True)["difference"]
                for what, (who, entropy) in falls.items()
            }
            row = difference(rows, f"entropy_of_{name}_of_input", sides, paired=True)
            unseen = [f"{what} is no sparser under sparsemax" for what, fall in falls.items() if fall > -SPARSER]
            under = (rows[rows["projection"] == projection] for projection in PROJECTIONS)
            found = about(known, *under, reasons=[of_control(known, everyone), *unseen])
            note = ", ".join(f"{what} {fall:+.3f}" for what, fall in falls.items())
            yield CLAIMS[short].compared(model, row, note=f"entropy of {note}", **found)


def along_lambda(sweep: pd.DataFrame, known: pd.DataFrame, theirs: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Table 2, figure 3 and the open question: what rises or falls with sparsegen's lambda, if attention is uneven."""
    every = sweep.groupby("encoder")["lambda"].unique()
    uneven = sweep.groupby(["encoder", "lambda"]).filter(lambda rows: not uniform_attention(rows))
    sweep = pd.concat([uneven, sweep[~sweep["encoder"].isin(uneven["encoder"])]])
    directions = [(FALLS, OF_INPUT, -1, "")]
    for of, short in ((f"{name}_of_input", short) for name, short in AGREES.items()):
        directions.append((short, tau_name(("attention", of)), -1, share_of_ceiling(of)))
    directions += [(REASON, PRECISION, 1, "")] if PRECISION in sweep and sweep[PRECISION].notna().any() else []
    for short, column, sign, share in directions:
        for model, rows in by_model(sweep, "encoder"):
            means, ends = rows.groupby(["seed", "lambda"])[column].mean(), rows.groupby("lambda")[column].mean()
            (first, last), (start, end) = ends.index[[0, -1]], ends.iloc[[0, -1]]
            note = f"{title_of(column)} {start:.3f} at lambda {first:g}, {end:.3f} at {last:g}" if first < last else ""
            if share and note:
                both = rows.groupby("lambda")[share].mean().iloc[[0, -1]]
                note += f"; of the largest that its ties allow {both.iloc[0]:.0%} and {both.iloc[1]:.0%}"
            apart = by_ties(rows, column, share) if share and note else ""
            encoder = rows["encoder"].iloc[0]
            out = ", ".join(f"{one:g}" for one in sorted({*every[encoder]} - {*rows["lambda"]}))
            note += f"; left out, since attention is uniform there: lambda {out}" if out else ""
            printed = sign * printed_effect(theirs, SLOPE, {"encoder": encoder}) if column == OF_INPUT else nan
            made = about_sweep(known, rows, apart) | {"n": rows["instance"].nunique(), "printed": printed, "note": note}
            yield CLAIMS[short].evidence(model, sign * means, **made)


def by_ties(rows: pd.DataFrame, tau: str, share: str) -> str:
    """Why a trend of tau-b may be that of its ties alone, which lower it and raise its share, in a seed; else ""."""
    means = rows.groupby(["seed", "lambda"])[[tau, share]].mean().unstack()
    one, other = (kendall(means[name].columns, means[name].to_numpy()) for name in (tau, share))
    way = "falls" if np.nanmean(one) < 0 else "rises"
    return "" if (one * other > 0).all() else f"tau-b {way}, but not in every seed its share of what ties allow"


def about_sweep(known: pd.DataFrame, rows: pd.DataFrame, *reasons: str) -> dict[str, object]:
    """`about` of the models of a sweep: attention must not be uniform at every lambda."""
    uniform = uniform_attention(rows[rows["lambda"] == rows.groupby("lambda")["entropy_of_attention"].mean().idxmin()])
    named = rows.assign(projection=rows["lambda"].map(sparsegen_name))
    return about(known, named, attention=False, reasons=[uniform, *reasons])


def misled(adversaries: pd.DataFrame, known: pd.DataFrame, theirs: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Table 5: with frozen weights other attention costs accuracy, trained anew it does not.

    Runs fall into those that moved and those that stayed; only the first are judged, unless none moved.
    """
    for _, some in adversaries[adversaries["lambda"] > 0].groupby(["trains", "encoder", "projection", "lambda"]):
        first = some.iloc[0]
        same = adversaries[(adversaries[["encoder", "projection"]] == first[["encoder", "projection"]]).all(axis=1)]
        imitation = same[(same["lambda"] == 0) & (same["trains"] == first["trains"])].assign(variant="imitation")
        base = same[same["variant"] == "base"]
        jsd = some.groupby("seed")["jsd"].mean()
        far = jsd.index[jsd >= AWAY] if (jsd >= AWAY).any() else jsd.index
        parts = [rows[rows["seed"].isin(far)] for rows in (some, imitation, base)]
        note = f"{(jsd >= AWAY).sum()} of {len(jsd)} runs attend elsewhere"
        yield price(*parts, about(known, base) | {"note": note}, theirs)


def price(
    some: pd.DataFrame, imitation: pd.DataFrame, base: pd.DataFrame, found: dict, theirs: pd.DataFrame
) -> pd.DataFrame:
    """The evidence of one adversary: its accuracy against that of the one that only imitates."""
    first, frozen = some.iloc[0], some["trains"].iloc[0] != "all"
    between = [{"variant": "adversary"}, {"variant": "imitation"}]
    row = score_difference(pd.concat([some, imitation]), "accuracy", between[::-1] if frozen else between, test=False)
    found["excluded"] = excluded_by(found["excluded"], *failures(some, imitation, base, frozen))
    model = f"{title_of(first['encoder'])} + {first['projection']}, lambda {first['lambda']:g}"
    model += ", from the base" if "base" in first["trains"] else ""
    names = "base", f"adversary_{'frozen' if frozen else 'unfrozen'}"
    sides = [{"encoder": first["encoder"], "variant": name} for name in names]
    printed = printed_effect(theirs, "accuracy", *(sides if frozen else sides[::-1]))
    found["note"] += f", mean JSD {some['jsd'].mean():.2g} nats; model {accuracy(base):.3f}"
    found["printed"] = printed if first["projection"] == "softmax" else nan
    return CLAIMS[FROZEN if frozen else ANEW].compared(model, row, **found)


def failures(some: pd.DataFrame, imitation: pd.DataFrame, base: pd.DataFrame, frozen: bool) -> Iterator[str]:
    """Why an adversary is no witness; one seed's imitation that failed is enough."""
    for seed, rows in imitation.groupby("seed"):
        if (reached := accuracy(rows)) < (own := accuracy(base[base["seed"] == seed])) - LOSS:
            yield f"imitation alone reaches {reached:.3f}, the model {own:.3f}, in seed {seed}"
    whose = {"its": some, "the imitation's": imitation}
    yield from (f"{name} loss did not converge" for name, rows in whose.items() if not rows["converged"].all())
    if some["jsd"].mean() < AWAY:
        yield f"it does not attend elsewhere: mean JSD {some['jsd'].mean():.2g} nats"
    largest, own = some["label"].value_counts(normalize=True).max(), accuracy(some)
    if not frozen and own <= largest + 1.96 * np.sqrt(largest * (1 - largest) / some["instance"].nunique()):
        yield f"its accuracy, {own:.3f}, is not above the largest class, {largest:.3f}"


def accuracy(rows: pd.DataFrame) -> float:
    """The share of the rows that are predicted right."""
    return float((rows["label"] == rows["prediction"]).mean())
