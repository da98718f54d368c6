"""From a model and its texts to a table with one row per instance; then means, differences and trends of its rows."""

from lib.analysis import adversaries, erasure, ground_truth
from lib.analysis.baseline import against_baseline, baseline
from lib.analysis.correlation import add_adversary_shares, add_permutation_shares, add_unknown, correlate, known, trends
from lib.analysis.dev import dev_scores, every_weight, weigh
from lib.analysis.measuring import attention_weights, examples, joined, left_out, max_attention, measure, measure_all
from lib.analysis.rationale import add_average_precision, attention_on_rationale
from lib.analysis.summaries import classification, effects_between, mean_effect, per_group, summarise, summarise_by
from lib.analysis.token_values import add_entropies, add_support, add_violations, violation_by_chance
from lib.analysis.word_states import information
