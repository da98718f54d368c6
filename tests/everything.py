"""Every kind of model on a few texts, and every quantity that can be asked of it: for tests of devices."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import small
import test_hierarchical as documents
import test_own_model as own
import test_questions as questions
import torch
from torch import nn

from lib.analysis import attention_on_rationale, attention_weights, max_attention, measure
from lib.datasets.batches import Batch, collate
from lib.importance import as_quantity, gradient, gradient_times_input, leave_one_out
from lib.importance.inner_attention import inner_attention
from lib.importance.rankings import RANKINGS
from lib.importance.state_gradients import state_entropy
from lib.interventions import (
    adversary,
    eraser_scores,
    permutation_effect,
    single_erasure,
    substituted,
    token_probabilities,
    token_probability_mean,
    until_flip,
)
from lib.interventions.inner_attention import uniform_head

Quantities = dict[str, Callable]

OF_ATTENTION: Quantities = {
    "attention_weights": attention_weights,
    "max_attention": max_attention,
    "permuted": permutation_effect(5),
    "searched": adversary(0.05, "gradient", with_attention=True, restarts=2, steps=5),
    "under": substituted(5),
    "token_probabilities": token_probabilities,
    "token_probability_mean": token_probability_mean,
    "top": single_erasure(RANKINGS),
    "removed": until_flip(RANKINGS),
    "eraser": eraser_scores(RANKINGS),
    "rationale": attention_on_rationale([[(0, 1)]] * 20),
}
OF_INPUT: Quantities = {
    "times_input": as_quantity(gradient_times_input),
    "times_input_through": as_quantity(gradient_times_input, through_attention=True),
    "gradient": as_quantity(gradient),
    "gradient_detached": as_quantity(gradient, through_attention=False),
}
OF_WORDS: Quantities = OF_INPUT | {
    "leave_one_out": as_quantity(leave_one_out),
    "gradient_of_hidden": as_quantity(gradient, of="hidden"),
    "states": state_entropy,
}
OF_STATES: Quantities = OF_WORDS | {"leave_one_out_of_hidden": as_quantity(leave_one_out, of="hidden")}
EXACT: Quantities = {"exact": adversary(0.05)}
OF_HEADS: Quantities = {
    "head": inner_attention((0, 1)),
    "rollout": inner_attention("rollout"),
    "uniform": uniform_head((0, 1)),
}


def pooled() -> nn.Module:
    torch.manual_seed(0)
    return own.Pooled().double().eval()


def texts() -> Batch:
    return small.batch((1, 2, 6))


def sentences() -> Batch:
    return collate(documents.documents(), np.arange(len(documents.CUTS)))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Batch], Quantities]] = {
    "bilstm": (small.model, texts, OF_ATTENTION | OF_STATES | EXACT),
    "two layers": (lambda: small.model(layers=2), texts, OF_STATES),
    "sparsemax": (lambda: small.model(projection_name="sparsemax"), texts, OF_STATES),
    "learned entmax": (lambda: small.model(attention="dot", projection_name="entmax:learned"), texts, OF_STATES),
    "average": (lambda: small.model("average"), texts, OF_STATES),
    "conv": (lambda: small.model("conv", outputs=3), texts, OF_STATES),
    "transformer": (lambda: small.model("transformer", heads=2), texts, OF_STATES | OF_HEADS),
    "flan-rnn": (lambda: small.model("flan-rnn"), texts, OF_STATES),
    "han-rnn": (lambda: documents.network("han-rnn", 1), sentences, OF_INPUT | EXACT),
    "question": (questions.model, questions.batch, OF_STATES),
    "the interface alone": (lambda: small.Foreign(small.model(outputs=3)), texts, OF_ATTENTION | OF_WORDS),
    "not affine": (lambda: small.NotAffine(small.model()), texts, OF_ATTENTION),
    "one's own GRU": (pooled, texts, OF_WORDS),
}


def measured(name: str, device: str = "cpu") -> pd.DataFrame:
    """All that can be measured of the model of that name, on the device: a row for each text."""
    make, given, quantities = MODELS[name]
    return measure(make().to(device), [given().to(device)], quantities)
