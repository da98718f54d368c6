"""Importance from attention alone: times what it weighs, and averages of a Transformer's inner attention.

The attended vector is the sum of alpha_t h_t: a weight alone says nothing about h_t.
"""

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.metrics.distances import probabilities
from lib.models import AttentionModel, ModelOutput
from lib.quantity import Quantity

MAX_TOKENS = 2000  # the longest text whose inner attention, quadratic in its length, is measured


@torch.no_grad()
def times_norm(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
    """||alpha_t h_t||_2, the length of what a token adds to the attended vector: (batch, token), 0 off the mask.

    Kobayashi et al. (2020), for one read-out layer, whose values are the hidden states themselves.
    """
    return (output.attention * output.hidden.norm(dim=-1)).masked_fill(~output.mask, 0)


@torch.no_grad()
def times_contribution(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
    """alpha_t w . h_t, what a token adds to the predicted class's logit: (batch, token), 0 off the mask.

    Below 0 where it is evidence against the class; NaN where the read-out is not affine. With the bias the tokens' sum
    is the logit (of one sigmoid output, of class 0 its negative).
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


# --- inside a Transformer of Hugging Face, which reads out the first word's state alone


def rollout(inner: Tensor) -> Tensor:
    """Attention rollout: (batch, layer, head, word, word) -> (batch, word, word), rows sum to 1.

    Abnar & Zuidema (2020), Eq. 1: the product over layers, the last first, of (mean over heads + identity) / 2.
    """
    mixed = (inner.mean(dim=2) + torch.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)) / 2
    result = mixed[:, 0]
    for layer in mixed.unbind(1)[1:]:
        result = layer @ result
    return result


AGGREGATIONS = {"averaged": lambda inner: inner.mean(dim=(1, 2)), "rollout": rollout}


def inner_attention(aggregation: str) -> Quantity:
    """A quantity: how much the first word attends to each token, (batch, token), rows sum to 1 over the mask.

    It is called inner_averaged, over all heads and layers, or inner_rollout. Neither is what the model computes with.
    What goes to start and end is not counted; a row that gives all of its weight to them is NaN. The model needs
    `inner_attention(batch)`, the weights (batch, layer, head, word, word).
    """
    aggregate = AGGREGATIONS[aggregation]

    @torch.no_grad()
    def inner(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        weights = aggregate(model.inner_attention(batch))[:, 0].masked_fill(~batch.mask, 0)
        return weights / weights.sum(dim=1, keepdim=True)

    title = f"inner attention, {aggregation}"
    return Quantity(f"inner_{aggregation}", inner, "fraction", title=title, max_tokens=MAX_TOKENS)
