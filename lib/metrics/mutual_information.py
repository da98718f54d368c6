"""Mutual information of two sets of vectors, by the labels of their clusters (Tutek & Snajder 2020, section 3.4).

The clusters are those of lib.fast.clusters.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import mutual_info_score

POWER = 0.75  # of the word counts, in the random sample
SHUFFLES = 5


@dataclass(frozen=True)
class Information:
    """Mutual information, in nats.

    plug_in        from the counts as they are: too high by about (cells - rows - columns + 1) / 2n
    miller_madow   less that; with few counts a cell, only a part of what is too much
    null           plug-in of the same labels shuffled, the mean of SHUFFLES: what chance gives at this n
    n              how many pairs of labels
    """

    plug_in: float
    miller_madow: float
    null: float
    n: int


def frequent_words(counts: np.ndarray, number: int) -> np.ndarray:
    """The `number` words that occur most often (MF), of equals the first; those that occur: (word,) positions."""
    return np.flatnonzero(counts)[np.argsort(-counts[counts > 0], kind="stable")[:number]]


def random_words(counts: np.ndarray, number: int, seed: int) -> np.ndarray:
    """`number` different words, drawn by their counts to the power of 3/4 (RS, the paper's footnote 6)."""
    chances = counts.astype(np.float64) ** POWER * (counts > 0)
    number = min(number, int((counts > 0).sum()))
    return np.random.default_rng(seed).choice(len(counts), number, replace=False, p=chances / chances.sum())


def mutual_information(first: np.ndarray, second: np.ndarray, seed: int = 0) -> Information:
    """Mutual information of the labels `first` and `second`, each (n,)."""
    plug_in = float(mutual_info_score(first, second))
    sizes = [len(np.unique(labels)) for labels in (first, second)]
    cells = len(np.unique(first.astype(np.int64) * (int(second.max()) + 1) + second))
    bias = (cells - sum(sizes) + 1) / (2 * len(first))
    random = np.random.default_rng(seed)
    null = np.mean([mutual_info_score(first, random.permutation(second)) for _ in range(SHUFFLES)])
    return Information(plug_in, plug_in - bias, float(null), len(first))
