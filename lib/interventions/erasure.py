"""Items erased from the attention, from the top of a ranking down: until the decision flips.

Serrano & Smith (2019), section 2.1: the weights of the erased items are set to 0 and the others divided by their sum;
the encoder's states stay as they are. With nothing left all weights are 0: the bias, if affine.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.models import AttentionModel, ModelOutput
from lib.models.interface import Ranking, class_terms, is_affine, own_attention, read_each
from lib.quantity import Quantity
from lib.random_streams import bits, streams

ORDERS = 5  # random ones, as in Serrano & Smith's code
UNITS = {"count": "items", "fraction": "fraction", "mass": "fraction"}  # of the parts of an `Erasure`
ROUNDING = 1e-12  # of a sum in doubles, beside the sum of its terms' magnitudes


@dataclass(frozen=True)
class Erasure:
    """What it took to flip the decision of each text, (batch,) each but `erased`."""

    count: Tensor  # items erased when the decision was first another one; NaN where it never was
    fraction: Tensor  # of the text's items
    mass: Tensor  # the original attention of those items
    flipped: Tensor  # whether it was ever another one
    erased: Tensor  # (batch, token) True on those items, in the text's order; nowhere where it never was


@torch.no_grad()
def logits_along(model: AttentionModel, output: ModelOutput, order: Tensor) -> Tensor:
    """Logits after the first 0, 1, ... items of an order are erased and the rest renormalised.

    A read-out for each step; where it is affine, sums of what remains along the order, in time that grows with the
    length of a text and not with its square.

    Args:
        order: (batch, token) positions in the text, the first to be erased first; those off the mask last.
    Returns:
        (batch, token + 1, class), in doubles, two classes at least.
    """
    if is_affine(model, output):
        weights, terms, bias = class_terms(model, output)
        weights, terms = weights.gather(1, order)[:, :, None], terms.gather(1, order[:, :, None].expand_as(terms))
        return share_of(from_the_end(weights * terms), from_the_end(weights)) + bias
    own, place = own_attention(output), order.argsort(dim=1)

    def remaining(rows: Tensor, erased: Tensor) -> Tensor:
        return renormalised(own[rows][:, None] * (place[rows][:, None] >= erased[:, None]))

    return read_each(model, output, order.shape[1] + 1, remaining)


def renormalised(weights: Tensor) -> Tensor:
    """Weights (..., token) divided by their sum; all 0 where nothing is left."""
    return share_of(weights, weights.sum(dim=-1, keepdim=True))


def share_of(parts: Tensor, total: Tensor) -> Tensor:
    """Parts divided by their total, as they broadcast; as they are, all 0, where that is 0."""
    return parts / torch.where(total > 0, total, 1)


def from_the_end(values: Tensor) -> Tensor:
    """What remains after 0, 1, ... items: (batch, token, ...) -> sums (batch, token + 1, ...), the last of them 0."""
    sums = values.flip(1).cumsum(dim=1).flip(1)
    return torch.cat([sums, torch.zeros_like(sums[:, :1])], dim=1)


def erase_until_flip(model: AttentionModel, output: ModelOutput, ranking: Tensor) -> Erasure:
    """Erases from the top of a ranking until the decision is another one (Serrano & Smith 2019, section 5.1).

    Where no weight remains the decision is that of the read-out with all weights 0.

    Args:
        ranking: (batch, token), the largest first; of equals the first in the text.
    Raises:
        ValueError: the ranking is not a number for some token.
    """
    order = descending(ranking, output.mask)
    decisions = logits_along(model, output, order).argmax(dim=-1)
    return _erasure(output, decisions != decisions[:, :1], order)


def descending(ranking: Tensor, mask: Tensor) -> Tensor:
    """(batch, token) positions from the top of a ranking down, those off the mask last; of equals the first."""
    if ranking[mask].isnan().any():
        row = int((ranking.isnan() & mask).any(dim=1).nonzero()[0, 0])
        raise ValueError(f"the ranking of row {row} is not a number for some token; every token needs its place")
    lowest_last = ranking.double().masked_fill(~mask, -torch.inf)
    order = lowest_last.argsort(dim=1, descending=True, stable=True)
    return order.gather(1, (~mask).gather(1, order).to(torch.uint8).argsort(dim=1, stable=True))


def _erasure(output: ModelOutput, other: Tensor, order: Tensor) -> Erasure:
    """From which decisions are other ones after the first 0, 1, ... items (batch, token + 1) of an order."""
    flipped, count = other.any(dim=1), other.to(torch.uint8).argmax(dim=1)
    erased = order.argsort(dim=1) < count[:, None]
    mass = (own_attention(output) * erased).sum(dim=1)
    found = (count.double(), count.double() / output.mask.sum(dim=1), mass)
    return Erasure(*(value.masked_fill(~flipped, torch.nan) for value in found), flipped, erased)


@torch.no_grad()
def fewest_to_flip(model: AttentionModel, output: ModelOutput) -> Erasure:
    """The fewest items whose erasure makes the decision another one, and which: the floor under every ranking.

    Exact for texts of any length. Class c wins over the decision k when the sum over what remains of
    a_j ((L_jc + b_c) - (L_jk + b_k)) is above 0; erasing the m smallest of these leaves the most of all sets of m
    items. So for each c one sort finds the fewest. Where all that has weight is erased, the bias decides: one more
    order, by falling weight. Of equal logits the first class is decided for; sums within rounding of 0 are ties.

    ValueError: the read-out is not affine.
    """
    weights, terms, bias = class_terms(model, output)
    logits = terms + bias
    sums = (weights[:, :, None] * logits).sum(dim=1)  # (batch, class)
    rounding = ROUNDING * (weights[:, :, None] * logits.abs()).sum(dim=1).amax(dim=-1, keepdim=True)
    own = (sums >= sums.amax(dim=-1, keepdim=True) - rounding).to(torch.uint8).argmax(dim=-1)  # (batch,)
    gains = weights[:, :, None] * (logits - logits.gather(2, own[:, None, None].expand(-1, logits.shape[1], 1)))
    gains = torch.cat([gains, -weights[:, :, None]], dim=2)  # in the last place: the order that leaves nothing
    gains = gains.masked_fill(~output.mask[:, :, None], torch.inf)  # what is not there is erased last
    order = gains.argsort(dim=1, stable=True)  # (batch, token, class + 1)
    remaining = from_the_end(gains.gather(1, order).nan_to_num(posinf=0))[:, :, :-1]
    empty = from_the_end(weights[:, :, None].expand_as(order).gather(1, order)) <= 0
    ahead = (torch.arange(len(bias), device=bias.device) < own[:, None])[:, None]
    other = (remaining > torch.where(ahead, -1, 1) * rounding[:, None]) & ~empty[:, :, :-1]
    other.scatter_(2, own[:, None, None].expand(-1, other.shape[1], 1), False)
    wins = torch.cat([other, empty[:, :, -1:] & (bias.argmax() != own)[:, None, None]], dim=2)
    wins[:, 0] = False  # nothing is erased
    counts = wins.to(torch.uint8).argmax(dim=1).masked_fill(~wins.any(dim=1), wins.shape[1])  # (batch, class + 1)
    every, pick = torch.arange(len(counts), device=counts.device), counts.argmin(dim=1)
    return _erasure(output, wins[every, :, pick], order[every, :, pick])


def until_flip(rankings: Mapping[str, Ranking], orders: int = ORDERS, seed: int = 0) -> Quantity:
    """A quantity: what it takes to flip the decision along each ranking (Serrano & Smith 2019, section 5.1).

    For each name <name>_count, <name>_fraction and <name>_mass of `Erasure`, (batch,) each; NaN where the decision
    never flips, and for texts of one item. Besides the rankings' names random_1, random_2, ..., as many as `orders`,
    and fewest: the floor under all rankings, which is known where the read-out is affine, else NaN. `items` counts the
    items of the text. `seed` is of the random orders; each text has its own, whatever its batch.
    """

    @torch.no_grad()
    def removed(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
        items = output.mask.sum(dim=1)
        drawn = random_rankings(batch, output, orders, seed)
        given = {of: ranking(model, output) for of, ranking in rankings.items()}
        given |= {f"random_{number}": ranking for number, ranking in enumerate(drawn, start=1)}
        erasures = {of: erase_until_flip(model, output, ranking) for of, ranking in given.items()}
        erasures["fewest"] = fewest_to_flip(model, output) if is_affine(model, output) else None
        found = {"items": items.double()}
        for of, erasure in erasures.items():
            for part in UNITS:
                value = torch.full_like(found["items"], torch.nan) if erasure is None else getattr(erasure, part)
                found[f"{of}_{part}"] = value.masked_fill(items < 2, torch.nan)
        return found

    along = [*rankings, *(f"random_{order + 1}" for order in range(orders)), "fewest"]
    units = {f"{of}_{part}": unit for of in along for part, unit in UNITS.items()}
    return Quantity("removed", removed, {"items": "items"} | units)


def random_rankings(batch: Batch, output: ModelOutput, orders: int, seed: int) -> Tensor:
    """Independent random scores for each order, (order, batch, token)."""
    stream = streams(seed, len(batch), batch.instance)[:, None]
    order, place = (np.arange(size, dtype=np.uint64) for size in (orders, output.mask.shape[1]))
    keys = bits(stream, ((order + np.uint64(1)) << np.uint64(32))[:, None, None] + place) >> np.uint64(11)
    return torch.from_numpy(keys.astype(np.float64)).to(output.mask.device)  # exact in a double
