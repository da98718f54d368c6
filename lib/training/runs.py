"""What is trained: a run, what decides its weights, and which runs must come before which."""

from collections.abc import Sequence
from dataclasses import dataclass

from lib import datasets
from lib.models import ATTENTIONS, ENCODERS
from lib.objectives import REDUCTIONS
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
VARIANTS = ("base",)
PARTS = {"encoder": ENCODERS, "attention": ATTENTIONS, "projection": PROJECTIONS, "variant": VARIANTS}


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


ALLOWED = {
    **dict.fromkeys(("epochs", "batch_size", "embedding_size", "hidden_size"), (_whole, "a whole number from 1 up")),
    **dict.fromkeys(("learning_rate", "vector_scale"), (_positive, "a number above 0")),
    "weight_decay": (lambda value: value == 0 or _positive(value), "a number from 0 up"),
    "reduction": (lambda value: value in REDUCTIONS, " or ".join(REDUCTIONS)),
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
        known = set(OPTIONS) | set(datasets.spec(self.dataset).options)
        unknown = [name for name, _ in self.options if name not in known]
        if unknown:
            raise KeyError(
                f"unknown option {unknown[0]!r} of a run on {self.dataset}; known: {', '.join(sorted(known))}"
            )
        for what, known in PARTS.items():
            if getattr(self, what) not in known:
                raise KeyError(f"unknown {what} {getattr(self, what)!r}; known: {', '.join(known)}")
        for name, (allowed, words) in ALLOWED.items():
            value = self.option(name)
            if value is not None and not allowed(value):
                raise ValueError(f"{name} is {value!r}; allowed: {words}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise ValueError(f"seed is {self.seed!r}; allowed: a whole number from 0 up")
        profile(self.profile)
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    def option(self, name: str):
        """The value of a training option: the run's own, else the default."""
        return dict(self.options).get(name, OPTIONS[name])

    @property
    def epochs(self) -> int:
        chosen = self.option("epochs")
        return profile(self.profile).epochs if chosen is None else chosen

    @property
    def data(self) -> tuple:
        """What decides the corpus: dataset, profile, and the dataset's own options."""
        return self.dataset, self.profile, tuple(option for option in self.options if option[0] not in OPTIONS)

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
