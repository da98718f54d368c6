"""The gradients of the norms of all hidden states of a one-layer BiLSTM for its inputs, in one backward sweep."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from lib import numerics as elementwise
from lib.datasets.batches import Batch
from lib.fast.lstm import Recurrence, both_directions
from lib.models import AttentionClassifier
from lib.models.encoders import reversed_by_length


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """Numbers below the smallest normal one (1e-38 in single precision) count as 0, in this thread.

    A state's gradient fades word by word; on a text of 200 most of it would be such numbers, on which a processor
    takes six times as long.
    """
    already = bool(torch.full((), 1e-39) * 1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(already)


@torch.no_grad()
def state_gradients(model: AttentionClassifier, batch: Batch) -> Tensor:
    """See `lib.importance.state_gradients`: one backward sweep per direction carries the gradients of all states."""
    passed = both_directions(model, batch)
    unit = passed.hidden / passed.hidden.norm(dim=-1, keepdim=True)  # the gradient of a state's norm
    unit *= batch.mask[:, :, None]
    first, second = unit.chunk(2, dim=-1)
    cotangents = first.transpose(0, 1), reversed_by_length(second, batch.lengths).transpose(0, 1)
    squares, own = zip(*map(_swept, passed.directions, cotangents, passed.gates, passed.cells), strict=True)
    mirror = torch.arange(batch.tokens.shape[1], device=batch.tokens.device)
    mirror = torch.where(mirror < batch.lengths[:, None], batch.lengths[:, None] - 1 - mirror, mirror)
    found, turned = squares
    for axis, index in ((1, mirror[:, :, None]), (2, mirror[:, None])):
        turned = turned.gather(axis, index.expand_as(turned))
    found += turned
    both = own[0] + reversed_by_length(own[1], batch.lengths)  # a token reaches its own state in both directions
    found.diagonal(dim1=1, dim2=2).copy_(both.square().sum(dim=-1))
    return found.sqrt_().mul_(batch.mask[:, :, None]).mul_(batch.mask[:, None])


def _swept(direction: Recurrence, cotangent: Tensor, gates: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """The squared norms of every state's gradient for the earlier words, and its gradient for its own.

    Args:
        cotangent: (word, text, hidden) of each state. gates, cells: as `Recurrence.remembered` leaves them.
    Returns:
        (text, state, word), 0 where the word comes later and on the diagonal; (text, word, embedding).
    """
    words, texts, size = cotangent.shape
    weight = direction.input_weight
    to_gates, to_cell, kept = _slopes(gates, cells)
    squares, own = gates.new_zeros(texts, words, words), gates.new_zeros(texts, words, weight.shape[1])
    of_cell, of_twice = gates.new_zeros(2, words, texts, size)
    of_gates = gates.new_empty(words, texts, 4, size)
    for word in reversed(range(words)):
        cell, twice, found = of_cell[word:], of_twice[word:], of_gates[word:]  # of the states from this word on
        twice[0] += cotangent[word] / 2
        cell.addcmul_(twice, to_cell[word])
        torch.mul(twice, to_gates[word, :, 3], out=found[:, :, 3])
        torch.mul(cell[:, :, None], to_gates[word, :, :3], out=found[:, :, :3])
        cell.mul_(kept[word])
        found = found.view(-1, 4 * size)
        torch.mm(found, direction.state_weight, out=twice.view(-1, size))
        of_inputs = (found @ weight).view(words - word, texts, -1)
        own[:, word] = of_inputs[0]
        squares[:, word + 1 :, word] = of_inputs[1:].square_().sum(dim=-1).T
    return squares, own


def _slopes(gates: Tensor, cells: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What a step of the backward sweep multiplies by, the same for the gradients of all states.

    Args:
        gates, cells: as `Recurrence.remembered` leaves them: tanh of the gates, so their slope is 1 - tanh^2.
    Returns:
        to_gates (word, text, 4, hidden), from the gradient of the cell to the first three gates, from that of twice the
        state to the last; to_cell, from twice the state to the cell; kept, from a cell to the one before: (word, text,
        hidden) each.
    """
    squashed = elementwise.tanh(cells)
    tanhs = gates.view(*cells.shape[:2], 4, -1)
    enter, keep, candidate, leave = tanhs.unbind(dim=2)
    before = torch.cat([torch.zeros_like(cells[:1]), cells[:-1]])
    to_gates = torch.stack([candidate, before, 1 + enter, squashed], dim=2)
    to_gates *= 1 - tanhs.square()
    return to_gates, (1 + leave) * (1 - squashed.square()) / 2, (1 + keep) / 2
