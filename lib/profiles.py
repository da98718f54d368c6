"""How much of an experiment is run: `quick` for minutes on two cores, `paper` for the papers' sizes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """Sizes of a run.

    train_tokens, test_tokens   how many tokens of train, and of dev or test, are read at most; None: all of them
    train_texts, test_texts     and how many texts; for texts with a question only the tokens are limited
    epochs                      passes over the training split
    adversary_epochs            most epochs of a trained adversary, which ends when its loss no longer falls
    seeds                       runs of each configuration, by default
    draws                       permutations of each instance's attention
    """

    name: str
    train_tokens: int | None
    test_tokens: int | None
    train_texts: int | None
    test_texts: int | None
    epochs: int
    adversary_epochs: int
    seeds: int
    draws: int


PROFILES = {
    "quick": Profile("quick", 80_000, 25_000, 1_300, 300, epochs=4, adversary_epochs=5, seeds=2, draws=100),
    "paper": Profile("paper", None, None, None, None, epochs=8, adversary_epochs=300, seeds=3, draws=100),
}


def profile(name: str) -> Profile:
    """The profile of that name; KeyError with those that there are."""
    if name not in PROFILES:
        raise KeyError(f"unknown profile {name!r}; known: {', '.join(PROFILES)}")
    return PROFILES[name]
