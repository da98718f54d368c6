"""From a model and its texts to a table: one row per instance, and what a group of rows says."""

from lib.instances.comparing import difference
from lib.instances.correlating import correlate, permutation_null, significance
from lib.instances.joining import examples, joined
from lib.instances.measuring import attention_weights, left_out, max_attention, measure, measure_all
from lib.instances.summarising import classification, summarise

__all__ = [
    "attention_weights",
    "classification",
    "correlate",
    "difference",
    "examples",
    "joined",
    "left_out",
    "max_attention",
    "measure",
    "measure_all",
    "permutation_null",
    "significance",
    "summarise",
]
