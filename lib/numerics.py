"""Many texts in micro-batches that fit in memory, and elementwise functions by NumPy."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

SPREAD = 4  # times its own length that a text may be padded to,
SMALL = 2**12  # unless its micro-batch has at most so many cells: then one more costs more than the padding


def by_length(lengths: Tensor, cells: int, power: int = 1) -> Iterator[Tensor]:
    """Positions of the texts from short to long, in micro-batches of at most `cells` = texts x longest ** power.

    A text that is larger by itself is a micro-batch by itself, and so is one long text among short ones. Empty texts
    are omitted.
    """
    lengths, order = lengths.sort()
    start, lengths = int((lengths < 1).sum()), lengths.tolist()
    while start < len(lengths):
        # the longest text decides the size: take what fits at the first's length and may be padded, then what fits at
        # the last's
        guess = min(start + max(1, cells // lengths[start] ** power), len(lengths))
        if (guess - start) * lengths[guess - 1] ** power > SMALL:
            guess = bisect_right(lengths, SPREAD * lengths[start], start, guess)
        stop = min(start + max(1, cells // lengths[guess - 1] ** power), guess)
        yield order[start:stop]
        start = stop


def rows_of(output, rows: Tensor | slice):
    """The named texts of a dataclass of tensors whose first axis is the batch, and of such in it: a ModelOutput."""
    held = {field.name: getattr(output, field.name) for field in fields(output)}
    tensors = {name: value[rows] for name, value in held.items() if isinstance(value, Tensor)}
    return replace(output, **tensors, **{name: rows_of(one, rows) for name, one in held.items() if is_dataclass(one)})


BY_NUMPY = (torch.float32, torch.float64)  # on a CPU torch's own exp, log and tanh take two to six times as long


def elementwise(name: str, values: Tensor, out: Tensor | None = None) -> Tensor:
    """torch's function of that name, of any shape and strides; `out` may be `values`. Without gradients."""
    out = torch.empty_like(values) if out is None else out
    if values.device.type == "cpu" and values.dtype in BY_NUMPY:
        with np.errstate(all="ignore"):  # as torch does
            getattr(np, name)(values.numpy(), out=out.numpy())
        return out
    return getattr(torch, name)(values, out=out)


exp, log, tanh = (partial(elementwise, name) for name in ("exp", "log", "tanh"))
