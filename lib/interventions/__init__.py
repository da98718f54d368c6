"""Attention replaced by something else, and what the prediction does: permuted, uniform, erased, adversarial."""

from lib.interventions.adversarial import adversarial_attention, adversary
from lib.interventions.erasure import erase_until_flip, fewest_to_flip, logits_without_each_item, rationale_scores
from lib.interventions.permutation import permutation_effect, permuted, permuted_moments, uniform
from lib.interventions.single_erasure import single_erasure
from lib.interventions.substitution import substituted, token_probabilities, token_probability_mean

__all__ = [
    "adversarial_attention",
    "adversary",
    "erase_until_flip",
    "fewest_to_flip",
    "logits_without_each_item",
    "permutation_effect",
    "permuted",
    "permuted_moments",
    "rationale_scores",
    "single_erasure",
    "substituted",
    "token_probabilities",
    "token_probability_mean",
    "uniform",
]
