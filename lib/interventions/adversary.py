"""Adversarial attention: as far as possible from the model's own, while the prediction stays within epsilon.

Jain & Wallace (2019), section 4.2.2: maximise JSD(alpha', alpha) subject to TVD(prediction', prediction) <= epsilon,
for each instance: the exact optimum for two classes, and their search by gradients.
"""

import math

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.interventions.searched_adversary import searched_adversary
from lib.metrics.distances import jensen_shannon, probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.numerics import by_length
from lib.quantity import JSD_BOUNDS, Quantity

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
        attention = searched_adversary(model, output, epsilon, restarts, steps, seed, instance)
    return attention.to(output.attention.dtype), jensen_shannon(attention, base).to(output.attention.dtype)


def adversary(
    epsilon: float = 0.01,
    method: str = "exact",
    with_attention: bool = False,
    max_tokens: int = MAX_TOKENS,
    **options,
) -> Quantity:
    """A quantity: {"jsd" (batch,) nats, "tvd" (batch,) fraction} of the adversarial attention of each text.

    Args:
        with_attention: also {"attention" (batch, token)}. options: those of adversarial_attention.
        max_tokens: longer texts are left out by `measure`.
    """

    def measured(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
        with torch.no_grad():
            attention, jsd = adversarial_attention(model, output, epsilon, method, instance=batch.instance, **options)
            moved = probabilities(model.read_out(output, attention))
            tvd = total_variation(moved, probabilities(output.logits))
        return {"jsd": jsd, "tvd": tvd} | ({"attention": attention} if with_attention else {})

    units = {"jsd": "nats", "tvd": "fraction"} | ({"attention": "fraction"} if with_attention else {})
    return Quantity(f"adversary_{method}", measured, units, {"jsd": JSD_BOUNDS}, max_tokens=max_tokens)


# --- the optimum


def token_logits(model: AttentionModel, output: ModelOutput) -> Tensor:
    """(batch, token): the logit with all attention on each token, in doubles; of two logits the second less the first.

    Raises:
        ValueError: the read-out is not affine, or there are more than two classes.
    """
    affine, outputs = model.token_logits(output), output.logits.shape[-1]
    if affine is None or outputs > 2:
        raise ValueError(
            "the exact adversary needs two classes and an affine read-out; use method='gradient' for this model"
        )
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
        own, logits, one = output.attention[row, mask].double(), logits[mask], torch.eye(int(mask.sum())).double()
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
    alone = (2 * math.log(2) + _plogp(attention) - _plogp(1 + attention)).masked_fill(~allowed, -torch.inf)
    best, token = alone.max(dim=-1)
    best_attention = torch.zeros_like(attention).scatter_(1, token[:, None], 1.0)
    for bound in (low, high):
        value, pair, weight = _best_pair(logits, attention, mask, bound)
        better = value > best
        best = torch.where(better, value, best)
        mixed = torch.zeros_like(attention).scatter_(1, pair, torch.stack([weight, 1 - weight], dim=-1))
        best_attention = torch.where(better[:, None], mixed, best_attention)
    moved = jensen_shannon(best_attention, attention) > 0
    return torch.where(((best > -torch.inf) & moved)[:, None], best_attention, attention)


def _bounds(logit: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """The logits of p - epsilon and p + epsilon, infinite where those leave [0, 1]: (batch,) each."""
    p, rest = torch.sigmoid(logit), torch.sigmoid(-logit)
    low = torch.where(p > epsilon, (p - epsilon).log() - (rest + epsilon).log(), -torch.inf)
    high = torch.where(rest > epsilon, (p + epsilon).log() - (rest - epsilon).log(), torch.inf)
    return torch.minimum(low, logit), torch.maximum(high, logit)


def _plogp(p: Tensor) -> Tensor:
    """p ln p, 0 at 0."""
    return p * p.clamp_min(1e-300).log()


def _best_pair(logits: Tensor, attention: Tensor, mask: Tensor, bound: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The best two tokens on either side of a bound.

    Returns:
        (batch,) twice the JSD, -inf where there is no such pair; (batch, 2) tokens; (batch,) the first one's share.
    """
    below, above = (logits < bound[:, None]) & mask, (logits > bound[:, None]) & mask
    below &= bound.isfinite()[:, None]
    pairs = below.sum(dim=-1) * above.sum(dim=-1)
    value, pair = torch.full_like(bound, -torch.inf), torch.zeros(len(bound), 2, dtype=torch.long, device=mask.device)
    for rows in by_length(pairs, PAIRS_AT_ONCE):
        sides = [_gathered(side[rows], logits[rows] - bound[rows, None], attention[rows]) for side in (below, above)]
        value[rows], pair[rows] = _enumerate(*sides)
    near, far = (logits.gather(1, pair) - bound[:, None]).unbind(dim=-1)
    weight = torch.where(value > -torch.inf, far / (far - near), 1.0)
    pair = torch.where((value > -torch.inf)[:, None], pair, torch.tensor([0, 1], device=mask.device) % mask.shape[1])
    return value, pair, weight


def _gathered(side: Tensor, distance: Tensor, attention: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One side's tokens moved to the front: their positions, distances to the bound (NaN behind them), attention."""
    width = int(side.sum(dim=-1).max())
    present, token = side.to(torch.uint8).sort(dim=-1, descending=True, stable=True)
    present, token = present[:, :width].bool(), token[:, :width]
    return token, distance.gather(1, token).masked_fill(~present, torch.nan), attention.gather(1, token)


def _enumerate(below: tuple[Tensor, ...], above: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """(row,) twice the JSD of the best pair and (row, 2) its tokens; the lower ones in blocks, to bound the memory."""
    (token_i, distance_i, attention_i), (token_j, distance_j, attention_j) = below, above
    rows, width = token_j.shape
    best = torch.full_like(distance_j[:, 0], -torch.inf)
    pair = torch.zeros(rows, 2, dtype=torch.long, device=best.device)
    own = 2 * math.log(2) + _plogp(attention_j)[:, None]
    for block in torch.arange(token_i.shape[1], device=best.device).split(max(1, PAIRS_AT_ONCE // (rows * width))):
        first = attention_i[:, block, None]
        weight = distance_j[:, None] / (distance_j[:, None] - distance_i[:, block, None])
        value = own + _plogp(first) + _plogp(weight)
        value.sub_(_plogp(weight + first))
        rest = weight.neg_().add_(1)
        value.add_(_plogp(rest)).sub_(_plogp(rest + attention_j[:, None]))
        top, at = value.nan_to_num_(nan=-torch.inf).flatten(1).max(dim=-1)
        better = top > best
        chosen = torch.stack(
            [token_i.gather(1, block[at // width][:, None])[:, 0], token_j.gather(1, (at % width)[:, None])[:, 0]],
            dim=-1,
        )
        best, pair = torch.where(better, top, best), torch.where(better[:, None], chosen, pair)
    return best, pair
