"""The options of training: the defaults of each recipe, encoder and variant, and which values are allowed."""

from collections.abc import Callable, Iterable

from lib.models import HIERARCHICAL
from lib.models.attention import LINEAR_INITS, QUERY_INITS
from lib.models.encoders import ACTIVATIONS
from lib.projections import projection
from lib.training.losses import DIVERGENCES, MLM_LOSSES, REDUCTIONS, TVDS

# The defaults of a run's options. Jain & Wallace's code: batch of 32, Adam with amsgrad
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
# Meister et al. (2021), appendix B: as Jain & Wallace with smaller states. Table 4 has learning rates of 1e-4
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
# Their code for questions: the mean of a batch's losses, and accuracy on dev (they judge on test). Batch, epochs and
# sizes are options of a run: they differ by dataset. Differs from the paper: the attention has no weight decay here.
ASKING = JAIN | {"judge": "accuracy", "reduction": "mean"}
RECIPES = {
    "jain2019": JAIN,
    "jain2019-questions": ASKING,
    "tutek2020": TUTEK,
    "meister2021": MEISTER,
    "serrano2019": SERRANO,
}
# Options of one encoder alone, with their defaults; an encoder that is not here has none.
OF_ENCODERS = {
    "average": {"activation": "tanh"},
    "transformer": {"heads": 1, "inner_projection": "softmax", "dropout": 0.1},
    **{name: {"sentence_dropout": 0.0} for name in HIERARCHICAL},  # of the words of a sentence
}
# Options of one variant alone. trains: all weights, or the attention's alone, the others fixed at the base's.
# mlm_share: of the tokens are masked; mlm_loss: summed over those of a text, or their mean.
OF_VARIANTS = {
    "adversary": {"lambda": 5e-4, "divergence": "kl", "tvd": "half", "trains": "all"},
    "tying": {"delta": 10.0},
    "mlm": {"eta": 1.0, "mlm_share": 0.15, "mlm_loss": "text"},
}
OF_TRAINING = {name for options in (JAIN, *OF_VARIANTS.values(), *OF_ENCODERS.values()) for name in options}


def whole(value: object) -> bool:
    """Whether a value is a whole number from 1 up."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _one_of(known: Iterable[str]) -> tuple:
    return tuple(known).__contains__, " or ".join(known)


# name: (is the value allowed?, what is allowed)
Rule = tuple[Callable[[object], bool], str]
POSITIVE: Rule = (lambda value: _number(value) and value > 0, "a number above 0")
SHARE: Rule = (lambda value: _number(value) and 0 < value < 1, "a number between 0 and 1")
DROPOUT: Rule = (lambda value: _number(value) and value < 1, "a number from 0, below 1")
NAMED = {
    "judge": ("auc", "accuracy", "f1"),
    "activation": ACTIVATIONS,
    "mlm_loss": MLM_LOSSES,
    "reduction": REDUCTIONS,
    "embeddings": ("trained", "frozen"),
    "query_init": QUERY_INITS,
    "linear_init": LINEAR_INITS,
    "divergence": DIVERGENCES,
    "tvd": TVDS,
    "trains": ("all", "attention"),
}
ALLOWED: dict[str, Rule] = {
    **dict.fromkeys(
        ("epochs", "patience", "batch_size", "embedding_size", "hidden_size", "heads"),
        (whole, "a whole number from 1 up"),
    ),
    **dict.fromkeys(("learning_rate", "attention_rate", "attention_share", "vector_scale", "clip"), POSITIVE),
    **dict.fromkeys(("weight_decay", "lambda", "delta", "eta"), (_number, "a number from 0 up")),
    **dict.fromkeys(("mlm_share", "plateau"), SHARE),
    **dict.fromkeys(("dropout", "sentence_dropout", "document_dropout", "classifier_dropout"), DROPOUT),
    "inner_projection": (lambda name: projection(name) is not None, ""),
    "amsgrad": (lambda value: isinstance(value, bool), "True or False"),
    **{name: _one_of(known) for name, known in NAMED.items()},
}
