"""The first embedding table of a model: random numbers, or word vectors from a file."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lib.datasets.corpus import PAD, SPECIALS, Vocabulary
from lib.datasets.files import DataError, homes
from lib.datasets.vector_files import read

if TYPE_CHECKING:
    from torch import Tensor

REMEMBERED = 8  # tables kept in memory, some 20 MB each: every run of a notebook asks for one
MADE = ("random", "word2vec")
NAMES = (
    "random, auto, word2vec (learned from the texts), "
    "or a file of word vectors (.txt, .vec, either of them .gz; .npz; .kv)"
)


@dataclass(frozen=True)
class Vectors:
    """An embedding table for a vocabulary.

    table     (word, size) float32; zeros for padding, and for words that the file does not have (Jain & Wallace's code)
    covered   (word,) True where the file has the word
    source    where the numbers come from, in words
    checksum  SHA-256 of the table
    """

    table: "Tensor"
    covered: "Tensor"
    source: str
    checksum: str

    def __str__(self) -> str:
        words, found = len(self.table) - len(SPECIALS), int(self.covered.sum())
        if not found:
            return f"{self.source}, for all {words:,} words"
        return f"{found:,} of {words:,} words ({found / words:.1%}) from {self.source}"


def load(
    name: str | Path, vocabulary: Vocabulary, data_home: str | Path | None = None, seed: int = 0, size: int = 300
) -> Vectors:
    """The embedding table that `name` asks for.

    Args:
        name: "random"; "auto": the first of vectors/*.npz in the homes of data that has at least half of the words,
            else random; or a file, by its path or its path in a home of data.
        data_home: as in lib.datasets.load.
        seed: of the random numbers. size: numbers a word.
    Raises:
        DataError: no such file; a damaged one; another size; not one word in common.
    """
    if name == "random":
        return random(vocabulary, seed, size)
    if name == "auto":
        return _automatic(vocabulary, data_home, seed, size)
    return from_file(find(name, data_home), vocabulary, size)


@lru_cache(maxsize=REMEMBERED)
def random(vocabulary: Vocabulary, seed: int = 0, size: int = 300, why: str = "") -> Vectors:
    """N(0, 1) for every word and special but padding, which is zeros."""
    table = np.random.default_rng(seed).standard_normal((len(vocabulary), size), dtype=np.float32)
    table[PAD] = 0
    return with_checksum(table, np.zeros(len(vocabulary), dtype=bool), f"random numbers, N(0, 1), seed {seed}{why}")


def from_file(path: Path, vocabulary: Vocabulary, size: int = 300) -> Vectors:
    """The vectors of a file for the words that it has, zeros for all others.

    Raises:
        DataError: damaged; another size; not one word in common; a vector with NaN or infinity.
    """
    state = path.stat() if path.exists() else None
    return _from_file(path, state and (state.st_mtime_ns, state.st_size), vocabulary, size)


@lru_cache(maxsize=REMEMBERED)
def _from_file(path: Path, state: tuple[int, int] | None, vocabulary: Vocabulary, size: int) -> Vectors:
    """The same, read once as long as the file's `state` (time, bytes) does not change."""
    rows = {word: row for row, word in enumerate(vocabulary.words) if row >= len(SPECIALS)}
    table, covered = np.zeros((len(vocabulary), size), dtype=np.float32), np.zeros(len(vocabulary), dtype=bool)
    found, vectors = read(path, rows, size)
    table[found], covered[found] = vectors, True
    if not covered.any():
        raise DataError(
            f"none of the {len(rows):,} words of the vocabulary has a vector in {path}; "
            "use vectors of this language in lower case, or vectors='random'"
        )
    if not np.isfinite(table).all():
        word = vocabulary.words[int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])]
        raise DataError(f"{path}: the vector of {word[:40]!r} holds NaN or infinity; allowed: finite 32-bit numbers")
    return with_checksum(table, covered, str(path))


def _automatic(vocabulary: Vocabulary, data_home: str | Path | None, seed: int, size: int) -> Vectors:
    why = ""
    for path in files_of("auto", data_home):
        try:
            vectors = from_file(path, vocabulary, size)
        except DataError as error:
            why = f" ({error})"
            continue
        if vectors.covered.sum() * 2 >= len(vocabulary) - len(SPECIALS):
            return vectors
        why = f" ({vectors} are too few)"
    return random(vocabulary, seed, size, why)


def files_of(name: str | Path, data_home: str | Path | None = None) -> list[Path]:
    """The files that `load` may read for that name, in the order in which it tries them; none for what is made here.

    Raises:
        DataError: no such file.
    """
    if name in MADE:
        return []
    if name == "auto":
        return [path for home in homes(data_home) for path in sorted((home / "vectors").glob("*.npz"))]
    return [find(name, data_home)]


def find(name: str | Path, data_home: str | Path | None = None) -> Path:
    """The file of that name: its path, else its path in a home of data, else in the home's folder vectors/.

    Raises:
        DataError: no such file.
    """
    name = Path(name)
    places = [
        name.expanduser(),
        *(place for home in homes(data_home) for place in (home / name, home / "vectors" / name)),
    ]
    for place in places:
        if place.is_file():
            return place
    looked = ", ".join(dict.fromkeys(map(str, places)))
    raise DataError(f"no word vectors {str(name)!r}: looked for {looked}; allowed: {NAMES}")


def with_checksum(table: np.ndarray, covered: np.ndarray, source: str) -> Vectors:
    checksum = hashlib.sha256(f"{table.shape}".encode() + table.tobytes()).hexdigest()
    import torch  # here: who asks for the names of datasets and files does not wait for it

    return Vectors(torch.from_numpy(table), torch.from_numpy(covered), source, checksum)
