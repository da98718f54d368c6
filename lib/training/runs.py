"""What is trained: a run, what decides its weights, and which runs must come before which."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lib import datasets
from lib.models import ATTENTIONS, ENCODERS
from lib.objectives import DIVERGENCES, REDUCTIONS, TVDS
from lib.profiles import profile
from lib.projections import PROJECTIONS

# Jain & Wallace's code: batch of 32, Adam with amsgrad at 1e-3, weight decay 1e-5 but not on the attention.
# None: the profile's epochs, the encoder's own hidden size and activation.
OPTIONS = {
    "epochs": None,
    "batch_size": 32,
    "learning_rate": 1e-3,
    "weight_decay": 1e-5,
    "reduction": "sum",
    "embedding_size": 300,
    "vector_scale": 1.0,  # the word vectors are multiplied by it before training
    "hidden_size": None,
    "activation": None,
}
# The variants, and of each those of the run whose outputs it uses, its `base`; none: it has no base.
VARIANTS = {
    "base": (),
    "uniform": (),
    "adversary": ("base",),
    "guide_base": ("base",),
    "guide_instance_adversary": ("base",),
    "guide_adversary": ("adversary",),
}
# Of an adversary only. trains: all weights, or the attention's alone, the others fixed at the base's.
ADVERSARY_OPTIONS = {"lambda": 5e-4, "divergence": "kl", "tvd": "half", "trains": "all"}
TRAINS = ("all", "attention")
PARTS = {"encoder": ENCODERS, "attention": ATTENTIONS, "projection": PROJECTIONS, "variant": VARIANTS}


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _one_of(names: Iterable[str]) -> tuple:
    return (lambda value: value in names), " or ".join(names)


ALLOWED = {
    **dict.fromkeys(("epochs", "batch_size", "embedding_size", "hidden_size"), (_whole, "a whole number from 1 up")),
    **dict.fromkeys(("learning_rate", "vector_scale"), (_positive, "a number above 0")),
    **dict.fromkeys(("weight_decay", "lambda"), (lambda value: value == 0 or _positive(value), "a number from 0 up")),
    "reduction": _one_of(REDUCTIONS),
    "divergence": _one_of(DIVERGENCES),
    "tvd": _one_of(TVDS),
    "trains": _one_of(TRAINS),
}


@dataclass(frozen=True)
class Run:
    """What is trained: everything that decides the weights, except the data themselves and the code.

    `options` is a sorted tuple of (name, value): those of OPTIONS and of the dataset. `base` is another run whose
    outputs this one uses.
    """

    dataset: str
    encoder: str = "bilstm"
    attention: str = "additive"
    projection: str = "softmax"
    variant: str = "base"
    layers: int = 1
    seed: int = 0
    profile: str = "quick"
    vectors: str = "auto"
    device_kind: str = "cpu"
    options: tuple[tuple[str, object], ...] = ()
    base: "Run | None" = None

    def __post_init__(self):
        for what, known in PARTS.items():
            if getattr(self, what) not in known:
                raise KeyError(f"unknown {what} {getattr(self, what)!r}; known: {', '.join(known)}")
        known = set(OPTIONS) | set(datasets.spec(self.dataset).options)
        known |= set(ADVERSARY_OPTIONS) if self.variant == "adversary" else set()
        unknown = [name for name, _ in self.options if name not in known]
        if unknown:
            raise KeyError(
                f"unknown option {unknown[0]!r} of a run of {self.variant} on {self.dataset}; "
                f"known: {', '.join(sorted(known))}"
            )
        self._refuse_wrong_base()
        for name, (allowed, words) in ALLOWED.items():
            value = self.option(name)
            if value is not None and not allowed(value):
                raise ValueError(f"{name} is {value!r}; allowed: {words}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise ValueError(f"seed is {self.seed!r}; allowed: a whole number from 0 up")
        profile(self.profile)
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    def _refuse_wrong_base(self):
        allowed = VARIANTS[self.variant]
        if (self.base.variant if self.base else None) not in (allowed or (None,)):
            raise ValueError(
                f"a run of {self.variant} has {self.base.variant + ' as' if self.base else 'no'} base; "
                f"allowed: {' or '.join(allowed) or 'no base'}"
            )
        if self.base and self.base.data != self.data:
            raise ValueError(f"the base reads {self.base.data}, the run {self.data}; allowed: the same data")

    def option(self, name: str):
        """The value of a training option: the run's own, else the default."""
        return dict(self.options).get(name, (OPTIONS | ADVERSARY_OPTIONS)[name])

    @property
    def epochs(self) -> int:
        """The passes over the training split; of an adversary the most, since it ends when its loss stands still."""
        sizes = profile(self.profile)
        return self.option("epochs") or (sizes.adversary_epochs if self.variant == "adversary" else sizes.epochs)

    @property
    def data(self) -> tuple:
        """What decides the corpus: dataset, profile, and the dataset's own options."""
        of_training = OPTIONS | ADVERSARY_OPTIONS
        return self.dataset, self.profile, tuple(option for option in self.options if option[0] not in of_training)

    def __str__(self) -> str:
        layers = f"{self.layers} layers" if self.layers > 1 else ""
        parts = [self.dataset, self.encoder, layers, self.attention, self.projection, self.variant]
        parts += [f"{name} {value}" for name, value in self.options]
        return " ".join(p for p in parts if p not in ("", "softmax", "base")) + f", seed {self.seed}"


def with_bases(runs: Sequence[Run]) -> list[Run]:
    """The runs and the bases that they need, each once, bases first."""
    ordered: dict[Run, None] = {}
    for run in runs:
        ordered.update(dict.fromkeys([*with_bases([run.base] if run.base else []), run]))
    return list(ordered)


def stages(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs in groups that can be trained side by side: no run stands in one group with its base."""
    by_depth: dict[int, list[Run]] = {}
    for run in runs:
        by_depth.setdefault(len(with_bases([run])), []).append(run)
    return [by_depth[depth] for depth in sorted(by_depth)]
