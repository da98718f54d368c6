"""Gradients of a BiLSTM classifier for its inputs alone: half the work of torch's backward, which also computes those
of the weights."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.importance.recurrence import Recurrence
from lib.models import AttentionClassifier
from lib.models.encoders import reversed_by_length

Targets = Callable[[Tensor], Tensor]  # logits (batch, class) -> (batch, target), differentiable


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
    """The way forth through both directions."""
    directions = Recurrence.of(model.encoder.onward[0]), Recurrence.of(model.encoder.backward_[0])
    types, ids = batch.tokens.unique(return_inverse=True)
    orders = ids, reversed_by_length(ids[:, :, None], batch.lengths)[:, :, 0]
    words = model.embedding(types)
    gates = tuple(d.project(words)[order.T] for d, order in zip(directions, orders, strict=True))
    states, cells = zip(*(d.remembered(g) for d, g in zip(directions, gates, strict=True)), strict=True)
    onward, backward = (s.transpose(0, 1) / 2 for s in states)
    hidden = torch.cat([onward, reversed_by_length(backward, batch.lengths)], dim=-1)
    return Passed(directions, words, orders, gates, cells, hidden)


def bilstm_gradients(model: AttentionClassifier, batch: Batch, through_attention: bool, targets: Targets) -> Tensor:
    """The gradient of each target for each embedded token, (target, batch, word, embedding)."""
    passed = both_directions(model, batch)
    gradients = []
    for swept in _swept(model, batch, passed, through_attention, targets):
        onward, backward = (of_gates @ d.input_weight for of_gates, d in zip(swept, passed.directions, strict=True))
        gradients.append(onward + reversed_by_length(backward, batch.lengths))
    return torch.stack(gradients)


def bilstm_gradients_times_inputs(
    model: AttentionClassifier, batch: Batch, through_attention: bool, targets: Targets
) -> Tensor:
    """gradient . embedding of each target and token, (target, batch, word), without the gradient itself.

    It is the gradient of what an embedding adds to the gates, times that: (W' g) . x = g . (W x). Each W x is computed
    once for a word, not for a token; and no W' g, which would be half of the work.
    """
    passed = both_directions(model, batch)
    added = [passed.words @ direction.input_weight.T for direction in passed.directions]
    found = []
    for swept in _swept(model, batch, passed, through_attention, targets):
        onward, backward = (
            of_gates.mul_(table[order]).sum(dim=-1, keepdim=True)
            for of_gates, table, order in zip(swept, added, passed.orders, strict=True)
        )
        found.append((onward + reversed_by_length(backward, batch.lengths)).squeeze(-1))
    return torch.stack(found)


def _swept(
    model: AttentionClassifier, batch: Batch, passed: Passed, through_attention: bool, targets: Targets
) -> Iterator[tuple[Tensor, Tensor]]:
    """Of each target the gradients for the projected inputs (batch, word, 4 hidden), as either direction reads them."""
    of_hidden = hidden_gradients(model, batch, passed.hidden, through_attention, targets)
    for k, gradient in enumerate(of_hidden):
        kept = passed.gates if k + 1 == len(of_hidden) else [g.clone() for g in passed.gates]  # used up by the sweep
        first, second = gradient.chunk(2, dim=-1)
        turned = first, reversed_by_length(second, batch.lengths)
        onward, backward = (
            direction.backward(g.transpose(0, 1), gates, cells).transpose(0, 1)
            for direction, g, gates, cells in zip(passed.directions, turned, kept, passed.cells, strict=True)
        )
        yield onward, backward


def hidden_gradients(model, batch: Batch, hidden: Tensor, through_attention: bool, targets) -> list[Tensor]:
    """The gradient of each target for the hidden states, (batch, word, hidden) each."""
    hidden.requires_grad_()
    attention = model.projection(model.attention(hidden), batch.mask)
    values = targets(model.decode(attention if through_attention else attention.detach(), hidden))
    return [
        torch.autograd.grad(value.sum(), hidden, retain_graph=k + 1 < values.shape[1])[0]
        for k, value in enumerate(values.T)
    ]
