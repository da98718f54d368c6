"""ERASER's scores of a ranking at the attention layer, from the sums of one erasure curve: no further pass.

Where the read-out is not affine it is asked twice for each share.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.interventions import erasure_by_reading as by_reading
from lib.interventions.erasure import distributions, from_the_end, sorted_terms
from lib.models import AttentionModel, ModelOutput
from lib.models.interface import Ranking
from lib.quantity import CHANGE_BOUNDS, Quantity

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)  # of the items: ERASER's bins


def eraser_scores(rankings: Mapping[str, Ranking], name: str = "eraser") -> Quantity:
    """A quantity: <name>_comprehensiveness and <name>_sufficiency of each ranking; see `rationale_scores`.

    (batch,) each, NaN for a text of one item.
    """

    def scores_of(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
        scores = {of: rationale_scores(model, output, ranking(model, output)) for of, ranking in rankings.items()}
        one = output.mask.sum(dim=1) < 2
        return {
            f"{of}_{part}": value.masked_fill(one, torch.nan)
            for of, parts in scores.items()
            for part, value in parts.items()
        }

    parts = [f"{of}_{part}" for of in rankings for part in ("comprehensiveness", "sufficiency")]
    return Quantity(name, scores_of, dict.fromkeys(parts, "fraction"), dict.fromkeys(parts, CHANGE_BOUNDS))


@torch.no_grad()
def rationale_scores(model: AttentionModel, output: ModelOutput, ranking: Tensor) -> dict[str, Tensor]:
    """ERASER's comprehensiveness and sufficiency of a ranking, at the attention layer (DeYoung et al. 2020, sec. 4.2).

    How far the probability of the predicted class falls when the top items are erased (comprehensiveness, high is
    good), and when they alone are kept (sufficiency, low is good): means over the top SHARES of the items, one or more.

    Returns:
        {"comprehensiveness", "sufficiency"}: (batch,) differences of probability.
    """
    order, affine = sorted_terms(model, output, ranking)
    steps = steps_of(output.mask.sum(dim=1, keepdim=True))
    if affine is None:
        parts = by_reading.logits_around(model, output, order, steps)
        whole, erased, alone = (logits.softmax(dim=-1) for logits in parts)
        return scored(whole, {"comprehensiveness": erased, "sufficiency": alone})
    weights, said, bias = affine
    none = weights.new_zeros(len(weights), 1)
    empty = torch.zeros_like(said[:, :1])
    kept = torch.cat([none, weights.cumsum(dim=1)], dim=1), torch.cat([empty, said.cumsum(dim=1)], dim=1)
    left = from_the_end(weights), from_the_end(said)
    whole = distributions(*(part[:, :1] for part in left), bias)
    found = {
        name: distributions(mass.gather(1, steps), sums.gather(1, steps[:, :, None].expand(-1, -1, len(bias))), bias)
        for name, (mass, sums) in (("comprehensiveness", left), ("sufficiency", kept))
    }
    return scored(whole, found)


def steps_of(items: Tensor) -> Tensor:
    """How many items each of SHARES is, of texts of so many: (batch, 1) -> (batch, share)."""
    shares = torch.tensor(SHARES, dtype=torch.float64, device=items.device)
    return (items * shares - 1e-9).ceil().long().clamp(min=1)  # a whole number stays one


def scored(whole: Tensor, parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """How far the probability of the predicted class falls from whole (batch, 1, class): the mean over the shares.

    Args:
        parts: name -> class distributions (batch, share, class).
    """
    own = whole.argmax(dim=-1, keepdim=True)
    before = whole.gather(2, own).squeeze(2)
    return {
        name: (before - at.gather(2, own.expand(-1, at.shape[1], 1)).squeeze(2)).mean(dim=1)
        for name, at in parts.items()
    }
