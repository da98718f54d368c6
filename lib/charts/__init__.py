"""The charts. Each takes a table and returns a chart that needs no other explanation.

`enable()` turns on their theme; a new chart is a module of its own (see lib/charts/theme.py).
"""

from lib.charts.comparison import claims, effects, performance_beside, taus_beside, values_beside
from lib.charts.curves import learning_curves, shares_within, sweep, sweep_by_model, tradeoff
from lib.charts.distributions import (
    boxes,
    difference_histogram,
    jsd_histogram,
    length_histogram,
    tau_histogram,
    violins_by_max_attention,
)
from lib.charts.erasure import differences, flip_tables, negatives
from lib.charts.text import attention_text, token_curves
from lib.charts.theme import MIME, enable
