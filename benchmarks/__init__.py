"""How fast the measures are, each beside a straightforward way of doing the same: python -m benchmarks."""
