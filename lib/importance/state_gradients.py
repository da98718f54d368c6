"""How much each token of the input matters to each hidden state: the gradients of all their norms."""

from collections.abc import Iterator

import torch
from torch import Tensor

from lib import numerics as elementwise
from lib.datasets.batches import Batch
from lib.importance.lstm import Recurrence, both_directions, has_one_lstm
from lib.metrics.distances import normalized_entropy
from lib.models import AttentionClassifier, AttentionModel, ModelOutput
from lib.models.encoders import reversed_by_length
from lib.models.evaluation import gradients_enabled
from lib.numerics import by_length
from lib.quantity import Quantity

PAIRS = 2**15  # of states and words at once
ROUNDINGS = 4  # of what a state's gradient is at its own word: a difference that sums make too
EVERY = 8  # words after which it is looked which states' gradients have faded


def state_gradients_definition(model: AttentionModel, batch: Batch) -> Tensor:
    """|| d ||h_p||_2 / d x_i ||_2 for every state p and token i (Meister et al. 2021, Eq. 5, before it is normalised).

    (batch, state, token), 0 off the mask on either side, by a backward pass for each state.
    """
    with gradients_enabled(model):
        output = model(batch)
        result = output.hidden.new_zeros(*batch.mask.shape, batch.mask.shape[1])
        for state in batch.mask.any(dim=0).nonzero()[:, 0]:
            norms = output.hidden[:, state].norm(dim=-1)
            (gradient,) = torch.autograd.grad(norms.sum(), output.embeddings, retain_graph=True)
            result[:, state] = gradient.norm(dim=-1)
    return result.masked_fill(~(batch.mask[:, :, None] & batch.mask[:, None]), 0)


def state_gradients(model: AttentionModel, batch: Batch) -> Tensor:
    """`state_gradients_definition`; of our classifiers with a BiLSTM of one layer by one sweep for all states."""
    result = torch.zeros(*batch.mask.shape, batch.mask.shape[1], device=batch.mask.device)
    for rows, part in _in_micro_batches(model, batch):
        result = result.to(part.dtype)
        result[rows, : part.shape[1], : part.shape[1]] = part
    return result


def _in_micro_batches(model: AttentionModel, batch: Batch) -> Iterator[tuple[Tensor, Tensor]]:
    """(rows, (row, state, token)) of some texts at a time, padded no longer than they need."""
    swept = type(model) is AttentionClassifier and has_one_lstm(model)
    for rows in by_length(batch.lengths, PAIRS, power=2):
        yield rows, (_swept if swept else state_gradients_definition)(model, batch.rows(rows))


@torch.no_grad()
def _swept(model: AttentionClassifier, batch: Batch) -> Tensor:
    """(batch, state, token), where one backward sweep a direction carries the gradients of all states."""
    lengths = batch.lengths
    directions, gates = both_directions(model.encoder, model.embedding(batch.tokens), lengths)
    states, cells = zip(*(direction.run(own) for direction, own in zip(directions, gates, strict=True)), strict=True)
    onward, backward = (of_direction.transpose(0, 1) for of_direction in states)
    hidden = torch.cat([onward, reversed_by_length(backward, lengths)], dim=-1)  # twice the states
    first, second = (hidden / hidden.norm(dim=-1, keepdim=True) * batch.mask[:, :, None]).chunk(2, dim=-1)
    cotangents = first.transpose(0, 1), reversed_by_length(second, lengths).transpose(0, 1)
    (squares, turned), own = zip(*map(_sweep, directions, cotangents, gates, cells), strict=True)
    squares += reversed_by_length(reversed_by_length(turned, lengths).mT, lengths).mT
    both = own[0] + reversed_by_length(own[1], lengths)  # a token reaches its own state in both directions
    squares.diagonal(dim1=1, dim2=2).copy_(both.square().sum(dim=-1))
    return squares.sqrt_().mul_(batch.mask[:, :, None]).mul_(batch.mask[:, None])


def _sweep(direction: Recurrence, cotangent: Tensor, gates: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """The squared norms of every state's gradient for the earlier words, and its gradient for its own.

    A trained LSTM forgets: some tens of words before a state its gradient has faded to nothing, to rounding, and is
    carried no further. States fade in about their own order: those from `last` on have.

    Args:
        cotangent: (word, text, hidden) of each state.
        gates, cells: as `Recurrence.run` leaves them: tanh of the gates, so their slope is 1 - tanh^2.
    Returns:
        (text, state, word), 0 where the word comes later and on the diagonal; (text, word, embedding).
    """
    words, texts, size = cotangent.shape
    weight, squashed, tanhs = direction.input_weight, elementwise.tanh(cells), gates.view(*cells.shape[:2], 4, -1)
    enter, keep, candidate, leave = tanhs.unbind(dim=2)
    before = torch.cat([torch.zeros_like(cells[:1]), cells[:-1]])
    # what a step multiplies by, from the gradient of the cell to the first three gates and of twice the state to the
    # last (word, text, 4, hidden); from that of twice the state to the cell; and from a cell to the one before
    to_gates = torch.stack([candidate, before, 1 + enter, squashed], dim=2) * (1 - tanhs.square())
    to_cell, kept = (1 + leave) * (1 - squashed.square()) / 2, (1 + keep) / 2
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
            faded = (now <= ROUNDINGS * torch.finfo(now.dtype).eps * first[:, word:last]).all(dim=2).all(dim=0)
            last -= int(faded.flip(0).to(torch.uint8).cumprod(dim=0).sum())
    return squares, own


def inputs_to_states(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
    """A quantity: how the importance g_{h_p}(x) of the inputs to a state is spread: means over the states p of a text.

    {"entropy" (batch,): normalised, NaN for texts of one token (their table 1); "own_share" (batch,): g_{h_p}(x_p), 1
    where states depend on their own token alone, 1/n where on all equally (not in the paper)}: each in [0, 1]. A state
    that no token moves has no distribution and does not count.
    """
    means = torch.full((2, len(batch)), torch.nan, dtype=torch.float64, device=batch.mask.device)
    for rows, gradients in _in_micro_batches(model, batch):
        mask = batch.rows(rows).mask
        gradients = gradients.double()
        shares = gradients / gradients.sum(dim=-1, keepdim=True)  # NaN where no token moves the state
        entropy = normalized_entropy(shares.flatten(0, 1), mask.repeat_interleave(mask.shape[1], dim=0))
        found = torch.stack([entropy.view_as(mask), shares.diagonal(dim1=1, dim2=2)])
        means[:, rows] = found.masked_fill(~mask, torch.nan).nanmean(dim=-1)
    return {"entropy": means[0], "own_share": means[1]}


PARTS = {"entropy": "fraction", "own_share": "fraction"}
of_inputs_to_states = Quantity("inputs_to_states", inputs_to_states, PARTS, max_tokens=500)
