"""From a table with a row for each text to a row for each quantity: means, scores and differences with intervals."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf, nan, sqrt

import numpy as np
import pandas as pd

from lib.analysis import statistics
from lib.analysis.measuring import quantity_columns, undefined
from lib.analysis.statistics import Effect, Statistic, estimate, weighted_f1, weighted_mean
from lib.quantity import RUN_COLUMNS, bounds_of, unit_of

DRAWS = 1000  # of the bootstrap
DIFFERENCE_DRAWS = 2000  # of that of a difference
CLASSIFICATION = ("accuracy", "f1")
DROPS = ("f1_drop_uniform", "f1_drop_permuted")
FRAGILITY = ("f1", "f1_uniform", "f1_permuted", *DROPS)
SUMMARY = [
    *RUN_COLUMNS,
    *("quantity", "value", "unit", "low", "high", "sd_seeds"),
    *("low_texts", "high_texts", "n", "seeds", "undefined", "left_out", "se_texts", "of_seeds"),
]
Between = tuple[Mapping, Mapping]  # the run columns that select each of two models


def summarise(instances: pd.DataFrame, quantities: Iterable[str] | None = None) -> pd.DataFrame:
    """One row per configuration and quantity: its mean over the instances, with intervals.

    value is the mean over seeds of each run's mean over its instances; [low, high] is its 95% interval over
    instances and seeds together (of one seed or two: over instances alone), [low_texts, high_texts] that over
    instances, the trained models as they are, by se_texts, the bootstrap's standard error; sd_seeds the sd of the
    seeds' means. An undefined value is counted (`undefined`, over all seeds), never averaged in; n is the number of
    instances with a value in at least one seed; left_out counts the texts beyond a quantity's `max_tokens`.
    """
    if quantities is None:
        quantities = [name for name in quantity_columns(instances) if unit_of(name) != "p-value"]
    names, rows = list(quantities), []
    for key, group in configurations(instances) if names else ():
        table = stack_columns(group, names).swapaxes(1, 2)  # (instance, quantity, seed)
        effects = estimate(names, weighted_mean, [table], seeds_of(group), DRAWS)
        for effect, values in zip(effects, table.swapaxes(0, 1), strict=True):
            missing = int(undefined(group, effect.quantity).sum())
            row = summary_row(effect) | {"undefined": missing, "n": int((~np.isnan(values)).any(axis=1).sum())}
            rows.append(key | row | {"left_out": int(group[effect.quantity].isna().sum()) - missing})
    return pd.DataFrame(rows, columns=SUMMARY)


def classification(instances: pd.DataFrame, scores: Sequence[str] = CLASSIFICATION) -> pd.DataFrame:
    """Scores of each configuration, in the columns of `summarise`.

    F1 is the positive class' for two classes, the macro average for more. f1_uniform and f1_permuted are F1 under equal
    weights and under random orders, the mean of each order's own F1; the drops are these less f1, so below 0 where the
    model loses (Tutek & Snajder 2020, section 4.1). Each score is the mean over the seeds. KeyError: one that is not of
    CLASSIFICATION, nor of FRAGILITY and measured. ValueError: the seeds of a configuration have different instances.
    """
    rows = []
    for key, group in configurations(instances):
        table = answer_table(group, scores)
        if np.isnan(table).any():
            raise ValueError(f"the seeds of {'/'.join(map(str, key.values()))} were measured on different instances")
        effects = estimate(scores, score_statistic(scores), [table], seeds_of(group), DRAWS)
        rows += [key | summary_row(effect) for effect in effects]
    return pd.DataFrame(rows, columns=SUMMARY)


def summary_row(effect: Effect) -> dict[str, object]:
    """What SUMMARY has of an effect."""
    values = list(effect.by_run.values())
    row = {"quantity": effect.quantity, "value": effect.value, "unit": unit_of(effect.quantity)}
    row |= intervals(effect.value, effect.se, np.array(values), bounds_of(effect.quantity)) | {"se_texts": effect.se}
    row |= {"of_seeds": dict(effect.by_run), "sd_seeds": float(pd.Series(values).std())}
    return row | {"n": effect.n, "seeds": len(values), "undefined": int(np.isnan(values).sum()), "left_out": 0}


def intervals(value: float, se: float, runs: np.ndarray, bounds: Sequence) -> dict[str, float]:
    """low, high over texts and runs, low_texts, high_texts over texts; clipped to the bounds. Elementwise."""
    half = se * statistics.quantile(inf)
    ends = np.clip((*statistics.interval(value, se, runs), value - half, value + half), *bounds).tolist()
    return dict(zip(("low", "high", "low_texts", "high_texts"), ends, strict=True))


# --- one configuration as an array, and the scores of it


def seed_table(group: pd.DataFrame, column: str) -> pd.DataFrame:
    """(instance, seed) float: a column of one configuration; NaN where there is no value, ValueError where two are."""
    return group.pivot(index="instance", columns="seed", values=column).astype(np.float64)


def stack_columns(group: pd.DataFrame, columns: Iterable[str]) -> np.ndarray:
    """(instance, seed, column) of some columns of one configuration."""
    return np.stack([seed_table(group, name).to_numpy() for name in columns], axis=2)


def answer_table(group: pd.DataFrame, scores: Sequence[str]) -> np.ndarray:
    """(instance, seed, (label, answer, ...)) of one configuration.

    The answer is the prediction; where `scores` are of other attention, also that under equal weights, and those under
    each random order.
    """
    if set(scores) <= set(CLASSIFICATION):
        return stack_columns(group, ("label", "prediction"))
    single = stack_columns(group, ("label", "prediction", "under_uniform"))
    table = group.pivot(index="instance", columns="seed", values="under_permuted")
    orders = np.stack([np.stack(table[seed].to_list()) for seed in table], axis=1)
    return np.concatenate([single, orders], axis=2)


def score_statistic(names: Sequence[str]) -> Statistic:
    """Some of CLASSIFICATION and FRAGILITY as a statistic of an `answer_table`; KeyError for others."""

    def statistic(weights: np.ndarray, table: np.ndarray) -> np.ndarray:
        label, answers = table[..., 0], table[..., 1:]
        right = (label == answers[..., 0]).astype(np.float64)
        f1 = weighted_f1(weights, label[:, 0], answers, max(2, int(table.max()) + 1))  # (draw, seed, answer)
        scores = {"accuracy": weighted_mean(weights, right), "f1": f1[..., 0]}
        if f1.shape[-1] > 1:
            other = {"uniform": f1[..., 1], "permuted": statistics.mean_over(2, f1[..., 2:])}
            scores |= {f"f1_{name}": value for name, value in other.items()}
            scores |= {f"f1_drop_{name}": value - f1[..., 0] for name, value in other.items()}
        return np.stack([scores[name] for name in names], axis=1)

    return statistic


def seeds_of(group: pd.DataFrame) -> list:
    """The seeds of one configuration, in the order of `seed_table`."""
    return sorted(group["seed"].unique().tolist())


# --- groups of rows


def configurations(instances: pd.DataFrame) -> Iterator[tuple[dict, pd.DataFrame]]:
    """(run columns, rows) of each configuration, in the order of the table."""
    for key, group in instances.groupby(list(RUN_COLUMNS), sort=False, dropna=False):
        yield dict(zip(RUN_COLUMNS, key, strict=True)), group


def per_group(instances: pd.DataFrame, by: Sequence[str], statistic: Callable) -> pd.DataFrame:
    """`statistic` of each group of rows with the same (or missing) values in `by`, columns that it then has too."""
    groups = instances.groupby(list(by), sort=False, dropna=False)
    tables = [statistic(rows).assign(**dict(zip(by, key, strict=True))) for key, rows in groups]
    empty = pd.DataFrame(columns=list(dict.fromkeys([*by, *RUN_COLUMNS, "quantity", "value", "unit", "low", "high"])))
    return pd.concat(tables, ignore_index=True) if tables else empty


def summarise_by(instances: pd.DataFrame, by: Sequence[str], quantities: Sequence[str]) -> pd.DataFrame:
    """`summarise`, `per_group`."""
    return per_group(instances, by, lambda rows: summarise(rows, quantities))


def rows_where(rows: pd.DataFrame, where: Mapping[str, object]) -> pd.DataFrame:
    """The rows whose columns have these values."""
    return rows[(rows[list(where)] == pd.Series(where, dtype=object)).all(axis=1)]


def with_class_names(rows: pd.DataFrame, classes: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """The rows with the name of the predicted class in `class`, and all names; more than 6 count as one."""
    names = list(classes) if len(classes) <= 6 else [f"any of {len(classes)}"]
    predicted = rows["prediction"].astype(int) if len(names) > 1 else np.zeros(len(rows), dtype=int)
    return rows.assign(**{"class": [names[place] for place in predicted]}), names


# --- effects, and differences of two models


def mean_effect(instances: pd.DataFrame, quantity: str, middle: Callable = weighted_mean) -> Effect:
    """The mean over texts of a quantity of one configuration, or another `middle`, such as `weighted_median`."""
    table = seed_table(instances, quantity).dropna(how="all")
    if table.empty:
        return Effect(quantity, nan, dict.fromkeys(map(int, table.columns), nan), nan, 0)
    return estimate([quantity], middle, [table.to_numpy()[:, None]], table.columns, DIFFERENCE_DRAWS)[0]


def rank_correlation(instances: pd.DataFrame, columns: Sequence[str]) -> Effect:
    """Spearman's correlation over the texts of two columns in each run of one configuration; NaN where one is constant.

    The standard error is that of one run (Bonett & Wright 2000), since runs share their texts.
    """
    both = instances.dropna(subset=columns)
    by_run = both.groupby("seed")[list(columns)].corr("spearman")[columns[1]].xs(columns[0], level=1)
    mean, n = float(by_run.mean()), both["instance"].nunique()
    se = (1 - mean**2) * sqrt((1 + mean**2 / 2) / (n - 3)) if n > 3 else nan
    return Effect(" / ".join(columns), mean, statistics.number_by_seed(by_run.index, by_run.to_numpy()), se, n)


def add_sureness(instances: pd.DataFrame) -> pd.DataFrame:
    """The instances with `sure`, the predicted class's probability, and `changed`, the share of orders with another."""
    of_class = (instances["prediction"] > 0) | (instances["label"].max() > 1)  # of two, `probability` is the second's
    both = zip(instances["under_permuted"], instances["prediction"], strict=True)
    sure = instances["probability"].where(of_class, 1 - instances["probability"])
    return instances.assign(sure=sure, changed=[np.mean(under != own) for under, own in both])


def beside_base(instances: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The rows of other variants with columns of their base, as `base_<name>`: of a run that is else the same."""
    keys = [name for name in (*RUN_COLUMNS, "seed", "instance") if name != "variant"]
    of_base = instances[instances["variant"].eq("base")].set_index(keys)[list(columns)]
    return instances[instances["variant"].ne("base")].join(of_base.add_prefix("base_"), on=keys, how="inner")


def effects_between(instances: pd.DataFrame, quantities: Sequence[str], between: Between) -> list[Effect]:
    """How much higher each quantity or score is in the first model than in the second, in pairs of one text and seed.

    Scores (of `classification`) are of all texts, which must be the same; a column of the texts in which both have it.
    Both are selected by their run columns: ({"encoder": "average"}, {"encoder": "bilstm"}). KeyError: no such column.
    ValueError: a group is empty or mixes configurations, they have no seed in common, or scores of other texts.
    """
    groups = [rows_where(instances, where) for where in between]
    for group, where in zip(groups, between, strict=True):
        if (number := len(group[list(RUN_COLUMNS)].drop_duplicates())) != 1:
            raise ValueError(f"{where} selects {number} configurations; it must select exactly one")
    seeds = sorted(set(seeds_of(groups[0])) & set(seeds_of(groups[1])))
    if not seeds:
        raise ValueError(f"no seed is in both {between[0]} and {between[1]}; the comparison is paired by seed")
    groups = [group[group["seed"].isin(seeds)] for group in groups]
    if not set(quantities) <= {*CLASSIFICATION, *FRAGILITY}:
        return [mean_between(groups, name, seeds) for name in quantities]
    texts = [set(group["instance"]) for group in groups]
    if texts[0] != texts[1]:
        raise ValueError(f"{between[0]} and {between[1]} were measured on other texts; the comparison is paired")
    sides = [answer_table(group, quantities) for group in groups]
    draws = DIFFERENCE_DRAWS if set(quantities) <= set(CLASSIFICATION) else DRAWS
    return estimate(quantities, score_statistic(quantities), sides, seeds, draws)


def mean_between(groups: Sequence[pd.DataFrame], quantity: str, seeds: Sequence[int]) -> Effect:
    """`effects_between` of a measured number of two groups with the same seeds."""
    first, second = (seed_table(group, quantity) for group in groups)
    index = first.index.intersection(second.index)
    first, second = first.loc[index].to_numpy(), second.loc[index].to_numpy()
    both = ~np.isnan(first) & ~np.isnan(second)
    if not (shared := both.any(axis=1)).any():
        return Effect(quantity, nan, dict.fromkeys(seeds, nan), nan, 0)
    sides = [np.where(both, side, nan)[shared][:, None] for side in (first, second)]
    return estimate([quantity], weighted_mean, sides, seeds, DIFFERENCE_DRAWS)[0]


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
    single = rows[rows["per"].eq("seed")] if "per" in rows else rows[:0]
    if single.empty:
        return rows
    keys = [*by, "quantity", "unit"]
    runs = single.reindex(columns=[*keys, "seed", "value", "n", "se_texts"]).drop_duplicates([*keys, "seed"])
    groups = runs.groupby(keys, sort=False, dropna=False)
    of = {"sd_seeds": ("value", "std"), "seeds": ("value", "size"), "n": ("n", "max"), "se_texts": ("se_texts", "mean")}
    joined = groups.agg(value=("value", "mean"), **of).reset_index()
    table = runs["value"].set_axis([groups.ngroup(), groups.cumcount()]).unstack().to_numpy()  # (group, run)
    bounds = np.transpose([bounds_of(name) for name in joined["quantity"]])
    ends = intervals(joined["value"].to_numpy(), joined["se_texts"].to_numpy(), table, bounds)
    return pd.concat([joined.assign(**ends), rows.drop(single.index)], ignore_index=True)
