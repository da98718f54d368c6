"""What each notebook, and each further experiment in it, needs trained: the one list of runs."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import torch

from lib.models import ATTENTIONS, ENCODERS
from lib.profiles import profile as profile_named
from lib.training import Run

DEVICES = ("auto", "cpu", "cuda")
VECTOR_SCALES = {"quick": (1.0, 0.1), "paper": (1.0, 0.3, 0.1)}


def device_kind(device: str = "auto") -> str:
    """cpu or cuda: what `device` names, or for "auto" a GPU where there is one."""
    if device not in DEVICES:
        raise ValueError(f"unknown device {device!r}; known: {', '.join(DEVICES)}")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device is 'cuda', but torch finds no GPU here; use 'cpu' or 'auto'")
    return "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"


def seeds_of(profile: str, seeds: int | Sequence[int] | None = None) -> list[int]:
    """The seeds themselves: as given, or 0 .. n - 1 for a number, or as many as the profile has."""
    if seeds is None or seeds == 0 or seeds == []:
        seeds = profile_named(profile).seeds
    chosen = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not all(isinstance(seed, int) and seed >= 0 for seed in chosen) or len(set(chosen)) < len(chosen):
        raise ValueError(f"seeds are {seeds}; allowed: a number, or a list of different whole numbers from 0 up")
    return chosen


def correlation(dataset: str, profile: str, encoders, attentions, seeds, vectors: str, device: str) -> list[Run]:
    """Jain & Wallace (2019): every encoder with every attention, several seeds."""
    return [
        Run(dataset, encoder, attention, seed=seed, profile=profile, vectors=vectors, device_kind=device_kind(device))
        for encoder, attention, seed in product(encoders, attentions, seeds_of(profile, seeds))
    ]


def vector_scales(dataset: str, profile: str, encoders, attentions, seeds, vectors: str, device: str) -> list[Run]:
    """The first encoder and attention, its word vectors as they are and shorter: why taus differ."""
    first = correlation(dataset, profile, encoders[:1], attentions[:1], seeds, vectors, device)
    scales = [() if scale == 1 else (("vector_scale", scale),) for scale in VECTOR_SCALES[profile]]
    return [replace(run, options=options) for options in scales for run in first]


NOTEBOOKS = {"correlation": correlation, "correlation/vector_scales": vector_scales}


def runs(
    notebook: str,
    dataset: str = "planted",
    profile: str = "quick",
    encoders: Sequence[str] = tuple(ENCODERS),
    attentions: Sequence[str] = tuple(ATTENTIONS),
    seeds: int | Sequence[int] | None = None,
    vectors: str = "auto",
    device: str = "auto",
) -> list[Run]:
    """All runs of a notebook on a dataset.

    Raises:
        KeyError, ValueError: an unknown notebook, encoder, attention, profile, seed or device, with the known ones.
    """
    for what, names, known in (
        ("notebook", [notebook], NOTEBOOKS),
        ("encoder", encoders, ENCODERS),
        ("attention", attentions, ATTENTIONS),
    ):
        for name in names:
            if name not in known:
                raise KeyError(f"unknown {what} {name!r}; known: {', '.join(known)}")
        if not names or len(set(names)) < len(names):
            raise ValueError(f"{what}s are {list(names)}; allowed: at least one, each once")
    return NOTEBOOKS[notebook](dataset, profile, encoders, attentions, seeds, vectors, device)
