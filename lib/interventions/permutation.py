"""Attention permuted or made uniform, and what the prediction does."""

import numpy as np
import torch
from torch import Tensor

from lib import projections
from lib.datasets.batches import Batch
from lib.fast.counter_rng import orders, streams_of
from lib.fast.shortcuts import by_shortcut
from lib.metrics.distances import probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.models.readout import read_each
from lib.quantity import Quantity


@torch.no_grad()
def permuted_definition(
    model: AttentionModel, output: ModelOutput, draws: int, seed: int = 0, instance: Tensor | None = None
) -> Tensor:
    """Logits under random orders of the real tokens' attention (Jain & Wallace 2019, section 4.2.1, algorithm 1).

    Uniform over all orders. The orders of a row depend on the seed and on its number alone, not on its batch.

    Args:
        instance: (batch,) the number of each row; None: its position in the batch.
    Returns:
        (batch, draw, class).
    """
    numbers = torch.arange(len(output.mask)) if instance is None else instance.cpu()

    def shuffled(rows: Tensor, some: Tensor) -> Tensor:
        parts = output.attention[rows], output.mask[rows], draws, seed, numbers[rows.cpu()]
        return permuted_attention(*parts)[:, some]

    logits = read_each(model, output, draws, shuffled)
    return logits[:, :, -output.logits.shape[-1] :].to(output.logits.dtype)


permuted = by_shortcut(permuted_definition)


def permuted_attention(
    attention: Tensor, mask: Tensor, draws: int, seed: int = 0, instance: Tensor | None = None
) -> Tensor:
    """The attention (batch, token) in random orders of its real tokens: (batch, draw, token)."""
    front = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices  # real tokens first
    order = orders(streams_of(seed, len(mask), instance), draws, mask.gather(1, front).cpu().numpy())
    order = torch.from_numpy(order).to(mask.device)
    weights = attention.gather(1, front)[:, None].expand_as(order).gather(2, order)
    return torch.zeros_like(weights).scatter(2, front[:, None].expand_as(order), weights)


def uniform(model: AttentionModel, output: ModelOutput) -> Tensor:
    """Logits under equal attention to all real tokens: (batch, class)."""
    return model.read_out(output, projections.uniform(output.scores, output.mask))


def permutation_effect(draws: int = 100, seed: int = 0) -> Quantity:
    """A quantity: the median over draws of how far the prediction moves under permuted attention.

    |change of p|, with several classes the total variation (Jain & Wallace 2019, section 4.2.1): (batch,), a fraction
    of probability. Each instance has its own random orders: how texts are batched changes nothing.
    """

    def moved(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        with torch.no_grad():
            logits = permuted(model, output, draws, seed, batch.instance)
            change = total_variation(probabilities(logits), probabilities(output.logits)[:, None])
        middle = np.median(change.cpu().numpy(), axis=-1)
        return torch.from_numpy(middle).to(change)

    return Quantity("permutation", moved, "fraction")
