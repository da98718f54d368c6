"""What a report needs trained: the runs that lib.programme lists for its notebook under its parameters."""

from dataclasses import dataclass, field, fields
from inspect import signature
from typing import Any

from lib import programme
from lib.datasets import own_text
from lib.datasets.corpus import Corpus
from lib.programme import Choice
from lib.programme.regularization import ATTENTIONS
from lib.training import Run, train_all, with_bases
from lib.training.trained import load_corpus

FIELDS = {field.name for field in fields(Choice)}
OF_FILES = tuple(signature(own_text).parameters)
RENAMED = {"attention": "attentions", "imitation_epochs": "adversary_epochs"}  # parameters that Choice calls otherwise
BESIDE = {"correlation": ("correlation/vector_scales",)}  # parts that a notebook trains beside its list
SWEPT = {"delta": "regularization/delta_sweep", "eta": "regularization/eta_sweep"}  # chosen on dev where 0 is given


@dataclass(frozen=True)
class Request:
    """A report's notebook, and the values of all its parameters."""

    notebook: str
    settings: dict[str, Any]

    @property
    def data_home(self) -> str | None:
        return self.settings.get("data_home") or None

    @property
    def swept(self) -> list[str]:
        """The options that dev chooses."""
        return [option for option in SWEPT if option in self.settings and not self.settings[option]]


@dataclass
class Corpora:
    """The corpora that runs read, each loaded once."""

    home: str | None
    loaded: dict[tuple, Corpus] = field(default_factory=dict)

    def of(self, run: Run) -> Corpus:
        if run.data not in self.loaded:
            self.loaded[run.data] = load_corpus(run, self.home)
        return self.loaded[run.data]


def needed(request: Request) -> tuple[list[Run], list[str]]:
    """The runs of a report, bases first, and the options that dev has yet to choose before the others are known.

    Raises:
        DataError, KeyError, ValueError: a parameter that the notebook would refuse, in one sentence.
    """
    notebook, settings = request.notebook, request.settings
    if notebook not in programme.NOTEBOOKS or settings.get("model"):
        return [], []
    chosen = choices(notebook, settings)
    runs = [run for option in request.swept for run in programme.runs(SWEPT[option], **chosen)]
    parts = () if request.swept else (notebook, *BESIDE.get(notebook, ()))
    runs += [run for part in parts for run in programme.runs(part, **chosen)]
    return with_bases(runs), request.swept


def chosen_on_dev(request: Request, corpora: Corpora) -> Request:
    """The same report with what dev chooses; trains the runs of the sweep that are not there."""
    from lib.analysis.tradeoff import by_dev

    chosen, found = choices(request.notebook, request.settings), {}
    for option in request.swept:
        runs = programme.runs(SWEPT[option], **chosen)
        table = by_dev(train_all(runs, corpora.home, corpus=corpora.of(runs[0])), option)
        found[option] = float(table.loc[table["chosen"], option].iloc[0])
    return Request(request.notebook, request.settings | found)


def choices(notebook: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The fields of lib.programme.Choice that a notebook's parameters decide."""
    given = {RENAMED.get(name, name): value for name, value in settings.items()}
    if "attention" in settings:
        given["attentions"] = [settings["attention"]]
    if notebook == "regularization":
        given["attentions"] = given["attentions"] or ATTENTIONS[given["profile"]]
    dataset = own_text(**{name: given[name] for name in OF_FILES if given.get(name)}) or given["dataset"]
    return {name: value for name, value in given.items() if name in FIELDS} | {"dataset": dataset}
