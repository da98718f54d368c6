"""What a reader should know of a dataset before its results: a table, and a few sentences."""

import re
from collections import Counter

import numpy as np
import pandas as pd

from lib.datasets.assembly import Spec
from lib.datasets.corpus import SPECIALS, UNKNOWN, Corpus, Split
from lib.datasets.word_vectors import Vectors


def card(corpus: Corpus, vectors: Vectors | None = None) -> pd.DataFrame:
    """One row per split: its texts, their lengths, how much of them is in the vocabulary, and which occur in train too.

    texts, "class <name>"   all, and of each class
    tokens                  of all texts; tokens_mean, tokens_sd and tokens_max are of a text
    sentences_mean, ...     the same three, where texts are cut into sentences
    vocabulary              words of train that a model can tell apart, the special ones not counted; NaN beside train
    with_vector             of these, fraction; left out where the vectors are random numbers
    unknown                 tokens that are not in the vocabulary, fraction
    tokens_with_vector      fraction; left out there too
    again                   texts with the very tokens, and question, of another text of train
    """
    covered = vectors.covered.numpy() if vectors is not None and vectors.covered.any() else None
    of_train = Counter((instance.tokens, instance.query) for instance in corpus.train.instances)
    return pd.DataFrame([_row(corpus, split, covered, of_train) for split in corpus.splits])


def _row(corpus: Corpus, split: Split, covered: np.ndarray | None, of_train: Counter) -> dict:
    ids, is_train = split.encoded[0], split is corpus.train
    per_class = np.bincount(split.labels, minlength=len(corpus.classes)).tolist()
    row = {"split": split.name, "texts": len(split)}
    row |= {f"class {name}": count for name, count in zip(corpus.classes, per_class, strict=True)}
    row["tokens"] = tokens = int(split.lengths.sum())
    for unit, values in lengths(split).items():
        row |= {f"{unit}_mean": values.mean(), f"{unit}_sd": pd.Series(values).std(), f"{unit}_max": int(values.max())}
    row["vocabulary"] = len(corpus.vocabulary) - len(SPECIALS) if is_train else np.nan
    if covered is not None:
        row["with_vector"] = covered[len(SPECIALS) :].mean() if is_train else np.nan
    row["unknown"] = (ids == UNKNOWN).sum() / tokens
    if covered is not None:
        row["tokens_with_vector"] = covered[ids].sum() / tokens
    row["again"] = sum(of_train[instance.tokens, instance.query] > is_train for instance in split.instances)
    return row


def sizes(corpus: Corpus) -> dict[str, float]:
    """What the papers' data tables count, by the names of data/published.csv: average_length, train_size, vocabulary.

    Lengths are those of train; a table of a paper may be of all splits.
    """
    counts = {}
    for unit, values in lengths(corpus.train).items():
        name = "length" if unit == "tokens" else unit
        counts |= {f"average_{name}": values.mean(), f"sd_{name}": values.std(ddof=1)}
    for split in corpus.splits:
        counts[f"{split.name}_size"] = len(split)
        if len(corpus.classes) == 2:
            counts[f"{split.name}_negative"], counts[f"{split.name}_positive"] = np.bincount(split.labels, minlength=2)
    counts["train_and_dev_size"] = len(corpus.train) + len(corpus.dev)
    counts |= {"vocabulary": len(corpus.vocabulary) - len(SPECIALS), "classes": len(corpus.classes)}
    return {name: float(value) for name, value in counts.items()}


def lengths(split: Split) -> dict[str, np.ndarray]:
    """How long each text is: "tokens" (text,), and "sentences" (text,) where texts are cut into sentences."""
    if split.sentences is None:
        return {"tokens": split.lengths}
    return {"tokens": split.lengths, "sentences": np.array([len(instance.sentences) for instance in split.instances])}


def about(corpus: Corpus, vectors: Vectors | None = None, spec: Spec | None = None) -> list[str]:
    """Source, licence, preparation, what was left out and why; and the word vectors before training.

    Args:
        spec: how the dataset is prepared (lib.datasets.spec): its page, and what a token is.
    """
    source = f"{corpus.title}. {corpus.citation[:1].upper()}{corpus.citation[1:]}".strip(" .") + "."
    sentences = [source + (f" Published at {spec.page}." if spec and spec.page else "")]
    sentences += [f"Licence: {corpus.licence}."] if corpus.licence else []
    sentences += [f"How they are read: {spec.preprocess.rstrip('.')}."] if spec else []
    sentences += corpus.notes
    if vectors is not None:
        named = re.sub(r"\S*/", "", str(vectors))  # a file by its name: a page may travel
        sentences.append(f"Word vectors before training: {named}.")
    return sentences
