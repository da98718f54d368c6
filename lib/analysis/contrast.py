"""Is a quantity, or a score, higher here than there? Paired differences with intervals over instances and seeds."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from lib.analysis.statistics import CELLS, interval_over_texts_and_seeds, mean_over, resampled, weighted_mean
from lib.analysis.summarising import CLASSIFICATION, by_seed, scores
from lib.quantity import RUN_COLUMNS, unit_of


def difference(
    instances: pd.DataFrame,
    quantity: str,
    between: tuple[dict, dict],
    draws: int = 2000,
    seed: int = 0,
    paired: bool = False,
) -> pd.Series:
    """The mean of a quantity in the first group less that in the second, over the texts that both have.

    `between` selects two groups by their run columns: ({"encoder": "average"}, {"encoder": "bilstm"}); other columns
    must have one value, the same or not, within a group. The bootstrap draws instances, the same for both
    groups (the difference is paired); the seeds of each group add the variance of their mean. With one seed the
    interval knows nothing of other seeds: see `seeds`. `paired`: the seeds that both groups have are taken, in pairs,
    where those of one group belong to those of the other; a text counts in the seeds in which both have a value.

    Returns:
        first, second (means), difference, low, high (95%), word: "higher" where the interval lies above 0, "lower"
        below 0, else "undecided"; unit, n (texts), seeds (of the two groups).
    Raises:
        KeyError: no such column. ValueError: a group is empty or mixes configurations; no text is in both.
    """
    if quantity not in instances:
        raise KeyError(f"no column {quantity!r}; there are: {', '.join(map(str, instances.columns))}")
    tables = [table_of(instances, quantity, where) for where in between]
    tables = same_seeds(tables, between) if paired else tables
    shared = tables[0].dropna(how="all").index.intersection(tables[1].dropna(how="all").index)
    if shared.empty:
        raise ValueError(f"no text has a value of {quantity!r} in both {between[0]} and {between[1]}")
    tables = [table.loc[shared] for table in tables]
    if paired:
        tables = where_both(tables, quantity, between)
    tables = [table.to_numpy(dtype=np.float64) for table in tables]
    of_seeds = [mean_over(0, table) for table in tables]
    means = [float(mean_over(0, values)) for values in of_seeds]
    samples = [
        mean_over(1, weighted_mean(weights, tables[0])) - mean_over(1, weighted_mean(weights, tables[1]))
        for weights in resampled(len(tables[0]), draws, seed)
    ]
    return compared(quantity, means, np.concatenate(samples), of_seeds, len(tables[0]), paired)


def where_both(tables: list[pd.DataFrame], quantity: str, between: tuple[dict, dict]) -> list[pd.DataFrame]:
    """The tables (text, seed), each with the values alone for which the other has one too."""
    both = tables[0].notna() & tables[1].notna()
    both = both[both.any(axis=1)]
    if both.empty:
        raise ValueError(f"no text has a value of {quantity!r} in both {between[0]} and {between[1]} in one seed")
    return [table.loc[both.index].where(both) for table in tables]


def same_seeds(tables: list[pd.DataFrame], between: tuple[dict, dict]) -> list[pd.DataFrame]:
    """The columns (seeds) that both tables have; ValueError where there is none."""
    both = tables[0].columns.intersection(tables[1].columns)
    if both.empty:
        raise ValueError(f"no seed is in both {between[0]} and {between[1]}; the comparison is paired by seed")
    return [table[both] for table in tables]


def score_difference(
    instances: pd.DataFrame, score: str, between: tuple[dict, dict], draws: int = 2000, seed: int = 0
) -> pd.Series:
    """A score (f1, accuracy, auc) of the first group less that of the second, on the same texts and seeds, in pairs.

    As `difference`, and beside it p, of the paired randomisation test over texts: how often the difference is at least
    as large when chance swaps the two models' answers to each text (all seeds together). It asks about these very
    models; the interval also about other seeds.

    Raises:
        KeyError: unknown score. ValueError: a group is empty or mixes configurations; the texts are not the same.
    """
    if score not in CLASSIFICATION:
        raise KeyError(f"unknown score {score!r}; known: {', '.join(CLASSIFICATION)}")
    given = "probability" if score == "auc" else "prediction"
    tables = same_seeds([table_of(instances, given, where) for where in between], between)
    label = table_of(instances, "label", between[0])
    if not all(table.index.equals(label.index) for table in tables):
        raise ValueError(f"{between[0]} and {between[1]} were measured on other texts; the test is paired")
    labels, classes = label.to_numpy()[:, :1], max(2, int(instances["label"].max()) + 1)

    def of(weights: np.ndarray, table: np.ndarray) -> np.ndarray:
        """(draw, instance), (instance, seed) -> (draw, seed); instances may be there several times over."""
        again = np.tile(labels, (len(table) // len(labels), table.shape[1]))
        return scores(score, weights, again, table, classes)

    arrays = [table.to_numpy() for table in tables]
    of_seeds = [of(np.ones((1, len(label))), array)[0] for array in arrays]
    samples = [
        mean_over(1, of(weights, arrays[0])) - mean_over(1, of(weights, arrays[1]))
        for weights in resampled(len(label), draws, seed)
    ]
    means = [float(mean_over(0, values)) for values in of_seeds]
    found = compared(score, means, np.concatenate(samples), of_seeds, len(label), paired=True)
    found["p"] = swapped_p(lambda weights, table: mean_over(1, of(weights, table)), arrays, draws, seed)
    return found


def swapped_p(statistic: Callable, tables: list[np.ndarray], draws: int, seed: int) -> float:
    """The two-sided p of a paired randomisation test: tables (instance, seed), whose rows chance swaps.

    Args:
        statistic: (weights (draw, row), table (row, seed)) -> (draw,). A swapped pair is one whose weights are: both
            tables stand below each other, and each draw gives one row of each pair to either side.
    """
    random, both, texts = np.random.default_rng(seed), np.concatenate(tables), len(tables[0])
    beyond, step = 0, max(1, CELLS // (2 * texts))
    kept = np.repeat([[1.0, 0.0]], texts, axis=1)
    seen = abs(float((statistic(kept, both) - statistic(1 - kept, both))[0]))
    for start in range(0, draws, step):
        swap = random.random((min(step, draws - start), texts)) < 0.5
        weights = np.concatenate([~swap, swap], axis=1).astype(np.float64)
        beyond += int((abs(statistic(weights, both) - statistic(1 - weights, both)) >= seen - 1e-12).sum())
    return (beyond + 1) / (draws + 1)


def compared(
    quantity: str, means: list[float], samples: np.ndarray, of_seeds: list[np.ndarray], texts: int, paired: bool
) -> pd.Series:
    """What `difference` returns, from the two means, the bootstrap's differences and the seeds' values."""
    groups = [of_seeds[0] - of_seeds[1]] if paired else of_seeds
    low, high = interval_over_texts_and_seeds(means[0] - means[1], samples, *groups)
    return pd.Series(
        {
            "quantity": quantity,
            "first": means[0],
            "second": means[1],
            "difference": means[0] - means[1],
            "low": low,
            "high": high,
            "word": "higher" if low > 0 else "lower" if high < 0 else "undecided",
            "unit": unit_of(quantity),
            "n": texts,
            "seeds": tuple(len(values) for values in of_seeds),
        }
    )


def group_of(instances: pd.DataFrame, where: dict) -> pd.DataFrame:
    """The rows of the one configuration that `where` selects by its run columns."""
    group = instances
    for column, value in where.items():
        if column not in RUN_COLUMNS:
            raise KeyError(f"cannot select by {column!r}; known: {', '.join(RUN_COLUMNS)}")
        group = group[group[column] == value]
    kinds = group[list(RUN_COLUMNS)].drop_duplicates()
    if len(kinds) != 1:
        raise ValueError(f"{where} selects {len(kinds)} configurations; it must select exactly one")
    return group


def table_of(instances: pd.DataFrame, quantity: str, where: dict) -> pd.DataFrame:
    """(instance, seed) of the one configuration that `where` selects."""
    return by_seed(group_of(instances, where), quantity)
