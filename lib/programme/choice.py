"""What a reader chooses of a notebook's runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lib.datasets import spec
from lib.models import ATTENTIONS
from lib.profiles import profile as profile_named
from lib.projections import projection as projection_named
from lib.training import Run
from lib.training.options import OPTIONS_OF
from lib.training.runs import KINDS, REGULARIZED

DEVICES = ("auto", "cpu", "cuda")


def device_kind(device: str = "auto") -> str:
    """cpu or cuda: what `device` names, or for "auto" a GPU where there is one.

    Runs for a GPU may be planned where there is none, such as on a cluster's login node; they are trained elsewhere.
    """
    if device not in DEVICES:
        raise ValueError(f"unknown device {device!r}; known: {', '.join(DEVICES)}")
    return "cuda" if device == "cuda" or (device == "auto" and torch.cuda.is_available()) else "cpu"


def seeds_of(profile: str, seeds: int | Sequence[int] | None = None) -> list[int]:
    """The seeds themselves: as given, or 0 .. n - 1 for a number, or as many as the profile has."""
    if seeds is None or seeds == 0 or seeds == []:
        seeds = profile_named(profile).seeds
    chosen = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not all(isinstance(seed, int) and seed >= 0 for seed in chosen) or len(set(chosen)) < len(chosen):
        raise ValueError(f"seeds are {seeds}; allowed: a number, or a list of different whole numbers from 0 up")
    return chosen


@dataclass(frozen=True)
class Choice:
    """The parameters of the notebooks that decide what is trained.

    encoders         none: the notebook's
    projection       of the attention, in notebooks that do not compare projections
    seeds, lambdas, frozen_lambdas, adversary_epochs    none: the profile's
    delta, eta       weights of tying and of the masked language model; none: 10 and 1
    frozen           the variants whose embeddings do not learn
    strengths        sparsegen's lambdas; none: the profile's
    projections      beside sparsegen, such as softmax or entmax:1.5; none: the profile's
    rates            learning rates of `sparsity`: fast, or published
    converged        whether `sparsity` also trains one model of each encoder at the published rate, to convergence
    layers           of the deeper models, beyond the one of all others; none: the profile's
    train_texts, test_texts    at most so many, drawn at random, of datasets that offer it; none: all
    """

    dataset: str = "planted"
    profile: str = "quick"
    encoders: Sequence[str] = ()
    attentions: Sequence[str] = tuple(ATTENTIONS)
    seeds: int | Sequence[int] | None = None
    vectors: str = "auto"
    device: str = "auto"
    lambdas: Sequence[float] | None = None
    frozen_lambdas: Sequence[float] | None = None
    divergence: str = OPTIONS_OF["adversary"]["divergence"]
    tvd: str = OPTIONS_OF["adversary"]["tvd"]
    adversary_epochs: int | None = None
    delta: float | None = None
    eta: float | None = None
    frozen: Sequence[str] = ("residual", "tying", "mlm")
    projection: str = "softmax"
    strengths: Sequence[float] | None = None
    projections: Sequence[str] = ()
    rates: str = "fast"
    converged: bool = True
    layers: Sequence[int] | None = None
    train_texts: int | None = None
    test_texts: int | None = None

    def __post_init__(self):
        for what, names, known in (
            ("encoder", self.encoders, KINDS),
            ("attention", self.attentions, ATTENTIONS),
            ("variant", self.frozen, REGULARIZED),
        ):
            for name in names:
                if name not in known:
                    raise KeyError(f"unknown {what} {name!r}; known: {', '.join(known)}")
            if len(set(names)) < len(names) or (not names and what == "attention"):
                raise ValueError(f"{what}s are {list(names)}; allowed: at least one, each once")
        profile_named(self.profile)
        for name in (self.projection, *self.projections):
            projection_named(name)
        offered = spec(self.dataset).options
        for name in self.of_dataset:
            if name not in offered:
                raise ValueError(f"{name} is {getattr(self, name)}, but {self.dataset!r} is read whole; leave it out")

    @property
    def of_dataset(self) -> dict[str, int]:
        """The options of the dataset that were chosen."""
        return {name: value for name in ("train_texts", "test_texts") if (value := getattr(self, name))}

    def run(self, encoder: str, attention: str, seed: int, **more) -> Run:
        kind = device_kind(self.device)
        models = self.dataset, encoder, attention
        given = {"projection": self.projection, "profile": self.profile, "vectors": self.vectors}
        return Run(*models, seed=seed, device_kind=kind, **given, **more)
