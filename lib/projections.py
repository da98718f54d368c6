"""From scores to attention: each projection is `(scores, mask) -> attention`."""

import torch
from torch import Tensor


def refuse_empty_rows(mask: Tensor) -> None:
    """Raises ValueError, naming the first row in which nothing may be attended."""
    empty = ~mask.any(dim=-1)
    if empty.any():
        raise ValueError(
            f"row {int(empty.nonzero()[0, 0])} of the mask is empty: a text needs at least one token to attend to"
        )


def softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the tokens in the mask.

    Args:
        scores: (batch, token). mask: (batch, token), True where attention may go.
    Returns:
        (batch, token): rows sum to 1 over the mask, exactly 0 elsewhere.
    Raises:
        ValueError: a row of the mask is empty.
    """
    refuse_empty_rows(mask)
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)


def uniform(scores: Tensor, mask: Tensor) -> Tensor:
    """Equal attention to every token in the mask, whatever the scores (Wiegreffe & Pinter 2019, section 3.2).

    Args and returns as `softmax`. Raises ValueError: a row of the mask is empty.
    """
    refuse_empty_rows(mask)
    real = mask.to(scores.dtype)
    return real / real.sum(dim=-1, keepdim=True)


PROJECTIONS = {"softmax": softmax, "uniform": uniform}


def projection(name: str):
    """The projection of that name; KeyError with the known names otherwise."""
    if name not in PROJECTIONS:
        raise KeyError(f"unknown projection {name!r}; known: {', '.join(PROJECTIONS)}")
    return PROJECTIONS[name]
