"""Is a quantity, or a score, higher here than there? One routine for a difference: its interval, and its test."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from lib.analysis.statistics import (
    CELLS,
    FEW,
    SEED,
    Statistic,
    bootstrap,
    interval_over_texts_and_seeds,
    mean_over,
    standard_error,
    weighted_mean,
)
from lib.analysis.summarising import DROPS, answers, by_seed, fragility_of, rows_where, scores_of
from lib.quantity import RUN_COLUMNS, unit_of

DRAWS = 2000  # of the bootstrap, and of the randomisation test
Between = tuple[dict, dict]  # the run columns that select each of two groups
Pooled = Callable[[np.ndarray, np.ndarray], np.ndarray]


def contrast(
    quantities: Sequence[str],
    statistic: Statistic,
    groups: Sequence[np.ndarray],
    paired: bool,
    draws: int = DRAWS,
    pooled: Pooled | None = None,
    test: bool = False,
    seeds: Sequence[int] | None = None,
) -> pd.DataFrame:
    """A statistic of the first group of rows less that of the second: a row for each of its quantities.

    The bootstrap draws texts, the same for both groups; the seeds of each group add the variance of their mean, or,
    where they are paired, of their differences. With one seed the interval is of these very models alone: see `seeds`.

    Args:
        statistic: (weights (draw, text), table) -> (draw, quantity, seed), of texts that count with these weights.
        groups: two tables (text, ...) of the same texts.
        paired: each seed of one group belongs to that of the other (or to its only one).
        draws: samples of the bootstrap, and of the test; with 0 the interval is over the seeds alone.
        pooled: (weights, table) -> (draw, quantity), of all seeds together; by default the mean over the seeds.
        test: adds p, two-sided, of a randomisation test of these very models: how often the difference is as large when
            chance swaps the two groups' rows of each text, those of all seeds together.
        seeds: of the pairs; by default their numbers.
    Returns:
        quantity, first, second (values), difference, low, high (95%), word: "higher" where the interval lies above 0,
        "lower" below 0, "open" else, or where fewer than FEW paired seeds differ in sign; unit, n (texts), seeds (of
        the two groups); p; se, the standard error over texts; of_seeds, the difference in each seed where they are
        paired ({} else).
    """
    pooled = pooled or (lambda weights, table: mean_over(-1, statistic(weights, table)))
    first, second = groups
    ones = np.ones((1, len(first)))
    of_seeds = [statistic(ones, table)[0] for table in groups]
    seeds = range(of_seeds[0].shape[-1]) if seeds is None else seeds
    values = [pooled(ones, table)[0] for table in groups]
    samples = np.empty((0, len(quantities)))
    if draws:
        samples = bootstrap(lambda some: pooled(some, first) - pooled(some, second), len(first), draws)
    rows = []
    for name, one, other, drawn, *each in zip(quantities, *values, samples.T, *of_seeds, strict=True):
        apart = [each[0] - each[1]] if paired else each  # what varies over seeds
        low, high = interval_over_texts_and_seeds(one - other, drawn, *apart)
        differ = paired and len(apart[0]) < FEW and len(np.unique(np.sign(apart[0]))) > 1
        rows.append(
            {"quantity": name, "first": float(one), "second": float(other), "difference": float(one - other)}
            | {"low": low, "high": high, "word": "open" if differ else direction(low, high), "unit": unit_of(name)}
            | {"n": len(first), "seeds": tuple(map(len, each)), "se": standard_error(drawn)}
            | {"of_seeds": by_number(seeds, apart[0]) if paired else {}}
        )
    found = pd.DataFrame(rows)
    return found.assign(p=swapped_p(pooled, groups, draws)) if test else found


def by_number(seeds: Sequence[int], values: np.ndarray) -> dict[int, float]:
    """{seed: its value}, in Python's own numbers."""
    return dict(zip(map(int, seeds), map(float, values), strict=True))


def direction(low: float, high: float) -> str:
    """Where an interval lies: higher than 0, lower, or open: on both sides."""
    return "higher" if low > 0 else "lower" if high < 0 else "open"


def swapped_p(pooled: Pooled, groups: Sequence[np.ndarray], draws: int) -> np.ndarray:
    """The two-sided p of a paired randomisation test, whose rows (text, ...) chance swaps: (...) as `pooled` has it.

    Swapping a pair is swapping its weights: the tables are concatenated, and each draw assigns one row of each pair to
    either side.

    Args:
        pooled: (weights (draw, row), table (row, ...)) -> (draw, ...).
    """
    random, both, texts = np.random.default_rng(SEED), np.concatenate(groups), len(groups[0])

    def distance(swap: np.ndarray) -> np.ndarray:
        weights = np.concatenate([~swap, swap], axis=1).astype(np.float64)
        return abs(pooled(weights, both) - pooled(1 - weights, both))

    seen = distance(np.zeros((1, texts), dtype=bool))[0]
    beyond, step = 0, max(1, CELLS // (2 * texts))
    for start in range(0, draws, step):
        beyond += (distance(random.random((min(step, draws - start), texts)) < 0.5) >= seen - 1e-12).sum(axis=0)
    return (beyond + 1) / (draws + 1)


def mean_of(weights: np.ndarray, table: np.ndarray) -> np.ndarray:
    """The statistic of `difference`: the weighted mean over the texts of a table (text, seed)."""
    return weighted_mean(weights, table)[:, None]


def difference(instances: pd.DataFrame, quantity: str, between: Between, paired: bool = False) -> pd.Series:
    """The mean of a quantity in the first group less that in the second, over the texts that both have.

    `between` selects two groups by their run columns: ({"encoder": "average"}, {"encoder": "bilstm"}); other columns
    must have one value, the same or not, within a group. `paired`: the seeds that both groups have are taken, in pairs,
    where those of one group belong to those of the other; a text counts in the seeds in which both have a value.

    Returns:
        a row of `contrast`.
    Raises:
        KeyError: no such column. ValueError: a group is empty or mixes configurations; no text is in both.
    """
    tables, seeds = [by_seed(group_of(instances, where), quantity) for where in between], None
    if paired:
        tables = same_seeds(tables, between)
        seeds = tables[0].columns
        defined = [table.notna().reindex(tables[0].index, fill_value=False) for table in tables]
        tables = [table.where(defined[0] & defined[1]) for table in tables]
    shared = tables[0].dropna(how="all").index.intersection(tables[1].dropna(how="all").index)
    if shared.empty:
        where = " in one seed" if paired else ""
        raise ValueError(f"no text has a value of {quantity!r} in both {between[0]} and {between[1]}{where}")
    groups = [table.loc[shared].to_numpy() for table in tables]
    return contrast([quantity], mean_of, groups, paired, seeds=seeds).iloc[0]


def mean_effect(instances: pd.DataFrame, quantity: str, middle: Pooled = weighted_mean) -> pd.Series:
    """The mean of a quantity of one configuration, with what `contrast` says of a difference.

    Args:
        middle: the mean over the texts, or `weighted_median`: (weights (draw, text), table (text, seed)) -> (draw,
            seed).
    Returns:
        quantity, difference (the mean over seeds), unit, of_seeds, se (over texts), n.
    """
    table = by_seed(instances, quantity).dropna(how="all")
    values, of_seeds, drawn = table.to_numpy(), np.full(table.shape[1], np.nan), np.empty(0)
    if values.size:
        of_seeds = middle(np.ones((1, len(values))), values)[0]
        drawn = bootstrap(lambda some: mean_over(-1, middle(some, values)), len(values), DRAWS)
    row = {"quantity": quantity, "difference": float(mean_over(0, of_seeds)), "unit": unit_of(quantity)}
    row |= {"of_seeds": by_number(table.columns, of_seeds), "se": standard_error(drawn), "n": len(values)}
    return pd.Series(row)


def score_difference(
    instances: pd.DataFrame, score: str, between: Between, draws: int = DRAWS, test: bool = True
) -> pd.Series:
    """Accuracy, F1 or AUC of the first group less that of the second, on the same texts and seeds, in pairs.

    Returns:
        a row of `contrast`; if `test` with p: how often the difference is as large when chance swaps the two models'
        answers to each text (all seeds together). It is about these very models; the interval is about other seeds too.
    Raises:
        KeyError: unknown score. ValueError: a group is empty or mixes configurations; the texts are not the same.
    """
    pair = same_texts(instances, between)
    columns = ("label", "prediction", "probability")
    groups = [np.stack([by_seed(group, name).to_numpy() for name in columns], axis=2) for group in pair]
    seeds = by_seed(pair[0], "label").columns
    return contrast([score], scores_of([score]), groups, True, draws, test=test, seeds=seeds).iloc[0]


def fragility_difference(
    instances: pd.DataFrame,
    between: Between,
    quantities: Sequence[str] = ("f1", *DROPS),
    draws: int = 1000,
) -> pd.DataFrame:
    """Some of FRAGILITY of the first group less those of the second, on the same texts and seeds, in pairs.

    A row of `contrast` for each quantity. A drop that is lower is deeper: the first model is the more fragile one.

    Raises:
        KeyError: unknown quantity. ValueError: a group is empty or mixes configurations; the texts are not the same.
    """
    pair = same_texts(instances, between)
    groups, seeds = [answers(group) for group in pair], by_seed(pair[0], "label").columns
    return contrast(quantities, fragility_of(quantities), groups, True, draws, seeds=seeds)


def same_texts(instances: pd.DataFrame, between: Between) -> list[pd.DataFrame]:
    """The rows of both groups, of the seeds that both have; ValueError where they are on other texts."""
    groups = [group_of(instances, where) for where in between]
    labels = same_seeds([by_seed(group, "label") for group in groups], between)
    if not labels[0].index.equals(labels[1].index):
        raise ValueError(f"{between[0]} and {between[1]} were measured on other texts; the comparison is paired")
    return [group[group["seed"].isin(labels[0].columns)] for group in groups]


def same_seeds(tables: list[pd.DataFrame], between: Between) -> list[pd.DataFrame]:
    """The columns (seeds) that both tables have; ValueError where there is none."""
    both = tables[0].columns.intersection(tables[1].columns)
    if both.empty:
        raise ValueError(f"no seed is in both {between[0]} and {between[1]}; the comparison is paired by seed")
    return [table[both] for table in tables]


def group_of(instances: pd.DataFrame, where: dict) -> pd.DataFrame:
    """The rows of the one configuration that `where` selects by its run columns."""
    group = rows_where(instances, where)
    kinds = group[list(RUN_COLUMNS)].drop_duplicates()
    if len(kinds) != 1:
        raise ValueError(f"{where} selects {len(kinds)} configurations; it must select exactly one")
    return group
