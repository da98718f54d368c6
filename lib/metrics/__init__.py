"""How far apart distributions are, how even, how good predictions are, and whether two rankings agree."""

from lib.metrics.distances import jensen_shannon, normalized_entropy, probabilities, total_variation
from lib.metrics.kendall import kendall_tau
