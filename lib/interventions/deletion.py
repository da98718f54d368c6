"""Words deleted from texts, several at once: those of the reason, or every subset of a text's words."""

from collections.abc import Mapping, Sequence
from math import comb

import numpy as np
import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.datasets.corpus import PAD
from lib.metrics.distances import probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.models.evaluation import WORDS, words_at_once
from lib.models.interface import logits_of_nothing
from lib.numerics import by_length
from lib.quantity import CHANGE_BOUNDS, Quantity

MAX_WORDS = 9  # of a text whose subsets are enumerated: each word more doubles the time
Spans = Sequence[tuple[int, int]]
ORDERED = {"comprehensiveness": -1, "sufficiency": 1}  # by which sign of the values words are deleted


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
    `rationales` are of every text of the split, the spans [start, end) of its words.
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


def shapley(most: int = MAX_WORDS) -> Quantity:
    """A quantity: the exact Shapley value of each token for the predicted class's probability, (batch, token).

    Shapley (1953): phi_t = sum over subsets S without t of a text's n words of |S|! (n - |S| - 1)! / n! times
    v(S + t) - v(S), v being that probability where the words that are not in S are deleted. They sum to
    v(all) - v(none). All subsets are enumerated: texts of more than `most` words are left out.
    """

    @torch.no_grad()
    def values(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        chances, counts = subset_probabilities(model, batch, output, most), batch.mask.sum(dim=1).tolist()
        subsets, result = torch.arange(2**most), torch.zeros(batch.mask.shape, dtype=torch.float64)
        sizes = sum((subsets >> place) % 2 for place in range(most))
        weight = [[1 / (n * comb(n - 1, size)) if size < n else 0 for size in range(most)] for n in counts]
        weight = torch.tensor(weight, dtype=torch.float64)
        for place in range(max(counts)):
            without = subsets[(subsets >> place) % 2 == 0]
            gain = chances[:, without + 2**place] - chances[:, without]
            result[:, place + 1] = (weight[:, sizes[without]] * gain).nansum(dim=1)
        return result.masked_fill(~batch.mask.cpu(), 0)

    return Quantity("shapley", values, "fraction", CHANGE_BOUNDS, "Shapley value", most)


def between_orders(rankings: Mapping[str, Mapping[int, np.ndarray | None]], most: int = MAX_WORDS) -> Quantity:
    """A quantity: how near deleting words in the order of an explanation comes to the best order, 1, from the worst, 0.

    Edin et al. (2025), by the mean of the predicted class's probability after each word. Parts of each explanation,
    (batch,): comprehensiveness_<name>, the largest value first (best: the least mean), and sufficiency_<name>, the
    smallest first (best: the largest). Best and worst are exact, of all orders, so longer texts than `most` words are
    left out. NaN without values, or where all orders are alike. `rankings` are name -> instance -> (token,) or None.
    """
    parts = {(name, part): sign for name in rankings for part, sign in ORDERED.items()}

    @torch.no_grad()
    def scored(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
        chances = subset_probabilities(model, batch, output, most)
        rows, full = torch.arange(len(batch)), 2 ** batch.mask.sum(dim=1).cpu() - 1
        low, high = lowest_sums(chances)[rows, full], -lowest_sums(-chances)[rows, full]
        range_of, found = (high - low).masked_fill(high - low < 1e-9, torch.nan), {}
        for (name, part), sign in parts.items():
            sums = torch.full_like(low, torch.nan)
            for row, text in enumerate(batch.instance.tolist()):
                if (values := rankings[name][text]) is not None:
                    left = int(full[row]) - np.cumsum(2 ** np.argsort(sign * values, kind="stable"))
                    sums[row] = chances[row, left].sum()
            found[f"{part}_{name}"] = ((high - sums) if sign < 0 else (sums - low)) / range_of
        return found

    return Quantity("between", scored, {f"{part}_{name}": "fraction" for name, part in parts}, max_tokens=most)


def lowest_sums(chances: Tensor) -> Tensor:
    """(batch, subset): the least sum of the probabilities after each step, from each subset word by word to none."""
    subsets, words = torch.arange(chances.shape[1]), chances.shape[1].bit_length() - 1
    bits = 2 ** torch.arange(words)[:, None]
    sizes, sums = ((subsets & bits) > 0).sum(dim=0), torch.zeros_like(chances)
    for size in range(1, words + 1):
        some = subsets[sizes == size]
        steps = (chances + sums)[:, some - (some & bits)]  # (batch, word, subset)
        sums[:, some] = steps.masked_fill((some & bits) == 0, torch.inf).amin(dim=1)
    return sums


@torch.no_grad()
def subset_probabilities(model: AttentionModel, batch: Batch, output: ModelOutput, most: int) -> Tensor:
    """The predicted class's probability from each subset of a text's words, the others deleted: (batch, 2 ** most).

    Bit t of a column's number says whether the text's word t, from 0, stays; NaN beyond a text's own subsets.
    """
    place, counts = torch.arange(batch.mask.shape[1], device=batch.mask.device) - 1, batch.mask.sum(dim=1)
    row, subset = (torch.arange(2**most, device=place.device) < 2 ** counts[:, None]).nonzero(as_tuple=True)
    keep = ((subset[:, None] >> place.clamp(min=0)) % 2 == 1) & batch.mask[row]
    parts = [(subset == 0, logits_of_nothing(model, batch))]
    for some in by_length(keep.sum(dim=1), words_at_once(model, WORDS)):  # without the empty subsets
        copies = batch.rows(row[some])
        parts.append((some, model(shortened(copies, keep[some][:, : copies.mask.shape[1]])).logits))
    predicted = probabilities(output.logits).argmax(dim=1)
    chances = torch.full((len(batch), 2**most), torch.nan, dtype=torch.float64)
    for some, logits in parts:
        own = probabilities(logits.double()).gather(1, predicted[row[some]][:, None])[:, 0]
        chances[row[some].cpu(), subset[some].cpu()] = own.cpu()
    return chances
