"""Adversarial attention: as far as possible from the model's own, while the prediction stays within epsilon.

Jain & Wallace (2019), section 4.2.2: maximise JSD(alpha', alpha) subject to TVD(prediction', prediction) <= epsilon,
for each instance: the exact optimum for two classes, and their search by gradients.
"""

import math

import torch
from torch import Tensor
from torch.special import entr

from lib.datasets.batches import Batch
from lib.interventions.searched_adversary import searched_adversary
from lib.metrics.distances import jensen_shannon, probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.numerics import by_length
from lib.quantity import JSD_BOUNDS, Quantity
from lib.random_streams import streams

METHODS = ("exact", "gradient")
MAX_TOKENS = 5000  # of a text; one of 20,000 would take half a minute
PAIRS_AT_ONCE = 2**17  # of tokens that are enumerated


@torch.no_grad()
def adversarial_attention(
    model: AttentionModel,
    output: ModelOutput,
    epsilon: float,
    method: str = "exact",
    restarts: int = 5,
    steps: int = 500,
    seed: int = 0,
    instance: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The adversarial attention of each text and its distance from the model's own.

    Args:
        epsilon: how far the prediction may move, a fraction of probability.
        method: "exact", the optimum (two classes, affine read-out), or "gradient", Jain & Wallace's search, which keeps
            the best iterate that is within epsilon. Restarts, steps, seed and instance (batch,) are the search's.
    Returns:
        attention (batch, token), rows sum to 1 over the mask, and its JSD (batch,) in nats, 0 where there is no other.
    Raises:
        ValueError: epsilon or method is not allowed; the exact method is chosen where it does not hold.
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
    if not epsilon >= 0:
        raise ValueError(f"epsilon is {epsilon}; a fraction of probability, 0 or more")
    base = output.attention.double()
    if method == "exact":
        attention = exact_adversary(token_logits(model, output), base, output.mask, epsilon)
    else:
        attention = searched_adversary(model, output, epsilon, streams(seed, len(base), instance), restarts, steps)
    return attention.to(output.attention.dtype), jensen_shannon(attention, base).to(output.attention.dtype)


def adversary(epsilon: float = 0.01, method: str = "exact", with_attention: bool = False, **options) -> Quantity:
    """A quantity: {"jsd" (batch,) nats, "tvd" (batch,) fraction} of the adversarial attention; NaN if `is_too_slow`.

    Args:
        with_attention: also {"attention" (batch, token)}. options: those of adversarial_attention.
    """
    units = {"jsd": "nats", "tvd": "fraction"} | ({"attention": "fraction"} if with_attention else {})

    @torch.no_grad()
    def measured(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
        if is_too_slow(model, method):
            return dict.fromkeys(("jsd", "tvd"), torch.full_like(output.attention[:, 0], torch.nan))
        attention, jsd = adversarial_attention(model, output, epsilon, method, instance=batch.instance, **options)
        tvd = total_variation(probabilities(model.read_out(output, attention)), probabilities(output.logits))
        return dict(zip(units, (jsd, tvd, attention), strict=False))

    return Quantity(f"adversary_{method}", measured, units, {"jsd": JSD_BOUNDS}, max_tokens=MAX_TOKENS)


def is_too_slow(model: AttentionModel, method: str) -> bool:
    """Whether each step of a search would be a pass of a whole Hugging Face classifier."""
    return method == "gradient" and not getattr(model, "first_alone", True)


# --- the optimum


def token_logits(model: AttentionModel, output: ModelOutput) -> Tensor:
    """(batch, token): the logit with all attention on each token, in doubles; of two logits the second less the first.

    ValueError: the read-out is not affine, or there are more than two classes.
    """
    affine, outputs = model.token_logits(output), output.logits.shape[-1]
    if affine is None or outputs > 2:
        raise ValueError("the exact adversary needs two classes and an affine read-out; use method='gradient' here")
    logits = (affine[0] + affine[1]).double()
    return logits[:, :, 0] if outputs == 1 else logits[:, :, 1] - logits[:, :, 0]


@torch.no_grad()
def exact_adversary_definition(model: AttentionModel, output: ModelOutput, epsilon: float) -> Tensor:
    """The exact adversarial attention (batch, token) of two classes with an affine read-out, in doubles.

    JSD is convex in the attention q, and the q whose prediction is within epsilon are a polytope, as the logit is
    l . q: the maximum is at a vertex. A vertex is one token that alone is within epsilon, or two that are mixed so
    that the prediction is just p - epsilon or p + epsilon.
    """
    best = torch.zeros_like(output.attention, dtype=torch.float64)
    for row, logits in enumerate(token_logits(model, output)):
        mask = output.mask[row]
        own, logits = output.attention[row, mask].double(), logits[mask]
        one = torch.eye(len(own), dtype=own.dtype, device=own.device)
        p = (own @ logits).sigmoid()
        candidates = [own[None], one]
        for bound in (p - epsilon, p + epsilon):
            share = (bound.clamp(0, 1).logit() - logits) / (logits[:, None] - logits)  # of the first token of each pair
            first, second = ((share >= 0) & (share <= 1)).nonzero(as_tuple=True)
            share = share[first, second, None]
            candidates.append(share * one[first] + (1 - share) * one[second])
        candidates = torch.cat(candidates)
        allowed = ((candidates @ logits).sigmoid() - p).abs() <= epsilon + 1e-12
        best[row, mask] = candidates[jensen_shannon(candidates, own).masked_fill(~allowed, -1).argmax()]
    return best


def exact_adversary(logits: Tensor, attention: Tensor, mask: Tensor, epsilon: float) -> Tensor:
    """As `exact_adversary_definition`, of all texts at once: the best single token and the best pair at either bound.

    Args:
        logits: (batch, token) of each token with the decoder's bias; attention, mask: (batch, token). Doubles.
    """
    attention = attention / attention.sum(dim=-1, keepdim=True)
    low, high = _bounds((attention * logits.masked_fill(~mask, 0)).sum(dim=-1), epsilon)
    allowed = (logits >= low[:, None]) & (logits <= high[:, None]) & mask
    alone = (2 * math.log(2) - entr(attention) + entr(1 + attention)).masked_fill(~allowed, -torch.inf)
    most, token = alone.max(dim=-1)
    best = torch.zeros_like(attention).scatter_(1, token[:, None], 1.0)
    for bound in (low[:, None], high[:, None]):
        value, mixed = _best_pair((logits - bound).masked_fill(~mask | bound.isinf(), 0), attention)
        best = torch.where((value > most)[:, None], mixed, best)
        most = torch.maximum(value, most)
    moved = jensen_shannon(best, attention) > 0
    return torch.where(((most > -torch.inf) & moved)[:, None], best, attention)


def _bounds(logit: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """The logits of p - epsilon and p + epsilon, infinite where those leave [0, 1]: (batch,) each."""
    p, rest = torch.sigmoid(logit), torch.sigmoid(-logit)
    low = torch.where(p > epsilon, (p - epsilon).log() - (rest + epsilon).log(), -torch.inf)
    high = torch.where(rest > epsilon, (p + epsilon).log() - (rest - epsilon).log(), torch.inf)
    return torch.minimum(low, logit), torch.maximum(high, logit)


def _best_pair(distance: Tensor, attention: Tensor) -> tuple[Tensor, Tensor]:
    """The best mixture of two tokens on either side of a bound; those below in blocks, to bound the memory.

    Args:
        distance: (batch, token) of the tokens' logits to the bound; 0 where there is no token, or no bound.
    Returns:
        (batch,) twice its JSD, -inf where there is no such pair; (batch, token).
    """
    best, mixed = torch.full_like(distance[:, 0], -torch.inf), torch.zeros_like(distance)
    for rows in by_length((distance < 0).sum(dim=-1) * (distance > 0).sum(dim=-1), PAIRS_AT_ONCE):
        there = distance[rows], attention[rows]
        (below, near, first), (above, far, second) = _gathered(there[0] < 0, *there), _gathered(there[0] > 0, *there)
        width = above.shape[1]
        for block in torch.arange(below.shape[1], device=rows.device).split(max(1, PAIRS_AT_ONCE // above.numel())):
            share = far[:, None] / (far[:, None] - near[:, block, None])  # of the lower token
            alpha = first[:, block, None], second[:, None]
            value = 2 * math.log(2) - entr(alpha[1]) - entr(alpha[0])
            value = value - entr(share) + entr(share + alpha[0]) - entr(1 - share) + entr(1 - share + alpha[1])
            top, at = value.nan_to_num_(nan=-torch.inf).flatten(1).max(dim=-1, keepdim=True)
            pair = torch.cat([below[:, block].gather(1, at // width), above.gather(1, at % width)], dim=1)
            weight = share.flatten(1).gather(1, at)
            found = torch.zeros_like(there[0]).scatter_(1, pair, torch.cat([weight, 1 - weight], dim=1))
            mixed[rows] = torch.where(top > best[rows, None], found, mixed[rows])
            best[rows] = torch.maximum(best[rows], top[:, 0])
    return best, mixed


def _gathered(side: Tensor, distance: Tensor, attention: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One side's tokens moved to the front: their positions, distances to the bound (NaN behind them), attention."""
    width = int(side.sum(dim=-1).max())
    present, token = side.to(torch.uint8).sort(dim=-1, descending=True, stable=True)
    present, token = present[:, :width].bool(), token[:, :width]
    return token, distance.gather(1, token).masked_fill(~present, torch.nan), attention.gather(1, token)
