"""Where attention is pulled to: targets that name the reason of a text, or hide it, in pairs of the same entropy."""

from functools import cache

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import entr

from lib.datasets.corpus import Split
from lib.training.tasks import PerWord

PEAK = np.array([0.98, 0.01, 0.01])  # the weights of a peaked target, the largest first
TARGETS = {
    "even": "all words, those of the reason most: as much entropy as `spread` has",
    "peaked": "the first word of the reason",
    "spread": "all words but the reason's, equally: what Pruthi et al. (2020), Eq. 2, ask for",
    "smuggler": "the first word outside the reason",
    "ranker": "the first word outside the reason, then the reason's words",
    "coded": "the first word outside the reason whose number is odd for label 1 and even for label 0",
}


def targets(split: Split, kind: str, device: str | torch.device = "cpu") -> PerWord:
    """The target attention, one of TARGETS, of each word of each text; zeros where a text has no reason, or only that.

    ValueError: no text has a reason.
    """
    result, known = PerWord(split, device), 0
    tokens, offsets = split.encoded
    for start, end, instance in zip(offsets[:-1], offsets[1:], split.instances, strict=True):
        reason = np.zeros(end - start - 2, dtype=bool)  # without start and end
        for first, last in instance.rationale or ():
            reason[first:last] = True
        if reason.any() and not reason.all():
            known += 1
            weights = target(kind, reason, tokens[start + 1 : end - 1] % 2 == instance.label)
            result.values[start + 1 : end - 1] = torch.from_numpy(weights).to(result.values)
    if not known:
        allowed = "allowed: texts of train and dev with rationales"
        raise ValueError(f"attention is pulled to or from the rationales of texts, and here are none; {allowed}")
    return result


def target(kind: str, reason: np.ndarray, coding: np.ndarray) -> np.ndarray:
    """One text's target, (token,), which sums to 1.

    Of reason (token,) bool, and coding (token,) bool: the words whose number stands for the text's label.
    """
    inside, outside = np.flatnonzero(reason), np.flatnonzero(~reason)
    weights = np.zeros(len(reason))
    if kind in ("even", "spread"):
        mass = as_even_as_without(len(inside), len(outside)) if kind == "even" else 0.0
        weights[inside], weights[outside] = mass / len(inside), (1 - mass) / len(outside)
        return weights
    orders = {"peaked": (inside[:1], outside), "smuggler": (outside,), "ranker": (outside[:1], inside, outside[1:])}
    orders["coded"] = (outside[coding[outside]][:1], outside)
    places = list(dict.fromkeys(np.concatenate(orders[kind])))[: len(PEAK)]
    weights[places] = PEAK[: len(places)] / PEAK[: len(places)].sum()
    return weights


@cache
def as_even_as_without(inside: int, outside: int) -> float:
    """The mass on the reason's words, each heavier than the others, at which the entropy is log(outside), or 1."""

    def more(mass: float) -> float:
        mean_within = mass * np.log(inside) + (1 - mass) * np.log(outside)
        return float(entr(mass) + entr(1 - mass) + mean_within - np.log(outside))

    return brentq(more, inside / (inside + outside), 1.0) if more(1.0) < 0 else 1.0
