"""Distances between distributions, and entropy."""

import math

import torch
from torch import Tensor


def jensen_shannon(p: Tensor, q: Tensor) -> Tensor:
    """How far apart two attention distributions are.

    Tutek & Snajder (2020), Eq. 8: (KL(p || m) + KL(q || m)) / 2 with m = (p + q) / 2. With d = (p - q)/(p + q), where
    |d| < 1/2 a token adds (p + q)/4 (log1p(-d^2) + 2 d atanh d), which is exact for nearly equal p and q too.

    Args:
        p, q: (..., token), rows sum to 1, 0 on padding. Their gradients are finite, also where both are 0.
    Returns:
        (...,) in nats: 0 when equal, log 2 when the supports are disjoint.
    """
    p, q = torch.broadcast_tensors(p, q)
    tiny = torch.finfo(p.dtype).tiny
    both = p + q
    total = torch.where(both > tiny, both, torch.ones_like(both))  # 0 / 1 where there is nothing
    difference = (p - q) / total
    near = difference.abs() < 0.5
    d = torch.where(near, difference, torch.zeros_like(difference))  # the branch not taken must stay finite
    close = total / 4 * (torch.log1p(-d * d) + 2 * d * torch.atanh(d))
    apart = (p * (2 * p / total).clamp_min(tiny).log() + q * (2 * q / total).clamp_min(tiny).log()) / 2
    return torch.where(near, close, apart).sum(dim=-1).clamp(0, math.log(2))


def kullback_leibler(p: Tensor, q: Tensor) -> Tensor:
    """KL(p || q), how much p is unlike q: sum of p ln(p / q) where p > 0.

    Of p, q (..., token), rows sum to 1, 0 on padding: (...,) in nats; infinite where p has weight and q has none.
    """
    there = p > 0
    ratio = p.masked_fill(~there, 1).log() - q.masked_fill(~there, 1).log()
    return (p * ratio).sum(dim=-1)


def total_variation(p: Tensor, q: Tensor) -> Tensor:
    """How far a prediction moved: half the sum of |p - q| over the classes.

    Of p, q (..., class), rows sum to 1: (...,) in [0, 1], a fraction of probability; with two classes |change of p|.
    """
    return (p - q).abs().sum(dim=-1) / 2


def probabilities(logits: Tensor) -> Tensor:
    """Class distributions from logits: (..., 1) of one sigmoid output -> (..., 2) as (1 - p, p); softmax otherwise."""
    if logits.shape[-1] == 1:
        return torch.cat([torch.sigmoid(-logits), torch.sigmoid(logits)], dim=-1)
    return torch.softmax(logits, dim=-1)


def normalized_entropy(p: Tensor, mask: Tensor) -> Tensor:
    """Entropy as a fraction of that of the uniform distribution, H / ln n (Meister et al. 2021, section 4).

    Of p (batch, token), rows sum to 1 over the mask of n real tokens: (batch,) in [0, 1]; NaN where n = 1.
    """
    count = mask.sum(dim=-1)
    entropy = torch.special.entr(p.masked_fill(~mask, 0)).sum(dim=-1)
    share = (entropy / torch.where(count > 1, count, 2).to(p.dtype).log()).clamp(0, 1)
    return share.masked_fill(count <= 1, math.nan)
