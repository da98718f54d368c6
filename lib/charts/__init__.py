"""The charts. Each takes a table and returns a chart that needs no other explanation, or a sentence: nothing to draw.

`enable()` turns on their theme; a new chart is a module of its own (see lib/charts/theme.py), whose functions raise an
`Empty` where these return a sentence.
"""

from lib.charts import comparison, curves, distributions, erasure
from lib.charts.text import attention_text, token_curves
from lib.charts.theme import MIME, Empty, enable, or_a_sentence

against_people, values_beside = or_a_sentence(comparison.against_people), or_a_sentence(comparison.values_beside)
performance_beside, taus_beside = or_a_sentence(comparison.performance_beside), or_a_sentence(comparison.taus_beside)
learning_curves, shares_within = or_a_sentence(curves.learning_curves), or_a_sentence(curves.shares_within)
sweep, sweep_by_model = or_a_sentence(curves.sweep), or_a_sentence(curves.sweep_by_model)
tradeoff = or_a_sentence(curves.tradeoff)
boxes, length_histogram = or_a_sentence(distributions.boxes), or_a_sentence(distributions.length_histogram)
difference_histogram = or_a_sentence(distributions.difference_histogram)
jsd_histogram, tau_histogram = or_a_sentence(distributions.jsd_histogram), or_a_sentence(distributions.tau_histogram)
violins_by_max_attention = or_a_sentence(distributions.violins_by_max_attention)
differences, flip_tables = or_a_sentence(erasure.differences), or_a_sentence(erasure.flip_tables)
negatives = or_a_sentence(erasure.negatives)
