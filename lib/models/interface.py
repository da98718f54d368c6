"""What a model shows of itself: the seam where every intervention enters."""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from lib.datasets.batches import Batch


@dataclass(frozen=True)
class ModelOutput:
    """One forward pass.

    logits      (batch, class), or (batch, 1) for one sigmoid output
    scores      (batch, token) before the projection
    attention   (batch, token) rows sum to 1 over the mask, exactly 0 elsewhere
    mask        (batch, token) True where attention may go: not padding, start or end
    hidden      (batch, token, hidden)
    embeddings  (batch, word, embedding), in the graph whenever gradients are enabled
    query       (batch, hidden) the encoded question, only in tasks that ask one
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
    """Any torch module with these three methods can be measured; `check_seam` says whether it has them.

    What it may have besides: projection(scores, mask) -> attention, where that is not softmax; inner_attention(batch),
    with_inner_attention(batch, imposed) and `heads`, a list of (layer, head), of a Transformer, and `reads_first`, True
    where its first word's state alone is read out; without_text(batch) -> logits of an empty text, where that is not a
    read-out of nothing; `words_at_once`, the most words that it is given.
    """

    def __call__(self, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The model's output; `attention` (batch, token), where given, is put in place of the model's own."""

    def read_out(self, output: ModelOutput, attention: Tensor) -> Tensor:
        """Logits under another attention: (batch, token) or (batch, draw, token) -> the same with class for token.

        All weights may be 0: then nothing is attended.
        """

    def token_logits(self, output: ModelOutput) -> tuple[Tensor, Tensor] | None:
        """((batch, token, class), bias (class,)) with logits = attention @ token_logits + bias, or None."""
