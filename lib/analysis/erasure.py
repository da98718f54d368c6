"""Rankings compared by erasing their items: does the decision flip, and after how many (Serrano & Smith 2019)."""

from collections.abc import Iterable, Sequence
from itertools import count, takewhile

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from lib.analysis.statistics import bootstrap, interval_over_texts_and_seeds, mean_over, ratio
from lib.analysis.summarising import by_seed, configurations, summarise
from lib.interventions.erasure import UNITS
from lib.quantity import RUN_COLUMNS, declare

CELLS = ("flip_both", "flip_top_only", "flip_random_only", "flip_neither")
WAYS = ("expected", "paper", "authors_code")


def flip_cells(instances: pd.DataFrame, ranking: str, way: str = "expected") -> pd.DataFrame:
    """The rows with CELLS: does erasing the top item of a ranking flip the decision, and does another item?

    Fractions that add up to 1 in every row; NaN for a text of one item. `way`: "expected" over all other items, or the
    one that was drawn as the paper or its authors' code does.

    Args:
        instances: with the columns of lib.interventions.single_erasure, measured under the name "top".
    Raises:
        KeyError: unknown way.
    """
    if way not in WAYS:
        raise KeyError(f"unknown way {way!r}; known: {', '.join(WAYS)}")
    top = instances[f"top_{ranking}_flip"]
    other = instances[f"top_{ranking}_{'others' if way == 'expected' else way}_flip"]
    values = (top * other, top * (1 - other), (1 - top) * other, (1 - top) * (1 - other))
    return instances.assign(**dict(zip(CELLS, values, strict=True)))


def flip_tables(instances: pd.DataFrame, rankings: Iterable[str], ways: Iterable[str] = WAYS[:1]) -> pd.DataFrame:
    """CELLS of each configuration, ranking and way, in the columns of `summarise` and `ranking`, `way`."""
    ways = list(ways)
    return pd.concat(
        [
            summarise(flip_cells(instances, ranking, way), CELLS).assign(ranking=ranking, way=way)
            for ranking in rankings
            for way in ways
        ],
        ignore_index=True,
    )


def orders(instances: pd.DataFrame, ranking: str, part: str) -> pd.DataFrame:
    """(text, order): the column removed_<ranking>_<part>; of random orders removed_random_1_<part>, _2_<part>, ..."""
    if ranking != "random":
        return instances[[f"removed_{ranking}_{part}"]]
    names = (f"removed_random_{order}_{part}" for order in count(1))
    return instances[list(takewhile(instances.columns.__contains__, names))]


def with_random(instances: pd.DataFrame) -> pd.DataFrame:
    """The rows with removed_random_fraction, _count and _mass: of each text the mean over its random orders.

    An order along which the decision never flips does not count; NaN where it does along none.
    """
    names = {part: declare(f"removed_random_{part}", unit) for part, unit in UNITS.items()}
    return instances.assign(**{name: orders(instances, "random", part).mean(axis=1) for part, name in names.items()})


def with_flips(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows with flips_<ranking>: whether the decision ever flips along it, 0 or 1; NaN for a text of one item.

    Of random orders the share of a text's orders. Of the fewest possible NaN too in a run in which they are unknown.
    """
    several, found = instances["removed_items"] > 1, {}
    for name in rankings:
        flips = orders(instances, name, "count").notna().mean(axis=1)
        if name == "fewest":  # known of a run whose read-out is affine
            runs = instances.groupby([*RUN_COLUMNS, "seed"], dropna=False)
            flips = flips.where(runs["removed_fewest_count"].transform("count") > 0)
        found[declare(f"flips_{name}", "fraction")] = flips.where(several)
    return instances.assign(**found)


def over_half(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows with removed_over_half_<ranking>: whether more than half of the items go before the decision flips.

    0 or 1, NaN where it never flips; of random orders the share of those that flip.
    """
    found = {}
    for name in rankings:
        fractions = orders(instances, name, "fraction")
        over = (fractions > 0.5).where(fractions.notna()).astype(np.float64)
        found[declare(f"removed_over_half_{name}", "fraction")] = over.mean(axis=1)
    return instances.assign(**found)


def on_common_support(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows of texts whose decision flips along every ranking, and every random order: all about the same texts.

    The paper leaves texts out of each ranking separately, so that its boxes are about different texts.
    """
    columns = {column for name in (*rankings, "random") for column in orders(instances, name, "count")}
    return instances.dropna(subset=list(columns))


def by_ranking(instances: pd.DataFrame, rankings: Sequence[str], part: str = "fraction") -> pd.DataFrame:
    """One row per text and ranking, with the columns ranking and removed_<part>; all random orders of a text."""
    titles = {"fraction": "items removed, fraction", "mass": "attention removed"}
    removed = declare(f"removed_{part}", UNITS[part], titles.get(part))
    frames, kept = [], [*RUN_COLUMNS, "seed", "instance", "prediction"]
    for ranking in rankings:
        for column in orders(instances, ranking, part):
            frames.append(instances[kept].assign(ranking=ranking, **{removed: instances[column]}))
    return pd.concat(frames, ignore_index=True)


def flips_sooner(instances: pd.DataFrame, first: str, second: str, draws: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Along which of two rankings does the decision flip with fewer items (section 5.4)? One row per configuration.

    A ranking along which it never flips loses; where it does along neither, the text is left out; ties stay in.

    Returns:
        the run's columns, first, second, first_sooner, second_sooner (shares of the texts), ratio (of the two counts,
        half a text added to each, so that it is defined where one ranking is never sooner) with low and high (95%, over
        texts and seeds), p (of the two-sided sign test, the largest of the seeds'), n, left_out (texts, neither flips
        in any seed), seeds.
    """
    rows = []
    for key, group in configurations(instances):
        tables = [by_seed(group, f"removed_{name}_count").to_numpy() for name in (first, second)]
        several = (by_seed(group, "removed_items").to_numpy() > 1).any(axis=1)
        neither = np.isnan(tables[0]) & np.isnan(tables[1])
        counts = [np.where(np.isnan(table), np.inf, table) for table in tables]
        wins = np.stack([(counts[a] < counts[b]) & ~neither for a, b in ((0, 1), (1, 0))]).astype(np.float64)
        of_seeds = wins.sum(axis=1)  # (which, seed)
        samples = bootstrap(lambda weights, x=wins: np.moveaxis(weights @ x, 0, 1), len(neither), draws, seed)
        value, *logs = (log_ratio(*of) for of in (of_seeds.mean(axis=1), samples.mean(axis=2).T, of_seeds))
        low, high = interval_over_texts_and_seeds(value, *logs)
        shares = mean_over(1, ratio(of_seeds, np.broadcast_to((~neither).sum(axis=0), of_seeds.shape).astype(float)))
        rows.append(
            key
            | {"first": first, "second": second, "first_sooner": shares[0], "second_sooner": shares[1]}
            | {"ratio": np.exp(value), "low": np.exp(low), "high": np.exp(high)}
            | {"p": max(map(sign_test, *of_seeds))}
            | {"n": int((~neither).any(axis=1).sum()), "left_out": int((neither.all(axis=1) & several).sum())}
            | {"seeds": neither.shape[1]}
        )
    return pd.DataFrame(rows)


def log_ratio(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """log of the ratio of two counts, half a count added to each (Haldane 1956)."""
    return np.log((first + 0.5) / (second + 0.5))


def sign_test(first: int, second: int) -> float:
    """The two-sided p of a sign test of wins against losses, ties left out; 1 without any."""
    return binomtest(int(first), int(first + second)).pvalue if first + second else 1.0


def versus_fewest(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows with optimal_<ranking> (1: it needs no item more than the fewest possible) and extra_<ranking> (items).

    Of texts that some set of items flips; a ranking along which it never flips is not optimal, and has no extra.
    """
    fewest, found = instances["removed_fewest_count"], {}
    for name in rankings:
        count = instances[f"removed_{name}_count"]
        found[declare(f"optimal_{name}", "fraction")] = (count == fewest).astype(np.float64).where(fewest.notna())
        found[declare(f"extra_{name}", "items")] = count - fewest
    return instances.assign(**found)
