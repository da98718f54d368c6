"""The runs of Jain & Wallace (2019)."""

from dataclasses import replace
from itertools import product

from lib.programme.choice import Choice, seeds_of
from lib.training import Run

ENCODERS = ("bilstm", "average", "conv")
VECTOR_SCALES = {"quick": (1.0, 0.1), "paper": (1.0, 0.3, 0.1)}


def correlation(choice: Choice) -> list[Run]:
    """Every encoder with every attention, several seeds."""
    seeds = seeds_of(choice.profile, choice.seeds)
    return [choice.run(*parts) for parts in product(choice.encoders or ENCODERS, choice.attentions, seeds)]


def vector_scales(choice: Choice) -> list[Run]:
    """The first encoder and attention, its word vectors as they are and shorter: why taus differ."""
    first = correlation(replace(choice, encoders=(choice.encoders or ENCODERS)[:1], attentions=choice.attentions[:1]))
    scales = [() if scale == 1 else (("vector_scale", scale),) for scale in VECTOR_SCALES[choice.profile]]
    return [replace(run, options=options) for options in scales for run in first]
