"""What a dataset is once it is read: instances in three splits, and the vocabulary of the training split."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

PAD, UNKNOWN, START, END = range(4)
SPECIALS = ("<pad>", "<unk>", "<start>", "<end>")


@dataclass(frozen=True)
class Instance:
    """One text with its label."""

    id: str
    text: str
    tokens: tuple[str, ...]
    label: int
    rationale: tuple[tuple[int, int], ...] | None = None  # spans [start, end) of tokens that decide it; None: not known
    sentences: tuple[int, ...] | None = None  # how many tokens each has; None: the text is not cut into sentences
    query: tuple[str, ...] | None = None  # the tokens of the text's question
    counterpart: str | None = None  # the id of the text of its split that differs from it in the rationale alone


@dataclass(frozen=True)
class Vocabulary:
    """Ids of words, those of the training split: pad 0, unknown 1, start 2, end 3, words from 4 (Jain & Wallace)."""

    words: tuple[str, ...]
    pieces: tuple[tuple[int, ...], ...] = field(default=(), repr=False)  # a pretrained model's subwords of each

    @classmethod
    def of(cls, texts: Iterable[Iterable[str]], min_df: int = 1, min_count: int = 1) -> "Vocabulary":
        """The words in at least `min_df` of the texts that occur at least `min_count` times, in alphabetical order."""
        frequency, count = Counter(), Counter()
        for tokens in map(tuple, texts):
            frequency.update(set(tokens))
            count.update(tokens)
        kept = (word for word, df in frequency.items() if df >= min_df and count[word] >= min_count)
        return cls(SPECIALS + tuple(sorted(kept)))

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each word."""
        return {word: index for index, word in enumerate(self.words)}

    def encode(self, tokens: Iterable[str]) -> np.ndarray:
        """Ids of start, the tokens, end: (tokens + 2,) int64."""
        return np.array([START, *(self.ids.get(token, UNKNOWN) for token in tokens), END], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True)
class Split:
    """The instances of train, dev or test, and their ids in the corpus' vocabulary."""

    name: str
    instances: tuple[Instance, ...]
    vocabulary: Vocabulary = field(repr=False)

    @cached_property
    def encoded(self) -> tuple[np.ndarray, np.ndarray]:
        """(ids of all texts end to end, offsets): text i is ids[offsets[i]:offsets[i + 1]], start and end included."""
        return self._end_to_end(instance.tokens for instance in self.instances)

    @cached_property
    def queries(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The same for the questions; None in tasks without questions."""
        if not self.instances or self.instances[0].query is None:
            return None
        return self._end_to_end(instance.query for instance in self.instances)

    def _end_to_end(self, texts: Iterable[Iterable[str]]) -> tuple[np.ndarray, np.ndarray]:
        rows = [self.vocabulary.encode(tokens) for tokens in texts]
        return np.concatenate([np.empty(0, dtype=np.int64), *rows]), np.cumsum([0, *map(len, rows)])

    @cached_property
    def sentences(self) -> np.ndarray | None:
        """The number of its sentence for each id of `encoded`, -1 for start and end; None without sentences."""
        if not self.instances or self.instances[0].sentences is None:
            return None
        cuts = (instance.sentences for instance in self.instances)
        return np.concatenate([np.r_[-1, np.repeat(np.arange(len(cut)), cut), -1] for cut in cuts])

    @cached_property
    def labels(self) -> np.ndarray:
        """(instance,) int64 class of each text."""
        return np.array([instance.label for instance in self.instances], dtype=np.int64)

    @cached_property
    def lengths(self) -> np.ndarray:
        """(instance,) tokens of each text, without start and end."""
        return np.array([len(instance.tokens) for instance in self.instances], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.instances)


@dataclass(frozen=True)
class Corpus:
    """A dataset as an experiment reads it."""

    name: str
    title: str
    classes: tuple[str, ...]
    vocabulary: Vocabulary = field(repr=False)
    train: Split = field(repr=False)
    dev: Split = field(repr=False)
    test: Split = field(repr=False)
    profile: str = "paper"
    citation: str = ""
    licence: str = ""
    notes: tuple[str, ...] = ()  # in sentences what was left out and why
    checksum: str = ""  # covers every token and label of the three splits
    subwords: Path | None = None  # the folder of the pretrained model in whose subwords the texts are

    @property
    def splits(self) -> tuple[Split, Split, Split]:
        """Train, dev and test."""
        return self.train, self.dev, self.test


def checksum(splits: Sequence[Split], vocabulary: Vocabulary) -> str:
    """SHA-256 of all tokens, sentences, questions and labels of the splits and of the vocabulary: 64 hex digits."""
    digest = hashlib.sha256("\0".join(vocabulary.words).encode())  # no text holds a NUL
    for split in splits:
        digest.update(f"\0\0{split.name}".encode())
        for instance in split.instances:
            digest.update("\0".join([f"\0{instance.label}", *instance.tokens]).encode())
            digest.update(repr(instance.sentences or "").encode())
            if instance.query is not None:
                digest.update(repr((instance.query, None)).encode())
    return digest.hexdigest()
