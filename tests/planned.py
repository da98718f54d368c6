"""The runs of a notebook, by its name and parameters, and its report as a sweep plans it."""

from lib.training import Run
from papers import PAPERS
from tools.report import parameters
from tools.sweep.plan import Report


def runs(notebook: str, dataset: str = "planted", profile: str = "quick", **others) -> list[Run]:
    """All runs of a notebook, "adversary", or of a part of it, "adversary/sweep"; others: its other parameters."""
    name, _, part = notebook.partition("/")
    return PAPERS[name].runs(PAPERS[name].settings(dataset=dataset, profile=profile, **others), part or None)


def report(notebook: str, *pairs: tuple[str, str]) -> Report:
    """The report of a notebook with these parameters, written as on a command line."""
    path = parameters.find_notebook(notebook)
    return Report(path, parameters.given_parameters(path, list(pairs)))
