"""Four words: what the runs of a finding come to.

yes, no       the 95% interval, over runs and texts, lies wholly on the side that the paper predicts, or on the other
none          it holds 0 and lies within d of it
can't tell    else, and with fewer than three runs
"""

from collections import namedtuple
from math import nan

import numpy as np
import pandas as pd
from scipy import stats

from lib.analysis import statistics
from lib.analysis.statistics import FEW
from papers.effects import FINDINGS, MODEL, Finding

YES, NO, NONE, OPEN = WORDS = ("yes", "no", "none", "can't tell")
FOUND = ["finding", "model", *MODEL, "effect", "low", "high", "chance", "runs", "n", "word", "left_out"]


def judge(effects: pd.DataFrame, these_models: bool = False) -> pd.DataFrame:
    """One row for each finding, dataset and model: the columns FOUND, in the order of FINDINGS.

    effect is the mean over runs, [low, high] its 95% interval over runs and texts, NaN with fewer than three runs;
    of a ratio both are ratios. The word is "" for a level, and where the model is left out. `these_models`: the
    question is about these very models, so that only texts vary.
    """
    groups = effects.groupby(["finding", "dataset", "model"], sort=False)
    found = [judge_model(FINDINGS[key[0]], rows, these_models) for key, rows in groups if key[0] in FINDINGS]
    return pd.DataFrame(sorted(found, key=lambda row: [*FINDINGS].index(row["finding"])), columns=FOUND)


def judge_model(finding: Finding, rows: pd.DataFrame, these_models: bool) -> dict:
    """What the runs of one model come to."""
    first, chance, texts = rows.iloc[0], float(rows["chance"].mean()), int(rows["n"].max())
    values = (rows["value"] - rows["chance"] if finding.beyond_chance else rows["value"]).to_numpy(float)
    few = "trend" in finding.effect and these_models  # whose error over texts is not known
    low, high = (nan, nan) if few else interval(values, float(rows["se"].mean()), texts, these_models)
    reasons = "; ".join(dict.fromkeys(filter(None, rows["left_out"])))
    numbers = np.array([values.mean(), low, high]) + (chance if finding.beyond_chance else 0.0)
    numbers = np.exp(numbers) if finding.unit == "times" else np.clip(numbers, *finding.bounds)
    row = first[["finding", "model", *MODEL]].to_dict() | {"chance": chance, "runs": len(values), "n": texts}
    row |= dict(zip(("effect", "low", "high"), map(float, numbers), strict=True))
    word = "" if reasons else word_for(finding, low, high, str(first["dataset"]))
    return row | {"word": word, "left_out": reasons}


def interval(values: np.ndarray, se: float, texts: int, these_models: bool) -> tuple[float, float]:
    """The 95% interval of the mean over runs; NaN with fewer than three, unless it is of these models alone."""
    if len(values) < FEW and not these_models:
        return nan, nan
    return statistics.interval(float(values.mean()), se, values[:0] if these_models else values, texts)


def word_for(finding: Finding, low: float, high: float, dataset: str = "") -> str:
    """The word for an interval of the effect, less what chance gives where the finding is about that."""
    predicts = "within" if dataset in finding.within_on else finding.predicts
    if predicts == "level":
        return ""
    if np.isnan(low) or np.isnan(high):
        return OPEN
    if predicts == "within":
        inside, outside = -finding.d <= low and high <= finding.d, low > finding.d or high < -finding.d
        return YES if inside else NO if outside else OPEN
    threshold = 0.0 if finding.beyond_chance else float(finding.threshold)
    threshold = np.log(threshold) if finding.unit == "times" else threshold
    if predicts == "below":
        low, high, threshold = -high, -low, -threshold
    if low > threshold or high < threshold:
        return YES if low > threshold else NO
    return NONE if not threshold and -finding.d <= low and high <= finding.d else OPEN


# The effect over datasets: the random-effects mean with its interval, and in how many of them it is above 0.
Together = namedtuple("Together", "mean low high above of")


def over_datasets(found: pd.DataFrame) -> Together:
    """The mean over datasets with an interval (Hartung & Knapp 2001), NaN for fewer than three; ratios by their logs.

    The variance between them is that of DerSimonian & Laird (1986).

    Args:
        found: rows of `judge` of one finding and one kind of model, a dataset each.
    """
    rows = found[found["left_out"].eq("") & found["low"].notna()]
    if rows.empty:
        return Together(nan, nan, nan, 0, 0)
    finding = FINDINGS[rows["finding"].iloc[0]]
    effects, low, high, chance = rows[["effect", "low", "high", "chance"]].to_numpy(float).T
    if finding.unit == "times":
        effects, low, high = np.log(effects), np.log(low), np.log(high)
    effects = effects - chance if finding.beyond_chance else effects
    above, of = int((effects > 0).sum()), len(rows)
    if of < FEW:
        return Together(nan, nan, nan, above, of)
    variances = ((high - low) / (2 * stats.norm.ppf(0.975))) ** 2
    fixed = 1 / variances
    q = (fixed * (effects - np.average(effects, weights=fixed)) ** 2).sum()
    between = max(0.0, (q - (of - 1)) / (fixed.sum() - (fixed**2).sum() / fixed.sum()))
    weights = 1 / (variances + between)
    mean = float(np.average(effects, weights=weights))
    error = np.sqrt((weights * (effects - mean) ** 2).sum() / ((of - 1) * weights.sum()))
    return Together(mean, *map(float, stats.t.interval(0.95, of - 1, mean, error)), above, of)
