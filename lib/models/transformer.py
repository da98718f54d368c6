"""A Transformer encoder."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention


class Transformer(nn.Module):
    """Self-attention over all words of a text, start and end too, with sinusoidal positions (Vaswani et al. 2017)."""

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

    def forward(self, embedded: Tensor, lengths: Tensor, inner: list[Tensor] | None = None) -> Tensor:
        """(batch, word, hidden). The weights of each layer, (batch, head, word, word), are added to a list `inner`."""
        inside = torch.arange(embedded.shape[1], device=embedded.device) < lengths[:, None]
        hidden = self.dropout(self.input(embedded) + positions(embedded.shape[1], self.hidden_size).to(embedded))
        for layer in self.layers:
            hidden = layer(hidden, inside, inner)
        return hidden


class Layer(nn.Module):
    """Self-attention, then two affine layers with ReLU, each added to its input and normalised."""

    def __init__(self, size: int, heads: int, dropout: float):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(size, size) for _ in range(4))
        self.inner = nn.Sequential(nn.Linear(size, 4 * size), nn.ReLU(), nn.Dropout(dropout), nn.Linear(4 * size, size))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, inside: Tensor, inner: list[Tensor] | None = None) -> Tensor:
        """(batch, word, size), by torch's own kernel, which need not hold the weights of all pairs; or with `inner`."""
        projected = (part(hidden).unflatten(2, (self.heads, -1)) for part in (self.query, self.key, self.value))
        query, key, value = (part.transpose(1, 2) for part in projected)
        if inner is None:
            dropout = self.dropout.p if self.training else 0.0
            attended = scaled_dot_product_attention(query, key, value, inside[:, None, None], dropout)
        else:
            scores = query @ key.mT / math.sqrt(query.shape[-1])
            inner.append(scores.masked_fill(~inside[:, None, None], -torch.inf).softmax(dim=-1))
            attended = self.dropout(inner[-1]) @ value
        hidden = self.norms[0](hidden + self.dropout(self.output(attended.transpose(1, 2).flatten(2))))
        return self.norms[1](hidden + self.dropout(self.inner(hidden)))


def positions(words: int, size: int) -> Tensor:
    """(word, size): sines and cosines of geometrically growing wave lengths (Vaswani et al. 2017, section 3.5)."""
    place = torch.arange(words, dtype=torch.float64)[:, None]
    angle = place * torch.exp(torch.arange(0, size, 2, dtype=torch.float64) * (-math.log(10_000.0) / size))
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
