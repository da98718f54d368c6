"""A paper: its runs, its claims, its published values, and the settings of its notebook."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from lib.analysis.statistics import over_what
from lib.quantity import title_of
from lib.training import Run, Trained
from papers import published
from papers.claims import Claim, counted
from papers.settings import Settings

Part = Callable[[Settings], list[Run]]


@dataclass(frozen=True)
class Paper:
    """A paper that the notebook of the same name re-runs.

    name          of its notebook
    key, title    in data/published.csv, and for a reader: "jain2019", "Jain & Wallace 2019"
    claim         what it claims, in one sentence
    settings      the parameters of its notebook
    parts         the runs of its notebook, by the functions that list them; `beside`: those that it trains beside them
    swept         parameters that dev chooses where none is given, each with the part that has a run for each value
    claims        by their short names
    evidence      from the notebook's tables: what each claim is judged by (papers.claims.EVIDENCE)
    partners      (kept rows, those of models by themselves) -> more rows, under the names that published.csv has
    seconds       of a report in profile quick on planted reviews, beside its trainings
    """

    name: str
    key: str
    title: str
    claim: str
    settings: type[Settings]
    parts: tuple[Part, ...]
    claims: Mapping[str, Claim]
    evidence: Callable[..., pd.DataFrame] | None = None
    beside: tuple[Part, ...] = ()
    swept: Mapping[str, Part] = field(default_factory=dict)
    partners: Callable[[pd.DataFrame, pd.DataFrame], list[pd.DataFrame]] = lambda rows, of_models: []
    seconds: float = 60.0

    def runs(self, settings: Settings, part: str | None = None) -> list[Run]:
        """All runs of the notebook, each once, or those of a part; KeyError with the known parts for another."""
        known = {one.__name__: one for one in (*self.parts, *self.beside)}
        if part is not None and part not in known:
            raise KeyError(f"unknown part {part!r} of {self.name!r}; known: {', '.join(known)}")
        parts = self.parts if part is None else (known[part],)
        return list(dict.fromkeys(run for one in parts for run in one(settings)))

    def published(self, dataset: str | None = None) -> pd.DataFrame:
        """Its published values, of one dataset where given: rows of data/published.csv (`papers.published.table`)."""
        return published.table(self.key, dataset)


def what_varies(trained: Sequence[Trained], these_models: bool) -> str:
    """What the intervals of a report are over, in a sentence; these_models: as of `papers.verdicts`."""
    if these_models:
        return f"The verdicts are of {counted(len(trained), 'model')} alone, and the intervals over texts."
    seeds = len({one.run.seed for one in trained})
    encoders = ", ".join(dict.fromkeys(title_of(one.run.encoder) for one in trained))
    of = f"{counted(seeds, 'seed')} of {encoders}"
    return f"The intervals are over {over_what(seeds)}: {of}. The summary judges all kept runs together."
