"""What is trained: a run, what decides its weights, and which runs must come before which."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from inspect import signature

from lib import datasets
from lib.models import ATTENTIONS, ENCODERS, HIERARCHICAL
from lib.models.attention import LINEAR_INITS, QUERY_INITS
from lib.models.encoders import ACTIVATIONS
from lib.models.retention import refuse_other_sizes
from lib.objectives import DIVERGENCES, MLM_LOSSES, REDUCTIONS, TVDS
from lib.profiles import profile
from lib.projections import projection

# What a run is trained by, unless its own options say otherwise. Jain & Wallace's code: batch of 32, Adam with amsgrad
# at 1e-3, weight decay 1e-5 but not on the attention. None: the profile's epochs, all of them; the encoder's own hidden
# size; no clipping.
JAIN = {
    "epochs": None,
    "judge": "auc",  # the dev score whose best epoch is kept
    "patience": None,  # training ends after so many epochs that were not better
    "plateau": None,  # after each of them the learning rate is so many times what it was
    "batch_size": 32,
    "learning_rate": 1e-3,
    "attention_rate": 1.0,  # the attention's learning rate is so many times that of the other parameters
    "weight_decay": 1e-5,
    "amsgrad": True,
    "clip": None,  # the largest norm of the gradient
    "reduction": "sum",
    "embedding_size": 300,
    "embeddings": "trained",
    "vector_scale": 1.0,  # the word vectors are multiplied by it before training
    "hidden_size": None,
    "query_init": "default",  # of dot attention
    "attention_share": 0.5,  # the size of additive attention's inner layer, as a share of the states'
    "linear_init": "default",  # of attention and decoder
    "document_dropout": 0.0,  # of what the encoder reads
    "classifier_dropout": 0.0,  # of what the decoder reads
}
# Tutek & Snajder (2020), table 4 and appendix C: the states of both directions have together the embeddings' size.
TUTEK = JAIN | {"clip": 5.0, "reduction": "mean", "hidden_size": 300, "query_init": "normal"}
# Meister et al. (2021), appendix B: Jain & Wallace's way with smaller states. Table 4 has learning rates of 1e-4
# (BiLSTM) and 1e-5 (Transformer), which need many epochs; they are options of a run, and so is the attention's rate, 1
# or 10 times the others'.
MEISTER = JAIN | {"hidden_size": 128}
# Serrano & Smith (2019), appendix A.1, and of their code the batch, the halved rate, plain Adam and first weights.
# Dropout, learning rate and epochs are options of a run: they differ by dataset and encoder.
SERRANO = JAIN | {
    **{"judge": "accuracy", "patience": 5, "plateau": 0.5, "amsgrad": False, "weight_decay": 0.0, "clip": 10.0},
    **{"batch_size": 64, "reduction": "mean", "learning_rate": 4e-4, "embedding_size": 200, "attention_share": 1.0},
    "linear_init": "xavier",
}
RECIPES = {"jain2019": JAIN, "tutek2020": TUTEK, "meister2021": MEISTER, "serrano2019": SERRANO}
# The options of one encoder alone, with what they are by themselves.
OF_ENCODERS = {
    "average": {"activation": "tanh"},
    "transformer": {"heads": 1, "inner_projection": "softmax", "dropout": 0.1},
    **{name: {"sentence_dropout": 0.0} for name in HIERARCHICAL},  # of the words of a sentence
}
KINDS = ENCODERS | HIERARCHICAL

# The variants, and of each those of the run whose outputs it uses, its `base`; none: it has no base.
REGULARIZED = ("base", "frozen", "concat", "residual", "tying", "mlm")
VARIANTS = {
    **dict.fromkeys((*REGULARIZED, "uniform"), ()),
    "adversary": REGULARIZED,
    "guide_base": ("base",),
    "guide_instance_adversary": ("base",),
    "guide_adversary": ("adversary",),
}
# The options of one variant alone.
# trains: all weights, or the attention's alone, the others fixed at the base's.
# mlm_share: how many of the tokens are masked; mlm_loss: summed over those of a text, or their mean.
OPTIONS_OF = {
    "adversary": {"lambda": 5e-4, "divergence": "kl", "tvd": "half", "trains": "all"},
    "tying": {"delta": 10.0},
    "mlm": {"eta": 1.0, "mlm_share": 0.15, "mlm_loss": "text"},
}
OF_SENTENCES = ("base", "uniform")  # those of a network whose attention is over sentences
NEED_EQUAL_SIZES = ("residual", "tying", "mlm")  # hidden states are added to embeddings, or compared with them
TRAINS = ("all", "attention")
PARTS = {
    "encoder": KINDS,
    "attention": ATTENTIONS,
    "variant": VARIANTS,
    "recipe": RECIPES,
}
OF_TRAINING = {name for options in (JAIN, *OPTIONS_OF.values(), *OF_ENCODERS.values()) for name in options}


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _one_of(names: Iterable[str]) -> tuple:
    return (lambda value: value in names), " or ".join(names)


ALLOWED = {
    **dict.fromkeys(
        ("epochs", "patience", "batch_size", "embedding_size", "hidden_size", "heads"),
        (_whole, "a whole number from 1 up"),
    ),
    **dict.fromkeys(
        ("learning_rate", "attention_rate", "attention_share", "vector_scale", "clip"), (_positive, "a number above 0")
    ),
    **dict.fromkeys(
        ("weight_decay", "lambda", "delta", "eta"), (lambda value: value == 0 or _positive(value), "a number from 0 up")
    ),
    "mlm_share": (lambda value: _positive(value) and value < 1, "a number between 0 and 1"),
    **dict.fromkeys(
        ("dropout", "sentence_dropout", "document_dropout", "classifier_dropout"),
        (lambda value: value == 0 or (_positive(value) and value < 1), "a number from 0, below 1"),
    ),
    "plateau": (lambda value: _positive(value) and value < 1, "a number between 0 and 1"),
    "amsgrad": (lambda value: isinstance(value, bool), "True or False"),
    "judge": _one_of(("auc", "accuracy", "f1")),
    "inner_projection": (lambda name: projection(name) is not None, ""),
    "activation": _one_of(ACTIVATIONS),
    "mlm_loss": _one_of(MLM_LOSSES),
    "reduction": _one_of(REDUCTIONS),
    "embeddings": _one_of(("trained", "frozen")),
    "query_init": _one_of(QUERY_INITS),
    "linear_init": _one_of(LINEAR_INITS),
    "divergence": _one_of(DIVERGENCES),
    "tvd": _one_of(TVDS),
    "trains": _one_of(TRAINS),
}


@dataclass(frozen=True)
class Run:
    """What is trained: everything that decides the weights, except the data themselves and the code.

    `projection` is a name of lib.projections; `layers` is the encoder's, None its usual number. `recipe` names the
    options of training that `options` does not; `options` is a sorted tuple of (name, value): those of the recipe, of
    the encoder, of the variant and of the dataset. `base` is another run whose outputs this one uses.
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
        self._refuse_wrong_layers()
        self._refuse_wrong_hierarchy()
        known = {*self.defaults, *datasets.spec(self.dataset).options}
        unknown = [name for name, _ in self.options if name not in known]
        if unknown:
            raise KeyError(
                f"unknown option {unknown[0]!r} of a run of {self.variant} on {self.dataset}; "
                f"known: {', '.join(sorted(known))}"
            )
        if len(dict(self.options)) < len(self.options):
            raise ValueError(f"an option is there twice: {self.options}; allowed: each once")
        self._refuse_wrong_base()
        for name, value in (self.defaults | dict(self.options)).items():
            allowed, words = ALLOWED.get(name, (lambda value: True, ""))
            if value is not None and not allowed(value):
                raise ValueError(f"{name} is {value!r}; allowed: {words}")
        self._refuse_infinite_divergence()
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise ValueError(f"seed is {self.seed!r}; allowed: a whole number from 0 up")
        profile(self.profile)
        if self.architecture in NEED_EQUAL_SIZES:
            refuse_other_sizes(f"the variant {self.architecture!r}", self.hidden_size, self.option("embedding_size"))
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    def _refuse_wrong_hierarchy(self):
        if self.encoder not in HIERARCHICAL:
            return
        if self.variant not in OF_SENTENCES:
            raise ValueError(
                f"the encoder {self.encoder!r} attends to sentences; of the variants it can have "
                f"{' and '.join(OF_SENTENCES)}, not {self.variant!r}"
            )
        if not datasets.spec(self.dataset).sentences:
            known = ", ".join(name for name, spec in datasets.DATASETS.items() if spec.sentences)
            raise ValueError(
                f"the encoder {self.encoder!r} reads sentences, and {self.dataset!r} is not cut into them; "
                f"those that are: {known}"
            )

    def _refuse_wrong_layers(self):
        if self.layers is None:
            usual = signature(KINDS[self.encoder]).parameters
            object.__setattr__(self, "layers", usual["layers"].default if has_layers(self.encoder) else 1)
        if not _whole(self.layers):
            raise ValueError(f"layers is {self.layers!r}; allowed: a whole number from 1 up")
        if self.layers != 1 and not has_layers(self.encoder):
            raise ValueError(f"layers is {self.layers}; the encoder {self.encoder!r} has one")

    def _refuse_infinite_divergence(self):
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

    @property
    def defaults(self) -> dict[str, object]:
        """The options of training that this run has, with what they are where `options` does not say."""
        return RECIPES[self.recipe] | OF_ENCODERS.get(self.encoder, {}) | OPTIONS_OF.get(self.variant, {})

    def option(self, name: str):
        """The value of a training option: the run's own, else the default; KeyError where this variant has none."""
        return dict(self.options).get(name, self.defaults[name])

    @property
    def architecture(self) -> str:
        """The variant that decides what the model is made of: an adversary is built as its base."""
        return self.base.architecture if self.variant == "adversary" else self.variant

    @property
    def hidden_size(self) -> int:
        """The encoder's: as the options have it, else its own."""
        own = signature(KINDS[self.encoder]).parameters["hidden_size"].default
        return self.option("hidden_size") or own or self.option("embedding_size")

    @property
    def freezes_embeddings(self) -> bool:
        return self.architecture == "frozen" or self.option("embeddings") == "frozen"

    @property
    def epochs(self) -> int:
        """The passes over the training split; of an adversary the most, since it ends when its loss stands still."""
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
