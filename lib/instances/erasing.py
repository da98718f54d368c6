"""What erasing says of rankings: who flips the decision, how soon, and which ranking sooner (Serrano & Smith 2019)."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from lib.instances.statistics import bootstrap, interval_over_texts_and_seeds, mean_over, ratio, weighted_mean
from lib.instances.summarising import by_seed, configurations, summarise
from lib.quantities import RUN_COLUMNS

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


def with_random(instances: pd.DataFrame) -> pd.DataFrame:
    """The rows with removed_random_fraction, _count and _mass: of each text the mean over its random orders.

    An order along which the decision never flips does not count; NaN where it does along none.
    """
    means = {}
    for part in ("count", "fraction", "mass"):
        columns = [name for name in instances if name.startswith("removed_random_") and name.endswith(f"_{part}")]
        means[f"removed_random_{part}"] = instances[columns].mean(axis=1)
    return instances.assign(**means)


def with_flips(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows with flips_<ranking>: whether the decision ever flips along it, 0 or 1; NaN for a text of one item."""
    several = instances["removed_items"] > 1
    flips = {f"flips_{name}": instances[f"removed_{name}_count"].notna().where(several) for name in rankings}
    return instances.assign(**{name: column.astype(np.float64) for name, column in flips.items()})


def on_common_support(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows of texts whose decision flips along every ranking: then all are about the same texts.

    The paper leaves a text out of each ranking by itself, so that its boxes are about different texts.
    """
    return instances.dropna(subset=[f"removed_{name}_count" for name in rankings])


def by_ranking(instances: pd.DataFrame, rankings: Sequence[str], part: str = "fraction") -> pd.DataFrame:
    """One row per text and ranking, with the columns ranking and removed_<part>; all random orders of a text."""
    frames, kept = [], [*RUN_COLUMNS, "seed", "instance", "prediction"]
    for ranking in rankings:
        orders = [name for name in instances if name.startswith("removed_random_") and name.endswith(f"_{part}")]
        columns = [name for name in orders if name != f"removed_random_{part}"]
        columns = columns if ranking == "random" else [f"removed_{ranking}_{part}"]
        for column in columns:
            frames.append(instances[kept].assign(ranking=ranking, **{f"removed_{part}": instances[column]}))
    return pd.concat(frames, ignore_index=True)


def sooner(instances: pd.DataFrame, first: str, second: str, draws: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Along which of two rankings does the decision flip with fewer items (section 5.4)? One row per configuration.

    A ranking along which it never flips loses; where it does along neither, the text is left out; ties stay in.

    Returns:
        the run's columns, first, second, first_sooner, second_sooner (shares of the texts), ratio (of the two) with
        low and high (95%, over texts and seeds), first_low and first_high (of first_sooner), p (of the two-sided sign
        test, the largest of the seeds'), n (texts), left_out (texts, neither flips), seeds.
    """
    rows = []
    for key, group in configurations(instances):
        tables = [by_seed(group, f"removed_{name}_count").to_numpy() for name in (first, second)]
        several = by_seed(group, "removed_items").to_numpy() > 1
        neither = np.isnan(tables[0]) & np.isnan(tables[1])
        counts = [np.where(np.isnan(table), np.inf, table) for table in tables]
        wins = [np.where(neither, np.nan, counts[a] < counts[b]) for a, b in ((0, 1), (1, 0))]
        values = np.stack(wins, axis=1)  # (text, which, seed)
        samples = bootstrap(lambda weights, x=values: weighted_mean(weights, x), len(values), draws, seed)
        of_seeds = np.stack([mean_over(0, each) for each in wins])  # (which, seed)
        shares = mean_over(1, of_seeds)
        of_texts = mean_over(2, samples)  # (draw, which)
        value, *logs = (log_ratio(*of) for of in (shares, of_texts.T, of_seeds))
        low, high = interval_over_texts_and_seeds(value, *logs)
        own = interval_over_texts_and_seeds(shares[0], of_texts[:, 0], of_seeds[0])
        rows.append(
            key
            | {"first": first, "second": second, "first_sooner": shares[0], "second_sooner": shares[1]}
            | {"ratio": np.exp(value), "low": np.exp(low), "high": np.exp(high)}
            | dict(zip(("first_low", "first_high"), np.clip(own, 0, 1), strict=True))
            | {"p": max(map(sign_test, *(np.nansum(each, axis=0).astype(int) for each in wins)))}
            | {"n": int((~neither).any(axis=1).sum()), "left_out": int((neither & several).sum())}
            | {"seeds": values.shape[2]}
        )
    return pd.DataFrame(rows)


def log_ratio(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """log(first / second); NaN where one of them is 0."""
    found = ratio(np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64))
    return np.log(np.where(found > 0, found, np.nan))


def sign_test(first: int, second: int) -> float:
    """The two-sided p of so many wins against so many, ties aside; 1 where there are none."""
    return binomtest(int(first), int(first + second)).pvalue if first + second else 1.0


def above_the_floor(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows with optimal_<ranking> (1: it needs no item more than the fewest possible) and extra_<ranking> (items).

    Of texts that some set of items flips; a ranking along which it never flips is not optimal, and has no extra.
    """
    fewest, found = instances["removed_fewest_count"], {}
    for name in rankings:
        count = instances[f"removed_{name}_count"]
        found[f"optimal_{name}"] = (count == fewest).astype(np.float64).where(fewest.notna())
        found[f"extra_{name}"] = count - fewest
    return instances.assign(**found)
