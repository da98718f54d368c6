"""How much F1 a model loses when its attention is replaced at test time (Tutek & Snajder 2020, section 4.1)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.analysis.contrast import compared, group_of, same_seeds
from lib.analysis.statistics import bootstrap, mean_over, weighted_f1
from lib.analysis.summarising import SUMMARY, by_seed, configurations, spread

UNDER = "under"  # the name under which `substituted` is measured
DROPS = ("f1_drop_uniform", "f1_drop_permuted")
FRAGILITY = ("f1", "f1_uniform", "f1_permuted", *DROPS)


def fragility(
    instances: pd.DataFrame, quantities: Sequence[str] = ("f1", *DROPS), draws: int = 1000, seed: int = 0
) -> pd.DataFrame:
    """F1 with the trained attention, and what is left or lost with other attention, in the columns of `summarise`.

    f1_uniform and f1_permuted are F1 under equal weights and under random orders, the mean of each order's own F1; the
    drops are these less f1, so below 0 where the model loses, as the paper prints them. Intervals pair texts and seeds.

    Args:
        instances: measured with {"under": substituted(...)}.
        quantities: some of FRAGILITY.
    """
    places = {name: position(name) for name in quantities}
    rows = []
    for key, group in configurations(instances):
        tables = Tables(group)
        samples = bootstrap(tables.scores, len(tables.label), draws, seed)  # (draw, quantity, seed)
        ours = tables.scores(np.ones((1, len(tables.label))))[0]
        for name, which in places.items():
            value, by_draw = float(mean_over(0, ours[which])), mean_over(1, samples[:, which])
            row = key | {"quantity": name, "value": value, "unit": "fraction"}
            row |= spread(value, by_draw, ours[which], name)
            undefined = int(np.isnan(ours[which]).sum())
            rows.append(row | {"n": len(tables.label), "seeds": ours.shape[1], "undefined": undefined, "left_out": 0})
    return pd.DataFrame(rows, columns=SUMMARY)


def fragility_difference(
    instances: pd.DataFrame,
    between: tuple[dict, dict],
    quantities: Sequence[str] = ("f1", *DROPS),
    draws: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Some of FRAGILITY of the first group less those of the second, on the same texts and seeds, in pairs.

    A row for each quantity, as lib.analysis.difference gives it. A drop that is lower is deeper: the first model is
    the more fragile one.

    Raises:
        KeyError: unknown quantity. ValueError: a group is empty or mixes configurations; the texts are not the same.
    """
    which = [position(name) for name in quantities]
    groups = [group_of(instances, where) for where in between]
    shared = same_seeds([by_seed(group, "label") for group in groups], between)
    if not shared[0].index.equals(shared[1].index):
        raise ValueError(f"{between[0]} and {between[1]} were measured on other texts; the comparison is paired")
    pair = [Tables(group[group["seed"].isin(shared[0].columns)]) for group in groups]
    texts = len(shared[0])
    of_seeds = [tables.scores(np.ones((1, texts)))[0] for tables in pair]  # (quantity, seed)

    def apart(weights: np.ndarray) -> np.ndarray:
        first, second = (mean_over(2, tables.scores(weights)) for tables in pair)
        return first - second

    samples = bootstrap(apart, texts, draws, seed)  # (draw, quantity)
    rows = []
    for name, row in zip(quantities, which, strict=True):
        values = [of[row] for of in of_seeds]
        means = [float(mean_over(0, of)) for of in values]
        rows.append(compared(name, means, samples[:, row], values, texts, paired=True))
    return pd.DataFrame(rows)


def position(quantity: str) -> int:
    """Where a quantity stands in FRAGILITY; KeyError with the known ones otherwise."""
    if quantity not in FRAGILITY:
        raise KeyError(f"unknown quantity {quantity!r}; known: {', '.join(FRAGILITY)}")
    return FRAGILITY.index(quantity)


class Tables:
    """Predictions of one configuration, its instances paired: trained and uniform (instance, seed), and permuted."""

    def __init__(self, group: pd.DataFrame):
        missing = [name for name in ("uniform", "permuted") if f"{UNDER}_{name}" not in group]
        if missing:
            raise KeyError(f"no column '{UNDER}_{missing[0]}': measure with {{'{UNDER}': substituted(...)}}")
        self.label = by_seed(group, "label").to_numpy()[:, 0]
        single = [by_seed(group, column).to_numpy() for column in ("prediction", f"{UNDER}_uniform")]
        permuted = group.pivot(index="instance", columns="seed", values=f"{UNDER}_permuted")
        permuted = np.stack([np.stack(permuted[seed].to_list()) for seed in permuted], axis=1)  # instance, seed, draw
        self.predictions = np.concatenate([np.stack(single, axis=2), permuted], axis=2)
        self.classes = max(2, int(max(self.label.max(), self.predictions.max())) + 1)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """weights (draw, instance) -> (draw, quantity of FRAGILITY, seed)."""
        f1 = weighted_f1(weights, self.label, self.predictions, self.classes)
        trained, uniform, permuted = f1[..., 0], f1[..., 1], mean_over(2, f1[..., 2:])
        return np.stack([trained, uniform, permuted, uniform - trained, permuted - trained], axis=1)
