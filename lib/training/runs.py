"""What is trained: a run, what decides its weights, and which runs must come before which."""

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature

from lib import datasets
from lib.models import ATTENTIONS, ENCODERS, HIERARCHICAL, QUESTION_ENCODERS
from lib.models.encoders import refuse_other_sizes
from lib.profiles import profile
from lib.projections import projection
from lib.training.options import ALLOWED, OF_ENCODERS, OF_TRAINING, OF_VARIANTS, RECIPES, whole

KINDS = ChainMap(HIERARCHICAL, ENCODERS)  # a view: an encoder that is registered later is there too

# The variants, and of each those of the run whose outputs it uses, its `base`; none: it has no base.
REGULARIZED = ("base", "frozen", "concat", "residual", "tying", "mlm")
VARIANTS = {
    **dict.fromkeys((*REGULARIZED, "uniform"), ()),
    "adversary": REGULARIZED,
    "guide_base": ("base",),
    "guide_instance_adversary": ("base",),
    "guide_adversary": ("adversary",),
}
PLAIN = ("base", "uniform")  # those of a model whose attention is over sentences, or that answers questions
NEED_EQUAL_SIZES = ("residual", "tying", "mlm")  # hidden states are added to embeddings, or compared with them
PARTS = {"encoder": KINDS, "attention": ATTENTIONS, "variant": VARIANTS, "recipe": RECIPES}


@dataclass(frozen=True)
class Run:
    """What is trained: everything that decides the weights, except the data themselves and the code.

    `projection` is a name of lib.projections; `layers` is the encoder's, None its usual number. `recipe` names the
    defaults of the training options, `options` is a sorted tuple of (name, value): the others, of training, encoder,
    variant and dataset. `base` is another run whose outputs this one uses.
    """

    dataset: str
    encoder: str = "bilstm"
    attention: str = "additive"
    projection: str = "softmax"
    variant: str = "base"
    layers: int | None = None
    seed: int = 0
    profile: str = "quick"
    vectors: str = "auto"
    device_kind: str = "cpu"
    recipe: str = "jain2019"
    options: tuple[tuple[str, object], ...] = ()
    base: "Run | None" = None

    def __post_init__(self):
        for what, known in PARTS.items():
            if getattr(self, what) not in known:
                raise KeyError(f"unknown {what} {getattr(self, what)!r}; known: {', '.join(known)}")
        projection(self.projection)
        profile(self.profile)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise ValueError(f"seed is {self.seed!r}; allowed: a whole number from 0 up")
        self._refuse_wrong_layers()
        self._refuse_wrong_task()
        self._refuse_wrong_options()
        self._refuse_wrong_base()
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    def _refuse_wrong_layers(self):
        if self.layers is None:
            usual = signature(KINDS[self.encoder]).parameters
            object.__setattr__(self, "layers", usual["layers"].default if has_layers(self.encoder) else 1)
        if not whole(self.layers):
            raise ValueError(f"layers is {self.layers!r}; allowed: a whole number from 1 up")
        if self.layers != 1 and not has_layers(self.encoder):
            raise ValueError(f"layers is {self.layers}; the encoder {self.encoder!r} has one")

    def _refuse_wrong_task(self):
        """Encoders and variants that sentences or questions allow."""
        spec = datasets.spec(self.dataset)
        if self.encoder in HIERARCHICAL and self.variant not in PLAIN:
            raise ValueError(
                f"the encoder {self.encoder!r} attends to sentences; of the variants it can have "
                f"{' and '.join(PLAIN)}, not {self.variant!r}"
            )
        if self.encoder in HIERARCHICAL and not spec.sentences:
            known = ", ".join(name for name, spec in datasets.DATASETS.items() if spec.sentences)
            raise ValueError(
                f"the encoder {self.encoder!r} reads sentences, and {self.dataset!r} is not cut into them; "
                f"those that are: {known}"
            )
        for what, allowed in (("encoder", QUESTION_ENCODERS), ("variant", PLAIN)) if spec.asks else ():
            if getattr(self, what) not in allowed:
                raise ValueError(
                    f"{self.dataset!r} asks questions, which no model of the {what} {getattr(self, what)!r} answers; "
                    f"allowed: {', '.join(allowed)}"
                )

    def _refuse_wrong_options(self):
        given, known = dict(self.options), {*self.defaults, *datasets.spec(self.dataset).options}
        if unknown := [name for name in given if name not in known]:
            raise KeyError(
                f"unknown option {unknown[0]!r} of a run of {self.variant} on {self.dataset}; "
                f"known: {', '.join(sorted(known))}"
            )
        if len(given) < len(self.options):
            raise ValueError(f"an option is there twice: {self.options}; allowed: each once")
        for name, value in (self.defaults | given).items():
            allowed, words = ALLOWED.get(name, (lambda value: True, ""))
            if value is not None and not allowed(value):
                raise ValueError(f"{name} is {value!r}; allowed: {words}")
        positive = ("softmax", "entmax:1", "entmax:1.0")
        if self.variant == "adversary" and self.option("divergence") == "kl" and self.projection not in positive:
            raise ValueError(
                f"divergence is 'kl', which is infinite where the attention of {self.projection!r} is 0; "
                "allowed with sparse attention: 'jsd'"
            )

    def _refuse_wrong_base(self):
        allowed = VARIANTS[self.variant]
        if (self.base.variant if self.base else None) not in (allowed or (None,)):
            raise ValueError(
                f"a run of {self.variant} has {self.base.variant + ' as' if self.base else 'no'} base; "
                f"allowed: {' or '.join(allowed) or 'no base'}"
            )
        if self.base and self.base.data != self.data:
            raise ValueError(f"the base reads {self.base.data}, the run {self.data}; allowed: the same data")
        if self.architecture in NEED_EQUAL_SIZES:
            refuse_other_sizes(f"the variant {self.architecture!r}", self.hidden_size, self.option("embedding_size"))

    @property
    def defaults(self) -> dict[str, object]:
        """The options of training that this run has, with their values where `options` gives none."""
        return RECIPES[self.recipe] | OF_ENCODERS.get(self.encoder, {}) | OF_VARIANTS.get(self.variant, {})

    def option(self, name: str):
        """The value of a training option: the run's own, else the default; KeyError where this variant has none."""
        return dict(self.options).get(name, self.defaults[name])

    @property
    def architecture(self) -> str:
        """The variant that decides the model's layers: an adversary is built as its base."""
        return self.base.architecture if self.variant == "adversary" else self.variant

    @property
    def hidden_size(self) -> int:
        """The encoder's: the option's, else the encoder's default, else the embeddings'."""
        own = signature(KINDS[self.encoder]).parameters["hidden_size"].default
        return self.option("hidden_size") or own or self.option("embedding_size")

    @property
    def freezes_embeddings(self) -> bool:
        """Whether the embedding table does not learn."""
        return self.architecture == "frozen" or self.option("embeddings") == "frozen"

    @property
    def epochs(self) -> int:
        """The most passes over the training split; a task may end earlier."""
        sizes = profile(self.profile)
        return self.option("epochs") or (sizes.adversary_epochs if self.variant == "adversary" else sizes.epochs)

    @property
    def data(self) -> tuple:
        """What decides the corpus: dataset, profile, and the dataset's own options."""
        return self.dataset, self.profile, tuple(option for option in self.options if option[0] not in OF_TRAINING)

    def __str__(self) -> str:
        layers = f"{self.layers} layers" if self.layers > 1 and self.encoder == "bilstm" else ""
        of = f"of {self.base.variant}" if self.base and self.base.variant != "base" else ""
        parts = [self.dataset, self.encoder, layers, self.attention, self.projection, self.variant, of]
        parts += [f"{name} {value}" for name, value in self.options if not name.endswith("_dropout")]
        return " ".join(p for p in parts if p not in ("", "softmax", "base")) + f", seed {self.seed}"


def is_guided(run: Run) -> bool:
    """Whether attention is imposed on each text (lib.training.guides)."""
    return run.variant.startswith("guide_")


def adds_up(run: Run) -> bool:
    """Whether a batch's losses are the sums of its texts', so that micro-batches give the same gradient.

    Those of tying and mlm are not: they average over the words of the batch.
    """
    return run.variant not in ("tying", "mlm")


def has_layers(encoder: str) -> bool:
    """Whether an encoder can have more layers than one."""
    return "layers" in signature(KINDS[encoder]).parameters


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
