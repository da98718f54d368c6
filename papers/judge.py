"""Four words: what the runs of a finding come to.

yes, no       the 95% interval, over runs and texts, lies wholly on the side that the paper predicts, or on the other
none          it holds 0 and lies within d of it
can't tell    else, and with fewer than three runs
"""

from math import nan

import numpy as np
import pandas as pd

from lib.analysis.statistics import FEW, interval, mean_over
from papers.effects import FINDINGS, MODEL, Finding

YES, NO, NONE, OPEN = ("yes", "no", "none", "can't tell")
MAIN = ["finding", "model", *MODEL, "effect", "low", "high", "chance", "runs", "n", "word", "left_out", "vectors"]
NUMBERS = dict.fromkeys(("effect", "low", "high"), float)
SECOND = [*NUMBERS, "runs", "word", "vectors"]
FOUND = [*MAIN, *(f"second_{name}" for name in SECOND)]


def judge(effects: pd.DataFrame, these_models: bool = False) -> pd.DataFrame:
    """One row for each finding, dataset and model: the columns FOUND, in the order of FINDINGS.

    effect is the mean over runs, [low, high] its 95% interval over runs and texts, NaN with fewer than three runs;
    of a ratio both are ratios. The word is "" for a level, and where the model is left out. `these_models`: the
    question is about these very models, so that only texts vary. second_: of the runs from other word vectors.
    """
    groups, keys = {}, ["finding", "dataset", "model"]
    for row in effects.to_dict("records"):
        groups.setdefault((bool(row.get("second")), *(row[name] for name in keys)), []).append(row)
    parts = {True: [], False: []}
    for (second, name, *_), rows in groups.items():
        parts[second] += [judge_model(FINDINGS[name], rows, these_models)] if name in FINDINGS else []
    main = sorted(parts[False], key=lambda row: [*FINDINGS].index(row["finding"]))
    found, second = (pd.DataFrame(rows, columns=MAIN).astype(NUMBERS) for rows in (main, parts[True]))
    return found.join(second[second["left_out"].eq("")].set_index(keys)[SECOND].add_prefix("second_"), on=keys)


def judge_model(finding: Finding, rows: list[dict], these_models: bool) -> dict:
    """What the runs of one model, rows of `papers.effects.compute`, come to."""
    value, by_chance, se, n = (np.array([row[name] for row in rows], float) for name in ("value", "chance", "se", "n"))
    values, chance = value - by_chance if finding.beyond_chance else value, float(mean_over(0, by_chance))
    runs = values[:0] if these_models else values
    known = "trend" not in finding.effect if these_models else len(values) >= FEW  # a trend's error over texts is not
    low, high = interval(values.mean(), mean_over(0, se), runs, n.max()) if known else (nan, nan)
    left_out = "; ".join({why.partition(":")[0]: why for row in rows if (why := row["left_out"])}.values())  # each once
    numbers = np.array([values.mean(), low, high]) + (chance if finding.beyond_chance else 0.0)
    numbers = np.exp(numbers) if finding.unit == "times" else np.clip(numbers, *finding.bounds)
    row = {name: rows[0][name] for name in ("finding", "model", *MODEL)}
    row |= {"chance": chance, "runs": len(values), "n": int(n.max()), "vectors": rows[0].get("vectors", "")}
    row |= dict(zip(("effect", "low", "high"), map(float, numbers), strict=True))
    return row | {"word": "" if left_out else word_for(finding, low, high, str(row["dataset"])), "left_out": left_out}


def word_for(finding: Finding, low: float, high: float, dataset: str = "") -> str:
    """The word for an interval of the effect, less what chance gives where the finding is about that."""
    predicts = finding.predicts_on(dataset)
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
