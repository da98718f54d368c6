"""ERASER's scores of a ranking at the attention layer, from the sums of one erasure curve: no further pass."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.interventions.erasure import distributions, from_the_end, sorted_terms
from lib.models import AttentionModel, ModelOutput
from lib.models.affine import Ranking

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)  # of the items: ERASER's bins


def eraser_scores(rankings: Mapping[str, Ranking]) -> Callable[..., dict[str, Tensor]]:
    """A quantity: <name>_comprehensiveness and <name>_sufficiency of each ranking; see `rationale_scores`.

    (batch,) each, NaN for a text of one item.
    """

    def quantity(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
        scores = {name: rationale_scores(model, output, ranking(model, output)) for name, ranking in rankings.items()}
        one = output.mask.sum(dim=1) < 2
        return {
            f"{name}_{part}": value.masked_fill(one, torch.nan)
            for name, parts in scores.items()
            for part, value in parts.items()
        }

    return quantity


@torch.no_grad()
def rationale_scores(model: AttentionModel, output: ModelOutput, ranking: Tensor) -> dict[str, Tensor]:
    """ERASER's comprehensiveness and sufficiency of a ranking, at the attention layer (DeYoung et al. 2020, sec. 4.2).

    How far the probability of the predicted class falls when the top items are erased (comprehensiveness, high is
    good), and when they alone are kept (sufficiency, low is good): means over the top SHARES of the items, one or more.

    Returns:
        {"comprehensiveness", "sufficiency"}: (batch,) differences of probability.
    """
    _, weights, said, bias = sorted_terms(model, output, ranking)
    none = weights.new_zeros(len(weights), 1)
    empty = torch.zeros_like(said[:, :1])
    kept = torch.cat([none, weights.cumsum(dim=1)], dim=1), torch.cat([empty, said.cumsum(dim=1)], dim=1)
    left = from_the_end(weights), from_the_end(said)
    items = output.mask.sum(dim=1, keepdim=True)
    shares = torch.tensor(SHARES, dtype=torch.float64, device=items.device)
    steps = (items * shares - 1e-9).ceil().long().clamp(min=1)  # (batch, share); a whole number stays one
    whole = distributions(*(part[:, :1] for part in left), bias)
    own = whole.argmax(dim=-1, keepdim=True)
    before = whole.gather(2, own).squeeze(2)
    found = {}
    for name, (mass, sums) in (("comprehensiveness", left), ("sufficiency", kept)):
        at = distributions(mass.gather(1, steps), sums.gather(1, steps[:, :, None].expand(-1, -1, len(bias))), bias)
        found[name] = (before - at.gather(2, own.expand(-1, at.shape[1], 1)).squeeze(2)).mean(dim=1)
    return found
