"""Attention permuted or made uniform, and what the prediction does.

Where the read-out is affine (`model.token_logits`) each token's logits are computed once and everything else is sums of
them; elsewhere `model.read_out` is called in chunks.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from lib.chunks import by_length, rows_of
from lib.datasets.batches import Batch
from lib.interventions.streams import orders, streams
from lib.metrics import probabilities, total_variation
from lib.models import AttentionModel, ModelOutput

CELLS = 2**17  # draws x tokens x texts permuted at once: they stay in the processor's cache


@torch.no_grad()
def permuted(
    model: AttentionModel, output: ModelOutput, draws: int, seed: int = 0, instance: Tensor | None = None
) -> Tensor:
    """Logits under random orders of the real tokens' attention (Jain & Wallace 2019, section 4.2.1, algorithm 1).

    Uniform over all orders. The orders of a row depend on the seed and on its number alone, not on its batch.

    Args:
        instance: (batch,) the number of each row; None: its position in the batch.
    Returns:
        (batch, draw, class).
    """
    instance = torch.arange(len(output.mask)) if instance is None else instance
    stream = streams(seed, instance.cpu().numpy())
    affine = model.token_logits(output)
    logits = output.logits.new_empty(len(stream), draws, output.logits.shape[-1])
    for rows in by_length(output.mask.sum(dim=-1), CELLS // max(draws, 1)):
        mask = output.mask[rows]
        real_first, front = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True)
        width = int(mask.sum(dim=-1).max())
        real, front = real_first[:, :width].bool(), front[:, :width]
        attention = output.attention[rows].gather(1, front)
        order = torch.from_numpy(orders(stream[rows.cpu().numpy()], draws, real.cpu().numpy())).to(mask.device)
        shuffled = attention[:, None].expand(-1, draws, -1).gather(2, order)
        if affine is None:
            full = torch.zeros_like(mask, dtype=shuffled.dtype)[:, None].repeat(1, draws, 1)
            full.scatter_(2, front[:, None].expand_as(shuffled), shuffled)
            logits[rows] = model.read_out(rows_of(output, rows), full)
        else:
            token_logits = affine[0][rows].gather(1, front[:, :, None].expand(-1, -1, affine[0].shape[-1]))
            logits[rows] = shuffled @ token_logits + affine[1]
    return logits


@torch.no_grad()
def permuted_moments(model: AttentionModel, output: ModelOutput) -> tuple[Tensor, Tensor]:
    """The logits' exact mean and variance over all orders of the attention.

    The mean is the logit under uniform attention; the variance is
    sum (alpha - 1/n)^2 sum (L - mean L)^2 / (n - 1), and 0 for one token (L: the tokens' logits).

    Returns:
        (mean, variance), each (batch, class).
    Raises:
        ValueError: the model's read-out is not affine.
    """
    affine = model.token_logits(output)
    if affine is None:
        raise ValueError("the moments over all permutations need an affine read-out, and this model has none")
    token_logits, bias = affine
    share = _uniform_attention(output)
    mean = (share[:, :, None] * token_logits).sum(dim=1)
    of_attention = (output.attention - share).square().sum(dim=-1)
    of_logits = ((token_logits - mean[:, None]) * output.mask[:, :, None]).square().sum(dim=1)
    others = (output.mask.sum(dim=-1) - 1).clamp(min=1)
    return mean + bias, (of_attention / others)[:, None] * of_logits


def uniform(model: AttentionModel, output: ModelOutput) -> Tensor:
    """Logits under equal attention to all real tokens: (batch, class)."""
    return model.read_out(output, _uniform_attention(output))


def _uniform_attention(output: ModelOutput) -> Tensor:
    mask = output.mask.to(output.attention.dtype)
    return mask / mask.sum(dim=-1, keepdim=True)


def permutation_effect(draws: int = 100, seed: int = 0) -> Callable[[AttentionModel, Batch, ModelOutput], Tensor]:
    """A quantity: the median over draws of how far the prediction moves under permuted attention.

    |change of p|, with several classes the total variation (Jain & Wallace 2019, section 4.2.1): (batch,), a fraction
    of probability. Each instance has its own random orders: how texts are batched changes nothing.
    """

    def quantity(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        with torch.no_grad():
            logits = permuted(model, output, draws, seed, batch.instance)
            change = total_variation(probabilities(logits), probabilities(output.logits)[:, None])
        middle = np.median(change.cpu().numpy(), axis=-1)
        return torch.from_numpy(middle).to(change)

    return quantity
