"""What an affine read-out, logits = attention @ token_logits + bias, makes cheap.

Each token's logits are computed once, and under another attention the logits of a text are sums of them.

All sums are of what remains, in doubles: one minus what was erased would cancel where that is nearly all.
"""

import numpy as np
import torch
from torch import Tensor

from lib.fast.counter_rng import orders_in_any_batch, streams_of
from lib.models import AttentionModel, ModelOutput
from lib.models.interface import class_terms, projection_of, sum_of_others
from lib.numerics import by_length
from lib.projections import project_the_rest

CELLS = 2**18  # draws x tokens x texts permuted at once: they stay in the processor's cache
PROJECTED = 2**20  # scores projected again at once


def logits_along(model: AttentionModel, output: ModelOutput, order: Tensor, steps: Tensor) -> Tensor:
    """See `lib.interventions.erasure.logits_along_definition`: sums of the terms along the order, from its end."""
    weights, terms, bias = class_terms(model, output)
    weights, terms = weights.gather(1, order), terms.gather(1, order[:, :, None].expand_as(terms))
    mass = from_the_end(weights).gather(1, steps)
    sums = from_the_end(weights[:, :, None] * terms).gather(1, steps[:, :, None].expand(-1, -1, len(bias)))
    return _renormalised(sums, mass, bias)


def logits_without_each_item(model: AttentionModel, output: ModelOutput) -> Tensor:
    """See `lib.interventions.single_erasure`: of the others the sums before and after each item."""
    weights, terms, bias = class_terms(model, output)
    logits = _renormalised(sum_of_others(weights[:, :, None] * terms), sum_of_others(weights), bias)
    return logits.masked_fill(~output.mask[:, :, None], torch.nan)


def from_the_end(values: Tensor) -> Tensor:
    """What remains after 0, 1, ... items: (batch, token, ...) -> sums (batch, token + 1, ...), the last of them 0."""
    sums = values.flip(1).cumsum(dim=1).flip(1)
    return torch.cat([sums, torch.zeros_like(sums[:, :1])], dim=1)


def _renormalised(sums: Tensor, mass: Tensor, bias: Tensor) -> Tensor:
    """Logits of the attended average: sums (batch, step, class) of weights @ terms, mass (batch, step) of weights."""
    mass = mass[:, :, None]
    return torch.where(mass > 0, sums / torch.where(mass > 0, mass, 1), 0) + bias


def gradient_of_weights(model: AttentionModel, output: ModelOutput) -> Tensor:
    """See `lib.importance.rankings.by_gradient_definition`: p_k (L_ik - sum_j p_j L_ij), L the terms, k the largest."""
    weights, terms, bias = class_terms(model, output)
    chances = ((weights[:, None] @ terms).squeeze(1) + bias).softmax(dim=-1)
    largest, own = chances.max(dim=-1)
    of_own = terms.gather(2, own[:, None, None].expand(-1, terms.shape[1], 1)).squeeze(2)
    return largest[:, None] * (of_own - (terms @ chances[:, :, None]).squeeze(2))


def logits_of_each_token(model: AttentionModel, output: ModelOutput) -> Tensor:
    """See `lib.interventions.substitution`: logits with all attention on one token, (batch, token, class)."""
    token_logits, bias = model.token_logits(output)
    return token_logits + bias


def logits_without_each_state(model: AttentionModel, output: ModelOutput) -> tuple[Tensor, Tensor]:
    """See `lib.importance.leave_one_out`: only states that have weight change anything when they are left out."""
    projection = projection_of(model)
    scores, (terms, bias) = output.scores.double(), (part.double() for part in model.token_logits(output))
    attention = projection(scores, output.mask)
    own = (attention[:, None] @ terms).squeeze(1) + bias
    logits = own[:, None].repeat(1, output.mask.shape[1], 1)
    row, position = (output.mask & (attention > 0)).nonzero(as_tuple=True)
    for some in by_length(output.mask.sum(dim=1)[row], PROJECTED):
        rows, positions = row[some], position[some]
        kept = output.mask[rows].scatter(1, positions[:, None], False)
        rest = project_the_rest(projection, scores[rows], kept)
        logits[rows, positions] = (rest[:, None] @ terms[rows]).squeeze(1) + bias
    return own, logits.masked_fill(~output.mask[:, :, None], torch.nan)


def permuted(
    model: AttentionModel, output: ModelOutput, draws: int, seed: int = 0, instance: Tensor | None = None
) -> Tensor:
    """See `lib.interventions.substitution.permuted_definition`: sums of token logits, weighed in other orders."""
    token_logits, bias = model.token_logits(output)
    front = output.mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices  # real tokens first
    lengths, attention = output.mask.sum(dim=-1), output.attention.gather(1, front).cpu().numpy()
    token_logits = token_logits.gather(1, front[:, :, None].expand_as(token_logits))
    stream = streams_of(seed, len(output.mask), instance)
    logits = output.logits.new_empty(len(stream), draws, output.logits.shape[-1])
    for rows in by_length(lengths, CELLS // max(draws, 1)):
        width, chosen = int(lengths[rows[-1]]), rows.cpu().numpy()
        real = np.arange(width) < lengths[rows].cpu().numpy()[:, None]
        order = orders_in_any_batch(stream[chosen], draws, real)
        order += (np.arange(len(order)) * width)[:, None, None]  # into the rows laid end to end: faster than a gather
        shuffled = torch.from_numpy(attention[chosen, :width].ravel().take(order, mode="wrap")).to(front.device)
        # the product turned round: with few classes, a ninth of the time
        logits[rows] = (token_logits[rows, :width].mT @ shuffled.mT).mT + bias
    return logits
