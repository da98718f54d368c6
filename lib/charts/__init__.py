"""The charts. Each takes a table and returns a chart that needs no other explanation."""

from lib.charts.comparison import performance_beside, taus_beside, values_beside
from lib.charts.curves import learning_curves, sweep, tradeoff
from lib.charts.distributions import boxes, jsd_histogram, length_histogram, tau_histogram
from lib.charts.erasing import differences, flip_tables, negatives
from lib.charts.text import attention_text, token_curves
from lib.charts.theme import MIME, enable
from lib.charts.violins import violins_by_max_attention

__all__ = [
    "MIME",
    "attention_text",
    "boxes",
    "differences",
    "enable",
    "flip_tables",
    "jsd_histogram",
    "learning_curves",
    "length_histogram",
    "negatives",
    "performance_beside",
    "sweep",
    "tau_histogram",
    "taus_beside",
    "token_curves",
    "tradeoff",
    "values_beside",
    "violins_by_max_attention",
]
