"""From a model and its texts to a table: one row per instance, and what a group of rows says."""

from lib.instances.against import across_seeds, attention_on_rationale, measure_against
from lib.instances.comparing import difference, score_difference
from lib.instances.correlating import correlate, permutation_null, significance
from lib.instances.joining import examples, joined
from lib.instances.measuring import attention_weights, left_out, max_attention, measure, measure_all
from lib.instances.summarising import classification, each, summarise
from lib.instances.tradeoff import curvatures, lambda_by_dev, points

__all__ = [
    "across_seeds",
    "attention_on_rationale",
    "attention_weights",
    "classification",
    "correlate",
    "curvatures",
    "difference",
    "each",
    "examples",
    "joined",
    "lambda_by_dev",
    "left_out",
    "max_attention",
    "measure",
    "measure_against",
    "measure_all",
    "permutation_null",
    "points",
    "score_difference",
    "significance",
    "summarise",
]
