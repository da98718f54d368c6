"""How fast the fast forms are, each beside its definition: python -m benchmarks."""
