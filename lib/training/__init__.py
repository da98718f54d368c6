"""Runs, and the models that they become: cached, resumable, the same weights again."""

from lib.training.runs import Run, stages, with_bases
from lib.training.trained import Trained, load_corpus, load_vectors, select, train, train_all, untrained
