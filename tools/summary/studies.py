"""The studies: what each notebook left of each dataset, and which of them count."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from lib.papers import PAPERS
from lib.papers.claims import read_evidence
from lib.results import FOLDER

ABOUT = ("profile", "run_seeds", "commit", "report", "made", "altered")  # where a row of a summary comes from


@dataclass(frozen=True, eq=False)
class Study:
    """A notebook that ran on a dataset, and the two tables that it left.

    values, evidence as given to `lib.results.keep`; of tables kept before a table of verdicts in place of evidence
    seeds            of its runs, as text
    page, made       the file of its report and when it was made; "" for kept tables, whose report lies elsewhere
    altered          parameters that make it another experiment than the paper's, such as the projection
    """

    notebook: str
    dataset: str
    values: pd.DataFrame
    evidence: pd.DataFrame
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


def study(notebook: str, dataset: str, values: str, evidence: str, profile: str, **about) -> Study:
    """A study from its two tables as CSV text, whose columns `commit` and `run_seeds` it takes over."""
    values = pd.read_csv(StringIO(values), dtype={"run_seeds": str, "of_seeds": str, "commit": str}, low_memory=False)
    values = values if "run_seeds" in values else values.rename(columns={"of_seeds": "run_seeds"})  # kept before
    table = pd.read_csv(StringIO(evidence), dtype=str, keep_default_na=False)
    table = read_evidence(evidence) if len(table) and "verdict" not in table else table
    first = next(iter(values[["run_seeds", "commit"]].fillna("").itertuples(index=False)), ("", ""))
    return Study(notebook, dataset, values, table, profile, tuple(first[0].split()), first[1], **about)


def kept(folder: Path | None = None) -> list[Study]:
    """The studies in profile `paper` whose tables lie in `folder`, by default $RESULTS_HOME, else reports/results."""
    folder = Path(folder or os.environ.get("RESULTS_HOME") or FOLDER)
    studies = []
    for evidence in sorted([*folder.glob("*-claims.csv"), *folder.glob("*-evidence.csv")]):
        values = evidence.with_name(f"{evidence.stem.rpartition('-')[0]}.csv")
        notebook, _, dataset = values.stem.partition("-")
        if values.exists() and notebook in PAPERS:
            texts = (path.read_text(encoding="utf-8") for path in (values, evidence))
            studies.append(study(notebook, dataset, *texts, "paper"))
    return studies


def preferred(studies: Iterable[Study]) -> list[Study]:
    """The studies, those first whose rows count.

    As in the paper before altered, profile `paper` before others, more seeds before fewer, one with its report here
    before kept tables, and the newest before older ones.
    """
    newest = sorted(studies, key=lambda one: one.made, reverse=True)
    return sorted(newest, key=lambda one: (bool(one.altered), one.profile != "paper", -len(one.seeds), not one.page))


def source(row: pd.Series) -> dict[str, str]:
    """Where a row comes from: the report's link, or "" for kept tables, and its profile, seeds and commit in words."""
    seeds = len(row["run_seeds"].split())
    altered = f", other {row['altered']}" if row["altered"] else ""
    words = f"{row['profile']}, {seeds} seed{'' if seeds == 1 else 's'}{altered}"
    return {"link": quote(row["report"]), "words": words, "commit": row["commit"]}
