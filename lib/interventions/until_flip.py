"""Items erased along several rankings until the decision flips, beside random orders and the fewest that would do."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.fast.counter_rng import bits, streams
from lib.interventions.erasure import Erasure, erase_until_flip, fewest_to_flip
from lib.models import AttentionModel, ModelOutput
from lib.models.interface import Ranking
from lib.quantity import Quantity

ORDERS = 5  # random ones, as in Serrano & Smith's code
UNITS = {"count": "items", "fraction": "fraction", "mass": "fraction"}  # of the parts of an `Erasure`


def until_flip(rankings: Mapping[str, Ranking], orders: int = ORDERS, seed: int = 0, name: str = "removed") -> Quantity:
    """A quantity: what it takes to flip the decision along each ranking (Serrano & Smith 2019, section 5.1).

    For each name <name>_count, <name>_fraction and <name>_mass of `Erasure`, (batch,) each; NaN where the decision
    never flips, and for texts of one item. Besides the rankings' names random_1, random_2, ..., as many as `orders`,
    and fewest: the floor under all rankings, which is known where the read-out is affine, else NaN. `items` counts the
    items of the text.

    Args:
        seed: of the random orders; each text has its own, whatever its batch.
    """

    @torch.no_grad()
    def removed(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
        items = output.mask.sum(dim=1)
        drawn = random_rankings(batch, output, orders, seed)
        given = {of: ranking(model, output) for of, ranking in rankings.items()}
        given |= {f"random_{number + 1}": ranking for number, ranking in enumerate(drawn)}
        erasures = {of: erase_until_flip(model, output, ranking) for of, ranking in given.items()}
        affine = model.token_logits(output) is not None
        erasures["fewest"] = fewest_to_flip(model, output) if affine else unknown(items)
        found = {part: value for of, erasure in erasures.items() for part, value in named(of, erasure).items()}
        return {"items": items.double()} | {
            part: value.masked_fill(items < 2, torch.nan) for part, value in found.items()
        }

    along = [*rankings, *(f"random_{order + 1}" for order in range(orders)), "fewest"]
    units = {f"{of}_{part}": unit for of in along for part, unit in UNITS.items()}
    return Quantity(name, removed, {"items": "items"} | units)


def unknown(items: Tensor) -> Erasure:
    """What nobody knows of texts of so many items (batch,): NaN."""
    nothing = torch.full_like(items, torch.nan, dtype=torch.float64)
    return Erasure(nothing, nothing, nothing, torch.zeros_like(items, dtype=torch.bool))


def named(of: str, erasure: Erasure) -> dict[str, Tensor]:
    return {f"{of}_{part}": getattr(erasure, part) for part in UNITS}


def random_rankings(batch: Batch, output: ModelOutput, orders: int, seed: int) -> list[Tensor]:
    """Independent random scores (batch, token) for each order."""
    stream = streams(seed, batch.instance.cpu().numpy())[:, None]
    places = np.arange(output.mask.shape[1], dtype=np.uint64)
    rankings = []
    for order in range(orders):
        keys = bits(stream, (np.uint64(order + 1) << np.uint64(32)) + places) >> np.uint64(11)  # exact in a double
        rankings.append(torch.from_numpy(keys.astype(np.float64)).to(output.mask.device))
    return rankings
