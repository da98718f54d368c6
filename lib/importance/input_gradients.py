"""Gradients of a BiLSTM classifier for its inputs alone: half the work of torch's backward, which also computes those
of the weights."""

from collections.abc import Callable

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.importance.recurrence import Recurrence
from lib.models import AttentionClassifier
from lib.models.encoders import reversed_by_length


def bilstm_gradients(
    model: AttentionClassifier, batch: Batch, through_attention: bool, targets: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """The gradient of each target for each embedded token, through a BiLSTM of one layer.

    Args:
        targets: logits (batch, class) -> (batch, target), differentiable.
    Returns:
        (target, batch, word, embedding) and the embeddings (batch, word, embedding).
    """
    directions, embedded, gates, cells, hidden = both_directions(model, batch)
    of_hidden = hidden_gradients(model, batch, hidden, through_attention, targets)
    with torch.no_grad():
        gradients = []
        for k, gradient in enumerate(of_hidden):
            kept = gates if k + 1 == len(of_hidden) else [g.clone() for g in gates]  # used up by the sweep
            first, second = gradient.chunk(2, dim=-1)
            swept = [
                d.backward(g.transpose(0, 1), tanhs, c).transpose(0, 1) @ d.input_weight
                for d, g, tanhs, c in zip(
                    directions, (first, reversed_by_length(second, batch.lengths)), kept, cells, strict=True
                )
            ]
            gradients.append(swept[0] + reversed_by_length(swept[1], batch.lengths))
        return torch.stack(gradients), embedded


@torch.no_grad()
def both_directions(model: AttentionClassifier, batch: Batch) -> tuple:
    """What a backward sweep through a BiLSTM of one layer starts from.

    Returns:
        of either direction the Recurrence; the embeddings (batch, word, embedding); of either direction the gates and
        the cells, as `Recurrence.remembered` leaves them; the hidden states (batch, word, hidden).
    """
    directions = Recurrence.of(model.encoder.onward[0]), Recurrence.of(model.encoder.backward_[0])
    words, ids = batch.tokens.unique(return_inverse=True)
    turned = reversed_by_length(ids[:, :, None], batch.lengths)[:, :, 0]
    table = model.embedding(words)
    gates = [d.project(table)[order.T] for d, order in zip(directions, (ids, turned), strict=True)]
    states, cells = zip(*(d.remembered(g) for d, g in zip(directions, gates, strict=True)), strict=True)
    onward, backward = (s.transpose(0, 1) / 2 for s in states)
    hidden = torch.cat([onward, reversed_by_length(backward, batch.lengths)], dim=-1)
    return directions, table[ids], gates, cells, hidden


def hidden_gradients(model, batch: Batch, hidden: Tensor, through_attention: bool, targets) -> list[Tensor]:
    """The gradient of each target for the hidden states, (batch, word, hidden) each."""
    hidden.requires_grad_()
    attention = model.projection(model.attention(hidden), batch.mask)
    values = targets(model.decode(attention if through_attention else attention.detach(), hidden))
    return [
        torch.autograd.grad(value.sum(), hidden, retain_graph=k + 1 < values.shape[1])[0]
        for k, value in enumerate(values.T)
    ]
