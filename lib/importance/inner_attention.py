"""What a Transformer's inner attention says of each token: explanations, none of which the model computes with.

Each follows the top attention down: the words that a hidden state attends to, weighed by that state's own weight.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.models import AttentionClassifier, ModelOutput
from lib.models.transformer import MOST

WAYS = ("averaged", "rollout")


def inner_attention(way: str | tuple[int, int]) -> Callable[..., Tensor]:
    """A quantity: the inner attention to each token, (batch, token), rows sum to 1 over the mask.

    What goes to start and end is not counted; a row that gives all of its weight to them is NaN.

    Args:
        way: (layer, head), one head; "averaged" over all heads and layers; or "rollout" (Abnar & Zuidema 2020): the
            product over layers of the heads' mean, each mixed half and half with the residual connection.
    Raises:
        ValueError: an unknown way.
    """
    if isinstance(way, str) and way not in WAYS:
        raise ValueError(f"unknown way {way!r} of reading inner attention; known: {', '.join(WAYS)}, or (layer, head)")

    @torch.no_grad()
    def quantity(model: AttentionClassifier, batch: Batch, output: ModelOutput) -> Tensor:
        inner = model.inner_attention(batch)
        if way == "averaged":
            between = inner.mean(dim=(1, 2))
        elif way == "rollout":
            between = rollout(inner)
        else:
            between = inner[:, way[0], way[1]]
        reached = (output.attention[:, None] @ between).squeeze(1).masked_fill(~batch.mask, 0)
        return reached / reached.sum(dim=1, keepdim=True)

    quantity.max_tokens = MOST
    return quantity


def rollout(inner: Tensor) -> Tensor:
    """Attention followed through the layers: (batch, layer, head, word, word) -> (batch, word, word), rows sum to 1.

    Abnar & Zuidema (2020), Eq. 1: the product over layers of (mean over heads + identity) / 2, the last layer first.
    """
    mixed = (inner.mean(dim=2) + torch.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)) / 2
    result = mixed[:, 0]
    for layer in mixed.unbind(1)[1:]:
        result = layer @ result
    return result
