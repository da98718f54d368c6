"""Jain & Wallace's (2019) search for adversarial attention, many texts and restarts at once.

Per text K restarts from log(1/n) + 3 N(0, 1), Adam with amsgrad, on
    - sum_k JSD(q_k, alpha) + 500 sum_k relu(TVD_k - epsilon) - mean over all (j, k) of JSD(q_j, q_k).
The last term keeps the restarts apart. Differs from the paper: not the last iterate but the best one within epsilon is
kept; the attention itself, at distance 0, is the first. The gradient is written by hand in the space of the tokens'
logits; only for a read-out that is not affine autograd is used.
"""

import numpy as np
import torch
from torch import Tensor

from lib.chunks import by_length, rows_of
from lib.interventions.streams import normal, streams
from lib.metrics import jensen_shannon, probabilities, total_variation
from lib.models import AttentionModel, ModelOutput

CELLS = 2**16  # tokens x restarts x texts at once: about what stays in the processor's cache
ALIGNED = 16  # texts: rows of whole cache lines are twice as fast
PENALTY, LEARNING_RATE, SPREAD = 500.0, 0.01, 3.0
AWAY = -60.0  # log attention of padding: e^-60 of nothing, but no infinity in the logarithms


def search(
    model: AttentionModel,
    output: ModelOutput,
    epsilon: float,
    restarts: int = 5,
    steps: int = 500,
    seed: int = 0,
    instance: Tensor | None = None,
) -> Tensor:
    """The best attention found within epsilon, doubles (batch, token). The start depends on seed and instance alone."""
    instance = torch.arange(len(output.mask)) if instance is None else instance
    stream = streams(seed, instance.cpu().numpy())
    affine = model.token_logits(output)
    found = output.attention.double().clone()
    for rows in by_length(output.mask.sum(dim=-1), CELLS // max(restarts, 1)):
        rows = torch.cat([rows, rows[-1:].expand(-len(rows) % ALIGNED)])  # the last text again: found twice, the same
        columns = output.mask[rows].any(dim=0).nonzero()[:, 0]
        cells = rows[:, None], columns
        mask, base = output.mask[cells].T.contiguous(), output.attention[cells].T.contiguous()  # (token, batch)
        if affine is None:
            read_out = AnyReadOut(model, rows_of(output, rows), columns, base)
        else:
            read_out = AffineReadOut(affine[0][cells], affine[1], base)
        start = _start(stream[rows.cpu().numpy()], mask, restarts).to(base.dtype)
        best = _climb(start, base, read_out, epsilon, steps)
        found[cells] = _furthest(best, base, mask, read_out, epsilon).T
    return found


def _start(stream: np.ndarray, mask: Tensor, restarts: int) -> Tensor:
    """(token, restart, batch): log(1 / n) + 3 N(0, 1), whose numbers belong to instance, restart and token."""
    real = mask.cpu().numpy()
    place = np.maximum(real.cumsum(axis=0) - 1, 0).astype(np.uint64)  # among the real tokens
    counter = (np.arange(restarts, dtype=np.uint64)[:, None] << np.uint64(32)) + place[:, None]
    noise = torch.from_numpy(normal(stream, counter)).to(mask.device)
    start = SPREAD * noise - mask.sum(dim=0).double().log()
    return torch.where(mask[:, None], start, AWAY)


def _climb(start: Tensor, base: Tensor, read_out, epsilon: float, steps: int) -> Tensor:
    """(token, restart, batch): the best attention of each restart that is within epsilon, `base` where none was."""
    restarts, base, log_q = start.shape[1], base[:, None], start
    within = epsilon - 16 * torch.finfo(start.dtype).eps  # not beyond epsilon by rounding
    best = base.expand_as(start).clone()
    furthest = (torch.special.entr(base).sum(dim=0) - 2 * np.log(2)).expand_as(start[0])  # `distance` of the base
    momentum, square = torch.zeros_like(start), torch.zeros_like(start)
    largest = torch.full_like(start, 1e-30)  # not 0, whose square root is ten times slower
    q, both, log_both, slope, buffer = (torch.empty_like(start) for _ in range(5))
    meetings = _meetings(slope, q, buffer)
    for step in range(steps + 1):
        total = torch.exp(log_q, out=q).sum(dim=0)
        q.mul_(total.reciprocal())
        log_q.sub_(total.log())  # the same attention; from here on its logarithm
        torch.log(torch.add(q, base, out=both), out=log_both)
        # twice the JSD, up to the base's entropy: sum q ln q - sum (q + alpha) ln (q + alpha)
        distance = torch.mul(q, log_q, out=buffer).addcmul_(both, log_both, value=-1).sum(dim=0)
        moved, pull = read_out.moved(q, buffer)
        better = (moved <= within) & (distance > furthest)
        furthest = torch.where(better, distance, furthest)
        best.lerp_(q, better.to(q.dtype))  # weight 0 or 1: one of the two, bit for bit
        torch.mul(log_q, -(0.5 + (restarts - 1) / restarts**2), out=slope).add_(log_both, alpha=0.5)
        _push_apart(slope, buffer, meetings, 1 / restarts**2)
        read_out.add(slope, pull * (PENALTY * (moved > epsilon)))
        slope.sub_(torch.mul(slope, q, out=buffer).sum(dim=0)).mul_(q)  # through the softmax
        _adam(log_q, slope, momentum, square, largest, buffer, step + 1)
    return best


def _meetings(slope: Tensor, q: Tensor, buffer: Tensor) -> list[tuple[tuple[Tensor, ...], ...]]:
    """Views of each restart beside the one `by` places before it, in a circle: made once, used at every step.

    For each distance `by`: (one, other, where their sum goes) twice, up to the end of the circle and around it, and
    (whose slope, which sum) twice; at half the circle the pairs have met from both ends already.
    """
    restarts, views = q.shape[1], []
    for by in range(1, restarts // 2 + 1):
        sums = (q[:, by:], q[:, :-by], buffer[:, by:]), (q[:, :by], q[:, -by:], buffer[:, :by])
        back = ((slope[:, :-by], buffer[:, by:]), (slope[:, -by:], buffer[:, :by])) if 2 * by != restarts else ()
        views.append((sums, back))
    return views


def _push_apart(slope: Tensor, buffer: Tensor, meetings: list, share: float) -> None:
    """Adds, in place, share x log(q_k + q_j) of every other restart j: the diversity's slope, up to log q_k."""
    for sums, back in meetings:
        for one, other, total in sums:
            torch.add(one, other, out=total)
        slope.add_(buffer.log_(), alpha=share)
        for whose, which in back:
            whose.add_(which, alpha=share)


def _adam(free: Tensor, slope: Tensor, momentum: Tensor, square: Tensor, largest: Tensor, buffer: Tensor, step: int):
    """One step of Adam with amsgrad (torch's defaults) in place, without the overhead of an optimizer object."""
    momentum.lerp_(slope, 0.1)
    square.mul_(0.999).addcmul_(slope, slope, value=0.001)
    torch.maximum(largest, square, out=largest)
    correction = (1 - 0.999**step) ** 0.5
    torch.sqrt(largest, out=buffer).add_(1e-8 * correction)
    free.addcdiv_(momentum, buffer, value=-LEARNING_RATE * correction / (1 - 0.9**step))


def _furthest(best: Tensor, base: Tensor, mask: Tensor, read_out, epsilon: float) -> Tensor:
    """(token, batch) in doubles: the restart with the largest JSD within epsilon, in doubles too, or the base."""
    q = best.double().masked_fill(~mask[:, None], 0)
    q, base = q / q.sum(dim=0), base.double()
    distance = jensen_shannon(q.movedim(0, -1), base.T)
    moved = read_out.distance(q, base[:, None])
    top, restart = distance.masked_fill(moved > epsilon, -1).max(dim=0)
    chosen = q.gather(1, restart.expand(1, 1, -1).expand(len(q), 1, -1))[:, 0]
    return torch.where(top > 0, chosen, base)


class AffineReadOut:
    """Predictions from the tokens' logits: all the search needs of a model whose read-out is affine."""

    def __init__(self, token_logits: Tensor, bias: Tensor, base: Tensor):
        self.classes = [part.T[:, None].contiguous() for part in token_logits.unbind(dim=-1)]  # (token, 1, batch) each
        self.bias = bias[:, None, None]
        self.base = self._chances(base[:, None])

    def _chances(self, q: Tensor, buffer: Tensor | None = None) -> Tensor:
        """(token, restart, batch) -> p (1, restart, batch) of one output, else (class, restart, batch)."""
        logits = torch.stack([torch.mul(q, part, out=buffer).sum(dim=0) for part in self.classes]) + self.bias
        return logits.sigmoid() if len(logits) == 1 else logits.softmax(dim=0)

    def distance(self, q: Tensor, base: Tensor) -> Tensor:
        """(restart, batch) total variation between the predictions of two attentions (token, restart, batch)."""
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

    def add(self, slope: Tensor, pull: Tensor) -> None:
        for part, by in zip(self.classes, pull, strict=True):
            slope.addcmul_(part, by)


class AnyReadOut:
    """The same through model.read_out and autograd, where the read-out is not affine."""

    def __init__(self, model: AttentionModel, output: ModelOutput, columns: Tensor, base: Tensor):
        self.model, self.output, self.columns = model, output, columns
        self.base = self._chances(base[:, None])

    def _chances(self, q: Tensor) -> Tensor:
        full = torch.zeros(
            *q.shape[:0:-1], self.output.mask.shape[1], dtype=self.output.attention.dtype, device=q.device
        )
        full[..., self.columns] = q.permute(2, 1, 0).to(full.dtype)
        return probabilities(self.model.read_out(self.output, full)).transpose(0, 1)

    def distance(self, q: Tensor, base: Tensor) -> Tensor:
        """(restart, batch) total variation between the predictions of two attentions (token, restart, batch)."""
        return total_variation(self._chances(q), self._chances(base))

    def moved(self, q: Tensor, buffer: Tensor) -> tuple[Tensor, Tensor]:
        """(restart, batch) total variation to the base, and its slope along the attention (token, restart, batch)."""
        with torch.enable_grad():
            free = q.detach().requires_grad_()
            moved = total_variation(self._chances(free), self.base)
            (slope,) = torch.autograd.grad(moved.sum(), free)
        return moved.detach(), slope

    def add(self, slope: Tensor, pull: Tensor) -> None:
        slope.add_(pull)
