"""The read-out of a model: under many attentions at once, as an affine function of the attention, as one output."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from lib.datasets.batches import Batch
from lib.models.interface import AttentionModel, ModelOutput
from lib.numerics import rows_of
from lib.projections import Projection, softmax

CELLS = 2**20  # texts x draws x tokens of one read-out: 8 MB of doubles
Weights = Callable[[Tensor, Tensor], Tensor]  # (rows, draws) -> attention (row, draw, token) in doubles


def read_each(model: AttentionModel, output: ModelOutput, draws: int, weights: Weights) -> Tensor:
    """Logits of each text under several attentions of its own, in doubles and of two classes at least.

    Args:
        draws: how many attentions a text has.
        weights: (rows (row,), numbers (draw,)) -> those attentions of those texts, (row, draw, token).
    Returns:
        (batch, draw, class).
    """
    texts, tokens = output.mask.shape
    every = torch.arange(max(texts, draws), device=output.mask.device)
    logits = []
    for rows in every[:texts].split(max(1, CELLS // (tokens * draws))):
        part, numbers = rows_of(output, rows), every[:draws].split(max(1, CELLS // tokens))
        attentions = (weights(rows, some).to(output.attention.dtype) for some in numbers)
        logits.append(torch.cat([model.read_out(part, attention).double() for attention in attentions], dim=1))
    return two_classes(torch.cat(logits))


def two_classes(logits: Tensor) -> Tensor:
    """(..., class) with one sigmoid output as two classes, the first of which is always 0."""
    return torch.cat([torch.zeros_like(logits), logits], dim=-1) if logits.shape[-1] == 1 else logits


def class_terms(model: AttentionModel, output: ModelOutput) -> tuple[Tensor, Tensor, Tensor]:
    """The affine read-out, logits = attention @ terms + bias, in doubles and of two classes at least.

    Returns:
        attention (batch, token) and terms (batch, token, class), both 0 off the mask, and bias (class,).
    Raises:
        ValueError: the model's read-out is not affine.
    """
    affine = model.token_logits(output)
    if affine is None:
        raise ValueError("this needs an affine read-out (model.token_logits), and this model has none")
    terms, bias = (two_classes(part.double()) for part in affine)
    return own_attention(output), terms.masked_fill(~output.mask[:, :, None], 0), bias


def own_attention(output: ModelOutput) -> Tensor:
    """(batch, token) in doubles, exactly 0 off the mask."""
    return output.attention.double().masked_fill(~output.mask, 0)


def projection_of(model: AttentionModel) -> Projection:
    """The projection of the model's attention; softmax if it has no attribute `projection`."""
    return getattr(model, "projection", softmax)


def sum_of_others(values: Tensor) -> Tensor:
    """For each token the sum over all others, (batch, token, ...): a sum, never a difference of nearly equal sums."""
    zero = torch.zeros_like(values[:, :1])
    before = torch.cat([zero, values[:, :-1].cumsum(dim=1)], dim=1)
    after = torch.cat([values[:, 1:].flip(1).cumsum(dim=1).flip(1), zero], dim=1)
    return before + after


OPTIONAL = ("projection", "inner_attention", "reads_first", "words_at_once", "heads", "vocabulary")


class OneOutput(nn.Module):
    """A model of two classes as one sigmoid output, the difference of its logits: sigmoid of it is their softmax.

    What the model has beyond the interface, this one has too.
    """

    def __init__(self, model: AttentionModel):
        super().__init__()
        self.model = model
        for name in OPTIONAL:
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        if hasattr(model, "without_text"):
            self.without_text = lambda batch: _difference(model.without_text(batch))
        if hasattr(model, "with_inner_attention"):
            self.with_inner_attention = lambda batch, imposed: _of_one(model.with_inner_attention(batch, imposed))

    def forward(self, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        return _of_one(self.model(batch, attention=attention))

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The model's forward pass from embeddings, its two logits as one: (batch, 1)."""
        return _of_one(self.model.from_embeddings(embeddings, batch, attention))

    def read_out(self, output: ModelOutput, attention: Tensor) -> Tensor:
        """The model's read-out, its two logits as one."""
        return _difference(self.model.read_out(output, attention))

    def token_logits(self, output: ModelOutput) -> tuple[Tensor, Tensor] | None:
        """The model's token logits and bias, the two classes as one; None if it has none."""
        affine = self.model.token_logits(output)
        return None if affine is None else (_difference(affine[0]), _difference(affine[1]))


def _of_one(output: ModelOutput) -> ModelOutput:
    return replace(output, logits=_difference(output.logits))


def _difference(logits: Tensor) -> Tensor:
    """(..., 2) -> (..., 1): the second minus the first."""
    return logits[..., 1:] - logits[..., :1]
