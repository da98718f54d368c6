"""A Transformer encoder whose inner attention can be seen, and projected as the top one is."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from lib.projections import projection as projection_named
from lib.projections import softmax

Imposed = Mapping[tuple[int, int], Tensor]
MOST = 2000  # tokens: the longest text whose inner attention, of all pairs of words, is looked at


class Transformer(nn.Module):
    """Layers of self-attention over all words of a text, start and end included (Vaswani et al. 2017).

    Embeddings are brought to the hidden size by one affine layer, and sinusoidal positions are added; each layer is
    self-attention, then two affine layers with ReLU, each with a residual connection and layer normalisation after it.
    Exact on padded batches: no word attends to padding.

    Args:
        heads: of each layer; they share the hidden size among them.
        inner_projection: how the scores of self-attention become weights, a name of lib.projections.
    Raises:
        ValueError: hidden_size is not a multiple of heads, or odd.
    """

    def __init__(
        self,
        embedding_size: int,
        hidden_size: int = 128,
        layers: int = 2,
        heads: int = 1,
        inner_projection: str = "softmax",
        dropout: float = 0.1,
    ):
        super().__init__()
        if hidden_size % heads or hidden_size % 2:
            raise ValueError(f"hidden_size is {hidden_size}; a Transformer needs an even multiple of its {heads} heads")
        self.hidden_size = hidden_size
        self.enter = nn.Linear(embedding_size, hidden_size)
        self.layers = nn.ModuleList(Layer(hidden_size, heads, inner_projection, dropout) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def forward(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        hidden, inside = self._entered(embedded, lengths)
        for layer in self.layers:
            hidden = layer(hidden, inside)
        return hidden

    def _entered(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, word, hidden) with positions, and (batch, word), True on the text's words."""
        inside = torch.arange(embedded.shape[1], device=embedded.device) < lengths[:, None]
        return self.dropout(self.enter(embedded) + positions(embedded.shape[1], self.hidden_size).to(embedded)), inside

    def seen(self, embedded: Tensor, lengths: Tensor, imposed: Imposed | None = None) -> tuple[Tensor, Tensor]:
        """(batch, word, hidden), and the inner attention (batch, layer, head, word, word): rows sum to 1.

        Rows of padding attend like the others, and nothing reads them.

        Args:
            imposed: (layer, head) -> weights (batch, word, word) put in place of that head's own.
        """
        hidden, inside = self._entered(embedded, lengths)
        attention = []
        for number, layer in enumerate(self.layers):
            here = {head: weights for (where, head), weights in (imposed or {}).items() if where == number}
            hidden, weights = layer.seen(hidden, inside, here)
            attention.append(weights)
        return hidden, torch.stack(attention, dim=1)


class Layer(nn.Module):
    """Self-attention and two affine layers, each added to its input and normalised."""

    def __init__(self, size: int, heads: int, inner_projection: str, dropout: float):
        super().__init__()
        self.heads = heads
        self.ask, self.answer, self.say, self.join = (nn.Linear(size, size) for _ in range(4))
        self.inner = nn.Sequential(nn.Linear(size, 4 * size), nn.ReLU(), nn.Dropout(dropout), nn.Linear(4 * size, size))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(2))
        self.dropout = nn.Dropout(dropout)
        self.projection = projection_named(inner_projection)

    def forward(self, hidden: Tensor, inside: Tensor) -> Tensor:
        """(batch, word, size). Under softmax torch's own kernel, which need not hold the weights of all pairs."""
        if self.projection is not softmax:
            return self.seen(hidden, inside, {})[0]
        query, key, value = (self._split(part(hidden)) for part in (self.ask, self.answer, self.say))
        drop = self.dropout.p if self.training else 0.0
        attended = scaled_dot_product_attention(query, key, value, inside[:, None, None, :], drop)
        return self._passed_on(hidden, attended)

    def seen(self, hidden: Tensor, inside: Tensor, imposed: dict[int, Tensor]) -> tuple[Tensor, Tensor]:
        """The same, and the weights (batch, head, word, word), 0 to words that are not `inside`.

        Args:
            imposed: head -> weights (batch, word, word) put in place of its own.
        """
        query, key, value = (self._split(part(hidden)) for part in (self.ask, self.answer, self.say))
        scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
        allowed = inside[:, None, None, :].expand_as(scores)
        words = scores.shape[-1]
        weights = self.projection(scores.reshape(-1, words), allowed.reshape(-1, words)).view_as(scores)
        if imposed:
            weights = torch.stack([imposed.get(head, own) for head, own in enumerate(weights.unbind(1))], dim=1)
        return self._passed_on(hidden, self.dropout(weights) @ value), weights

    def _passed_on(self, hidden: Tensor, attended: Tensor) -> Tensor:
        """What the heads saw (batch, head, word, size / heads) added to the states, and read on."""
        hidden = self.norms[0](hidden + self.dropout(self.join(attended.transpose(1, 2).flatten(2))))
        return self.norms[1](hidden + self.dropout(self.inner(hidden)))

    def _split(self, states: Tensor) -> Tensor:
        """(batch, word, size) -> (batch, head, word, size / heads)."""
        return states.unflatten(2, (self.heads, -1)).transpose(1, 2)


def positions(words: int, size: int) -> Tensor:
    """(word, size): sines and cosines of geometrically growing wave lengths."""
    place = torch.arange(words, dtype=torch.float64)[:, None]
    angle = place * torch.exp(torch.arange(0, size, 2, dtype=torch.float64) * (-math.log(10_000.0) / size))
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


WAYS = ("averaged", "rollout")
Way = str | tuple[int, int]


def refuse_unknown(way: Way) -> None:
    """Raises ValueError where a way of reading inner attention is none of WAYS, nor one head, (layer, head)."""
    if isinstance(way, str) and way not in WAYS:
        raise ValueError(f"unknown way {way!r} of reading inner attention; known: {', '.join(WAYS)}, or (layer, head)")


def between_words(inner: Tensor, way: Way) -> Tensor:
    """Inner attention (batch, layer, head, word, word) as one weight for each pair: (batch, word, word).

    Args:
        way: (layer, head), one head; "averaged" over all heads and layers; or "rollout".
    """
    refuse_unknown(way)
    if way == "averaged":
        return inner.mean(dim=(1, 2))
    return rollout(inner) if way == "rollout" else inner[:, way[0], way[1]]


def rollout(inner: Tensor) -> Tensor:
    """Attention followed through the layers: (batch, layer, head, word, word) -> (batch, word, word), rows sum to 1.

    Abnar & Zuidema (2020), Eq. 1: the product over layers of (mean over heads + identity) / 2, the last layer first.
    """
    mixed = (inner.mean(dim=2) + torch.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)) / 2
    result = mixed[:, 0]
    for layer in mixed.unbind(1)[1:]:
        result = layer @ result
    return result
