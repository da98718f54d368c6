"""One item erased: how much more does the top of a ranking matter than another item, drawn at random?

Serrano & Smith (2019), section 4. The expectation over all other items is exact, and free; drawn items are there for
comparison with the paper.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.interventions.erasure import attended_mean, descending, renormalised
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
    "place": "items",
}


@torch.no_grad()
def logits_without_each_item(model: AttentionModel, output: ModelOutput) -> Tensor:
    """Logits with each item erased alone and the rest renormalised; with no rest, the bias.

    A read-out for each item; where it is affine, sums of the others, in time that grows with the length of a text.

    Returns:
        (batch, token, class) in doubles, two classes at least, NaN off the mask.
    """
    if is_affine(model, output):
        weights, terms, bias = class_terms(model, output)
        logits = attended_mean(sum_of_others(weights[:, :, None] * terms), sum_of_others(weights)) + bias
        return logits.masked_fill(~output.mask[:, :, None], torch.nan)
    own, tokens = own_attention(output), output.mask.shape[1]
    place = torch.arange(tokens, device=own.device)

    def others(rows: Tensor, items: Tensor) -> Tensor:
        return renormalised(own[rows][:, None] * (place != items[:, None]))

    return read_each(model, output, tokens, others).masked_fill(~output.mask[:, :, None], torch.nan)


def single_erasure(rankings: Mapping[str, Ranking], seed: int = 0) -> Quantity:
    """A quantity: what erasing the top item of each ranking does, beside what erasing another one does.

    Of each ranking, (batch,) each, NaN for a text of one item:
    <name>_js, the JSD (nats) of the class distribution to that without the top item, and <name>_flip (0 or 1), whether
    the decision is another one; others_js and others_flip, the means over all other items, each equally likely;
    negative, how many of these have a larger JSD; place, the position of the top item in the text, from 0; and
    with the item drawn as in the paper (`paper`: any but the top) and as in the authors' code (`authors_code`: any but
    the first of the text, also the top itself) <way>_delta_js, <way>_delta_alpha and <way>_flip.

    Args:
        seed: of the drawn items; each text has its own, whatever its batch.
    """

    @torch.no_grad()
    def erased(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
        effects = Effects.of(model, output)
        drawn = bits(streams(seed, len(batch), batch.instance), np.zeros(1)).astype(np.float64) / 2.0**64
        drawn = torch.from_numpy(drawn).to(output.attention.device)
        found = {}
        for of, ranking in rankings.items():
            top = descending(ranking(model, output), output.mask)[:, 0]
            parts = effects.against_others(top) | effects.against_drawn(top, drawn)
            parts["place"] = (top - effects.first).double()
            for part, value in parts.items():
                found[f"{of}_{part}"] = value.masked_fill(effects.items < 2, torch.nan)
        return found

    units = {f"{of}_{part}": unit for of in rankings for part, unit in UNITS.items()}
    bounds = {part: CHANGE_BOUNDS for part in units if "_delta_" in part}
    return Quantity("top", erased, units, bounds)


@dataclass
class Effects:
    """What erasing each item of a batch of texts does, (batch, token) each; 0 off the mask."""

    js: Tensor
    flip: Tensor
    attention: Tensor
    mask: Tensor

    @classmethod
    def of(cls, model: AttentionModel, output: ModelOutput) -> "Effects":
        """The effects of erasing each item of each text of a batch."""
        without = logits_without_each_item(model, output).nan_to_num()
        logits = two_classes(output.logits.double())
        js = jensen_shannon(logits.softmax(-1)[:, None], without.softmax(-1)).masked_fill(~output.mask, 0)
        flip = (without.argmax(-1) != logits.argmax(-1)[:, None]).double().masked_fill(~output.mask, 0)
        return cls(js, flip, output.attention.double(), output.mask)

    @property
    def items(self) -> Tensor:
        """(batch,) how many items a text has."""
        return self.mask.sum(dim=1)

    @property
    def first(self) -> Tensor:
        """(batch,) the position of a text's first item."""
        return self.mask.to(torch.uint8).argmax(dim=1)

    def at(self, values: Tensor, place: Tensor) -> Tensor:
        """(batch,) values at one place of each text."""
        return values.gather(1, place[:, None]).squeeze(1)

    def against_others(self, top: Tensor) -> dict[str, Tensor]:
        """The top item, and the exact expectation over all others."""
        js, flip, others = self.at(self.js, top), self.at(self.flip, top), (self.items - 1).clamp(min=1)
        larger = ((self.js > js[:, None]) & self.mask).sum(dim=1).double()
        found = {"js": js, "flip": flip, "negative": larger / others}
        of_others = {"others_js": self.js.sum(dim=1) - js, "others_flip": self.flip.sum(dim=1) - flip}
        return found | {name: total / others for name, total in of_others.items()}

    def against_drawn(self, top: Tensor, drawn: Tensor) -> dict[str, Tensor]:
        """The top item, and one that is drawn in either way; drawn (batch,) in [0, 1)."""
        number = (drawn * (self.items - 1)).long().clamp(max=self.items - 2).clamp(min=0)
        of_text = (number + (number >= top - self.first)) + self.first  # any place but the top's
        found = {}
        for way, place in zip(RANDOM_ITEMS, (of_text, self.first + number + 1), strict=True):
            place = place.clamp(max=self.mask.shape[1] - 1)
            for name, values in (("js", self.js), ("alpha", self.attention)):
                found[f"{way}_delta_{name}"] = self.at(values, top) - self.at(values, place)
            found[f"{way}_flip"] = self.at(self.flip, place)
        return found
