"""Runs, and the models that they become: cached, resumable, the same weights again."""

from lib.training.runs import Run, stages, with_bases
from lib.training.trained import Trained, is_trained, load_corpus, load_vectors, select, train, train_all, untrained

__all__ = ["Run", "Trained", "is_trained", "load_corpus", "load_vectors", "select", "stages", "train", "train_all"]
__all__ += ["untrained", "with_bases"]
