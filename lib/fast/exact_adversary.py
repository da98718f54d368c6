"""The exact adversary for one output with an affine read-out (B8 of the exact algorithms).

JSD is convex in the adversarial attention q, and {q in the simplex, lo <= l . q <= hi} is a polytope, so the maximum is
at a vertex. A vertex has at most two tokens: one whose logit l lies within [lo, hi], or two on either side of lo or hi,
mixed so that the bound is met.
"""

import math

import torch
from torch import Tensor

from lib.metrics.distances import jensen_shannon
from lib.numerics import by_length

PAIRS = 2**17  # enumerated at once


def optimum(logits: Tensor, attention: Tensor, mask: Tensor, epsilon: float) -> Tensor:
    """The attention (batch, token) furthest from the given one with a prediction within epsilon.

    Args:
        logits: (batch, token) of each token with the decoder's bias; attention, mask: (batch, token). Doubles.
    """
    attention = attention / attention.sum(dim=-1, keepdim=True)
    low, high = bounds((attention * logits.masked_fill(~mask, 0)).sum(dim=-1), epsilon)
    allowed = (logits >= low[:, None]) & (logits <= high[:, None]) & mask
    alone = (2 * math.log(2) + _plogp(attention) - _plogp(1 + attention)).masked_fill(~allowed, -torch.inf)
    best, token = alone.max(dim=-1)
    found = torch.zeros_like(attention).scatter_(1, token[:, None], 1.0)
    for bound in (low, high):
        value, pair, weight = _best_pair(logits, attention, mask, bound)
        better = value > best
        best = torch.where(better, value, best)
        mixed = torch.zeros_like(attention).scatter_(1, pair, torch.stack([weight, 1 - weight], dim=-1))
        found = torch.where(better[:, None], mixed, found)
    moved = jensen_shannon(found, attention) > 0
    return torch.where(((best > -torch.inf) & moved)[:, None], found, attention)


def bounds(logit: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """The logits of p - epsilon and p + epsilon, infinite where those leave [0, 1]: (batch,) each."""
    p, rest = torch.sigmoid(logit), torch.sigmoid(-logit)
    low = torch.where(p > epsilon, (p - epsilon).log() - (rest + epsilon).log(), -torch.inf)
    high = torch.where(rest > epsilon, (p + epsilon).log() - (rest - epsilon).log(), torch.inf)
    return torch.minimum(low, logit), torch.maximum(high, logit)


def _plogp(p: Tensor) -> Tensor:
    """p ln p, 0 at 0."""
    return p * p.clamp_min(1e-300).log()


def _best_pair(logits: Tensor, attention: Tensor, mask: Tensor, bound: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The best two tokens on either side of a bound.

    Returns:
        (batch,) twice the JSD, -inf where there is no such pair; (batch, 2) tokens; (batch,) the first one's share.
    """
    below, above = (logits < bound[:, None]) & mask, (logits > bound[:, None]) & mask
    below &= bound.isfinite()[:, None]
    pairs = below.sum(dim=-1) * above.sum(dim=-1)
    value, pair = torch.full_like(bound, -torch.inf), torch.zeros(len(bound), 2, dtype=torch.long, device=mask.device)
    for rows in by_length(pairs, PAIRS):
        sides = [_gathered(side[rows], logits[rows] - bound[rows, None], attention[rows]) for side in (below, above)]
        value[rows], pair[rows] = _enumerate(*sides)
    near, far = (logits.gather(1, pair) - bound[:, None]).unbind(dim=-1)
    weight = torch.where(value > -torch.inf, far / (far - near), 1.0)
    pair = torch.where((value > -torch.inf)[:, None], pair, torch.tensor([0, 1], device=mask.device) % mask.shape[1])
    return value, pair, weight


def _gathered(side: Tensor, distance: Tensor, attention: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One side's tokens moved to the front: their positions, distances to the bound (NaN behind them), attention."""
    width = int(side.sum(dim=-1).max())
    present, token = side.to(torch.uint8).sort(dim=-1, descending=True, stable=True)
    present, token = present[:, :width].bool(), token[:, :width]
    return token, distance.gather(1, token).masked_fill(~present, torch.nan), attention.gather(1, token)


def _enumerate(below: tuple[Tensor, ...], above: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """(row,) twice the JSD of the best pair and (row, 2) its tokens; the lower ones in blocks, to bound the memory."""
    (token_i, distance_i, attention_i), (token_j, distance_j, attention_j) = below, above
    rows, width = token_j.shape
    best = torch.full_like(distance_j[:, 0], -torch.inf)
    pair = torch.zeros(rows, 2, dtype=torch.long, device=best.device)
    own = 2 * math.log(2) + _plogp(attention_j)[:, None]
    for block in torch.arange(token_i.shape[1], device=best.device).split(max(1, PAIRS // (rows * width))):
        first = attention_i[:, block, None]
        weight = distance_j[:, None] / (distance_j[:, None] - distance_i[:, block, None])
        value = own + _plogp(first) + _plogp(weight)
        value.sub_(_plogp(weight + first))
        rest = weight.neg_().add_(1)
        value.add_(_plogp(rest)).sub_(_plogp(rest + attention_j[:, None]))
        top, at = value.nan_to_num_(nan=-torch.inf).flatten(1).max(dim=-1)
        better = top > best
        chosen = torch.stack(
            [token_i.gather(1, block[at // width][:, None])[:, 0], token_j.gather(1, (at % width)[:, None])[:, 0]],
            dim=-1,
        )
        best, pair = torch.where(better, top, best), torch.where(better[:, None], chosen, pair)
    return best, pair
