"""What each notebook, and each part of it, needs trained: the one list of runs."""

from lib.datasets import spec
from lib.models import HIERARCHICAL
from lib.programme import adversary, correlation, erasure, regularization, sparsity
from lib.programme.choice import Choice, device_kind, seeds_of
from lib.training import Run

__all__ = ["NOTEBOOKS", "Choice", "device_kind", "runs", "seeds_of"]

PARTS = {
    correlation: ("correlation", "vector_scales"),
    adversary: ("adversary", "base_seeds", "uniform", "guides", "sweep", "frozen_sweep"),
    regularization: (
        "regularization",
        *("variants", "delta_sweep", "eta_sweep", "layers", "adversaries", "dot_initialisation"),
    ),
    sparsity: ("sparsity", "models", "sweep", "spectrum", "converged", "adversaries", "frozen_adversaries"),
    erasure: ("erasure",),
}
# "adversary" lists all that a notebook needs, "adversary/sweep" a part of it.
NOTEBOOKS = {
    whole if name == whole else f"{whole}/{name}": getattr(module, name)
    for module, (whole, *parts) in PARTS.items()
    for name in (whole, *parts)
}


def runs(notebook: str, dataset: str = "planted", profile: str = "quick", *models, **options) -> list[Run]:
    """All runs of a notebook, or of a part of it, on a dataset.

    Args:
        models, options: the other fields of Choice.
    Raises:
        KeyError, ValueError: an unknown notebook, encoder, attention, profile, seed or device, with the known ones.
    """
    if notebook not in NOTEBOOKS:
        raise KeyError(f"unknown notebook {notebook!r}; known: {', '.join(NOTEBOOKS)}")
    choice = Choice(dataset, profile, *models, **options)
    of_sentences = [name for name in choice.encoders if name in HIERARCHICAL]
    if of_sentences and not notebook.startswith("erasure"):
        raise ValueError(
            f"the encoder {of_sentences[0]!r} attends to sentences; {notebook.split('/')[0]!r} is about attention to "
            "words, and it is for 'erasure'"
        )
    if spec(choice.dataset).asks and not notebook.startswith("correlation"):
        raise ValueError(
            f"{choice.dataset!r} asks questions, which only the models of 'correlation' answer; choose another dataset "
            f"for {notebook.split('/')[0]!r}"
        )
    return NOTEBOOKS[notebook](choice)
