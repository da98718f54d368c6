"""A BiLSTM of one layer in plain tensor operations, for what torch's own cannot do fast: sweeps over many
deletions or states at once, and gradients times inputs without the gradients of the weights, which are half of the
work of torch's backward pass."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lib import numerics as elementwise
from lib.datasets.batches import Batch
from lib.models import AttentionClassifier
from lib.models.encoders import reversed_by_length
from lib.models.evaluation import gradients_for

FADED = 4  # roundings of what a state's gradient is at its own word: a difference that sums make too
EVERY = 8  # words after which it is looked which states' gradients have faded
Targets = Callable[[Tensor], Tensor]  # logits (batch, class) -> (batch, target), differentiable


@dataclass(frozen=True)
class Recurrence:
    """The weights of a one-layer LSTM, scaled so that a step is one product and one tanh over all four gates.

    sigmoid(x) = (1 + tanh(x / 2)) / 2, so the rows of the input, forget and output gate are halved, and a state is kept
    as `twice` the hidden state, h2 = (1 + tanh(o / 2)) tanh(c), which halves the columns that read it.

    input_weight (4 hidden, embedding), input_bias (4 hidden,), state_weight (4 hidden, hidden); gates in torch's order
    input, forget, cell, output.
    """

    input_weight: Tensor
    input_bias: Tensor
    state_weight: Tensor

    @classmethod
    def of(cls, lstm: nn.LSTM) -> "Recurrence":
        """The weights of one direction of torch's LSTM, scaled for this recurrence."""
        scale = torch.full_like(lstm.bias_ih_l0, 0.5)
        scale[2 * lstm.hidden_size : 3 * lstm.hidden_size] = 1  # the cell's candidate is a tanh already
        bias = (lstm.bias_ih_l0 + lstm.bias_hh_l0) * scale
        return cls(
            (lstm.weight_ih_l0 * scale[:, None]).detach(),
            bias.detach(),
            (lstm.weight_hh_l0 * scale[:, None] / 2).detach(),
        )

    @property
    def size(self) -> int:
        """The number of hidden units of one direction."""
        return self.state_weight.shape[1]

    def project(self, embedded: Tensor) -> Tensor:
        """What the inputs add to the gates: (..., embedding) -> (..., 4 hidden)."""
        return embedded @ self.input_weight.T + self.input_bias

    def advance(self, gates: Tensor, twice: Tensor, cell: Tensor) -> None:
        """One step of all rows, in place. gates (row, 4 hidden) holds the inputs and then tanh of the gates;
        twice, cell (row, hidden) hold the states before and then after."""
        elementwise.tanh(gates.addmm_(twice, self.state_weight.T), out=gates)
        enter, keep, candidate, leave = gates.chunk(4, dim=-1)
        cell.addcmul_(keep, cell).lerp_(torch.addcmul(candidate, enter, candidate), 0.5)
        elementwise.tanh(cell, out=twice)
        twice.addcmul_(leave, twice)

    def remembered(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """(twice the hidden states, cells), each (word, row, hidden); `inputs` becomes tanh of the gates in place."""
        words, rows, _ = inputs.shape
        states, cells = inputs.new_empty(2, words, rows, self.size)
        twice, cell = inputs.new_zeros(2, rows, self.size)
        for word in range(words):
            self.advance(inputs[word], twice, cell)
            states[word], cells[word] = twice, cell
        return states, cells

    def backward(self, gradient: Tensor, gates: Tensor, cells: Tensor) -> Tensor:
        """The gradient of the projected inputs, in place of `gates`; the sweep of `remembered` in reverse.

        Args:
            gradient: (word, row, hidden) of the hidden states. gates, cells: as `remembered` leaves them.
        """
        words, rows, size = gradient.shape
        of_cell, of_twice = gates.new_zeros(2, rows, size)
        of_gates, squares = gates.new_empty(2, rows, 4 * size)
        of_enter, of_keep, of_candidate, of_leave = of_gates.chunk(4, dim=-1)
        squashed, start = gates.new_empty(rows, size), gates.new_zeros(rows, size)
        for word in reversed(range(words)):
            enter, keep, candidate, leave = gates[word].chunk(4, dim=-1)
            of_twice.add_(gradient[word], alpha=0.5)
            elementwise.tanh(cells[word], out=squashed)
            torch.mul(of_twice, squashed, out=of_leave)
            of_twice.addcmul_(of_twice, leave)
            of_cell.add_(of_twice).addcmul_(of_twice, squashed.square_(), value=-1).mul_(0.5)
            torch.mul(of_cell, candidate, out=of_enter)
            torch.mul(of_cell, cells[word - 1] if word else start, out=of_keep)
            torch.addcmul(of_cell, of_cell, enter, out=of_candidate)
            of_cell.addcmul_(of_cell, keep)
            torch.mul(gates[word], gates[word], out=squares)
            torch.addcmul(of_gates, of_gates, squares, value=-1, out=gates[word])  # tanh' = 1 - tanh^2
            torch.mm(gates[word], self.state_weight, out=of_twice)
        return gates


@dataclass(frozen=True)
class Passed:
    """What a backward sweep through a BiLSTM of one layer starts from; pairs hold either direction's.

    words       (word type, embedding) those of the batch
    orders      (batch, word): each one's row of `words`, as the direction reads the text
    gates       as `Recurrence.remembered` leaves them; so are the cells
    hidden      (batch, word, hidden) the states
    """

    directions: tuple[Recurrence, Recurrence]
    words: Tensor
    orders: tuple[Tensor, Tensor]
    gates: tuple[Tensor, ...]
    cells: tuple[Tensor, ...]
    hidden: Tensor


@torch.no_grad()
def both_directions(model: AttentionClassifier, batch: Batch) -> Passed:
    """The forward pass through both directions."""
    directions = Recurrence.of(model.encoder.forwards[0]), Recurrence.of(model.encoder.backwards[0])
    types, ids = batch.tokens.unique(return_inverse=True)
    orders = ids, reversed_by_length(ids[:, :, None], batch.lengths)[:, :, 0]
    words = model.embedding(types)
    gates = tuple(d.project(words)[order.T] for d, order in zip(directions, orders, strict=True))
    states, cells = zip(*(d.remembered(g) for d, g in zip(directions, gates, strict=True)), strict=True)
    onward, backward = (s.transpose(0, 1) / 2 for s in states)
    hidden = torch.cat([onward, reversed_by_length(backward, batch.lengths)], dim=-1)
    return Passed(directions, words, orders, gates, cells, hidden)


def gradients_times_inputs(
    model: AttentionClassifier, batch: Batch, through_attention: bool, targets: Targets
) -> Tensor:
    """gradient . embedding of each target and token, (target, batch, word), without the gradient itself.

    It is the gradient of what an embedding adds to the gates, times that: (W' g) . x = g . (W x). Each W x is computed
    once for a word, not for a token; and no W' g, which would be half of the work.
    """
    passed = both_directions(model, batch)
    added = [passed.words @ direction.input_weight.T for direction in passed.directions]
    of_hidden = hidden_gradients(model, batch, passed.hidden, through_attention, targets)
    found = []
    for k, gradient in enumerate(of_hidden):
        kept = passed.gates if k + 1 == len(of_hidden) else [g.clone() for g in passed.gates]  # used up by the sweep
        first, second = gradient.chunk(2, dim=-1)
        turned = first, reversed_by_length(second, batch.lengths)
        onward, backward = (
            direction.backward(g.transpose(0, 1), gates, cells).transpose(0, 1).mul_(table[order]).sum(dim=-1)
            for direction, g, gates, cells, table, order in zip(
                passed.directions, turned, kept, passed.cells, added, passed.orders, strict=True
            )
        )
        found.append(onward + reversed_by_length(backward[:, :, None], batch.lengths)[:, :, 0])
    return torch.stack(found)


def hidden_gradients(model, batch: Batch, hidden: Tensor, through_attention: bool, targets: Targets) -> Tensor:
    """The gradient of each target for the hidden states, (target, batch, word, hidden)."""
    hidden.requires_grad_()
    attention = model.projection(model.attention(hidden), batch.mask)
    return gradients_for(hidden, targets(model.decode(attention if through_attention else attention.detach(), hidden)))


# --- the gradients of the norms of all hidden states, in one backward sweep


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
    squares, own = zip(*map(_swept_states, passed.directions, cotangents, passed.gates, passed.cells), strict=True)
    found, turned = squares
    found += reversed_by_length(reversed_by_length(turned, batch.lengths).mT, batch.lengths).mT
    both = own[0] + reversed_by_length(own[1], batch.lengths)  # a token reaches its own state in both directions
    found.diagonal(dim1=1, dim2=2).copy_(both.square().sum(dim=-1))
    return found.sqrt_().mul_(batch.mask[:, :, None]).mul_(batch.mask[:, None])


def _swept_states(direction: Recurrence, cotangent: Tensor, gates: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """The squared norms of every state's gradient for the earlier words, and its gradient for its own.

    A trained LSTM forgets: some tens of words before a state its gradient has faded to nothing, to rounding, and is
    carried no further. States fade in about their own order: those from `last` on have.

    Args:
        cotangent: (word, text, hidden) of each state. gates, cells: as `Recurrence.remembered` leaves them.
    Returns:
        (text, state, word), 0 where the word comes later and on the diagonal; (text, word, embedding).
    """
    words, texts, size = cotangent.shape
    weight = direction.input_weight
    to_gates, to_cell, kept = _slopes(gates, cells)
    squares, own = gates.new_zeros(texts, words, words), gates.new_zeros(texts, words, weight.shape[1])
    carried, of_gates = gates.new_zeros(2, words, texts, size), gates.new_empty(words, texts, 4, size)
    first, last = gates.new_zeros(2, words, texts), words  # the largest component of each state's, at its own word
    for word in reversed(range(words)):
        cell, twice, found = *carried[:, word:last], of_gates[word:last]  # of the states from this word on
        twice[0] += cotangent[word] / 2
        cell.addcmul_(twice, to_cell[word])
        torch.mul(twice, to_gates[word, :, 3], out=found[:, :, 3])
        torch.mul(cell[:, :, None], to_gates[word, :, :3], out=found[:, :, :3])
        cell.mul_(kept[word])
        found = found.view(-1, 4 * size)
        torch.mm(found, direction.state_weight, out=twice.view(-1, size))
        of_inputs = (found @ weight).view(last - word, texts, -1)
        own[:, word] = of_inputs[0]
        squares[:, word + 1 : last, word] = of_inputs[1:].square_().sum(dim=-1).T
        first[:, word] = carried[:, word].abs().amax(dim=-1)
        if word % EVERY == 0:
            now = carried[:, word:last].abs().amax(dim=-1)
            faded = (now <= FADED * torch.finfo(now.dtype).eps * first[:, word:last]).all(dim=2).all(dim=0)
            last -= int(faded.flip(0).to(torch.uint8).cumprod(dim=0).sum())
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
