"""Words deleted from texts, several at once: the reason, or every subset; and the frame of a reason drawn anew."""

from collections.abc import Sequence
from dataclasses import replace
from math import comb

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lib.datasets.batches import Batch
from lib.datasets.corpus import END, PAD, START, UNKNOWN
from lib.metrics.distances import probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.quantity import CHANGE_BOUNDS, Quantity

LONGEST = 12  # words of a text whose subsets are enumerated
REMOVED = ("deleted", "unknown")
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


def frame_effect(draws: int = 5, longest: int = 12, seed: int = 0) -> Quantity:
    """A quantity: how far the prediction moves at most when the unknown words at both ends are drawn anew, (batch,).

    |change of p|, with several classes the total variation. Each end gets 0 to `longest` of them; what lies between the
    first and the last known word stays. NaN for a text without a known word. Each text has its own draws.
    """

    @torch.no_grad()
    def moved(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        farthest = output.logits.new_full((len(batch),), torch.nan)
        known = batch.mask & (batch.tokens != UNKNOWN)
        some = known.any(dim=1).nonzero().squeeze(1)
        for draw in range(draws if len(some) else 0):
            texts = []
            for row in some.tolist():
                places = known[row].nonzero().squeeze(1)
                number = (seed, draw, int(batch.instance[row]))
                before, behind = np.random.default_rng(number).integers(0, longest + 1, 2)
                middle = batch.tokens[row, places[0] : places[-1] + 1].tolist()
                texts.append([START, *[UNKNOWN] * before, *middle, *[UNKNOWN] * behind, END])
            lengths = torch.tensor([len(text) for text in texts], device=batch.tokens.device)
            tokens = pad_sequence([torch.tensor(text) for text in texts], batch_first=True, padding_value=PAD)
            framed = Batch.of(tokens.to(lengths.device), lengths, batch.label[some], batch.instance[some])
            change = total_variation(probabilities(model(framed).logits), probabilities(output.logits[some]))
            farthest[some] = torch.fmax(farthest[some], change)
        return farthest

    return Quantity("frame", moved, "fraction", title="change of p with the frame")


def shapley(removed: str = "deleted") -> Quantity:
    """A quantity: the exact Shapley value of each token for the predicted class's probability, (batch, token).

    Shapley (1953), by enumeration of all subsets of the words: sum over S without t of |S|! (n - |S| - 1)! / n! times
    v(S + t) - v(S), v being the probability where the words that are not in S are deleted, or the unknown word. They
    add up to what all words do together.

    Args:
        removed: of REMOVED. Texts of more than LONGEST words are left out.
    """

    @torch.no_grad()
    def values(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        found = torch.zeros(batch.mask.shape, dtype=torch.float64, device=batch.mask.device)
        for row in range(len(batch)):
            one = batch.rows(torch.tensor([row], device=found.device))
            found[row, batch.mask[row]] = shapley_of_text(model, one, removed)
        return found

    return Quantity(f"shapley_{removed}", values, "fraction", CHANGE_BOUNDS, f"Shapley, {removed}", LONGEST)


def shapley_of_text(model: AttentionModel, one: Batch, removed: str) -> Tensor:
    """(token,) of the only text of a batch; see `shapley`."""
    words = one.mask[0].nonzero().squeeze(1)
    number, device = len(words), words.device
    chosen = (torch.arange(2**number, device=device)[:, None] >> torch.arange(number, device=device)) % 2 == 1
    copies = one.rows(torch.zeros(2**number, dtype=torch.long, device=device))
    keep = copies.mask.clone()
    keep[:, words] = chosen
    output = model(one)
    if removed == "unknown":
        logits = model(replace(copies, tokens=copies.tokens.masked_fill(copies.mask & ~keep, UNKNOWN))).logits
    else:
        nothing = model.read_out(output, torch.zeros_like(output.attention))
        logits = torch.cat([nothing, model(shortened(copies.rows(keep.any(dim=1)), keep[1:])).logits])
    value = probabilities(logits.double())[:, probabilities(output.logits).argmax()]
    subset, size, found = torch.arange(2**number, device=device), chosen.sum(dim=1), []
    weight = [1 / (number * comb(number - 1, of)) for of in range(number)]
    weight = torch.tensor(weight, dtype=torch.float64, device=device)
    for place in range(number):
        without = subset[~chosen[:, place]]
        found.append((weight[size[without]] * (value[without + 2**place] - value[without])).sum())
    return torch.stack(found)
