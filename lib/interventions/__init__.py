"""Attention replaced by something else, and what the prediction does: permuted, uniform, erased, adversarial."""

from lib.interventions.adversary import adversarial_attention, adversary
from lib.interventions.eraser import eraser_scores, rationale_scores
from lib.interventions.erasure import erase_until_flip, erasure_curve, fewest_to_flip, logits_without_each_item
from lib.interventions.permutation import moments, permutation_effect, permuted, permuted_moments, uniform
from lib.interventions.single_erasure import single_erasure
from lib.interventions.substitution import substituted, token_probabilities, token_probability_mean
from lib.interventions.until_flip import until_flip

__all__ = [
    "adversarial_attention",
    "adversary",
    "erase_until_flip",
    "eraser_scores",
    "erasure_curve",
    "fewest_to_flip",
    "logits_without_each_item",
    "moments",
    "permutation_effect",
    "permuted",
    "permuted_moments",
    "rationale_scores",
    "single_erasure",
    "substituted",
    "token_probabilities",
    "token_probability_mean",
    "uniform",
    "until_flip",
]
