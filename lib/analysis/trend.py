"""Does a quantity rise or fall as a dial is turned? Rank correlation of the dial with the quantity's mean."""

import numpy as np
import pandas as pd
import torch
from scipy.stats import norm, rankdata

from lib.analysis.statistics import bootstrap, interval_over_texts_and_seeds, mean_over, ratio, weighted_mean
from lib.analysis.summarising import by_seed
from lib.metrics import kendall_tau

MEASURES = ("tau", "spearman")


def trend(instances: pd.DataFrame, dial: str, quantity: str, draws: int = 1000, seed: int = 0) -> pd.Series:
    """Kendall's tau-b and Spearman's rho between a dial and the mean of a quantity (Meister et al. 2021, table 2).

    The mean is over the texts, at each value of the dial; the correlation is over these values, in each seed by itself,
    and of the seeds the mean. The bootstrap draws texts, the same for all values of the dial. With one seed nothing
    tells how far the training of one model moves its mean: the spread of a correlation by chance, over so many values,
    then stands for that.

    Args:
        instances: rows of one configuration, each seed with every value of the column `dial`.
    Returns:
        quantity, tau, tau_low, tau_high, spearman, spearman_low, spearman_high (95%, over texts and seeds), points
        (values of the dial), seeds, n (texts). NaN where the means are constant, or fewer than two.
    Raises:
        ValueError: the seeds have other values of the dial, or other texts.
    """
    tables = {value: by_seed(rows, quantity) for value, rows in instances.groupby(dial)}
    first = next(iter(tables.values()))
    if not all(table.index.equals(first.index) and table.columns.equals(first.columns) for table in tables.values()):
        raise ValueError(f"the values of {dial!r} have other texts or seeds; each must have them all")
    values = np.stack([table.to_numpy() for table in tables.values()], axis=1)  # (instance, point, seed)
    at = np.array(list(tables), dtype=np.float64)

    def correlated(weights: np.ndarray) -> np.ndarray:
        """(draw, seed, measure)."""
        means = np.moveaxis(weighted_mean(weights, values), 1, -1)
        return np.stack([kendall(at, means), spearman(at, means)], axis=-1)

    of_seeds = correlated(np.ones((1, len(values))))[0]
    samples = mean_over(1, bootstrap(correlated, len(values), draws, seed))
    found = {"quantity": quantity}
    for column, name in enumerate(MEASURES):
        value = float(mean_over(0, of_seeds[:, column]))
        bounds = interval_over_texts_and_seeds(value, samples[:, column], of_seeds[:, column])
        if len(of_seeds) == 1:
            half = np.hypot((bounds[1] - bounds[0]) / 2, norm.ppf(0.975) * by_chance(len(at))[column])
            bounds = value - half, value + half
        found |= {name: value} | dict(zip((f"{name}_low", f"{name}_high"), np.clip(bounds, -1, 1), strict=True))
    return pd.Series(found | {"points": len(at), "seeds": values.shape[2], "n": len(values)})


def by_chance(points: int) -> tuple[float, float]:
    """The sd of Kendall's tau and of Spearman's rho between unrelated orders of so many points (Kendall 1948)."""
    if points < 2:
        return np.nan, np.nan
    return np.sqrt(2 * (2 * points + 5) / (9 * points * (points - 1))), np.sqrt(1 / (points - 1))


def kendall(at: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Kendall's tau-b of at (point,) with each row of values (..., point); NaN where a side is constant."""
    rows = torch.from_numpy(values.reshape(-1, len(at)))
    tau, _ = kendall_tau(torch.from_numpy(at).expand_as(rows), rows, torch.ones_like(rows, dtype=torch.bool))
    return tau.numpy().reshape(values.shape[:-1])


def spearman(at: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Spearman's rho of at (point,) with each row of values (..., point); NaN where a side is constant."""
    x, y = (rankdata(side, axis=-1) - (len(at) + 1) / 2 for side in (at, values))
    return ratio((x * y).sum(-1), np.sqrt((x**2).sum() * (y**2).sum(-1)))
