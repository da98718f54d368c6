"""Every claim on every dataset: what the intervals say of it for each model."""

from collections.abc import Iterable

import pandas as pd

from lib.papers import TITLES
from tools.summary.studies import ABOUT, Study, preferred

VERDICTS = ("supported", "contradicted", "undecided")
COLUMNS = ["paper", "short", "claim", "dataset", "model", "verdict", "evidence"]
ONE = ["paper", "short", "dataset", "model"]  # what a single study decides


def verdicts(studies: Iterable[Study]) -> pd.DataFrame:
    """One row for each claim, dataset and model; of several studies the first of `preferred` decides.

    Returns:
        paper, short, claim, dataset, model, verdict, evidence, and where they come from. Papers in the order of
        lib.papers, claims and models in that of their studies, datasets by name.
    """
    parts = [one.claims.assign(dataset=one.dataset, **one.about()) for one in preferred(studies) if len(one.claims)]
    if not parts:
        return pd.DataFrame(columns=[*COLUMNS, *ABOUT])
    found = pd.concat([part.assign(study=number) for number, part in enumerate(parts)], ignore_index=True)
    found = found[found["study"] == found.groupby(ONE)["study"].transform("min")]
    found["place"] = found["paper"].map(list(TITLES).index)
    claims = {key: number for number, key in enumerate(dict.fromkeys(zip(found["paper"], found["short"], strict=True)))}
    found["order"] = [claims[key] for key in zip(found["paper"], found["short"], strict=True)]
    found = found.sort_values(["place", "order", "dataset", "study"], kind="stable", ignore_index=True)
    return found[[*COLUMNS, *ABOUT]]


def counted(rows: pd.DataFrame) -> dict[str, int]:
    """How many models there are with each verdict, those that occur."""
    return {word: int(count) for word in VERDICTS if (count := rows["verdict"].eq(word).sum())}


def in_words(rows: pd.DataFrame) -> str:
    """The verdict on a claim and a dataset: "supported for all 4", or "1 of 4 supported, 3 undecided"."""
    said = counted(rows)
    if len(said) == 1:
        word = next(iter(said))
        return f"{word} for all {len(rows)}" if len(rows) > 1 else word
    first, *rest = (f"{count} {word}" for word, count in said.items())
    number, word = first.split(" ")
    return ", ".join([f"{number} of {len(rows)} {word}", *rest])
