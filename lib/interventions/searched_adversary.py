"""Jain & Wallace's (2019) search for adversarial attention as they wrote it, and sooner for affine read-outs."""

import numpy as np
import torch
from torch import Tensor

from lib import numerics as elementwise
from lib.metrics.distances import jensen_shannon, probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.models.evaluation import gradients_enabled
from lib.numerics import by_length, rows_of
from lib.progress import note
from lib.random_streams import normal

CELLS = 2**19  # tokens x restarts x texts at once: a step's fixed cost is small, and its 11 buffers take 23 MB
PENALTY, LEARNING_RATE, SPREAD = 500.0, 0.01, 3.0
RENEWED = 50  # steps after which the free logarithms are made those of the attention again: exp stays in range
AWAY = -60.0  # log attention of padding: e^-60 of nothing, but no infinity in the logarithms


@torch.no_grad()
def searched_adversary_definition(
    model: AttentionModel, output: ModelOutput, epsilon: float, stream: np.ndarray, restarts: int = 5, steps: int = 500
) -> Tensor:
    """Jain & Wallace's search by gradients for the adversarial attention (batch, token).

    Restarts from log(1/n) + 3 N(0, 1), by `streams` (text,), Adam with amsgrad, on the sum over texts of
    - sum_k JSD(q_k, alpha) + 500 sum_k relu(TVD_k - epsilon) - mean over all (j, k) of JSD(q_j, q_k).
    The last term keeps the restarts apart.
    Differs from the paper: not the last iterate but the best one within epsilon is kept; the attention itself, at
    distance 0, is the first.
    """
    mask, own, p = output.mask[:, None], output.attention[:, None].detach(), probabilities(output.logits.detach())
    free = starts(stream, output.mask.T, restarts).permute(2, 0, 1).to(own).clone()
    optimizer = torch.optim.Adam([free.requires_grad_()], lr=LEARNING_RATE, amsgrad=True)
    best, furthest = own.repeat(1, restarts, 1), own.new_zeros(len(own), restarts)
    one, other = torch.triu_indices(restarts, restarts, 1)
    for step in range(steps + 1):
        note(f"{len(own):,} texts: step {step:,} of {steps:,}")
        with gradients_enabled(model):
            q = torch.softmax(free.masked_fill(~mask, -torch.inf), dim=-1)  # (batch, restart, token)
            moved = total_variation(probabilities(model.read_out(output, q)), p[:, None])
            distance = jensen_shannon(q, own)
            apart = 2 * jensen_shannon(q[:, one], q[:, other]).sum() / restarts**2  # each pair is (j, k) and (k, j)
            loss = (PENALTY * (moved - epsilon).relu() - distance).sum() - apart
            (free.grad,) = torch.autograd.grad(loss, free)
        better = (moved <= epsilon) & (distance > furthest)
        best = torch.where(better[:, :, None], q.detach(), best)
        furthest = torch.where(better, distance.detach(), furthest)
        optimizer.step()
    return best[torch.arange(len(best)), furthest.argmax(dim=1)].double()


@torch.no_grad()
def searched_adversary(
    model: AttentionModel, output: ModelOutput, epsilon: float, stream: np.ndarray, restarts: int = 5, steps: int = 500
) -> Tensor:
    """`searched_adversary_definition`, many texts at a time; doubles (batch, token).

    Of an affine read-out the gradient is written by hand, in the space of the tokens' logits.
    """
    affine, lengths = model.token_logits(output), output.mask.sum(dim=-1)
    found = output.attention.double().clone()
    for rows in by_length(lengths, CELLS // restarts):
        own_stream = stream[rows.cpu().numpy()]
        if affine is None:
            options = epsilon, own_stream, restarts, steps
            found[rows] = searched_adversary_definition(model, rows_of(output, rows), *options)
            continue
        cells = rows[:, None], output.mask[rows].any(dim=0).nonzero()[:, 0]
        mask, base = output.mask[cells].T.contiguous(), output.attention[cells].T.contiguous()  # (token, batch)
        terms, bias = affine[0][cells].permute(2, 1, 0).contiguous(), affine[1][:, None, None]  # (class, token, batch)
        start = starts(own_stream, mask, restarts).to(base.dtype)
        with torch.inference_mode():  # a small operation costs less
            best = _climb(start, base, terms, bias, epsilon, steps)
        q, own = best.double().masked_fill(~mask, 0), base.double()
        q = q / q.sum(dim=1, keepdim=True)
        moved = _moved(_chances(q, terms, bias), _chances(own[None], terms, bias))
        distance = jensen_shannon(q.mT, own.T).masked_fill(moved > epsilon, -1)
        top, restart = distance.max(dim=0)  # in doubles, too: the furthest restart that is within epsilon, or the base
        found[cells] = torch.where(top > 0, q.gather(0, restart.expand(1, *own.shape))[0], own).T
    return found


def starts(stream: np.ndarray, mask: Tensor, restarts: int) -> Tensor:
    """(restart, token, batch): log(1 / n) + 3 N(0, 1), whose numbers belong to instance, restart and token."""
    real = mask.cpu().numpy()
    place = np.maximum(real.cumsum(axis=0) - 1, 0).astype(np.uint64)  # among the real tokens
    counter = (np.arange(restarts, dtype=np.uint64)[:, None] << np.uint64(32))[:, :, None] + place
    noise = torch.from_numpy(normal(stream, counter)).to(mask.device)
    start = SPREAD * noise - mask.sum(dim=0).double().log()
    return torch.where(mask, start, AWAY)


def _climb(start: Tensor, base: Tensor, terms: Tensor, bias: Tensor, epsilon: float, steps: int) -> Tensor:
    """(restart, token, batch): the best attention of each restart that is within epsilon, `base` where none was.

    The slope of the distances along each q_k is a weighted sum of log q_k, log(q_k + alpha) and log(q_k + q_j) of each
    pair of restarts: a matrix product. What is the same for all tokens is left out: the softmax takes it away.
    """
    restarts = len(start)
    one, other = torch.triu_indices(restarts, restarts, 1)
    own, share = torch.eye(restarts, dtype=start.dtype, device=start.device), 1 / restarts**2
    pairs = own[one] + own[other]  # (pair, restart): times the q_k it is q_k + q_j
    weights = torch.cat([-(0.5 + (restarts - 1) * share) * own, 0.5 * own, share * pairs.T], dim=1)
    logs = start.new_empty(2 * restarts + len(pairs), *base.shape)
    free, log_both, log_pairs = logs.split([restarts, restarts, len(pairs)])
    free.copy_(start)
    q, both, buffer = (torch.empty_like(start) for _ in range(3))
    slope = both  # in the same place: fewer buffers to move through the processor's cache
    momentum, square, largest = (torch.zeros_like(start) for _ in range(3))  # of Adam
    within = epsilon - 16 * torch.finfo(start.dtype).eps  # not beyond epsilon by rounding
    best, p = base.expand_as(start).clone(), _chances(base[None], terms, bias)
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
        chance = _chances(q, terms, bias, buffer)
        moved, half = _moved(chance, p), (chance - p).sign() / min(len(p), 2)
        better = (moved <= within) & (distance > furthest)
        furthest = torch.where(better, distance, furthest)
        best.lerp_(q, better[:, None].to(q.dtype))  # weight 0 or 1: one of the two, bit for bit
        torch.mm(weights, logs.flatten(1), out=slope.flatten(1))
        pull = chance * (half - (chance * half).sum(dim=0)) * (moved > epsilon)  # of `moved`, along the logits
        for term, by in zip(terms, pull, strict=True):
            slope.addcmul_(term, by[:, None], value=PENALTY)
        slope.mul_(q).addcmul_(q, slope.sum(dim=1, keepdim=True), value=-1)  # through the softmax
        # Adam with amsgrad, without an optimizer's fixed cost in each step: that would take half as long again
        momentum.lerp_(slope, 0.1)
        square.mul_(0.999).addcmul_(slope, slope, value=0.001)
        torch.maximum(largest, square, out=largest)
        unbiased = (1 - 0.999 ** (step + 1)) ** 0.5
        root = torch.sqrt(largest, out=buffer).add_(1e-8 * unbiased)
        free.addcdiv_(momentum, root, value=-LEARNING_RATE * unbiased / (1 - 0.9 ** (step + 1)))
    return best


def _chances(q: Tensor, terms: Tensor, bias: Tensor, buffer: Tensor | None = None) -> Tensor:
    """Attention (restart, token, batch) -> p (1, restart, batch) of one output, else (class, restart, batch)."""
    logits = torch.stack([torch.mul(q, term, out=buffer).sum(dim=1) for term in terms]) + bias
    return logits.sigmoid() if len(logits) == 1 else logits.softmax(dim=0)


def _moved(chance: Tensor, p: Tensor) -> Tensor:
    """(restart, batch) total variation between what `_chances` gives."""
    return (chance - p).abs().sum(dim=0) / min(len(p), 2)
