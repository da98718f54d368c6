"""Jain & Wallace (2019): rank correlation of measures over the tokens of a text, and how far other attention gets.

Also the rank correlation of a dial with a quantity's mean (Meister et al. 2021).
"""

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lib.analysis.measuring import RUN, batches_of, measure
from lib.analysis.statistics import t_interval, weighted_median
from lib.analysis.summaries import SUMMARY, configurations, mean_effect, summarise
from lib.analysis.token_values import column_of, pass_on, token_values
from lib.datasets.corpus import UNKNOWN
from lib.importance import every_map
from lib.importance.leave_one_out import mask_one_out
from lib.metrics import kendall_tau
from lib.models.huggingface import HuggingFaceClassifier
from lib.numerics import by_length
from lib.quantity import JSD_BOUNDS, RUN_COLUMNS, Quantity, declare, tau_name, title_of
from lib.training import Trained

SIGNIFICANT = 0.05
MAPS = [declare("map_tau", "tau-b", "tau with leave-one-out"), declare("map_by_chance", "tau-b", "the same, shuffled")]
MAPS += [declare("map_mask", "tau-b", "the same, by [MASK]"), declare("map_sign", "fraction", "by [MASK] opposite")]
MAPS += [declare("map_special", "fraction", "weight on start and end"), declare("map_top", "fraction", "same top word")]
CELLS = 2**20  # most tokens in one call of kendall_tau
# 1 where a token has a vector, 0 where it is the unknown word or its vector is zeros: of zeros gradient x input is 0.
known = Quantity("known", lambda _, batch, output: (batch.tokens != UNKNOWN) & output.embeddings.any(-1), "fraction")


def correlate(instances: pd.DataFrame, pairs: Iterable[tuple[str, str]], among: str = "") -> pd.DataFrame:
    """The instances with Kendall's tau-b of each pair of token-level columns, over each text's own tokens.

    Jain & Wallace (2019), section 4.1. The pair ("attention", "gradient_times_input") gives the columns
    kendall_tau_attention_vs_gradient_times_input (tau-b), ..._p (two-sided) and ..._significant (1 where p <= .05).
    Undefined taus (a constant vector, a text of one token) are NaN in all three; a text that one of the two measures
    left out is left out here. KeyError: no such column. ValueError: the two arrays of a text differ in length.
    With `among`, a column of 1 and 0 for each token such as "known", the taus are over the tokens that have 1, and
    their columns are called kendall_tau_attention_vs_gradient_times_input_known and so on.
    """
    result = instances.copy()
    for pair in pairs:
        name, sides = tau_name(pair), [token_values(instances, side) for side in pair]
        if among:
            title, some = f"{title_of(name)}, {among} words", token_values(instances, among)
            name = declare(tau_name((pair[0], f"{pair[1]}_{among}")), "tau-b", title)
            sides = [[x if x is None else x[one > 0] for x, one in zip(side, some, strict=True)] for side in sides]
        tau, p = taus(*sides)
        columns = {name: tau, f"{name}_p": p, f"{name}_significant": np.where(np.isnan(p), np.nan, p <= SIGNIFICANT)}
        left_out = pass_on(result["left_out"], map(column_of, pair), tuple(columns))
        result = result.assign(**columns, left_out=left_out)
    return result


def add_unknown(instances: pd.DataFrame) -> pd.DataFrame:
    """The instances with what is on tokens that are not `known`: unknown_text (1 where there is one), ..._share and
    ..._attention (of the text's tokens and weights), fractions.
    """
    weights, unknown = token_values(instances, "attention"), [one == 0 for one in token_values(instances, "known")]
    parts = np.array([(of.any(), of.mean(), own[of].sum()) for own, of in zip(weights, unknown, strict=True)])
    names = [declare(f"unknown_{part}", "fraction") for part in ("text", "share", "attention")]
    return instances.assign(**dict(zip(names, parts.T, strict=True)))


def taus(first: list, second: list) -> tuple[np.ndarray, np.ndarray]:
    """(tau-b, p-value), each (instance,), of pairs of arrays; NaN where undefined or where an array is None."""
    tau, p = np.full(len(first), np.nan), np.full(len(first), np.nan)
    lengths = [0 if a is None or b is None else len(a) for a, b in zip(first, second, strict=True)]
    for row in np.flatnonzero(lengths):
        if lengths[row] != len(second[row]):
            raise ValueError(f"row {row}: one measure has {lengths[row]} tokens, the other {len(second[row])}")
    lengths = torch.tensor(lengths, dtype=torch.long)
    for rows in map(Tensor.numpy, by_length(lengths, CELLS)):
        mask = torch.arange(int(lengths[rows].max())) < lengths[rows, None]
        sides = ([torch.tensor(side[row], dtype=torch.float64) for row in rows] for side in (first, second))
        x, y = (pad_sequence(side, batch_first=True) for side in sides)
        tau[rows], p[rows] = (part.numpy() for part in kendall_tau(x, y, mask))
    return tau, p


def audit(trained: Sequence[Trained], instances: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`summarise` of what every map of a Hugging Face classifier shows: of heads, for a heat map, and of other maps.

    A map's name is in `attention`; of other models there is none. MAPS: tau-b with leave-one-out (`instances` have it,
    and with its sign), of the weights shuffled in each text too, and with `mask_one_out`; whether one says of the top
    word that it speaks for the prediction, the other against; the weight on start and end; whether it is the same word.
    """
    found, random = [], np.random.default_rng(0)
    for one in (one for one in trained if isinstance(one.model, HuggingFaceClassifier)):
        quantities = [every_map(one.model), mask_one_out]
        maps = measure(one.model, batches_of(one), quantities, one.run).dropna(subset="mask_one_out_signed")
        mine = instances[instances["seed"] == one.run.seed].dropna(subset="leave_one_out_signed")
        deleted, masked = mine["leave_one_out_of_input"].tolist(), maps["mask_one_out_of_input"].tolist()
        signs = [x * y for x, y in zip(mine["leave_one_out_signed"], maps["mask_one_out_signed"], strict=True)]
        for column in maps.filter(regex="^map_"):
            own, shuffled = maps[column].tolist(), [random.permutation(weights) for weights in maps[column]]
            values = [taus(*pair)[0] for pair in ((own, deleted), (shuffled, deleted), (own, masked))]
            opposite = [sign[weights.argmax()] < 0 for weights, sign in zip(own, signs, strict=True)]
            tops = [x.argmax() == y.argmax() if np.ptp(y) else np.nan for x, y in zip(own, deleted, strict=True)]
            values += [*np.array([opposite, [1 - weights.sum() for weights in own], tops], dtype=float)]
            rows = maps[[*RUN, "instance", "left_out"]].assign(attention=column.removeprefix("map_"))
            found.append(rows.assign(**dict(zip(MAPS, values, strict=True))))
    summary = summarise(pd.concat(found), MAPS) if found else pd.DataFrame(columns=SUMMARY)
    heads = summary["attention"].astype(str).str.extract(r"(?P<layer>layer \d+), (?P<explanation>head \d+)")
    cells = summary.assign(**heads, share=summary["value"], low=np.nan, high=np.nan)
    return cells[heads["layer"].notna() & cells["quantity"].isin([MAPS[0], *MAPS[-2:]])], summary[heads["layer"].isna()]


def two_classes(instances: pd.DataFrame) -> tuple[int, ...]:
    """The classes, where there are two; none where there are more."""
    return (0, 1) if instances[["label", "prediction"]].max().max() < 2 else ()


def permutation_medians(instances: pd.DataFrame) -> pd.DataFrame:
    """The median change by permuting, by the largest weight (bins of .25) and the predicted class: figure 6."""
    rows = []
    for key, group in configurations(instances):
        bins = np.ceil(group["max_attention"].clip(1e-9) * 4)
        for place, kind in product(range(1, 5), two_classes(instances)):
            title = f"median change, weight to {place / 4}, class {kind}"
            name = declare(f"permutation_median_bin_{place}_class_{kind}", "fraction", title)
            inside = group["permutation"].where(bins.eq(place) & group["prediction"].eq(kind))
            median = mean_effect(group.assign(**{name: inside}), name, middle=weighted_median)
            row = {"quantity": name, "value": median.value, "unit": "fraction", "of_seeds": median.by_run}
            rows += [key | row | {"se_texts": median.se, "n": median.n}] if median.n else []
    return pd.DataFrame(rows, columns=[*RUN_COLUMNS, "quantity", "value", "unit", "of_seeds", "se_texts", "n"])


def add_permutation_shares(instances: pd.DataFrame, uniform: float) -> pd.DataFrame:
    """With `permutation` of texts whose attention is not uniform, and as a share of the largest change, and by chance.

    uniform: the share of the largest entropy beyond which attention counts as such.
    """
    uneven, most = instances["entropy_of_attention"] <= uniform, instances["largest_change"]
    names = "permutation_of_uneven", "permutation_share", "permutation_share_by_chance"
    shares = (change := instances["permutation"]), (change / most).where(most > 0), instances[names[2]]
    columns = zip(names, shares, strict=True)
    return instances.assign(**{declare(name, "fraction"): values.where(uneven) for name, values in columns})


def add_adversary_shares(instances: pd.DataFrame) -> pd.DataFrame:
    """With the JSD of the adversary, the optimum where it is known, and of that by chance, as shares of the largest.

    Also whether search and optimum get to half of ln 2 (..._far), and to .9 of the largest (..._farthest): 1 or 0.
    """
    most = instances["largest_jsd"].where(instances["length"] > 1)
    method = "exact" if "adversary_exact_jsd" in instances else "gradient"
    shares = {"adversary_share": instances[f"adversary_{method}_jsd"] / most}
    shares["chance_share"] = instances[f"adversary_{method}_by_chance"] / most
    for name in ("adversary_gradient", "adversary_exact"):
        if f"{name}_jsd" in instances:
            share = instances[f"{name}_jsd"] / most
            far = (share * most >= JSD_BOUNDS[1] / 2, share >= 0.9)
            shares[f"{name}_far"], shares[f"{name}_farthest"] = (of.astype(float).where(share.notna()) for of in far)
    return instances.assign(**{declare(name, "fraction"): share for name, share in shares.items()})


def trend(instances: pd.DataFrame, by: str, quantity: str) -> dict[str, object]:
    """Kendall's tau-b between a dial, the column `by`, and a quantity's mean over the texts.

    Meister et al. (2021), table 2. tau is the mean over seeds of `taus_by_seed`, with tau_low and tau_high
    (`t_interval`), sd_seeds, first and last (the quantity's mean at either end), points, seeds, n (texts).
    """
    means = instances.groupby(["seed", by])[quantity].mean().unstack()
    taus = pd.Series(taus_by_seed(means)[1]).dropna()
    low, high = np.clip(t_interval(taus.to_numpy()), -1, 1)
    row = {"quantity": quantity, "tau": taus.mean(), "tau_low": low, "tau_high": high, "sd_seeds": taus.std()}
    row |= {"first": means.iloc[:, 0].mean(), "last": means.iloc[:, -1].mean()}
    return row | {"points": means.shape[1], "seeds": len(means), "n": instances["instance"].nunique()}


def trends(instances: pd.DataFrame, by: str, quantities: Iterable[str]) -> pd.DataFrame:
    """`trend` of each quantity in each configuration: a row each, with the run columns."""
    models = list(configurations(instances))
    rows = [key | trend(rows, by, name) for name in quantities for key, rows in models]
    named = ["quantity", "tau", "tau_low", "tau_high", "sd_seeds", "first", "last", "points", "seeds", "n"]
    return pd.DataFrame(rows, columns=[*RUN_COLUMNS, *named])


def taus_by_seed(means: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """The part of `means` that counts, and Kendall's tau-b of its columns (the dial) with each of its rows (a seed).

    Where seeds have different points, those count that all have, if they are three or more. NaN for fewer points.
    """
    shared = means.dropna(axis=1) if means.notna().all().sum() >= 3 else means
    if shared.shape[1] < 3:
        return shared, np.full(len(shared), np.nan)
    at, values = (torch.tensor(np.array(part, dtype=float)) for part in (shared.columns, shared))
    tau, _ = kendall_tau(at.expand_as(values), values, torch.ones_like(values, dtype=torch.bool))
    return shared, tau.numpy()
