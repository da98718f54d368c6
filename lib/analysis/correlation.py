"""Rank correlation: of two measures over the tokens of a text, and of a quantity's mean with a hyperparameter."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from scipy.stats import false_discovery_control, norm, rankdata

from lib.analysis.measuring import measure_all
from lib.analysis.statistics import bootstrap, interval_over_texts_and_seeds, mean_over, ratio, weighted_mean
from lib.analysis.summarising import SUMMARY, by_seed, summarise
from lib.analysis.token_values import column_of, inherited, token_values
from lib.metrics import kendall_tau
from lib.quantity import RUN_COLUMNS, Quantity, tau_name
from lib.training import Trained

LEVEL = 0.05
CELLS = 2_000_000  # most pairs of tokens in one call of kendall_tau
MEASURES = ("tau", "spearman")


def correlate(instances: pd.DataFrame, pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    """The instances with Kendall's tau-b of each pair of token-level columns, over each text's own tokens.

    Jain & Wallace (2019), section 4.1. The pair ("attention", "gradient_times_input") gives the columns
    kendall_tau_attention_vs_gradient_times_input (tau-b), ..._p (two-sided) and ..._significant (1 where p <= .05).
    Undefined taus (a constant vector, a text of one token) are NaN in all three; a text that one of the two measures
    left out is left out here. "attention" reads the column attention_weights.

    Raises:
        KeyError: no such column. ValueError: the two arrays of a text differ in length.
    """
    result = instances.copy()
    for pair in pairs:
        name = tau_name(pair)
        tau, p = taus(*(token_values(instances, side) for side in pair))
        columns = {name: tau, f"{name}_p": p, f"{name}_significant": np.where(np.isnan(p), np.nan, p <= LEVEL)}
        left_out = inherited(result["left_out"], map(column_of, pair), tuple(columns))
        result = result.assign(**columns, left_out=left_out)
    return result


def taus(first: list, second: list) -> tuple[np.ndarray, np.ndarray]:
    """(tau-b, p-value), each (instance,), of pairs of arrays; NaN where undefined or where an array is None."""
    tau, p = np.full(len(first), np.nan), np.full(len(first), np.nan)
    for rows in of_one_length(first, second):
        lengths = torch.tensor([len(first[row]) for row in rows])
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        x, y = (padded([side[row] for row in rows], mask) for side in (first, second))
        tau[rows], p[rows] = (part.numpy() for part in kendall_tau(x, y, mask))
    return tau, p


def of_one_length(first: list, second: list) -> Iterator[list[int]]:
    """Positions of pairs of arrays, in batches of nearly one length with a bounded number of pairs of tokens."""
    lengths = np.array([0 if a is None or b is None else len(a) for a, b in zip(first, second, strict=True)])
    for row in np.flatnonzero(lengths):
        if len(first[row]) != len(second[row]):
            raise ValueError(
                f"row {row}: one measure has {len(first[row])} tokens, the other {len(second[row])}; "
                "both must be over the same tokens"
            )
    batch = []
    for row in np.argsort(lengths, kind="stable"):
        if lengths[row] and batch and (len(batch) + 1) * int(lengths[row]) ** 2 > CELLS:
            yield batch
            batch = []
        if lengths[row]:
            batch.append(int(row))
    if batch:
        yield batch


def padded(arrays: list[np.ndarray], mask: torch.Tensor) -> torch.Tensor:
    """(batch, token) float64, 0 outside the mask."""
    values = torch.zeros(mask.shape, dtype=torch.float64)
    values[mask] = torch.from_numpy(np.concatenate(arrays).astype(np.float64))
    return values


def permutation_null(instances: pd.DataFrame, pair: tuple[str, str], seed: int = 0) -> tuple[np.ndarray, float]:
    """Tau when chance orders the tokens: the second measure shuffled within each text.

    Returns:
        (taus (instance,), the share of them, where defined, with p <= .05).
    """
    random = np.random.default_rng(seed)
    first, second = (token_values(instances, side) for side in pair)
    tau, p = taus(first, [None if values is None else random.permutation(values) for values in second])
    return tau, share_significant(p)


def share_significant(p: np.ndarray) -> float:
    """The share of p-values <= .05 among those that are defined; NaN when none is."""
    p = p[~np.isnan(p)]
    return float((p <= LEVEL).mean()) if len(p) else np.nan


def significance(instances: pd.DataFrame, pair: tuple[str, str], seed: int = 0) -> pd.DataFrame:
    """How much of "p <= .05" is more than chance and length: one row per configuration, means over its seeds.

    Columns: significant (share of texts with p <= .05), significant_null (the same after `permutation_null`),
    significant_controlled (the share that Benjamini and Hochberg's procedure keeps at a false-discovery rate of 5%),
    n (texts with a defined tau, over all seeds), undefined, left_out, seeds. `instances` may have passed `correlate`
    already; the pair is computed where it has not.
    """
    name, run_columns = tau_name(pair), [*RUN_COLUMNS, "seed"]
    if name not in instances:
        instances = correlate(instances, [pair])
    rows = []
    for key, run in instances.groupby(run_columns, sort=False, dropna=False):
        p = run[f"{name}_p"].dropna().to_numpy()
        skipped = sum(any(quantity == name for quantity, _ in pairs) for pairs in run["left_out"])
        shares = {
            "significant": share_significant(p),
            "significant_null": permutation_null(run, pair, seed)[1],
            "significant_controlled": share_significant(false_discovery_control(p)) if len(p) else np.nan,
        }
        counts = {"n": len(p), "undefined": len(run) - len(p) - skipped, "left_out": skipped, "seeds": 1}
        rows.append(dict(zip(run_columns, key, strict=True)) | shares | counts)
    means, sums = dict.fromkeys(shares, "mean"), dict.fromkeys(counts, "sum")
    groups = pd.DataFrame(rows).groupby(list(RUN_COLUMNS), sort=False, dropna=False)
    return groups.agg(means | sums).reset_index()


def taus_by_option(
    trained: Sequence[Trained],
    option: str,
    quantities: Sequence[Quantity],
    pairs: Sequence[tuple[str, str]],
    usual: pd.DataFrame,
) -> pd.DataFrame:
    """The taus of runs that differ from others in an option of training: the columns of `summarise`, and the option's.

    No row where nothing was trained, such as for your own model.

    Args:
        usual: correlated rows of others, whose option is the usual one; those of the same models and seeds count.
    """
    names = [tau_name(pair) for pair in pairs]
    if not trained:
        return pd.DataFrame(columns=[*SUMMARY, option])
    measured = correlate(measure_all(trained, quantities), pairs)
    values = np.repeat([one.run.option(option) for one in trained], [len(one.corpus.test) for one in trained])
    keys = [*RUN_COLUMNS, "seed"]
    same = usual.merge(measured[keys].drop_duplicates(), on=keys)
    groups = {replace(trained[0].run, options=()).option(option): same, **dict(list(measured.groupby(values)))}
    return pd.concat([summarise(rows, names).assign(**{option: value}) for value, rows in groups.items()])


def trend(instances: pd.DataFrame, by: str, quantity: str, draws: int = 1000, seed: int = 0) -> pd.Series:
    """Kendall's tau-b and Spearman's rho between a hyperparameter and a quantity's mean (Meister et al. 2021, table 2).

    The mean is over the texts, at each value of `by`; the correlation is over these values, within each seed, and then
    averaged over seeds. The bootstrap draws texts, the same for all values. With one seed the variation between trained
    models is unknown: the sd of a correlation by chance, over as many values, takes its place in the interval.

    Args:
        instances: rows of one configuration, each seed with every value of the column `by`.
    Returns:
        quantity, tau, tau_low, tau_high, spearman, spearman_low, spearman_high (95%, over texts and seeds), points
        (values of `by`), seeds, n (texts). NaN where the means are constant, or fewer than two.
    Raises:
        ValueError: the seeds have other values of `by`, or other texts.
    """
    tables = {value: by_seed(rows, quantity) for value, rows in instances.groupby(by)}
    first = next(iter(tables.values()))
    if not all(table.index.equals(first.index) and table.columns.equals(first.columns) for table in tables.values()):
        raise ValueError(f"the values of {by!r} have other texts or seeds; each must have them all")
    values = np.stack([table.to_numpy() for table in tables.values()], axis=1)  # (instance, point, seed)
    at = np.array(list(tables), dtype=np.float64)

    def correlated(weights: np.ndarray) -> np.ndarray:
        """(draw, seed, measure)."""
        means = np.moveaxis(weighted_mean(weights, values), 1, -1)
        return np.stack([kendall(at, means), spearman(at, means)], axis=-1)

    of_seeds = correlated(np.ones((1, len(values))))[0]
    samples = mean_over(1, bootstrap(correlated, len(values), draws, seed))
    found = {"quantity": quantity}
    for column, name in enumerate(MEASURES):
        value = float(mean_over(0, of_seeds[:, column]))
        bounds = interval_over_texts_and_seeds(value, samples[:, column], of_seeds[:, column])
        if len(of_seeds) == 1:
            half = np.hypot((bounds[1] - bounds[0]) / 2, norm.ppf(0.975) * by_chance(len(at))[column])
            bounds = value - half, value + half
        found |= {name: value} | dict(zip((f"{name}_low", f"{name}_high"), np.clip(bounds, -1, 1), strict=True))
    return pd.Series(found | {"points": len(at), "seeds": values.shape[2], "n": len(values)})


def by_chance(points: int) -> tuple[float, float]:
    """The sd of Kendall's tau and of Spearman's rho between unrelated orders of that many points (Kendall 1948)."""
    if points < 2:
        return np.nan, np.nan
    return np.sqrt(2 * (2 * points + 5) / (9 * points * (points - 1))), np.sqrt(1 / (points - 1))


def kendall(at: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Kendall's tau-b of at (point,) with each row of values (..., point); NaN where a side is constant."""
    rows = torch.from_numpy(values.reshape(-1, len(at)))
    tau, _ = kendall_tau(torch.from_numpy(at).expand_as(rows), rows, torch.ones_like(rows, dtype=torch.bool))
    return tau.numpy().reshape(values.shape[:-1])


def spearman(at: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Spearman's rho of at (point,) with each row of values (..., point); NaN where a side is constant."""
    x, y = (rankdata(side, axis=-1) - (len(at) + 1) / 2 for side in (at, values))
    return ratio((x * y).sum(-1), np.sqrt((x**2).sum() * (y**2).sum(-1)))
