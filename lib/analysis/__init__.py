"""From a model and its texts to a table: one row per instance, and what a group of rows says."""

from lib.analysis.baseline import against_baseline, baseline
from lib.analysis.contrast import contrast, difference, fragility_difference, score_difference
from lib.analysis.correlating import (
    adversary_method,
    correlate,
    permutation_null,
    significance,
    taus_by_option,
    with_entropies,
    with_support,
)
from lib.analysis.erasing import (
    by_ranking,
    flip_tables,
    flips_sooner,
    on_common_support,
    over_half,
    versus_fewest,
    with_flips,
    with_random,
)
from lib.analysis.measuring import attention_weights, examples, joined, left_out, max_attention, measure, measure_all
from lib.analysis.rationales import attention_on_rationale, on_rationale, support_on_rationale, top_on_rationale
from lib.analysis.summarising import classification, fragility, per_group, summarise
from lib.analysis.tradeoff import best_epochs, curvatures, dev_scores, lambda_by_dev, points, price_difference
from lib.analysis.trend import trend
from lib.analysis.versus_base import across_seeds, changes_of_score, measure_versus_base
from lib.analysis.word_states import information

__all__ = [
    "across_seeds",
    "adversary_method",
    "against_baseline",
    "attention_on_rationale",
    "attention_weights",
    "baseline",
    "best_epochs",
    "by_ranking",
    "changes_of_score",
    "classification",
    "contrast",
    "correlate",
    "curvatures",
    "dev_scores",
    "difference",
    "examples",
    "flip_tables",
    "flips_sooner",
    "fragility",
    "fragility_difference",
    "information",
    "joined",
    "lambda_by_dev",
    "left_out",
    "max_attention",
    "measure",
    "measure_all",
    "measure_versus_base",
    "on_common_support",
    "on_rationale",
    "over_half",
    "per_group",
    "permutation_null",
    "points",
    "price_difference",
    "score_difference",
    "significance",
    "summarise",
    "support_on_rationale",
    "taus_by_option",
    "top_on_rationale",
    "trend",
    "versus_fewest",
    "with_entropies",
    "with_flips",
    "with_random",
    "with_support",
]
