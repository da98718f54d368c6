"""What the attention of a Hugging Face model shows in one forward pass, layer by layer, and what is put in its place.

An object of a class below goes down to every layer as the option `look`, and is asked there by our attention function
(lib.models.seen).
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from lib.projections import softmax


class EveryLayer:
    """Keeps the weights of all layers, each (batch, head, word, word)."""

    def __init__(self):
        self.weights = []

    def attend(self, scores: Tensor, weights: Tensor, values: Tensor) -> Tensor:
        """What the heads of the next layer say, (batch, head, word, size)."""
        self.weights.append(weights)
        return weights @ values

    def enter(self, states: Tensor) -> Tensor:
        """What the last layer reads, (batch, word, hidden)."""
        return states


class Row(EveryLayer):
    """Keeps one head's row of the first word; puts another attention, or what it would say, in its place.

    Afterwards it has scores (batch, word) and values (batch, word, size) of that head, what all heads of its layer say
    at the first word, heads (batch, head, size), and that word's state (batch, hidden) before the last layer.

    Args:
        row: (layer, head). mask: (batch, word) the text's own words.
        attention: (batch, word) over the mask. said: (batch, size).
        imposed: (layer, head) -> weights (batch, word, word) put in place of those of any head.
    """

    def __init__(
        self,
        row: tuple[int, int],
        mask: Tensor,
        attention: Tensor | None = None,
        said: Tensor | None = None,
        imposed: Mapping[tuple[int, int], Tensor] | None = None,
    ):
        self.row, self.mask, self.attention, self.said, self.imposed = row, mask, attention, said, imposed or {}
        self.layer, self.scores, self.values, self.heads, self.state = 0, None, None, None, None

    def attend(self, scores: Tensor, weights: Tensor, values: Tensor) -> Tensor:
        here = {head: given for (layer, head), given in self.imposed.items() if layer == self.layer}
        attended = with_heads(weights, here) @ values
        if self.layer == self.row[0]:
            head, said = self.row[1], self.said
            self.scores, self.values = scores[:, head, 0], values[:, head]
            if self.attention is not None:
                said = spoken(self.scores, self.values, self.mask, self.attention)
            if said is not None:
                attended = with_heads(attended, {head: torch.cat([said[:, None], attended[:, head, 1:]], dim=1)})
            self.heads = attended[:, :, 0]
        self.layer += 1
        return attended

    def enter(self, states: Tensor) -> Tensor:
        self.state = states[:, 0]
        return states


class Tail(EveryLayer):
    """The last layer for the first word alone: its state (row, hidden), and what its heads say (row, head, size)."""

    def __init__(self, state: Tensor, heads: Tensor):
        self.state, self.heads = state, heads

    def attend(self, scores: Tensor, weights: Tensor, values: Tensor) -> Tensor:
        return self.heads[:, :, None]

    def enter(self, states: Tensor) -> Tensor:
        return self.state[:, None]


def with_heads(parts: Tensor, others: Mapping[int, Tensor]) -> Tensor:
    """(batch, head, ...) with some heads' parts exchanged."""
    if not others:
        return parts
    return torch.stack([others.get(head, own) for head, own in enumerate(parts.unbind(1))], dim=1)


def spoken(scores: Tensor, values: Tensor, mask: Tensor, attention: Tensor) -> Tensor:
    """What a head says at the first word, when it attends to the text as told.

    What start and end hold of the weight stays theirs; the rest is spread as the attention says.

    Args:
        scores: (batch, word) of its own row. values: (batch, word, size). mask: (batch, word) the text's own words.
        attention: (batch, word) or (batch, draw, word).
    Returns:
        (batch, size) or (batch, draw, size).
    """
    special = softmax(scores, of_text(mask)).masked_fill(mask, 0)
    rest = 1 - special.sum(dim=-1, keepdim=True)
    if attention.dim() == 2:
        return ((special + rest * attention)[:, None] @ values).squeeze(1)
    return (special[:, None] + rest[:, None] * attention) @ values


def of_text(mask: Tensor) -> Tensor:
    """(batch, word) True from start to end, from the mask of the words between them."""
    return torch.arange(mask.shape[1], device=mask.device) < mask.sum(dim=1, keepdim=True) + 2
