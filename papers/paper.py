"""A paper: its runs, its published values, and the settings of its notebook."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pandas as pd

from lib.analysis.summaries import join_seeds
from lib.quantity import RUN_COLUMNS
from lib.training import Run
from papers import published, results
from papers.settings import Settings

Part = Callable[[Settings], list[Run]]
# A kept row with one of these is one of several, and none of them is the value of the model alone.
SERIES = (*results.OPTIONS, "first", "epoch")


@dataclass(frozen=True)
class Paper:
    """A paper that the notebook of the same name re-runs."""

    name: str  # of its notebook
    key: str  # in data/published.csv: "jain2019"
    settings: type[Settings]  # the parameters of its notebook
    parts: tuple[Part, ...]  # the runs of its notebook, by the functions that list them
    # Parameters that dev chooses where none is given, each with the part that has a run for each value.
    swept: Mapping[str, Part] = field(default_factory=dict)
    # (kept rows, those of models by themselves) -> more rows, under the names that published.csv has.
    partners: Callable[[pd.DataFrame, pd.DataFrame], list[pd.DataFrame]] = lambda rows, of_models: []

    @property
    def title(self) -> str:
        """For a reader: "Jain & Wallace 2019"."""
        return published.TITLES.get(self.key, self.key)

    def runs(self, settings: Settings, part: str | None = None) -> list[Run]:
        """All runs of the notebook, each once, or of a part; KeyError for another, Damaged where a kept table is."""
        known = {one.__name__: one for one in self.parts}
        if part not in (None, *known):
            raise KeyError(f"unknown part {part!r} of {self.name!r}; known: {', '.join(known)}")
        if not results.not_kept(settings):  # before anything is trained
            _ = [results.kept(kind, self.name, str(settings.dataset)) for kind in results.KEYS]
        parts = [known[part]] if part else self.parts
        return list(dict.fromkeys(run for one in parts for run in one(settings)))

    def published(self, dataset: str | None = None) -> pd.DataFrame:
        """Its published values, of one dataset where given: rows of data/published.csv (`papers.published.table`)."""
        return published.table(self.key, dataset)

    def compare(self, values: pd.DataFrame) -> pd.DataFrame:
        """Rows of `lib.analysis.summarise` beside what it printed of the same datasets, models and quantities."""
        theirs = self.published()
        for name in ("dataset", "encoder", "attention", "quantity"):
            theirs = theirs[theirs[name].isin(values[name].map(str))]
        return published.compare(values, theirs)

    def ours(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Kept rows, one set of runs of each model, under the names that published.csv has for them, each once."""
        values = join_seeds(rows, [*RUN_COLUMNS, *results.OPTIONS])
        names = [*RUN_COLUMNS, "quantity", "value", "unit", *published.INTERVALS]
        values = values.reindex(columns=list(dict.fromkeys([*values, *names, *SERIES])))
        of_models = values[values["value"].notna() & values[list(SERIES)].isna().all(axis=1)]
        parts = [of_models, *self.partners(values, of_models)]
        found = published.with_text_keys(pd.concat([part[names] for part in parts if len(part)] or [values[names][:0]]))
        return found.drop_duplicates(published.KEYS, ignore_index=True)
