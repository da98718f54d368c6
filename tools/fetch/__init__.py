"""Official downloads of datasets and word vectors: `python -m tools.fetch NAME...|all`, or `list`."""
