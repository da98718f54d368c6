"""A Transformer's inner attention to each token: explanations, none of which the model computes with.

Each follows what is read out down to the words: of our classifiers the top attention, and from each hidden state the
words that it attends to; of a model whose read-out is one word's state alone, that word's attention to the others.
"""

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.models import AttentionModel, ModelOutput
from lib.models.transformer import MAX_TOKENS, Aggregation, aggregate, refuse_unknown_aggregation, rollout
from lib.quantity import Quantity

__all__ = ["inner_attention", "rollout"]


def inner_attention(aggregation: Aggregation) -> Quantity:
    """A quantity: the inner attention to each token, (batch, token), rows sum to 1 over the mask.

    It is called inner_averaged, inner_rollout, or inner_layer_1_head_1 and so on, counted from 1.

    What goes to start and end is not counted; a row that gives all of its weight to them is NaN. The model needs
    `inner_attention(batch)`; an attribute `reads_first`, if True, means that the first word's state is read out.

    Args:
        aggregation: (layer, head), one head; "averaged" over all heads and layers; or "rollout", the product over
            layers of (mean over heads + identity) / 2 (Abnar & Zuidema 2020).
    Raises:
        ValueError: an unknown aggregation.
    """
    refuse_unknown_aggregation(aggregation)

    @torch.no_grad()
    def inner(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        between = aggregate(model.inner_attention(batch), aggregation)
        if getattr(model, "reads_first", False):
            reached = between[:, 0]
        else:
            reached = (output.attention[:, None] @ between).squeeze(1)
        reached = reached.masked_fill(~batch.mask, 0)
        return reached / reached.sum(dim=1, keepdim=True)

    if isinstance(aggregation, str):
        name, title = f"inner_{aggregation}", f"inner attention, {aggregation}"
    else:
        name, title = "inner_layer_{}_head_{}".format(*(k + 1 for k in aggregation)), None
    return Quantity(name, inner, "fraction", title=title, max_tokens=MAX_TOKENS)
