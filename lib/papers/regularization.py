"""Tutek & Snajder (2020)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import pandas as pd

from lib.analysis import difference, fragility_difference, score_difference
from lib.analysis.statistics import t_interval
from lib.analysis.word_states import NAME, SAMPLES, information_difference
from lib.models import ATTENTIONS as KINDS_OF_ATTENTION
from lib.papers.claim import Claim, compared, signed, verdict
from lib.papers.paper import Paper
from lib.papers.settings import Settings, setting
from lib.quantity import declare, title_of
from lib.training import Run
from lib.training.runs import REGULARIZED

KEY = "tutek2020"

# Runs

# In `paper` what the paper tries; its text does not say which eta goes with which dataset. In `quick` smaller deltas,
# since made-up words have random vectors, far longer than hidden states can be (in-domain word2vec is too, but less).
DELTAS = {"quick": (0.01, 0.1, 1.0), "paper": (1.0, 10.0, 20.0, 30.0)}
ETAS = {"quick": (0.1, 1.0), "paper": (0.1, 0.3, 1.0, 3.0, 5.0)}
DELTA, ETA = 10.0, 1.0  # where no other was chosen on dev
ATTENTIONS = {"quick": ("additive",), "paper": ("additive", "dot")}  # dot's query start is shown in both
WORDS = {"quick": 100, "paper": 1000}  # whose states are clustered, and into as many clusters
LAYERS = {"quick": (2,), "paper": (2, 3)}
SIDE_SEEDS = {"quick": 1, "paper": None}  # of the deeper models and of dot's query start; None: all
LAYERED = {"quick": ("base", "tying"), "paper": ("base", "concat", "tying", "mlm")}
IMITATED = {"quick": ("base", "tying"), "paper": ("base", "concat", "residual", "tying", "mlm")}
ADVERSARY_EPOCHS = {"quick": None, "paper": 10}  # the paper does not say how long it trains; None: the profile's
# Of the adversary, whose divergence is bounded here (Eq. 6); the paper gives none.
# With lambda 0 it only imitates: the cost of imitation alone.
LAMBDAS = {"quick": (0.0, 0.05, 0.2), "paper": (0.0, 0.02, 0.05, 0.1, 0.2)}


# Of adversaries that imitate a model under a bounded divergence: TVD of Eq. 7, over both classes, and JSD of Eq. 8.
AIM = {"divergence": "jsd", "tvd": "full"}
OF_THE_BASE = ("delta", "eta", "epochs", "patience")  # its own objective, and when it ends


@dataclass(frozen=True)
class RegularizationSettings(Settings):
    """Beside those of every notebook.

    attentions                   none: the profile's
    delta, eta                   weights of tying and of the masked language model; 0: the notebook takes dev's choice
    frozen                       the variants whose embeddings do not learn
    lambdas, imitation_epochs    of the trained adversaries, and most epochs; none or 0: the profile's
    layers                       of the deeper models, beyond the one of all others; none: the profile's
    words                        whose states are clustered, and into as many clusters; 0: as many as the profile has
    """

    attentions: tuple[str, ...] = setting(allowed=KINDS_OF_ATTENTION)
    delta: float = 0.0
    eta: float = 0.0
    frozen: tuple[str, ...] = setting(("residual", "tying", "mlm"), allowed=REGULARIZED, may_be_empty=True, alters=True)
    lambdas: tuple[float, ...] = ()
    imitation_epochs: int = 0
    layers: tuple[int, ...] = setting(least=1)
    words: int = 0
    embedding_labels: str = setting("clusters", allowed=("clusters", "words"), alters=True)

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "attentions", self.attentions or ATTENTIONS[self.profile])


def imitation(base: Run, strength: float, epochs: int | None) -> Run:
    """The adversary of a model: built as it is, trained by Eq. 6 alone, and ended by its own rule.

    Args:
        strength: lambda. epochs: the most of them; None: the profile's.
    """
    options = {name: value for name, value in base.options if name not in OF_THE_BASE}
    options |= AIM | {"lambda": strength} | ({"epochs": epochs} if epochs else {})
    return replace(base, variant="adversary", base=base, options=tuple(options.items()))


def variant(settings: Settings, name: str, attention: str, seed: int, layers: int = 1) -> Run:
    """One model of the paper: the base, or one that is to keep its words."""
    options = {"tying": {"delta": settings.delta or DELTA}, "mlm": {"eta": settings.eta or ETA}}.get(name, {})
    if name in settings.frozen:
        options["embeddings"] = "frozen"
    made = settings.run("bilstm", attention, seed, variant=name, layers=layers, recipe="tutek2020")
    return replace(made, options=tuple(options.items()))


def variants(settings: Settings) -> list[Run]:
    """Table 1: every variant with every attention; `frozen`, not in the paper, shows what freezing alone does."""
    seeds = settings.seeds_or()
    parts = product(settings.attentions, REGULARIZED, seeds)
    return [variant(settings, name, attention, seed) for attention, name, seed in parts]


def first_of(settings: Settings, name: str, **options) -> Run:
    """A variant with the first attention and the first seed."""
    return variant(replace(settings, **options), name, settings.attentions[0], settings.seeds_or()[0])


def delta_sweep(settings: Settings) -> list[Run]:
    """Tying with every delta, one seed."""
    return [first_of(settings, "tying", delta=delta) for delta in DELTAS[settings.profile]]


def eta_sweep(settings: Settings) -> list[Run]:
    """The masked language model with every eta, one seed."""
    return [first_of(settings, "mlm", eta=eta) for eta in ETAS[settings.profile]]


def layers(settings: Settings) -> list[Run]:
    """Table 6: more than one layer, with the first attention; none where 1 is the only settings."""
    seeds = settings.seeds_or()[: SIDE_SEEDS[settings.profile]]
    return [
        variant(settings, name, settings.attentions[0], seed, count)
        for count in settings.layers or LAYERS[settings.profile]
        if count > 1
        for name in LAYERED[settings.profile]
        for seed in seeds
    ]


def adversaries(settings: Settings) -> list[Run]:
    """Figure 1: a model that imitates each variant and attends elsewhere, for each lambda, one seed."""
    return [
        imitation(first_of(settings, name), strength, settings.imitation_epochs or ADVERSARY_EPOCHS[settings.profile])
        for name in IMITATED[settings.profile]
        for strength in settings.lambdas or LAMBDAS[settings.profile]
    ]


def dot_initialisation(settings: Settings) -> list[Run]:
    """Appendix C: the base with dot attention, its query drawn from N(0, 1) or as torch initialises it."""
    seeds = settings.seeds_or()[: SIDE_SEEDS[settings.profile]]
    normal = [variant(settings, "base", "dot", seed) for seed in seeds]
    return normal + [replace(run, options=(*run.options, ("query_init", "default"))) for run in normal]


# Claims

RECOMMENDED = ("tying", "mlm")
REGULARIZERS = ("residual", *RECOMMENDED)  # residual is the paper's best case of information; it claims no more of it
ON_PAR = 0.02  # of F1: the paper's own largest loss with the variants that it recommends, on all but one dataset
UNIFORM = 0.95  # of the entropy of equal weights: from here on attention counts as uniform


def claims(
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


def to_base(row: pd.Series, base: str = "base") -> str:
    """F1 (fraction): 0.830, base 0.842; difference -0.012 [-0.020, -0.004]"""
    return f"{title_of(row['quantity'])} ({row['unit']}): {compared(row, second=base)}"


def with_frozen(
    measured: pd.DataFrame, compare: Callable, names: tuple[str, ...] = RECOMMENDED
) -> Iterator[tuple[str, pd.Series, str]]:
    """(model in words, its row of `compare`, evidence) for each of `against_base`.

    The evidence has, where it was measured, the same difference to the base whose embeddings do not learn either.
    """
    for model, (its, base) in against_base(measured, names):
        row = compare(measured, between=(its, base))
        evidence = to_base(row)
        if (measured["attention"].eq(base["attention"]) & measured["variant"].eq("frozen")).any():
            to_frozen = compare(measured, between=(its, base | {"variant": "frozen"}))
            evidence += f"; to the base with frozen embeddings {signed(to_frozen)}"
        yield model, row, evidence


def f1_drop(measured: pd.DataFrame, between: tuple[dict, dict]) -> pd.Series:
    """The difference of what permuted attention costs in F1."""
    return fragility_difference(measured, between, ["f1_drop_permuted"]).iloc[0]


def fragile(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 4.1: with attention permuted, regularised models lose more F1."""
    claim = "It loses more F1 than the base when its attention is permuted"
    for model, row, evidence in with_frozen(measured, f1_drop):
        yield Claim(KEY, "attention matters more", claim, model, verdict(-row["high"], -row["low"]), evidence)


def on_par(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 4.1: they classify about as well."""
    claim = f"It classifies about as well as the base: less than {ON_PAR:g} below in F1"
    for model, between in against_base(measured):
        row = score_difference(measured, "f1", between)
        yield Claim(KEY, "without a loss", claim, model, verdict(row["low"], row["high"], -ON_PAR), to_base(row))


def informed(information: pd.DataFrame) -> Iterator[Claim]:
    """Section 4.2: their hidden states tell more about the words."""
    claim = "Its hidden states share more information with their words than the base's"
    for name in REGULARIZERS:
        row = information_difference(information, NAME + SAMPLES[0], (name, "base"))
        evidence = to_base(row) + f", above what shuffled labels give, over {row['seeds'][0]} seeds"
        yield Claim(KEY, "words are kept", claim, title_of(name), verdict(row["low"], row["high"]), evidence)


def costly(prices: pd.DataFrame) -> Iterator[Claim]:
    """Section 4.3: an imitation of theirs pays more in its predictions for the same distance."""
    claim = "A trained adversary pays more TVD for the same JSD than with the base"
    for _, row in prices.iterrows():
        evidence = (
            f"TVD at equal JSD ({row['from']:.2f} to {row['to']:.2f} nats): {signed(row)} over the texts of one seed"
        )
        if not row["to"] > row["from"]:
            evidence = "one value of lambda makes no curve" if row["points"] < 2 else "the two curves share no JSD"
        model = title_of(row["variant"])
        yield Claim(KEY, "adversaries are harder to find", claim, model, verdict(row["low"], row["high"]), evidence)


def grounded(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 5: most of their tokens alone decide less."""
    claim = "Its tokens, each read alone, are less sure of the prediction than the base's"
    right = measured[measured["label"] == measured["prediction"]]
    quantity = declare("token_probability_mean", "fraction")
    for model, row, evidence in with_frozen(right, partial(difference, quantity=quantity, paired=True)):
        yield Claim(KEY, "neutral words stay neutral", claim, model, verdict(-row["high"], -row["low"]), evidence)


def robust_by_depth(deeper: pd.DataFrame) -> Iterator[Claim]:
    """Appendix B: the more layers, the less the base loses."""
    fewest, most = deeper["layers"].min(), deeper["layers"].max()
    if fewest == most:
        return
    between = tuple({"variant": "base", "layers": layers} for layers in (most, fewest))
    row = f1_drop(deeper, between)
    claim = f"With {most} layers the base loses less F1 to permuted attention than with {fewest}"
    evidence = to_base(row, f"{fewest} layer")
    yield Claim(KEY, "depth makes attention matter less", claim, "base", verdict(row["low"], row["high"]), evidence)


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
        evidence = (
            f"entropy as a share of that of equal weights: {values.mean():.3f} over {len(values)} seeds; it counts as "
            f"uniform from {UNIFORM:g}"
        )
        word = verdict(low, high, sign * UNIFORM)
        yield Claim(KEY, "initialisation decides", claim, f"dot, {start}", word, evidence)


def on_the_rationale(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 6, the paper's open question: does attention come onto the words that people name?"""
    column = declare("rationale_average_precision_attention", "fraction")
    if column not in measured or measured[column].isna().all():
        return
    claim = "Open in the paper: its attention ranks the words that decide the label higher than the base's does"
    short = "attention comes onto the reason, which the paper leaves open"
    compare = partial(difference, quantity=column, paired=True)
    for model, row, evidence in with_frozen(measured, compare, REGULARIZERS):
        yield Claim(KEY, short, claim, model, verdict(row["low"], row["high"]), evidence)


PAPER = Paper(
    "regularization",
    KEY,
    "Tutek & Šnajder 2020",
    "Martin Tutek and Jan Šnajder (2020): Staying True to Your Word: (How) Can Attention Become Explanation? RepL4NLP.",
    "Where hidden states are held to their words, attention matters more to the prediction and is harder to replace",
    RegularizationSettings,
    (delta_sweep, eta_sweep, variants, layers, adversaries, dot_initialisation),
    claims,
    swept={"delta": delta_sweep, "eta": eta_sweep},
    seconds=65.0,
)
