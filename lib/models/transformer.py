"""A Transformer encoder whose inner attention is visible."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

MAX_TOKENS = 2000  # the longest text whose inner attention, quadratic in its length, is measured


class Transformer(nn.Module):
    """Layers of self-attention over all words of a text, start and end included (Vaswani et al. 2017).

    One affine layer maps embeddings to the hidden size, and sinusoidal positions are added. Each layer is
    self-attention, then two affine layers with ReLU, each with a residual connection and then layer normalisation.
    No word attends to padding.

    Args:
        heads: of each layer; they divide the hidden size.
    Raises:
        ValueError: hidden_size is odd, or not a multiple of heads.
    """

    def __init__(
        self, embedding_size: int, hidden_size: int = 128, layers: int = 2, heads: int = 1, dropout: float = 0.1
    ):
        super().__init__()
        if hidden_size % heads or hidden_size % 2:
            raise ValueError(f"hidden_size is {hidden_size}; a Transformer needs an even multiple of its {heads} heads")
        self.hidden_size = hidden_size
        self.input = nn.Linear(embedding_size, hidden_size)
        self.layers = nn.ModuleList(Layer(hidden_size, heads, dropout) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def forward(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        """(batch, word, hidden) of embedded words (batch, word, embedding) and lengths (batch,)."""
        hidden, inside = self._input(embedded, lengths)
        for layer in self.layers:
            hidden = layer(hidden, inside)
        return hidden

    def with_weights(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, word, hidden), and the inner attention (batch, layer, head, word, word), rows sum to 1.

        Rows of padding attend like the others, and nothing attends to padding.
        """
        hidden, inside = self._input(embedded, lengths)
        inner = []
        for layer in self.layers:
            hidden, weights = layer.with_weights(hidden, inside)
            inner.append(weights)
        return hidden, torch.stack(inner, dim=1)

    def _input(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, word, hidden) with positions, and (batch, word), True on the text's words."""
        inside = torch.arange(embedded.shape[1], device=embedded.device) < lengths[:, None]
        return self.dropout(self.input(embedded) + positions(embedded.shape[1], self.hidden_size).to(embedded)), inside


class Layer(nn.Module):
    """Self-attention, then two affine layers, each added to its input and normalised."""

    def __init__(self, size: int, heads: int, dropout: float):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(size, size) for _ in range(4))
        self.inner = nn.Sequential(nn.Linear(size, 4 * size), nn.ReLU(), nn.Dropout(dropout), nn.Linear(4 * size, size))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, inside: Tensor) -> Tensor:
        """(batch, word, size), by torch's own kernel, which need not hold the weights of all pairs."""
        query, key, value = (self._split(part(hidden)) for part in (self.query, self.key, self.value))
        dropout = self.dropout.p if self.training else 0.0
        return self._add(hidden, scaled_dot_product_attention(query, key, value, inside[:, None, None, :], dropout))

    def with_weights(self, hidden: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
        """The same, and the weights (batch, head, word, word), 0 for words that are not `inside` (batch, word)."""
        query, key, value = (self._split(part(hidden)) for part in (self.query, self.key, self.value))
        scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
        weights = scores.masked_fill(~inside[:, None, None, :], -torch.inf).softmax(dim=-1)
        return self._add(hidden, self.dropout(weights) @ value), weights

    def _add(self, hidden: Tensor, attended: Tensor) -> Tensor:
        """The layer's output, of its input and what the heads attended to, (batch, head, word, size / heads)."""
        hidden = self.norms[0](hidden + self.dropout(self.output(attended.transpose(1, 2).flatten(2))))
        return self.norms[1](hidden + self.dropout(self.inner(hidden)))

    def _split(self, states: Tensor) -> Tensor:
        """(batch, word, size) -> (batch, head, word, size / heads)."""
        return states.unflatten(2, (self.heads, -1)).transpose(1, 2)


def positions(words: int, size: int) -> Tensor:
    """(word, size): sines and cosines of geometrically growing wave lengths (Vaswani et al. 2017, section 3.5)."""
    place = torch.arange(words, dtype=torch.float64)[:, None]
    angle = place * torch.exp(torch.arange(0, size, 2, dtype=torch.float64) * (-math.log(10_000.0) / size))
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


AGGREGATIONS = ("averaged", "rollout")
Aggregation = str | tuple[int, int]  # one of AGGREGATIONS, or one head: (layer, head)


def refuse_unknown_aggregation(aggregation: Aggregation) -> None:
    """Raises ValueError where it is neither one of AGGREGATIONS nor one head."""
    if isinstance(aggregation, str) and aggregation not in AGGREGATIONS:
        known = ", ".join(AGGREGATIONS)
        raise ValueError(f"unknown aggregation {aggregation!r} of inner attention; known: {known}, or (layer, head)")


def aggregate(inner: Tensor, aggregation: Aggregation) -> Tensor:
    """One weight for each pair of words: (batch, layer, head, word, word) -> (batch, word, word).

    Args:
        aggregation: (layer, head), one head; "averaged" over all heads and layers; or "rollout".
    """
    refuse_unknown_aggregation(aggregation)
    if aggregation == "averaged":
        return inner.mean(dim=(1, 2))
    return rollout(inner) if aggregation == "rollout" else inner[:, aggregation[0], aggregation[1]]


def rollout(inner: Tensor) -> Tensor:
    """Attention rollout: (batch, layer, head, word, word) -> (batch, word, word), rows sum to 1.

    Abnar & Zuidema (2020), Eq. 1: the product over layers, the last first, of (mean over heads + identity) / 2.
    """
    mixed = (inner.mean(dim=2) + torch.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)) / 2
    result = mixed[:, 0]
    for layer in mixed.unbind(1)[1:]:
        result = layer @ result
    return result
