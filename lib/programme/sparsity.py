"""The runs of Meister et al. (2021)."""

from dataclasses import replace
from itertools import product

from lib.programme.choice import Choice, seeds_of
from lib.programme.imitation import imitation
from lib.projections import sparsegen_name
from lib.training import Run

ATTENTION = {"bilstm": "additive", "transformer": "dot"}  # of each encoder, in the paper
PROJECTIONS = ("softmax", "sparsemax")
# The paper's grid is not printed. Beyond it, softmax, and entmax with a fixed and a learned alpha.
STRENGTHS = {"quick": (-10.0, 0.0, 0.5, 0.9), "paper": (-100.0, -10.0, -3.0, -1.0, 0.0, 0.25, 0.5, 0.75, 0.9)}
SPECTRUM = {"quick": ("softmax",), "paper": ("softmax", "entmax:1.5", "entmax:learned")}
SWEEP_SEEDS = {"quick": 1, "paper": None}  # None: all
# Learning rates: Jain & Wallace's, which the recipe has, or those of table 4, which need many epochs.
RATES = {"fast": {}, "published": {"bilstm": {"learning_rate": 1e-4}, "transformer": {"learning_rate": 1e-5}}}
# At those, until dev AUC has not risen for so many epochs.
TO_CONVERGENCE = {"quick": {"epochs": 40, "patience": 5}, "paper": {"epochs": 300, "patience": 10}}
# The paper does not print its lambdas. The divergence is the bounded one: against sparse attention KL is infinite.
ADVERSARY_LAMBDAS = {"quick": (0.1,), "paper": (0.05, 0.2)}
FROZEN_LAMBDAS = {"quick": (1.0,), "paper": (0.2, 1.0)}
IMITATED = {"quick": PROJECTIONS[:1], "paper": PROJECTIONS}
ADVERSARY_EPOCHS = {"quick": 4, "paper": 20}  # most of them
LONGEST = 2000  # tokens of a text whose gradients are computed: a Transformer's need memory for all pairs of words


def sparsity(choice: Choice) -> list[Run]:
    """All of the parts below."""
    parts = (models, sweep, spectrum, converged, adversaries, frozen_adversaries)
    return list(dict.fromkeys(run for part in parts for run in part(choice)))


def encoders_of(choice: Choice) -> list[str]:
    """Those that were chosen; none: the paper's two."""
    return list(choice.encoders or ATTENTION)


def model(choice: Choice, encoder: str, projection: str, seed: int) -> Run:
    """An encoder with the paper's attention for it, trained by the paper's recipe at the chosen rate."""
    if choice.rates not in RATES:
        raise KeyError(f"unknown rates {choice.rates!r}; known: {', '.join(RATES)}")
    options = RATES[choice.rates].get(encoder, {}) | (TO_CONVERGENCE[choice.profile] if choice.rates != "fast" else {})
    run = choice.run(encoder, ATTENTION.get(encoder, "additive"), seed, recipe="meister2021")
    return replace(run, projection=projection, options=tuple(options.items()))


def models(choice: Choice) -> list[Run]:
    """Tables 1, 3 and 6: every encoder under softmax and sparsemax, all seeds."""
    parts = product(encoders_of(choice), PROJECTIONS, seeds_of(choice.profile, choice.seeds))
    return [model(choice, *part) for part in parts]


def sweep(choice: Choice) -> list[Run]:
    """Table 2 and figure 3: sparsegen along its lambda; at 0 it is sparsemax, and the same run."""
    return of_each(choice, [sparsegen_name(strength) for strength in choice.strengths or STRENGTHS[choice.profile]])


def spectrum(choice: Choice) -> list[Run]:
    """Figure 2: projections beside sparsegen."""
    return of_each(choice, choice.projections or SPECTRUM[choice.profile])


def of_each(choice: Choice, projections: list[str] | tuple[str, ...]) -> list[Run]:
    """Every encoder under each projection, the sweep's seeds."""
    seeds = seeds_of(choice.profile, choice.seeds)[: SWEEP_SEEDS[choice.profile]]
    return [model(choice, *part) for part in product(encoders_of(choice), projections, seeds)]


def converged(choice: Choice) -> list[Run]:
    """One run of each encoder at the published rate, to convergence on dev; none in `quick`, which has no time."""
    if choice.profile == "quick" or not choice.converged:
        return []
    published, seed = replace(choice, rates="published"), seeds_of(choice.profile, choice.seeds)[0]
    return [model(published, encoder, "softmax", seed) for encoder in encoders_of(choice)]


def adversaries(choice: Choice) -> list[Run]:
    """Table 5, unfrozen: of each model of the first seed, one trained anew that imitates it and attends elsewhere."""
    return [
        imitation(base, strength, choice.adversary_epochs or ADVERSARY_EPOCHS[choice.profile])
        for base in models(replace(choice, seeds=seeds_of(choice.profile, choice.seeds)[:1]))
        if base.projection in IMITATED[choice.profile]
        for strength in choice.lambdas or ADVERSARY_LAMBDAS[choice.profile]
    ]


def frozen_adversaries(choice: Choice) -> list[Run]:
    """Table 5, frozen: all weights are the model's, and only the attention learns."""
    made = adversaries(replace(choice, lambdas=choice.frozen_lambdas or FROZEN_LAMBDAS[choice.profile]))
    return [replace(run, options=(*run.options, ("trains", "attention"))) for run in made]
