"""Every kind of model on a few texts, and every quantity that it has, for tests of devices."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import small
import test_hierarchical as documents
import test_huggingface as huggingface
import test_questions as questions
from test_own_model import pooled
from torch import nn

from lib import importance, interventions
from lib.analysis import attention_weights, max_attention, measure, violation_by_chance
from lib.datasets.batches import Batch, collate
from lib.datasets.pretrained import library
from lib.importance import quantity
from lib.importance.rankings import RANKINGS
from lib.importance.state_gradients import of_inputs_to_states
from lib.interventions import token_probabilities
from lib.models.huggingface import HuggingFaceClassifier
from lib.quantity import Quantity

OF_ATTENTION = [attention_weights, max_attention, interventions.largest_change(), interventions.largest_jsd()]
OF_ATTENTION += [interventions.permutation_effect(5), interventions.permutation_share_by_chance(5)]
OF_ATTENTION += [interventions.adversary(0.05, "gradient", with_attention=True, restarts=2, steps=5)]
OF_ATTENTION += [interventions.adversary_by_chance(0.05, "gradient", draws=2, restarts=2, steps=5)]
OF_ATTENTION += [importance.attention_times_norm, importance.attention_times_contribution]
OF_ATTENTION += [interventions.substituted(5), *small.quantities(token_probabilities=token_probabilities)]
OF_ATTENTION += [Quantity("token_probability_mean", interventions.token_probability_mean, "fraction")]
OF_ATTENTION += [interventions.single_erasure(RANKINGS), interventions.until_flip(RANKINGS)]
OF_INPUT = [quantity("times_input", importance.gradient_times_input), quantity("gradient", importance.gradient)]
OF_INPUT += [quantity("times_input_through", importance.gradient_times_input, through_attention=True)]
OF_INPUT += [quantity("gradient_detached", importance.gradient, through_attention=False)]
OF_WORDS = [*OF_INPUT, quantity("gradient_of_hidden", importance.gradient, of="hidden")]
OF_WORDS += [interventions.agreement_by_chance(importance.gradient_times_input), violation_by_chance(placed=2)]
OF_WORDS += [importance.leave_one_out_with_sign, importance.top_word_share, of_inputs_to_states]
OF_STATES = [*OF_WORDS, quantity("leave_one_out_of_hidden", importance.leave_one_out, of="hidden")]
OF_TEXTS = [interventions.without_reason([[(0, 1)]] * 20), interventions.shapley()]
OF_TEXTS += [quantity("integrated_gradients", importance.integrated_gradients, steps=3, baseline="unknown")]
OF_TEXTS += [interventions.between_orders({"of": {row: np.arange(size) for row, size in enumerate((1, 2, 6))}})]
EXACT = [interventions.adversary(0.05), interventions.adversary_by_chance(0.05, draws=2)]


def texts() -> Batch:
    return small.batch((1, 2, 6))


def sentences() -> Batch:
    return collate(documents.documents(), np.arange(len(documents.CUTS)))


def bert() -> HuggingFaceClassifier:
    return HuggingFaceClassifier(huggingface.tiny(library()), huggingface.tokenizer_of(library()))


def subwords() -> Batch:
    return huggingface.given_to(huggingface.tokenizer_of(library()))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Batch], list[Quantity]]] = {
    "bilstm": (small.model, texts, OF_ATTENTION + OF_STATES + OF_TEXTS + EXACT),
    "two layers": (lambda: small.model(layers=2), texts, OF_STATES),
    "sparsemax": (lambda: small.model(projection_name="sparsemax"), texts, OF_STATES),
    "learned entmax": (lambda: small.model(attention="dot", projection_name="entmax:learned"), texts, OF_STATES),
    "average": (lambda: small.model("average"), texts, OF_STATES),
    "conv": (lambda: small.model("conv", outputs=3), texts, OF_STATES),
    "transformer": (lambda: small.model("transformer", heads=2), texts, OF_STATES),
    "flan-rnn": (lambda: small.model("flan-rnn"), texts, OF_STATES),
    "han-rnn": (lambda: documents.network("han-rnn", 1), sentences, OF_INPUT + EXACT),
    "question": (questions.model, questions.batch, OF_STATES),
    "the interface alone": (lambda: small.Foreign(small.model(outputs=3)), texts, OF_ATTENTION + OF_WORDS),
    "not affine": (lambda: small.NotAffine(small.model()), texts, OF_ATTENTION),
    "one's own GRU": (pooled, texts, OF_WORDS),
    "a Hugging Face model": (bert, subwords, OF_ATTENTION + OF_WORDS + [importance.self_attention]),
}


def measured(name: str, device: str = "cpu") -> pd.DataFrame:
    """All that can be measured of the model of that name, on the device: a row for each text."""
    make, given, quantities = MODELS[name]
    return measure(make().to(device), [given().to(device)], quantities)
