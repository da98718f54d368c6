"""The studies: what each notebook left of each dataset, and which of them count."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from lib.analysis.summarising import over_seeds
from papers import PAPERS
from papers.claims import counted, read_evidence
from papers.results import ABOUT as MADE
from papers.results import FOLDER, is_stale

# Where a row of a summary comes from.
ABOUT = ("profile", "run_seeds", "commit", "settings", "report", "made", "altered", "stale")


@dataclass(frozen=True, eq=False)
class Study:
    """What a notebook left of a dataset: one run of it, or several that were kept together.

    values           as given to `papers.results.keep`
    evidence         rows of EVIDENCE, and where each comes from
    seeds, commit    of its runs, as text; settings: sizes, parameters and device in words
    stale            whether other training code than the present made one of them
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
    settings: str = ""
    page: str = ""
    made: str = ""
    altered: tuple[str, ...] = ()
    stale: bool = False

    def about(self) -> dict[str, str]:
        """Where this study's rows come from, by the columns of ABOUT."""
        parts = (self.profile, " ".join(self.seeds), self.commit, self.settings, self.page, self.made)
        return dict(zip(ABOUT, (*parts, ", ".join(self.altered), "stale" if self.stale else ""), strict=True))


def study(notebook: str, dataset: str, values: str, evidence: str, profile: str, **about) -> Study:
    """A study from its two tables as CSV text, that of the values with a row for each seed."""
    values = pd.read_csv(StringIO(values), dtype=dict.fromkeys(MADE, str), low_memory=False)
    seeds = sorted(set(" ".join(values["run_seeds"].dropna().unique()).split()), key=int)
    commits = ", ".join(values["commit"].dropna().unique())
    about |= {"stale": bool(is_stale(values).any()), "settings": settings_of(values)}
    return Study(
        notebook, dataset, over_seeds(values, MADE), read_evidence(evidence), profile, tuple(seeds), commits, **about
    )


def settings_of(values: pd.DataFrame) -> str:
    """What runs were made with: "train 6,920 texts, test 1,725 texts, delta 1, cpu"; several values with "or"."""
    words = {f"{name}_texts": f"{name} {{}} texts" for name in ("train", "dev", "test")} | {"chosen": "{}"}
    words |= {"adversary_epochs": "adversaries of at most {} epochs", "device": "{}", "vectors": "vectors {}"}
    found = {name: [one for one in values[name].dropna().unique() if one] for name in words if name in values}
    return ", ".join(words[name].format(" or ".join(given)) for name, given in found.items() if given)


def kept(folder: Path | None = None) -> list[Study]:
    """The studies in profile `paper` whose tables lie in `folder`, by default $RESULTS_HOME, else reports/results."""
    folder = Path(folder or os.environ.get("RESULTS_HOME") or FOLDER)
    studies = []
    for evidence in sorted(folder.glob("*-evidence.csv")):
        values = evidence.with_name(f"{evidence.stem.rpartition('-')[0]}.csv")
        notebook, _, dataset = values.stem.partition("-")
        if values.exists() and notebook in PAPERS:
            texts = (path.read_text(encoding="utf-8") for path in (values, evidence))
            studies.append(study(notebook, dataset, *texts, "paper"))
    return studies


def preferred(studies: Iterable[Study]) -> list[Study]:
    """The studies, those first whose rows count.

    As in the paper before altered, profile `paper` before others, of the present training code before stale, more seeds
    before fewer, one with its report here before kept tables, and the newest before older ones.
    """
    newest = sorted(studies, key=lambda one: one.made, reverse=True)
    return sorted(
        newest, key=lambda one: (bool(one.altered), one.profile != "paper", one.stale, -len(one.seeds), not one.page)
    )


def source(row: Mapping[str, str]) -> dict[str, str]:
    """Where a row comes from: the report's link, or "" for kept tables, and its profile, seeds and commit in words."""
    altered = f"other {row['altered']}" if row["altered"] else ""
    parts = (row["profile"], counted(len(row["run_seeds"].split()), "seed"), altered, row["stale"])
    words = ", ".join(filter(None, parts))
    return {"link": quote(row["report"]), "words": words, "commit": row["commit"], "settings": row["settings"]}
