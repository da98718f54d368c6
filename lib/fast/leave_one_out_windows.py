"""Every single deletion where a hidden state sees only its neighbours: the average encoder and convolutions.

A deletion changes the states of at most `reach` tokens on each side (none under the average encoder). All others keep
their score and logits: prefix and suffix sums over them, kept as logarithms so that nothing cancels or vanishes however
unequal the scores are.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from lib.datasets.batches import Batch
from lib.fast.decoding import Decoding, decoding
from lib.models import AttentionClassifier, QuestionClassifier
from lib.models.encoders import Average
from lib.numerics import by_length

WORDS = 2**13  # encoded at once


@torch.no_grad()
def logits_without_each_token(model: AttentionClassifier | QuestionClassifier, batch: Batch) -> Tensor:
    """(batch, token, class) logits without each token, NaN off the mask; average or conv encoder under softmax."""
    logits = model.decoder.weight.new_full((*batch.tokens.shape, model.decoder.out_features), torch.nan)
    read = decoding(model, batch)
    for rows in by_length(batch.lengths, WORDS):
        part = batch.rows(rows)
        width = part.tokens.shape[1]
        if isinstance(model.encoder, Average):
            hidden = model.encoder(model.embedding(part.tokens), part.lengths)
            reach, changed = 0, _beside([], hidden)
        else:
            hidden, changed = _convolved(model.encoder.convolutions, model.embedding(part.tokens), part.lengths)
            reach = changed.shape[2] // 2
        neighbours = _beside([_shifted(part.mask, by) for by in _offsets(reach)], part.mask)
        kept, near = terms(read, rows, hidden, part.mask), terms(read, rows, changed, neighbours)
        attended = attended_without_each(kept, near, reach)
        logits[rows, :width] = read.finish(attended.transpose(0, 1), rows).transpose(0, 1).to(logits.dtype)
    return logits.masked_fill(~batch.mask[:, :, None], torch.nan)


def terms(read: Decoding, rows: Tensor, hidden: Tensor, mask: Tensor) -> Tensor:
    """Logarithms of what each state adds to the sums of exp(score) and of exp(score) times the positive and the
    negative part of its features: (batch, ..., hidden), (batch, ...) -> (batch, ..., 1 + 2 feature), -inf off the mask.

    Args:
        rows: (batch,) which texts they are.
    """
    scores = read.scoring.rows(rows).of_states(hidden).double()[..., None]
    features = (hidden @ read.weight.T).double()
    parts = torch.cat([torch.ones_like(scores), features.clamp_min(0), (-features).clamp_min(0)], dim=-1)
    return (scores + parts.log()).masked_fill(~mask[..., None], -torch.inf)


def attended_without_each(kept: Tensor, near: Tensor, reach: int) -> Tensor:
    """(batch, token, class) without each token. kept (batch, token, term); near (batch, token, neighbour, term)."""
    words = kept.shape[1]
    gap = (0, 0, reach + 1, 0)
    before = pad(kept.logcumsumexp(dim=1), gap, value=-torch.inf)[:, :words]
    after = pad(kept.flip(1).logcumsumexp(dim=1), gap, value=-torch.inf)[:, :words].flip(1)
    sums = torch.cat([before[:, :, None], after[:, :, None], near], dim=2).logsumexp(dim=2)
    mass, positive, negative = sums.split([1, (sums.shape[-1] - 1) // 2, (sums.shape[-1] - 1) // 2], dim=-1)
    some = mass > -torch.inf  # else nothing is left: the attended vector is zero
    mass = mass.masked_fill(~some, 0)
    return ((positive - mass).exp() - (negative - mass).exp()).masked_fill(~some, 0)


def _offsets(reach: int) -> list[int]:
    return [by for by in range(-reach, reach + 1) if by]


def _beside(parts: list[Tensor], like: Tensor) -> Tensor:
    """A (batch, word, ...) for each neighbour, shaped as `like`, -> (batch, word, neighbour, ...), also of none."""
    return torch.stack(parts, dim=2) if parts else like[:, :, None][:, :, :0]


def _shifted(sequences: Tensor, by: int) -> Tensor:
    """(batch, word, ...): at each word the value `by` words later, zero beyond the ends."""
    words = sequences.shape[1]
    by = max(-words, min(by, words))
    ends = (0, 0) * (sequences.dim() - 2) + (max(-by, 0), max(by, 0))
    return pad(sequences, ends)[:, max(by, 0) : max(by, 0) + words]


def _convolved(convolutions: nn.ModuleList, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """(hidden (batch, word, hidden), the neighbours' hidden states once each word is deleted
    (batch, word, neighbour, hidden)). Each tap of a filter is applied once to each word; the rest is additions."""
    reach = max(conv.kernel_size[0] // 2 for conv in convolutions)
    inside = torch.arange(embedded.shape[1], device=embedded.device) < lengths[:, None]
    embedded = embedded * inside[:, :, None]
    hidden, changed = [], []
    for conv in convolutions:
        half = conv.kernel_size[0] // 2
        taps = [embedded @ conv.weight[:, :, k].T for k in range(2 * half + 1)]
        base = conv.bias + sum(_shifted(tap, k - half) for k, tap in enumerate(taps))
        hidden.append(base)
        changed.append(_beside([_without(taps, conv.bias, base, by) for by in _offsets(reach)], base))
    return torch.relu(torch.cat(hidden, dim=-1)), torch.relu(torch.cat(changed, dim=-1))


def _without(taps: list[Tensor], bias: Tensor, base: Tensor, by: int) -> Tensor:
    """The output at the neighbour `by` words away once the word here is deleted: taps that reach across it move on."""
    half = len(taps) // 2
    if abs(by) > half:
        return _shifted(base, by)
    across = [by + k - half for k in range(len(taps))]  # word that each tap reads, relative to the deleted one
    moved = [at + (at >= 0 > by) - (at <= 0 < by) for at in across]
    return bias + sum(_shifted(tap, at) for tap, at in zip(taps, moved, strict=True))
