"""Attention permuted or made uniform, and what the prediction does.

Where the read-out is affine (`model.token_logits`) each token's logits are computed once and everything else is sums of
them; elsewhere `model.read_out` is called in chunks.
"""

import numpy as np
import torch
from torch import Tensor

from lib import projections
from lib.datasets.batches import Batch
from lib.fast.counter_rng import orders, streams
from lib.metrics import probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.numerics import by_length, rows_of
from lib.quantity import Quantity

CELLS = 2**18  # draws x tokens x texts permuted at once: they stay in the processor's cache


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
    lengths = output.mask.sum(dim=-1)
    front = output.mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices  # real tokens first
    attention = output.attention.gather(1, front).cpu().numpy()
    token_logits = None if affine is None else affine[0].gather(1, front[:, :, None].expand_as(affine[0]))
    logits = output.logits.new_empty(len(stream), draws, output.logits.shape[-1])
    for rows in by_length(lengths, CELLS // max(draws, 1)):
        width = int(lengths[rows[-1]])
        real = np.arange(width) < lengths[rows].cpu().numpy()[:, None]
        shuffled = _shuffled(attention[rows.cpu().numpy(), :width], orders(stream[rows.cpu().numpy()], draws, real))
        shuffled = torch.from_numpy(shuffled).to(front.device)
        if affine is None:
            full = torch.zeros_like(output.mask[rows], dtype=shuffled.dtype)[:, None].repeat(1, draws, 1)
            full.scatter_(2, front[rows, None, :width].expand_as(shuffled), shuffled)
            logits[rows] = model.read_out(rows_of(output, rows), full)
        else:
            # the product turned round: with few classes, a ninth of the time
            logits[rows] = (token_logits[rows, :width].mT @ shuffled.mT).mT + affine[1]
    return logits


def _shuffled(attention: np.ndarray, order: np.ndarray) -> np.ndarray:
    """attention (row, token) in the order (row, draw, token), which is overwritten; faster than a gather."""
    order += (np.arange(len(order)) * order.shape[-1])[:, None, None]
    return attention.ravel().take(order, mode="wrap")


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
    share = projections.uniform(output.scores, output.mask)
    mean = (share[:, :, None] * token_logits).sum(dim=1)
    of_attention = (output.attention - share).square().sum(dim=-1)
    of_logits = ((token_logits - mean[:, None]) * output.mask[:, :, None]).square().sum(dim=1)
    others = (output.mask.sum(dim=-1) - 1).clamp(min=1)
    return mean + bias, (of_attention / others)[:, None] * of_logits


def moments(model: AttentionModel, output: ModelOutput, logits: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """Mean and variance of the logits, each (batch, class): over draws, and where the read-out is affine over all.

    Args:
        logits: (batch, draw, class) of `permuted`.
    """
    over = {f"{logits.shape[1]} draws": (logits.mean(dim=1), logits.var(dim=1))}
    return over | ({} if model.token_logits(output) is None else {"all orders": permuted_moments(model, output)})


def uniform(model: AttentionModel, output: ModelOutput) -> Tensor:
    """Logits under equal attention to all real tokens: (batch, class)."""
    return model.read_out(output, projections.uniform(output.scores, output.mask))


def permutation_effect(draws: int = 100, seed: int = 0, name: str = "permutation") -> Quantity:
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

    return Quantity(name, moved, "fraction")
