"""gensim's .kv files, which are pickles, read without running anything that they ask for."""

import pickle
from pathlib import Path

import numpy as np

from lib.datasets.files import DataError

GENSIM = {"KeyedVectors", "Word2VecKeyedVectors", "EuclideanKeyedVectors", "WordEmbeddingsKeyedVectors"}
GENSIM_WORDS = {"Vocab", "CompatVocab", "SimpleVocab"}  # what old versions keep for each word; not needed here


class Holder:
    """Stands for any object of gensim: it only holds what the file says about it."""

    def __new__(cls, *arguments, **named):
        return super().__new__(cls)

    def __init__(self, *arguments, **named):
        pass


def plain_dtype(*arguments) -> np.dtype:
    """numpy.dtype for numbers and text; arrays of objects are refused."""
    dtype = np.dtype(*arguments)
    if dtype.kind not in "biufSU":
        raise pickle.UnpicklingError(f"an array of type {dtype}")
    return dtype


def plain_array(*arguments) -> np.ndarray:
    """An empty array, which the file then fills: what numpy's _reconstruct gives for an ndarray."""
    return np.ndarray((0,), dtype=np.int8)


def plain_scalar(dtype: np.dtype, content: bytes) -> np.generic:
    """One number."""
    return np.frombuffer(content, dtype=dtype)[0]


def filled_array(buffer: bytes, dtype: np.dtype, shape: tuple, order: str) -> np.ndarray:
    """What numpy's _frombuffer gives."""
    return np.frombuffer(buffer, dtype=dtype).reshape(shape, order=order)


ALLOWED = {("numpy", "dtype"): plain_dtype, ("numpy", "ndarray"): Holder}
for _numpy in ("numpy.core", "numpy._core"):  # before and since numpy 2
    ALLOWED[f"{_numpy}.multiarray", "_reconstruct"] = plain_array
    ALLOWED[f"{_numpy}.multiarray", "scalar"] = plain_scalar
    ALLOWED[f"{_numpy}.numeric", "_frombuffer"] = filled_array
for _name in GENSIM | GENSIM_WORDS:
    ALLOWED["gensim.models.keyedvectors", _name] = Holder


class PlainUnpickler(pickle.Unpickler):
    """Knows the names in ALLOWED and no others, so that a pickle cannot reach any code of this machine."""

    def find_class(self, module: str, name: str):
        if (module, name) not in ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not part of word vectors")
        return ALLOWED[module, name]


def read_keyed_vectors(path: Path) -> tuple[list[str], np.ndarray]:
    """Words and vectors (word, size) of a .kv; large ones keep the numbers in `<name>.vectors.npy` beside it.

    Raises:
        DataError: no such file, not a .kv of words, or a pickle that asks for anything else.
    """
    try:
        with path.open("rb") as file:
            held = vars(PlainUnpickler(file).load())
    except OSError:
        raise
    except Exception as error:  # a damaged pickle may raise anything
        raise DataError(
            f"{path} is refused: {str(error)[:120]}; allowed: gensim's KeyedVectors, saved by save()"
        ) from None
    words = next((held[name] for name in ("index_to_key", "index2word", "index2entity") if name in held), None)
    vectors = held.get("vectors")
    if vectors is None and "vectors" in (held.get("__numpys") or ()):
        vectors = _beside(path.with_name(f"{path.name}.vectors.npy"))
    if not isinstance(words, list) or not all(isinstance(w, str) for w in words) or not isinstance(vectors, np.ndarray):
        raise DataError(f"{path} holds no list of words with an array of vectors; allowed: gensim's KeyedVectors")
    return words, vectors


def _beside(path: Path) -> np.ndarray:
    try:
        return np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{path} is missing; a large .kv keeps its numbers there: copy both files") from None
    except (ValueError, EOFError, MemoryError) as error:
        raise DataError(f"{path} is no array of numbers ({str(error)[:80]}); copy it again") from None
