"""Random numbers by counter: they belong to an instance, whatever batch it is computed in, and need no loop over texts.

Each value is a hash of (seed, instance, counter), the splitmix64 generator (Steele, Lea & Flood 2014).
"""

import numpy as np
from torch import Tensor

GOLDEN, FIRST, SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
BLOCK = 2**15  # numbers of 64 bits


def streams(seed: int, instances: np.ndarray) -> np.ndarray:
    """(instance,) uint64: where the stream of each instance starts under this seed."""
    start = _mixed(np.array([seed % 2**64], dtype=np.uint64) * GOLDEN)
    return _mixed(start ^ _mixed((instances.astype(np.uint64) + np.uint64(1)) * GOLDEN))


def streams_of(seed: int, texts: int, instance: Tensor | None) -> np.ndarray:
    """(text,) uint64: the streams of the instances (text,) of a batch; None: they are numbered by position."""
    return streams(seed, np.arange(texts) if instance is None else instance.cpu().numpy())


def bits(stream: np.ndarray, counter: np.ndarray) -> np.ndarray:
    """Random uint64, as `stream` (...) and `counter` (...) broadcast."""
    return _mixed(stream + counter.astype(np.uint64) * GOLDEN)


def normal(stream: np.ndarray, counter: np.ndarray) -> np.ndarray:
    """Standard normal numbers (Box & Muller), as the arguments broadcast."""
    first, second = (
        (bits(stream, 2 * counter.astype(np.uint64) + np.uint64(k)) >> np.uint64(11)).astype(np.float64) / 2**53
        for k in (0, 1)
    )
    return np.sqrt(-2 * np.log1p(-first)) * np.cos(2 * np.pi * second)


def orders(stream: np.ndarray, draws: int, real: np.ndarray) -> np.ndarray:
    """Uniformly random orders of the first tokens of each row.

    Random keys, with their token in the lowest bits, are sorted: keys of 32 bits, two from a hash, for up to 256
    tokens (23 random bits or more: ties shift the chance of an order by 1e-7 at most), keys of 64 bits beyond.

    Args:
        stream: (row,). real: (row, token) True on the first tokens, which are permuted; the others stay in place.
    Returns:
        (row, draw, token) int64: which token is at each position.
    """
    tokens = real.shape[1]
    kind, each = (np.uint32, 2) if tokens <= 256 else (np.uint64, 1)
    low = kind((1 << max(1, (tokens - 1).bit_length())) - 1)
    top = kind(1 << (8 * np.dtype(kind).itemsize - 1))  # what comes last has it
    place = np.arange(-(-tokens // each) * each, dtype=kind)
    last = np.ones((len(real), len(place)), dtype=bool)
    last[:, :tokens] = ~real
    counter = (np.arange(draws, dtype=np.uint64)[:, None] << np.uint64(32)) + place[::each].astype(np.uint64)
    keys = bits(stream[:, None, None], counter).view(kind)
    keys &= ~(low | top)
    keys |= np.where(last, ~low | place, place)[:, None]
    keys.sort(axis=-1)
    return np.bitwise_and(keys[:, :, :tokens], low, out=np.empty((*keys.shape[:2], tokens), np.int64), casting="unsafe")


def orders_in_any_batch(stream: np.ndarray, draws: int, real: np.ndarray) -> np.ndarray:
    """`orders`, whose keys depend on the width: each row by the power of two above its length."""
    lengths, tokens = real.sum(axis=1), real.shape[1]
    widths = 2 ** np.ceil(np.log2(np.maximum(lengths, 2))).astype(int)
    found = np.empty((len(real), draws, tokens), np.int64)
    for width in np.unique(widths):
        rows = np.flatnonzero(widths == width)
        order = orders(stream[rows], draws, np.arange(width) < lengths[rows, None])[:, :, :tokens]
        found[rows, :, : order.shape[2]], found[rows, :, order.shape[2] :] = order, np.arange(order.shape[2], tokens)
    return found


def _mixed(state: np.ndarray) -> np.ndarray:
    """In place, in blocks that stay in the processor's cache through the eight operations."""
    state = np.ascontiguousarray(state)  # or `flat` would be a copy
    flat, buffer = state.reshape(-1), np.empty(min(BLOCK, state.size), np.uint64)
    for start in range(0, flat.size, BLOCK):
        part = flat[start : start + BLOCK]
        shifted = buffer[: len(part)]
        part ^= np.right_shift(part, np.uint64(30), out=shifted)
        part *= FIRST
        part ^= np.right_shift(part, np.uint64(27), out=shifted)
        part *= SECOND
        part ^= np.right_shift(part, np.uint64(31), out=shifted)
    return state
