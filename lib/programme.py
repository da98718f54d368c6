"""What each notebook, and each further experiment in it, needs trained: the one list of runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import torch

from lib.models import ATTENTIONS, ENCODERS
from lib.profiles import profile as profile_named
from lib.training import Run
from lib.training.runs import ADVERSARY_OPTIONS

DEVICES = ("auto", "cpu", "cuda")
VECTOR_SCALES = {"quick": (1.0, 0.1), "paper": (1.0, 0.3, 0.1)}
BASE_SEEDS = {"quick": 3, "paper": 9}  # the base and others: eight, as Wiegreffe & Pinter have it
ADVERSARY_SEEDS = {"quick": 3, "paper": 5}
# Wiegreffe & Pinter's of SST is 5.25e-4, that of their table 3 is 1e-3.
LAMBDAS = {"quick": (5e-4, 1e-3, 2e-3), "paper": (3e-4, 5.25e-4, 1e-3)}
# With a frozen encoder attention hardly moves at those; far above, the unbounded divergence grows without end.
FROZEN_LAMBDAS = {"quick": (1e-3, 5e-3, 2e-2), "paper": (5.25e-4, 1e-3, 5e-3)}


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


@dataclass(frozen=True)
class Choice:
    """What a reader chooses of a notebook's runs; from `lambdas` on it is about adversaries."""

    dataset: str
    profile: str
    encoders: Sequence[str]
    attentions: Sequence[str]
    seeds: int | Sequence[int] | None
    vectors: str
    device: str
    lambdas: Sequence[float] | None
    frozen_lambdas: Sequence[float] | None
    divergence: str
    tvd: str
    adversary_epochs: int | None

    def run(self, encoder: str, attention: str, seed: int) -> Run:
        kind = device_kind(self.device)
        return Run(
            *(self.dataset, encoder, attention), seed=seed, profile=self.profile, vectors=self.vectors, device_kind=kind
        )

    def bases(self, others: int = 0) -> list[Run]:
        """Wiegreffe & Pinter's main model under every seed, and under `others` seeds more."""
        chosen = seeds_of(self.profile, self.seeds or ADVERSARY_SEEDS[self.profile])
        more = [seed for seed in range(len(chosen) + others) if seed not in chosen][:others]
        return [self.run("bilstm", self.attentions[0], seed) for seed in chosen + more]


def correlation(choice: Choice) -> list[Run]:
    """Jain & Wallace (2019): every encoder with every attention, several seeds."""
    seeds = seeds_of(choice.profile, choice.seeds)
    return [choice.run(*parts) for parts in product(choice.encoders, choice.attentions, seeds)]


def vector_scales(choice: Choice) -> list[Run]:
    """The first encoder and attention, its word vectors as they are and shorter: why taus differ."""
    first = correlation(replace(choice, encoders=choice.encoders[:1], attentions=choice.attentions[:1]))
    scales = [() if scale == 1 else (("vector_scale", scale),) for scale in VECTOR_SCALES[choice.profile]]
    return [replace(run, options=options) for options in scales for run in first]


def adversary(choice: Choice) -> list[Run]:
    """Wiegreffe & Pinter (2019): all of the parts below."""
    parts = (base_seeds, uniform, guides, sweep, frozen_sweep)
    return list(dict.fromkeys(run for part in parts for run in part(choice)))


def base_seeds(choice: Choice) -> list[Run]:
    """The base, and the same model under other seeds: BASE_SEEDS of the profile, or as many as were chosen."""
    return choice.bases(others=max(0, BASE_SEEDS[choice.profile] - len(choice.bases())))


def uniform(choice: Choice) -> list[Run]:
    """The base's architecture with equal attention to all tokens (section 3.2)."""
    return [replace(base, variant="uniform") for base in choice.bases()]


def sweep(choice: Choice, trains: str = "all") -> list[Run]:
    """Trained adversaries (section 4): for each seed one of each lambda, against the base of that seed."""
    aim = {"divergence": choice.divergence, "tvd": choice.tvd, "trains": trains}
    aim = tuple((name, value) for name, value in aim.items() if value != ADVERSARY_OPTIONS[name])
    if choice.adversary_epochs and trains == "all":
        aim += (("epochs", choice.adversary_epochs),)
    return [
        replace(base, variant="adversary", base=base, options=(("lambda", strength), *aim))
        for base in choice.bases()
        for strength in choice.lambdas or LAMBDAS[choice.profile]
    ]


def frozen_sweep(choice: Choice) -> list[Run]:
    """The same with the base's encoder and decoder, fixed: only the attention learns."""
    return sweep(replace(choice, lambdas=choice.frozen_lambdas or FROZEN_LAMBDAS[choice.profile]), trains="attention")


def guides(choice: Choice) -> list[Run]:
    """The guided MLP (section 3.4), which is Jain & Wallace's average encoder: without and with each guide.

    The trained adversary that guides is that of the largest lambda, as in the paper's table 3.
    """
    strongest = max(choice.lambdas or LAMBDAS[choice.profile])
    found = []
    for adversary in sweep(replace(choice, lambdas=[strongest])):
        learned = replace(adversary.base, encoder="average")
        guided = [("base", adversary.base), ("adversary", adversary), ("instance_adversary", adversary.base)]
        found += [replace(learned, variant="uniform"), learned]
        found += [replace(learned, variant=f"guide_{kind}", base=base) for kind, base in guided]
    return found


NOTEBOOKS = {
    "correlation": correlation,
    "correlation/vector_scales": vector_scales,
    "adversary": adversary,
    "adversary/base_seeds": base_seeds,
    "adversary/uniform": uniform,
    "adversary/guides": guides,
    "adversary/sweep": sweep,
    "adversary/frozen_sweep": frozen_sweep,
}


def runs(
    notebook: str,
    dataset: str = "planted",
    profile: str = "quick",
    encoders: Sequence[str] = tuple(ENCODERS),
    attentions: Sequence[str] = tuple(ATTENTIONS),
    seeds: int | Sequence[int] | None = None,
    vectors: str = "auto",
    device: str = "auto",
    lambdas: Sequence[float] | None = None,
    frozen_lambdas: Sequence[float] | None = None,
    divergence: str = ADVERSARY_OPTIONS["divergence"],
    tvd: str = ADVERSARY_OPTIONS["tvd"],
    adversary_epochs: int | None = None,
) -> list[Run]:
    """All runs of a notebook, or of a part of it, on a dataset.

    Args:
        seeds, lambdas, frozen_lambdas: none: the profile's.
        adversary_epochs: the most epochs of an adversary that learns all its weights; none: the profile's.
    Raises:
        KeyError, ValueError: an unknown notebook, encoder, attention, profile, seed or device, with the known ones.
    """
    for what, names, known in (
        ("notebook", [notebook], NOTEBOOKS),
        ("profile", [profile], BASE_SEEDS),
        ("encoder", encoders, ENCODERS),
        ("attention", attentions, ATTENTIONS),
    ):
        for name in names:
            if name not in known:
                raise KeyError(f"unknown {what} {name!r}; known: {', '.join(known)}")
        if not names or len(set(names)) < len(names):
            raise ValueError(f"{what}s are {list(names)}; allowed: at least one, each once")
    models = dataset, profile, encoders, attentions, seeds, vectors, device
    return NOTEBOOKS[notebook](Choice(*models, lambdas, frozen_lambdas, divergence, tvd, adversary_epochs))
