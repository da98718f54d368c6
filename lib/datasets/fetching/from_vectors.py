"""Word vectors in text become an `.npz` of `words` and `vectors`, which is read many times faster."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lib.datasets.fetching.disk import told_of_full_disk
from lib.datasets.fetching.sources import Source
from lib.datasets.fetching.writing import one
from lib.datasets.files import DataError

SIZE = 300  # numbers a word
LONGEST = 64  # characters of a word: all words of the file take the room of the longest


def fasttext(unpacked: Path, into: Path, source: Source) -> None:
    """fastText's text, as 32-bit numbers: exactly those of the file."""
    write_vectors(one(unpacked, "*.vec"), into / source.makes[0], np.dtype("<f4"))


def glove(unpacked: Path, into: Path, source: Source) -> None:
    """GloVe's text, as 16-bit numbers (3 digits): 1.3 GB in place of 2.6."""
    write_vectors(one(unpacked, "*.txt"), into / source.makes[0], np.dtype("<f2"))


def write_vectors(text: Path, to: Path, kind: np.dtype) -> None:
    """Reads the text twice, first for the words and then for the numbers, so that memory never holds these.

    Words that are not UTF-8 or longer than 64 characters are left out; no vocabulary has them.
    """
    words = [word for word in _words(text) if word is not None]
    if not words:
        raise DataError(f"{text.name} has no word vectors of {SIZE} numbers")
    to.parent.mkdir(parents=True, exist_ok=True)
    with told_of_full_disk(to), zipfile.ZipFile(to, "x", allowZip64=True) as packed:
        with packed.open(_member("words.npy"), "w", force_zip64=True) as file:
            np.lib.format.write_array(file, np.array(words), allow_pickle=False)
        with packed.open(_member("vectors.npy"), "w", force_zip64=True) as file:
            about = {"descr": kind.str, "fortran_order": False, "shape": (len(words), SIZE)}
            np.lib.format.write_array_header_2_0(file, about)
            for row in _numbers(text, kind):
                file.write(row.tobytes())


def _member(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))


def _rows(text: Path) -> Iterator[tuple[int, bytes, list[bytes]]]:
    """(number of the line, word, its numbers as text); a first line of counts is passed over."""
    with text.open("rb") as file:
        for number, line in enumerate(file, start=1):
            fields = line.rstrip().split(b" ")
            if number == 1 and len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit():
                continue
            if len(fields) <= SIZE:
                seen = f"{len(fields) - 1} numbers after {fields[0][:30].decode(errors='replace')!r}"
                raise DataError(f"{text.name}, line {number}, has {seen}; allowed: a word and {SIZE} numbers")
            yield number, b" ".join(fields[:-SIZE]), fields[-SIZE:]


def _word(found: bytes) -> str | None:
    try:
        word = found.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return word if len(word) <= LONGEST and not word.endswith("\0") else None


def _words(text: Path) -> Iterator[str | None]:
    return (_word(word) for _, word, _ in _rows(text))


def _numbers(text: Path, kind: np.dtype) -> Iterator[np.ndarray]:
    for number, word, fields in _rows(text):
        if _word(word) is None:
            continue
        try:
            row = np.array(fields, dtype="S").astype(np.float32).astype(kind)
        except ValueError as error:
            raise DataError(f"{text.name}, line {number}: {str(error)[:60]}; allowed: a word and its numbers") from None
        if not np.isfinite(row).all():
            raise DataError(f"{text.name}, line {number}: NaN, infinity or too large a number; allowed: finite numbers")
        yield row
