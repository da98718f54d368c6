"""From scores to attention: each projection is `(scores, mask) -> attention`.

All but the first two come from the entmax package; a name may carry a number: "sparsegen:-3", "entmax:1.5".
"""

import math
from collections.abc import Callable

import entmax as package
import torch
from torch import Tensor, nn

Projection = Callable[[Tensor, Tensor], Tensor]
BISECTIONS = 60  # halvings of the interval that holds the threshold: to the last bit of a double
LEARNED = "learned"


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


def sparsemax(scores: Tensor, mask: Tensor) -> Tensor:
    """The nearest point of the simplex (Martins & Astudillo 2016): exactly 0 for tokens of low score.

    Args and returns as `softmax`. Raises ValueError: a row of the mask is empty.
    """
    refuse_empty_rows(mask)
    return package.sparsemax(scores.masked_fill(~mask, -torch.inf), dim=-1)


def project_the_rest(projection: Projection, scores: Tensor, mask: Tensor) -> Tensor:
    """The projection of what is left of a text, (batch, token): all 0 in a row of which nothing is left."""
    attention = torch.zeros_like(scores)
    some = mask.any(dim=-1)
    attention[some] = projection(scores[some], mask[some])
    return attention


class Sparsegen(nn.Module):
    """sparsemax of scores / (1 - lambda) (Laha et al. 2018; Meister et al. 2021, Eq. 3).

    lambda 0 is sparsemax, towards 1 all attention is on one token, towards -inf it is equal.
    """

    def __init__(self, strength: float):
        super().__init__()
        if not -math.inf < strength < 1:
            raise ValueError(f"sparsegen's lambda is {strength}; allowed: below 1")
        self.strength = strength

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        return sparsemax(scores / (1 - self.strength), mask)


class Entmax(nn.Module):
    """alpha-entmax (Peters et al. 2019): alpha 1 is softmax, 2 is sparsemax; between them sparse and smooth.

    Args:
        alpha: a number from 1 up, or "learned": 1 + sigmoid(a), between softmax and sparsemax, with a parameter a that
            starts at alpha 1.5 (Correia et al. 2019).
    """

    def __init__(self, alpha: float | str):
        super().__init__()
        if alpha != LEARNED and not 1 <= alpha < math.inf:
            raise ValueError(f"entmax's alpha is {alpha}; allowed: from 1 up, or {LEARNED}")
        self.fixed = None if alpha == LEARNED else float(alpha)
        self.position = nn.Parameter(torch.zeros(())) if alpha == LEARNED else None

    @property
    def alpha(self) -> Tensor | float:
        """The fixed alpha, or the learned one, between 1 and 2."""
        return self.fixed if self.position is None else 1 + self.position.sigmoid()

    def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        known = {1.0: softmax, 2.0: sparsemax}.get(self.fixed)
        if known is not None:
            return known(scores, mask)
        refuse_empty_rows(mask)
        masked = scores.masked_fill(~mask, -torch.inf)
        if self.fixed == 1.5:
            return package.entmax15(masked, dim=-1)
        return package.entmax_bisect(masked, self.alpha, dim=-1, n_iter=BISECTIONS)


PROJECTIONS: dict[str, Projection] = {"softmax": softmax, "sparsemax": sparsemax, "uniform": uniform}
WITH_NUMBER = {"sparsegen": Sparsegen, "entmax": Entmax}


def projection(name: str) -> Projection:
    """The projection of that name, "softmax", "sparsegen:-3", "entmax:1.5" or "entmax:learned".

    Raises:
        KeyError: unknown, with the known ones. ValueError: its number is missing, or not allowed.
    """
    kind, colon, number = name.partition(":")
    if not colon and kind in PROJECTIONS:
        return PROJECTIONS[kind]
    if kind not in WITH_NUMBER or not colon:
        known = (*PROJECTIONS, *(f"{one}:NUMBER" for one in WITH_NUMBER), f"entmax:{LEARNED}")
        raise KeyError(f"unknown projection {name!r}; known: {', '.join(known)}")
    if kind == "entmax" and number == LEARNED:
        return Entmax(LEARNED)
    try:
        value = float(number)
    except ValueError:
        raise ValueError(f"{number!r} in the projection {name!r} is no number") from None
    return WITH_NUMBER[kind](value)


def sparsegen_name(strength: float) -> str:
    """The projection with that lambda; at 0 it is sparsemax."""
    return f"sparsegen:{str(strength).removesuffix('.0')}" if strength else "sparsemax"


def sparsegen_strength(name: str) -> float:
    """The lambda of a projection's name; NaN where it is none of sparsegen's."""
    if name == "sparsemax":
        return 0.0
    kind, _, number = name.partition(":")
    return float(number) if kind == "sparsegen" else math.nan
