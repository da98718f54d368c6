"""Studies: a notebook that ran on a dataset, and the two tables that it left."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pandas as pd

from lib.papers import PAPERS
from lib.results import FOLDER

ABOUT = ("profile", "of_seeds", "commit", "report", "made", "altered")  # where a row of a summary comes from


@dataclass(frozen=True, eq=False)
class Study:
    """A notebook that ran on a dataset.

    values, claims   as given to `lib.results.keep`
    seeds            of its runs, as text
    page, made       the file of its report and when it was made; "" for kept tables, whose report lies elsewhere
    altered          parameters that made another experiment of it than the paper's, such as the projection
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
        said = (self.profile, " ".join(self.seeds), self.commit, self.page, self.made, ", ".join(self.altered))
        return dict(zip(ABOUT, said, strict=True))


def study(notebook: str, dataset: str, values: str, claims: str, profile: str, **about) -> Study:
    """A study from its two tables as CSV text; their columns `commit` and `of_seeds` say where they come from."""
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
    """The studies in the order in which they are asked.

    As in the paper before altered, profile `paper` before others, more seeds before fewer, one with its report here
    before kept tables, and the newest before older ones.
    """
    newest = sorted(studies, key=lambda one: one.made, reverse=True)
    return sorted(newest, key=lambda one: (bool(one.altered), one.profile != "paper", -len(one.seeds), not one.page))
