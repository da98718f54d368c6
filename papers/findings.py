"""Verdicts in sentences: what a report finds, and whether attention explains its models."""

from collections.abc import Mapping
from math import isnan

import pandas as pd

from lib.analysis.statistics import FEW
from lib.analysis.verdicts import ANSWERS
from papers.claims import CONTRAST, WEAK, anchor, counted

RANK = dict.fromkeys(ANSWERS, 0) | {"open": 1, "no verdict": 2}  # which come first
SAYS = {"for": "yes", "against": "no"}


def sentences(found: pd.DataFrame, ours: bool = True) -> dict[str, str]:
    """A sentence for each claim: for which models it has which answer, and by which effect; contrasts are left out.

    With the id of its place in the report, where the numbers of each model are. Before them stands `on_balance`. Claims
    that are decided for a model come first, then those that are open. The effect has its 95% interval where a claim is
    about one or two models, and its two sides where one model has a verdict. An answer that counts in `on_balance` says
    yes or no to attention as an explanation. Claims that chance could meet too come last in either group, and say so.
    Those that are ours have a sentence if `ours`, or if they count.
    """
    found = found[found["verdict"] != CONTRAST]
    result, mentioned = dict.fromkeys(on_balance(found), ""), set()
    counting = found.loc[sides_of(found).ne(""), "short"]
    found = found if ours else found[~found["source"].str.startswith("ours") | found["short"].isin(counting)]
    groups = found.groupby(["proves_little", "claim", "short"], sort=False)
    for (little, claim, short), same in sorted(groups, key=lambda one: (one[1]["verdict"].map(RANK).min(), one[0][0])):
        alone = same["verdict"].ne("no verdict").sum() == 1
        numbers = [effect_in_brief(row, interval=len(same) <= 2, sides=alone) for _, row in same.iterrows()]
        named = [f"{model}{number}" for model, number in zip(same["model"], numbers, strict=True)]
        models = {
            word: [name for name, own in zip(named, same["verdict"], strict=True) if own == word] for word in ANSWERS
        }
        says = {word: SAYS[side] for word, side in zip(same["verdict"], sides_of(same), strict=True) if side}
        parts = [
            f"{word} for {', '.join(names)}{f', counting as {says[word]}' if word in says else ''}"
            for word, names in models.items()
            if names and word != "no verdict"
        ]
        parts += unjudged(same[same["verdict"] == "no verdict"], mentioned)
        parts += ["chance could meet it too"] if little and same["verdict"].map(RANK).min() == 0 else []
        result[f"{claim}: {'; '.join(parts)}."] = anchor(short)
    return result


def on_balance(found: pd.DataFrame) -> list[str]:
    """Whether attention explains the models of a report: how many verdicts say so, in a sentence; none say nothing.

    Counted are the claims that speak for or against attention as an explanation; a weak witness decides nothing.
    """
    rows = found[found["question"].ne("")]
    if rows.empty:
        return []
    sides = sides_of(rows)
    asked = f"Does attention explain these models? Of {counted(len(rows), 'check')}, one for each claim and model"
    rest = rows[sides.eq("")]
    most = next(iter(rest["reason"].mask(rest["witness"].eq(WEAK), "a weak witness").mode()), "")
    why = most and f" ({most})" if len(rest) == 1 else most and f" (most often: {most})"
    if len(rest) == len(rows):
        return [f"{asked}, none decides{why}."]
    parts = [
        f"{number} {'says' if number == 1 else 'say'} {word}"
        for side, word in SAYS.items()
        if (number := sum(sides == side))
    ]
    parts += [f"{len(rest)} {'decides' if len(rest) == 1 else 'decide'} nothing{why}"] if len(rest) else []
    beside = " The other claims answer neither yes nor no." if found["question"].eq("").any() else ""
    each = " Each rests on a 95% interval of this run alone, not corrected for the number of checks."
    return [f"{asked}: {', '.join(parts)}.{each}{beside}"]


def sides_of(rows: pd.DataFrame) -> pd.Series:
    """For each verdict "for" or "against" attention as an explanation; "" for neither, and for a weak witness."""
    return rows["side"].mask(rows["witness"] == WEAK, "")


def unjudged(rows: pd.DataFrame, mentioned: set[str]) -> list[str]:
    """no verdict for average, conv (reason): of models whose reasons differ in numbers alone that of the first.

    Args:
        mentioned: the parts of earlier sentences, to which these are added; a reason is not repeated.
    """
    kinds = rows["reason"].str.replace(r"[\d.,]+", "", regex=True)
    parts = []
    for kind, same in rows.groupby(kinds, sort=False):
        part, of_first = f"no verdict for {', '.join(same['model'])}", same["reason"].iloc[0]
        of_first = of_first if same["reason"].nunique() == 1 else f"{same['model'].iloc[0]}: {of_first}"
        parts.append(f"{part} ({'as above' if part + kind in mentioned else of_first})")
        mentioned.add(part + kind)
    return parts


def effect_in_brief(row: Mapping, interval: bool, sides: bool = False) -> str:
    """ " (+0.21 [+0.14, +0.29] tau-b; weak witness)", of a verdict; "" where there is none, or no effect.

    Args:
        interval: with it. sides: with the two numbers whose difference it is.
    """
    if row["verdict"] == "no verdict" or isnan(row["effect"]):
        return ""
    weak = "; weak witness" if row["witness"] == WEAK else ""
    if row["kind"] == "most runs":
        return f" ({row['effect']:.0%} of {counted(row['seeds'], 'run')}{weak})"
    effect, low, high = (in_digits(row[name], row) for name in ("effect", "low", "high"))
    few = row["reason"] if row["verdict"] == "open" and row["seeds"] < FEW else ""
    ends = f" [{low}, {high}]" if interval and low else ""
    levels = f"{row['sides']}; " if sides and row["sides"] else ""
    return f" ({levels}{effect}{ends} {unit_in_brief(row)}{few and f'; {few}'}{weak})"


def in_digits(number: float, row: Mapping) -> str:
    """The effect of a verdict, or an end of its interval: +0.22, a level .22; of "most runs" 67%; "" for none.

    With a third digit where the bound is smaller than .05.
    """
    digits = 3 if 0 < abs(row["bound"]) < 0.05 else 2
    form = ".0%" if row["kind"] == "most runs" else f"{'+' if row['signed'] else ''}.{digits}f"
    return "" if isnan(number) else format(number, form)


def unit_in_brief(row: Mapping) -> str:
    """The unit of the effect of a verdict: tau-b; of shares of runs "of the runs", of trends "tau-b in ..."."""
    of_kind = {"most runs": "of the runs", "trend": "tau-b in the claim's direction"}
    return of_kind.get(row["kind"], row["unit"].partition(" (")[0])
