"""What a reader should know of a dataset before its results: a table, and a few sentences."""

import re
from collections import Counter

import numpy as np
import pandas as pd

from lib.datasets.assembly import Spec
from lib.datasets.corpus import SPECIALS, UNKNOWN, Corpus
from lib.datasets.word_vectors import Vectors


def card(corpus: Corpus, vectors: Vectors | None = None) -> pd.DataFrame:
    """A column for each split, a row for each thing that is counted in it.

    The vocabulary has the words of train that a model can tell apart. A text "occurs in train too" where another text
    of train has its very tokens, and question. Coverage by vectors is left out where these are random numbers.
    """
    covered = vectors.covered.numpy() if vectors is not None and vectors.covered.any() else None
    of_train = Counter((instance.tokens, instance.query) for instance in corpus.train.instances)
    columns = {}
    for split in corpus.splits:
        (ids, _), tokens, is_train = split.encoded, split.lengths.sum(), split is corpus.train
        columns[split.name] = {
            "texts": len(split),
            "tokens of a text, mean": split.lengths.mean(),
            "tokens of a text, sd": pd.Series(split.lengths).std(),
            "tokens of a text, longest": split.lengths.max(),
            "words of the vocabulary": len(corpus.vocabulary) - len(SPECIALS) if is_train else np.nan,
            "tokens unknown, fraction": (ids == UNKNOWN).sum() / tokens,
            "tokens with a word vector, fraction": np.nan if covered is None else covered[ids].sum() / tokens,
            "texts that occur in train too": sum(of_train[one.tokens, one.query] > is_train for one in split.instances),
        }
        per_class = np.bincount(split.labels, minlength=len(corpus.classes))
        columns[split.name] |= {f"class {name}": texts for name, texts in zip(corpus.classes, per_class, strict=True)}
    return pd.DataFrame(columns).dropna(how="all")


def sizes(corpus: Corpus) -> dict[str, float]:
    """What the papers' data tables count, by the names of data/published.csv: average_length, train_size, vocabulary.

    Lengths are those of train; a table of a paper may be of all splits.
    """
    lengths = {"length": corpus.train.lengths}
    if corpus.train.sentences is not None:
        lengths["sentences"] = np.array([len(instance.sentences) for instance in corpus.train.instances])
    counts = {f"average_{unit}": values.mean() for unit, values in lengths.items()}
    counts |= {f"sd_{unit}": values.std(ddof=1) for unit, values in lengths.items()}
    for split in corpus.splits:
        counts[f"{split.name}_size"] = len(split)
        if len(corpus.classes) == 2:
            counts[f"{split.name}_negative"], counts[f"{split.name}_positive"] = np.bincount(split.labels, minlength=2)
    counts["train_and_dev_size"] = len(corpus.train) + len(corpus.dev)
    counts |= {"vocabulary": len(corpus.vocabulary) - len(SPECIALS), "classes": len(corpus.classes)}
    return {name: float(value) for name, value in counts.items()}


def about(corpus: Corpus, vectors: Vectors | None = None, spec: Spec | None = None) -> list[str]:
    """Source, licence, preparation (of its `spec`), what was left out and why; and the word vectors before training."""
    source = f"{corpus.title}. {corpus.citation[:1].upper()}{corpus.citation[1:]}".strip(" .") + "."
    sentences = [source + (f" Published at {spec.page}." if spec and spec.page else "")]
    sentences += [f"Licence: {corpus.licence}."] if corpus.licence else []
    sentences += [f"How they are read: {spec.preprocess.rstrip('.')}."] if spec and not corpus.subwords else []
    sentences += corpus.notes
    if vectors is not None:
        named = re.sub(r"\S*/", "", str(vectors))  # a file by its name: a page may travel
        sentences.append(f"Word vectors before training: {named}.")
    return sentences
