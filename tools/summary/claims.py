"""The verdicts of all studies, each made anew from its evidence, and how many of them could be chance."""

from collections.abc import Iterable
from typing import Any

import pandas as pd
from scipy import stats

from lib.analysis.verdicts import ANSWERS, KINDS
from lib.papers import PAPERS, TITLES
from lib.papers.claims import CONTRAST, VERDICT, by_their_numbers, p_in_words
from lib.papers.claims import counted as counted_of
from lib.papers.claims import verdicts as judged
from lib.results import is_stale
from tools.summary.studies import ABOUT, Study, preferred, source

WORDS = (*ANSWERS, CONTRAST)
DECIDED = ("supported", "contradicted", "negligible")
BY_ONE_STUDY = ["paper", "short", "dataset", "model"]
NUMBERS = ("effect", "low", "high", "bound", "seeds", "n", "p", "needed", "printed")  # columns of VERDICT
BEFORE = "kept without the values of single seeds; to be run again"  # why an old table is not judged
RATE = 0.05  # of false discoveries among all verdicts of the summary
FOUND = [*VERDICT, "dataset", "adjusted", "passes", *ABOUT]


def verdicts(studies: Iterable[Study]) -> pd.DataFrame:
    """One row for each claim, dataset and model; of several studies the first of `preferred` that can be judged.

    Returns:
        the columns VERDICT, dataset, adjusted and passes (`controlled`), and ABOUT. Papers in the order of lib.papers,
        claims and models in that of their studies, datasets by name.
    """
    studies = sorted(preferred(studies), key=lambda one: "verdict" in one.evidence)
    parts = [verdicts_of(one).assign(study=number) for number, one in enumerate(studies)]
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=FOUND)
    found = pd.concat(parts, ignore_index=True)
    found = found[found["study"] == found.groupby(BY_ONE_STUDY)["study"].transform("min")]
    again = found["reason"] == BEFORE  # models had other names before
    newer = found.assign(newer=~again).groupby(["paper", "short", "dataset"])["newer"].transform("any")
    found = found[~again | ~newer].copy()
    found["place"] = found["paper"].map(list(TITLES).index)
    found["order"] = found.groupby(["paper", "short"], sort=False).ngroup()
    found = found.sort_values(["place", "order", "dataset", "study"], kind="stable", ignore_index=True)
    return controlled(found)[FOUND]


def verdicts_of(study: Study) -> pd.DataFrame:
    """A study's verdicts: the columns VERDICT, dataset and ABOUT.

    A table of verdicts, as they were kept before, has no values of single seeds and is not judged. What is no claim any
    more is left out.
    """
    claims = PAPERS[study.notebook].claims
    given = study.evidence
    if given.empty or not (is_claim := given["short"].isin(list(claims))).any():
        return pd.DataFrame()
    given = given[is_claim]
    if "verdict" in given:
        texts = dict.fromkeys(set(VERDICT) - set(given) - set(NUMBERS), "")
        found = given.assign(**texts).assign(verdict="no verdict", reason=BEFORE, of_seeds="").reindex(columns=VERDICT)
        return found.assign(dataset=study.dataset, **study.about())
    found = judged(given, claims, these_models=study.profile != "paper").assign(dataset=study.dataset, **study.about())
    made = given.assign(stale=is_stale(given).map({True: "stale", False: ""})).groupby(["short", "model"], sort=False)
    of = {"stale": made["stale"].max(), "commit": made["commit"].agg(lambda some: ", ".join(some.unique()))}
    keys = pd.MultiIndex.from_frame(found[["short", "model"]])
    return found.assign(**{name: values.reindex(keys).to_numpy() for name, values in of.items()})


def controlled(found: pd.DataFrame) -> pd.DataFrame:
    """With `adjusted`, the p of each verdict after Benjamini & Yekutieli (2001), and `passes`: it is at most RATE.

    Over all verdicts together, open ones too; one without a p, such as that of a single run, counts with 1. Contrasts
    and what has no verdict are none.
    """
    counts = ~found["verdict"].isin([CONTRAST, "no verdict"])
    ps = found.loc[counts, "p"].astype(float).fillna(1.0).clip(0, 1)
    adjusted = pd.Series(stats.false_discovery_control(ps, method="by") if len(ps) else [], index=ps.index, dtype=float)
    return found.assign(adjusted=adjusted, passes=adjusted.reindex(found.index).le(RATE))


def counted(rows: pd.DataFrame) -> dict[str, int]:
    """How many models there are with each verdict, those that occur."""
    return {word: int(count) for word in WORDS if (count := rows["verdict"].eq(word).sum())}


def in_words(rows: pd.DataFrame) -> str:
    """The verdict on a claim and a dataset: "supported for all 4", or "1 of 4 supported, 3 open (1 by a weak witness)".

    Models outside the claim's scope are counted apart: "open; 2 as contrast".
    """
    if (rows["reason"] == BEFORE).all():
        return "to be run again"
    contrast, rows = rows["verdict"].eq(CONTRAST), rows[rows["verdict"] != CONTRAST]
    beside = f"{contrast.sum()} as contrast" if contrast.any() else ""
    if rows.empty:
        return beside
    (word, count), *others = counted(rows).items()
    words = f"{word} for all {count}" if count > 1 else word
    if others:
        words = ", ".join([f"{count} of {len(rows)} {word}", *(f"{number} {other}" for other, number in others)])
    weak = int(rows["witness"].eq("weak").sum())
    words += f" ({weak} by weak witnesses)" if weak > 1 else " (1 by a weak witness)" if weak else ""
    return "; ".join(filter(None, (words, beside)))


def totals(found: pd.DataFrame) -> list[dict[str, Any]]:
    """Of each answer: how many verdicts, how many of them from weak witnesses, and how many do not pass."""
    rows = []
    for word, count in counted(found).items():
        same = found[found["verdict"] == word]
        fails = int((~same["passes"].astype(bool)).sum()) if word in DECIDED else 0
        weak, stale = (int(same[name].eq(value).sum()) for name, value in (("witness", "weak"), ("stale", "stale")))
        rows.append({"word": word, "count": count, "weak": weak, "fails": fails, "stale": stale})
    return rows


# --- for the page


def matrix(rows: pd.DataFrame) -> dict[str, Any]:
    """A paper's claims by dataset: the datasets, and of each claim its words and a cell or None for each dataset."""
    datasets = sorted(rows["dataset"].unique())
    claims = []
    for _, same in rows.groupby("short", sort=False):
        cells = [same[same["dataset"] == dataset] for dataset in datasets]
        claims.append(stated(same) | {"cells": [cell(part) if len(part) else None for part in cells]})
    return {"datasets": datasets, "claims": claims}


def stated(same: pd.DataFrame) -> dict[str, Any]:
    """What a claim stated before anything was measured, by its newest rows: name, sentence, and (what, words) pairs."""
    row = next((row for _, row in same.iterrows() if row["kind"]), same.iloc[0])
    pairs = {"of": row["scope"], "supported if": KINDS.get(row["kind"], ""), "control": row["control"]}
    pairs |= {"refuted by": row["refuted"], "stated in": row["source"]}
    if row["kind"] in ("direction", "little", "at least"):
        pairs["bound"] = f"{row['bound']:g} {row['unit']}"
    return {"short": row["short"], "claim": row["claim"], "stated": [pair for pair in pairs.items() if pair[1]]}


def cell(rows: pd.DataFrame) -> dict[str, Any]:
    """What a cell shows: the verdict, in words and as a class, the evidence for each model, and where it comes from."""
    words = list(counted(rows))
    answers = [word for word in words if word not in (CONTRAST, "no verdict")] or words[:1]
    return {
        "kind": answers[0] if len(answers) == 1 else "mixed",
        "words": in_words(rows),
        "weak": bool(rows["witness"].eq("weak").all()),
        "models": [model(row) for _, row in rows.iterrows()],
        "sources": [source(row) for _, row in rows.drop_duplicates(["report", "profile", "commit"]).iterrows()],
    }


def model(row: pd.Series) -> dict[str, Any]:
    """The verdict on a claim for one model, with all that a reader needs to judge it."""
    notes = []
    if row["of_seeds"] and row["kind"] != "most runs":
        notes.append(f"single seeds: {row['of_seeds']}")
    if row["halved"]:
        notes.append(f"half the bound: {row['halved']}, twice the bound: {row['doubled']}")
    if row["p"] == row["p"]:
        notes.append(p_in_words(row["p"]))
    if own := by_their_numbers(row["kind"], row["bound"], float(row["printed"])):
        notes.append(f"by their own numbers {own}")
    marks = [row["reason"], f"{counted_of(int(row['needed']), 'seed')} would decide" if row["needed"] > 0 else ""]
    marks += ["weak witness" if row["witness"] == "weak" else "", row["stale"]]
    marks += ["fails the false discovery rate"] if row["verdict"] in DECIDED and not row["passes"] else []
    shown = {"marks": "; ".join(dict.fromkeys(filter(None, marks))), "notes": "; ".join(notes)}
    return shown | {"weak": row["witness"] == "weak"} | row[["model", "verdict", "evidence"]].to_dict()
