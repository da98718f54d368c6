"""Rankings compared by erasing their items: does the decision flip, and after how many (Serrano & Smith 2019)."""

from collections.abc import Iterable, Sequence
from itertools import count, product, takewhile

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from lib.analysis.statistics import bootstrap, interval, mean_over, number_by_seed, ratio, standard_error
from lib.analysis.summaries import SUMMARY, configurations, seed_table, summarise
from lib.interventions.erasure import UNITS
from lib.quantity import CHANGE_BOUNDS, RUN_COLUMNS, declare, unit_of

CELLS = ("flip_both", "flip_top_only", "flip_random_only", "flip_neither")
LARGE = (0.3, 0.5)  # of a difference of attention: figure 3's "quite large differences like 0.4"
NEAR_ZERO = 0.05  # nats, of at most 0.69
QUARTILES = {"lower_quartile": 0.25, "median": 0.5, "upper_quartile": 0.75}
PAIRS = [("attention", "random"), ("product", "attention")]
FEW_TEXTS = 5  # with fewer on one side a ratio of counts has an exact interval


def flip_cells(instances: pd.DataFrame, ranking: str, way: str) -> pd.DataFrame:
    """The rows with CELLS: does erasing the top item of a ranking flip the decision, and does another item?

    Fractions that add up to 1 in every row; NaN for a text of one item. `way`: "expected" over all other items, or the
    one that was drawn as in the "paper" or its "authors_code".

    Args:
        instances: with the columns of lib.interventions.single_erasure, measured under the name "top".
    """
    top = instances[f"top_{ranking}_flip"]
    other = instances[f"top_{ranking}_{'others' if way == 'expected' else way}_flip"]
    values = (top * other, top * (1 - other), (1 - top) * other, (1 - top) * (1 - other))
    return instances.assign(**dict(zip(CELLS, values, strict=True)))


def flip_tables(instances: pd.DataFrame, rankings: Iterable[str], ways: Iterable[str]) -> pd.DataFrame:
    """CELLS of each configuration, ranking and way, in the columns of `summarise` and `ranking`, `way`."""
    tables = [
        summarise(flip_cells(instances, ranking, way), CELLS).assign(ranking=ranking, way=way)
        for ranking, way in product(rankings, ways)
    ]
    return pd.concat(tables, ignore_index=True)


def orders(instances: pd.DataFrame, ranking: str, part: str) -> pd.DataFrame:
    """(text, order): the column removed_<ranking>_<part>; of random orders removed_random_1_<part>, _2_<part>, ..."""
    if ranking != "random":
        return instances[[f"removed_{ranking}_{part}"]]
    names = (f"removed_random_{order}_{part}" for order in count(1))
    return instances[list(takewhile(instances.columns.__contains__, names))]


def add_random(instances: pd.DataFrame) -> pd.DataFrame:
    """The rows with removed_random_fraction, _count and _mass: of each text the mean over its random orders.

    An order along which the decision never flips does not count; NaN where it does along none.
    """
    names = {part: declare(f"removed_random_{part}", unit) for part, unit in UNITS.items()}
    return instances.assign(**{name: orders(instances, "random", part).mean(axis=1) for part, name in names.items()})


def add_flips(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows with flips_<ranking>: whether the decision ever flips along it, 0 or 1; NaN for a text of one item.

    Of random orders the share of a text's orders. Of the fewest possible NaN too in a run in which they are unknown.
    """
    several, columns = instances["removed_items"] > 1, {}
    for name in rankings:
        flips = orders(instances, name, "count").notna().mean(axis=1)
        if name == "fewest":  # known of a run whose read-out is affine
            runs = instances.groupby([*RUN_COLUMNS, "seed"], dropna=False)
            flips = flips.where(runs["removed_fewest_count"].transform("count") > 0)
        columns[declare(f"flips_{name}", "fraction")] = flips.where(several)
    return instances.assign(**columns)


def add_late_flips(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows with removed_over_half_<ranking>: whether more than half of the items go before the decision flips.

    And removed_all_<ranking>: whether it flips only when nothing is left. 0 or 1, NaN where it never flips; of random
    orders the share of those that flip.
    """
    columns = {}
    for name in rankings:
        fractions = orders(instances, name, "fraction")
        for part, is_so in (("over_half", fractions > 0.5), ("all", fractions == 1)):
            share = is_so.where(fractions.notna()).astype(np.float64).mean(axis=1)
            columns[declare(f"removed_{part}_{name}", "fraction")] = share
    return instances.assign(**columns)


def common_support(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows of texts whose decision flips along every ranking, and every random order: all about the same texts.

    The paper leaves texts out of each ranking separately, so that its boxes are about different texts.
    """
    columns = {column for name in (*rankings, "random") for column in orders(instances, name, "count")}
    return instances.dropna(subset=list(columns))


def ranking_rows(instances: pd.DataFrame, rankings: Sequence[str], part: str = "fraction") -> pd.DataFrame:
    """One row per text and ranking, with the columns ranking and removed_<part>; all random orders of a text."""
    titles = {"fraction": "items removed, fraction", "mass": "attention removed"}
    removed = declare(f"removed_{part}", UNITS[part], titles.get(part))
    frames, kept = [], [*RUN_COLUMNS, "seed", "instance", "prediction"]
    for ranking in rankings:
        for column in orders(instances, ranking, part):
            frames.append(instances[kept].assign(ranking=ranking, **{removed: instances[column]}))
    return pd.concat(frames, ignore_index=True)


def box_values(long: pd.DataFrame, part: str = "fraction") -> pd.DataFrame:
    """The median and the quartiles of the boxes of `ranking_rows`, in the columns of `summarise`, without intervals.

    Over all texts, seeds and random orders: removed_<ranking>_<part>_median, _lower_quartile and _upper_quartile.
    """
    rows = []
    for key, group in configurations(long):
        for ranking, some in group.dropna(subset=[f"removed_{part}"]).groupby("ranking", sort=False):
            counts = {"n": some["instance"].nunique(), "seeds": some["seed"].nunique()}
            for name, share in QUARTILES.items():
                quantity = declare(f"removed_{ranking}_{part}_{name}", UNITS[part])
                value = some[f"removed_{part}"].quantile(share)
                rows.append(key | {"quantity": quantity, "value": value, "unit": unit_of(quantity)} | counts)
    return pd.DataFrame(rows, columns=SUMMARY)


def add_drawn(instances: pd.DataFrame, way: str = "paper") -> pd.DataFrame:
    """The rows with what figures 3 and 4 show of attention's top item and the item drawn in that way.

    drawn_negative, whether the drawn one changes the output more (0 or 1); delta_alpha_where_negative and _elsewhere,
    how much more the top one weighs in these texts and in the others; near_zero_at_large, of texts where it weighs more
    by LARGE and changes the output more, whether by less than NEAR_ZERO. NaN in other texts, and in those of one item.
    """
    alpha, js = (instances[f"top_attention_{way}_delta_{name}"] for name in ("alpha", "js"))
    large = alpha.between(*LARGE) & (js > 0)
    columns = {
        "drawn_negative": (js < 0).astype(float).where(js.notna()),
        "delta_alpha_where_negative": alpha.where(js < 0),
        "delta_alpha_elsewhere": alpha.where(js >= 0),
        "near_zero_at_large": (js < NEAR_ZERO).astype(float).where(large),
    }
    bounds = {name: CHANGE_BOUNDS for name in columns if name.startswith("delta")}
    return instances.assign(**{declare(name, "fraction", None, bounds.get(name)): columns[name] for name in columns})


def add_sooner(instances: pd.DataFrame, pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """The rows with sooner_<first>_than_<second>: 1 where the first ranking flips with fewer items, -1 the second.

    0 where they tie. A ranking along which the decision never flips loses; NaN where it does along neither. Of random
    orders the mean over a text's orders.
    """
    columns = {}
    for first, second in pairs:
        counts = [orders(instances, name, "count").to_numpy(float) for name in (first, second)]
        never = [np.isnan(count) for count in counts]
        a, b = (np.nan_to_num(count, nan=np.inf) for count in counts)
        sign = np.where(never[0] & never[1], np.nan, (a < b).astype(float) - (a > b))
        columns[declare(f"sooner_{first}_than_{second}", "fraction", None, CHANGE_BOUNDS)] = mean_over(1, sign)
    return instances.assign(**columns)


def add_effects(instances: pd.DataFrame, way: str = "paper") -> pd.DataFrame:
    """The rows with the effects of erasing: the columns of `add_drawn`, those of `add_sooner` for PAIRS, and

    top_gap_js, top_gap_flip    attention's top item less the mean of all others

    Args:
        instances: with the columns of lib.interventions.single_erasure as "top", of until_flip as "removed". way: see
            `add_drawn`.
    """
    frame = add_sooner(add_drawn(instances, way), PAIRS).copy()  # a frame of many insertions is slow
    gaps = {part: frame[f"top_attention_{part}"] - frame[f"top_attention_others_{part}"] for part in ("js", "flip")}
    names = declare("top_gap_js", "nats"), declare("top_gap_flip", "fraction", None, CHANGE_BOUNDS)
    return frame.assign(**dict(zip(names, gaps.values(), strict=True)))


def flips_sooner(instances: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """Along which of two rankings does the decision flip with fewer items (section 5.4)? One row per configuration.

    A ranking along which it never flips loses; where it does along neither, the text is left out; ties stay in.

    Returns:
        the run's columns, first, second, first_sooner, second_sooner (shares of the texts), first_texts, second_texts
        (counts, the mean over seeds), ratio (of the two counts, half a text added to each, so that it is defined where
        one ranking is never sooner) with low and high (95%, over texts and seeds; where one is never sooner exact, over
        texts), p (of the two-sided sign test, the largest of the seeds'), of_seeds (the log of the ratio in each seed),
        se (of its mean, over texts), n, left_out (texts, neither flips in any seed), seeds.
    """
    rows = []
    for key, group in configurations(instances):
        tables = [seed_table(group, f"removed_{name}_count") for name in (first, second)]
        several = (seed_table(group, "removed_items").to_numpy() > 1).any(axis=1)
        neither = np.isnan(tables[0].to_numpy()) & np.isnan(tables[1].to_numpy())
        counts = [np.where(np.isnan(table), np.inf, table) for table in tables]
        wins = np.stack([(counts[a] < counts[b]) & ~neither for a, b in ((0, 1), (1, 0))]).astype(np.float64)
        of_seeds = wins.sum(axis=1)  # (which, seed)
        shares = mean_over(1, ratio(of_seeds, np.broadcast_to((~neither).sum(axis=0), of_seeds.shape).astype(float)))
        row = {"first": first, "second": second, "first_sooner": shares[0], "second_sooner": shares[1]}
        row |= dict(zip(("first_texts", "second_texts"), of_seeds.mean(axis=1), strict=True))
        row |= ratio_of_counts(wins) | {"p": max(map(sign_test, *of_seeds))}
        row["of_seeds"] = number_by_seed(tables[0].columns, log_ratio(*of_seeds))
        row |= {"n": int((~neither).any(axis=1).sum()), "left_out": int((neither.all(axis=1) & several).sum())}
        rows.append(key | row | {"seeds": neither.shape[1]})
    return pd.DataFrame(rows)


def ratio_of_counts(wins: np.ndarray) -> dict[str, float]:
    """The ratio of two counts of texts, wins (which, text, seed): ratio, low, high, and se of its log over texts.

    Of fewer than FEW_TEXTS on one side the bootstrap says nothing: se is that of two Poisson counts, and where a side
    has none the interval is exact (Clopper & Pearson 1934).
    """
    of_seeds, texts = wins.sum(axis=1), wins.shape[1]
    means = of_seeds.mean(axis=1)
    samples = bootstrap(lambda weights: np.moveaxis(weights @ wins, 0, 1), texts, 1000).mean(axis=2)
    value, logs = log_ratio(*means), log_ratio(*samples.T)
    few = means.min() < FEW_TEXTS
    se = float(np.sqrt((1 / (means + 0.5)).sum())) if few else standard_error(logs)
    if means.min() == 0:
        low, high = exact_ratio(*means.round().astype(int))
    else:
        low, high = np.exp(interval(float(value), standard_error(logs), log_ratio(*of_seeds)))
    return {"ratio": float(np.exp(value)), "low": low, "high": high, "se": se}


def log_ratio(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """log of the ratio of two counts, half a count added to each (Haldane 1956); NaN where both are 0."""
    return np.where(first + second > 0, np.log((first + 0.5) / (second + 0.5)), np.nan)


def exact_ratio(first: int, second: int) -> tuple[float, float]:
    """The exact 95% interval of the ratio of two counts: from that of the first one's share."""
    if not first + second:
        return np.nan, np.nan
    ends = binomtest(int(first), int(first + second)).proportion_ci()
    return tuple(float(end / (1 - end)) if end < 1 else np.inf for end in (ends.low, ends.high))


def sign_test(first: int, second: int) -> float:
    """The two-sided p of a sign test of wins against losses, ties left out; 1 without any."""
    return binomtest(int(first), int(first + second)).pvalue if first + second else 1.0


def add_optimality(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows with optimal_<ranking> (1: it needs no item more than the fewest possible) and extra_<ranking> (items).

    Of texts that some set of items flips; a ranking along which it never flips is not optimal, and has no extra.
    """
    fewest, columns = instances["removed_fewest_count"], {}
    for name in rankings:
        count = instances[f"removed_{name}_count"]
        columns[declare(f"optimal_{name}", "fraction")] = (count == fewest).astype(np.float64).where(fewest.notna())
        columns[declare(f"extra_{name}", "items")] = count - fewest
    return instances.assign(**columns)
