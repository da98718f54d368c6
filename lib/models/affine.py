"""An affine read-out as sums over tokens: what exact algorithms at the attention layer start from."""

from collections.abc import Callable

import torch
from torch import Tensor

from lib.models.output import AttentionModel, ModelOutput
from lib.models.reading import two_classes

Ranking = Callable[[AttentionModel, ModelOutput], Tensor]  # a score for each token, (batch, token), the largest first


def class_terms(model: AttentionModel, output: ModelOutput) -> tuple[Tensor, Tensor, Tensor]:
    """What each token says for each class: logits = attention @ terms + bias, in doubles, two classes at least.

    One sigmoid output becomes two classes, the first of which is always 0: argmax and softmax stay what they were.

    Returns:
        attention (batch, token) and terms (batch, token, class), both 0 off the mask, and bias (class,).
    Raises:
        ValueError: the model's read-out is not affine.
    """
    found = terms_if_affine(model, output)
    if found is None:
        raise ValueError("this needs an affine read-out (model.token_logits), and this model has none")
    return found


def terms_if_affine(model: AttentionModel, output: ModelOutput) -> tuple[Tensor, Tensor, Tensor] | None:
    """The same, or None where the read-out is not affine."""
    affine = model.token_logits(output)
    if affine is None:
        return None
    terms, bias = (two_classes(part.double()) for part in affine)
    return own_attention(output), terms.masked_fill(~output.mask[:, :, None], 0), bias


def own_attention(output: ModelOutput) -> Tensor:
    """(batch, token) in doubles, exactly 0 off the mask."""
    return output.attention.double().masked_fill(~output.mask, 0)


def of_the_others(values: Tensor) -> Tensor:
    """The sum over all tokens but each, (batch, token, ...): of sums, and never a difference of nearly equal ones."""
    none = torch.zeros_like(values[:, :1])
    before = torch.cat([none, values[:, :-1].cumsum(dim=1)], dim=1)
    after = torch.cat([values[:, 1:].flip(1).cumsum(dim=1).flip(1), none], dim=1)
    return before + after
