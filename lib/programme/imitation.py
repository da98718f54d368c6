"""Adversaries that imitate a model under a bounded divergence."""

from dataclasses import replace

from lib.training import Run

# Tutek & Snajder (2020): TVD of Eq. 7, over both classes, and JSD of Eq. 8 in the loss.
AIM = {"divergence": "jsd", "tvd": "full"}
OF_THE_BASE = ("delta", "eta", "epochs", "patience")  # its own objective, and when it ends


def imitation(base: Run, strength: float, epochs: int | None) -> Run:
    """The adversary of a model: built as it is, trained by Tutek & Snajder's Eq. 6 alone, and ended by its own rule.

    Args:
        strength: lambda. epochs: the most of them; None: the profile's.
    """
    options = {name: value for name, value in base.options if name not in OF_THE_BASE}
    options |= AIM | {"lambda": strength} | ({"epochs": epochs} if epochs else {})
    return replace(base, variant="adversary", base=base, options=tuple(options.items()))
