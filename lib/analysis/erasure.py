"""Rankings compared by erasing their items: does the decision flip, and after how many (Serrano & Smith 2019)."""

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from lib.analysis.statistics import Effect, bootstrap, number_by_seed, standard_error
from lib.analysis.summaries import DRAWS, configurations, seed_table, summarise
from lib.quantity import CHANGE_BOUNDS, RUN_COLUMNS, declare, title_of

CELLS = ("flip_both", "flip_top_only", "flip_random_only", "flip_neither")
FEW_TEXTS = 5  # on one side: the bootstrap says nothing of the ratio of two counts
LEAD = 0.3, 0.5  # in attention, of the top item before the drawn one: around the 0.4 of Serrano & Smith, section 4.1
NEAR_ZERO = 0.05  # nats
AT = tuple(np.linspace(0, 1, 11).round(1).tolist())  # fractions of a text's items


# --- one item


def add_drawn(instances: pd.DataFrame) -> pd.DataFrame:
    """The rows with what the top item of attention does beside others; `instances` have single_erasure as "top".

    drawn_negative         whether the drawn item of figures 3 and 4 changes the output more than the top one
    drawn_near_zero        whether the top one changes it more by less than NEAR_ZERO, of texts with a lead within LEAD
                           in which it changes it more
    top_share_js           of texts with such a lead: the top item's JSD, share of the largest of any single item
    top_others_share_js    the mean of all other items' JSD, the same share
    """
    js, lead = (instances[f"top_attention_paper_delta_{name}"] for name in ("js", "alpha"))
    leads, largest = lead.between(*LEAD), instances["top_largest_js"]
    declare("top_attention_negative", "fraction", "all others")
    near = f"ΔJS below {NEAR_ZERO:g} nats"
    columns = {
        declare("drawn_negative", "fraction", "drawn item"): (js < 0).astype(float).where(js.notna()),
        declare("drawn_near_zero", "fraction", near): (js < NEAR_ZERO).astype(float).where(leads & (js > 0)),
    }
    for name, part, of in (("top_share", "js", "top item"), ("top_others_share", "others_js", "others")):
        share = instances[f"top_attention_{part}"] / largest.where(leads & (largest > 0))
        columns[declare(f"{name}_js", "fraction", f"{of}, share of the largest")] = share
    return instances.assign(**columns)


def flip_tables(instances: pd.DataFrame, rankings: Iterable[str], ways: Iterable[str]) -> pd.DataFrame:
    """Does erasing the top item of a ranking flip the decision, and does another item? Shares of CELLS, which sum to 1.

    `summarise` of each ranking and way: "expected" over all other items, or the one drawn as in the "paper" or its
    "authors_code". `instances` have single_erasure as "top"; a text of one item has no value.
    """
    tables = []
    for ranking, way in product(rankings, ways):
        top = instances[f"top_{ranking}_flip"]
        other = instances[f"top_{ranking}_{'others' if way == 'expected' else way}_flip"]
        values = (top * other, top * (1 - other), (1 - top) * other, (1 - top) * (1 - other))
        cells = instances.assign(**dict(zip(CELLS, values, strict=True)))
        tables.append(summarise(cells, CELLS).assign(ranking=ranking, way=way))
    return pd.concat(tables, ignore_index=True)


# --- until the decision flips


def orders(instances: pd.DataFrame, ranking: str, part: str = "fraction") -> pd.DataFrame:
    """(text, order): the column removed_<ranking>_<part>; of random orders removed_random_1_<part>, _2_, ..."""
    name = r"random_\d+" if ranking == "random" else ranking
    return instances.filter(regex=f"^removed_{name}_{part}$")


def add_flips(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows with what erasing along each ranking says of each text, as fractions; of random orders their mean.

    removed_<ranking>_fraction       of the items, until the decision flips; NaN where it never does
    flips_<ranking>                  whether it ever flips, 0 or 1; NaN for a text of one item
    removed_over_half_<ranking>      whether more than half of the items go before it flips, of the texts where it does
    """
    several, columns = instances["removed_items"] > 1, {}
    for name in rankings:
        fractions, title = orders(instances, name), title_of(name).capitalize()
        flips = fractions.notna().mean(axis=1)
        if name == "fewest":  # known of a run whose read-out is affine
            runs = instances.groupby([*RUN_COLUMNS, "seed"], dropna=False)
            flips = flips.where(runs["removed_fewest_count"].transform("count") > 0)
        late = (fractions > 0.5).where(fractions.notna()).astype(np.float64)
        columns[declare(f"removed_{name}_fraction", "fraction", title)] = fractions.mean(axis=1)
        columns[declare(f"flips_{name}", "fraction", title)] = flips.where(several)
        columns[declare(f"removed_over_half_{name}", "fraction", title)] = late.mean(axis=1)
    return instances.assign(**columns)


def ranking_rows(instances: pd.DataFrame, rankings: Sequence[str], part: str = "fraction") -> pd.DataFrame:
    """A row per text, ranking and random order: ranking, removed_<part>, a "fraction" of the items or their "mass"."""
    titles = {"fraction": "items removed, fraction", "mass": "attention removed"}
    removed = declare(f"removed_{part}", "fraction", titles[part])
    kept = instances[[*RUN_COLUMNS, "seed", "instance", "prediction"]]
    each = [(name, values) for name in rankings for _, values in orders(instances, name, part).items()]
    return pd.concat([kept.assign(ranking=name, **{removed: values}) for name, values in each], ignore_index=True)


def on_same_texts(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """The rows with removed_<ranking>_fraction of texts that flip along every ranking and order alone, else NaN.

    On these no ranking needs fewer items than "fewest"; along each alone, as in the paper, it may be of other texts.
    """
    found = [f"removed_{name}_fraction" for name in rankings]
    needed = pd.concat([instances[found], *(orders(instances, name) for name in rankings)], axis=1)
    every = needed.dropna(axis=1, how="all").notna().all(axis=1)
    return instances.assign(**{name: instances[name].where(every) for name in found})


def flip_curves(instances: pd.DataFrame, rankings: Iterable[str]) -> pd.DataFrame:
    """In what share of the texts has the decision flipped after a fraction `at` of the items (AT) along each ranking?

    `summarise` of flipped_<ranking>; texts of one item are left out, those that never flip count as not flipped. None
    is above that of "fewest", the largest share that any order or set of so many items reaches.
    """
    several, tables = instances["removed_items"] > 1, []
    for name, at in product(rankings, AT):
        fractions = orders(instances, name)
        flipped = (fractions <= at).mean(axis=1).where(several & fractions.notna().any(axis=None))
        column = declare(f"flipped_{name}", "fraction", title_of(name))
        tables.append(summarise(instances.assign(**{column: flipped}), [column]).assign(at=at))
    return pd.concat(tables, ignore_index=True)


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

    value is the ratio of the two counts of texts, with its 95% interval low, high over texts and seeds; first_sooner
    and second_sooner are shares of the texts that one of them flips, left_out counts those of a run that neither does.
    """
    rows = []
    for (first, second), (key, group) in product(pairs, list(configurations(instances))):
        signs = sooner_signs(group, first, second)
        effect, known = sooner_ratio(signs), signs.notna()
        low, high = np.exp(effect.interval())
        name = declare(f"ratio_{first}_sooner_than_{second}", "1", f"{title_of(first)} : {title_of(second)}")
        several = seed_table(group, "removed_items").gt(1).any(axis=1)
        shares = [(signs.eq(sign).sum() / known.sum()).mean() for sign in (1, -1)]
        row = {"quantity": name, "value": float(np.exp(effect.value)), "unit": "1", "low": low, "high": high}
        row |= {"first": first, "second": second, "first_sooner": shares[0], "second_sooner": shares[1]}
        row |= {"left_out": round((~known)[several].sum().mean()), "n": effect.n, "seeds": signs.shape[1]}
        of_seeds = {seed: float(np.exp(value)) for seed, value in effect.by_run.items()}
        row |= {"of_seeds": of_seeds, "se_texts": row["value"] * effect.se}
        rows.append(key | row)
    return pd.DataFrame(rows)


def sooner_signs(group: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """(text, seed) sooner_<first>_than_<second> of one configuration."""
    return seed_table(add_sooner(group, first, second), f"sooner_{first}_than_{second}")


def sooner_ratio(signs: pd.DataFrame) -> Effect:
    """log of the ratio of two counts, by `sooner_signs`: texts in which the first ranking flips sooner, to the second.

    The mean counts over the seeds. Where one has fewer than FEW_TEXTS, se is that of two Poisson counts.
    """
    wins = np.stack([signs.eq(sign).to_numpy(np.float64) for sign in (1, -1)])  # (which, text, seed)
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


# --- in how many models


def counted_models(values: pd.DataFrame, left_out: pd.DataFrame) -> pd.DataFrame:
    """In how many models what Serrano & Smith count is so (sections 5.4, A.3), with exact 95% limits of the share.

    Args:
        values: kept rows of `flips_sooner` and `flip_tables`, of several datasets; a model is a dataset and encoder.
        left_out: dataset and encoder of models that do not count.
    """
    model = ["dataset", "encoder"]
    rows = values.reindex(columns=[*model, "quantity", "way", "ranking", "value", "first_sooner"])  # there may be none
    rows = rows[~pd.MultiIndex.from_frame(rows[model]).isin(pd.MultiIndex.from_frame(left_out[model]))]
    rows = rows.astype({"encoder": str, "value": float, "first_sooner": float})
    duels = rows[rows["quantity"].eq("ratio_gradient_sooner_than_attention") & ~rows["encoder"].str.endswith("noenc")]
    flips = rows[rows["quantity"].isin(CELLS[:2]) & rows["way"].eq("expected")]
    flips = flips.groupby([*model, "ranking", "quantity"])["value"].mean().groupby([*model, "ranking"]).sum()
    top = flips.unstack().reindex(columns=["attention", "gradient", "product"])
    counts = {
        "gradient sooner than attention in over half of the texts": duels.groupby(model)["first_sooner"].mean() > 0.5,
        "the gradient's top item flips fewer decisions than attention's": top["gradient"] < top["attention"],
        "gradient × attention's top item flips more": top["product"] > top["attention"],
    }
    found = []
    for what, so in counts.items():  # limits by Clopper & Pearson (1934)
        limits = binomtest(int(so.sum()), len(so)).proportion_ci() if len(so) else (0.0, 1.0)
        found.append((what, f"{so.sum()} of {len(so)}", *limits))
    return pd.DataFrame(found, columns=["what", "models", "low", "high"])
