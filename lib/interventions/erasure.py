"""Items erased from the attention: single ones, and from the top of a ranking until the decision flips.

Serrano & Smith (2019), section 2.1: the weights of the erased items are set to 0 and the others divided by their sum;
the encoder's states stay as they are. With nothing left the attended vector is zero, and the logits are the bias. All
sums are of what remains, in doubles: one minus what was erased would cancel where that is nearly all. Where the
read-out is not affine there are no such sums: it is asked anew for every set of items (erasure_by_reading).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from lib.interventions import erasure_by_reading as by_reading
from lib.models import AttentionModel, ModelOutput
from lib.models.readout import class_terms, own_attention, sum_of_others, terms_if_affine


@dataclass(frozen=True)
class Erasure:
    """What it took to flip the decision of each text, (batch,) each.

    count     items erased when the decision was first another one; NaN where it never was
    fraction  of the text's items
    mass      the original attention of those items
    flipped   whether it was ever another one
    """

    count: Tensor
    fraction: Tensor
    mass: Tensor
    flipped: Tensor


@torch.no_grad()
def erase_until_flip(model: AttentionModel, output: ModelOutput, ranking: Tensor) -> Erasure:
    """Erases from the top of a ranking until the decision is another one (Serrano & Smith 2019, section 5.1).

    With terms sorted along the ranking, the decision after k items is the argmax of the sums R_k + Q_k b of what
    remains: nothing is divided. Where no weight remains it is the argmax of the bias b.

    Args:
        ranking: (batch, token), the largest first; of equals the first in the text.
    Raises:
        ValueError: the ranking is not a number for some token.
    """
    order, affine = sorted_terms(model, output, ranking)
    weights = own_attention(output).gather(1, order)
    if affine is None:
        said = by_reading.logits_along(model, output, order)
    else:
        _, terms, bias = affine
        left = from_the_end(weights)
        said = from_the_end(terms) + left[:, :, None] * bias
        said = torch.where(left[:, :, None] > 0, said, bias)
    decisions = said.argmax(dim=-1)  # (batch, token + 1): after 0, 1, ... items
    return flips(decisions != decisions[:, :1], weights, output.mask.sum(dim=1))


@torch.no_grad()
def erasure_curve(model: AttentionModel, output: ModelOutput, ranking: Tensor) -> tuple[Tensor, Tensor]:
    """(order (batch, token), class distributions (batch, token + 1, class)) as items are erased from the top down.

    `order` holds positions in the text; after the last item the distribution is that of the bias.
    """
    order, affine = sorted_terms(model, output, ranking)
    if affine is None:
        return order, by_reading.logits_along(model, output, order).softmax(dim=-1)
    weights, terms, bias = affine
    return order, distributions(from_the_end(weights), from_the_end(terms), bias)


def sorted_terms(
    model: AttentionModel, output: ModelOutput, ranking: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor] | None]:
    """What each item, along a ranking from the top down, adds to mass and logits.

    Returns:
        order (batch, token), positions in the text; in that order the attention (batch, token), and what it weighs,
        attention * terms (batch, token, class), and bias (class,): None where the read-out is not affine.
    Raises:
        ValueError: the ranking is not a number for some token.
    """
    order, affine = descending(ranking, output.mask), terms_if_affine(model, output)
    if affine is None:
        return order, None
    attention, terms, bias = affine
    attention, terms = attention.gather(1, order), terms.gather(1, order[:, :, None].expand_as(terms))
    return order, (attention, attention[:, :, None] * terms, bias)


def distributions(mass: Tensor, said: Tensor, bias: Tensor) -> Tensor:
    """Class distributions of renormalised sums: mass (batch, step), said (batch, step, class)."""
    logits = torch.where(mass[:, :, None] > 0, said / torch.where(mass > 0, mass, 1)[:, :, None], 0) + bias
    return logits.softmax(dim=-1)


def flips(other: Tensor, weights: Tensor, items: Tensor) -> Erasure:
    """From which decisions are other ones, after 0, 1, ... items (batch, token + 1), and weights in their order."""
    flipped = other.any(dim=1)
    count = other.to(torch.uint8).argmax(dim=1)
    erased = torch.arange(weights.shape[1], device=weights.device) < count[:, None]
    mass = (weights * erased).sum(dim=1)
    found = (count.double(), count.double() / items, mass)
    return Erasure(*(value.masked_fill(~flipped, torch.nan) for value in found), flipped)


def descending(ranking: Tensor, mask: Tensor) -> Tensor:
    """(batch, token) positions from the top of a ranking down, those off the mask last; of equals the first."""
    if ranking[mask].isnan().any():
        row = int((ranking.isnan() & mask).any(dim=1).nonzero()[0, 0])
        raise ValueError(f"the ranking of row {row} is not a number for some token; every token needs its place")
    lowest_last = ranking.double().masked_fill(~mask, -torch.inf)
    order = lowest_last.argsort(dim=1, descending=True, stable=True)
    return order.gather(1, (~mask).gather(1, order).to(torch.uint8).argsort(dim=1, stable=True))


def from_the_end(values: Tensor) -> Tensor:
    """What remains after 0, 1, ... items: (batch, token, ...) -> sums (batch, token + 1, ...), the last of them 0."""
    sums = values.flip(1).cumsum(dim=1).flip(1)
    return torch.cat([sums, torch.zeros_like(sums[:, :1])], dim=1)


@torch.no_grad()
def logits_without_each_item(model: AttentionModel, output: ModelOutput) -> Tensor:
    """Logits with each item erased alone: (batch, token, class), two classes at least, NaN off the mask.

    Of the others the sums before and after the item; where they have no weight, the bias.
    """
    affine = terms_if_affine(model, output)
    if affine is None:
        return by_reading.logits_without_each(model, output)
    weights, terms, bias = affine
    mass, said = sum_of_others(weights)[:, :, None], sum_of_others(weights[:, :, None] * terms)
    logits = torch.where(mass > 0, said / torch.where(mass > 0, mass, 1), 0) + bias
    return logits.masked_fill(~output.mask[:, :, None], torch.nan)


@torch.no_grad()
def fewest_to_flip(model: AttentionModel, output: ModelOutput) -> Erasure:
    """The fewest items whose erasure makes the decision another one, and which: the floor under every ranking.

    Exact for texts of any length. Class c wins over the decision k when the sum over what remains of
    a_j ((L_jc + b_c) - (L_jk + b_k)) is above 0; of all ways to erase m items, the one that erases the m smallest of
    these leaves the most. So for each c one sort tells the fewest.

    Raises:
        ValueError: the read-out is not affine.
    """
    weights, terms, bias = class_terms(model, output)
    says = terms + bias
    own = (weights[:, :, None] * says).sum(dim=1).argmax(dim=-1)  # (batch,)
    gains = weights[:, :, None] * (says - says.gather(2, own[:, None, None].expand(-1, says.shape[1], 1)))
    gains = gains.masked_fill(~output.mask[:, :, None], torch.inf)  # what is not there is erased last
    order = gains.argsort(dim=1, stable=True)  # (batch, token, class)
    remaining = from_the_end(gains.gather(1, order).nan_to_num(posinf=0))
    sorted_weights = weights[:, :, None].expand_as(order).gather(1, order)
    empty = from_the_end(sorted_weights) <= 0
    ahead = torch.arange(len(bias), device=bias.device) < own[:, None]  # of equals the first class is decided for
    other = torch.where(ahead[:, None], remaining >= 0, remaining > 0) & ~empty
    wins = other | (empty & (bias.argmax() != own)[:, None, None])
    wins.scatter_(2, own[:, None, None].expand(-1, wins.shape[1], 1), False)
    counts = wins.to(torch.uint8).argmax(dim=1).masked_fill(~wins.any(dim=1), wins.shape[1])  # (batch, class)
    best = counts.argmin(dim=1)
    pick = best[:, None, None].expand(-1, wins.shape[1], 1)
    return flips(
        wins.gather(2, pick).squeeze(2), sorted_weights.gather(2, pick[:, 1:]).squeeze(2), output.mask.sum(dim=1)
    )
