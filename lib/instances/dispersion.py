"""How many tokens a measure is spread over: its entropy, and how many tokens attention has left."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.special import xlogy

from lib.instances.correlating import column_of, inherited, token_values
from lib.instances.statistics import ratio

SUPPORT = "attention_support"


def dispersed(instances: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """The instances with the normalised entropy of each token-level column, entropy_of_<name>, a fraction.

    Meister et al. (2021), section 4: the values, brought to sum 1 over a text's own tokens, and H / ln n: 1 where all
    tokens matter alike, 0 where one alone does. NaN for a text of one token and where all values are 0; a text that the
    measure left out is left out here.

    Raises:
        KeyError: no such column.
    """
    result = instances.copy()
    for name in names:
        result[f"entropy_of_{name}"] = entropies_of(token_values(instances, name))
        result["left_out"] = inherited(result["left_out"], [column_of(name)], (f"entropy_of_{name}",))
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


def supported(instances: pd.DataFrame) -> pd.DataFrame:
    """The instances with the size of the attention's support: attention_support (tokens), ..._share (of the text's)."""
    sizes = np.array([np.count_nonzero(weights) for weights in instances["attention_weights"]], dtype=np.float64)
    shares = ratio(sizes, instances["length"].to_numpy(dtype=np.float64))
    return instances.assign(**{SUPPORT: sizes, f"{SUPPORT}_share": shares})
