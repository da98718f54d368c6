"""What a report needs trained: the runs that lib.papers lists for its notebook under its parameters."""

from dataclasses import dataclass
from typing import Any

from lib.papers import PAPERS, Settings
from lib.training import Run, train_all, with_bases
from lib.training.trained import Corpora


@dataclass(frozen=True)
class Request:
    """A report's notebook, and the values of all its parameters."""

    notebook: str
    settings: dict[str, Any]

    @property
    def data_home(self) -> str | None:
        """The folder of datasets; None: the default."""
        return self.settings.get("data_home") or None

    @property
    def swept(self) -> list[str]:
        """The options that dev chooses."""
        paper = PAPERS.get(self.notebook)
        return [option for option in paper.swept if not self.settings[option]] if paper else []

    def chosen(self) -> Settings:
        """The settings of its paper, checked."""
        return PAPERS[self.notebook].settings.of(self.settings)


def needed(request: Request) -> tuple[list[Run], list[str]]:
    """The runs of a report, bases first, and the options that dev has yet to choose before the others are known.

    Raises:
        DataError, KeyError, ValueError: a parameter that the notebook would refuse, in one sentence.
    """
    paper, swept = PAPERS.get(request.notebook), request.swept
    if paper is None or request.settings.get("model"):
        return [], []
    settings = request.chosen()
    parts = [paper.swept[option] for option in swept] or [*paper.parts, *paper.beside]
    return with_bases([run for part in parts for run in part(settings)]), swept


def chosen_on_dev(request: Request, corpora: Corpora) -> Request:
    """The same report with what dev chooses; trains the runs of the sweep that are not there."""
    from lib.analysis import dev_scores

    settings, found = request.chosen(), {}
    for option in request.swept:
        runs = PAPERS[request.notebook].swept[option](settings)
        table = dev_scores(train_all(runs, corpora.home, corpus=corpora.of(runs[0])), option)
        found[option] = float(table.loc[table["chosen"], option].iloc[0])
    return Request(request.notebook, request.settings | found)
