"""The interface of a model: what one forward pass returns, and the four methods that every measure relies on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from lib.datasets.batches import Batch


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
    answers     (batch, class) True for the classes that may answer, only where not all may
    """

    logits: Tensor
    scores: Tensor
    attention: Tensor
    mask: Tensor
    hidden: Tensor
    embeddings: Tensor
    query: Tensor | None = None
    answers: Tensor | None = None


class AttentionModel(Protocol):
    """Any torch module with these four methods can be measured; `check_interface` verifies them.

    Optional: projection(scores, mask) -> attention, where that is not softmax; inner_attention(batch),
    with_inner_attention(batch, imposed) and `heads`, a list of (layer, head), of a Transformer; `reads_first`, True
    where the classifier reads out the first word's state alone; without_text(batch) -> logits of an empty text, where
    they are not the read-out under all-zero attention; `words_at_once`, the most words of one forward pass;
    `vocabulary`, of the corpus that it reads, where that is not the dataset's own.
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


def require_gradient(embeddings: Tensor) -> None:
    """Puts embeddings in the graph where gradients are enabled, also those of a frozen table."""
    if torch.is_grad_enabled() and not embeddings.requires_grad:
        embeddings.requires_grad_()
