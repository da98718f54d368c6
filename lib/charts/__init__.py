"""The charts. Each takes a table and returns a chart that needs no other explanation, or a sentence: nothing to draw.

`enable()` turns on their theme. A new chart is a function in a module of its own (see lib/charts/theme.py).
"""

from lib.charts.curves import plane, price, sweep, tradeoff
from lib.charts.distributions import boxes, boxes_by_max_attention, histogram_by_class
from lib.charts.erasure import jsd_differences, negative_differences
from lib.charts.heat import heat_map
from lib.charts.text import attention_of_texts, attention_text, token_curves
from lib.charts.theme import MIME, Empty, enable, or_a_sentence
