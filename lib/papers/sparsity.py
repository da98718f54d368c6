"""Meister et al. (2021)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import inf

import pandas as pd

from lib.analysis import changes_of_score, difference, summarise, trend
from lib.papers.claim import Claim, by_model, compared, signed, verdict, with_interval
from lib.papers.paper import Paper
from lib.papers.regularization import imitation
from lib.papers.settings import Settings, setting
from lib.projections import projection, sparsegen_name
from lib.quantity import declare, tau_name, title_of
from lib.training import Run

KEY = "meister2021"

# Runs

ATTENTION = {"bilstm": "additive", "transformer": "dot"}  # of each encoder, in the paper
PROJECTIONS = ("softmax", "sparsemax")
# The paper's grid is not printed. Beyond it, softmax, and entmax with a fixed and a learned alpha.
STRENGTHS = {"quick": (-10.0, 0.0, 0.5, 0.9), "paper": (-100.0, -10.0, -3.0, -1.0, 0.0, 0.25, 0.5, 0.75, 0.9)}
SPECTRUM = {"quick": ("softmax",), "paper": ("softmax", "entmax:1.5", "entmax:learned")}
SWEEP_SEEDS = {"quick": 1, "paper": None}  # None: all
# Learning rates: Jain & Wallace's, which the recipe has, or those of table 4, which need many epochs.
RATES = {"fast": {}, "published": {"bilstm": {"learning_rate": 1e-4}, "transformer": {"learning_rate": 1e-5}}}
# At those, until dev AUC has not risen for that many epochs.
TO_CONVERGENCE = {"quick": {"epochs": 40, "patience": 5}, "paper": {"epochs": 300, "patience": 10}}
# The paper does not print its lambdas. The divergence is the bounded one: against sparse attention KL is infinite.
ADVERSARY_LAMBDAS = {"quick": (0.1,), "paper": (0.05, 0.2)}
FROZEN_LAMBDAS = {"quick": (1.0,), "paper": (0.2, 1.0)}
IMITATED = {"quick": PROJECTIONS[:1], "paper": PROJECTIONS}
ADVERSARY_EPOCHS = {"quick": 4, "paper": 20}  # most of them
LONGEST = 2000  # tokens of a text whose gradients are computed: a Transformer's need memory for all pairs of words


@dataclass(frozen=True)
class SparsitySettings(Settings):
    """Beside those of every notebook.

    rates              learning rates: fast, or published
    projections        beside sparsegen, such as softmax or entmax:1.5; none: the profile's
    converged          whether one model of each encoder is also trained at the published rate, to convergence
    strengths          sparsegen's lambdas, below 1; none: the profile's
    lambdas, frozen_lambdas, adversary_epochs    of the trained adversaries, and most epochs; none or 0: the profile's
    """

    rates: str = setting("fast", allowed=RATES)
    projections: tuple[str, ...] = setting(check=projection)
    converged: bool = True
    strengths: tuple[float, ...] = setting(least=-inf)
    lambdas: tuple[float, ...] = ()
    frozen_lambdas: tuple[float, ...] = ()
    adversary_epochs: int = 0


def encoders_of(settings: Settings) -> list[str]:
    """Those that were chosen; none: the paper's two."""
    return list(settings.encoders or ATTENTION)


def model(settings: Settings, encoder: str, projection: str, seed: int) -> Run:
    """An encoder with the paper's attention for it, trained by the paper's recipe at the chosen rate."""
    options = RATES[settings.rates].get(encoder, {})
    options |= TO_CONVERGENCE[settings.profile] if settings.rates != "fast" else {}
    run = settings.run(encoder, ATTENTION.get(encoder, "additive"), seed, recipe="meister2021")
    return replace(run, projection=projection, options=tuple(options.items()))


def models(settings: Settings) -> list[Run]:
    """Tables 1, 3 and 6: every encoder under softmax and sparsemax, all seeds."""
    parts = product(encoders_of(settings), PROJECTIONS, settings.seeds_or())
    return [model(settings, *part) for part in parts]


def sweep(settings: Settings) -> list[Run]:
    """Table 2 and figure 3: sparsegen along its lambda; at 0 it is sparsemax, and the same run."""
    strengths = settings.strengths or STRENGTHS[settings.profile]
    return of_each(settings, [sparsegen_name(strength) for strength in strengths])


def spectrum(settings: Settings) -> list[Run]:
    """Figure 2: projections beside sparsegen."""
    return of_each(settings, settings.projections or SPECTRUM[settings.profile])


def of_each(settings: Settings, projections: list[str] | tuple[str, ...]) -> list[Run]:
    """Every encoder under each projection, the sweep's seeds."""
    seeds = settings.seeds_or()[: SWEEP_SEEDS[settings.profile]]
    return [model(settings, *part) for part in product(encoders_of(settings), projections, seeds)]


def converged(settings: Settings) -> list[Run]:
    """One run of each encoder at the published rate, to convergence on dev; none in `quick`, which has no time."""
    if settings.profile == "quick" or not settings.converged:
        return []
    published, seed = replace(settings, rates="published"), settings.seeds_or()[0]
    return [model(published, encoder, "softmax", seed) for encoder in encoders_of(settings)]


def adversaries(settings: Settings) -> list[Run]:
    """Table 5, unfrozen: of each model of the first seed, one trained anew that imitates it and attends elsewhere."""
    return [
        imitation(base, strength, settings.adversary_epochs or ADVERSARY_EPOCHS[settings.profile])
        for base in models(replace(settings, seeds=settings.seeds_or()[:1]))
        if base.projection in IMITATED[settings.profile]
        for strength in settings.lambdas or ADVERSARY_LAMBDAS[settings.profile]
    ]


def frozen_adversaries(settings: Settings) -> list[Run]:
    """Table 5, frozen: all weights are the model's, and only the attention learns."""
    made = adversaries(replace(settings, lambdas=settings.frozen_lambdas or FROZEN_LAMBDAS[settings.profile]))
    return [replace(run, options=(*run.options, ("trains", "attention"))) for run in made]


# Claims

INPUT, HIDDEN = (("attention", f"gradient_of_{of}") for of in ("input", "hidden"))
TO_HIDDEN = "entropy_of_input_to_hidden_importance"
OF_INPUT = ("entropy_of_gradient_of_input", "entropy_of_leave_one_out_of_input")
DISPERSED = 0.4  # of the entropy of equal importance: the paper's lowest, .46, it calls high
SPARSER = 0.05  # of that entropy: our choice of a difference that would matter; the paper names none
AWAY = 0.1  # nats of JSD: an adversary that stays nearer does not attend elsewhere
LOSS = 0.02  # of accuracy: the largest that the paper prints for adversaries that were trained anew


def claims(measured: pd.DataFrame, sweep: pd.DataFrame, adversaries: pd.DataFrame) -> list[Claim]:
    """Each claim with its verdict.

    Args:
        measured: every encoder under softmax and sparsemax, with the taus, the entropies and TO_HIDDEN.
        sweep: every encoder under sparsegen along the column lambda, with the same, and the support against the
            rationale where there is one. adversaries: rows of `measure_versus_base`, of the models too.
    """
    sweep = sweep if sweep["lambda"].nunique() > 1 else sweep.iloc[:0]  # of one lambda there is no trend
    return [
        *not_interchangeable(measured),
        *contextual(measured),
        *no_sparser(measured),
        *falls_or_rises(sweep),
        *less_correlated(sweep),
        *misled(adversaries),
        *on_the_reason(sweep),
    ]


def not_interchangeable(measured: pd.DataFrame) -> Iterator[Claim]:
    """Figure 1: attention agrees with the importance of hidden states more than with that of the inputs."""
    claim = "Attention agrees with the gradient of the hidden states more than with that of the inputs"
    hidden, inputs = tau_name(HIDDEN), tau_name(INPUT)
    for model, rows in by_model(measured, "encoder", "projection"):
        gap = declare("gap_of_taus", "tau-b", bounds=(-2, 2))
        row = summarise(rows.assign(**{gap: rows[hidden] - rows[inputs]}), [gap]).iloc[0]
        means = summarise(rows, [hidden, inputs])["value"]
        evidence = f"tau-b {means[0]:.3f} with hidden states, {means[1]:.3f} with inputs; {signed(row, 'value')}"
        short = "inputs and hidden states are not interchangeable"
        yield Claim(KEY, short, claim, model, verdict(row["low"], row["high"]), evidence)


def contextual(measured: pd.DataFrame) -> Iterator[Claim]:
    """Table 1: a hidden state does not depend on one input alone."""
    claim = f"The inputs' importance to a hidden state is spread: its entropy is above {DISPERSED:g} of the largest"
    for model, rows in by_model(measured, "encoder", "projection"):
        row = summarise(rows, [TO_HIDDEN]).iloc[0]
        evidence = f"normalised entropy {with_interval(row)}"
        yield Claim(KEY, "states mix inputs", claim, model, verdict(row["low"], row["high"], DISPERSED), evidence)


def no_sparser(measured: pd.DataFrame) -> Iterator[Claim]:
    """Figure 2: sparse attention does not make the importance of the inputs sparser."""
    for quantity in OF_INPUT:
        claim = f"The inputs' {title_of(quantity)} is less than {SPARSER:g} lower under sparsemax than under softmax"
        for encoder, rows in by_model(measured, "encoder"):
            row = difference(rows, quantity, ({"projection": "sparsemax"}, {"projection": "softmax"}))
            evidence = compared(row, second="softmax")
            word = verdict(row["low"], row["high"], -SPARSER)
            yield Claim(KEY, "sparse attention, importance as spread as ever", claim, encoder, word, evidence)


def falls_or_rises(sweep: pd.DataFrame) -> Iterator[Claim]:
    """Table 2 has the entropy of the inputs' importance fall along sparsegen's lambda; in its text it rises."""
    slopes = {encoder: trend(rows, "lambda", OF_INPUT[0]) for encoder, rows in by_model(sweep, "encoder")}
    for verb, sign, where in (("falls", -1, "their table 2"), ("rises", 1, "their text")):
        claim = f"The entropy of the inputs' gradients {verb} as sparsegen's lambda rises ({where})"
        short = f"importance gets {'sparser' if sign < 0 else 'less sparse'} with attention ({where})"
        for encoder, row in slopes.items():
            low, high = sorted(sign * row[name] for name in ("tau_low", "tau_high"))
            yield Claim(KEY, short, claim, encoder, verdict(low, high), in_numbers(row))


def in_numbers(row: pd.Series) -> str:
    """tau-b with lambda -0.87 [...] over 9 lambdas"""
    return (
        f"tau-b with lambda {row['tau']:+.3f} [{row['tau_low']:+.3f}, {row['tau_high']:+.3f}], Spearman "
        f"{row['spearman']:+.3f}, of {row['points']} lambdas in {row['seeds']} seeds"
    )


def less_correlated(sweep: pd.DataFrame) -> Iterator[Claim]:
    """Figure 3: the sparser attention is, the less it agrees with the importance of the inputs."""
    claim = "Attention agrees less with the gradient of the inputs as sparsegen's lambda rises"
    for encoder, rows in by_model(sweep, "encoder"):
        row = trend(rows, "lambda", tau_name(INPUT))
        word = verdict(-row["tau_high"], -row["tau_low"])
        yield Claim(KEY, "sparser attention agrees less with importance", claim, encoder, word, in_numbers(row))


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
            evidence = f"{row['first']:.3f}, base {row['second']:.3f}: {signed(row)}; mean JSD "
            evidence += f"{row['jsd']:.2g} nats" + ("" if row["jsd"] >= AWAY else ": it does not attend elsewhere")
            model = f"{title_of(row['encoder'])} + {row['projection']}, lambda {row['lambda']:g}"
            short = "frozen adversaries lose accuracy" if sign > 0 else "adversaries trained anew do not"
            yield Claim(KEY, short, claim, model, word, evidence)


def on_the_reason(sweep: pd.DataFrame) -> Iterator[Claim]:
    """Open in the paper: does the support close in on the words that decide?"""
    column = "rationale_support_precision"
    if column not in sweep or sweep[column].isna().all():
        return
    claim = "Open in the paper: more of the support are words that decide the label as sparsegen's lambda rises"
    for encoder, rows in by_model(sweep, "encoder"):
        row = trend(rows, "lambda", column)
        short = "the support closes in on the reason, which the paper leaves open"
        yield Claim(KEY, short, claim, encoder, verdict(row["tau_low"], row["tau_high"]), in_numbers(row))


OF_LAMBDA = {"entropy_of_gradient_of_input": "kendall_tau_lambda_vs_entropy_of_input_importance"}


def partners(rows: pd.DataFrame, of_models: pd.DataFrame) -> list[pd.DataFrame]:
    """Table 2, the taus along sparsegen's lambda, and table 5, the adversaries farthest away."""
    slopes = rows.reindex(columns=list(dict.fromkeys([*rows, "tau", "tau_low", "tau_high"])))
    slopes = slopes[slopes["tau"].notna() & slopes["quantity"].isin(OF_LAMBDA)]
    slopes = slopes.replace({"quantity": OF_LAMBDA}).assign(unit="tau-b")
    slopes = slopes.assign(value=slopes["tau"], low=slopes["tau_low"], high=slopes["tau_high"])
    others = rows[rows["trains"].notna() & rows["value"].notna() & rows["projection"].eq("softmax")]
    farthest = others.groupby("trains")["lambda"].transform("max") == others["lambda"]
    return [slopes, others[farthest].assign(projection="")]  # the paper does not say which


PAPER = Paper(
    "sparsity",
    KEY,
    "Meister et al. 2021",
    "Clara Meister, Stefan Lazov, Isabelle Augenstein and Ryan Cotterell (2021): Is Sparse Attention more "
    "Interpretable? ACL.",
    "Sparse attention weighs hidden states that mix their inputs, and is no clearer explanation by the inputs",
    SparsitySettings,
    (models, sweep, spectrum, converged, adversaries, frozen_adversaries),
    claims,
    partners=partners,
    seconds=80.0,
)
