"""The first embedding table of a model: random numbers, or vectors of its words from a file, which runs no code."""

import hashlib
import io
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lib.datasets.altered import SHORTCUT_WORDS
from lib.datasets.corpus import PAD, SPECIALS, Vocabulary
from lib.datasets.files import DataError, Home, find_file, homes, read_bytes, soundly_read

NAMES = "random, auto, word2vec (learned from the texts), or a file of word vectors (.npz)"


@dataclass(frozen=True)
class Vectors:
    """An embedding table for a vocabulary."""

    table: Tensor  # (word, size) float32; zeros for padding, and for words that the file lacks (Jain & Wallace's code)
    covered: Tensor  # (word,) True where the file has the word
    source: str  # where the numbers come from, in words
    checksum: str  # SHA-256 of the table

    def __str__(self) -> str:
        words, covered = len(self.table) - len(SPECIALS), int(self.covered.sum())
        if not covered:
            return f"{self.source}, for all {words:,} words"
        return f"{covered:,} of {words:,} words ({covered / words:.1%}) from {self.source}"


def load(
    name: str | Path, vocabulary: Vocabulary, data_home: Home = None, seed: int = 0, size: int = 300, first: str = ""
) -> Vectors:
    """The embedding table (word, size) of that name.

    Args:
        name: "random"; "auto": the first of vectors/*.npz in the homes of data that has at least half of the words,
            else random; or a file, by its path or its path in a home of data, whose vectors have a size of their own.
        seed, size: of random numbers. first: how the name of the file begins that "auto" tries before the others.
    Raises:
        DataError: no such file; a damaged one; not one word in common; a vector with NaN or infinity.
    """
    why = ""
    for path in sorted(files_of(name, data_home), key=lambda path: not path.name.startswith(first)):
        try:
            vectors = from_file(path, vocabulary)
        except DataError as error:
            if name != "auto":
                raise
            why = f" ({error})"
        else:
            if name != "auto" or vectors.covered.sum() * 2 >= len(vocabulary) - len(SPECIALS):
                return vectors
            why = f" ({vectors} are too few)"
    return random(vocabulary, seed, size, why)


@lru_cache(maxsize=8)  # every run of a notebook needs one, several times
def random(vocabulary: Vocabulary, seed: int = 0, size: int = 300, why: str = "") -> Vectors:
    """N(0, 1) for every word and special but padding, which is zeros."""
    table = np.random.default_rng(seed).standard_normal((len(vocabulary), size), dtype=np.float32)
    table[PAD] = 0
    return with_checksum(table, np.zeros(len(vocabulary), dtype=bool), f"random numbers, N(0, 1), seed {seed}{why}")


@lru_cache(maxsize=8)
def from_file(path: Path, vocabulary: Vocabulary) -> Vectors:
    """The vectors of a file for its words, random ones for inserted shortcuts, zeros for others; raises as `load`."""
    rows = {word: row for row, word in enumerate(vocabulary.words) if row >= len(SPECIALS)}
    found = {}
    with soundly_read(path):
        for word, numbers in _read_npz(path):
            if word in rows and np.any(numbers):  # of 0 alone it is none
                found.setdefault(rows[word], numbers)  # of a word that occurs twice the first vector counts
    if not found:
        none = f"none of the {len(rows):,} words of the vocabulary has a vector other than 0 in {path}"
        raise DataError(f"{none}; use vectors of this language in lower case, or vectors='random'")
    table, covered = np.zeros((len(vocabulary), len(numbers)), dtype=np.float32), np.zeros(len(vocabulary), dtype=bool)
    with np.errstate(over="ignore"):  # infinity is refused below, with the word's name
        table[[*found]], covered[[*found]] = np.stack([*found.values()]), True
    if not np.isfinite(table).all():
        word = vocabulary.words[int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])]
        raise DataError(f"{path}: the vector of {word[:40]!r} holds NaN or infinity; allowed: finite 32-bit numbers")
    inserted = [rows[word] for word in SHORTCUT_WORDS if word in rows and not covered[rows[word]]]
    table[inserted] = np.random.default_rng(0).normal(0, table[covered].std(), (len(inserted), len(numbers)))
    return with_checksum(table, covered, str(path))


def files_of(name: str | Path, data_home: str | Path | None = None) -> list[Path]:
    """The files that `load` may read for that name, in its order; none for what is made here; DataError: no such."""
    if name in ("random", "word2vec"):
        return []
    if name == "auto":
        return [path for home in homes(data_home) for path in sorted((home / "vectors").glob("*.npz"))]
    path = find_file(name, data_home, NAMES)
    if path.suffix != ".npz":
        convert = "numpy.savez(file, words=one.index_to_key, vectors=one.vectors) makes one of gensim's KeyedVectors"
        raise DataError(f"{path} is not read; allowed: an .npz of words and vectors. {convert}")
    return [path]


def with_checksum(table: np.ndarray, covered: np.ndarray, source: str) -> Vectors:
    """The vectors of a table (word, size) float32."""
    checksum = hashlib.sha256(f"{table.shape}".encode() + table.tobytes()).hexdigest()
    return Vectors(torch.from_numpy(table), torch.from_numpy(covered), source, checksum)


def _read_npz(path: Path) -> list[tuple[str, np.ndarray]]:
    """The words and vectors of arrays `words` (text) and `vectors` (word, size) of real numbers of any precision."""
    try:
        with np.load(io.BytesIO(read_bytes(path, 2**14)), allow_pickle=False) as arrays:
            return list(zip(arrays["words"].tolist(), arrays["vectors"], strict=True))
    except (KeyError, ValueError, AttributeError) as error:  # objects, no .npz at all
        needs = "it needs plain arrays words, of text, and vectors, one row of real numbers a word"
        raise DataError(f"{path} cannot be read ({str(error)[:80]}); {needs}") from None
