"""Adversarial attention: as far as possible from the model's own, while the prediction stays within epsilon.

Jain & Wallace (2019), section 4.2.2: maximise JSD(alpha', alpha) subject to TVD(prediction', prediction) <= epsilon,
for each instance: the exact optimum for one output, and their search by gradients.
"""

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.fast.counter_rng import streams_of
from lib.fast.exact_adversary import optimum
from lib.fast.search_adversary import search, starts
from lib.metrics.distances import jensen_shannon, probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.models.evaluation import gradients_enabled
from lib.quantity import JSD_BOUNDS, Quantity

METHODS = ("exact", "gradient")
MAX_TOKENS = 5000  # of a text; one of 20,000 would take half a minute


@torch.no_grad()
def exact_adversary_definition(model: AttentionModel, output: ModelOutput, epsilon: float) -> Tensor:
    """The exact adversarial attention (batch, token) of a model with one output and an affine read-out, in doubles.

    JSD is convex in the attention q, and the q whose prediction is within epsilon are a polytope, as the logit is
    l . q: the maximum is at a vertex. A vertex is one token that alone is within epsilon, or two that are mixed so
    that the prediction is just p - epsilon or p + epsilon.
    """
    found = torch.zeros_like(output.attention, dtype=torch.float64)
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
        found[row, mask] = candidates[jensen_shannon(candidates, own).masked_fill(~allowed, -1).argmax()]
    return found


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
    stream = streams_of(seed, len(own), instance)
    free = starts(stream, output.mask.T, restarts).permute(2, 0, 1).to(own).clone()
    optimizer = torch.optim.Adam([free.requires_grad_()], lr=0.01, amsgrad=True)
    best, furthest = own.repeat(1, restarts, 1), own.new_zeros(len(own), restarts)
    for _ in range(steps + 1):
        with gradients_enabled(model):
            q = torch.softmax(free.masked_fill(~mask, -torch.inf), dim=-1)  # (batch, restart, token)
            moved = total_variation(probabilities(model.read_out(output, q)), p[:, None])
            distance = jensen_shannon(q, own)
            apart = jensen_shannon(q[:, :, None], q[:, None]).mean(dim=(1, 2))
            loss = (500 * (moved - epsilon).relu() - distance).sum() - apart.sum()
            (free.grad,) = torch.autograd.grad(loss, free)
        better = (moved <= epsilon) & (distance > furthest)
        best = torch.where(better[:, :, None], q.detach(), best)
        furthest = torch.where(better, distance.detach(), furthest)
        optimizer.step()
    return best[torch.arange(len(best)), furthest.argmax(dim=1)].double()


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

    As `exact_adversary_definition` and `searched_adversary_definition`, by shortcuts that hold for every model.

    Args:
        epsilon: how far the prediction may move, a fraction of probability.
        method: "exact", the optimum (one output with an affine read-out), or "gradient", Jain & Wallace's search, which
            keeps the best iterate that is within epsilon. Restarts, steps, seed and instance (batch,) are the search's.
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
        found = optimum(token_logits(model, output), base, output.mask, epsilon)
    else:
        found = search(model, output, epsilon, restarts, steps, streams_of(seed, len(base), instance))
    return found.to(output.attention.dtype), jensen_shannon(found, base).to(output.attention.dtype)


def token_logits(model: AttentionModel, output: ModelOutput) -> Tensor:
    """(batch, token): the one logit with all attention on each token, in doubles."""
    affine = model.token_logits(output)
    if affine is None or output.logits.shape[-1] != 1:
        raise ValueError(
            "the exact adversary needs one output with an affine read-out; use method='gradient' for this model"
        )
    return (affine[0][:, :, 0] + affine[1]).double()


def adversary(
    epsilon: float = 0.01,
    method: str = "exact",
    with_attention: bool = False,
    max_tokens: int = MAX_TOKENS,
    name: str | None = None,
    **options,
) -> Quantity:
    """A quantity: {"jsd" (batch,) nats, "tvd" (batch,) fraction} of the adversarial attention of each text.

    Args:
        with_attention: also {"attention" (batch, token)}. options: those of adversarial_attention.
        max_tokens: longer texts are left out by `measure`.
        name: by default adversary_exact or adversary_gradient.
    """

    def found(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
        with torch.no_grad():
            attention, jsd = adversarial_attention(model, output, epsilon, method, instance=batch.instance, **options)
            moved = probabilities(model.read_out(output, attention))
            tvd = total_variation(moved, probabilities(output.logits))
        return {"jsd": jsd, "tvd": tvd} | ({"attention": attention} if with_attention else {})

    units = {"jsd": "nats", "tvd": "fraction"} | ({"attention": "fraction"} if with_attention else {})
    return Quantity(name or f"adversary_{method}", found, units, {"jsd": JSD_BOUNDS}, max_tokens=max_tokens)
