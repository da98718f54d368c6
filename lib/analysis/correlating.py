"""Do two measures rank the tokens of a text alike? Kendall's tau of columns of token values, and what chance gives."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
import torch
from pandas.api.types import is_object_dtype
from scipy.special import xlogy
from scipy.stats import false_discovery_control

from lib.analysis.measuring import measure_all
from lib.analysis.statistics import ratio
from lib.analysis.summarising import summarise
from lib.metrics import kendall_tau
from lib.quantity import RUN_COLUMNS, Quantity, declare, tau_name
from lib.training import Trained

LEVEL = 0.05
CELLS = 2_000_000  # most pairs of tokens in one call of kendall_tau


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
        first, second = (token_values(instances, side) for side in pair)
        tau, p = taus(first, second)
        significant = np.where(np.isnan(p), np.nan, p <= LEVEL)
        result[name], result[f"{name}_p"], result[f"{name}_significant"] = tau, p, significant
        followers = (name, f"{name}_p", f"{name}_significant")
        result["left_out"] = inherited(result["left_out"], map(column_of, pair), followers)
    return result


def inherited(left_out: pd.Series, columns: Iterable[str], followers: tuple[str, ...]) -> list[tuple]:
    """`left_out` of each row, with the columns that follow from others of which one was left out."""
    sides = set(columns)
    return [
        pairs + tuple((own, why) for side, why in pairs if side in sides for own in followers)[: len(followers)]
        for pairs in left_out
    ]


def column_of(name: str) -> str:
    return "attention_weights" if name == "attention" else name


def token_values(instances: pd.DataFrame, name: str) -> list[np.ndarray | None]:
    """The arrays of a token-level column; KeyError with the known names otherwise."""
    column = column_of(name)
    objects = [c for c in instances if is_object_dtype(instances[c])]
    known = [c for c in objects if any(isinstance(value, np.ndarray) for value in instances[c])]
    if column not in known and not (column in instances and instances[column].isna().all()):
        raise KeyError(f"no column {column!r} with a value per token; there are: {', '.join(known) or 'none'}")
    return [value if isinstance(value, np.ndarray) else None for value in instances[column]]


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
    shuffled = [None if values is None else random.permutation(values) for values in second]
    tau, p = taus(first, shuffled)
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
    name = tau_name(pair)
    if name not in instances:
        instances = correlate(instances, [pair])
    rows = []
    for key, runs in instances.groupby(list(RUN_COLUMNS), sort=False, dropna=False):
        by_seed = [significance_of_run(run, pair, name, seed) for _, run in runs.groupby("seed", sort=False)]
        shares, counts = (pd.DataFrame([row[part] for row in by_seed]) for part in (0, 1))
        rows.append(dict(zip(RUN_COLUMNS, key, strict=True)) | shares.mean().to_dict() | counts.sum().to_dict())
        rows[-1]["seeds"] = len(by_seed)
    return pd.DataFrame(rows)


def significance_of_run(run: pd.DataFrame, pair: tuple[str, str], name: str, seed: int) -> tuple[dict, dict]:
    """(shares, counts) of one run's taus."""
    p = run[f"{name}_p"].to_numpy()
    defined = p[~np.isnan(p)]
    skipped = sum(any(quantity == name for quantity, _ in pairs) for pairs in run["left_out"])
    shares = {
        "significant": share_significant(p),
        "significant_null": permutation_null(run, pair, seed)[1],
        "significant_controlled": share_significant(false_discovery_control(defined)) if len(defined) else np.nan,
    }
    return shares, {"n": len(defined), "undefined": len(p) - len(defined) - skipped, "left_out": skipped}


SUPPORT = "attention_support"


def with_entropies(instances: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """The instances with the normalised entropy of each token-level column, entropy_of_<name>, a fraction.

    Meister et al. (2021), section 4: the values, brought to sum 1 over a text's own tokens, and H / ln n: 1 where all
    tokens matter alike, 0 where one alone does. NaN for a text of one token and where all values are 0; a text that the
    measure left out is left out here.

    Raises:
        KeyError: no such column.
    """
    result = instances.copy()
    for name in names:
        entropy = declare(f"entropy_of_{name}", "fraction")
        result[entropy] = entropies_of(token_values(instances, name))
        result["left_out"] = inherited(result["left_out"], [column_of(name)], (entropy,))
    return result


def entropies_of(arrays: list[np.ndarray | None]) -> np.ndarray:
    """(instance,) H / ln n of each array (token,), at least 0, brought to sum 1; NaN where that is undefined."""
    lengths = np.array([0 if values is None else len(values) for values in arrays])
    flat = np.concatenate([values for values in arrays if values is not None] or [np.empty(0)]).astype(np.float64)
    owner = np.repeat(np.arange(len(arrays)), lengths)
    totals = np.bincount(owner, flat, minlength=len(arrays))
    shares = ratio(flat, totals[owner])
    entropies = -np.bincount(owner, xlogy(shares, shares), minlength=len(arrays))
    most = np.log(np.maximum(lengths, 1))
    return np.clip(ratio(np.where(totals > 0, entropies, np.nan), most), 0, 1)


def with_support(instances: pd.DataFrame) -> pd.DataFrame:
    """The instances with the size of the attention's support: attention_support (tokens), ..._share (of the text's)."""
    sizes = np.array([np.count_nonzero(weights) for weights in instances["attention_weights"]], dtype=np.float64)
    shares = ratio(sizes, instances["length"].to_numpy(dtype=np.float64))
    of_text = declare(f"{SUPPORT}_share", "fraction")
    return instances.assign(**{declare(SUPPORT, "tokens"): sizes, of_text: shares})


@torch.no_grad()
def adversary_method(trained: Sequence[Trained]) -> str:
    """ "exact" where every model has one output with an affine read-out, else "gradient", the search."""
    for one in trained:
        output = one.model(next(one.batches("test", 1)))
        if output.logits.shape[1] != 1 or one.model.token_logits(output) is None:
            return "gradient"
    return "exact"


def taus_by_option(
    trained: Sequence[Trained], option: str, quantities: Sequence[Quantity], pairs: Sequence[tuple[str, str]]
) -> pd.DataFrame:
    """The taus of runs that differ in an option of training, in the columns of `summarise` and the option's.

    No row where nothing was trained, such as of a model of one's own.
    """
    names = [tau_name(pair) for pair in pairs]
    if not trained:
        return pd.DataFrame(columns=["quantity", "value", option])
    measured = correlate(measure_all(trained, quantities), pairs)
    values = np.repeat([one.run.option(option) for one in trained], [len(one.corpus.test) for one in trained])
    groups = measured.groupby(values)
    return pd.concat([summarise(rows, names).assign(**{option: value}) for value, rows in groups])
