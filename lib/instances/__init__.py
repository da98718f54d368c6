"""From a model and its texts to a table: one row per instance, and what a group of rows says."""

from lib.instances.against import across_seeds, changes_of_score, measure_against
from lib.instances.along import along
from lib.instances.baseline import against_baseline, baseline
from lib.instances.comparing import difference, score_difference
from lib.instances.correlating import correlate, permutation_null, significance
from lib.instances.dispersion import dispersed, supported
from lib.instances.erasing import (
    above_the_floor,
    by_ranking,
    flip_tables,
    on_common_support,
    over_half,
    sooner,
    with_flips,
    with_random,
)
from lib.instances.fragility import fragility, fragility_difference
from lib.instances.joining import examples, joined
from lib.instances.measuring import attention_weights, left_out, max_attention, measure, measure_all
from lib.instances.rationales import attention_on_rationale, on_rationale, support_on_rationale, top_on_rationale
from lib.instances.selecting import by_dev, kept_epochs
from lib.instances.summarising import classification, each, summarise
from lib.instances.tradeoff import curvatures, lambda_by_dev, points, price_difference
from lib.instances.ways import taus_along, way_of_adversary
from lib.instances.word_states import information

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
