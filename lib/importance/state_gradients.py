"""How much each token of the input matters to each hidden state: the gradients of all their norms."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from lib import numerics as elementwise
from lib.datasets.batches import Batch
from lib.fast.lstm import Recurrence, both_directions, is_swept
from lib.importance.gradients import fixed_parameters
from lib.metrics import normalized_entropy
from lib.models import AttentionClassifier, AttentionModel, ModelOutput
from lib.models.encoders import reversed_by_length
from lib.models.evaluation import words_at_once
from lib.numerics import by_length
from lib.quantity import Quantity

PAIRS = 2**15  # of states and words at once
WORDS = 2**14  # of the repeated texts of the general way


def state_gradients(model: AttentionModel, batch: Batch) -> Tensor:
    """|| d ||h_p||_2 / d x_i ||_2 for every state p and token i (Meister et al. 2021, Eq. 5, before it is normalised).

    For our BiLSTM of one layer one backward sweep a direction carries the gradients of all states along; any other
    model is run on as many copies of a text as it has tokens.

    Returns:
        (batch, state, token), 0 off the mask on either side.
    """
    result = None
    for rows, found in _in_pieces(model, batch):
        if result is None:
            result = found.new_zeros(*batch.mask.shape, batch.mask.shape[1])
        width = found.shape[1]
        result[rows, :width, :width] = found
    return result


def _in_pieces(model: AttentionModel, batch: Batch) -> Iterator[tuple[Tensor, Tensor]]:
    """(rows, (row, state, token)) of some texts at a time, padded no longer than they need."""
    by_hand = isinstance(model, AttentionClassifier) and is_swept(model.encoder)
    way = _by_one_sweep if by_hand else naive_state_gradients
    for rows in by_length(batch.lengths, PAIRS, power=2):
        part = batch.rows(rows)
        with denormals_as_zero():
            found = way(model, part)
        yield rows, found


def naive_state_gradients(model: AttentionModel, batch: Batch) -> Tensor:
    """The same for any model: each text once for each of its states, in pieces."""
    row, state = batch.mask.nonzero(as_tuple=True)
    result = None
    for some in by_length(batch.lengths[row], words_at_once(model, WORDS)):
        part = batch.rows(row[some])
        with fixed_parameters(model):
            output = model(part)
            norms = output.hidden[torch.arange(len(some)), state[some]].norm(dim=-1)
            (gradient,) = torch.autograd.grad(norms.sum(), output.embeddings)
        if result is None:
            result = gradient.new_zeros(*batch.mask.shape, batch.mask.shape[1])
        result[row[some], state[some], : gradient.shape[1]] = gradient.norm(dim=-1).masked_fill(~part.mask, 0)
    return result


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
def _by_one_sweep(model: AttentionClassifier, batch: Batch) -> Tensor:
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


def state_entropy(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
    """A quantity: the normalised entropy of g_{h_p}(x), the mean over the states p of a text (their table 1).

    (batch,) in [0, 1]; NaN for texts of one token. A state that no token moves has no distribution and does not count.
    """
    found = torch.full((len(batch),), torch.nan, dtype=torch.float64, device=batch.mask.device)
    for rows, gradients in _in_pieces(model, batch):
        found[rows] = _mean_entropy(gradients, batch.rows(rows).mask)
    return found


def _mean_entropy(gradients: Tensor, mask: Tensor) -> Tensor:
    """(batch,) from gradients (batch, state, token); some states at a time, as it takes doubles."""
    some = max(1, PAIRS // mask.numel())
    entropies = torch.cat([_entropies(part.double(), mask) for part in gradients.split(some, dim=1)], dim=1)
    there = mask & ~entropies.isnan()
    mean = entropies.masked_fill(~there, 0).sum(dim=1) / there.sum(dim=1)
    return mean.masked_fill(~there.any(dim=1), torch.nan)


def _entropies(gradients: Tensor, mask: Tensor) -> Tensor:
    """(batch, state) from gradients (batch, state, token); NaN where no token moves the state, or there is but one."""
    total = gradients.sum(dim=-1, keepdim=True)
    shares = gradients / total.clamp_min(torch.finfo(gradients.dtype).tiny)
    every = mask[:, None].expand_as(shares)
    entropies = normalized_entropy(shares.flatten(0, 1), every.flatten(0, 1)).view(shares.shape[:2])
    return entropies.masked_fill(total.squeeze(-1) == 0, torch.nan)


of_inputs_to_states = Quantity("entropy_of_input_to_hidden_importance", state_entropy, "fraction", max_tokens=500)
