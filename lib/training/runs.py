"""What is trained: a run and all that decides its weights, the recipes of the papers, and which runs come first."""

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import groupby
from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveInt, ValidationError, create_model

from lib import datasets
from lib.datasets.pretrained import is_pretrained
from lib.models import ATTENTIONS, ENCODERS, HIERARCHICAL, QUESTION_ENCODERS
from lib.models.attention import QUERY_INITS
from lib.models.encoders import FROZEN, encoder_kind
from lib.profiles import PROFILES
from lib.projections import projection
from lib.training.losses import REDUCTIONS, TVDS
from lib.training.targets import TARGETS

Above0, From0 = Annotated[FiniteFloat, Field(gt=0)], Annotated[FiniteFloat, Field(ge=0)]
Dropout, Factor = Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(gt=0, lt=1)]
# The options of a run: what each may be, and its default, of Jain & Wallace's code; its weight decay is not on the
# attention. None: the profile's epochs, all of them; the encoder's own hidden size; no clipping.
OPTIONS = {
    "epochs": (PositiveInt, None),
    "judge": (Literal["auc", "accuracy", "f1"], "auc"),  # the dev score whose best epoch is kept
    "patience": (PositiveInt, 3),  # training ends after this many epochs without improvement; theirs never ends early
    "warmup": (Factor, None),  # in this share of the steps the rates rise to their values; then they fall to 0
    "pretrained_rate": (Above0, None),  # of a pretrained encoder that learns further, and its table of subwords
    "decoupled": (bool, False),  # the weight decay is that of AdamW
    "plateau": (Factor, None),  # after each of them the learning rate is multiplied by this
    "batch_size": (PositiveInt, 32),
    "learning_rate": (Above0, 1e-3),
    "weight_decay": (From0, 1e-5),
    "amsgrad": (bool, True),
    "clip": (Above0, None),  # the largest norm of the gradient
    "reduction": (Literal[*REDUCTIONS], "sum"),
    "embedding_size": (PositiveInt, 300),  # of vectors that are made here; those of a file have theirs
    "embeddings": (Literal["trained", "frozen"], "trained"),
    "hidden_size": (PositiveInt | Literal["embeddings"], None),  # embeddings: as many as the word vectors have
    "query_init": (Literal[*QUERY_INITS], "default"),  # of dot attention, the last of two
    "attention_share": (Above0, 0.5),  # the size of additive attention's inner layer, as a share of the states'
    "linear_init": (Literal["default", "xavier"], "default"),  # of all linear layers
    "document_dropout": (Dropout, 0.0),  # of what the encoder reads
    "classifier_dropout": (Dropout, 0.0),  # of what the decoder reads
}
# Of one encoder alone; an encoder that is not here has none.
OF_ENCODERS = {
    "transformer": {"heads": (PositiveInt, 1), "dropout": (Dropout, 0.1)},
    **{name: {"sentence_dropout": (Dropout, 0.0)} for name in HIERARCHICAL},  # of the words of a sentence
}
# Of a pretrained encoder that learns further: as such are usually trained.
FINE_TUNING = {"pretrained_rate": 5e-5, "warmup": 0.1, "epochs": 3, "patience": None, "batch_size": 16, "clip": 1.0}
FINE_TUNING |= {"decoupled": True, "weight_decay": 0.01, "amsgrad": False, "reduction": "mean"}
# Of one variant alone. trains: all weights, or the attention's alone, the others fixed at the base's. starts: from
# weights of its own, or all of the base's (Meister et al. 2021, section 5). Pulled: to which attention.
OF_VARIANTS = {
    "adversary": {
        "lambda": (From0, 5e-4),
        "divergence": (Literal["kl", "jsd"], "kl"),
        "tvd": (Literal[*TVDS], "half"),
        "trains": (Literal["all", "attention"], "all"),
        "starts": (Literal["random", "base"], "random"),
        **{name: OPTIONS[name] for name in ("epochs", "warmup")},  # of a pretrained encoder too
    },
    "pulled": {
        "target": (Literal[*TARGETS], "spread"),
        "lambda": (From0, 1.0),
        "judge": (OPTIONS["judge"][0], "objective"),
    },
    "tying": {"delta": (From0, 10.0)},
    "mlm": {"eta": (From0, 1.0)},
}
EVERY = dict(ChainMap(OPTIONS, *OF_ENCODERS.values(), *OF_VARIANTS.values()))
OF_RUNS = {"seed": (NonNegativeInt, 0), "layers": (PositiveInt, None)}
VALUES = create_model("Values", __config__={"strict": True}, **EVERY, **OF_RUNS)
# Tutek & Snajder (2020), table 4 and appendix C: the states of both directions have together the embeddings' size.
TUTEK = {"patience": None, "clip": 5.0, "reduction": "mean", "hidden_size": "embeddings", "query_init": "normal"}
# Meister et al. (2021), appendix B: as Jain & Wallace with smaller states; table 4's learning rates are options.
MEISTER = {"patience": None, "hidden_size": 128}
# Serrano & Smith (2019), appendix A.1, and of their code the batch, the halved rate, plain Adam and first weights; what
# differs by dataset and encoder (dropout, learning rate, epochs) is an option of a run.
SERRANO = {"judge": "accuracy", "patience": 5, "plateau": 0.5, "amsgrad": False, "weight_decay": 0.0, "clip": 10.0}
SERRANO |= {"batch_size": 64, "reduction": "mean", "learning_rate": 4e-4, "embedding_size": 200}
SERRANO |= {"attention_share": 1.0, "linear_init": "xavier"}
# Jain & Wallace's code for questions; batch, epochs and sizes, by dataset, are options of a run. Differs from
# the paper: judged on dev, not on test, and the attention has no weight decay.
ASKING = {"patience": None, "judge": "accuracy", "reduction": "mean"}
RECIPES = {"jain2019": {}, "jain2019-questions": ASKING, "tutek2020": TUTEK}
RECIPES |= {"meister2021": MEISTER, "serrano2019": SERRANO}
# The file in the home of data that "auto" takes first: general vectors, as the papers' code does; for Tutek & Snajder
# word2vec of these texts, as the rows that words share in the general ones would be frozen alike.
FIRST_VECTORS = dict.fromkeys(RECIPES, "wiki_spacy_md_300d") | {"tutek2020": "indomain_word2vec_300d"}

# The variants, and of each those of the run whose outputs it uses, its `base`; none: it has no base.
REGULARIZED = ("base", "frozen", "concat", "residual", "tying", "mlm")
VARIANTS = {
    **dict.fromkeys((*REGULARIZED, "uniform", "pulled"), ()),
    "adversary": REGULARIZED,
    "guide_base": ("base", "pulled"),
    "guide_adversary": ("adversary",),
}
NEVER_ZERO = ("softmax", "entmax:1", "entmax:1.0")  # projections: the divergence of others can be infinite
PLAIN = ("base", "uniform")  # those of a model whose attention is over sentences, or that answers questions
NEED_EQUAL_SIZES = ("residual", "tying", "mlm")  # hidden states are added to embeddings, or compared with them


@dataclass(frozen=True)
class Run:
    """What is trained: all that decides the weights, except data and code.

    KeyError, ValueError: a part is unknown, or parts do not fit together.
    """

    dataset: str
    encoder: str = "bilstm"
    attention: str = "additive"
    projection: str = "softmax"
    variant: str = "base"
    layers: int | None = None  # of the encoder; None: its usual number
    seed: int = 0
    profile: str = "quick"
    vectors: str = "auto"
    device_kind: str = "cpu"
    recipe: str = "jain2019"  # the defaults of the training options
    options: tuple[tuple[str, object], ...] = ()  # (name, value), sorted: of training, encoder, variant and dataset
    base: "Run | None" = None  # whose outputs this one uses

    def __post_init__(self):
        refuse_names(self)
        if self.layers is None:
            object.__setattr__(self, "layers", default_of(self.encoder, "layers") or 1)
        refuse_options(self)
        refuse_misfits(self)
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    @property
    def defaults(self) -> dict[str, object]:
        """The options of training that this run has, with their values where `options` gives none."""
        own = OF_ENCODERS.get(self.encoder, {}) | OF_VARIANTS.get(self.variant, {})
        usual = {name: default for name, (_, default) in OPTIONS.items()} | RECIPES[self.recipe]
        usual |= FINE_TUNING if is_pretrained(self.encoder) and not self.encoder.endswith(FROZEN) else {}
        return usual | {name: default for name, (_, default) in own.items()}

    def option(self, name: str):
        """The value of a training option: the run's own, else the default; KeyError where this variant has none."""
        return dict(self.options).get(name, self.defaults[name])

    @property
    def architecture(self) -> str:
        """The variant that decides the model's layers: an adversary is built as its base."""
        return self.base.architecture if self.variant == "adversary" else self.variant

    @property
    def is_guided(self) -> bool:
        """Whether attention is imposed on each text (`Trained.batches`)."""
        return self.variant.startswith("guide_")

    @property
    def freezes_embeddings(self) -> bool:
        """Whether the embedding table does not learn."""
        return self.encoder.endswith(FROZEN) or "frozen" in (self.architecture, self.option("embeddings"))

    @property
    def epochs(self) -> int:
        """The most passes over the training split; a task may end earlier."""
        sizes = PROFILES[self.profile]
        return self.option("epochs") or (sizes.adversary_epochs if self.variant == "adversary" else sizes.epochs)

    @property
    def data(self) -> tuple:
        """What decides the corpus: dataset, profile, and the dataset's own options."""
        return self.dataset, self.profile, tuple(option for option in self.options if option[0] not in EVERY)

    def __str__(self) -> str:
        layers = f"{self.layers} layers" if self.layers > 1 and self.encoder == "bilstm" else ""
        of = f"of {self.base.variant}" if self.base and self.base.variant != "base" else ""
        parts = [self.dataset, self.encoder, layers, self.attention, self.projection, self.variant, of]
        parts += [f"{name} {value}" for name, value in self.options if not name.endswith("_dropout")]
        return " ".join(p for p in parts if p not in ("", "softmax", "base")) + f", seed {self.seed}"


def refuse_names(run: Run) -> None:
    """Raises KeyError or ValueError for a part of a run that is unknown, or that there is not beside the others."""
    projection(run.projection)
    spec = datasets.spec(run.dataset)
    plain = QUESTION_ENCODERS if spec.asks else ENCODERS
    allowed = {
        "recipe": RECIPES,
        "profile": PROFILES,
        "encoder": [*plain, *HIERARCHICAL] if spec.sentences else plain,
        "attention": ATTENTIONS,
        "variant": PLAIN if spec.asks or run.encoder in HIERARCHICAL else VARIANTS,
    }
    if is_pretrained(run.encoder):
        allowed["encoder"] = [run.encoder] if spec.subwords == run.encoder.removesuffix(FROZEN) else plain
    for what, names in allowed.items():
        if (name := getattr(run, what)) not in names:
            raise ValueError(f"{run.encoder} on {run.dataset}: {what} is {name!r}; allowed: {', '.join(names)}")


def refuse_options(run: Run) -> None:
    """Raises KeyError for an unknown option, ValueError for a value that an option cannot have."""
    known, given = {*run.defaults, *datasets.spec(run.dataset).options}, dict(run.options)
    if unknown := given.keys() - known:
        names = f"{min(unknown)!r} of a run of {run.variant} on {run.dataset}; known: {', '.join(sorted(known))}"
        raise KeyError(f"unknown option {names}")
    given = {name: value for name, value in given.items() if value is not None}
    try:
        VALUES(**given, seed=run.seed, layers=run.layers)
    except ValidationError as error:
        wrong = error.errors()[0]
        allowed = wrong["msg"].removeprefix("Input should be ")
        raise ValueError(f"{wrong['loc'][0]} is {wrong['input']!r}; allowed: {allowed}") from error


def refuse_misfits(run: Run) -> None:
    """Raises ValueError where the parts of a run, each allowed, do not fit together."""
    base, bases = run.base and run.base.variant, VARIANTS[run.variant] or (None,)
    if base not in bases:
        raise ValueError(f"the base of a run of {run.variant} is {base}; allowed: {' or '.join(map(str, bases))}")
    if run.variant == "adversary" and run.option("divergence") == "kl" and run.projection not in NEVER_ZERO:
        where = f"infinite where the attention of {run.projection!r} is 0"
        raise ValueError(f"divergence is 'kl', which is {where}; allowed with sparse attention: 'jsd'")
    if is_pretrained(run.encoder) and run.vectors != "auto":
        raise ValueError(f"vectors are {run.vectors!r}; {run.encoder} brings its own; allowed: 'auto'")
    equal = is_pretrained(run.encoder) or run.option("hidden_size") in ("embeddings", run.option("embedding_size"))
    if run.architecture in NEED_EQUAL_SIZES and not equal:
        sizes = f"hidden_size is {run.option('hidden_size')}; set hidden_size='embeddings'"
        raise ValueError(f"the variant {run.architecture!r} needs hidden states of the embeddings' size: {sizes}")


def readable(dataset: str, encoders: Sequence[str]) -> str:
    """A dataset's name as these encoders read it: in the subwords of the pretrained model among them, if any."""
    models = sorted({name.removesuffix(FROZEN) for name in encoders if is_pretrained(name)})
    if len(models) > 1:
        raise ValueError(f"{' and '.join(models)} read different subwords; allowed: one pretrained model at a time")
    return datasets.in_subwords(dataset, models[0]) if models else dataset


def default_of(encoder: str, parameter: str) -> int | None:
    """The default of a parameter of an encoder's class; None where it has no such parameter, such as `layers`."""
    declared = signature(encoder_kind(encoder)).parameters.get(parameter)
    return declared.default if declared else None


def with_bases(runs: Sequence[Run]) -> list[Run]:
    """The runs and the bases that they need, each once, bases first."""
    ordered: dict[Run, None] = {}
    for run in runs:
        ordered |= dict.fromkeys([*with_bases([run.base] if run.base else []), run])
    return list(ordered)


def stages(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs in groups that can be trained side by side: no run is in one group with its base."""
    depth = {run: len(with_bases([run])) for run in runs}
    return [list(group) for _, group in groupby(sorted(runs, key=depth.get), depth.get)]
