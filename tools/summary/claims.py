"""The verdicts of all studies, each made anew from its evidence, and how many of them could be chance."""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import nan
from typing import Any

import pandas as pd
from scipy import stats

from lib import tables
from lib.analysis.statistics import FEW
from lib.analysis.verdicts import ANSWERS
from lib.datasets import DATASETS
from papers import PAPERS, TITLES
from papers.claims import CONTRAST, VERDICT, WEAK, Claim, by_their_numbers, by_weak, p_in_words
from papers.claims import verdicts as judged
from papers.findings import in_digits, unit_in_brief
from papers.results import is_stale
from tools.summary.studies import ABOUT, Study, preferred
from tools.summary.values import INCOMPLETE

WORDS = (*ANSWERS, CONTRAST)
DECIDED = ("supported", "contradicted", "negligible")
MIXED = "mixed"  # where the verdicts for models differ
BY_ONE_STUDY = ["paper", "short", "dataset", "model"]
NUMBERS = ("effect", "low", "high", "bound", "seeds", "n", "p", "needed", "printed")  # columns of VERDICT
LEAST_READ = 0.1  # of a dataset's training texts: a model that read fewer is a weak witness
RATE = 0.05  # of false discoveries among all verdicts of the summary
UNDECIDED = "no verdict"
CELL = ("claim", "answer", "words", "model", "shown", "size", "unit", "levels", "n", "seeds")
CELL += ("marks", "ours", "idle", "side", "question", "share")
FOUND = [*VERDICT, "dataset", "adjusted", "passes", *ABOUT]


def in_order(names: Iterable[str]) -> list[str]:
    """The datasets as `lib.datasets` lists them, sst first; others behind, by their names."""
    known = list(DATASETS)
    return sorted(set(names), key=lambda name: (known.index(name) if name in known else len(known), name))


def verdicts(studies: Iterable[Study]) -> pd.DataFrame:
    """One row for each claim, dataset and model; of several studies the first of `preferred` that can be judged.

    Returns:
        the columns VERDICT, dataset, adjusted and passes (`controlled`), and ABOUT. Papers in the order of papers,
        claims and models in that of their studies, datasets by name.
    """
    parts = [verdicts_of(one).assign(study=number) for number, one in enumerate(preferred(studies))]
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=FOUND)
    found = pd.concat(parts, ignore_index=True)
    found = found[found["study"] == found.groupby(BY_ONE_STUDY)["study"].transform("min")].copy()
    found["place"] = found["paper"].map(list(TITLES).index)
    found["order"] = found.groupby(["paper", "short"], sort=False).ngroup()
    found = found.sort_values(["place", "order", "dataset", "study"], kind="stable", ignore_index=True)
    return controlled(found)[FOUND]


def verdicts_of(study: Study) -> pd.DataFrame:
    """A study's verdicts: the columns VERDICT, dataset and ABOUT.

    What is no claim any more is left out.
    """
    claims = PAPERS[study.notebook].claims
    given = study.evidence
    if given.empty or not (is_claim := given["short"].isin(list(claims))).any():
        return pd.DataFrame()
    given = given[is_claim]
    if INCOMPLETE.get(study.dataset, 1.0) < LEAST_READ:
        given = given.assign(witness=WEAK)
    found = judged(given, claims, these_models=study.profile != "paper").assign(dataset=study.dataset, **study.about())
    made = given.assign(stale=is_stale(given).map({True: "stale", False: ""})).groupby(["short", "model"], sort=False)
    of = {"stale": made["stale"].max(), "commit": made["commit"].agg(lambda some: ", ".join(some.unique()))}
    keys = pd.MultiIndex.from_frame(found[["short", "model"]])
    return found.assign(**{name: values.reindex(keys).to_numpy() for name, values in of.items()})


def controlled(found: pd.DataFrame) -> pd.DataFrame:
    """With `adjusted`, the p of each verdict after Benjamini & Yekutieli (2001), and `passes`: it is at most RATE.

    Over all verdicts together, open ones too, that have a p. One or two runs decide nothing, whatever they give, and
    make none: they are no tests, and more of them leave the others as they are. Nor are contrasts, and what has no
    verdict.
    """
    counts = ~found["verdict"].isin([CONTRAST, "no verdict"]) & found["seeds"].ge(FEW)
    ps = found.loc[counts, "p"].astype(float).dropna().clip(0, 1)
    adjusted = pd.Series(stats.false_discovery_control(ps, method="by") if len(ps) else [], index=ps.index, dtype=float)
    return found.assign(adjusted=adjusted, passes=adjusted.reindex(found.index).le(RATE))


def by_verdict(rows: pd.DataFrame) -> dict[str, int]:
    """How many models there are with each verdict, those that occur."""
    found = Counter(rows["verdict"])
    return {word: found[word] for word in WORDS if found[word]}


def first_share(rows: pd.DataFrame) -> float:
    """The share of the models, contrasts aside, with the verdict that `in_words` names first; NaN without any."""
    judged = rows[rows["verdict"] != CONTRAST]
    return next(iter(by_verdict(judged).values())) / len(judged) if len(judged) else nan


def in_words(rows: pd.DataFrame) -> str:
    """The verdict on a claim and a dataset: "supported for all 4", or "1 of 4 supported, 3 open (1 by a weak witness)".

    Models outside the claim's scope are counted apart: "open; 2 as contrast".
    """
    contrast, rows = rows["verdict"].eq(CONTRAST), rows[rows["verdict"] != CONTRAST]
    beside = f"{contrast.sum()} as contrast" if contrast.any() else ""
    if rows.empty:
        return beside
    (word, count), *others = by_verdict(rows).items()
    words = f"{word} for {'both' if count == 2 else f'all {count}'}" if count > 1 else word
    if others:
        words = ", ".join([f"{count} of {len(rows)} {word}", *(f"{number} {other}" for other, number in others)])
    weak = rows["witness"].eq(WEAK) & rows["verdict"].ne("no verdict")
    return "; ".join(filter(None, (words + by_weak(weak.sum()), beside)))


def totals(found: pd.DataFrame) -> list[dict[str, Any]]:
    """Of each answer: how many verdicts, how many of them from weak witnesses, and how many do not pass."""
    rows = []
    for word, count in by_verdict(found).items():
        same = found[found["verdict"] == word]
        fails = int((~same["passes"].astype(bool)).sum()) if word in DECIDED else 0
        weak, stale = (int(same[name].eq(value).sum()) for name, value in (("witness", WEAK), ("stale", "stale")))
        rows.append({"word": word, "count": count, "weak": weak, "fails": fails, "stale": stale})
    return rows


# --- for the page


def stated(row: Mapping[str, Any]) -> dict[str, str]:
    """What a claim states, and where."""
    return tables.stated(row) | {"Stated in": row["source"]}


def kind(rows: pd.DataFrame) -> str:
    """The one answer for all models of a claim and a dataset, contrasts aside, or "mixed"."""
    words = list(by_verdict(rows))
    answers = [word for word in words if word not in (CONTRAST, "no verdict")] or words[:1]
    return answers[0] if len(answers) == 1 else MIXED


def notes(row: Mapping[str, Any]) -> str:
    """What a verdict for one model rests on, besides its evidence."""
    parts = [f"single seeds: {row['of_seeds']}"] if row["of_seeds"] and row["kind"] != "most runs" else []
    parts += [f"half the bound: {row['halved']}, twice the bound: {row['doubled']}"] if row["halved"] else []
    parts += [p_in_words(row["p"])] if row["p"] == row["p"] else []
    own = by_their_numbers(row["kind"], row["bound"], float(row["printed"]))
    return "; ".join([*parts, *([f"the paper's own numbers: {own}"] if own else [])])


def marks(row: Mapping[str, Any]) -> str:
    """What speaks against taking a verdict for one model at its word."""
    fails = row["verdict"] in DECIDED and not row["passes"]
    found = [*tables.doubts(row), row["stale"], "fails the false discovery rate" if fails else ""]
    return "; ".join(filter(None, found))


# --- one row for each claim and dataset


def cells(found: pd.DataFrame) -> pd.DataFrame:
    """One row for each claim and dataset, in the order of `found`, rows of `tools.summary.claims.verdicts`.

    Returns:
        paper, short, dataset and CELL: claim; answer, of all models, or "mixed"; words: how many models; model: its
        name, where one alone is shown; shown: the effect (`typical`); size: the effect with its interval,
        or the range over models; its unit; levels: of a difference the two values, where it is of one model; n (texts),
        seeds; these, unless models differ, without weak witnesses, where there are others; marks: weak witness (where
        all models are), could be chance (where all others could), stale (where one is); ours:
        the paper does not claim it; idle: it proves little, as `Claim.proves_little` says; side: that of the
        answer, of `Claim.side`; question: of QUESTIONS; share: of the models, contrasts aside, with the
        first verdict.
    """
    keys = ["paper", "short", "dataset"]
    rows = [dict(zip(keys, key, strict=True)) | cell(same) for key, same in found.groupby(keys, sort=False)]
    return pd.DataFrame(rows, columns=[*keys, *CELL])


def cell(rows: pd.DataFrame) -> dict[str, Any]:
    """What the verdicts for the models of one claim and dataset have in common; see `cells`."""
    judged = rows[~rows["verdict"].isin([CONTRAST, UNDECIDED])]
    some = judged if len(judged) else rows
    weak, chance = some["witness"].eq(WEAK), some["verdict"].isin(DECIDED) & ~some["passes"].astype(bool)
    marks = {"weak witness": weak.all(), "could be chance": chance.any() and (weak | chance).all()}
    marks |= {"stale": some["stale"].eq("stale").any()}
    answer, sound = kind(rows), judged[~weak[judged.index]]
    shown = judged if sound.empty or answer == MIXED else sound
    of_shown = shown if len(shown) else some
    return {
        "claim": rows["claim"].iloc[0], "answer": answer, "words": in_words(rows),
        "model": shown["model"].iloc[0] if len(shown) == 1 else "",
        "shown": typical(shown, some.iloc[0]), "size": size(shown),
        "unit": unit_in_brief(some.iloc[0]), "levels": shown["sides"].iloc[0] if len(shown) == 1 else "",
        "n": int(of_shown["n"].fillna(0).max()), "seeds": int(of_shown["seeds"].fillna(0).max()),
        "marks": [mark for mark, holds in marks.items() if holds],
        "ours": rows["source"].iloc[0].startswith("ours"),
        "idle": bool((claim := claim_of(rows.iloc[0])) and claim.proves_little),
        "side": some["side"].iloc[0] if some["side"].nunique() == 1 else "",
        "question": rows["question"].iloc[0], "share": first_share(rows),
    }  # fmt: skip


def typical(judged: pd.DataFrame, first: Mapping[str, Any]) -> str:
    """The median effect over models; of a claim about most runs in how many it holds: 2 to 3 of 3, or 3 of 3, 2 of 5.

    Models of such a claim may share runs, so that these are not added.
    """
    if first["kind"] == "most runs" and len(judged):
        held, effects = runs_held(judged), judged["effect"]
        if judged["seeds"].nunique() > 1:
            return ", ".join(held)
        fewest, most = held[effects.argmin()], held[effects.argmax()]
        return most if fewest == most else f"{fewest.split()[0]} to {most}"
    return in_digits(judged["effect"].median(), first)


def runs_held(judged: pd.DataFrame) -> list[str]:
    """In how many of its runs a claim about most runs holds, of each model: ["3 of 3", "2 of 3"]."""
    return [f"{row.effect * row.seeds:.0f} of {row.seeds:.0f}" for row in judged.itertuples()]


def size(judged: pd.DataFrame) -> str:
    """+0.22 [+0.14, +0.30] tau-b; of several models +0.10 to +0.22 tau-b, or +0.22 tau-b in each of 2 models.

    Of a claim about most runs: 3 of 3 and 2 of 3 runs.
    """
    known = judged[judged["effect"].notna()]
    if known.empty:
        return ""
    first = known.iloc[0]
    if first["kind"] == "most runs":
        return " and ".join(runs_held(known)) + " runs"
    least, most, low, high = (
        in_digits(number, first)
        for number in (known["effect"].min(), known["effect"].max(), first["low"], first["high"])
    )
    shown = f"{least} [{low}, {high}]" if len(known) == 1 and low else least if least == most else f"{least} to {most}"
    each = f" in each of {len(known)} models" if len(known) > 1 and least == most else ""
    return f"{shown} {unit_in_brief(first)}{each}"


def claim_of(row: Mapping[str, Any]) -> Claim | None:
    """The claim of a cell."""
    return next((paper.claims[row["short"]] for paper in PAPERS.values() if row["short"] in paper.claims), None)
