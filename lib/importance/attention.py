"""Importance from attention alone: times what it weighs, and a Transformer's inner attention to each token.

The attended vector is the sum of alpha_t h_t: a weight alone says nothing about h_t. None of the inner ones is what the
model computes with: each follows what is read out down to the words, of our classifiers the top attention, and from
each hidden state the words that it attends to; of a model whose read-out is one word's state alone, that word's
attention to the others.
"""

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.metrics.distances import probabilities
from lib.models import AttentionModel, ModelOutput
from lib.models.transformer import MAX_TOKENS, Aggregation, aggregate, refuse_unknown_aggregation
from lib.quantity import Quantity


@torch.no_grad()
def times_norm(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
    """||alpha_t h_t||_2, the length of what a token adds to the attended vector: (batch, token), 0 off the mask.

    Kobayashi et al. (2020), for one read-out layer, whose values are the hidden states themselves.
    """
    return (output.attention * output.hidden.norm(dim=-1)).masked_fill(~output.mask, 0)


@torch.no_grad()
def times_contribution(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
    """alpha_t w . h_t, what a token adds to the predicted class's logit: (batch, token), 0 off the mask.

    Below 0 where it is evidence against the class. With the bias the tokens' sum is the logit (of one sigmoid output,
    of class 0 its negative): exact where the read-out is affine, else NaN.
    """
    affine = model.token_logits(output)
    if affine is None:
        return torch.full_like(output.attention, torch.nan)
    terms = affine[0] if affine[0].shape[-1] > 1 else torch.cat([-affine[0], affine[0]], dim=-1)
    own = probabilities(output.logits).argmax(dim=-1)[:, None, None].expand(-1, terms.shape[1], 1)
    return (output.attention * terms.gather(2, own).squeeze(2)).masked_fill(~output.mask, 0)


attention_times_norm = Quantity("attention_times_norm", times_norm, "1", title="attention × norm")
attention_times_contribution = Quantity(
    "attention_times_contribution", times_contribution, "1", title="attention × contribution"
)


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
