"""From a table with a row for each text to a row for each quantity: means, scores and differences with intervals."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf, nan

import numpy as np
import pandas as pd

from lib.analysis.measuring import quantity_columns, undefined
from lib.analysis.statistics import (
    Effect,
    Statistic,
    compare,
    estimate,
    interval,
    mean_over,
    quantile,
    swap_test,
    weighted_auc,
    weighted_f1,
    weighted_mean,
)
from lib.quantity import RUN_COLUMNS, bounds_of, unit_of

DRAWS = 1000  # of the bootstrap
DIFFERENCE_DRAWS = 2000  # of that of a difference, and of the randomisation test
ANSWER = ("label", "prediction", "probability")
CLASSIFICATION = ("accuracy", "f1", "auc")
DROPS = ("f1_drop_uniform", "f1_drop_permuted")
FRAGILITY = ("f1", "f1_uniform", "f1_permuted", *DROPS)
SUMMARY = [
    *RUN_COLUMNS,
    *("quantity", "value", "unit", "low", "high", "sd_instances", "sd_seeds"),
    *("low_texts", "high_texts", "n", "seeds", "undefined", "left_out", "se_texts", "of_seeds"),
]
Between = tuple[Mapping, Mapping]  # the run columns that select each of two models


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
        table, seeds = stack_columns(group, names).swapaxes(1, 2), seeds_of(group)  # (instance, quantity, seed)
        effects = estimate(names, weighted_mean, table, seeds, DRAWS)
        for effect, values in zip(effects, table.swapaxes(0, 1), strict=True):
            missing = int(undefined(group, effect.quantity).sum())
            row = summary_row(effect) | {"sd_instances": pooled_sd(values), "undefined": missing}
            row |= {"n": int((~np.isnan(values)).any(axis=1).sum())}
            rows.append(key | row | {"left_out": int(group[effect.quantity].isna().sum()) - missing})
    return pd.DataFrame(rows, columns=SUMMARY)


def classification(instances: pd.DataFrame, quantities: Sequence[str] = CLASSIFICATION) -> pd.DataFrame:
    """Accuracy, F1 and AUC of each configuration, in the columns of `summarise`.

    F1 is the positive class' for two classes, the macro average for more; AUC is of two classes only. Each score is
    the mean over the seeds; the bootstrap draws instances and computes the score of each sample anew.

    Raises:
        KeyError: unknown score. ValueError: the seeds of a configuration were measured on different instances.
    """
    statistic, rows = score_statistic(quantities), []
    for key, group in configurations(instances):
        table = answer_table(group)
        if np.isnan(table[..., 0]).any():
            raise ValueError(f"the seeds of {'/'.join(map(str, key.values()))} were measured on different instances")
        for effect in estimate(quantities, statistic, table, seeds_of(group), DRAWS):
            row = summary_row(effect)
            if effect.quantity == "accuracy":
                row["sd_instances"] = pooled_sd((table[..., 0] == table[..., 1]).astype(np.float64))
            rows.append(key | row)
    return pd.DataFrame(rows, columns=SUMMARY)


def fragility(instances: pd.DataFrame, quantities: Sequence[str] = ("f1", *DROPS)) -> pd.DataFrame:
    """F1 with the trained attention, and with other attention (Tutek & Snajder 2020, section 4.1).

    In the columns of `summarise`. f1_uniform and f1_permuted are F1 under equal weights and under random orders, the
    mean of each order's own F1; the drops are these less f1, so below 0 where the model loses, as the paper prints
    them. Intervals pair texts and seeds.

    Args:
        instances: measured with lib.interventions.substituted().
        quantities: some of FRAGILITY.
    """
    statistic = fragility_statistic(quantities)
    rows = [
        key | summary_row(effect)
        for key, group in configurations(instances)
        for effect in estimate(quantities, statistic, substituted_table(group), seeds_of(group), DRAWS)
    ]
    return pd.DataFrame(rows, columns=SUMMARY)


def summary_row(effect: Effect) -> dict[str, object]:
    """What SUMMARY has of an effect; its intervals end where the quantity's values do."""
    bounds, values = limits(effect.quantity), list(effect.by_run.values())
    low, high, low_texts, high_texts = map(float, (*np.clip(effect.interval(), *bounds), *effect.over_texts))
    row = {"quantity": effect.quantity, "value": effect.value, "unit": unit_of(effect.quantity)}
    row |= {"low": low, "high": high, "low_texts": low_texts, "high_texts": high_texts, "se_texts": effect.se}
    row |= {"of_seeds": dict(effect.by_run), "sd_instances": nan, "sd_seeds": float(pd.Series(values).std())}
    row |= {"n": effect.n, "seeds": len(values), "undefined": int(np.isnan(values).sum()), "left_out": 0}
    return row


def limits(name: str) -> tuple[float, float]:
    """The bounds of a quantity, infinite where they are not known here."""
    try:
        return bounds_of(name)
    except KeyError:
        return -inf, inf


# --- one configuration as an array, and the scores of it


def seed_table(group: pd.DataFrame, column: str) -> pd.DataFrame:
    """(instance, seed) float: a column of one configuration, its instances paired; NaN where there is no value."""
    if (again := group.duplicated(["instance", "seed"])).any():
        instance, seed = group.loc[again, ["instance", "seed"]].iloc[0]
        raise ValueError(f"instance {instance} of seed {seed} occurs twice; each run may be measured once")
    return group.pivot(index="instance", columns="seed", values=column).astype(np.float64)


def stack_columns(group: pd.DataFrame, columns: Iterable[str]) -> np.ndarray:
    """(instance, seed, column) of some columns of one configuration."""
    return np.stack([seed_table(group, name).to_numpy() for name in columns], axis=2)


def answer_table(group: pd.DataFrame) -> np.ndarray:
    """(instance, seed, (label, prediction, probability)) of one configuration."""
    return stack_columns(group, ANSWER)


def substituted_table(group: pd.DataFrame) -> np.ndarray:
    """(instance, seed, answer) of one configuration.

    The answers are the label, and the prediction, that with equal weights, and those with each random order.
    """
    missing = [name for name in ("under_uniform", "under_permuted") if name not in group]
    if missing:
        raise KeyError(f"no column {missing[0]!r}: measure with lib.interventions.substituted()")
    single = stack_columns(group, ("label", "prediction", "under_uniform"))
    table = group.pivot(index="instance", columns="seed", values="under_permuted")
    orders = np.stack([np.stack(table[seed].to_list()) for seed in table], axis=1)
    return np.concatenate([single, orders], axis=2)


def seeds_of(group: pd.DataFrame) -> list:
    """The seeds of one configuration, in the order of `seed_table`."""
    return sorted(group["seed"].unique().tolist())


def score_statistic(names: Sequence[str]) -> Statistic:
    """Some of CLASSIFICATION as a statistic of an `answer_table`; KeyError for others."""
    refuse_unknown(names, CLASSIFICATION, "score")

    def statistic(weights: np.ndarray, table: np.ndarray) -> np.ndarray:
        label, prediction, probability = np.moveaxis(table, -1, 0)
        classes = max(2, int(np.nanmax(table[..., :2])) + 1)
        scores = {
            "accuracy": lambda: weighted_mean(weights, (label == prediction).astype(np.float64)),
            "f1": lambda: weighted_f1(weights, label[:, 0], prediction, classes),
            "auc": lambda: weighted_auc(weights, label[:, 0], probability, classes),
        }
        return np.stack([scores[name]() for name in names], axis=1)

    return statistic


def fragility_statistic(names: Sequence[str]) -> Statistic:
    """Some of FRAGILITY as a statistic of a `substituted_table`; KeyError for others."""
    refuse_unknown(names, FRAGILITY, "quantity")

    def statistic(weights: np.ndarray, table: np.ndarray) -> np.ndarray:
        scores = weighted_f1(weights, table[:, 0, 0], table[..., 1:], max(2, int(table.max()) + 1))
        own, uniform, permuted = scores[..., 0], scores[..., 1], mean_over(2, scores[..., 2:])  # (draw, seed)
        values = dict(zip(FRAGILITY, (own, uniform, permuted, uniform - own, permuted - own), strict=True))
        return np.stack([values[name] for name in names], axis=1)

    return statistic


def pooled_sd(table: np.ndarray) -> float:
    """The sd over instances within a seed, pooled: the root of the mean variance of (instance, seed)'s columns."""
    return float(np.sqrt(pd.DataFrame(table).var().mean()))


def refuse_unknown(names: Iterable[str], known: Sequence[str], what: str) -> None:
    """KeyError for a name that is not known."""
    for name in names:
        if name not in known:
            raise KeyError(f"unknown {what} {name!r}; known: {', '.join(known)}")


# --- groups of rows


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
    tables = [statistic(rows).assign(**dict(zip(by, key, strict=True))) for key, rows in groups]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(by))


def summarise_by(instances: pd.DataFrame, by: Sequence[str], quantities: Sequence[str]) -> pd.DataFrame:
    """`summarise` of each group of rows with the same values in the columns `by`, which its rows then have too."""
    return per_group(instances, by, lambda rows: summarise(rows, quantities))


def rows_where(rows: pd.DataFrame, where: Mapping[str, object]) -> pd.DataFrame:
    """The rows whose columns have these values."""
    return rows[(rows[list(where)] == pd.Series(where, dtype=object)).all(axis=1)]


def with_class_names(rows: pd.DataFrame, classes: Sequence[str], most: int = 6) -> tuple[pd.DataFrame, list[str]]:
    """The rows with the name of the predicted class in `class`, and all names; more than `most` count as one."""
    names = list(classes) if len(classes) <= most else [f"any of {len(classes)}"]
    predicted = rows["prediction"].astype(int) if len(names) > 1 else np.zeros(len(rows), dtype=int)
    return rows.assign(**{"class": [names[place] for place in predicted]}), names


# --- effects, and differences of two models


def mean_effect(instances: pd.DataFrame, quantity: str, middle: Callable = weighted_mean) -> Effect:
    """The mean of a quantity of one configuration.

    Args:
        middle: the mean over the texts, or `weighted_median`: (weights (draw, text), table (text, ...)) -> (draw, ...).
    """
    table = seed_table(instances, quantity).dropna(how="all")
    if table.empty:
        return Effect(quantity, nan, dict.fromkeys(map(int, table.columns), nan), nan, 0)
    return estimate([quantity], middle, table.to_numpy()[:, None], table.columns, DIFFERENCE_DRAWS)[0]


def effects_between(instances: pd.DataFrame, quantities: Sequence[str], between: Between) -> list[Effect]:
    """How much higher each quantity or score is in the first model than in the second, in pairs of one text and seed.

    Scores are of all texts, which must be the same; a measured number of those texts and seeds in which both have it.

    Args:
        quantities: columns, or some of CLASSIFICATION, or some of FRAGILITY, of which a drop that is lower is deeper.
        between: selects the two by their run columns: ({"encoder": "average"}, {"encoder": "bilstm"}).
    Raises:
        KeyError: no such column. ValueError: a group is empty or mixes configurations; they have no seed or no text in
            common, or scores are of other texts.
    """
    if set(quantities) <= {*CLASSIFICATION, *FRAGILITY}:
        sides, statistic, draws = score_tables(instances, quantities, between)
        seeds = seeds_of(same_texts(instances, between)[0])
        return compare(quantities, statistic, sides, seeds, draws)
    return [mean_between(instances, name, between) for name in quantities]


def score_tables(
    instances: pd.DataFrame, scores: Sequence[str], between: Between
) -> tuple[list[np.ndarray], Statistic, int]:
    """The answers of both models, the statistic that has these scores of them, and draws for its bootstrap."""
    plain = set(scores) <= set(CLASSIFICATION)
    table = answer_table if plain else substituted_table
    statistic = score_statistic(scores) if plain else fragility_statistic(scores)
    return [table(group) for group in same_texts(instances, between)], statistic, DIFFERENCE_DRAWS if plain else DRAWS


def mean_between(instances: pd.DataFrame, quantity: str, between: Between) -> Effect:
    """`effects_between` of a measured number."""
    if quantity not in instances:
        raise KeyError(
            f"no measured number {quantity!r}; scores: {', '.join(dict.fromkeys(CLASSIFICATION + FRAGILITY))}"
        )
    tables = same_seeds([seed_table(group_of(instances, where), quantity) for where in between], between)
    index = tables[0].index.intersection(tables[1].index)
    first, second = (table.loc[index].to_numpy() for table in tables)
    both = ~np.isnan(first) & ~np.isnan(second)
    if not (shared := both.any(axis=1)).any():
        raise ValueError(f"no text has a value of {quantity!r} in both {between[0]} and {between[1]} in one seed")
    sides = [np.where(both, side, nan)[shared][:, None] for side in (first, second)]
    return compare([quantity], weighted_mean, sides, tables[0].columns, DIFFERENCE_DRAWS)[0]


def difference(
    instances: pd.DataFrame, quantities: Sequence[str], between: Between, test: bool = False
) -> pd.DataFrame:
    """`effects_between` as a table: a row of `difference_row` for each quantity.

    Args:
        test: adds p to scores: how often the difference is as large when chance swaps the two models' answers to each
            text (`swap_test`). It is about these very models; the interval is about other seeds too.
    """
    table = pd.DataFrame(map(difference_row, effects_between(instances, quantities, between)))
    if test:
        sides, statistic, draws = score_tables(instances, quantities, between)
        table["p"] = swap_test(statistic, sides, draws)
    return table


def difference_row(effect: Effect) -> dict[str, object]:
    """quantity, first, second, difference, low, high, word, unit, n, seeds, se, of_seeds: an effect for a table."""
    low, high = effect.interval()
    row = {"quantity": effect.quantity, "first": effect.first, "second": effect.second, "difference": effect.value}
    row |= {"low": low, "high": high, "word": effect.word, "unit": unit_of(effect.quantity), "n": effect.n}
    return row | {"seeds": len(effect.by_run), "se": effect.se, "of_seeds": dict(effect.by_run)}


def same_texts(instances: pd.DataFrame, between: Between) -> list[pd.DataFrame]:
    """The rows of both groups, of the seeds that both have; ValueError where they are on other texts."""
    groups = [group_of(instances, where) for where in between]
    labels = same_seeds([seed_table(group, "label") for group in groups], between)
    if not labels[0].index.equals(labels[1].index):
        raise ValueError(f"{between[0]} and {between[1]} were measured on other texts; the comparison is paired")
    return [group[group["seed"].isin(labels[0].columns)] for group in groups]


def same_seeds(tables: list[pd.DataFrame], between: Between) -> list[pd.DataFrame]:
    """The columns (seeds) that both tables have; ValueError where there is none."""
    both = tables[0].columns.intersection(tables[1].columns)
    if both.empty:
        raise ValueError(f"no seed is in both {between[0]} and {between[1]}; the comparison is paired by seed")
    return [table[both] for table in tables]


def group_of(instances: pd.DataFrame, where: Mapping) -> pd.DataFrame:
    """The rows of the one configuration that `where` selects by its run columns."""
    group = rows_where(instances, where)
    kinds = group[list(RUN_COLUMNS)].drop_duplicates()
    if len(kinds) != 1:
        raise ValueError(f"{where} selects {len(kinds)} configurations; it must select exactly one")
    return group


# --- a row for each seed, and back

OF_ALL_SEEDS = ["low", "high", "sd_seeds", "low_texts", "high_texts", "seeds", "of_seeds"]


def split_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each seed of the rows that have `of_seeds`, with its value and `per` "seed"; all others as they are.

    se_texts is still that of the mean over the seeds together, and what follows from all seeds is missing.
    """
    rows = rows.reset_index(drop=True).infer_objects()
    if "of_seeds" not in rows or "value" not in rows:
        return rows
    many = rows["of_seeds"].map(lambda given: isinstance(given, dict) and bool(given)) & rows["value"].notna()
    single = rows[many].assign(seed=rows["of_seeds"].map(list, na_action="ignore"), per="seed").explode("seed")
    single["value"] = [given[seed] for given, seed in zip(single["of_seeds"], single["seed"], strict=True)]
    both = pd.concat([single.drop(columns=OF_ALL_SEEDS, errors="ignore"), rows[~many].drop(columns="of_seeds")])
    return both.sort_index(kind="stable").reset_index(drop=True).infer_objects()


def join_seeds(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The rows of `split_seeds` with those of single seeds, of one quantity and `by`, put together again.

    Where runs of several studies are together, se_texts is the mean of theirs: at least that of all their seeds.
    """
    if "per" not in rows:
        return rows
    single, joined = rows["per"].eq("seed"), []
    runs = rows[single].reindex(columns=[*dict.fromkeys([*by, "quantity", "unit", "seed", "value", "n", "se_texts"])])
    for _, group in runs.drop_duplicates([*by, "quantity", "seed"]).groupby(
        [*by, "quantity"], sort=False, dropna=False
    ):
        values, se, bounds = group["value"].to_numpy(float), group["se_texts"].mean(), limits(group["quantity"].iloc[0])
        value, half = values.mean(), se * quantile(inf)
        row = {"value": value, "sd_seeds": group["value"].std(), "seeds": len(values), "n": group["n"].max()}
        row["low"], row["high"] = np.clip(interval(value, se, values), *bounds)
        row["low_texts"], row["high_texts"] = np.clip((value - half, value + half), *bounds)
        joined.append(group.iloc[0].to_dict() | row | {"se_texts": se})
    return pd.concat([pd.DataFrame(joined), rows[~single]], ignore_index=True)
