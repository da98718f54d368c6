"""What a group of instances says: means and classification scores with intervals over instances and over seeds."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from lib.analysis.measuring import quantity_columns, undefined
from lib.analysis.statistics import (
    bootstrap,
    interval,
    interval_over_texts_and_seeds,
    mean_over,
    t_interval,
    weighted_auc,
    weighted_f1,
    weighted_mean,
)
from lib.quantity import RUN_COLUMNS, bounds_of, unit_of

CLASSIFICATION = ("accuracy", "f1", "auc")


def summarise(
    instances: pd.DataFrame, quantities: Iterable[str] | None = None, draws: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """One row per configuration and quantity: its mean over the instances, with intervals.

    value is the mean over seeds of each run's mean over its instances; [low, high] is its 95% interval over
    instances and seeds together (of one seed: over instances alone); [low_texts, high_texts] is the percentile
    bootstrap over instances, the trained models as they are; [low_seeds, high_seeds] is Student's 95% interval over
    the seeds' means (NaN for one seed); sd_instances the sd over instances within a run (pooled over the seeds), as the
    papers print it; sd_seeds the sd of the seeds' means. An undefined value is counted (`undefined`, over all seeds),
    never averaged in; n is the number of instances with a value in at least one seed; left_out counts the texts that a
    measure's bound left out.

    Args:
        quantities: columns; by default every measured number but the p-values.
    Raises:
        KeyError: no such column, or nobody declared its unit. ValueError: an instance stands twice in one run.
    """
    known = quantity_columns(instances)
    names = [name for name in known if unit_of(name) != "p-value"] if quantities is None else list(quantities)
    for name in names:
        if name not in known:
            raise KeyError(f"no measured number {name!r}; there are: {', '.join(known) or 'none'}")
    rows = []
    for key, group in configurations(instances):
        if not names:
            break
        tables = [by_seed(group, name).to_numpy() for name in names]
        stacked = np.stack(tables, axis=1)  # (instance, quantity, seed)
        of_draws = bootstrap(lambda weights, x=stacked: weighted_mean(weights, x), len(stacked), draws, seed)
        samples = mean_over(2, of_draws)
        for column, (name, table) in enumerate(zip(names, tables, strict=True)):
            missing, of_seeds = int(undefined(group, name).sum()), mean_over(0, table)
            value = float(mean_over(0, of_seeds))
            rows.append(
                key
                | {"quantity": name, "value": value, "unit": unit_of(name)}
                | spread(value, samples[:, column], of_seeds, name, table)
                | {"n": int((~np.isnan(table)).any(axis=1).sum()), "seeds": table.shape[1], "undefined": missing}
                | {"left_out": int(group[name].isna().sum()) - missing}
            )
    return pd.DataFrame(rows, columns=SUMMARY)


SUMMARY = [
    *RUN_COLUMNS,
    *("quantity", "value", "unit", "low", "high", "sd_instances", "sd_seeds"),
    *("low_texts", "high_texts", "low_seeds", "high_seeds"),
    *("n", "seeds", "undefined", "left_out"),
]


def spread(
    value: float, samples: np.ndarray, seed_values: np.ndarray, name: str, table: np.ndarray | None = None
) -> dict[str, float]:
    """Intervals and sds from bootstrap samples (draw,), values (seed,) and, for a mean, its table (instance, seed).

    An interval ends where the quantity's values do.
    """
    low, high = interval_over_texts_and_seeds(value, samples, seed_values)
    low_texts, high_texts = interval(samples)
    low_seeds, high_seeds = t_interval(seed_values)
    low, high, low_seeds, high_seeds = np.clip((low, high, low_seeds, high_seeds), *bounds_of(name))
    return {
        "low": float(low),
        "high": float(high),
        "low_texts": float(low_texts),
        "high_texts": float(high_texts),
        "sd_instances": np.nan if table is None else pooled_sd(table),
        "sd_seeds": sd(seed_values),
        "low_seeds": float(low_seeds),
        "high_seeds": float(high_seeds),
    }


def sd(values: np.ndarray) -> float:
    """The sample sd of what is defined; NaN for fewer than two values."""
    values = values[~np.isnan(values)]
    return float(values.std(ddof=1)) if len(values) > 1 else np.nan


def pooled_sd(table: np.ndarray) -> float:
    """The sd over instances within a seed, pooled: the root of the mean variance of (instance, seed)'s columns."""
    return float(np.sqrt(mean_over(0, np.array([sd(column) for column in table.T]) ** 2)))


def configurations(instances: pd.DataFrame) -> Iterator[tuple[dict, pd.DataFrame]]:
    """(run columns, rows) of each configuration, in the order of the table."""
    for key, group in instances.groupby(list(RUN_COLUMNS), sort=False, dropna=False):
        yield dict(zip(RUN_COLUMNS, key, strict=True)), group


def each(instances: pd.DataFrame, by: Sequence[str], statistic: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """`statistic` of each group of rows with the same values in the columns `by`, which its rows then carry too.

    For runs that differ in what RUN_COLUMNS do not name, such as an adversary's lambda; missing values are one group.
    """
    groups = instances.groupby(list(by), sort=False, dropna=False)
    found = [statistic(rows).assign(**dict(zip(by, key, strict=True))) for key, rows in groups]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=list(by))


def by_seed(group: pd.DataFrame, column: str) -> pd.DataFrame:
    """(instance, seed) float: a column of one configuration, its instances paired; NaN where there is no value."""
    twice = group.duplicated(["seed", "instance"])
    if twice.any():
        row = group[twice].iloc[0]
        raise ValueError(
            f"instance {row['instance']} of seed {row['seed']} stands twice in the runs of "
            f"{'/'.join(str(row[name]) for name in RUN_COLUMNS)}; each run may be measured once"
        )
    return group.pivot(index="instance", columns="seed", values=column).astype(np.float64)


def classification(
    instances: pd.DataFrame, quantities: Iterable[str] = CLASSIFICATION, draws: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """Accuracy, F1 and AUC of each configuration, in the columns of `summarise`.

    F1 is the positive class' for two classes, the macro average for more; AUC is of two classes only. Each score is
    the mean over the seeds; the bootstrap draws instances and computes the score of each sample anew.

    Raises:
        KeyError: unknown score. ValueError: the seeds of a configuration were measured on different instances.
    """
    quantities = list(quantities)
    for name in quantities:
        if name not in CLASSIFICATION:
            raise KeyError(f"unknown score {name!r}; known: {', '.join(CLASSIFICATION)}")
    rows = []
    for key, group in configurations(instances):
        columns = ("label", "prediction", "probability")
        label, prediction, probability = (by_seed(group, name).to_numpy() for name in columns)
        if np.isnan(label).any():
            raise ValueError(f"the seeds of {'/'.join(map(str, key.values()))} were measured on different instances")
        classes = max(2, int(max(label.max(), prediction.max())) + 1)
        for name in quantities:
            arrays = (label, probability if name == "auc" else prediction)
            by_draw = bootstrap(lambda w, n=name, a=arrays, c=classes: scores(n, w, *a, c), len(label), draws, seed)
            ours = scores(name, np.ones((1, len(label))), *arrays, classes)[0]  # (seed,)
            correct = (label == prediction).astype(np.float64) if name == "accuracy" else None
            rows.append(
                key
                | {"quantity": name, "value": float(mean_over(0, ours)), "unit": "fraction"}
                | spread(mean_over(0, ours), mean_over(1, by_draw), ours, name, correct)
                | {"n": len(label), "seeds": len(ours), "undefined": int(np.isnan(ours).sum()), "left_out": 0}
            )
    return pd.DataFrame(rows, columns=SUMMARY)


def scores(name: str, weights: np.ndarray, label: np.ndarray, given: np.ndarray, classes: int) -> np.ndarray:
    """One score of every seed: weights (draw, instance), label and given (instance, seed) -> (draw, seed)."""
    if name == "accuracy":
        return weighted_mean(weights, (label == given).astype(np.float64))
    if name == "auc" and classes > 2:
        return np.full((len(weights), label.shape[1]), np.nan)
    pairs = zip(label.T, given.T, strict=True)
    if name == "auc":
        return np.stack([weighted_auc(weights, y, score) for y, score in pairs], axis=1)
    return np.stack([weighted_f1(weights, y, predicted, classes) for y, predicted in pairs], axis=1)
