"""What a reader should know of a dataset before its results: a table, and a few sentences."""

from collections import Counter, defaultdict

import numpy as np
import pandas as pd

from lib.datasets.assembly import Spec
from lib.datasets.corpus import SPECIALS, UNKNOWN, Corpus, Split
from lib.datasets.vectors import Vectors


def card(corpus: Corpus, vectors: Vectors | None = None) -> pd.DataFrame:
    """One row per split: its texts, how long they are, what a model knows of them, and which of them stand in train.

    texts, "class <name>"   all, and of each class
    tokens                  of all texts; tokens_mean, tokens_sd, tokens_median and tokens_max are of a text
    sentences_mean, ...     the same four, where texts are cut into sentences
    vocabulary              words of train that a model can tell apart, the special ones not counted; NaN beside train
    with_vector             of these, fraction; left out where the vectors are random numbers
    unknown                 tokens that are not in the vocabulary, fraction
    tokens_with_vector      fraction; left out there too
    again, other_label      as `duplicates` has them
    """
    known = vectors is not None and has_coverage(vectors)
    rows = []
    for split in corpus.splits:
        per_class = np.bincount(split.labels, minlength=len(corpus.classes))
        row = {"split": split.name, "texts": len(split)}
        row |= {f"class {name}": int(count) for name, count in zip(corpus.classes, per_class, strict=True)}
        row |= {"tokens": int(split.lengths.sum())}
        for unit, values in lengths(split).items():
            row |= {f"{unit}_{name}": value for name, value in spread(values).items()}
        of_train = 1.0 if split is corpus.train else np.nan
        row |= {"vocabulary": of_train * (len(corpus.vocabulary) - len(SPECIALS))}
        row |= {"with_vector": of_train * words_covered(vectors)} if known else {}
        row |= {"unknown": float((split.encoded[0] == UNKNOWN).sum() / split.lengths.sum())}
        rows.append(row | ({"tokens_with_vector": tokens_covered(vectors, split)} if known else {}))
    return pd.DataFrame(rows).merge(duplicates(corpus).drop(columns="texts"), on="split")


def duplicates(corpus: Corpus) -> pd.DataFrame:
    """One row per split: how many of its texts have the very tokens of another text of train.

    A text of train is not its own other; of two that are the same both count. What is nearly the same does not count,
    nor a text that is asked another question.

    Returns:
        split, texts, again (texts that stand in train, those of train once more), other_label (those of them that have
        another label there, at least once).
    """
    of_train = defaultdict(Counter)  # text and question -> how many texts of train of each label
    for one in corpus.train.instances:
        of_train[one.tokens, one.query][one.label] += 1
    rows = []
    for split in corpus.splits:
        itself = int(split is corpus.train)
        found = [(of_train.get((one.tokens, one.query), {}), one.label) for one in split.instances]
        again = sum(sum(labels.values()) > itself for labels, _ in found)
        other = sum(bool(labels.keys() - {label}) for labels, label in found)
        rows.append({"split": split.name, "texts": len(split), "again": again, "other_label": other})
    return pd.DataFrame(rows)


def lengths(split: Split) -> dict[str, np.ndarray]:
    """How long each text is: "tokens" (text,), and "sentences" (text,) where texts are cut into sentences."""
    if split.sentences is None:
        return {"tokens": split.lengths}
    return {"tokens": split.lengths, "sentences": np.array([len(one.sentences) for one in split.instances])}


def spread(values: np.ndarray) -> dict[str, float]:
    """Mean, sd (NaN of one value), median and maximum."""
    sd = float(values.std(ddof=1)) if len(values) > 1 else np.nan
    return {"mean": float(values.mean()), "sd": sd, "median": float(np.median(values)), "max": int(values.max())}


def has_coverage(vectors: Vectors) -> bool:
    """Whether any word's vector was read or learned, and is not a random number."""
    return bool(vectors.covered.any())


def words_covered(vectors: Vectors) -> float:
    """The share of the vocabulary's words whose vector was read or learned."""
    return float(vectors.covered[len(SPECIALS) :].double().mean())


def tokens_covered(vectors: Vectors, split: Split) -> float:
    """The share of a split's tokens whose vector was read or learned; those outside the vocabulary have none."""
    return float(vectors.covered.numpy()[split.encoded[0]].sum() / split.lengths.sum())


def about(corpus: Corpus, vectors: Vectors | None = None, spec: Spec | None = None) -> list[str]:
    """Where the texts come from, on what terms, how they are read, what was left out and why; and the word vectors.

    Args:
        spec: how the dataset is prepared (lib.datasets.spec); it knows where it is published, and what a token is.
    """
    source = f"{corpus.title}. {corpus.citation[:1].upper()}{corpus.citation[1:]}".strip(" .") + "."
    said = [source + (f" Published at {spec.page}." if spec and spec.page else "")]
    said += [f"Licence: {corpus.licence}."] if corpus.licence else []
    said += [f"How they are read: {spec.preprocess.rstrip('.')}."] if spec else []
    return [*said, *corpus.notes, *([about_vectors(vectors)] if vectors else [])]


def about_vectors(vectors: Vectors) -> str:
    """What the word vectors are before training."""
    none = "" if has_coverage(vectors) else "; none was read or learned, so there is no coverage"
    return f"Word vectors before training: {vectors}{none}."


def about_lengths(vectors: Vectors, split: Split) -> str:
    """How long the vectors of a split's tokens are, and how much of them an LSTM's state cannot reach."""
    counts = np.bincount(split.encoded[0], minlength=len(vectors.table))
    share, table = counts / counts.sum(), vectors.table.double().numpy()
    length = float(np.square(table).sum(axis=1) @ share)
    beyond = float((np.abs(table) > 1).mean(axis=1) @ share)
    return (
        f"The mean squared length of the word vectors per token is {length:.1f}; {beyond:.0%} of their "
        "components lie outside (-1, 1), where an LSTM's states cannot go: with vectors of another length a delta "
        "means something else."
    )
