"""What inner attention says of each pair of words: explanations, with none of which a model computes."""

import torch
from torch import Tensor

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
