"""Effects and their intervals: over texts by the bootstrap, over runs by Student's t; and scores that take weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np
from scipy import special

LEVEL = 0.95  # of every interval
FEW = 3  # runs: fewer say nothing about others, and the interval is of these very models
MAX_WEIGHTS = 2_000_000  # held at once: 16 MB
SEED = 0  # of every bootstrap: the same rows have the same interval
# (weights (draw, text), table (text, ...)) -> (draw, quantity, run): of texts that count with these weights
Statistic = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Effect:
    """What a quantity comes to, or its difference between two models: over texts, and in each run."""

    quantity: str
    value: float  # the mean over runs
    by_run: Mapping[int, float]  # {seed: value}
    se: float  # the standard error over texts of that mean; NaN where it is not known
    n: int  # texts
    first: float = nan  # of a difference its two values
    second: float = nan

    def interval(self) -> tuple[float, float]:
        """The 95% interval over texts and runs."""
        return interval(self.value, self.se, np.array([*self.by_run.values()]))


def interval(value: float, se: float, runs: np.ndarray, texts: float = inf) -> tuple[float, float]:
    """The 95% interval of a mean over runs, for what other texts and other runs would give; NaN where nothing is known.

    Texts and runs are crossed. The squares of the half-widths of each one's own interval are added (Zou & Donner 2008,
    method of variance estimates recovery); with Satterthwaite's degrees of freedom up to 8% would miss, of three runs.

    Args:
        value, se: a number or (...); se is over texts, of this mean.
        runs: the values (..., run), NaN for none; of fewer than FEW the interval is of these very models.
        texts: how many, for Student's t of `se`; by default the normal quantile.
    """
    count = (~np.isnan(runs)).sum(-1, dtype=np.float64)
    variance = mean_over(-1, (runs - mean_over(-1, runs)[..., None]) ** 2)
    of_runs = np.where(count < FEW, nan, np.sqrt(ratio(variance, count - 1)) * quantile(count - 1))
    squares = np.square(np.broadcast_arrays(se * quantile(max(texts - 1, 1)), of_runs))
    half = np.sqrt(np.where(np.isnan(squares).all(0), nan, np.nansum(squares, 0)))
    return value - half, value + half


def quantile(df: float) -> float:
    """The upper quantile of Student's t for an interval of LEVEL, elementwise."""
    return special.stdtrit(df, (1 + LEVEL) / 2)


def t_interval(values: np.ndarray) -> tuple[float, float]:
    """Student's 95% interval for the mean of values (run,); NaN for fewer than FEW."""
    return interval(float(mean_over(0, values)), nan, values)


def estimate(
    names: Sequence[str], statistic: Statistic, sides: Sequence[np.ndarray], seeds: Sequence[int], draws: int
) -> list[Effect]:
    """The effect of each quantity of a statistic in one model, or that in a first model less that in a second.

    Args:
        sides: the table (text, ...) of the model, or two of the same texts, of as many runs or the second of one: the
            bootstrap draws the same texts for both, and runs of one seed are pairs.
        seeds: of the runs, in the tables' order. draws: samples of the bootstrap.
    """

    def contrast(values: list[np.ndarray]) -> np.ndarray:
        return np.subtract(*values) if len(sides) == 2 else values[0]

    def means(weights: np.ndarray) -> list[np.ndarray]:
        return [mean_over(2, statistic(weights, side)) for side in sides]

    texts = len(sides[0])
    ones = np.ones((1, texts))
    by_run = contrast([statistic(ones, side)[0] for side in sides])  # (quantity, run)
    samples = bootstrap(lambda weights: contrast(means(weights)), texts, draws)
    effects = []
    for place, name in enumerate(names):
        values = [float(mean[0, place]) for mean in means(ones)]
        error, runs = standard_error(samples[:, place]), number_by_seed(seeds, by_run[place])
        both = values if len(sides) == 2 else (nan, nan)
        effects.append(Effect(name, float(contrast(values)), runs, error, texts, *both))
    return effects


def number_by_seed(seeds: Sequence[int], values: np.ndarray) -> dict[int, float]:
    """{seed: its value}, in Python's own numbers; the seed of rows that were measured without a run is ""."""
    names = [seed if seed == "" else int(seed) for seed in seeds]
    return dict(zip(names, map(float, values), strict=True))


def bootstrap(statistic: Callable[[np.ndarray], np.ndarray], count: int, draws: int) -> np.ndarray:
    """What a statistic, weights (draw, text) -> (draw, ...), is in bootstrap samples of `count` texts: (draws, ...).

    The weights are how often each text was drawn, in chunks of at most MAX_WEIGHTS of them.
    """
    random, samples = np.random.default_rng(SEED), []
    step = max(1, MAX_WEIGHTS // max(count, 1))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        drawn = random.integers(0, max(count, 1), (size, count)) + np.arange(size)[:, None] * count
        weights = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        samples.append(statistic(weights.astype(np.float64)))
    return np.concatenate(samples)


def standard_error(samples: np.ndarray) -> float:
    """The sd of the bootstrap's samples (draw,); NaN for fewer than two, or where one has no text with a value."""
    return float(samples.std(ddof=1)) if len(samples) > 1 else nan


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """numerator / denominator, NaN where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.full_like(denominator, nan), where=denominator != 0)


def mean_over(axis: int, values: np.ndarray) -> np.ndarray:
    """The mean along one axis of what is defined; NaN, without a warning, where nothing is."""
    defined = ~np.isnan(values)
    return ratio(np.where(defined, values, 0.0).sum(axis), defined.sum(axis, dtype=np.float64))


def weighted_mean(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """weights (draw, text), values (text, ...) with NaN where undefined -> (draw, ...)."""
    table = values.reshape(len(values), -1)
    defined = ~np.isnan(table)
    means = ratio(weights @ np.where(defined, table, 0.0), weights @ defined.astype(np.float64))
    return means.reshape(len(weights), *values.shape[1:])


def weighted_median(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """weights (draw, text), values (text, ...) with NaN where undefined -> (draw, ...); NaN where none is."""
    columns = values.reshape(len(values), int(np.prod(values.shape[1:]))).T
    medians = np.full((len(weights), len(columns)), nan)
    for place, column in enumerate(columns):
        order = np.argsort(column, kind="stable")[: np.count_nonzero(~np.isnan(column))]  # NaNs are last
        if not len(order):
            continue
        below = weights[:, order].cumsum(axis=1)
        half = below[:, -1:] / 2
        ranks = (below < half).sum(axis=1), (below <= half).sum(axis=1)
        middle = [column[order][np.minimum(rank, len(order) - 1)] for rank in ranks]
        medians[:, place] = np.where(half[:, 0] > 0, np.mean(middle, axis=0), nan)
    return medians.reshape(len(weights), *values.shape[1:])


def weighted_f1(weights: np.ndarray, label: np.ndarray, prediction: np.ndarray, classes: int = 2) -> np.ndarray:
    """F1 of the positive class for two classes, the mean of all classes' F1 (macro) for more.

    Args:
        weights: (draw, text). label: (text,) classes from 0. prediction: (text, ...), such as one of each model.
    Returns:
        (draw, ...), fraction; a class that is neither a label nor predicted has no F1 and does not count.
    """
    models = prediction.reshape(len(label), -1)
    scores = []
    for kind in (1,) if classes == 2 else range(classes):
        is_label, is_predicted = (label == kind)[:, None], models == kind  # (text, model)
        hits = weights @ (is_label & is_predicted).astype(np.float64)
        both = weights @ (is_label.astype(np.float64) + is_predicted)  # 2 tp + fp + fn
        scores.append(ratio(2 * hits, both))
    return mean_over(0, np.stack(scores)).reshape(len(weights), *prediction.shape[1:])
