"""Mutual information of two sets of vectors, by the labels of their clusters (Tutek & Snajder 2020, section 3.4)."""

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import mutual_info_score

POWER = 0.75  # of the word counts, in the random sample
SHUFFLES = 5
BATCH = 100  # the paper's
PASSES = 3  # over the vectors; not ended early, since a chance pause after a few steps moves the result by .9 nats
ROWS = 2**14  # vectors whose cluster is looked up at once


def frequent_words(counts: np.ndarray, number: int) -> np.ndarray:
    """The `number` words that occur most often (MF), of equals the first; those that occur: (word,) positions."""
    return np.flatnonzero(counts)[np.argsort(-counts[counts > 0], kind="stable")[:number]]


def random_words(counts: np.ndarray, number: int, seed: int) -> np.ndarray:
    """`number` different words, drawn by their counts to the power of 3/4 (RS, the paper's footnote 6)."""
    chances, number = counts.astype(np.float64) ** POWER, min(number, int((counts > 0).sum()))
    return np.random.default_rng(seed).choice(len(counts), number, replace=False, p=chances / chances.sum())


def mutual_information(first: np.ndarray, second: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """Mutual information, in nats, of labels (n,): from their counts, and of the same labels shuffled.

    The first (plug-in) is too high. The second (null), the mean of SHUFFLES, is how much of it is chance; less this, it
    needs no correction by Miller & Madow's (1955) term, which removes a part of the same.
    """
    random = np.random.default_rng(seed)
    null = [mutual_info_score(first, random.permutation(second)) for _ in range(SHUFFLES)]
    return float(mutual_info_score(first, second)), float(np.mean(null))


def clusters(vectors: np.ndarray, number: int, seed: int) -> np.ndarray:
    """The cluster of each vector by mini-batch k-means, (row, size) -> (row,) int32."""
    whole = {"max_iter": PASSES, "max_no_improvement": None, "n_init": 1, "compute_labels": False}
    kmeans = MiniBatchKMeans(min(number, len(vectors)), batch_size=BATCH, random_state=seed, **whole).fit(vectors)
    parts = [kmeans.predict(vectors[start : start + ROWS]) for start in range(0, len(vectors), ROWS)]
    return np.concatenate(parts).astype(np.int32)
