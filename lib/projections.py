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


def masked(scores: Tensor, mask: Tensor) -> Tensor:
    """The scores, -inf off the mask; a ValueError names the first row in which nothing may be attended."""
    empty = ~mask.any(dim=-1)
    if empty.any():
        row = int(empty.nonzero()[0, 0])
        raise ValueError(f"row {row} of the mask is empty: a text needs at least one token to attend to")
    return scores.masked_fill(~mask, -torch.inf)


def softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the tokens in the mask, True somewhere in each row.

    Of scores and mask (batch, token): (batch, token), rows sum to 1 over the mask, exactly 0 elsewhere.
    """
    return torch.softmax(masked(scores, mask), dim=-1)


def uniform(scores: Tensor, mask: Tensor) -> Tensor:
    """Equal attention to every token in the mask, whatever the scores (Wiegreffe & Pinter 2019, section 3.2)."""
    real = masked(torch.ones_like(scores), mask).clamp_min(0)  # 1 in the mask, else 0
    return real / real.sum(dim=-1, keepdim=True)


def sparsemax(scores: Tensor, mask: Tensor) -> Tensor:
    """The nearest point of the simplex (Martins & Astudillo 2016), (batch, token): exactly 0 where scores are low."""
    return package.sparsemax(masked(scores, mask), dim=-1)


def project_the_rest(projection: Projection, scores: Tensor, mask: Tensor) -> Tensor:
    """The projection of what is left of a text, (batch, token): all 0 in a row of which nothing is left."""
    attention = torch.zeros_like(scores)
    some = mask.any(dim=-1)
    attention[some] = projection(scores[some], mask[some])
    return attention


def sparsegen(strength: float) -> Projection:
    """sparsemax of scores / (1 - lambda) (Laha et al. 2018; Meister et al. 2021, Eq. 3).

    lambda 0 is sparsemax, towards 1 all attention is on one token, towards -inf it is equal.
    """
    if not -math.inf < strength < 1:
        raise ValueError(f"sparsegen's lambda is {strength}; allowed: below 1")
    return lambda scores, mask: sparsemax(scores / (1 - strength), mask)


class Entmax(nn.Module):
    """alpha-entmax (Peters et al. 2019): alpha 1 is softmax, 2 is sparsemax; between them sparse and smooth.

    A "learned" alpha is 1 + sigmoid(a), with a parameter a that starts at alpha 1.5 (Correia et al. 2019).
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
        if self.fixed in (1, 2):
            return (softmax if self.fixed == 1 else sparsemax)(scores, mask)
        if self.fixed == 1.5:
            return package.entmax15(masked(scores, mask), dim=-1)
        return package.entmax_bisect(masked(scores, mask), self.alpha, dim=-1, n_iter=BISECTIONS)


PROJECTIONS: dict[str, Projection] = {"softmax": softmax, "sparsemax": sparsemax, "uniform": uniform}
WITH_NUMBER = {"sparsegen": sparsegen, "entmax": Entmax}


def projection(name: str) -> Projection:
    """The projection of that name, "softmax", "sparsegen:-3", "entmax:1.5" or "entmax:learned"; KeyError: unknown."""
    if name in PROJECTIONS:
        return PROJECTIONS[name]
    kind, colon, number = name.partition(":")
    if kind not in WITH_NUMBER or not colon:
        known = (*PROJECTIONS, *(f"{one}:NUMBER" for one in WITH_NUMBER), f"entmax:{LEARNED}")
        raise KeyError(f"unknown projection {name!r}; known: {', '.join(known)}")
    return WITH_NUMBER[kind](number if name == f"entmax:{LEARNED}" else float(number))


def sparsegen_name(strength: float) -> str:
    """The projection with that lambda; at 0 it is sparsemax."""
    return f"sparsegen:{str(strength).removesuffix('.0')}" if strength else "sparsemax"


def sparsegen_strength(name: str) -> float:
    """The lambda of a projection's name; NaN where it is none of sparsegen's."""
    if name == "sparsemax":
        return 0.0
    return float(name.removeprefix("sparsegen:")) if name.startswith("sparsegen:") else math.nan
