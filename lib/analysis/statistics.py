"""Intervals: the bootstrap by weights, Student's t, and scores that take weights. NumPy and SciPy only."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf, nan

import numpy as np
from scipy import special, stats

LEVEL = 0.95  # of every interval
FEW = 3  # seeds: fewer say nothing about others, and the interval is of these very models
CELLS = 2_000_000  # most weights held at once: 16 MB
SEED = 0  # of every bootstrap and randomisation test: the same rows have the same interval
# (weights (draw, row), table (row, ...)) -> (draw, quantity, seed): of rows that count with these weights
Statistic = Callable[[np.ndarray, np.ndarray], np.ndarray]


def over_what(seeds: float) -> str:
    """What an interval of so many seeds is over."""
    return "texts and seeds" if seeds >= FEW else "texts"


def bootstrap(statistic: Callable[[np.ndarray], np.ndarray], count: int, draws: int) -> np.ndarray:
    """What a statistic is in bootstrap samples of `count` instances: (draws, ...).

    Args:
        statistic: weights (draw, instance) -> (draw, ...); the weights are how often each instance was drawn, in chunks
            of at most CELLS of them.
    """
    random, found = np.random.default_rng(SEED), []
    step = max(1, CELLS // max(count, 1))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        drawn = random.integers(0, count, (size, count)) + np.arange(size)[:, None] * count
        weights = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        found.append(statistic(weights.astype(np.float64)))
    return np.concatenate(found)


def interval(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 95% percentile interval of samples (draw, ...): (low, high), each (...); NaN where all are undefined."""
    undefined = np.isnan(samples).all(axis=0)
    bounds = np.nanquantile(np.where(undefined, 0.0, samples), [0.025, 0.975], axis=0)
    low, high = np.where(undefined, np.nan, bounds)
    return low, high


def t_interval(values: np.ndarray) -> tuple[float, float]:
    """Student's 95% interval for the mean of values (seed,); NaN for fewer than FEW."""
    values = values[~np.isnan(values)]
    if len(values) < FEW:
        return np.nan, np.nan
    half = special.stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / np.sqrt(len(values))
    return values.mean() - half, values.mean() + half


@dataclass(frozen=True)
class Spread:
    """The variance between seeds, and its degrees of freedom: 0 where it is unknown."""

    variance: float
    df: float

    @classmethod
    def of(cls, groups: Iterable[np.ndarray]) -> "Spread":
        """Pooled over groups of seeds (seed,), each about its own mean."""
        groups = [values[~np.isnan(values)] for values in map(np.asarray, groups)]
        df = sum(max(len(values) - 1, 0) for values in groups)
        squares = sum(((values - values.mean()) ** 2).sum() for values in groups if len(values))
        return cls(squares / df if df else nan, df)


@dataclass(frozen=True)
class Estimate:
    """An effect with the standard errors of what varies: texts, and the seeds of each group.

    Texts and seeds are crossed. The squares of the half-widths of each source's own interval are added (Zou & Donner
    2008, method of variance estimates recovery). Satterthwaite's degrees of freedom, which would give one t for the sum
    of the variances, are too many for three seeds: in simulations up to 8% of its 95% intervals miss.

    parts    (standard error, degrees of freedom) of each source
    """

    effect: float
    parts: tuple[tuple[float, float], ...]

    @classmethod
    def over(
        cls, effect: float, spreads: Iterable[tuple[Spread, int]], se_texts: float, texts: float = inf
    ) -> "Estimate":
        """The estimate from the mean over seeds.

        Args:
            spreads: between the seeds of each group, and how many they are. se_texts: the standard error over texts of
            the mean over these seeds. texts: how many.
        """
        parts = [(float(np.nan_to_num(se_texts)), max(texts - 1, 1))]
        parts += [(float(np.sqrt(spread.variance / seeds)), spread.df) for spread, seeds in spreads if spread.df]
        return cls(effect, tuple(parts))

    def interval(self) -> tuple[float, float]:
        """The two-sided 95% interval."""
        half = float(np.linalg.norm([se * special.stdtrit(df, (1 - LEVEL) / 2) for se, df in self.parts if se]))
        return self.effect - half, self.effect + half


def share_limits(k: int, n: int) -> tuple[float, float]:
    """The exact one-sided 95% limits of a share, k of n: below and above (Clopper & Pearson 1934)."""
    low = stats.beta.ppf(1 - LEVEL, k, n - k + 1) if k else 0.0
    high = stats.beta.ppf(LEVEL, k + 1, n - k) if k < n else 1.0
    return float(low), float(high)


def interval_over_texts_and_seeds(value: float, samples: np.ndarray, *groups: np.ndarray) -> tuple[float, float]:
    """A 95% interval for what other texts and other seeds would give.

    That of `Estimate`, from the bootstrap over texts and each group's seeds. Groups of fewer than FEW seeds add
    nothing: the interval is then of these very models.

    Args:
        value: the estimate. samples: (draw,) of the bootstrap over texts. groups: the values of the seeds (seed,).
    """
    se = standard_error(samples)  # NaN where there is none
    groups = [values[~np.isnan(values)] for values in groups]
    spreads = [(Spread.of([values]), len(values)) for values in groups if len(values) >= FEW]
    if np.isnan(value) or not (spreads or not np.isnan(se)):
        return np.nan, np.nan
    return Estimate.over(value, spreads, se).interval()


def standard_error(samples: np.ndarray) -> float:
    """The sd of the bootstrap's samples (draw,); NaN for fewer than two."""
    samples = samples[~np.isnan(samples)]
    return float(samples.std(ddof=1)) if len(samples) > 1 else nan


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """numerator / denominator, NaN where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.full_like(denominator, np.nan), where=denominator != 0)


def mean_over(axis: int, values: np.ndarray) -> np.ndarray:
    """The mean along one axis of what is defined; NaN, without a warning, where nothing is."""
    defined = ~np.isnan(values)
    return ratio(np.where(defined, values, 0.0).sum(axis), defined.sum(axis).astype(np.float64))


def weighted_mean(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """weights (draw, instance), values (instance, ...) with NaN where undefined -> (draw, ...)."""
    table = values.reshape(len(values), -1)
    defined = ~np.isnan(table)
    means = ratio(weights @ np.where(defined, table, 0.0), weights @ defined.astype(np.float64))
    return means.reshape(len(weights), *values.shape[1:])


def weighted_median(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """weights (draw, instance), values (instance, seed) with NaN where undefined -> (draw, seed); NaN where none is."""
    found = np.full((len(weights), values.shape[1]), np.nan)
    for seed, column in enumerate(values.T):
        order = np.argsort(column, kind="stable")[: np.count_nonzero(~np.isnan(column))]  # NaNs are last
        below = weights[:, order].cumsum(axis=1)
        if not len(order):
            continue
        half = below[:, -1:] / 2
        lower, upper = (below < half).sum(axis=1), (below <= half).sum(axis=1)
        middle = [column[order][np.minimum(place, len(order) - 1)] for place in (lower, upper)]
        found[:, seed] = np.where(half[:, 0] > 0, np.mean(middle, axis=0), np.nan)
    return found


def weighted_f1(weights: np.ndarray, label: np.ndarray, prediction: np.ndarray, classes: int = 2) -> np.ndarray:
    """F1 of the positive class for two classes, the mean of all classes' F1 (macro) for more.

    Args:
        weights: (draw, instance). label: (instance,) classes from 0. prediction: the same, or (instance, model).
    Returns:
        (draw,) or (draw, model), fraction; a class that is neither a label nor predicted has no F1 and does not count.
    """
    models = prediction.reshape(len(label), -1)
    of_classes = []
    for kind in (1,) if classes == 2 else range(classes):
        is_label, is_predicted = (label == kind)[:, None], models == kind  # (instance, model)
        hits = weights @ (is_label & is_predicted).astype(np.float64)
        both = weights @ (is_label.astype(np.float64) + is_predicted)  # 2 tp + fp + fn
        of_classes.append(ratio(2 * hits, both))
    return mean_over(0, np.stack(of_classes)).reshape(len(weights), *prediction.shape[1:])


def weighted_balanced_accuracy(
    weights: np.ndarray, label: np.ndarray, prediction: np.ndarray, classes: int = 2
) -> np.ndarray:
    """The mean over the classes of the share of their texts that are predicted right; arguments as of `weighted_f1`.

    Unlike F1 it does not depend on which class is the positive one: a model that predicts one class alone has .5.
    """
    models = prediction.reshape(len(label), -1)
    right = (models == label[:, None]).astype(np.float64)
    kinds = [weights * (label == kind) for kind in range(classes)]
    of_classes = np.stack([ratio(kind @ right, np.repeat(kind.sum(1)[:, None], right.shape[1], 1)) for kind in kinds])
    return mean_over(0, of_classes).reshape(len(weights), *prediction.shape[1:])


def weighted_auc(weights: np.ndarray, label: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Area under the ROC curve: how often a positive instance scores above a negative one, ties half.

    Args:
        weights: (draw, instance). label: (instance,) 0 or 1. score: (instance,).
    Returns:
        (draw,) fraction, NaN where a sample has one class only.
    """
    order = np.argsort(score, kind="stable")
    weights, positive, score = weights[:, order], label[order] == 1, score[order]
    below = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(weights * ~positive, axis=1)], axis=1)
    first, after = np.searchsorted(score, score, side="left"), np.searchsorted(score, score, side="right")
    beaten = (below[:, first] + below[:, after]) / 2  # weight of the negatives below, and half of the tied
    return ratio((weights * positive * beaten).sum(1), (weights * positive).sum(1) * (weights * ~positive).sum(1))
