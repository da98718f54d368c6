"""Attention replaced by something else, and what the prediction does: permuted, uniform, erased, adversarial."""

from lib.interventions.adversary import adversarial_attention, adversary, exact_adversary_definition
from lib.interventions.chance import adversary_by_chance, agreement_by_chance, largest_jsd, permutation_share_by_chance
from lib.interventions.deletion import between_orders, shapley, shortened, without_reason
from lib.interventions.erasure import ORDERS, erase_until_flip, fewest_to_flip, until_flip
from lib.interventions.searched_adversary import searched_adversary_definition
from lib.interventions.single_erasure import another_item, single_erasure
from lib.interventions.substitution import (
    largest_change,
    permutation_effect,
    permuted,
    permuted_attention,
    substituted,
    token_probabilities,
    token_probability_mean,
    uniform,
)
