"""One item erased: how much more does the top of a ranking matter than another item, drawn at random?

Serrano & Smith (2019), section 4. The expectation over all other items is exact, and free; drawn items are there for
comparison with the paper.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.interventions.erasure import descending, renormalised, share_of
from lib.metrics.distances import jensen_shannon
from lib.models import AttentionModel, ModelOutput
from lib.models.interface import Ranking, class_terms, is_affine, own_attention, read_each, sum_of_others, two_classes
from lib.quantity import CHANGE_BOUNDS, Quantity
from lib.random_streams import bits, streams

RANDOM_ITEMS = ("paper", "authors_code")
UNITS = {  # of the parts of each ranking
    **{"js": "nats", "flip": "fraction", "others_js": "nats", "others_flip": "fraction", "negative": "fraction"},
    **{f"{way}_delta_js": "nats" for way in RANDOM_ITEMS},
    **{f"{way}_{part}": "fraction" for way in RANDOM_ITEMS for part in ("delta_alpha", "flip")},
    "support": "fraction",
}


@torch.no_grad()
def logits_without_each_item(model: AttentionModel, output: ModelOutput) -> Tensor:
    """Logits with each item erased alone and the rest renormalised; with no rest, all weights 0.

    (batch, token, class) in doubles, two classes at least: a read-out for each item; where it is affine, sums of the
    others, in time that grows with the length of a text.
    """
    if is_affine(model, output):
        weights, terms, bias = class_terms(model, output)
        weights = weights[:, :, None]
        return share_of(sum_of_others(weights * terms), sum_of_others(weights)) + bias
    own, tokens = own_attention(output), output.mask.shape[1]
    place = torch.arange(tokens, device=own.device)

    def others(rows: Tensor, items: Tensor) -> Tensor:
        return renormalised(own[rows][:, None] * (place != items[:, None]))

    return read_each(model, output, tokens, others)


def single_erasure(rankings: Mapping[str, Ranking], seed: int = 0) -> Quantity:
    """A quantity: what erasing the top item of each ranking does, beside what erasing another one does.

    Of each ranking, (batch,) each, NaN for a text of one item:
    <name>_js, the JSD (nats) of the class distribution to that without the top item, and <name>_flip (0 or 1), whether
    the decision is another one; others_js and others_flip, the means over all other items, each equally likely;
    negative, the share of these with a larger JSD; support, the share with less `support` for the decision, equals
    half, NaN where the read-out is not affine; and with the item drawn as in the paper (`paper`: any but the top)
    and as in the authors' code (`authors_code`: any but the first of the text, also the top itself) <way>_delta_js,
    <way>_delta_alpha and <way>_flip. Besides these largest_js, the largest JSD of any single item of the text.
    `seed` is of the drawn items; each text has its own, whatever its batch.
    """

    @torch.no_grad()
    def erased(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
        items, logits = output.mask.sum(dim=1), two_classes(output.logits.double())
        without = logits_without_each_item(model, output)
        effects = {
            "js": jensen_shannon(logits.softmax(-1)[:, None], without.softmax(-1)),
            "flip": (without.argmax(-1) != logits.argmax(-1)[:, None]).double(),
            "alpha": output.attention.double(),
        }
        effects = {name: values.masked_fill(~output.mask, 0) for name, values in effects.items()}
        effects["support"] = support(model, output) if is_affine(model, output) else effects["js"] * torch.nan
        drawn = bits(streams(seed, len(batch), batch.instance), np.zeros(1)).astype(np.float64) / 2.0**64
        drawn, found = torch.from_numpy(drawn).to(items.device), {}
        for of, ranking in rankings.items():
            top = descending(ranking(model, output), output.mask)[:, 0]
            parts = against_others(effects, top, items)
            for way, place in zip(RANDOM_ITEMS, another_item(drawn, top, output.mask), strict=True):
                one, other = ({name: at(values, where) for name, values in effects.items()} for where in (top, place))
                parts |= {f"{way}_delta_{name}": one[name] - other[name] for name in ("js", "alpha")}
                parts[f"{way}_flip"] = other["flip"]
            found |= {f"{of}_{part}": value.masked_fill(items < 2, torch.nan) for part, value in parts.items()}
        return found | {"largest_js": effects["js"].amax(dim=1).masked_fill(items < 2, torch.nan)}

    units = {f"{of}_{part}": unit for of in rankings for part, unit in UNITS.items()} | {"largest_js": "nats"}
    bounds = {part: CHANGE_BOUNDS for part in units if "_delta_" in part}
    return Quantity("top", erased, units, bounds)


def at(values: Tensor, place: Tensor) -> Tensor:
    """(batch,) values (batch, token) at one place of each text."""
    return values.gather(1, place[:, None]).squeeze(1)


def against_others(effects: Mapping[str, Tensor], top: Tensor, items: Tensor) -> dict[str, Tensor]:
    """The effects (batch, token) of the top item, and their exact expectation over all others."""
    found = {name: at(effects[name], top) for name in ("js", "flip")}
    larger, others = (effects["js"] > found["js"][:, None]).sum(dim=1), (items - 1).clamp(min=1)
    found |= {f"others_{name}": (effects[name].sum(dim=1) - value) / others for name, value in found.items()}
    ahead = at(effects["support"], top)[:, None] - effects["support"]  # NaN off the mask
    below = (ahead > 0).sum(dim=1) + (ahead == 0).sum(dim=1).sub(1).double() / 2
    support = (below / others).masked_fill(ahead.isnan().all(dim=1), torch.nan)
    return found | {"negative": larger.double() / others, "support": support}


def support(model: AttentionModel, output: ModelOutput) -> Tensor:
    """What each item's state adds to the decision's logit, whatever its weight, less the mean of the other classes'.

    theta . h_i with theta the read-out's weights of the decision less those of the others: (batch, token), doubles.
    """
    terms, decision = class_terms(model, output)[1], two_classes(output.logits).argmax(dim=-1)
    own = terms.gather(2, decision[:, None, None].expand(-1, terms.shape[1], 1)).squeeze(2)
    others = (terms.sum(dim=2) - own) / (terms.shape[2] - 1)
    return (own - others).masked_fill(~output.mask, torch.nan)


def another_item(drawn: Tensor, top: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Where an item is that is drawn in either way, from drawn (batch,) in [0, 1).

    Returns:
        (batch,) as in the paper, any but the top; (batch,) as in the authors' code, any but the first.
    """
    items, first = mask.sum(dim=1), mask.to(torch.uint8).argmax(dim=1)
    number = (drawn * (items - 1)).long().clamp(max=items - 2).clamp(min=0)
    places = first + number + (number >= top - first), first + number + 1
    return tuple(place.clamp(max=mask.shape[1] - 1) for place in places)
