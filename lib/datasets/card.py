"""A dataset in a table and a few sentences."""

import numpy as np
import pandas as pd
import torch

from lib.datasets.corpus import UNKNOWN, Corpus, Split
from lib.datasets.vectors import Vectors
from lib.quantities import RUN_COLUMNS

TAKEN = ("split", "texts", "tokens_mean", "tokens_median", "tokens_max", "vocabulary", "unknown", *RUN_COLUMNS)


def card(corpus: Corpus) -> pd.DataFrame:
    """One row per split: texts, texts of each class, tokens of a text (mean, median, maximum).

    Of texts that are cut into sentences also the sd of the tokens, and mean and sd of the sentences.

    `vocabulary` counts the words a model can tell apart, the four special ones included; `unknown` is the share of
    the split's tokens outside it, as a fraction. A class that is called like another column is "class <name>".
    """
    rows, classes = [], [f"class {name}" if name in TAKEN else name for name in corpus.classes]
    for split in corpus.splits:
        per_class = np.bincount(split.labels, minlength=len(corpus.classes))
        tokens = {"mean": split.lengths.mean(), "median": np.median(split.lengths), "max": split.lengths.max()}
        sentences = {}
        if split.sentences is not None:
            tokens["sd"] = split.lengths.std(ddof=1)
            counts = np.array([len(one.sentences) for one in split.instances])
            sentences = {"sentences_mean": counts.mean(), "sentences_sd": counts.std(ddof=1)}
        rows.append(
            {"split": split.name, "texts": len(split)}
            | dict(zip(classes, per_class.tolist(), strict=True))
            | {f"tokens_{name}": value for name, value in tokens.items()}
            | sentences
            | {
                "vocabulary": len(corpus.vocabulary),
                "unknown": float((split.encoded[0] == UNKNOWN).sum() / split.lengths.sum()),
            }
        )
    return pd.DataFrame(rows)


def about(corpus: Corpus) -> list[str]:
    """Where the texts come from, on what terms, and what was left out and why."""
    source = [f"{corpus.title}. {corpus.citation}".strip(" .") + "."]
    licence = [f"Licence: {corpus.licence}."] if corpus.licence else []
    return [*source, *licence, *corpus.notes]


def about_lengths(vectors: Vectors, split: Split) -> str:
    """How long the vectors of a split's tokens are, and how much of them an LSTM's state cannot reach."""
    counts = torch.from_numpy(np.bincount(split.encoded[0], minlength=len(vectors.table))).double()
    share, table = counts / counts.sum(), vectors.table.double()
    length = float(table.square().sum(dim=1) @ share)
    beyond = float((table.abs() > 1).double().mean(dim=1) @ share)
    return (
        f"Word vectors: {vectors}. Their mean squared length per token is {length:.1f}; {beyond:.0%} of their "
        "components lie outside (-1, 1), where an LSTM's states cannot go: with vectors of another length a delta "
        "means something else."
    )
