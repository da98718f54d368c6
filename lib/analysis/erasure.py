"""Rankings compared by erasing their items: does the decision flip, and after how many (Serrano & Smith 2019)."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count, product, takewhile

import numpy as np
import pandas as pd

from lib.analysis.statistics import Effect, bootstrap, number_by_seed, standard_error
from lib.analysis.summaries import SUMMARY, configurations, seed_table, summarise
from lib.interventions.erasure import UNITS, erasure_curve
from lib.models import AttentionModel, ModelOutput
from lib.models.interface import Ranking
from lib.quantity import CHANGE_BOUNDS, RUN_COLUMNS, declare, title_of, unit_of

CELLS = ("flip_both", "flip_top_only", "flip_random_only", "flip_neither")
LARGE = (0.3, 0.5)  # of a difference of attention: figure 3's "quite large differences like 0.4"
NEAR_ZERO = 0.05  # nats, of at most 0.69
FEW_TEXTS = 5  # on one side: the bootstrap says nothing of the ratio of two counts
DRAWS = 1000  # of the bootstrap
SIDES = {"first": 1, "second": -1}  # the sign of a text in which that ranking is sooner


# --- one item


def top_gaps(instances: pd.DataFrame) -> pd.Series:
    """How much more erasing attention's top item changes the output than another one, on average over all others: nats.

    Args:
        instances: with the columns of lib.interventions.single_erasure, measured under the name "top".
    """
    return instances["top_attention_js"] - instances["top_attention_others_js"]


def compare_top_gaps(own: pd.DataFrame, shuffled: pd.DataFrame) -> pd.DataFrame:
    """Means of `top_gaps` as top_gap_js, of the models' own weights and of shuffled ones: the column `weights`."""
    name = declare("top_gap_js", "nats", "top item less the others")
    tables = [
        summarise(rows.assign(**{name: top_gaps(rows)}), [name]).assign(weights=weights)
        for weights, rows in (("own", own), ("shuffled", shuffled))
    ]
    return pd.concat(tables, ignore_index=True)


def add_drawn(instances: pd.DataFrame) -> pd.DataFrame:
    """The rows with what figures 3 and 4 show of attention's top item and a drawn one.

    drawn_negative, whether the drawn one changes the output more (0 or 1); delta_alpha_where_negative and _elsewhere,
    how much more the top one weighs in these texts and in the others; near_zero_at_large, of texts where it weighs more
    by LARGE and changes the output more, whether by less than NEAR_ZERO. NaN in other texts, and in those of one item.
    """
    alpha, js = (instances[f"top_attention_paper_delta_{name}"] for name in ("alpha", "js"))
    declare("drawn_negative", "fraction", "drawn item")
    declare("top_attention_negative", "fraction", "all others")
    declare("delta_alpha_where_negative", "fraction", "lead there", CHANGE_BOUNDS)
    declare("delta_alpha_elsewhere", "fraction", "lead elsewhere", CHANGE_BOUNDS)
    declare("near_zero_at_large", "fraction", "below .05")
    return instances.assign(
        drawn_negative=(js < 0).astype(float).where(js.notna()),
        delta_alpha_where_negative=alpha.where(js < 0),
        delta_alpha_elsewhere=alpha.where(js >= 0),
        near_zero_at_large=(js < NEAR_ZERO).astype(float).where(alpha.between(*LARGE) & (js > 0)),
    )


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


# --- until the decision flips


def weights_on_words(instances: pd.DataFrame, position: int, tokens: Sequence[str]) -> dict[str, np.ndarray]:
    """The attention of each encoder over the words of one text, of its first seed; none where it is over sentences."""
    rows = instances[instances["instance"].eq(position)].drop_duplicates("encoder")
    weights = dict(zip(rows["encoder"].map(title_of), rows["attention_weights"], strict=True))
    return {encoder: values for encoder, values in weights.items() if len(values) == len(tokens)}


def item_names(tokens: Sequence[str], output: ModelOutput) -> list[str]:
    """The names of what one text's attention is over: its tokens, or sentence 1, sentence 2, ..."""
    count = int(output.mask.sum())
    return list(tokens) if count == len(tokens) else [f"sentence {number}" for number in range(1, count + 1)]


def erasure_steps(
    model: AttentionModel, output: ModelOutput, rankings: Mapping[str, Ranking], items: Sequence[str], most: int = 10
) -> pd.DataFrame:
    """One text as its items are erased: of each ranking the item that goes, and then the first decision's probability.

    Args:
        output: of that text alone. items: the names of what is attended to, words or sentences. most: rows.
    """
    places = output.mask[0].nonzero().squeeze(-1).tolist()
    names = dict(zip(places, items, strict=True))
    steps = pd.DataFrame({"erased": range(1 + min(most, len(places)))})
    for name, ranking in rankings.items():
        order, after = erasure_curve(model, output, ranking(model, output))
        erased = ["", *(f"{names[place]}, " for place in order[0, : len(steps) - 1].tolist())]
        decided, chances = int(after[0, 0].argmax()), after[0, : len(steps)]
        flipped = [", flipped" if decision != decided else "" for decision in chances.argmax(dim=-1).tolist()]
        cells = zip(erased, chances[:, decided].tolist(), flipped, strict=True)
        steps[column_title(name)] = [f"{item}{chance:.3f}{mark}" for item, chance, mark in cells]
    return steps


def column_title(ranking: str) -> str:
    """A ranking as a column's title."""
    return title_of(ranking).capitalize()


def orders(instances: pd.DataFrame, ranking: str, part: str) -> pd.DataFrame:
    """(text, order): the column removed_<ranking>_<part>; of random orders removed_random_1_<part>, _2_<part>, ..."""
    if ranking != "random":
        return instances[[f"removed_{ranking}_{part}"]]
    names = (f"removed_random_{order}_{part}" for order in count(1))
    return instances[list(takewhile(instances.columns.__contains__, names))]


def add_flips(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows with what erasing along each ranking says of each text, as fractions; of random orders their mean.

    removed_<ranking>_fraction       of the items, until the decision flips; NaN where it never does
    flips_<ranking>                  whether it ever flips, 0 or 1; NaN for a text of one item
    removed_over_half_<ranking>      whether more than half of the items go before it flips, of the texts where it does
    removed_all_<ranking>            whether it flips only when nothing is left
    """
    several, columns = instances["removed_items"] > 1, {}
    for name in rankings:
        fractions = orders(instances, name, "fraction")
        flips = fractions.notna().mean(axis=1)
        if name == "fewest":  # known of a run whose read-out is affine
            runs = instances.groupby([*RUN_COLUMNS, "seed"], dropna=False)
            flips = flips.where(runs["removed_fewest_count"].transform("count") > 0)
        title = column_title(name)
        columns[declare(f"removed_{name}_fraction", "fraction", title)] = fractions.mean(axis=1)
        columns[declare(f"flips_{name}", "fraction", title)] = flips.where(several)
        for part, is_so in (("over_half", fractions > 0.5), ("all", fractions == 1)):
            late = is_so.where(fractions.notna()).astype(np.float64).mean(axis=1)
            columns[declare(f"removed_{part}_{name}", "fraction", title)] = late
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


def box_medians(long: pd.DataFrame, part: str = "fraction") -> pd.DataFrame:
    """The medians of the boxes of `ranking_rows`, in the columns of `summarise`, without intervals.

    removed_<ranking>_<part>_median, over all texts, seeds and random orders.
    """
    rows = []
    for key, group in configurations(long.dropna(subset=[f"removed_{part}"])):
        for ranking, same in group.groupby("ranking", sort=False):
            quantity = declare(f"removed_{ranking}_{part}_median", UNITS[part], column_title(ranking))
            row = {"quantity": quantity, "value": same[f"removed_{part}"].median(), "unit": unit_of(quantity)}
            rows.append(key | row | {"n": same["instance"].nunique(), "seeds": same["seed"].nunique()})
    return pd.DataFrame(rows, columns=SUMMARY)


# --- which ranking flips the decision sooner


def add_sooner(instances: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """The rows with sooner_<first>_than_<second>: 1 where the first ranking flips with fewer items, -1 the second.

    0 where they tie. A ranking along which the decision never flips loses; NaN where it does along neither.
    """
    counts = [instances[f"removed_{name}_count"] for name in (first, second)]
    a, b = (each.fillna(np.inf) for each in counts)
    sign = ((a < b).astype(float) - (a > b)).where(counts[0].notna() | counts[1].notna())
    return instances.assign(**{declare(f"sooner_{first}_than_{second}", "fraction", None, CHANGE_BOUNDS): sign})


def flips_sooner(instances: pd.DataFrame, pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """Along which of two rankings does the decision flip with fewer items (section 5.4)? A row a model and pair.

    Returns:
        the run's columns, quantity, value (the ratio of the two counts of texts) with its 95% interval low, high over
        texts and seeds, first, second, first_sooner, second_sooner (shares of the texts that one of them flips),
        left_out (texts that neither flips in any seed), n, seeds.
    """
    rows = []
    for (first, second), (key, group) in product(pairs, list(configurations(instances))):
        signs = sooner_signs(group, first, second)
        effect, known = sooner_ratio(signs), signs.notna()
        title = f"{title_of(first)} : {title_of(second)}"
        row = {
            "quantity": declare(f"ratio_{first}_sooner_than_{second}", "1", title),
            "value": float(np.exp(effect.value)),
        }
        row |= dict(zip(("low", "high"), map(float, np.exp(effect.interval())), strict=True))
        row |= {"first": first, "second": second}
        row |= {f"{name}_sooner": (signs.eq(sign).sum() / known.sum()).mean() for name, sign in SIDES.items()}
        several = seed_table(group, "removed_items").gt(1).any(axis=1)
        row |= {"left_out": int((several & ~known.any(axis=1)).sum()), "n": effect.n, "seeds": signs.shape[1]}
        rows.append(key | row)
    return pd.DataFrame(rows)


def sooner_signs(group: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """(text, seed) sooner_<first>_than_<second> of one configuration."""
    return seed_table(add_sooner(group, first, second), f"sooner_{first}_than_{second}")


def sooner_ratio(signs: pd.DataFrame) -> Effect:
    """log of the ratio of two counts: texts in which the first ranking flips sooner, to those of the second.

    The mean counts over the seeds. Where one has fewer than FEW_TEXTS, se is that of two Poisson counts.

    Args:
        signs: of `sooner_signs`.
    """
    wins = np.stack([signs.eq(sign).to_numpy(np.float64) for sign in SIDES.values()])  # (which, text, seed)
    by_run = wins.sum(axis=1)
    means = by_run.mean(axis=1)
    samples = bootstrap(lambda weights: np.moveaxis(weights @ wins, 0, 1), len(signs), DRAWS).mean(axis=2)
    few = means.min() < FEW_TEXTS
    se = float(np.sqrt((1 / (means + 0.5)).sum())) if few else standard_error(log_ratio(*samples.T))
    n, ratios = int(signs.notna().any(axis=1).sum()), number_by_seed(signs.columns, log_ratio(*by_run))
    return Effect("log_ratio", float(log_ratio(*means)), ratios, se, n)


def log_ratio(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """log of the ratio of two counts, half a count added to each (Haldane 1956); NaN where both are 0."""
    return np.where(first + second > 0, np.log((first + 0.5) / (second + 0.5)), np.nan)


def add_optimality(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows with optimal_<ranking>: 1 where it needs no item more than the fewest possible, else 0.

    Of texts that some set of items flips; a ranking along which it never flips is not optimal.
    """
    fewest = instances["removed_fewest_count"]
    same = {name: (instances[f"removed_{name}_count"] == fewest).astype(float) for name in rankings}
    names = {name: declare(f"optimal_{name}", "fraction", column_title(name)) for name in same}
    return instances.assign(**{names[name]: values.where(fewest.notna()) for name, values in same.items()})
