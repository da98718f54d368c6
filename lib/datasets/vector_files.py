"""Reading word vectors from text, .npz and gensim's .kv, of which only the words of a vocabulary are kept.

Every reader is `(path, rows, size) -> (found, vectors)`: `rows` gives the row of each wanted word in the table,
`found` (n,) the rows that the file has, and `vectors` (n, size) their numbers. No file can run code.
"""

import gzip
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lib.datasets.files import DataError
from lib.datasets.keyed_vectors import read_keyed_vectors

Found = tuple[np.ndarray, np.ndarray]


def read(path: Path, rows: dict[str, int], size: int) -> Found:
    """The wanted vectors of a file of any known form, told by the end of its name.

    Raises:
        DataError: an unknown form, a damaged file, vectors of another size.
    """
    try:
        if path.suffix == ".npz":
            return _wanted(path, *_read_npz(path), rows, size)
        if path.suffix == ".kv":
            return _wanted(path, *read_keyed_vectors(path), rows, size)
        if path.suffix == ".bin":
            raise DataError(f"{path} is binary; allowed: text (.txt, .vec, .gz), .npz or gensim's .kv")
        return _read_text(path, rows, size)
    except EOFError:
        raise DataError(f"{path} ends too early: the file is cut off; copy or download it again") from None
    except (gzip.BadGzipFile, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} cannot be unpacked ({error}); copy or download it again") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


def _wanted(path: Path, words: list[str], vectors: np.ndarray, rows: dict[str, int], size: int) -> Found:
    if vectors.ndim != 2 or len(vectors) != len(words) or vectors.dtype.kind != "f":
        seen = f"{len(words):,} words and vectors of shape {vectors.shape}, {vectors.dtype}"
        raise DataError(f"{path} has {seen}; allowed: one row of real numbers a word")
    if vectors.shape[1] != size:
        raise _another_size(path, vectors.shape[1], size)
    first = {word: index for index, word in reversed(list(enumerate(words))) if word in rows}
    found = np.array([rows[word] for word in first], dtype=np.int64)
    with np.errstate(over="ignore"):  # infinity is refused later, with the word's name
        return found, vectors[np.array(list(first.values()), dtype=np.int64)].astype(np.float32)


def _another_size(path: Path, seen: int, size: int) -> DataError:
    return DataError(
        f"{path} has {seen} numbers a word, and the model reads {size}; use other vectors, or embedding_size={seen}"
    )


def _read_npz(path: Path) -> tuple[list[str], np.ndarray]:
    """Arrays `words` (text) and `vectors` (word, size) of real numbers of any precision."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            missing = {"words", "vectors"} - set(arrays.files)
            if missing:
                seen = ", ".join(arrays.files) or "nothing"
                raise DataError(f"{path} has the arrays {seen}; it needs 'words' and 'vectors'")
            words, vectors = arrays["words"], arrays["vectors"]
    except DataError:
        raise
    except (ValueError, AttributeError, MemoryError) as error:  # an array of objects, no .npz at all, absurd sizes
        raise DataError(f"{path} is no .npz of plain arrays ({str(error)[:80]})") from None
    if words.dtype.kind != "U" or words.ndim != 1:
        raise DataError(f"{path}: 'words' is of type {words.dtype}, shape {words.shape}; allowed: one list of text")
    return words.tolist(), vectors


def _read_text(path: Path, rows: dict[str, int], size: int) -> Found:
    """word2vec's, GloVe's or fastText's text: a word and its numbers a line, with or without a first line of counts.

    Of words that the vocabulary lacks only the count of numbers is looked at, which makes large files several times
    faster to read. Where a word stands twice its first vector counts.
    """
    wanted = {word.encode("utf-8", "replace"): row for word, row in rows.items()}
    vectors: dict[int, np.ndarray] = {}
    for number, line in enumerate(_lines(path), start=1):
        fields = line.rstrip()
        if number == 1 and _checked_first_line(path, fields, size):
            continue
        if fields.count(b" ") < size:
            seen = f"{fields.count(b' ')} numbers after {fields[:30].decode(errors='replace')!r}"
            raise DataError(
                f"{path}, line {number}, has {seen}; allowed: a word and {size} numbers, apart by one space"
            )
        if fields.partition(b" ")[0] in wanted:
            *word, numbers = fields.rsplit(b" ", size)[0], fields.split(b" ")[-size:]
            row = wanted.get(word[0])
            if row is not None and row not in vectors:
                vectors[row] = _numbers(path, number, numbers)
    if not vectors:
        return np.empty(0, dtype=np.int64), np.empty((0, size), dtype=np.float32)
    return np.array(list(vectors), dtype=np.int64), np.stack(list(vectors.values()))


def _lines(path: Path) -> Iterator[bytes]:
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        yield from file


def _checked_first_line(path: Path, fields: bytes, size: int) -> bool:
    """Whether the first line only says how many words and numbers follow; refuses vectors of another size."""
    first = fields.split(b" ")
    header = len(first) == 2 and first[0].isdigit() and first[1].isdigit()
    seen = int(first[1]) if header else len(first) - 1
    if seen != size:
        raise _another_size(path, seen, size)
    return header


def _numbers(path: Path, number: int, fields: list[bytes]) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):  # infinity is refused later, with the word's name
            return np.array([float(value) for value in fields], dtype=np.float32)
    except ValueError as error:
        raise DataError(f"{path}, line {number}: {str(error)[:60]}; allowed: a word and its numbers") from None
