"""The verdicts of all studies, each made anew from its evidence."""

from collections.abc import Iterable

import pandas as pd

from lib.analysis.verdicts import ANSWERS
from lib.papers import PAPERS, TITLES
from lib.papers.claims import CONTRAST, VERDICT
from lib.papers.claims import verdicts as judged
from tools.summary.studies import ABOUT, Study, preferred

WORDS = (*ANSWERS, CONTRAST)
NUMBERS = ("effect", "low", "high", "bound", "seeds", "n", "p", "needed", "printed")  # columns of VERDICT
DECIDED = ["paper", "short", "dataset", "model"]  # by a single study
BEFORE = "kept without the values of single seeds; to be run again"  # why an old table is not judged


def verdicts(studies: Iterable[Study]) -> pd.DataFrame:
    """One row for each claim, dataset and model; of several studies the first of `preferred` decides.

    Returns:
        the columns VERDICT, dataset and ABOUT. Papers in the order of lib.papers, claims and models in that of their
        studies, datasets by name.
    """
    parts = [verdicts_of(one).assign(dataset=one.dataset, **one.about()) for one in preferred(studies)]
    parts = [part.assign(study=number) for number, part in enumerate(parts) if len(part)]
    if not parts:
        return pd.DataFrame(columns=[*VERDICT, "dataset", *ABOUT])
    found = pd.concat(parts, ignore_index=True)
    found = found[found["study"] == found.groupby(DECIDED)["study"].transform("min")]
    found["place"] = found["paper"].map(list(TITLES).index)
    found["order"] = found.groupby(["paper", "short"], sort=False).ngroup()
    found = found.sort_values(["place", "order", "dataset", "study"], kind="stable", ignore_index=True)
    return found[[*VERDICT, "dataset", *ABOUT]]


def verdicts_of(study: Study) -> pd.DataFrame:
    """A study's verdicts: the columns VERDICT.

    A table of verdicts, as they were kept before, has no values of single seeds and is not judged.
    """
    given = study.evidence
    if given.empty:
        return pd.DataFrame(columns=VERDICT)
    if "verdict" not in given:
        return judged(given, PAPERS[study.notebook].claims, these_models=study.profile != "paper")
    texts = dict.fromkeys(set(VERDICT) - set(given) - set(NUMBERS), "")
    return given.assign(**texts).assign(verdict="no verdict", reason=BEFORE).reindex(columns=VERDICT)


def counted(rows: pd.DataFrame) -> dict[str, int]:
    """How many models there are with each verdict, those that occur."""
    return {word: int(count) for word in WORDS if (count := rows["verdict"].eq(word).sum())}


def in_words(rows: pd.DataFrame) -> str:
    """The verdict on a claim and a dataset: "supported for all 4", or "1 of 4 supported, 3 open"."""
    (word, count), *others = counted(rows).items()
    if not others:
        return f"{word} for all {count}" if count > 1 else word
    return ", ".join([f"{count} of {len(rows)} {word}", *(f"{number} {other}" for other, number in others)])
