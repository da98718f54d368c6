"""Words deleted from texts, several at once: those of the reason, or every subset of a text's words."""

from collections.abc import Sequence
from math import comb

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.datasets.corpus import PAD
from lib.metrics.distances import probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.quantity import CHANGE_BOUNDS, Quantity

MAX_WORDS = 9  # of a text whose subsets are enumerated: each word more doubles the time
Spans = Sequence[tuple[int, int]]


def shortened(batch: Batch, keep: Tensor) -> Batch:
    """The texts without the words for which keep (batch, word) is False; start and end always stay."""
    position = torch.arange(batch.tokens.shape[1], device=keep.device)
    keep = (keep & batch.mask) | (position == 0) | (position == batch.lengths[:, None] - 1)
    lengths = keep.sum(dim=1)
    first = (~keep).to(torch.uint8).sort(dim=1, stable=True).indices[:, : int(lengths.max())]
    tokens = batch.tokens.gather(1, first).masked_fill(position[: first.shape[1]] >= lengths[:, None], PAD)
    return Batch.of(tokens, lengths, batch.label, batch.instance)


def without_reason(rationales: Sequence[Spans | None]) -> Quantity:
    """A quantity: how far the prediction moves when the words of the rationale are deleted, (batch,) fraction.

    |change of p|, with several classes the total variation. NaN for a text without a rationale, or of rationale alone.

    Args:
        rationales: of every text of the split the spans [start, end) of its words.
    """

    @torch.no_grad()
    def moved(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        keep = batch.mask.clone()
        for row, text in enumerate(batch.instance.tolist()):
            for start, end in rationales[text] or ():
                keep[row, start + 1 : end + 1] = False
        some = keep.any(dim=1) & (keep != batch.mask).any(dim=1)
        change = output.logits.new_full((len(batch),), torch.nan)
        if some.any():
            logits = model(shortened(batch.rows(some), keep[some][:, : int(batch.lengths[some].max())])).logits
            change[some] = total_variation(probabilities(logits), probabilities(output.logits[some]))
        return change

    return Quantity("without_reason", moved, "fraction", title="change of p without the reason")


def shapley() -> Quantity:
    """A quantity: the exact Shapley value of each token for the predicted class's probability, (batch, token).

    Shapley (1953): phi_t = sum over subsets S without t of a text's n words of |S|! (n - |S| - 1)! / n! times
    v(S + t) - v(S), v being that probability where the words that are not in S are deleted. They sum to
    v(all) - v(none). All subsets are enumerated: texts of more than MAX_WORDS words are left out.
    """

    @torch.no_grad()
    def values(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        result = torch.zeros(batch.mask.shape, dtype=torch.float64, device=batch.mask.device)
        nothing = model.read_out(output, torch.zeros_like(output.attention))
        for row, mask in enumerate(batch.mask):
            number = int(mask.sum())
            subsets = torch.arange(2**number, device=mask.device)
            chosen = (subsets[:, None] >> torch.arange(number, device=mask.device)) % 2 == 1  # (subset, word)
            copies = batch.rows(torch.full_like(subsets[1:], row))
            keep = copies.mask.masked_scatter(copies.mask, chosen[1:])
            logits = torch.cat([nothing[[row]], model(shortened(copies, keep)).logits]).double()
            value = probabilities(logits)[:, probabilities(output.logits[row]).argmax()]
            weight = [1 / (number * comb(number - 1, size)) for size in range(number)]
            weight = torch.tensor([*weight, 0.0], dtype=torch.float64, device=mask.device)[chosen.sum(dim=1)]
            without = [subsets[~chosen[:, place]] for place in range(number)]
            gains = [weight[some] * (value[some + 2**place] - value[some]) for place, some in enumerate(without)]
            result[row, mask] = torch.stack(gains).sum(dim=1)
        return result

    return Quantity("shapley", values, "fraction", CHANGE_BOUNDS, "Shapley value", MAX_WORDS)
