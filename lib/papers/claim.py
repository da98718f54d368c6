"""What a paper claims, as questions that an interval can answer: supported, contradicted or undecided."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from lib.papers.claims import sentences as sentences_of_verdicts
from lib.quantity import title_of


@dataclass(frozen=True)
class Claim:
    """A claim of a paper compared with our numbers.

    short     the claim in a few words
    verdict   supported, contradicted or undecided: decided only where the 95% interval leaves no doubt
    evidence  the sentence with the numbers
    """

    paper: str
    short: str
    claim: str
    model: str
    verdict: str
    evidence: str


def verdict(low: float, high: float, threshold: float = 0.0) -> str:
    """supported when the whole interval lies above the threshold, contradicted when below, else undecided."""
    if low > threshold:
        return "supported"
    return "contradicted" if high < threshold else "undecided"


def by_model(frame: pd.DataFrame, *by: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """(model in words, its rows) for each value of the columns `by`."""
    for key, rows in frame.groupby(list(by), sort=False):
        yield " + ".join(title_of(part) for part in key), rows


def adversary_of(instances: pd.DataFrame) -> str:
    """The column of the per-instance adversary's JSD: the exact optimum, or with several outputs the search's."""
    return next(name for name in ("adversary_exact_jsd", "adversary_gradient_jsd") if name in instances)


def signed(row: pd.Series, of: str = "difference") -> str:
    """A difference with its interval: "-0.012 [-0.020, -0.004]"."""
    return f"{row[of]:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"


def compared(row: pd.Series, first: str = "", second: str = "") -> str:
    """A row of `lib.analysis.contrast`: "learned 0.830, uniform 0.842; difference -0.012 [-0.020, -0.004]"."""
    values = (f"{name} {row[of]:.3f}".lstrip() for name, of in ((first, "first"), (second, "second")))
    return f"{', '.join(values)}; difference {signed(row)}"


def with_interval(row: pd.Series) -> str:
    """A row of `lib.analysis.summarise`: "0.830 [0.810, 0.850]"."""
    return f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"


def claims_table(claims: list[Claim]) -> pd.DataFrame:
    """One row per claim and model."""
    return pd.DataFrame([claim.__dict__ for claim in claims])


def sentences(claims: list[Claim]) -> list[str]:
    """One sentence per claim: for which models it is supported, contradicted or undecided."""
    if isinstance(claims, pd.DataFrame):
        return sentences_of_verdicts(claims)
    result = []
    for claim in dict.fromkeys(one.claim for one in claims):
        same = [one for one in claims if one.claim == claim]
        parts = [
            f"{word} for {', '.join(models)}"
            for word in ("supported", "contradicted", "undecided")
            if (models := [one.model for one in same if one.verdict == word])
        ]
        result.append(f"{claim}: {'; '.join(parts)}.")
    return result
