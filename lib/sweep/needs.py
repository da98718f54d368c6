"""What a report needs trained: the runs that lib.programme lists for its notebook under its parameters."""

from dataclasses import dataclass, fields
from typing import Any

from lib import programme
from lib.datasets import own_text
from lib.programme import Choice
from lib.programme.regularization import ATTENTIONS
from lib.training import Run, train_all, with_bases

FIELDS = {field.name for field in fields(Choice)}
RENAMED = {"attention": "attentions", "imitation_epochs": "adversary_epochs"}  # parameters that Choice calls otherwise
BESIDE = {"correlation": ("correlation/vector_scales",)}  # parts that a notebook trains beside its list
OWN = ("data", "text_column", "label_column", "split_column")
SWEPT = {"delta": "regularization/delta_sweep", "eta": "regularization/eta_sweep"}  # chosen on dev where 0 is given


@dataclass(frozen=True)
class Request:
    """A report's notebook, and the values of all its parameters."""

    notebook: str
    settings: dict[str, Any]

    @property
    def data_home(self) -> str | None:
        return self.settings.get("data_home") or None


def needed(request: Request) -> tuple[list[Run], list[str]]:
    """The runs of a report, bases first, and the options that dev has yet to choose before the others are known.

    Raises:
        DataError, KeyError, ValueError: a parameter that the notebook would refuse, in one sentence.
    """
    notebook, settings = request.notebook, request.settings
    if notebook not in programme.NOTEBOOKS or settings.get("model"):
        return [], []
    chosen = choices(notebook, settings)
    swept = [option for option in SWEPT if option in settings and not settings[option]]
    runs = [run for option in swept for run in programme.runs(SWEPT[option], **chosen)]
    parts = () if swept else (notebook, *BESIDE.get(notebook, ()))
    runs += [run for part in parts for run in programme.runs(part, **chosen)]
    return with_bases(runs), swept


def chosen_on_dev(request: Request) -> Request:
    """The same report with what dev chooses; trains the runs of the sweep that are not there."""
    from lib.instances.selecting import by_dev

    settings = request.settings
    chosen, found = choices(request.notebook, settings), {}
    for option, part in SWEPT.items():
        if option in settings and not settings[option]:
            table = by_dev(train_all(programme.runs(part, **chosen), request.data_home), option)
            found[option] = float(table.loc[table["chosen"], option].iloc[0])
    return Request(request.notebook, settings | found)


def choices(notebook: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The fields of lib.programme.Choice that a notebook's parameters decide."""
    given = {RENAMED.get(name, name): value for name, value in settings.items()}
    if "attention" in settings:
        given["attentions"] = [settings["attention"]]
    if notebook == "regularization":
        given["attentions"] = given["attentions"] or ATTENTIONS[given["profile"]]
    of_file = {name: given[name] for name in OWN if given.get(name)}
    dataset = own_text(**of_file, data_home=given.get("data_home") or None) or given["dataset"]
    return {name: value for name, value in given.items() if name in FIELDS} | {"dataset": dataset}
