"""How much of an experiment is run: `quick` for minutes on two cores, `paper` for the papers' sizes."""

from typing import NamedTuple


class Profile(NamedTuple):
    """Sizes of a run; None: no limit. Of texts with a question only the tokens are limited."""

    name: str
    train_tokens: int | None
    test_tokens: int | None  # of dev, too
    train_texts: int | None
    test_texts: int | None
    epochs: int
    adversary_epochs: int  # at most: a trained adversary ends when its loss no longer falls
    seeds: int  # runs of each configuration, by default


PROFILES = {
    "quick": Profile("quick", 80_000, 25_000, 1_300, 300, epochs=4, adversary_epochs=5, seeds=2),
    "paper": Profile("paper", None, None, None, None, epochs=8, adversary_epochs=300, seeds=3),
}
