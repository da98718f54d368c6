"""Random numbers by counter: they belong to an instance, whatever batch it is computed in, and need no loop over texts.

Each value is a hash of (seed, instance, counter), the splitmix64 generator (Steele, Lea & Flood 2014).
"""

import numpy as np
from torch import Tensor

GOLDEN, FIRST, SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def streams(seed: int, texts: int, instance: Tensor | None = None) -> np.ndarray:
    """(text,) uint64: where the stream of each instance (text,), by default its position, starts under this seed."""
    number = np.arange(texts) if instance is None else instance.cpu().numpy()
    start = _hash(np.array([seed % 2**64], dtype=np.uint64) * GOLDEN)
    return _hash(start ^ _hash((number.astype(np.uint64) + np.uint64(1)) * GOLDEN))


def bits(stream: np.ndarray, counter: np.ndarray) -> np.ndarray:
    """Random uint64, as `stream` (...) and `counter` (...) broadcast."""
    return _hash(stream + counter.astype(np.uint64) * GOLDEN)


def normal(stream: np.ndarray, counter: np.ndarray) -> np.ndarray:
    """Standard normal numbers (Box & Muller), as the arguments broadcast."""
    pair = (bits(stream, 2 * counter.astype(np.uint64) + np.uint64(k)) for k in (0, 1))
    first, second = ((one >> np.uint64(11)).astype(np.float64) / 2**53 for one in pair)
    return np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * np.pi * second)


def orders(stream: np.ndarray, draws: int, real: np.ndarray) -> np.ndarray:
    """Uniformly random orders of the first tokens of each row, those in real (row, token), whatever the padding.

    Of stream (row,): (row, draw, token) int64, which token is at each position; the others stay in place.
    """
    lengths, tokens = real.sum(axis=1), real.shape[1]
    widths = 2 ** np.ceil(np.log2(np.maximum(lengths, 2))).astype(int)  # a row's keys depend on this alone
    order = np.tile(np.arange(tokens), (len(real), draws, 1))
    for width in np.unique(widths):
        rows = np.flatnonzero(widths == width)
        some = _orders_of_width(stream[rows], draws, np.arange(width) < lengths[rows, None])[:, :, :tokens]
        order[rows, :, : some.shape[2]] = some
    return order


def _orders_of_width(stream: np.ndarray, draws: int, real: np.ndarray) -> np.ndarray:
    """`orders` of rows of a power of two of tokens, by sorting random keys with their token in the lowest bits.

    Keys of up to 256 tokens have 32 bits, two from a hash (ties shift an order's chance by 1e-7 at most), else 64.
    """
    tokens = real.shape[1]
    kind, keys_per_hash = (np.uint32, 2) if tokens <= 256 else (np.uint64, 1)
    token = np.arange(tokens, dtype=kind)
    low = kind(tokens - 1)  # the bits of a token: there are a power of two of them
    top = kind(1 << (8 * np.dtype(kind).itemsize - 1))  # what comes last has it
    counter = (np.arange(draws, dtype=np.uint64)[:, None] << np.uint64(32)) + token[::keys_per_hash].astype(np.uint64)
    keys = bits(stream[:, None, None], counter).view(kind)
    keys &= ~(low | top)
    keys |= np.where(real, token, ~low | token)[:, None]
    keys.sort(axis=-1)
    return (keys & low).astype(np.int64)


def _hash(state: np.ndarray) -> np.ndarray:
    """splitmix64's mixing of 64 bits, in place."""
    state ^= state >> np.uint64(30)
    state *= FIRST
    state ^= state >> np.uint64(27)
    state *= SECOND
    state ^= state >> np.uint64(31)
    return state
