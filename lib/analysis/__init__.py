"""From a model and its texts to a table: one row per instance, and what a group of rows says."""

from lib.analysis.baseline import against_baseline, baseline
from lib.analysis.contrast import difference, score_difference
from lib.analysis.correlating import (
    correlate,
    dispersed,
    permutation_null,
    significance,
    supported,
    taus_along,
    way_of_adversary,
)
from lib.analysis.erasing import (
    above_the_floor,
    by_ranking,
    flip_tables,
    on_common_support,
    over_half,
    sooner,
    with_flips,
    with_random,
)
from lib.analysis.fragility import fragility, fragility_difference
from lib.analysis.measuring import attention_weights, examples, joined, left_out, max_attention, measure, measure_all
from lib.analysis.rationales import attention_on_rationale, on_rationale, support_on_rationale, top_on_rationale
from lib.analysis.summarising import classification, each, summarise
from lib.analysis.tradeoff import by_dev, curvatures, kept_epochs, lambda_by_dev, points, price_difference
from lib.analysis.trend import along
from lib.analysis.versus_base import across_seeds, changes_of_score, measure_against
from lib.analysis.word_states import information

__all__ = [
    "above_the_floor",
    "across_seeds",
    "against_baseline",
    "along",
    "attention_on_rationale",
    "attention_weights",
    "baseline",
    "by_dev",
    "by_ranking",
    "changes_of_score",
    "classification",
    "correlate",
    "curvatures",
    "difference",
    "dispersed",
    "each",
    "examples",
    "flip_tables",
    "fragility",
    "fragility_difference",
    "information",
    "joined",
    "kept_epochs",
    "lambda_by_dev",
    "left_out",
    "max_attention",
    "measure",
    "measure_against",
    "measure_all",
    "on_common_support",
    "on_rationale",
    "over_half",
    "permutation_null",
    "points",
    "price_difference",
    "score_difference",
    "significance",
    "sooner",
    "summarise",
    "support_on_rationale",
    "supported",
    "taus_along",
    "top_on_rationale",
    "way_of_adversary",
    "with_flips",
    "with_random",
]
