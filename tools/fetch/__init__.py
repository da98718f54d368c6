"""Official downloads of datasets, word vectors and a pretrained model: `python -m tools.fetch NAME...|all`."""
