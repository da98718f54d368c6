"""How fast the exact shortcuts are, each beside its definition: python -m benchmarks."""
