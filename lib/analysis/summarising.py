"""Means and scores of each configuration, with 95% intervals over texts and over seeds; seed by seed, and back."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import inf, nan

import numpy as np
import pandas as pd
from scipy import special

from lib.analysis.measuring import quantity_columns, undefined
from lib.analysis.statistics import (
    FEW,
    LEVEL,
    Statistic,
    bootstrap,
    interval,
    interval_over_texts_and_seeds,
    mean_over,
    standard_error,
    weighted_auc,
    weighted_balanced_accuracy,
    weighted_f1,
    weighted_mean,
)
from lib.quantity import CHANGE_BOUNDS, RUN_COLUMNS, bounds_of, declare, title_of, unit_of

CLASSIFICATION = ("accuracy", "f1", "auc")
DRAWS = 1000  # of the bootstrap
DROPS = ("f1_drop_uniform", "f1_drop_permuted")
ORDERS = 10  # random orders that AUC is taken of: each takes a sort of the texts


def weighted_auc_of_each(weights: np.ndarray, label: np.ndarray, scores: np.ndarray, classes: int) -> np.ndarray:
    """`weighted_auc` of (instance, ...) scores: (draw, ...); NaN of more than two classes, and where one is missing."""
    each = scores.reshape(len(label), -1).T
    none = np.full(len(weights), nan)
    found = [none if classes > 2 or np.isnan(one).any() else weighted_auc(weights, label, one) for one in each]
    return np.stack(found, axis=1).reshape(len(weights), *scores.shape[1:])


OF_FRAGILITY = {"f1": weighted_f1, "balanced_accuracy": weighted_balanced_accuracy, "auc": weighted_auc_of_each}
UNDER = {
    "": "{}",
    "_uniform": "{} with uniform attention",
    "_permuted": "{} with permuted attention",
    "_drop_uniform": "change of {} with uniform attention",
    "_drop_permuted": "change of {} with permuted attention",
}
FRAGILITY = tuple(
    declare(score + under, "fraction", words.format(title_of(score)), CHANGE_BOUNDS if "drop" in under else None)
    for score, (under, words) in product(OF_FRAGILITY, UNDER.items())
)
SUMMARY = [
    *RUN_COLUMNS,
    *("quantity", "value", "unit", "low", "high", "sd_instances", "sd_seeds"),
    *("low_texts", "high_texts", "n", "seeds", "undefined", "left_out", "se_texts", "of_seeds"),
]
OVER = ("low", "high", "sd_seeds", "low_texts", "high_texts", "seeds")  # of all seeds
OF_RUNS = ("seed", "value", "se_texts", "sd_instances", "n", "undefined", "left_out")  # of a run, or of those together
AGAIN = {"se_texts": "mean"} | dict.fromkeys(("n", "undefined", "left_out"), "max")  # of several runs together
OF_CONTRASTS = ("first", "second", "difference", "word", "se", "p")  # of the runs together, where value is a difference


def summarise(instances: pd.DataFrame, quantities: Iterable[str] | None = None) -> pd.DataFrame:
    """One row per configuration and quantity: its mean over the instances, with intervals.

    value is the mean over seeds of each run's mean over its instances; [low, high] is its 95% interval over
    instances and seeds together (of one seed: over instances alone); [low_texts, high_texts] is the percentile
    bootstrap over instances, the trained models as they are; sd_instances the sd over instances within a run (pooled
    over the seeds), as the papers print it; sd_seeds the sd of the seeds' means. An undefined value is counted
    (`undefined`, over all seeds), never averaged in; n is the number of instances with a value in at least one seed;
    left_out counts the texts beyond a quantity's `max_tokens`; se_texts is the value's standard error over texts, and
    of_seeds the value in each seed.

    Args:
        quantities: columns; by default every measured number but the p-values.
    Raises:
        KeyError: no such column, or one without a declared unit. ValueError: a run has an instance twice.
    """
    known = quantity_columns(instances)
    names = [name for name in known if unit_of(name) != "p-value"] if quantities is None else list(quantities)
    for name in names:
        if name not in known:
            raise KeyError(f"no measured number {name!r}; there are: {', '.join(known) or 'none'}")
    rows = []
    for key, group in configurations(instances) if names else ():
        table = np.stack([by_seed(group, name).to_numpy() for name in names], axis=1)  # (instance, quantity, seed)
        found = estimates(names, weighted_mean, table, seeds_of(group))
        for name, row, values in zip(names, found, table.swapaxes(0, 1), strict=True):
            missing = int(undefined(group, name).sum())
            row |= {"sd_instances": pooled_sd(values), "n": int((~np.isnan(values)).any(axis=1).sum())}
            rows.append(key | row | {"undefined": missing, "left_out": int(group[name].isna().sum()) - missing})
    return pd.DataFrame(rows, columns=SUMMARY)


def classification(instances: pd.DataFrame, quantities: Sequence[str] = CLASSIFICATION) -> pd.DataFrame:
    """Accuracy, F1 and AUC of each configuration, in the columns of `summarise`.

    F1 is the positive class' for two classes, the macro average for more; AUC is of two classes only. Each score is
    the mean over the seeds; the bootstrap draws instances and computes the score of each sample anew.

    Raises:
        KeyError: unknown score. ValueError: the seeds of a configuration were measured on different instances.
    """
    statistic, rows = scores_of(quantities), []
    for key, group in configurations(instances):
        columns = ("label", "prediction", "probability")
        table = np.stack([by_seed(group, name).to_numpy() for name in columns], axis=2)  # (instance, seed, column)
        if np.isnan(table[..., 0]).any():
            raise ValueError(f"the seeds of {'/'.join(map(str, key.values()))} were measured on different instances")
        found = estimates(quantities, statistic, table, seeds_of(group))
        for name, row in zip(quantities, found, strict=True):
            if name == "accuracy":
                row["sd_instances"] = pooled_sd((table[..., 0] == table[..., 1]).astype(np.float64))
            rows.append(key | row)
    return pd.DataFrame(rows, columns=SUMMARY)


def fragility(instances: pd.DataFrame, quantities: Sequence[str] = ("f1", *DROPS)) -> pd.DataFrame:
    """F1 with the trained attention, and with other attention (Tutek & Snajder 2020, section 4.1).

    In the columns of `summarise`. f1_uniform and f1_permuted are F1 under equal weights and under random orders, the
    mean of each order's own F1; the drops are these less f1, so below 0 where the model loses, as the paper prints
    them. Intervals pair texts and seeds. The same of balanced accuracy, which a model that comes to predict one class
    alone does not change as F1 does, and of AUC, which has no threshold, of the first ORDERS orders.

    Args:
        instances: measured with lib.interventions.substituted().
        quantities: some of FRAGILITY.
    """
    statistic = fragility_of(quantities)
    rows = [
        key | row
        for key, group in configurations(instances)
        for row in estimates(quantities, statistic, answers(group), seeds_of(group))
    ]
    return pd.DataFrame(rows, columns=SUMMARY)


def estimates(
    names: Sequence[str], statistic: Statistic, table: np.ndarray, seeds: Sequence[int]
) -> list[dict[str, object]]:
    """Of each quantity of a statistic what SUMMARY has: its value over the seeds, unit, intervals, sds and counts.

    An interval ends where the quantity's values do.

    Args:
        seeds: of the table's runs, in its order.
    """
    of_seeds = statistic(np.ones((1, len(table))), table)[0]  # (quantity, seed)
    samples = mean_over(2, bootstrap(lambda weights: statistic(weights, table), len(table), DRAWS))
    rows = []
    for name, values, drawn in zip(names, of_seeds, samples.T, strict=True):
        value = float(mean_over(0, values))
        low, high = np.clip(interval_over_texts_and_seeds(value, drawn, values), *bounds_of(name))
        low_texts, high_texts = map(float, interval(drawn))
        row = {"quantity": name, "value": value, "unit": unit_of(name), "low": float(low), "high": float(high)}
        row |= {"low_texts": low_texts, "high_texts": high_texts, "se_texts": standard_error(drawn)}
        row |= {"of_seeds": dict(zip(seeds, map(float, values), strict=True))}
        row |= {"sd_instances": np.nan, "sd_seeds": float(pd.Series(values).std())}
        row |= {"n": len(table), "seeds": len(values)}
        rows.append(row | {"undefined": int(np.isnan(values).sum()), "left_out": 0})
    return rows


def scores_of(names: Sequence[str]) -> Statistic:
    """Some of CLASSIFICATION as a statistic of a table (instance, seed, (label, prediction, probability)).

    KeyError for others.
    """
    refuse_unknown(names, CLASSIFICATION, "score")

    def statistic(weights: np.ndarray, table: np.ndarray) -> np.ndarray:
        label, predicted = table[..., 0], table[..., 1]
        classes = max(2, int(np.nanmax(table[..., :2])) + 1)

        def score(name: str) -> np.ndarray:
            if name == "accuracy":
                return weighted_mean(weights, (label == predicted).astype(np.float64))
            if name == "f1":
                pairs = zip(label.T, predicted.T, strict=True)
                return np.stack([weighted_f1(weights, *pair, classes) for pair in pairs], axis=1)
            if classes > 2:
                return np.full((len(weights), label.shape[1]), np.nan)
            pairs = zip(label.T, table[..., 2].T, strict=True)
            return np.stack([weighted_auc(weights, *pair) for pair in pairs], axis=1)

        return np.stack([score(name) for name in names], axis=1)

    return statistic


def fragility_of(names: Sequence[str]) -> Statistic:
    """Some of FRAGILITY as a statistic of a table of `answers`; KeyError for others."""
    refuse_unknown(names, FRAGILITY, "quantity")
    wanted = {score: of for score, of in OF_FRAGILITY.items() if any(name.startswith(score) for name in names)}

    def statistic(weights: np.ndarray, table: np.ndarray) -> np.ndarray:
        answered, scores = table[..., : -2 - ORDERS], table[..., -2 - ORDERS :]
        label, predicted = answered[:, 0, 0], answered[..., 1:]
        classes, found = max(2, int(answered.max()) + 1), {}
        for score, of in wanted.items():
            values = of(weights, label, scores if score == "auc" else predicted, classes)  # (draw, seed, attention)
            own, under = values[..., 0], {"uniform": values[..., 1], "permuted": mean_over(2, values[..., 2:])}
            found |= {score: own} | {f"{score}_{name}": value for name, value in under.items()}
            found |= {f"{score}_drop_{name}": value - own for name, value in under.items()}
        return np.stack([found[name] for name in names], axis=1)

    return statistic


def answers(group: pd.DataFrame) -> np.ndarray:
    """(instance, seed, answer) of one configuration.

    The answers are the label; the prediction, with equal weights and with each random order; and the probability of the
    second class of two, with equal weights and with the first ORDERS orders, NaN where there is none.
    """
    missing = [name for name in ("under_uniform", "under_permuted") if name not in group]
    if missing:
        raise KeyError(f"no column {missing[0]!r}: measure with lib.interventions.substituted()")
    single = [by_seed(group, name).to_numpy() for name in ("label", "prediction", "under_uniform")]
    scores = np.full((*single[0].shape, 2 + ORDERS), nan)
    if "under_permuted_probability" in group:
        scores[..., :2] = np.stack([by_seed(group, f"{one}probability") for one in ("", "under_uniform_")], axis=2)
        orders = in_each_order(group, "under_permuted_probability")[..., :ORDERS]
        scores[..., 2 : 2 + orders.shape[2]] = orders
    return np.concatenate([np.stack(single, axis=2), in_each_order(group, "under_permuted"), scores], axis=2)


def in_each_order(group: pd.DataFrame, column: str) -> np.ndarray:
    """(instance, seed, order) of a column of arrays of one configuration."""
    table = group.pivot(index="instance", columns="seed", values=column)
    return np.stack([np.stack(table[seed].to_list()) for seed in table], axis=1)


def seeds_of(group: pd.DataFrame) -> list:
    """The seeds of one configuration, in the order of `by_seed`."""
    return sorted(group["seed"].unique().tolist())


def pooled_sd(table: np.ndarray) -> float:
    """The sd over instances within a seed, pooled: the root of the mean variance of (instance, seed)'s columns."""
    return float(np.sqrt(pd.DataFrame(table).var().mean()))


def refuse_unknown(names: Iterable[str], known: Sequence[str], what: str) -> None:
    """KeyError for a name that is not known."""
    for name in names:
        if name not in known:
            raise KeyError(f"unknown {what} {name!r}; known: {', '.join(known)}")


def configurations(instances: pd.DataFrame) -> Iterator[tuple[dict, pd.DataFrame]]:
    """(run columns, rows) of each configuration, in the order of the table."""
    for key, group in instances.groupby(list(RUN_COLUMNS), sort=False, dropna=False):
        yield dict(zip(RUN_COLUMNS, key, strict=True)), group


def per_group(
    instances: pd.DataFrame, by: Sequence[str], statistic: Callable[[pd.DataFrame], pd.DataFrame]
) -> pd.DataFrame:
    """`statistic` of each group of rows with the same values in the columns `by`, which its rows then have too.

    For runs that differ in what RUN_COLUMNS do not name, such as an adversary's lambda; missing values are one group.
    """
    groups = instances.groupby(list(by), sort=False, dropna=False)
    found = [statistic(rows).assign(**dict(zip(by, key, strict=True))) for key, rows in groups]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=list(by))


def rows_where(rows: pd.DataFrame, where: Mapping[str, object]) -> pd.DataFrame:
    """The rows whose columns have these values."""
    return rows[(rows[list(where)] == pd.Series(where, dtype=object)).all(axis=1)]


def by_seed(group: pd.DataFrame, column: str) -> pd.DataFrame:
    """(instance, seed) float: a column of one configuration, its instances paired; NaN where there is no value."""
    if (again := group.duplicated(["instance", "seed"])).any():
        instance, seed = group.loc[again, ["instance", "seed"]].iloc[0]
        raise ValueError(f"instance {instance} of seed {seed} occurs twice; each run may be measured once")
    return group.pivot(index="instance", columns="seed", values=column).astype(np.float64)


def by_seed_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each seed of the rows that have `of_seeds`; all others, such as those of `contrast`, as they are.

    Args:
        rows: of `summarise` and the like; others may lie between them.
    Returns:
        the columns of rows but `of_seeds`. Of a row for one seed `per` is "seed" and value is that seed's;
        se_texts is still that of the mean over the seeds together, and what follows from all seeds is missing.
    """
    rows = rows.reset_index(drop=True)
    if "of_seeds" not in rows or "value" not in rows:
        return rows
    many = rows["of_seeds"].map(lambda given: isinstance(given, dict) and bool(given)) & rows["value"].notna()
    pairs = [pair for given in rows.loc[many, "of_seeds"] for pair in given.items()]
    single = rows.loc[rows.index[many].repeat(rows.loc[many, "of_seeds"].map(len))]
    single = single.assign(seed=[seed for seed, _ in pairs], value=[value for _, value in pairs], per="seed")
    single = single.drop(columns=list(OVER), errors="ignore")
    both = pd.concat([single, rows[~many]]).sort_index(kind="stable").reset_index(drop=True)
    return both.drop(columns="of_seeds")


def over_seeds(rows: pd.DataFrame, about: Iterable[str] = ()) -> pd.DataFrame:
    """The rows of `by_seed_rows` with those of single seeds put together again, in the columns of `summarise`.

    Where runs of several studies are together, se_texts is the mean of theirs: at least that of all their seeds.

    Args:
        about: columns that say where a row comes from; rows that differ in them alone are of one quantity.
    """
    if "per" not in rows:
        return rows
    single = rows["per"].eq("seed")
    of_one = rows[single].dropna(axis=1, how="all")
    by = [name for name in of_one if name not in (*OVER, *OF_RUNS, *OF_CONTRASTS, *about, "per")]
    groups = of_one.drop_duplicates([*by, "seed"]).groupby(by, sort=False, dropna=False)
    found = groups["value"].agg(value="mean", sd_seeds="std", seeds="size", defined="count").reset_index()
    found["value"] = found["value"].where(found.pop("defined") == found["seeds"])
    columns = {name: how for name, how in AGAIN.items() if name in of_one}
    found[list(columns)] = groups.agg(columns).to_numpy(float) if columns else ()
    if "sd_instances" in of_one:
        found["sd_instances"] = np.sqrt(groups["sd_instances"].agg(lambda some: (some**2).mean()).to_numpy(float))
    return pd.concat([with_intervals(found), rows[~single].drop(columns="per")], ignore_index=True)


def with_intervals(found: pd.DataFrame) -> pd.DataFrame:
    """With the intervals that `summarise` gives: over texts and seeds (`interval_over_texts_and_seeds`), over
    texts alone; they end where the quantity's values do, if that is known here.
    """
    seeds = found["seeds"].to_numpy()
    over_texts = found.get("se_texts", pd.Series(nan, found.index)).to_numpy() * special.ndtri((1 + LEVEL) / 2)
    over_seeds = found["sd_seeds"].to_numpy() / np.sqrt(seeds) * special.stdtrit(seeds - 1, (1 + LEVEL) / 2)
    parts = np.stack([over_texts, np.where(seeds >= FEW, over_seeds, nan)])
    both = np.where(np.isnan(parts).all(axis=0), nan, np.linalg.norm(np.nan_to_num(parts), axis=0))
    least, most = np.transpose([limits(name) for name in found["quantity"]]) if len(found) else (nan, nan)
    for of, half in {"": both, "_texts": over_texts}.items():
        found[f"low{of}"] = np.clip(found["value"] - half, least, most)
        found[f"high{of}"] = np.clip(found["value"] + half, least, most)
    return found


def limits(name: str) -> tuple[float, float]:
    """The bounds of a quantity, infinite where they are not known here."""
    try:
        return bounds_of(name)
    except KeyError:
        return -inf, inf
