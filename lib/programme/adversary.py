"""The runs of Wiegreffe & Pinter (2019)."""

from dataclasses import replace

from lib.programme.choice import Choice, seeds_of
from lib.training import Run
from lib.training.options import OPTIONS_OF

BASE_SEEDS = {"quick": 3, "paper": 9}  # the base and others: eight, as Wiegreffe & Pinter have it
ADVERSARY_SEEDS = {"quick": 2, "paper": 5}
# Wiegreffe & Pinter's of SST is 5.25e-4, that of their table 3 is 1e-3.
LAMBDAS = {"quick": (5e-4, 1e-3, 2e-3), "paper": (3e-4, 5.25e-4, 1e-3)}
# With a frozen encoder attention hardly moves at those; far above, the unbounded divergence grows without end.
FROZEN_LAMBDAS = {"quick": (1e-3, 5e-3, 2e-2), "paper": (5.25e-4, 1e-3, 5e-3)}


def adversary(choice: Choice) -> list[Run]:
    """All of the parts below."""
    parts = (base_seeds, uniform, guides, sweep, frozen_sweep)
    return list(dict.fromkeys(run for part in parts for run in part(choice)))


def bases(choice: Choice, others: int = 0) -> list[Run]:
    """The paper's main model under every seed, and under `others` seeds more."""
    chosen = seeds_of(choice.profile, choice.seeds or ADVERSARY_SEEDS[choice.profile])
    more = [seed for seed in range(len(chosen) + others) if seed not in chosen][:others]
    return [choice.run("bilstm", choice.attentions[0], seed) for seed in chosen + more]


def base_seeds(choice: Choice) -> list[Run]:
    """The base, and the same model under other seeds: BASE_SEEDS of the profile, or as many as were chosen."""
    return bases(choice, others=max(0, BASE_SEEDS[choice.profile] - len(bases(choice))))


def uniform(choice: Choice) -> list[Run]:
    """The base's architecture with equal attention to all tokens (section 3.2)."""
    return [replace(base, variant="uniform") for base in bases(choice)]


def sweep(choice: Choice, trains: str = "all") -> list[Run]:
    """Trained adversaries (section 4): for each seed one of each lambda, against the base of that seed."""
    aim = {"divergence": choice.divergence, "tvd": choice.tvd, "trains": trains}
    aim = tuple((name, value) for name, value in aim.items() if value != OPTIONS_OF["adversary"][name])
    if choice.adversary_epochs and trains == "all":
        aim += (("epochs", choice.adversary_epochs),)
    return [
        replace(base, variant="adversary", base=base, options=(("lambda", strength), *aim))
        for base in bases(choice)
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
