"""What a reader should know of a dataset before its results: a table, and a few sentences."""

import re
from collections import Counter, defaultdict

import numpy as np
import pandas as pd

from lib.datasets.assembly import Spec
from lib.datasets.corpus import SPECIALS, UNKNOWN, Corpus, Split
from lib.datasets.word_vectors import Vectors


def card(corpus: Corpus, vectors: Vectors | None = None) -> pd.DataFrame:
    """One row per split: its texts, their lengths, how much of them is in the vocabulary, and which occur in train too.

    texts, "class <name>"   all, and of each class
    tokens                  of all texts; tokens_mean, tokens_sd, tokens_median and tokens_max are of a text
    sentences_mean, ...     the same four, where texts are cut into sentences
    vocabulary              words of train that a model can tell apart, the special ones not counted; NaN beside train
    with_vector             of these, fraction; left out where the vectors are random numbers
    unknown                 tokens that are not in the vocabulary, fraction
    tokens_with_vector      fraction; left out there too
    again, other_label      as `duplicates` has them
    """
    covered = vectors.covered.numpy() if vectors is not None and vectors.covered.any() else None
    rows = [_row(corpus, split, covered) for split in corpus.splits]
    return pd.DataFrame(rows).merge(duplicates(corpus).drop(columns="texts"), on="split")


def _row(corpus: Corpus, split: Split, covered: np.ndarray | None) -> dict:
    ids, of_train = split.encoded[0], 1.0 if split is corpus.train else np.nan
    per_class = np.bincount(split.labels, minlength=len(corpus.classes)).tolist()
    row = {"split": split.name, "texts": len(split)}
    row |= {f"class {name}": count for name, count in zip(corpus.classes, per_class, strict=True)}
    row["tokens"] = tokens = int(split.lengths.sum())
    for unit, values in lengths(split).items():
        row |= {f"{unit}_mean": values.mean(), f"{unit}_sd": pd.Series(values).std()}
        row |= {f"{unit}_median": np.median(values), f"{unit}_max": int(values.max())}
    row["vocabulary"] = of_train * (len(corpus.vocabulary) - len(SPECIALS))
    if covered is not None:
        row["with_vector"] = of_train * covered[len(SPECIALS) :].mean()
    row["unknown"] = (ids == UNKNOWN).sum() / tokens
    if covered is not None:
        row["tokens_with_vector"] = covered[ids].sum() / tokens
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
            negative, positive = np.bincount(split.labels, minlength=2)
            counts |= {f"{split.name}_negative": negative, f"{split.name}_positive": positive}
    counts["train_and_dev_size"] = len(corpus.train) + len(corpus.dev)
    counts |= {"vocabulary": len(corpus.vocabulary) - len(SPECIALS), "classes": len(corpus.classes)}
    return {name: float(value) for name, value in counts.items()}


def duplicates(corpus: Corpus) -> pd.DataFrame:
    """One row per split: how many of its texts have the very tokens of another text of train.

    A text of train is not its own other; of two that are the same both count. What is nearly the same does not count,
    nor a text with another question.

    Returns:
        split, texts, again (texts that occur in train, of train itself those that are repeated), other_label (those of
        them with a different label there, at least once).
    """
    of_train = defaultdict(Counter)  # text and question -> how many texts of train of each label
    for instance in corpus.train.instances:
        of_train[instance.tokens, instance.query][instance.label] += 1
    rows = []
    for split in corpus.splits:
        itself = int(split is corpus.train)
        same = [(of_train.get((instance.tokens, instance.query), {}), instance.label) for instance in split.instances]
        again = sum(sum(labels.values()) > itself for labels, _ in same)
        other = sum(bool(labels.keys() - {label}) for labels, label in same)
        rows.append({"split": split.name, "texts": len(split), "again": again, "other_label": other})
    return pd.DataFrame(rows)


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
        none = "" if vectors.covered.any() else "; none was read or learned, so there is no coverage"
        named = re.sub(r"\S*/", "", str(vectors))  # a file by its name: a page may travel
        sentences.append(f"Word vectors before training: {named}{none}.")
    return sentences
