"""Attention replaced by something else, and what the prediction does: permuted, uniform, adversarial."""

from lib.interventions.adversarial import adversarial_attention, adversary
from lib.interventions.permutation import permutation_effect, permuted, permuted_moments, uniform
from lib.interventions.substitution import substituted, token_probabilities, token_probability_mean

__all__ = [
    "adversarial_attention",
    "adversary",
    "permutation_effect",
    "permuted",
    "permuted_moments",
    "substituted",
    "token_probabilities",
    "token_probability_mean",
    "uniform",
]
