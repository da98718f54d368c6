"""What is measured: SST where it is, else texts of its shape, and long texts; with the model that reads them."""

import numpy as np
import torch

from lib import datasets
from lib.datasets.corpus import Instance, Split, Vocabulary
from lib.models import AttentionClassifier

WORDS = 13_822  # of SST's training split
TRAIN, TEST, LONG = 6_355, 1_725, 1_000  # texts


def short(texts: int | None) -> tuple[str, Split, Split]:
    """(what it is, train, test): SST's splits as the papers read them, or random texts as long as those."""
    try:
        corpus = datasets.load("sst", "paper")
        name, train, test = "SST", corpus.train, corpus.test
    except datasets.DataError:
        name, train, test = (
            "synthetic texts of SST's lengths",
            *(random_texts(_sst_lengths(n), n) for n in (TRAIN, TEST)),
        )
    return name, first(train, texts), first(test, texts)


def long(texts: int | None) -> Split:
    """Random texts of 230 tokens, about the mean of IMDB."""
    return first(random_texts(np.full(LONG, 230), seed=1), texts)


def classifier(
    split: Split, encoder: str = "bilstm", embedding: int = 300, hidden: int | None = None
) -> AttentionClassifier:
    """An untrained classifier with additive attention, here a BiLSTM of 128 per direction on 300-d vectors; its weights
    are large enough that predictions and attention vary.

    Args:
        hidden: the encoder's size, of both directions together; None: its own default.
    """
    size = {} if hidden is None else {"hidden_size": hidden}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AttentionClassifier(torch.randn(len(split.vocabulary), embedding), encoder, "additive", **size)
        with torch.no_grad():
            model.decoder.weight.mul_(10)
            model.attention.context.weight.mul_(10)
    return model.eval()


def _sst_lengths(texts: int) -> np.ndarray:
    return np.clip(np.random.default_rng(texts).gamma(4.4, 4.4, texts).round(), 6, 55).astype(int)


def random_texts(lengths: np.ndarray, seed: int, vocabulary: int = WORDS) -> Split:
    """Words by Zipf's law out of so many, labels at random."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(1, vocabulary + 1)
    words = [f"w{number}" for number in range(vocabulary)]
    ids = random.choice(vocabulary, lengths.sum(), p=share / share.sum())
    rows = np.split(ids, np.cumsum(lengths)[:-1])
    instances = tuple(
        Instance(f"random-{i}", "", tuple(words[word] for word in row), int(random.integers(2)))
        for i, row in enumerate(rows)
    )
    return Split("test", instances, Vocabulary.of([words]))


def mixed(texts: int | None) -> Split:
    """The same number of texts of as many tokens on average, but from 10 to 2,000, as reviews come."""
    lengths = np.random.default_rng(2).lognormal(np.log(230) - 0.6**2 / 2, 0.6, LONG).round()
    return first(random_texts(np.clip(lengths, 10, 2000).astype(int), seed=2), texts)


def by_length(split: Split) -> tuple[np.ndarray, Split]:
    """(places, the texts in that order): from short to long."""
    order = np.argsort(split.lengths, kind="stable")
    return order, Split(split.name, tuple(split.instances[i] for i in order), split.vocabulary)


def first(split: Split, texts: int | None) -> Split:
    """The first texts of a split; None: all."""
    return split if texts is None else Split(split.name, split.instances[:texts], split.vocabulary)
