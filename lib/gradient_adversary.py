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
from lib.metrics import jensen_shannon, probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.streams import normal, streams

CELLS = 2**15  # tokens x restarts x texts at once: they stay in the processor's cache
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
    found = output.attention.double().clone()
    for rows in by_length(output.mask.sum(dim=-1), CELLS // max(restarts, 1)):
        part = rows_of(output, rows)
        columns = part.mask.any(dim=0).nonzero()[:, 0]
        read_out = _read_out(model, part, columns)
        mask, base = part.mask[:, columns].T, part.attention[:, columns].T  # (token, batch)
        start = _start(stream[rows.cpu().numpy()], mask, restarts).to(base.dtype)
        best = _climb(start, base, mask, read_out, epsilon, steps)
        found[rows[:, None], columns] = _furthest(best, base, mask, read_out, epsilon).T
    return found


def _start(stream: np.ndarray, mask: Tensor, restarts: int) -> Tensor:
    """(token, restart, batch): log(1 / n) + 3 N(0, 1); the numbers belong to the instance, the restart and the token."""
    real = mask.cpu().numpy()
    place = np.maximum(real.cumsum(axis=0) - 1, 0).astype(np.uint64)  # among the real tokens
    counter = (np.arange(restarts, dtype=np.uint64)[:, None] << np.uint64(32)) + place[:, None]
    noise = torch.from_numpy(normal(stream, counter)).to(mask.device)
    start = SPREAD * noise - mask.sum(dim=0).double().log()
    return torch.where(mask[:, None], start, AWAY)


def _climb(start: Tensor, base: Tensor, mask: Tensor, read_out, epsilon: float, steps: int) -> Tensor:
    """(token, restart, batch): the best attention of each restart that is within epsilon, `base` where none was."""
    restarts, base = start.shape[1], base[:, None]
    within = epsilon - 16 * torch.finfo(start.dtype).eps  # not beyond epsilon by rounding
    free = torch.nn.Parameter(start)
    optimizer = torch.optim.Adam([free], lr=LEARNING_RATE, amsgrad=True, fused=True)
    best = base.expand_as(start).clone()
    furthest = (torch.special.entr(base).sum(dim=0) - 2 * np.log(2)).expand_as(start[0])  # `distance` of the base
    free.grad, weight = torch.empty_like(start), torch.empty_like(start)
    for _ in range(steps + 1):
        log_q = torch.log_softmax(free.detach(), dim=0)
        q = log_q.exp()
        both = q + base
        log_both = both.log()
        # twice the JSD, up to the base's entropy: sum q ln q - sum (q + alpha) ln (q + alpha)
        distance = torch.mul(q, log_q, out=weight).sum(dim=0) - both.mul_(log_both).sum(dim=0)
        moved, pull = read_out.moved(q)
        better = (moved <= within) & (distance > furthest)
        furthest = torch.where(better, distance, furthest)
        torch.where(better, q, best, out=best)
        slope = torch.mul(log_q, -(0.5 + (restarts - 1) / restarts**2), out=free.grad).add_(log_both, alpha=0.5)
        _push_apart(slope, q)
        read_out.add(slope, pull * (PENALTY * (moved > epsilon)))
        slope.sub_(torch.mul(slope, q, out=weight).sum(dim=0)).mul_(q)  # through the softmax
        optimizer.step()
    return best


def _push_apart(slope: Tensor, q: Tensor) -> None:
    """Adds, in place, log(q_k + q_j) / K^2 of every other restart j: the diversity's slope, up to log q_k."""
    restarts = q.shape[1]
    for by in range(1, restarts // 2 + 1):
        log_pair = q.roll(by, dims=1).add_(q).log_()
        slope.add_(log_pair, alpha=1 / restarts**2)
        if 2 * by != restarts:  # at half the circle the pair has met from both ends
            slope.add_(log_pair.roll(-by, dims=1), alpha=1 / restarts**2)


def _furthest(best: Tensor, base: Tensor, mask: Tensor, read_out, epsilon: float) -> Tensor:
    """(token, batch) in doubles: the restart with the largest JSD that is within epsilon in doubles too, or the base."""
    q = best.double().masked_fill(~mask[:, None], 0)
    q, base = q / q.sum(dim=0), base.double()
    distance = jensen_shannon(q.movedim(0, -1), base.T)
    moved = total_variation(read_out.prediction(q), read_out.prediction(base[:, None]))
    top, restart = distance.masked_fill(moved > epsilon, -1).max(dim=0)
    chosen = q.gather(1, restart.expand(1, 1, -1).expand(len(q), 1, -1))[:, 0]
    return torch.where(top > 0, chosen, base)


class AffineReadOut:
    """Predictions from the tokens' logits: all the search needs of a model whose read-out is affine."""

    def __init__(self, token_logits: Tensor, bias: Tensor, base: Tensor):
        self.classes = [part.T[:, None].contiguous() for part in token_logits.unbind(dim=-1)]  # (token, 1, batch) each
        self.bias = bias
        self.base = self.prediction(base.T[:, None])

    def prediction(self, q: Tensor) -> Tensor:
        """(token, restart, batch) -> (restart, batch, class) probabilities."""
        return probabilities(torch.stack([(q * part).sum(dim=0) for part in self.classes], dim=-1) + self.bias)

    def moved(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """(restart, batch) total variation to the base, and its slope along the logits (class, restart, batch)."""
        chance = self.prediction(q)
        away = chance - self.base
        sign = away.sign() / 2
        pull = chance * (sign - (chance * sign).sum(dim=-1, keepdim=True))
        return away.abs().sum(dim=-1) / 2, pull[..., -len(self.classes) :].movedim(-1, 0)  # of (1 - p, p) the last

    def add(self, slope: Tensor, pull: Tensor) -> None:
        for part, by in zip(self.classes, pull, strict=True):
            slope.addcmul_(part, by)


class AnyReadOut:
    """The same through model.read_out and autograd, where the read-out is not affine."""

    def __init__(self, model: AttentionModel, output: ModelOutput, columns: Tensor, base: Tensor):
        self.model, self.output, self.columns = model, output, columns
        self.base = self.prediction(base.T[:, None])

    def prediction(self, q: Tensor) -> Tensor:
        full = torch.zeros(
            *q.shape[:0:-1], self.output.mask.shape[1], dtype=self.output.attention.dtype, device=q.device
        )
        full[..., self.columns] = q.permute(2, 1, 0).to(full.dtype)
        return probabilities(self.model.read_out(self.output, full)).transpose(0, 1)

    def moved(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """(restart, batch) total variation to the base, and its slope along the attention (token, restart, batch)."""
        with torch.enable_grad():
            free = q.detach().requires_grad_()
            moved = total_variation(self.prediction(free), self.base)
            (slope,) = torch.autograd.grad(moved.sum(), free)
        return moved.detach(), slope

    def add(self, slope: Tensor, pull: Tensor) -> None:
        slope.add_(pull)


def _read_out(model: AttentionModel, output: ModelOutput, columns: Tensor) -> AffineReadOut | AnyReadOut:
    base, affine = output.attention[:, columns], model.token_logits(output)
    return AffineReadOut(affine[0][:, columns], affine[1], base) if affine else AnyReadOut(model, output, columns, base)
