"""What a Transformer's inner attention says of each token: explanations, none of which the model computes with.

Each follows what is read out down to the words: of our classifiers the top attention, and from each hidden state the
words that it attends to; of a model whose read-out is one word's state alone, that word's attention to the others.
"""

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.models import AttentionModel, ModelOutput
from lib.models.transformer import MOST, Way, between_words, refuse_unknown, rollout
from lib.quantity import Quantity

__all__ = ["inner_attention", "rollout"]


def inner_attention(way: Way, name: str | None = None) -> Quantity:
    """A quantity: the inner attention to each token, (batch, token), rows sum to 1 over the mask.

    What goes to start and end is not counted; a row that gives all of its weight to them is NaN. The model needs
    `inner_attention(batch)`; an attribute `reads_first`, where it is True, says that the first word's state is read.

    Args:
        way: (layer, head), one head; "averaged" over all heads and layers; or "rollout" (Abnar & Zuidema 2020): the
            product over layers of the heads' mean, each mixed half and half with the residual connection.
        name: by default inner_averaged, inner_rollout, or inner_layer_1_head_1 and so on, counted from 1.
    Raises:
        ValueError: an unknown way, or the model has no inner attention.
    """
    refuse_unknown(way)

    @torch.no_grad()
    def inner(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        if not hasattr(model, "inner_attention"):
            raise ValueError(f"a {type(model).__name__} shows no inner attention: it has no `inner_attention(batch)`")
        between = between_words(model.inner_attention(batch), way)
        if getattr(model, "reads_first", False):
            reached = between[:, 0]
        else:
            reached = (output.attention[:, None] @ between).squeeze(1)
        reached = reached.masked_fill(~batch.mask, 0)
        return reached / reached.sum(dim=1, keepdim=True)

    name = name or (f"inner_{way}" if isinstance(way, str) else f"inner_layer_{way[0] + 1}_head_{way[1] + 1}")
    return Quantity(name, inner, "fraction", max_tokens=MOST)
