"""Attention replaced by something else, and what the prediction does: permuted, uniform, adversarial."""

from lib.interventions.adversarial import adversarial_attention, adversary
from lib.interventions.permutation import permutation_effect, permuted, permuted_moments, uniform
from lib.interventions.substitution import mean_token_probability, substituted, token_probabilities

__all__ = [
    "adversarial_attention",
    "adversary",
    "mean_token_probability",
    "permutation_effect",
    "permuted",
    "permuted_moments",
    "substituted",
    "token_probabilities",
    "uniform",
]
