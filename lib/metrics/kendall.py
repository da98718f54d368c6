"""Kendall's tau-b with p-values, many rows at once."""

from functools import lru_cache

import numpy as np
import torch
from scipy.special import erfc, gammaln
from torch import Tensor

from lib.numerics import by_length

LONGEST_EXACT = 33  # tokens up to which SciPy uses the exact distribution, where there are no ties
CELLS = 2**14  # tokens compared at once: about what stays in the processor's cache


def kendall_tau(x: Tensor, y: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Rank correlation with ties (Kendall's tau-b) of each row, and its two-sided p-value.

    As scipy.stats.kendalltau: the exact distribution where no values tie and n <= 33 or at most one pair disagrees (or
    agrees), else the normal approximation with ties. As in Knight (1966): with the tokens in the order of x, and by y
    where they tie, the discordant pairs are those that y has out of order; here they are counted in O(n^2).

    Args:
        x, y, mask: (batch, token); only tokens where the mask is True count.
    Returns:
        tau-b and p-value (fraction), each (batch,) in doubles; NaN where undefined: fewer than two tokens, all values
        of x or of y equal, or a NaN among them.
    """
    if not x.shape == y.shape == mask.shape:
        shapes = [tuple(one.shape) for one in (x, y)]
        raise ValueError(f"shapes {shapes} with a mask {tuple(mask.shape)}; both measures need the mask's shape")
    columns, real = [one.detach().double().cpu().numpy() for one in (x, y)], mask.cpu().numpy()
    n, found = real.sum(axis=1), np.full((2, len(real)), np.nan)
    for rows in by_length(torch.from_numpy(n), CELLS):
        some = rows.numpy()
        kept = np.flatnonzero(real[some].any(axis=0))
        cells = some, slice(kept[0], kept[-1] + 1)
        values = np.stack([column[cells] for column in columns])
        values = np.where(real[cells], values, np.inf)  # padding: behind all others
        found[:, some] = _tau_and_p_value(*_compare(values, n[some]), n[some].astype(float))
        found[:, some[np.isnan(values).any(axis=(0, 2))]] = np.nan
    tau, p_value = torch.from_numpy(found).to(mask.device)
    return tau, p_value


def _compare(values: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of values (measure, row, token) with infinity as padding, n (row,) of which are real, each counted per row.

    (measure, 3, row): over groups of t tied values the sums of t(t-1)/2, t(t-1)(t-2) and t(t-1)(2t+5); (row,): twice
    the pairs of tokens in opposite orders, less those that tie in both measures.
    """
    order = values.argsort(axis=-1)
    order += np.arange(0, values.size, values.shape[-1]).reshape(-1, len(n), 1)  # into the rows laid end to end
    placed = values.take(order)
    steps = placed[..., 1:] != placed[..., :-1]
    ties = np.stack([_ties(of_measure, n) for of_measure in steps])
    ranked = np.zeros(values.shape, np.int32)
    steps.cumsum(axis=-1, dtype=np.int32, out=ranked[..., 1:])
    ranks = np.empty_like(ranked)
    ranks.reshape(-1)[order.reshape(-1)] = ranked.reshape(-1)
    there, of_both = ranks[1].take(order[0]), 0  # the second's ranks in the order of the first
    if ties[0, 0].any():
        both = (ranked[0].astype(np.int64) << 32) | there
        both.sort(axis=-1)
        there = both.astype(np.int32)  # the lower half
        of_both = _ties(both[:, 1:] != both[:, :-1], n)[0]
    return ties, 2 * _inversions(there) - of_both


def _ties(steps: np.ndarray, n: np.ndarray) -> np.ndarray:
    """(3, row), as `_compare` returns; steps (row, token - 1): whether sorted values differ from the last."""
    place = np.arange(1, steps.shape[-1] + 1)
    before = place - np.maximum.accumulate(np.where(steps, place, 0), axis=-1)  # those of its group before each
    before = np.where(place < n[:, None], before, 0).astype(float)
    two, three = before.sum(axis=-1), (before * (before - 1)).sum(axis=-1)
    return np.stack([two, 3 * three, 6 * three + 18 * two])


def _inversions(ranks: np.ndarray) -> np.ndarray:
    """Pairs of tokens whose ranks (row, token) are out of order: (row,)."""
    apart = range(1, ranks.shape[1])
    return sum(((ranks[:, by:] < ranks[:, :-by]).sum(axis=1) for by in apart), np.zeros(len(ranks), np.int64))


def _tau_and_p_value(ties: np.ndarray, unlike: np.ndarray, n: np.ndarray) -> np.ndarray:
    """(2, row): tau-b and p-value, of what `_compare` returns (Kendall, Rank Correlation Methods, chapter 4)."""
    total, (ties_x, x0, x1), (ties_y, y0, y1) = n * (n - 1) / 2, *ties
    a, b = total - ties[:, 0]
    surplus = a + b - total - unlike  # pairs of tokens in one order minus pairs in opposite orders
    inversions = (total - np.abs(surplus)) / 2  # or pairs in order, where these are fewer
    table, row = _inversion_table(), np.minimum(n, LONGEST_EXACT).astype(int)
    short = table[row, inversions.clip(0, table.shape[1] - 1).astype(int)]
    long = 2 * np.exp(-gammaln(n + 1 - (inversions >= 1)))  # 2 / n! or 2 / (n - 1)!
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = (2 * total * (2 * n + 5) - x1 - y1) / 18 + ties_x * ties_y / total
        variance += x0 * y0 / (18 * total * np.maximum(n - 2, 1))  # with n = 2 the numerator is 0
        normal = erfc(np.abs(surplus) / np.sqrt(2 * variance))
        tau = (surplus / np.sqrt(a) / np.sqrt(b)).clip(-1, 1)
    exact = (a == total) & (b == total) & ((n <= LONGEST_EXACT) | (inversions <= 1))
    p_value = np.where(exact, np.where(n <= LONGEST_EXACT, short, long), normal)
    return np.where((a == 0) | (b == 0), np.nan, [tau, p_value])


@lru_cache(maxsize=1)
def _inversion_table() -> np.ndarray:
    """[n, c]: share of the n! orders with at most c inversions, doubled (two tails), at most 1; n up to 33."""
    widest = LONGEST_EXACT * (LONGEST_EXACT - 1) // 2 + 1
    table, share = np.ones((LONGEST_EXACT + 1, widest)), np.eye(1, widest)[0]  # one order of one token
    for n in range(2, LONGEST_EXACT + 1):
        share = np.convolve(share, np.full(n, 1 / n))[:widest]  # the n-th token passes 0 .. n - 1 others
        table[n] = np.minimum(1, 2 * share.cumsum())
    return table
