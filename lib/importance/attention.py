"""Importance from attention alone: times what it weighs.

The attended vector is the sum of alpha_t h_t: a weight alone says nothing about h_t.
"""

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.metrics.distances import probabilities
from lib.models import AttentionModel, ModelOutput
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
