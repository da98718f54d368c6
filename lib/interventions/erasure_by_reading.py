"""Items erased from the attention of any model: the read-out is asked anew for every set of items.

Where the read-out is affine, sums over what remains say the same in one pass (erasure).
"""

import torch
from torch import Tensor

from lib.models import AttentionModel, ModelOutput
from lib.models.readout import own_attention, read_each


def logits_along(model: AttentionModel, output: ModelOutput, order: Tensor) -> Tensor:
    """Logits after the first 0, 1, ... items of an order (batch, token) are erased: (batch, token + 1, class).

    Two classes at least, in doubles; beyond a text's items as after its last one.
    """
    own, place, items = own_attention(output), order.argsort(dim=1), output.mask.sum(dim=1)

    def remaining(rows: Tensor, steps: Tensor) -> Tensor:
        return renormalised(own[rows][:, None] * (place[rows][:, None] >= steps[:, None]))

    logits = read_each(model, output, items + 1, remaining)
    last = logits[torch.arange(len(items), device=items.device), items]
    along = last[:, None].repeat(1, order.shape[1] + 1, 1)
    along[:, : logits.shape[1]] = torch.where(logits.isnan(), last[:, None], logits)
    return along


def logits_without_each(model: AttentionModel, output: ModelOutput) -> Tensor:
    """Logits with each item erased alone: (batch, token, class), two classes at least, NaN off the mask."""
    own, tokens = own_attention(output), output.mask.shape[1]
    place = torch.arange(tokens, device=own.device)

    def others(rows: Tensor, items: Tensor) -> Tensor:
        return renormalised(own[rows][:, None] * (place != items[:, None]))

    every = torch.full((len(own),), tokens, device=own.device)
    return read_each(model, output, every, others).masked_fill(~output.mask[:, :, None], torch.nan)


def logits_around(
    model: AttentionModel, output: ModelOutput, order: Tensor, steps: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of a text as it is, without the first `steps` items of an order, and with nothing but them.

    Args:
        steps: (batch, share) numbers of items.
    Returns:
        (batch, 1, class), and twice (batch, share, class); two classes at least, in doubles.
    """
    own, place = own_attention(output), order.argsort(dim=1)

    def without_or_alone(rows: Tensor, draws: Tensor) -> Tensor:
        first = place[rows][:, None] < steps[rows][:, :, None]
        ways = torch.cat([torch.ones_like(first[:, :1]), ~first, first], dim=1)
        return renormalised(own[rows][:, None] * ways[:, draws])

    shares = steps.shape[1]
    logits = read_each(model, output, torch.full_like(steps[:, 0], 1 + 2 * shares), without_or_alone)
    return logits[:, :1], logits[:, 1 : 1 + shares], logits[:, 1 + shares :]


def renormalised(weights: Tensor) -> Tensor:
    """Weights (..., token) divided by their sum; all 0 where nothing is left."""
    total = weights.sum(dim=-1, keepdim=True)
    return weights / torch.where(total > 0, total, 1)
