"""Jain & Wallace's (2019) search for adversarial attention: as they wrote it, and of many texts and restarts at once.

The second writes the gradient by hand in the space of the tokens' logits; only for a read-out that is not affine
autograd is used.
"""

from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
import torch
from torch import Tensor

from lib import numerics as elementwise
from lib.metrics.distances import jensen_shannon, probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.models.evaluation import gradients_enabled
from lib.numerics import by_length, rows_of
from lib.random_streams import normal, streams

CELLS = 2**17  # tokens x restarts x texts at once: a step's fixed cost is small, and its 11 buffers take 6 MB
ALIGNED = 16  # texts: rows of whole cache lines are twice as fast
PENALTY, LEARNING_RATE, SPREAD = 500.0, 0.01, 3.0
RENEWED = 50  # steps after which the free logarithms are made those of the attention again: exp stays in range
AWAY = -60.0  # log attention of padding: e^-60 of nothing, but no infinity in the logarithms


@torch.no_grad()
def searched_adversary_definition(
    model: AttentionModel,
    output: ModelOutput,
    epsilon: float,
    restarts: int = 5,
    steps: int = 500,
    seed: int = 0,
    instance: Tensor | None = None,
) -> Tensor:
    """Jain & Wallace's search by gradients for the adversarial attention (batch, token).

    Restarts from log(1/n) + 3 N(0, 1), Adam with amsgrad, on the sum over texts of
    - sum_k JSD(q_k, alpha) + 500 sum_k relu(TVD_k - epsilon) - mean over all (j, k) of JSD(q_j, q_k).
    The last term keeps the restarts apart.
    Differs from the paper: not the last iterate but the best one within epsilon is kept; the attention itself, at
    distance 0, is the first.
    """
    mask, own, p = output.mask[:, None], output.attention[:, None].detach(), probabilities(output.logits.detach())
    free = starts(streams(seed, len(own), instance), output.mask.T, restarts).permute(2, 0, 1).to(own).clone()
    optimizer = torch.optim.Adam([free.requires_grad_()], lr=LEARNING_RATE, amsgrad=True)
    best, furthest = own.repeat(1, restarts, 1), own.new_zeros(len(own), restarts)
    for _ in range(steps + 1):
        with gradients_enabled(model):
            q = torch.softmax(free.masked_fill(~mask, -torch.inf), dim=-1)  # (batch, restart, token)
            moved = total_variation(probabilities(model.read_out(output, q)), p[:, None])
            distance = jensen_shannon(q, own)
            apart = jensen_shannon(q[:, :, None], q[:, None]).mean(dim=(1, 2))
            loss = (PENALTY * (moved - epsilon).relu() - distance).sum() - apart.sum()
            (free.grad,) = torch.autograd.grad(loss, free)
        better = (moved <= epsilon) & (distance > furthest)
        best = torch.where(better[:, :, None], q.detach(), best)
        furthest = torch.where(better, distance.detach(), furthest)
        optimizer.step()
    return best[torch.arange(len(best)), furthest.argmax(dim=1)].double()


@torch.no_grad()
def searched_adversary(
    model: AttentionModel,
    output: ModelOutput,
    epsilon: float,
    restarts: int = 5,
    steps: int = 500,
    seed: int = 0,
    instance: Tensor | None = None,
) -> Tensor:
    """`searched_adversary_definition`, many texts at a time; doubles (batch, token)."""
    affine = model.token_logits(output)
    stream = streams(seed, len(output.mask), instance)
    furthest = output.attention.double().clone()
    for rows in _pieces(output.mask.sum(dim=-1), CELLS // max(restarts, 1)):
        columns = output.mask[rows].any(dim=0).nonzero()[:, 0]
        cells = rows[:, None], columns
        mask, base = output.mask[cells].T.contiguous(), output.attention[cells].T.contiguous()  # (token, batch)
        if affine is None:
            read_out = AnyReadOut(model, rows_of(output, rows), columns, base)
        else:
            read_out = AffineReadOut(affine[0][cells], affine[1], base)
        start = starts(stream[rows.cpu().numpy()], mask, restarts).to(base.dtype)
        with nullcontext() if affine is None else torch.inference_mode():  # a small operation costs less
            best = _climb(start, base, read_out, epsilon, steps)
        furthest[cells] = _furthest(best, base, mask, read_out, epsilon).T
    return furthest


def _pieces(lengths: Tensor, cells: int) -> Iterator[Tensor]:
    """Texts from short to long, always a multiple of ALIGNED. The last one again fills up: found twice, the same."""
    order = lengths.argsort(stable=True)[int((lengths < 1).sum()) :]
    if len(order):
        groups = torch.cat([order, order[-1:].expand(-len(order) % ALIGNED)]).view(-1, ALIGNED)
        for some in by_length(lengths[groups[:, -1]], cells // ALIGNED):
            yield groups[some].flatten()


def starts(stream: np.ndarray, mask: Tensor, restarts: int) -> Tensor:
    """(restart, token, batch): log(1 / n) + 3 N(0, 1), whose numbers belong to instance, restart and token."""
    real = mask.cpu().numpy()
    place = np.maximum(real.cumsum(axis=0) - 1, 0).astype(np.uint64)  # among the real tokens
    counter = (np.arange(restarts, dtype=np.uint64)[:, None] << np.uint64(32))[:, :, None] + place
    noise = torch.from_numpy(normal(stream, counter)).to(mask.device)
    start = SPREAD * noise - mask.sum(dim=0).double().log()
    return torch.where(mask, start, AWAY)


def _climb(start: Tensor, base: Tensor, read_out, epsilon: float, steps: int) -> Tensor:
    """(restart, token, batch): the best attention of each restart that is within epsilon, `base` where none was."""
    restarts = len(start)
    pairs, weights = _meetings(restarts, start)
    logs = start.new_empty(2 * restarts + len(pairs), *base.shape)  # the slope is a weighted sum of these
    free, log_both, log_pairs = logs[:restarts].copy_(start), logs[restarts : 2 * restarts], logs[2 * restarts :]
    q, both, buffer = (torch.empty_like(start) for _ in range(3))
    slope = both  # in the same place: fewer buffers to move through the processor's cache
    adam = Adam(free)
    within = epsilon - 16 * torch.finfo(start.dtype).eps  # not beyond epsilon by rounding
    best = base.expand_as(start).clone()
    furthest = (torch.special.entr(base).sum(dim=0) - 2 * np.log(2)).expand_as(start[:, 0])  # `distance` of the base
    for step in range(steps + 1):
        if step % RENEWED == 0:  # q does not change
            free.sub_(free.logsumexp(dim=1, keepdim=True))
        total = elementwise.exp(free, out=q).sum(dim=1, keepdim=True)
        q.mul_(total.reciprocal())
        elementwise.log(torch.add(q, base, out=both), out=log_both)
        torch.mm(pairs, q.flatten(1), out=log_pairs.flatten(1))
        elementwise.log(log_pairs, out=log_pairs)
        # twice the JSD, up to the base's entropy: sum q ln q - sum (q + alpha) ln (q + alpha)
        distance = torch.mul(q, free, out=buffer).addcmul_(both, log_both, value=-1).sum(dim=1) - total[:, 0].log()
        moved, pull = read_out.moved(q, buffer)
        better = (moved <= within) & (distance > furthest)
        furthest = torch.where(better, distance, furthest)
        best.lerp_(q, better[:, None].to(q.dtype))  # weight 0 or 1: one of the two, bit for bit
        torch.mm(weights, logs.flatten(1), out=slope.flatten(1))
        read_out.add(slope, pull, moved > epsilon)
        slope.mul_(q).addcmul_(q, slope.sum(dim=1, keepdim=True), value=-1)  # through the softmax
        adam.step(slope)
    return best


def _meetings(restarts: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """The sums over restarts in a step, as two matrices: a product each, in place of many sums of slices.

    Returns:
        pairs (pair, restart): times the q_k it is q_k + q_j of each pair of restarts.
        weights (restart, 2 x restart + pair): times (log q_k; log(q_k + alpha); log(q_k + q_j)) it is the slope of the
        loss along each q_k. What is the same for all tokens is left out: the softmax takes it away.
    """
    one, other = torch.triu_indices(restarts, restarts, 1)
    own = torch.eye(restarts)
    pairs, share = own[one] + own[other], 1 / restarts**2
    weights = torch.cat([-(0.5 + (restarts - 1) * share) * own, 0.5 * own, share * pairs.T], dim=1)
    return pairs.to(like), weights.to(like)


class Adam:
    """Adam with amsgrad and torch's defaults, in place and without an optimizer's fixed cost in each step."""

    def __init__(self, free: Tensor):
        self.free, self.count = free, 0
        self.momentum, self.square, self.largest, self.buffer = (torch.zeros_like(free) for _ in range(4))

    def step(self, slope: Tensor) -> None:
        """One update of the free scores, in place."""
        self.count += 1
        self.momentum.lerp_(slope, 0.1)
        self.square.mul_(0.999).addcmul_(slope, slope, value=0.001)
        torch.maximum(self.largest, self.square, out=self.largest)
        unbiased = (1 - 0.999**self.count) ** 0.5
        root = torch.sqrt(self.largest, out=self.buffer).add_(1e-8 * unbiased)
        self.free.addcdiv_(self.momentum, root, value=-LEARNING_RATE * unbiased / (1 - 0.9**self.count))


def _furthest(best: Tensor, base: Tensor, mask: Tensor, read_out, epsilon: float) -> Tensor:
    """(token, batch) in doubles: the restart with the largest JSD within epsilon, in doubles too, or the base."""
    q = best.double().masked_fill(~mask, 0)
    q, base = q / q.sum(dim=1, keepdim=True), base.double()
    distance = jensen_shannon(q.mT, base.T)
    moved = read_out.distance(q, base[None])
    top, restart = distance.masked_fill(moved > epsilon, -1).max(dim=0)
    chosen = q.gather(0, restart.expand(1, *base.shape))[0]
    return torch.where(top > 0, chosen, base)


class AffineReadOut:
    """Predictions from the tokens' logits: all the search needs of a model whose read-out is affine."""

    def __init__(self, token_logits: Tensor, bias: Tensor, base: Tensor):
        self.classes = [part.T.contiguous() for part in token_logits.unbind(dim=-1)]  # (token, batch) each
        self.bias = bias[:, None, None]
        self.base = self._chances(base[None])

    def _chances(self, q: Tensor, buffer: Tensor | None = None) -> Tensor:
        """(restart, token, batch) -> p (1, restart, batch) of one output, else (class, restart, batch)."""
        logits = torch.stack([torch.mul(q, part, out=buffer).sum(dim=1) for part in self.classes]) + self.bias
        return logits.sigmoid() if len(logits) == 1 else logits.softmax(dim=0)

    def distance(self, q: Tensor, base: Tensor) -> Tensor:
        """(restart, batch) total variation between the predictions of two attentions (restart, token, batch)."""
        away = (self._chances(q) - self._chances(base)).abs()
        return away[0] if len(away) == 1 else away.sum(dim=0) / 2

    def moved(self, q: Tensor, buffer: Tensor) -> tuple[Tensor, Tensor]:
        """(restart, batch) total variation to the base, and its slope along the logits (class, restart, batch)."""
        chance = self._chances(q, buffer)
        away = chance - self.base
        if len(away) == 1:
            return away[0].abs(), chance * (1 - chance) * away.sign()
        half = away.sign() / 2
        return away.abs().sum(dim=0) / 2, chance * (half - (chance * half).sum(dim=0))

    def add(self, slope: Tensor, pull: Tensor, beyond: Tensor) -> None:
        """Adds, in place, PENALTY x the slope of `moved` where an attention (restart, batch) is beyond epsilon."""
        for part, by in zip(self.classes, pull * beyond, strict=True):
            slope.addcmul_(part, by[:, None], value=PENALTY)


class AnyReadOut:
    """The same through model.read_out and autograd, where the read-out is not affine."""

    def __init__(self, model: AttentionModel, output: ModelOutput, columns: Tensor, base: Tensor):
        self.model, self.output, self.columns = model, output, columns
        self.base = self._chances(base[None])

    def _chances(self, q: Tensor) -> Tensor:
        full = torch.zeros(
            q.shape[2], len(q), self.output.mask.shape[1], dtype=self.output.attention.dtype, device=q.device
        )
        full[..., self.columns] = q.permute(2, 0, 1).to(full.dtype)
        return probabilities(self.model.read_out(self.output, full)).transpose(0, 1)

    def distance(self, q: Tensor, base: Tensor) -> Tensor:
        """(restart, batch) total variation between the predictions of two attentions (restart, token, batch)."""
        return total_variation(self._chances(q), self._chances(base))

    def moved(self, q: Tensor, buffer: Tensor) -> tuple[Tensor, Tensor]:
        """(restart, batch) total variation to the base, and its slope along the attention (restart, token, batch)."""
        with gradients_enabled(self.model):
            free = q.detach().requires_grad_()
            moved = total_variation(self._chances(free), self.base)
            (slope,) = torch.autograd.grad(moved.sum(), free)
        return moved.detach(), slope

    def add(self, slope: Tensor, pull: Tensor, beyond: Tensor) -> None:
        """Adds to the gradient the penalty's, for texts whose prediction is beyond epsilon, in place."""
        slope.addcmul_(pull, beyond[:, None].to(pull.dtype), value=PENALTY)
