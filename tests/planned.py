"""The runs of a notebook, by its name and parameters."""

from lib.training import Run
from papers import PAPERS


def runs(notebook: str, dataset: str = "planted", profile: str = "quick", **others) -> list[Run]:
    """All runs of a notebook, "adversary", or of a part of it, "adversary/sweep"; others: its other parameters."""
    name, _, part = notebook.partition("/")
    return PAPERS[name].runs(PAPERS[name].settings(dataset=dataset, profile=profile, **others), part or None)
