"""The first embedding table of a model: random numbers, or vectors of its words from a file, which runs no code."""

import gzip
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lib.datasets.altered import SHORTCUT_WORDS
from lib.datasets.corpus import PAD, SPECIALS, Vocabulary
from lib.datasets.files import DataError, find_file, homes, read_bytes, soundly_read

SUFFIXES = (".npz", ".txt", ".vec")
NAMES = f"random, auto, word2vec (learned from the texts), or a file of word vectors ({', '.join(SUFFIXES)})"
Entries = Iterator[tuple[str, np.ndarray]]  # a word and its numbers (size,), in the order of the file


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
    name: str | Path,
    vocabulary: Vocabulary,
    data_home: str | Path | None = None,
    seed: int = 0,
    size: int = 300,
    first: str = "",
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
    read, found = _read_npz if ".npz" in path.suffixes else _read_text, {}
    with soundly_read(path):
        for word, numbers in read(path, rows):
            if np.any(numbers):  # of 0 alone it is none
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
    if Path(path.name.removesuffix(".gz")).suffix not in SUFFIXES:
        convert = "gensim's KeyedVectors.save_word2vec_format('vectors.txt') turns other forms into text"
        raise DataError(f"{path} is not read: allowed are {', '.join(SUFFIXES)}, each of them also .gz; {convert}")
    return [path]


def with_checksum(table: np.ndarray, covered: np.ndarray, source: str) -> Vectors:
    """The vectors of a table (word, size) float32."""
    checksum = hashlib.sha256(f"{table.shape}".encode() + table.tobytes()).hexdigest()
    return Vectors(torch.from_numpy(table), torch.from_numpy(covered), source, checksum)


def _read_npz(path: Path, wanted: dict[str, int]) -> Entries:
    """Arrays `words` (text) and `vectors` (word, size) of real numbers of any precision."""
    try:
        with np.load(io.BytesIO(read_bytes(path, 2**14)), allow_pickle=False) as arrays:
            vectors = arrays["vectors"]
            entries = list(zip(arrays["words"].tolist(), vectors, strict=True))
    except (KeyError, ValueError, AttributeError) as error:  # objects, no .npz at all
        needs = "it needs plain arrays words, of text, and vectors, one row of real numbers a word"
        raise DataError(f"{path} cannot be read ({str(error)[:80]}); {needs}") from None
    return ((word, numbers) for word, numbers in entries if word in wanted)


def _read_text(path: Path, wanted: dict[str, int]) -> Entries:
    """word2vec's, GloVe's or fastText's text: a word and its numbers a line, with or without a first line of counts.

    Lines of words that the vocabulary lacks are passed over unread: several times faster, and in little memory.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", errors="replace", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                fields = line.rstrip().split(" ")
                counts = len(fields) == 2 and fields[1].isdecimal()
                size = int(fields[1]) if counts else len(fields) - 1
            if line.partition(" ")[0] not in wanted or (number == 1 and counts):
                continue
            word, *numbers = line.rstrip().rsplit(" ", size)  # from the right: a word may have spaces in it
            try:
                if word in wanted:
                    yield word, np.array(numbers, dtype=np.float64).reshape(size)
            except ValueError as error:
                allowed = f"allowed: a word and {size} numbers, one space apart"
                raise DataError(f"{path}, line {number}: {str(error)[:60]}; {allowed}") from None
