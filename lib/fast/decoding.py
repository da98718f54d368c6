"""The scoring and the read-out of hidden states by our classifiers, as the shortcuts of deletion need them.

Scores are a function of each state, logits one of attended features, and features are linear in the states. Without a
question the features are the logits themselves, but for the bias.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lib import numerics as elementwise
from lib.datasets.batches import Batch
from lib.models import AttentionClassifier, QuestionClassifier
from lib.models.attention import Additive, AdditiveWithQuery


@dataclass(frozen=True)
class Scoring:
    """Scores from linear parts of states: v . tanh(part) where there is a `context` v, else `along` . part.

    weight   (part, hidden)
    bias     (batch, part), what is added to the parts of each text: it may depend on the question
    context  (part,) or None
    along    (batch, part), only where there is no context
    """

    weight: Tensor
    bias: Tensor
    context: Tensor | None = None
    along: Tensor | None = None

    def rows(self, rows: Tensor) -> "Scoring":
        """The scoring of the texts at those positions of the batch."""
        return Scoring(self.weight, self.bias[rows], self.context, None if self.along is None else self.along[rows])

    def of_states(self, hidden: Tensor) -> Tensor:
        """States (batch, ..., hidden) -> scores (batch, ...)."""
        parts = (hidden @ self.weight.T).movedim(0, -2)
        return self.of(parts + self.bias).movedim(-1, 0)

    def of(self, parts: Tensor) -> Tensor:
        """(..., batch, part), the bias added, -> scores (..., batch)."""
        return (parts * self.along).sum(dim=-1) if self.context is None else elementwise.tanh(parts) @ self.context


@dataclass(frozen=True)
class Decoding:
    """Scoring and read-out of the states of a batch of texts.

    weight   (feature, hidden): features of a state
    scoring  how states are scored
    finish   (attended features (place, batch, feature), rows (batch,)) -> logits (place, batch, class)
    """

    weight: Tensor
    scoring: Scoring
    finish: Callable[[Tensor, Tensor], Tensor]


def decoding(model: AttentionClassifier | QuestionClassifier, batch: Batch) -> Decoding:
    """The decoding of a batch: of texts alone, or of texts with their questions."""
    if not isinstance(model, QuestionClassifier):
        scoring = _scoring(model.attention, len(batch))
        return Decoding(model.decoder.weight, scoring, lambda features, rows: features + model.decoder.bias)
    query = model.encode_query(batch)
    of_query = model.affine_query(query) + model.affine_text.bias

    def finish(features: Tensor, rows: Tensor) -> Tensor:
        return model.answer(features, of_query[rows], None if batch.answers is None else batch.answers[rows])

    return Decoding(model.affine_text.weight, _scoring(model.attention, len(batch), query), finish)


def _scoring(attention, texts: int, query: Tensor | None = None) -> Scoring:
    if isinstance(attention, Additive | AdditiveWithQuery):
        bias = attention.affine.bias.expand(texts, -1)
        bias = bias if query is None else bias + attention.affine_query(query)
        return Scoring(attention.affine.weight, bias, context=attention.context.weight[0])
    if query is None:
        weight = attention.context.weight / attention.context.in_features**0.5
        return Scoring(weight, weight.new_zeros(texts, 1), along=weight.new_ones(texts, 1))
    size = query.shape[1]
    return Scoring(torch.eye(size).to(query), torch.zeros_like(query), along=query / size**0.5)
