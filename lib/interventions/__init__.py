"""Attention replaced by something else, and what the prediction does: permuted, uniform, erased, adversarial.

Where a measure is there twice, `<name>_definition` is as its paper writes it, and `<name>` gives the same by an exact
shortcut where the model has one (lib.fast.shortcuts).
"""

from lib.interventions.adversary import adversarial_attention, adversary
from lib.interventions.erasure import (
    erase_until_flip,
    erase_until_flip_definition,
    eraser_scores,
    erasure_curve,
    fewest_to_flip,
    rationale_scores,
    until_flip,
)
from lib.interventions.permutation import (
    moments,
    permutation_effect,
    permuted,
    permuted_definition,
    permuted_moments,
    uniform,
)
from lib.interventions.single_erasure import logits_without_each_item, single_erasure
from lib.interventions.substitution import substituted, token_probabilities, token_probability_mean

__all__ = [
    "adversarial_attention",
    "adversary",
    "erase_until_flip",
    "erase_until_flip_definition",
    "eraser_scores",
    "erasure_curve",
    "fewest_to_flip",
    "logits_without_each_item",
    "moments",
    "permutation_effect",
    "permuted",
    "permuted_definition",
    "permuted_moments",
    "rationale_scores",
    "single_erasure",
    "substituted",
    "token_probabilities",
    "token_probability_mean",
    "uniform",
    "until_flip",
]
