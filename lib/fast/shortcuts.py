"""Which model has an exact shortcut for which measure. Only here the kind of a model is looked at.

A shortcut gives the same numbers as the definition, to rounding. The adversaries (exact_adversary, search_adversary)
are not in the table: they are the same for every model. A Transformer's leave-one-out is not: the words behind the
one that is left out move, so that every state of every layer changes. What a text's deletions share, the first
layer's queries, keys and values and the sums over them, is 27% of the arithmetic on 20news.
"""

from collections.abc import Callable
from functools import wraps

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.fast import affine, leave_one_out_bilstm, leave_one_out_windows, lstm
from lib.models import AttentionClassifier, AttentionModel, ModelOutput, QuestionClassifier
from lib.models.encoders import Average, BiLSTM, Convolution
from lib.numerics import by_length, rows_of
from lib.projections import softmax

READERS = (AttentionClassifier, QuestionClassifier)  # not their subclasses: these attend differently


def is_affine(model: AttentionModel, output: ModelOutput) -> bool:
    """Whether the read-out is affine in the attention; tried on the first text alone."""
    return model.token_logits(rows_of(output, slice(0, 1))) is not None


def _has_lstm(model: AttentionModel, output: ModelOutput | None = None) -> bool:
    """Whether the encoder is a BiLSTM of one layer."""
    return type(model) in READERS and isinstance(model.encoder, BiLSTM) and len(model.encoder.forwards) == 1


def _classifies_by_lstm(model: AttentionModel, output: ModelOutput | None = None) -> bool:
    return type(model) is AttentionClassifier and _has_lstm(model)


def _has_windows(model: AttentionModel, output: ModelOutput | None = None) -> bool:
    """Whether each hidden state depends on its neighbours alone, and attention is their softmax."""
    return type(model) in READERS and isinstance(model.encoder, Average | Convolution) and model.projection is softmax


SHORTCUTS: tuple[tuple[str, Callable[..., bool], Callable[..., Tensor]], ...] = (
    ("gradients_times_inputs", _classifies_by_lstm, lstm.gradients_times_inputs),
    ("logits_without_each_token", _has_lstm, leave_one_out_bilstm.logits_without_each_token),
    ("logits_without_each_token", _has_windows, leave_one_out_windows.logits_without_each_token),
    ("logits_without_each_state", is_affine, affine.logits_without_each_state),
    ("state_gradients", _classifies_by_lstm, lstm.state_gradients),
    ("by_gradient", is_affine, affine.gradient_of_weights),
    ("permuted", is_affine, affine.permuted),
    ("logits_along", is_affine, affine.logits_along),
    ("logits_without_each_item", is_affine, affine.logits_without_each_item),
    ("logits_of_each_token", is_affine, affine.logits_of_each_token),
)


def shortcut(measure: str, model: AttentionModel, output: ModelOutput | None = None) -> Callable[..., Tensor] | None:
    """The first shortcut of a measure that holds for this model; None: its definition is all there is."""
    return next((way for name, holds, way in SHORTCUTS if name == measure and holds(model, output)), None)


def by_shortcut(definition: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The measure of a definition, (model, batch or output, ...): by the model's shortcut of its name."""
    name = definition.__name__.removesuffix("_definition")

    @torch.no_grad()
    @wraps(definition)
    def measure(model: AttentionModel, given: Batch | ModelOutput, *arguments, **options) -> Tensor:
        return (shortcut(name, model, given) or definition)(model, given, *arguments, **options)

    return measure


def in_micro_batches(function: Callable[[Batch], Tensor], batch: Batch, cells: int) -> Tensor:
    """A measure of every token, computed for some texts at a time: (batch, token), 0 off the mask.

    Args:
        function: part of the batch -> (text, token).
        cells: how many words, padding included, the part may have.
    """
    result = torch.zeros(batch.mask.shape, device=batch.mask.device)
    for rows in by_length(batch.lengths, cells):
        part = function(batch.rows(rows))
        result = result.to(part.dtype)
        result[rows, : part.shape[1]] = part
    return result.masked_fill(~batch.mask, 0)
