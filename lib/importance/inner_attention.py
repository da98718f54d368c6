"""What a Transformer's inner attention says of each token: explanations, none of which the model computes with.

Each follows what is read out down to the words: of our classifiers the top attention, and from each hidden state the
words that it attends to; of a model whose read-out is one word's state alone, that word's attention to the others.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.models import AttentionModel, ModelOutput
from lib.models.transformer import MOST, Way, between_words, refuse_unknown, rollout

__all__ = ["inner_attention", "rollout"]


def inner_attention(way: Way) -> Callable[..., Tensor]:
    """A quantity: the inner attention to each token, (batch, token), rows sum to 1 over the mask.

    What goes to start and end is not counted; a row that gives all of its weight to them is NaN. The model needs
    `inner_attention(batch)`; an attribute `reads_first`, where it is True, says that the first word's state is read.

    Args:
        way: (layer, head), one head; "averaged" over all heads and layers; or "rollout" (Abnar & Zuidema 2020): the
            product over layers of the heads' mean, each mixed half and half with the residual connection.
    Raises:
        ValueError: an unknown way, or the model has no inner attention.
    """
    refuse_unknown(way)

    @torch.no_grad()
    def quantity(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        if not hasattr(model, "inner_attention"):
            raise ValueError(f"a {type(model).__name__} shows no inner attention: it has no `inner_attention(batch)`")
        between = between_words(model.inner_attention(batch), way)
        if getattr(model, "reads_first", False):
            reached = between[:, 0]
        else:
            reached = (output.attention[:, None] @ between).squeeze(1)
        reached = reached.masked_fill(~batch.mask, 0)
        return reached / reached.sum(dim=1, keepdim=True)

    quantity.max_tokens = MOST
    return quantity
