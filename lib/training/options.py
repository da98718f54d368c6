"""The options of training: what each recipe, encoder and variant has by default, and which values are allowed."""

from collections.abc import Iterable

from lib.models import HIERARCHICAL
from lib.models.attention import LINEAR_INITS, QUERY_INITS
from lib.models.encoders import ACTIVATIONS
from lib.projections import projection
from lib.training.losses import DIVERGENCES, MLM_LOSSES, REDUCTIONS, TVDS

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
# The options of one encoder alone, with what they are by themselves.
OF_ENCODERS = {
    "average": {"activation": "tanh"},
    "transformer": {"heads": 1, "inner_projection": "softmax", "dropout": 0.1},
    **{name: {"sentence_dropout": 0.0} for name in HIERARCHICAL},  # of the words of a sentence
}
# The options of one variant alone.
# trains: all weights, or the attention's alone, the others fixed at the base's.
# mlm_share: how many of the tokens are masked; mlm_loss: summed over those of a text, or their mean.
OPTIONS_OF = {
    "adversary": {"lambda": 5e-4, "divergence": "kl", "tvd": "half", "trains": "all"},
    "tying": {"delta": 10.0},
    "mlm": {"eta": 1.0, "mlm_share": 0.15, "mlm_loss": "text"},
}
TRAINS = ("all", "attention")
OF_TRAINING = {name for options in (JAIN, *OPTIONS_OF.values(), *OF_ENCODERS.values()) for name in options}


def whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _one_of(names: Iterable[str]) -> tuple:
    return (lambda value: value in names), " or ".join(names)


ALLOWED = {
    **dict.fromkeys(
        ("epochs", "patience", "batch_size", "embedding_size", "hidden_size", "heads"),
        (whole, "a whole number from 1 up"),
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
