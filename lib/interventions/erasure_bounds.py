"""ERASER's scores between the worst and the best that any choice of items could give for the same model and text.

Raw comprehensiveness and sufficiency cannot be compared between models: how far a prediction can fall at all differs
(Edin et al. 2025, "Normalized AOPC"). There the bounds come from a search over orders. With an affine read-out they
follow for each number of items from a linear fractional programme, which needs a few sorts (Dinkelbach 1967).
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.interventions.erasure import erased_steps, rationale_scores
from lib.models import AttentionModel, ModelOutput
from lib.models.interface import Ranking, class_terms, is_affine
from lib.quantity import Quantity

STEPS = 60  # of Dinkelbach's iteration, which ends by itself after some five
ROUNDING = 1e-12  # of a sum in doubles, beside the sum of its terms' magnitudes
PARTS = ("comprehensiveness", "sufficiency")


def normalised_scores(rankings: Mapping[str, Ranking]) -> Quantity:
    """A quantity: <name>_comprehensiveness and <name>_sufficiency of each ranking, normalised.

    1: no choice of as many items does better for this model and text; 0: none does worse (Edin et al. 2025). Both
    (batch,). `unknown` is the fraction of the range between the bounds that is not proved: 0 with two classes, where
    they are exact; with more the scores are between bounds that some choice of items reaches, and may leave 0 to 1.
    NaN for a text of one item, where nothing makes a difference, and without an affine read-out.
    """

    @torch.no_grad()
    def scores(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
        names = [*(f"{of}_{part}" for of in rankings for part in PARTS), "unknown"]
        if not is_affine(model, output):
            return {name: torch.full((len(batch),), torch.nan, dtype=torch.float64) for name in names}
        reached, proved = score_bounds(model, output)
        undefined = (output.mask.sum(dim=1) < 2) | (reached[0] - reached[1] <= ROUNDING).any(dim=0)
        unknown = (1 - (reached[0] - reached[1]) / (proved[0] - proved[1])).mean(dim=0)
        found = {"unknown": unknown.where(unknown > ROUNDING, 0.0)}
        for of, ranking in rankings.items():
            raw = rationale_scores(model, output, ranking(model, output))
            for part, high, low in zip(PARTS, *reached, strict=True):
                share = (raw[part] - low) / (high - low)
                found[f"{of}_{part}"] = share if part == "comprehensiveness" else 1 - share
        return {name: found[name].masked_fill(undefined, torch.nan) for name in names}

    parts = [f"{of}_{part}" for of in rankings for part in PARTS]
    return Quantity("normalised", scores, dict.fromkeys([*parts, "unknown"], "fraction"))


def score_bounds(model: AttentionModel, output: ModelOutput) -> tuple[Tensor, Tensor]:
    """The largest and the smallest comprehensiveness and sufficiency of a text, over all choices of items.

    Returns:
        (reached, proved), each (2: largest, smallest; 2: comprehensiveness, sufficiency; batch): means over the sizes
        of `lib.interventions.erasure.SHARES`. Some choice of items has the one; none is beyond the other.
    """
    items, steps = erased_steps(output)
    weights, terms, bias = parts = class_terms(model, output)
    decided = (weights[:, None] @ terms + bias).softmax(dim=-1).amax(dim=-1)
    found = []
    for remaining in (items - steps, steps):
        least, largest = least_and_largest(*parts, output.mask, remaining)
        found.append(torch.stack([decided - least, decided - largest], dim=1).mean(dim=-1))
    reached, proved = torch.stack(found, dim=2)
    return reached, proved


def least_and_largest(
    weights: Tensor, terms: Tensor, bias: Tensor, mask: Tensor, remaining: Tensor
) -> tuple[Tensor, Tensor]:
    """The least and the largest probability of the decision, when so many items remain.

    Another class wins over the decision k by sum_S a_j (L_jc - L_jk) / sum_S a_j + b_c - b_k where the set S remains.
    For one other class its extremes are those of the probability. For several the extremes of each class together prove
    a bound; the sets that reach one of them give another, which is reached.

    Args:
        weights, terms, bias: of `class_terms`. mask: (batch, item). remaining: (batch, step) sizes of S.
    Returns:
        two of (2: reached, proved; batch, step).
    """
    own = (weights[:, None] @ terms + bias).argmax(dim=-1)  # (batch, 1)
    lead = terms - terms.gather(2, own[:, :, None].expand(-1, terms.shape[1], 1))
    ahead = (bias - bias[own])[:, None]  # (batch, 1, class)
    found = []
    for sign in (1, -1):
        ratios, sets = largest_ratios(weights, sign * lead, remaining, mask)
        masses = sets @ weights[:, None, :, None]  # (batch, step, class, 1)
        leads = (sets * weights[:, None, None]) @ lead[:, None] / masses.clamp_min(torch.finfo(masses.dtype).tiny)
        chances = [chance(leads + ahead[:, :, None]), chance(sign * ratios + ahead)[:, :, None]]
        nothing = (mask & (weights == 0)).sum(dim=1, keepdim=True) >= remaining  # what remains may weigh nothing
        of_bias = chance(ahead).expand_as(remaining)
        worst = torch.stack([(sign * one).amin(dim=-1) for one in chances])
        found.append(sign * worst.minimum((sign * of_bias).where(nothing, torch.inf)))
    return found[0], found[1]


def chance(leads: Tensor) -> Tensor:
    """The decision's probability where each class is ahead of it by so much: (..., class) -> (...)."""
    return 1 / leads.exp().sum(dim=-1)


def largest_ratios(weights: Tensor, values: Tensor, sizes: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """max over sets S of so many items of sum_S a_j v_j / sum_S a_j, and the sets (Dinkelbach 1967).

    From a set whose ratio is r, the items with the largest a_j (v_j - r) make one with a larger ratio, if there is one.

    Args:
        weights, mask: (batch, token). values: (batch, token, class). sizes: (batch, step).
    Returns:
        (batch, step, class), -inf where every such set weighs nothing; (batch, step, class, token), 1 in the set.
    """
    by_weight = weights.masked_fill(~mask, -torch.inf).argsort(dim=1, descending=True).argsort(dim=1)
    sets = by_weight[:, None, None] < sizes[:, :, None, None].expand(-1, -1, values.shape[2], -1)
    shape, sets = sets.shape, sets.flatten(0, 2).to(weights.dtype)
    ratios, moving = weights.new_empty(len(sets)), torch.arange(len(sets), device=weights.device)
    for _ in range(STEPS):
        (row, step, other_class), some = torch.unravel_index(moving, shape[:3]), sets[moving]
        a, v = weights[row], values[row, :, other_class]
        mass, total = (some * a).sum(dim=1), (some * a * v).sum(dim=1)
        ratios[moving] = torch.where(mass > 0, total / torch.where(mass > 0, mass, 1), -torch.inf)
        gains = a * (v - ratios[moving].nan_to_num(neginf=0)[:, None])
        order = gains.masked_fill(~mask[row], -torch.inf).argsort(dim=1, descending=True)
        front = torch.arange(shape[3], device=weights.device) < sizes[row, step][:, None]
        other = torch.zeros_like(gains).scatter_(1, order, front.to(gains.dtype))
        better = (other * gains).sum(dim=1) > ROUNDING * (other * gains.abs()).sum(dim=1)
        better &= mass > 0
        moving = moving[better]
        if not len(moving):
            break
        sets[moving] = other[better]
    return ratios.view(shape[:3]), sets.view(shape)
