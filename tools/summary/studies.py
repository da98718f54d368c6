"""All studies together: which of them count, and every claim on every dataset."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from lib.papers import PAPERS, TITLES
from lib.results import FOLDER

ABOUT = ("profile", "of_seeds", "commit", "report", "made", "altered")  # where a row of a summary comes from
VERDICTS = ("supported", "contradicted", "undecided")
CLAIM = ["paper", "short", "claim", "dataset", "model", "verdict", "evidence"]
DECIDED = ["paper", "short", "dataset", "model"]  # by a single study


@dataclass(frozen=True, eq=False)
class Study:
    """A notebook that ran on a dataset, and the two tables that it left.

    values, claims   as given to `lib.results.keep`
    seeds            of its runs, as text
    page, made       the file of its report and when it was made; "" for kept tables, whose report lies elsewhere
    altered          parameters that make it another experiment than the paper's, such as the projection
    """

    notebook: str
    dataset: str
    values: pd.DataFrame
    claims: pd.DataFrame
    profile: str
    seeds: tuple[str, ...]
    commit: str
    page: str = ""
    made: str = ""
    altered: tuple[str, ...] = ()

    def about(self) -> dict[str, str]:
        """Where this study's rows come from, by the columns of ABOUT."""
        parts = (self.profile, " ".join(self.seeds), self.commit, self.page, self.made, ", ".join(self.altered))
        return dict(zip(ABOUT, parts, strict=True))


def study(notebook: str, dataset: str, values: str, claims: str, profile: str, **about) -> Study:
    """A study from its two tables as CSV text, whose columns `commit` and `of_seeds` it takes over."""
    values = pd.read_csv(StringIO(values), dtype={"of_seeds": str, "commit": str}, low_memory=False)
    claims = pd.read_csv(StringIO(claims), dtype=str, keep_default_na=False)
    first = next(iter(values[["of_seeds", "commit"]].fillna("").itertuples(index=False)), ("", ""))
    return Study(notebook, dataset, values, claims, profile, tuple(first[0].split()), first[1], **about)


def kept(folder: Path | None = None) -> list[Study]:
    """The studies in profile `paper` whose tables lie in `folder`, by default $RESULTS_HOME, else reports/results."""
    folder = Path(folder or os.environ.get("RESULTS_HOME") or FOLDER)
    studies = []
    for claims in sorted(folder.glob("*-claims.csv")):
        values = claims.with_name(claims.name.replace("-claims.csv", ".csv"))
        notebook, _, dataset = values.stem.partition("-")
        if values.exists() and notebook in PAPERS:
            texts = (path.read_text(encoding="utf-8") for path in (values, claims))
            studies.append(study(notebook, dataset, *texts, "paper"))
    return studies


def preferred(studies: Iterable[Study]) -> list[Study]:
    """The studies, those first whose rows count.

    As in the paper before altered, profile `paper` before others, more seeds before fewer, one with its report here
    before kept tables, and the newest before older ones.
    """
    newest = sorted(studies, key=lambda one: one.made, reverse=True)
    return sorted(newest, key=lambda one: (bool(one.altered), one.profile != "paper", -len(one.seeds), not one.page))


def verdicts(studies: Iterable[Study]) -> pd.DataFrame:
    """One row for each claim, dataset and model; of several studies the first of `preferred` decides.

    Returns:
        the columns CLAIM and ABOUT. Papers in the order of lib.papers, claims and models in that of their studies,
        datasets by name.
    """
    parts = [one.claims.assign(dataset=one.dataset, **one.about()) for one in preferred(studies) if len(one.claims)]
    if not parts:
        return pd.DataFrame(columns=[*CLAIM, *ABOUT])
    found = pd.concat([part.assign(study=number) for number, part in enumerate(parts)], ignore_index=True)
    found = found[found["study"] == found.groupby(DECIDED)["study"].transform("min")]
    found["place"] = found["paper"].map(list(TITLES).index)
    found["order"] = found.groupby(["paper", "short"], sort=False).ngroup()
    found = found.sort_values(["place", "order", "dataset", "study"], kind="stable", ignore_index=True)
    return found[[*CLAIM, *ABOUT]]


def counted(rows: pd.DataFrame) -> dict[str, int]:
    """How many models there are with each verdict, those that occur."""
    return {word: int(count) for word in VERDICTS if (count := rows["verdict"].eq(word).sum())}


def in_words(rows: pd.DataFrame) -> str:
    """The verdict on a claim and a dataset: "supported for all 4", or "1 of 4 supported, 3 undecided"."""
    (word, count), *others = counted(rows).items()
    if not others:
        return f"{word} for all {count}" if count > 1 else word
    return ", ".join([f"{count} of {len(rows)} {word}", *(f"{number} {other}" for other, number in others)])


def source(row: pd.Series) -> dict[str, str]:
    """Where a row comes from: the report's link, or "" for kept tables, and its profile, seeds and commit in words."""
    seeds = len(row["of_seeds"].split())
    altered = f", other {row['altered']}" if row["altered"] else ""
    words = f"{row['profile']}, {seeds} seed{'' if seeds == 1 else 's'}{altered}"
    return {"link": quote(row["report"]), "words": words, "commit": row["commit"]}
