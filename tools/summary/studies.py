"""All studies together: every claim on every dataset, and every published value beside ours."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pandas as pd

from lib import published
from lib.papers import PAPERS, TITLES, Paper
from lib.published import COUNTED, KEYS
from lib.results import FOLDER

ABOUT = ("profile", "of_seeds", "commit", "report", "made", "altered")  # where a row of a summary comes from
VERDICTS = ("supported", "contradicted", "undecided")
CLAIM = ["paper", "short", "claim", "dataset", "model", "verdict", "evidence"]
DECIDED = ["paper", "short", "dataset", "model"]  # by a single study
OURS = [*KEYS, "value", "unit", "low", "high", "sd_seeds", "seeds"]
# A row with one of these is one of several, and none of them is the value of the model alone.
SERIES = ("trains", "lambda", "rate", "ranking", "way", "series", "at", "first", "against", "start", "epoch")
TOLERANCE = 0.06  # of fractions and of tau-b: the difference beyond which this project owes an explanation
SHARE = 0.1  # of the published value: the same for values in nats, which have no common scale
ROUNDING = 1e-9  # .76 - .70 is a little more than .06 in floating point, and is meant to be inside
PLACE = ["paper", "table", *KEYS]


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


def partners(study: Study) -> pd.DataFrame:
    """A study's values under the names that published.csv has for them: the columns OURS, each key once."""
    table = study.values.reindex(columns=list(dict.fromkeys([*study.values, *OURS, *SERIES])))
    of_models = table[table["value"].notna() & table[list(SERIES)].isna().all(axis=1)]
    parts = [of_models, *PAPERS[study.notebook].partners(table, of_models)]
    parts = [part[OURS] for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=OURS)
    found = published.with_text_keys(pd.concat(parts, ignore_index=True))
    return found.drop_duplicates(KEYS, ignore_index=True)


def tolerance(unit: str, value: float) -> float:
    """The largest difference from a published value that counts as the same, in its unit."""
    return TOLERANCE if unit in ("fraction", "tau-b") else SHARE * abs(value)


def values(studies: Iterable[Study]) -> pd.DataFrame:
    """One row for each row of published.csv, in its order, whether we have a value or not.

    A paper's values are looked up in the studies of its notebook; of several studies the first of `preferred` that
    has the value is taken.

    Returns:
        paper, table, the keys, theirs, unit, ours, low, high, seeds, difference, inside (our interval; missing where
        there is none), tolerance, within (it; missing where we have no value), where ours comes from, note.
    """
    studies = preferred(studies)
    with_values = {name: paper for name, paper in PAPERS.items() if len(paper.published())}
    parts = [of_paper(paper, [one for one in studies if one.notebook == name]) for name, paper in with_values.items()]
    found = published.table()[PLACE].merge(pd.concat(parts), on=PLACE, how="left", validate="1:1")
    found["tolerance"] = [tolerance(*row) for row in zip(found["unit"], found["theirs"], strict=True)]
    close = found["difference"].abs() <= found["tolerance"] + ROUNDING
    found["within"] = close.astype("boolean").where(found["ours"].notna())
    measured = ["ours", "low", "high", "seeds", "difference", "inside", "tolerance", "within"]
    found[list(ABOUT)] = found[list(ABOUT)].fillna("")
    return found[[*PLACE, "theirs", "unit", *measured, *ABOUT, "note"]]


def of_paper(paper: Paper, studies: list[Study]) -> pd.DataFrame:
    """The published values of a paper beside those of its studies, the preferred one first."""
    about = pd.DataFrame([one.about() for one in studies], columns=ABOUT)
    ours = [partners(one).assign(study=number) for number, one in enumerate(studies)]
    ours = pd.concat(ours) if ours else pd.DataFrame(columns=[*OURS, "study"])
    ours = ours.drop_duplicates(KEYS).astype(dict.fromkeys(("value", "low", "high", "seeds"), float))
    beside = published.beside(ours, paper.published())
    beside = beside[beside["theirs"].notna()].merge(ours[[*KEYS, "study"]], on=KEYS, how="left")
    return beside.merge(about, left_on="study", right_index=True, how="left")


def counts(values: pd.DataFrame, *by: str) -> pd.DataFrame:
    """How many published values there are, and how many have one of ours, for each value of the columns `by`.

    Returns:
        the columns `by`, published, sizes (of data and vocabularies, and settings such as lambda: no results), ours,
        with_interval, inside (the interval), within (the tolerance), quick (ours are of a profile other than `paper`).
    """
    sizes = values["unit"].isin(COUNTED) | values["quantity"].eq("lambda") | values["encoder"].eq("")
    flags = {
        "published": values["theirs"].notna(),
        "sizes": sizes,
        "ours": values["ours"].notna(),
        "with_interval": values["inside"].notna(),
        "inside": values["inside"].fillna(False),
        "within": values["within"].fillna(False),
        "quick": values["ours"].notna() & values["profile"].ne("paper"),
    }
    numbers = pd.DataFrame(flags).astype(int)
    return numbers.groupby([values[name] for name in by], sort=False).sum().reset_index()
