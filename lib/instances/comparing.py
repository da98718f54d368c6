"""Is a quantity higher here than there? A paired difference with an interval over instances and seeds."""

import numpy as np
import pandas as pd

from lib.instances.statistics import interval_over_texts_and_seeds, mean_over, resampled, weighted_mean
from lib.instances.summarising import by_seed
from lib.quantities import RUN_COLUMNS, unit


def difference(
    instances: pd.DataFrame, quantity: str, between: tuple[dict, dict], draws: int = 2000, seed: int = 0
) -> pd.Series:
    """The mean of a quantity in the first group less that in the second, over the texts that both have.

    `between` selects two groups by their run columns: ({"encoder": "average"}, {"encoder": "bilstm"}); other columns
    must have one value, the same or not, within a group. The bootstrap draws instances, the same for both
    groups (the difference is paired); the seeds of each group add the variance of their mean. With one seed the
    interval knows nothing of other seeds: see `seeds`.

    Returns:
        first, second (means), difference, low, high (95%), word: "higher" where the interval lies above 0, "lower"
        below 0, else "undecided"; unit, n (texts), seeds (of the two groups).
    Raises:
        KeyError: no such column. ValueError: a group is empty or mixes configurations; no text is in both.
    """
    if quantity not in instances:
        raise KeyError(f"no column {quantity!r}; there are: {', '.join(map(str, instances.columns))}")
    tables = [table_of(instances, quantity, where) for where in between]
    shared = tables[0].dropna(how="all").index.intersection(tables[1].dropna(how="all").index)
    if shared.empty:
        raise ValueError(f"no text has a value of {quantity!r} in both {between[0]} and {between[1]}")
    tables = [table.loc[shared].to_numpy(dtype=np.float64) for table in tables]
    means = [float(mean_over(0, mean_over(0, table))) for table in tables]
    samples = [
        mean_over(1, weighted_mean(weights, tables[0])) - mean_over(1, weighted_mean(weights, tables[1]))
        for weights in resampled(len(shared), draws, seed)
    ]
    of_seeds = [mean_over(0, table) for table in tables]
    low, high = interval_over_texts_and_seeds(means[0] - means[1], np.concatenate(samples), *of_seeds)
    return pd.Series(
        {
            "quantity": quantity,
            "first": means[0],
            "second": means[1],
            "difference": means[0] - means[1],
            "low": low,
            "high": high,
            "word": "higher" if low > 0 else "lower" if high < 0 else "undecided",
            "unit": unit(quantity),
            "n": len(shared),
            "seeds": tuple(table.shape[1] for table in tables),
        }
    )


def table_of(instances: pd.DataFrame, quantity: str, where: dict) -> pd.DataFrame:
    """(instance, seed) of the one configuration that `where` selects."""
    group = instances
    for column, value in where.items():
        if column not in RUN_COLUMNS:
            raise KeyError(f"cannot select by {column!r}; known: {', '.join(RUN_COLUMNS)}")
        group = group[group[column] == value]
    kinds = group[list(RUN_COLUMNS)].drop_duplicates()
    if len(kinds) != 1:
        raise ValueError(f"{where} selects {len(kinds)} configurations; it must select exactly one")
    return by_seed(group, quantity)
