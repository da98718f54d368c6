"""What is trained: a run and all that decides its weights, the recipes of the papers, and which runs come first."""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from math import inf

import pandas as pd

from lib import datasets
from lib.models import ATTENTIONS, ENCODERS, HIERARCHICAL, QUESTION_ENCODERS
from lib.models.attention import LINEAR_INITS, QUERY_INITS
from lib.profiles import profile
from lib.projections import projection
from lib.quantity import title_of
from lib.training.losses import DIVERGENCES, REDUCTIONS, TVDS

# The defaults of a run's options. Jain & Wallace's code: batch of 32, Adam with amsgrad at 1e-3, weight decay 1e-5 but
# not on the attention. None: the profile's epochs, all of them; the encoder's own hidden size; no clipping.
JAIN = {
    "epochs": None,
    "judge": "auc",  # the dev score whose best epoch is kept
    "patience": 3,  # training ends after this many epochs without improvement; theirs never ends early
    "plateau": None,  # after each of them the learning rate is multiplied by this
    "batch_size": 32,
    "learning_rate": 1e-3,
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
TUTEK = JAIN | {"patience": None, "clip": 5.0, "reduction": "mean", "hidden_size": 300, "query_init": "normal"}
# Meister et al. (2021), appendix B: as Jain & Wallace with smaller states. Table 4 has learning rates of 1e-4
# (BiLSTM) and 1e-5 (Transformer), which need many epochs; they are options of a run.
MEISTER = JAIN | {"patience": None, "hidden_size": 128}
# Serrano & Smith (2019), appendix A.1, and of their code the batch, the halved rate, plain Adam and first weights.
# Dropout, learning rate and epochs are options of a run: they differ by dataset and encoder.
SERRANO = JAIN | {
    **{"judge": "accuracy", "patience": 5, "plateau": 0.5, "amsgrad": False, "weight_decay": 0.0, "clip": 10.0},
    **{"batch_size": 64, "reduction": "mean", "learning_rate": 4e-4, "embedding_size": 200, "attention_share": 1.0},
    "linear_init": "xavier",
}
# Their code for questions: the mean of a batch's losses, and accuracy on dev (they judge on test). Batch, epochs and
# sizes are options of a run: they differ by dataset. Differs from the paper: the attention has no weight decay here.
ASKING = JAIN | {"patience": None, "judge": "accuracy", "reduction": "mean"}
RECIPES = {"jain2019": JAIN, "jain2019-questions": ASKING, "tutek2020": TUTEK}
RECIPES |= {"meister2021": MEISTER, "serrano2019": SERRANO}
# Options of one encoder alone, with their defaults; an encoder that is not here has none.
OF_ENCODERS = {
    "transformer": {"heads": 1, "dropout": 0.1},
    **{name: {"sentence_dropout": 0.0} for name in HIERARCHICAL},  # of the words of a sentence
}
# Options of one variant alone. trains: all weights, or the attention's alone, the others fixed at the base's. starts:
# from weights of its own, or from all of the base's (Meister et al. 2021, section 5). judge: of a liar the epoch is
# kept whose minimised loss on dev is least, or the score decides that is given.
OF_VARIANTS = {
    "adversary": {"lambda": 5e-4, "divergence": "kl", "tvd": "half", "trains": "all", "starts": "random"},
    "liar": {"lambda": 1.0, "judge": "objective"},
    "tying": {"delta": 10.0},
    "mlm": {"eta": 1.0},
}
HYPERPARAMETERS = ("embedding_size", "hidden_size", "sentence_dropout", "document_dropout", "classifier_dropout")
HYPERPARAMETERS += ("learning_rate", "weight_decay", "clip", "batch_size", "epochs", "patience")  # that papers print
OF_TRAINING = {name for options in (JAIN, *OF_VARIANTS.values(), *OF_ENCODERS.values()) for name in options}

# What an option may be: a test, and in words.
Rule = tuple[Callable[[object], bool], str]


def one_of(names: Iterable) -> Rule:
    """One of these values, of their type: 1 is not True."""
    names = tuple(names)
    return lambda value: value in names and isinstance(value, type(names[0])), " or ".join(map(str, names))


def number(kind: type, fits: Callable, words: str) -> Rule:
    """A number of that type that fits."""
    return lambda value: isinstance(value, kind) and not isinstance(value, bool) and fits(value), words


WHOLE = number(int, lambda n: n > 0, "a whole number from 1 up")
POSITIVE = number(int | float, lambda x: 0 < x < inf, "a number above 0")
FROM_0 = number(int | float, lambda x: 0 <= x < inf, "a number from 0 up")
DROPOUT = number(int | float, lambda x: 0 <= x < 1, "a number from 0, below 1")
ALLOWED = {
    "judge": one_of(("auc", "accuracy", "f1")),
    "amsgrad": one_of((True, False)),
    "reduction": one_of(REDUCTIONS),
    "embeddings": one_of(("trained", "frozen")),
    "query_init": one_of(QUERY_INITS),
    "linear_init": one_of(LINEAR_INITS),
    "divergence": one_of(DIVERGENCES),
    "tvd": one_of(TVDS),
    "trains": one_of(("all", "attention")),
    "starts": one_of(("random", "base")),
    "seed": number(int, lambda n: n >= 0, "a whole number from 0 up"),
    "plateau": number(int | float, lambda x: 0 < x < 1, "a number between 0 and 1"),
    **dict.fromkeys(("epochs", "patience", "batch_size", "embedding_size", "hidden_size", "heads", "layers"), WHOLE),
    **dict.fromkeys(("learning_rate", "attention_share", "vector_scale", "clip"), POSITIVE),
    **dict.fromkeys(("weight_decay", "lambda", "delta", "eta"), FROM_0),
    **dict.fromkeys(("dropout", "sentence_dropout", "document_dropout", "classifier_dropout"), DROPOUT),
}


def refuse_value(name: str, value: object) -> None:
    """Raises ValueError where an option cannot have a value, with those that it can have."""
    fits, words = ALLOWED.get(name, (lambda value: True, ""))
    if not fits(value):
        raise ValueError(f"{name} is {value!r}; allowed: {words}")


KINDS = ChainMap(HIERARCHICAL, ENCODERS)  # a view: an encoder that is registered later is there too

# The variants, and of each those of the run whose outputs it uses, its `base`; none: it has no base.
REGULARIZED = ("base", "frozen", "concat", "residual", "tying", "mlm")
VARIANTS = {
    **dict.fromkeys((*REGULARIZED, "uniform", "liar"), ()),
    "adversary": (*REGULARIZED, "liar"),
    "guide_base": ("base", "liar"),
    "guide_adversary": ("adversary",),
}
NEVER_ZERO = ("softmax", "entmax:1", "entmax:1.0")  # projections: the divergence of others can be infinite
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
        usual = default_of(self.encoder, "layers")
        object.__setattr__(self, "layers", (usual or 1) if self.layers is None else self.layers)
        refuse_unknown(self)
        for fault in faults_of(self):
            raise ValueError(fault)
        object.__setattr__(self, "options", tuple(sorted(self.options)))

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
        own = default_of(self.encoder, "hidden_size")
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


def refuse_unknown(run: Run) -> None:
    """Raises KeyError for a name that nobody knows, ValueError for a value that an option cannot have."""
    projection(run.projection)
    profile(run.profile)
    refuse_value("seed", run.seed)
    refuse_value("layers", run.layers)
    options = {*run.defaults, *datasets.spec(run.dataset).options}
    for name, value in run.options:
        if name not in options:
            known = ", ".join(sorted(options))
            raise KeyError(f"unknown option {name!r} of a run of {run.variant} on {run.dataset}; known: {known}")
        if value is not None:
            refuse_value(name, value)


def faults_of(run: Run) -> Iterator[str]:
    """What does not fit together in a run, a sentence each."""
    spec, variant, encoder = datasets.spec(run.dataset), run.variant, run.encoder
    if run.layers != 1 and default_of(encoder, "layers") is None:
        yield f"layers is {run.layers!r}; allowed for the encoder {encoder!r}: 1"
    if encoder in HIERARCHICAL and variant not in PLAIN:
        allowed = " and ".join(PLAIN)
        yield f"the encoder {encoder!r} attends to sentences; of the variants it can have {allowed}, not {variant!r}"
    if encoder in HIERARCHICAL and not spec.sentences:
        cut = ", ".join(name for name, other in datasets.DATASETS.items() if other.sentences)
        yield f"the encoder {encoder!r} reads sentences, and {run.dataset!r} is not cut into them; allowed: {cut}"
    for what, allowed in (("encoder", QUESTION_ENCODERS), ("variant", PLAIN)) if spec.asks else ():
        if (name := getattr(run, what)) not in allowed:
            names = ", ".join(allowed)
            yield f"{run.dataset!r} asks questions, which no model of the {what} {name!r} answers; allowed: {names}"
    if len(dict(run.options)) < len(run.options):
        yield f"an option is there twice: {run.options}; allowed: each once"
    yield from faults_of_base(run)
    if variant == "adversary" and run.option("divergence") == "kl" and run.projection not in NEVER_ZERO:
        yield (
            f"divergence is 'kl', which is infinite where the attention of {run.projection!r} is 0; "
            "allowed with sparse attention: 'jsd'"
        )
    size = run.option("embedding_size")
    if run.architecture in NEED_EQUAL_SIZES and run.hidden_size != size:
        yield (
            f"the variant {run.architecture!r} needs hidden states of the embeddings' size: hidden_size is "
            f"{run.hidden_size}, embedding_size {size}; set hidden_size={size}"
        )


def faults_of_base(run: Run) -> Iterator[str]:
    """Why a run cannot have the base that it has, or none."""
    allowed, own = VARIANTS[run.variant], run.base and run.base.variant
    if own not in (allowed or (None,)):
        bases = " or ".join(allowed) or "no base"
        yield f"a run of {run.variant} has {f'{own} as' if own else 'no'} base; allowed: {bases}"
    if run.base and run.base.data != run.data:
        yield f"the base reads {run.base.data}, the run {run.data}; allowed: the same data"


def hyperparameters(runs: Iterable[Run]) -> pd.DataFrame:
    """How the runs' encoders are built and trained: a column for each, a row for each of HYPERPARAMETERS they have."""
    columns = {}
    for run in runs:
        options = run.defaults | dict(run.options) | {"hidden_size": run.hidden_size, "epochs": run.epochs}
        columns[title_of(run.encoder)] = {name.replace("_", " "): options.get(name) for name in HYPERPARAMETERS}
    return pd.DataFrame(columns).dropna(how="all")


def is_guided(run: Run) -> bool:
    """Whether attention is imposed on each text (lib.training.tasks.guide)."""
    return run.variant.startswith("guide_")


def adds_up(run: Run) -> bool:
    """Whether a batch's losses are the sums of its texts', so that micro-batches give the same gradient.

    Those of tying and mlm are not: they average over the words of the batch.
    """
    return run.variant not in ("tying", "mlm")


def default_of(encoder: str, parameter: str) -> int | None:
    """The default of a parameter of an encoder's class; None where it has no such parameter, such as `layers`."""
    declared = signature(KINDS[encoder]).parameters.get(parameter)
    return declared.default if declared else None


def with_bases(runs: Sequence[Run]) -> list[Run]:
    """The runs and the bases that they need, each once, bases first."""
    ordered: dict[Run, None] = {}
    for run in runs:
        ordered.update(dict.fromkeys([*with_bases([run.base] if run.base else []), run]))
    return list(ordered)


def stages(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs in groups that can be trained side by side: no run is in one group with its base."""
    by_depth: dict[int, list[Run]] = {}
    for run in runs:
        by_depth.setdefault(len(with_bases([run])), []).append(run)
    return [by_depth[depth] for depth in sorted(by_depth)]
