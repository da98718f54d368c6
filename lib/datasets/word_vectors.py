"""The first embedding table of a model: random numbers, or word vectors from a file.

A file is text or .npz; only the words of a vocabulary are kept, and no file can run code.
"""

import gzip
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from lib.datasets.altered import SHORTCUT_WORDS
from lib.datasets.corpus import PAD, SPECIALS, Vocabulary
from lib.datasets.files import DataError, homes, soundly_read

if TYPE_CHECKING:
    from torch import Tensor

REMEMBERED = 8  # tables kept in memory, some 20 MB each: every run of a notebook needs one
MADE = ("random", "word2vec")
NAMES = "random, auto, word2vec (learned from the texts), or a file of word vectors (.txt, .vec, .npz)"
NPZ = "it needs plain arrays words, of text, and vectors, one row of real numbers a word"
Wanted = set[bytes]  # words in UTF-8
Entries = Iterator[tuple[bytes, np.ndarray]]  # a wanted word and its numbers (size,), in the order of the file


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
        words, covered = len(self.table) - len(SPECIALS), int(self.covered.sum())
        if not covered:
            return f"{self.source}, for all {words:,} words"
        return f"{covered:,} of {words:,} words ({covered / words:.1%}) from {self.source}"


def load(
    name: str | Path, vocabulary: Vocabulary, data_home: str | Path | None = None, seed: int = 0, size: int = 300
) -> Vectors:
    """The embedding table of that name.

    Args:
        name: "random"; "auto": the first of vectors/*.npz in the homes of data that has at least half of the words,
            else random; or a file, by its path or its path in a home of data.
        data_home: as in lib.datasets.load.
        seed: of the random numbers. size: numbers a word.
    Raises:
        DataError: no such file; a damaged one; another size; not one word in common; a vector with NaN or infinity.
    """
    if name == "random":
        return random(vocabulary, seed, size)
    paths, why = files_of(name, data_home), ""
    if name != "auto":
        return from_file(paths[0], vocabulary, size)
    for path in paths:
        try:
            vectors = from_file(path, vocabulary, size)
        except DataError as error:
            why = f" ({error})"
            continue
        if vectors.covered.sum() * 2 >= len(vocabulary) - len(SPECIALS):
            return vectors
        why = f" ({vectors} are too few)"
    return random(vocabulary, seed, size, why)


@lru_cache(maxsize=REMEMBERED)
def random(vocabulary: Vocabulary, seed: int = 0, size: int = 300, why: str = "") -> Vectors:
    """N(0, 1) for every word and special but padding, which is zeros."""
    table = np.random.default_rng(seed).standard_normal((len(vocabulary), size), dtype=np.float32)
    table[PAD] = 0
    return with_checksum(table, np.zeros(len(vocabulary), dtype=bool), f"random numbers, N(0, 1), seed {seed}{why}")


def from_file(path: Path, vocabulary: Vocabulary, size: int = 300) -> Vectors:
    """The vectors of a file for its words, random ones for inserted shortcuts, zeros for others; raises as `load`."""
    with soundly_read(path):
        state = path.stat()
    return _from_file(path, (state.st_mtime_ns, state.st_size), vocabulary, size)


@lru_cache(maxsize=REMEMBERED)
def _from_file(path: Path, state: tuple[int, int], vocabulary: Vocabulary, size: int) -> Vectors:
    """The same, read once as long as the file's `state` (time, bytes) does not change."""
    rows = {word: row for row, word in enumerate(vocabulary.words) if row >= len(SPECIALS)}
    table, covered = np.zeros((len(vocabulary), size), dtype=np.float32), np.zeros(len(vocabulary), dtype=bool)
    encoded = {word.encode("utf-8", "replace"): row for word, row in rows.items()}
    with soundly_read(path), np.errstate(over="ignore"):  # infinity is refused below, with the word's name
        for word, numbers in _read(path, encoded.keys(), size):
            if not covered[row := encoded[word]]:  # of a word that occurs twice the first vector counts
                table[row], covered[row] = numbers, True
    if not covered.any():
        none = f"none of the {len(rows):,} words of the vocabulary has a vector in {path}"
        raise DataError(f"{none}; use vectors of this language in lower case, or vectors='random'")
    if not np.isfinite(table).all():
        word = vocabulary.words[int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])]
        raise DataError(f"{path}: the vector of {word[:40]!r} holds NaN or infinity; allowed: finite 32-bit numbers")
    inserted = [rows[word] for word in SHORTCUT_WORDS if word in rows and not covered[rows[word]]]
    table[inserted] = np.random.default_rng(0).normal(0, table[covered].std(), (len(inserted), size))
    return with_checksum(table, covered, str(path))


def files_of(name: str | Path, data_home: str | Path | None = None) -> list[Path]:
    """The files that `load` may read for that name, in its order; none for what is made here.

    A file is found by its path, by its path in a home of data, or in the home's folder vectors/; DataError otherwise.
    """
    if name in MADE:
        return []
    if name == "auto":
        return [path for home in homes(data_home) for path in sorted((home / "vectors").glob("*.npz"))]
    in_homes = (place for home in homes(data_home) for place in (home / name, home / "vectors" / name))
    places = [Path(name).expanduser(), *in_homes]
    if there := [place for place in places if place.is_file()]:
        return there[:1]
    looked = ", ".join(dict.fromkeys(map(str, places)))
    raise DataError(f"no word vectors {str(name)!r}: looked for {looked}; allowed: {NAMES}")


def with_checksum(table: np.ndarray, covered: np.ndarray, source: str) -> Vectors:
    """The vectors of a table (word, size) float32."""
    import torch  # here, so that listing datasets and files does not wait for it

    checksum = hashlib.sha256(f"{table.shape}".encode() + table.tobytes()).hexdigest()
    return Vectors(torch.from_numpy(table), torch.from_numpy(covered), source, checksum)


# --- files: readers that yield wanted words alone, so that memory does not grow with the file


def _read(path: Path, wanted: Wanted, size: int) -> Entries:
    """The wanted entries of a file, whose form is known by the end of its name."""
    reader = READERS.get(Path(path.name.removesuffix(".gz")).suffix)
    if reader is None:
        convert = "gensim's KeyedVectors.save_word2vec_format('vectors.txt') turns other forms into text"
        raise DataError(f"{path} is not read: allowed are {', '.join(READERS)}, each of them also .gz; {convert}")
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        yield from reader(path, file, wanted, size)


def _read_npz(path: Path, file: BinaryIO, wanted: Wanted, size: int) -> Entries:
    """Arrays `words` (text) and `vectors` (word, size) of real numbers of any precision."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            words, vectors = arrays["words"], arrays["vectors"]
    except (KeyError, ValueError, AttributeError, MemoryError) as error:  # objects, no .npz at all, absurd sizes
        raise DataError(f"{path} cannot be read ({str(error)[:80]}); {NPZ}") from None
    if (words.dtype.kind, words.ndim, vectors.dtype.kind, vectors.ndim, len(words)) != ("U", 1, "f", 2, len(vectors)):
        raise DataError(f"{path} has words {words.shape} and vectors {vectors.dtype} {vectors.shape}; {NPZ}")
    _refuse_size(path, vectors.shape[1], size)
    entries = zip((word.encode("utf-8", "replace") for word in words.tolist()), vectors, strict=True)
    return ((word, numbers) for word, numbers in entries if word in wanted)


def _read_text(path: Path, file: BinaryIO, wanted: Wanted, size: int) -> Entries:
    """word2vec's, GloVe's or fastText's text: a word and its numbers a line, with or without a first line of counts.

    Lines of words that the vocabulary lacks are passed over unread: several times faster on large files.
    """
    for number, line in enumerate(file, start=1):
        if number == 1:
            fields = line.split()
            counts = len(fields) == 2
            _refuse_size(path, int(fields[1]) if counts and fields[1].isdigit() else len(fields) - 1, size)
            if counts:
                continue
        if line.partition(b" ")[0] not in wanted:
            continue
        word, *numbers = line.rstrip().rsplit(b" ", size)  # from the right: a word may have spaces in it
        try:
            if word in wanted:
                yield word, np.array(numbers, dtype="S").astype(np.float64).reshape(size)
        except ValueError as error:
            allowed = f"allowed: a word and {size} numbers, one space apart"
            raise DataError(f"{path}, line {number}: {str(error)[:60]}; {allowed}") from None


READERS = {".npz": _read_npz, ".txt": _read_text, ".vec": _read_text}


def _refuse_size(path: Path, seen: int, size: int) -> None:
    if seen != size:
        raise DataError(
            f"{path} has {seen} numbers a word, and the model reads {size}; use other vectors, or embedding_size={seen}"
        )
