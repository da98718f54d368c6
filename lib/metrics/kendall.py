"""Kendall's tau-b with p-values, many rows at once."""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from scipy.stats import kendalltau
from torch import Tensor

from lib.numerics import by_length

LONGEST_SIGN_MATRIX = 512  # tokens; beyond, SciPy's O(n log n) a row
LONGEST_EXACT = 33  # tokens up to which SciPy uses the exact distribution, where there are no ties
CELLS = 2**19  # of the sign matrices held at once: about what stays in the processor's cache


def kendall_tau(x: Tensor, y: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Rank correlation with ties (Kendall's tau-b) of each row, and its two-sided p-value.

    The same as scipy.stats.kendalltau: the exact distribution where no values tie and n <= 33 or at most one pair
    disagrees (or agrees), else the normal approximation with ties.

    Args:
        x, y, mask: (batch, token); only tokens where the mask is True count.
    Returns:
        (tau, p-value), each (batch,) float64 in tau-b and fraction; NaN where undefined: fewer than two tokens, all
        values of x or of y equal, or a NaN among them.
    """
    tau, p_value = kendall_taus([x, y], mask)
    return tau[0], p_value[0]


def kendall_taus(measures: Sequence[Tensor], mask: Tensor) -> tuple[Tensor, Tensor]:
    """Tau-b and p-value of each row for every pair of measures; the pairs share their sign matrices.

    Args:
        measures: several (batch, token). mask: (batch, token).
    Returns:
        (tau, p-value), each (pair, batch) float64; pairs in the order of itertools.combinations:
        for three measures (0, 1), (0, 2), (1, 2).
    """
    shapes = [tuple(m.shape) for m in measures]
    if len(measures) < 2 or any(shape != tuple(mask.shape) for shape in shapes):
        raise ValueError(f"shapes {shapes} with a mask {tuple(mask.shape)}; two or more measures of the mask's shape")
    pairs = torch.triu_indices(len(measures), len(measures), 1).tolist()
    with torch.no_grad():
        values = torch.stack([m.detach() for m in measures], dim=1).masked_fill(~mask[:, None], math.nan)
        count = mask.sum(dim=-1)
        agree = values.new_zeros(len(mask), len(measures), len(measures), dtype=torch.float64)
        ties = values.new_zeros(3, len(measures), len(mask), dtype=torch.float64)
        batched = count.masked_fill((count < 2) | (count > LONGEST_SIGN_MATRIX), 0)
        for rows in by_length(batched, CELLS // len(measures), power=2):
            columns = mask[rows].any(dim=0).nonzero()
            kept = values[rows][:, :, int(columns[0]) : int(columns[-1]) + 1]
            agree[rows], ties[:, :, rows] = _compare(kept, count[rows])
        missing = (values.isnan() & mask[:, None]).any(dim=-1).T
        result = _tau_and_p_value(agree, ties, count.double(), missing, *pairs)
        for row in (count > LONGEST_SIGN_MATRIX).nonzero().flatten().tolist():
            kept = values[row][:, mask[row]].cpu().numpy()
            for pair, (i, j) in enumerate(zip(*pairs, strict=True)):
                result[:, pair, row] = torch.tensor(tuple(kendalltau(kept[i], kept[j])), dtype=torch.float64)
    return result[0], result[1]


def _compare(values: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """All pairs of tokens at once: values (row, measure, token), NaN = padding, which is larger than nothing.

    Returns:
        (row, measure, measure): pairs of tokens in one order minus pairs in opposite orders; on the diagonal, untied.
        (3, measure, row): over groups of t tied values the sums of t(t-1)/2, t(t-1)(t-2) and t(t-1)(2t+5).
    """
    rows, measures, width = values.shape
    larger = (values[..., :, None] > values[..., None, :]).to(torch.float32)
    sign = (larger - larger.transpose(-1, -2)).view(rows, measures, width * width)
    agree = (sign @ sign.transpose(-1, -2)).double() / 2  # float32 counts exactly up to 2^24 > 512^2
    ties = agree.new_zeros(3, measures, rows)
    if (agree.diagonal(dim1=-2, dim2=-1) != (count * (count - 1) / 2)[:, None]).any():
        t = count[:, None, None] - larger.sum(dim=-1) - larger.sum(dim=-2)  # size of each token's own group
        t = t.masked_fill(values.isnan(), 1).double()
        ties = torch.stack([(t - 1) / 2, (t - 1) * (t - 2), (t - 1) * (2 * t + 5)]).sum(dim=-1).transpose(1, 2)
    return agree, ties


def _tau_and_p_value(agree: Tensor, ties: Tensor, n: Tensor, missing: Tensor, first: list, second: list) -> Tensor:
    """(2, pair, row): tau-b and p-value; `missing` (measure, row) is True where a NaN is among the values."""
    total = n * (n - 1) / 2
    untied = agree.diagonal(dim1=-2, dim2=-1).T  # (measure, row)
    surplus, a, b = agree[:, first, second].T, untied[first], untied[second]
    tau = (surplus / a.sqrt() / b.sqrt()).clamp(-1, 1)
    few = (total - surplus.abs()) / 2 <= 1  # at most one pair out of order (or in order)
    exact = (a == total) & (b == total) & ((n <= LONGEST_EXACT) | few)
    p_value = torch.where(exact, _exact_p_value(surplus, n), _normal_p_value(surplus, n, ties, first, second))
    undefined = (n < 2) | (a == 0) | (b == 0) | missing[first] | missing[second]
    return torch.stack([tau, p_value]).masked_fill(undefined, math.nan)


def _exact_p_value(surplus: Tensor, n: Tensor) -> Tensor:
    """Two-sided p-value over all n! orders, no ties: (pair, row). Right for n <= 33 or at most one inversion."""
    total = n * (n - 1) / 2
    inversions = (total - surplus.abs()) / 2
    table = _inversion_table().to(n.device)
    row = n.clamp(max=LONGEST_EXACT).long().expand_as(surplus)
    short = table[row, inversions.clamp(0, table.shape[1] - 1).long()]
    long = (math.log(2) - torch.lgamma(n + 1 - (inversions >= 1).double())).exp()  # 2 / n! or 2 / (n - 1)!
    return torch.where(n <= LONGEST_EXACT, short, long)


@lru_cache(maxsize=1)
def _inversion_table() -> Tensor:
    """[n, c]: share of the n! orders with at most c inversions, doubled (two tails), at most 1; n up to 33."""
    widest = LONGEST_EXACT * (LONGEST_EXACT - 1) // 2 + 1
    table = np.ones((LONGEST_EXACT + 1, widest))
    share = np.zeros(widest)
    share[0] = 1  # one order of one token
    for n in range(2, LONGEST_EXACT + 1):
        share = np.convolve(share, np.full(n, 1 / n))[:widest]  # the n-th token passes 0 .. n - 1 others
        table[n] = np.minimum(1, 2 * share.cumsum())
    return torch.from_numpy(table)


def _normal_p_value(surplus: Tensor, n: Tensor, ties: Tensor, first: list, second: list) -> Tensor:
    """Two-sided p-value by the normal approximation with ties (Kendall, Rank Correlation Methods, chapter 4)."""
    (ties_x, x0, x1), (ties_y, y0, y1) = ties[:, first], ties[:, second]
    m = n * (n - 1)
    variance = (m * (2 * n + 5) - x1 - y1) / 18 + 2 * ties_x * ties_y / m
    variance = variance + x0 * y0 / (9 * m * (n - 2).clamp(min=1))  # with n = 2 the numerator is 0
    return torch.erfc(surplus.abs() / (2 * variance).sqrt())
