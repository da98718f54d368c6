"""The runs of Tutek & Snajder (2020)."""

from dataclasses import replace
from itertools import product

from lib.programme.choice import Choice, seeds_of
from lib.programme.imitation import imitation
from lib.training import Run
from lib.training.runs import REGULARIZED

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
# With lambda 0 it only imitates: what that costs by itself.
LAMBDAS = {"quick": (0.0, 0.05, 0.2), "paper": (0.0, 0.02, 0.05, 0.1, 0.2)}


def regularization(choice: Choice) -> list[Run]:
    """All of the parts below."""
    parts = (delta_sweep, eta_sweep, variants, layers, adversaries, dot_initialisation)
    return list(dict.fromkeys(run for part in parts for run in part(choice)))


def variant(choice: Choice, name: str, attention: str, seed: int, layers: int = 1) -> Run:
    """One model of the paper: the base, or one that is to keep its words."""
    options = {"tying": {"delta": choice.delta or DELTA}, "mlm": {"eta": choice.eta or ETA}}.get(name, {})
    if name in choice.frozen:
        options["embeddings"] = "frozen"
    made = choice.run("bilstm", attention, seed, variant=name, layers=layers, recipe="tutek2020")
    return replace(made, options=tuple(options.items()))


def variants(choice: Choice) -> list[Run]:
    """Table 1: every variant with every attention; `frozen`, not in the paper, shows what freezing alone does."""
    seeds = seeds_of(choice.profile, choice.seeds)
    parts = product(choice.attentions, REGULARIZED, seeds)
    return [variant(choice, name, attention, seed) for attention, name, seed in parts]


def first_of(choice: Choice, name: str, **options) -> Run:
    """A variant with the first attention and the first seed."""
    return variant(replace(choice, **options), name, choice.attentions[0], seeds_of(choice.profile, choice.seeds)[0])


def delta_sweep(choice: Choice) -> list[Run]:
    """Tying with every delta, one seed."""
    return [first_of(choice, "tying", delta=delta) for delta in DELTAS[choice.profile]]


def eta_sweep(choice: Choice) -> list[Run]:
    """The masked language model with every eta, one seed."""
    return [first_of(choice, "mlm", eta=eta) for eta in ETAS[choice.profile]]


def layers(choice: Choice) -> list[Run]:
    """Table 6: more than one layer, with the first attention; none where 1 is the only choice."""
    seeds = seeds_of(choice.profile, choice.seeds)[: SIDE_SEEDS[choice.profile]]
    return [
        variant(choice, name, choice.attentions[0], seed, count)
        for count in choice.layers or LAYERS[choice.profile]
        if count > 1
        for name in LAYERED[choice.profile]
        for seed in seeds
    ]


def adversaries(choice: Choice) -> list[Run]:
    """Figure 1: a model that imitates each variant and attends elsewhere, for each lambda, one seed."""
    return [
        imitation(first_of(choice, name), strength, choice.adversary_epochs or ADVERSARY_EPOCHS[choice.profile])
        for name in IMITATED[choice.profile]
        for strength in choice.lambdas or LAMBDAS[choice.profile]
    ]


def dot_initialisation(choice: Choice) -> list[Run]:
    """Appendix C: the base with dot attention, its query drawn from N(0, 1) or as torch initialises it."""
    seeds = seeds_of(choice.profile, choice.seeds)[: SIDE_SEEDS[choice.profile]]
    normal = [variant(choice, "base", "dot", seed) for seed in seeds]
    return normal + [replace(run, options=(*run.options, ("query_init", "default"))) for run in normal]
