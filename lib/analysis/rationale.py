"""The words that decide a label, as people or a generator marked them: do a model's weights and rankings lie there?"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.quantity import declare, title_of

Spans = Sequence[tuple[int, int]]
Rationales = Sequence[Spans | None]
PREFIX = "rationale_average_precision_"


def marked_tokens(instances: pd.DataFrame, rationales: Rationales) -> list[np.ndarray | None]:
    """(token,) of every row, True on those that decide; None where there is no rationale, or where all decide.

    ValueError where spans [start, end) go beyond the text.
    """
    masks = [np.zeros(int(length), dtype=bool) for length in instances["length"]]
    for position, mask in zip(instances["instance"], masks, strict=True):
        for start, end in rationales[position] or ():
            if end > len(mask):
                raise ValueError(f"a span ends at {end}, the text has {len(mask)} tokens: rationales of another split?")
            mask[start:end] = True
    return [mask if mask.any() and not mask.all() else None for mask in masks]


def attention_on_rationale(instances: pd.DataFrame, rationales: Rationales) -> list[float]:
    """How much of each row's attention lies on its rationale; NaN where there is none, or where all tokens are it."""
    declare("attention_on_rationale", "fraction")
    pairs = zip(instances["attention_weights"], marked_tokens(instances, rationales), strict=True)
    return [np.nan if marked is None else float(weights[marked].sum()) for weights, marked in pairs]


def add_average_precision(instances: pd.DataFrame, measures: Mapping[str, str], rationales: Rationales) -> pd.DataFrame:
    """The rows with the average precision of each measure against the rationale, in columns of PREFIX.

    1 where every rationale token ranks above every other, `chance` what a random ranking has on average. A text without
    a rationale, or of rationale alone, has none (NaN).

    Args:
        measures: name -> column with a value per token. rationales: of every text of the split that was measured; one
            split is never held against another, which may have been annotated otherwise.
    """
    marked = marked_tokens(instances, rationales)
    areas = {"chance": [np.nan if one is None else average_precision(one, np.zeros(len(one))) for one in marked]}
    for name, column in measures.items():
        pairs = zip(marked, instances[column], strict=True)
        areas[name] = [np.nan if a is None or b is None else average_precision(a, b) for a, b in pairs]
    names = {name: declare(PREFIX + name, "fraction", f"average precision of {title_of(name)}") for name in areas}
    return instances.assign(**{names[name]: values for name, values in areas.items()})


def average_precision(relevant: np.ndarray, values: np.ndarray) -> float:
    """The average precision of a ranking, in expectation over the orders of equal values.

    Without equal values it is scikit-learn's, which has a constant below a random order. A relevant token that is the
    j-th of m equal ones, r of them relevant, has (j - 1)(r - 1)/(m - 1) relevant ones before it on average. Of relevant
    and values (token,), the largest first, at least one of them relevant; ValueError where a value is NaN.
    """
    if np.isnan(values).any():
        raise ValueError("a value that is NaN has no rank")
    group = np.unique(-np.asarray(values, dtype=np.float64), return_inverse=True)[1]  # of equal values, best first
    equal, hits = np.bincount(group), np.bincount(group, relevant)
    above, hits_above = np.cumsum(equal) - equal, np.cumsum(hits) - hits
    slope = (hits - 1) / np.maximum(equal - 1, 1)
    rank, at = np.arange(1, len(group) + 1), np.sort(group)
    precision = (hits_above[at] + 1 + (rank - above[at] - 1) * slope[at]) / rank  # if that rank's token is relevant
    return float((hits[at] / equal[at] * precision).sum() / hits.sum())
