"""Exact shortcuts of what lib.importance and lib.interventions define: the same numbers, to rounding, sooner."""
