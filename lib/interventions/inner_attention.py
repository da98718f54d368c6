"""A head of a Transformer put aside: the mechanism of its inner attention, which can be replaced.

What averages over heads or layers, or follows them through the layers, is an explanation and no mechanism: the model
computes nothing with it, so there is nothing to replace.
"""

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.metrics.distances import probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.models.transformer import MAX_TOKENS
from lib.projections import uniform
from lib.quantity import Quantity


def heads_of(model: AttentionModel) -> list[tuple[int, int]]:
    """Every (layer, head) of a Transformer, from the lowest layer; of another model those of its attribute `heads`."""
    if hasattr(model, "heads"):
        return list(model.heads)
    return [(number, head) for number, layer in enumerate(model.encoder.layers) for head in range(layer.heads)]


def imposed_head(model: AttentionModel, batch: Batch, head: tuple[int, int], weights: Tensor) -> ModelOutput:
    """The output with the attention of one head replaced by `weights`.

    What a word gives to start and end stays fixed; the rest of its weight is spread over the text's own tokens.

    Args:
        head: (layer, head), each from 0. weights: (batch, word, word), rows sum to 1 over the mask, 0 elsewhere.
    """
    layer, number = head
    elsewhere = model.inner_attention(batch)[:, layer, number].masked_fill(batch.mask[:, None], 0)
    imposed = elsewhere + (1 - elsewhere.sum(dim=-1, keepdim=True)) * weights
    return model.with_inner_attention(batch, {head: imposed})


def uniform_head(head: tuple[int, int]) -> Quantity:
    """A quantity: how far the prediction moves when one head attends equally to all tokens, (batch,) fraction (TVD).

    It is called tvd_layer_1_head_1_uniform and so on, counted from 1.
    """

    @torch.no_grad()
    def moved(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        equal = uniform(output.scores, batch.mask)
        weights = equal[:, None].expand(-1, batch.mask.shape[1], -1)
        without = imposed_head(model, batch, head, weights).logits
        return total_variation(probabilities(without.double()), probabilities(output.logits.double()))

    name = f"tvd_layer_{head[0] + 1}_head_{head[1] + 1}_uniform"
    return Quantity(name, moved, "fraction", max_tokens=MAX_TOKENS)
