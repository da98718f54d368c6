"""The interface of a model: one forward pass, the four methods that every measure relies on, and the read-out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.numerics import rows_of

CELLS = 2**19  # texts x draws x tokens of one read-out: 4 MB of doubles


@dataclass(frozen=True)
class ModelOutput:
    """One forward pass.

    `token` is what the last attention weighs: words, or sentences in a hierarchical model.

    logits      (batch, class), or (batch, 1) for one sigmoid output
    scores      (batch, token) before the projection
    attention   (batch, token) rows sum to 1 over the mask, exactly 0 elsewhere
    mask        (batch, token) True where attention may go: not padding, start or end
    hidden      (batch, token, hidden)
    embeddings  (batch, word, embedding), in the graph whenever gradients are enabled
    query       (batch, hidden) the encoded question, only in tasks with one
    """

    logits: Tensor
    scores: Tensor
    attention: Tensor
    mask: Tensor
    hidden: Tensor
    embeddings: Tensor
    query: Tensor | None = None


class AttentionModel(Protocol):
    """Any torch module with these four methods can be measured; `check_interface` verifies them.

    Optional: projection(scores, mask) -> attention, where that is not softmax; without_text(batch) -> logits of an
    empty text, where all-zero attention does not give them; `words_at_once`, the most words of one forward pass;
    `vocabulary`, where it is not the dataset's.
    """

    def __call__(self, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The output for a batch; `attention` (batch, token), where given, replaces the model's own."""

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The same, with `embeddings` (batch, word, embedding) in place of those of the batch's tokens.

        Where gradients are enabled, the output's `embeddings` are these and require one.
        """

    def read_out(self, output: ModelOutput, attention: Tensor) -> Tensor:
        """Logits under another attention: (batch, token) or (batch, draw, token) -> the same with class for token.

        All weights may be 0: then nothing is attended.
        """

    def token_logits(self, output: ModelOutput) -> tuple[Tensor, Tensor] | None:
        """((batch, token, class), bias (class,)) with logits = attention @ token_logits + bias, or None."""


Ranking = Callable[[AttentionModel, ModelOutput], Tensor]  # scores (batch, token); the highest is removed first
Weights = Callable[[Tensor, Tensor], Tensor]  # (rows, draws) -> attention (row, draw, token)


def require_gradient(embeddings: Tensor) -> None:
    """Puts embeddings in the graph where gradients are enabled, also those of a frozen table."""
    if torch.is_grad_enabled() and not embeddings.requires_grad:
        embeddings.requires_grad_()


# --- the read-out: under many attentions at once, or as an affine function of the attention


def read_each(model: AttentionModel, output: ModelOutput, draws: int, weights: Weights) -> Tensor:
    """Logits (batch, draw, class) of each text under several attentions of its own, in doubles, two classes at least.

    weights: (rows (row,), numbers (draw,)) -> those of the `draws` attentions of those texts, (row, draw, token).
    """
    texts, tokens = output.mask.shape
    every = torch.arange(max(texts, draws), device=output.mask.device)
    logits = []
    for rows in every[:texts].split(max(1, CELLS // (tokens * draws))):
        part, numbers = rows_of(output, rows), every[:draws].split(max(1, CELLS // tokens))
        attentions = (weights(rows, some).to(output.attention.dtype) for some in numbers)
        logits.append(torch.cat([model.read_out(part, attention).double() for attention in attentions], dim=1))
    return two_classes(torch.cat(logits))


def logits_of_nothing(model: AttentionModel, batch: Batch) -> Tensor:
    """Logits (batch, class) with no token left; of a model that reads start and end too its `without_text`."""
    if hasattr(model, "without_text"):
        return model.without_text(batch)
    output = model(batch)
    return model.read_out(output, torch.zeros_like(output.attention))


def two_classes(logits: Tensor) -> Tensor:
    """(..., class) with one sigmoid output as two classes, the first of which is always 0."""
    return torch.cat([torch.zeros_like(logits), logits], dim=-1) if logits.shape[-1] == 1 else logits


def class_terms(model: AttentionModel, output: ModelOutput) -> tuple[Tensor, Tensor, Tensor]:
    """The affine read-out, logits = attention @ terms + bias, in doubles and of two classes at least.

    Returns:
        attention (batch, token) and terms (batch, token, class), both 0 off the mask, and bias (class,).
    """
    affine = model.token_logits(output)
    if affine is None:
        raise ValueError("this needs an affine read-out (model.token_logits), and this model has none")
    terms, bias = (two_classes(part.double()) for part in affine)
    return own_attention(output), terms.masked_fill(~output.mask[:, :, None], 0), bias


def is_affine(model: AttentionModel, output: ModelOutput) -> bool:
    """Whether the read-out is affine in the attention; tried on the first text alone."""
    return model.token_logits(rows_of(output, slice(0, 1))) is not None


def own_attention(output: ModelOutput) -> Tensor:
    """(batch, token) in doubles, exactly 0 off the mask."""
    return output.attention.double().masked_fill(~output.mask, 0)


def sum_of_others(values: Tensor) -> Tensor:
    """For each token the sum over all others, (batch, token, ...): a sum, never a difference of nearly equal sums."""
    zero = torch.zeros_like(values[:, :1])
    before = torch.cat([zero, values[:, :-1].cumsum(dim=1)], dim=1)
    after = torch.cat([values[:, 1:].flip(1).cumsum(dim=1).flip(1), zero], dim=1)
    return before + after
