"""Adversarial attention: as far as possible from the model's own, while the prediction stays within epsilon.

Jain & Wallace (2019), section 4.2.2: maximise JSD(alpha', alpha) subject to TVD(prediction', prediction) <= epsilon.
Two ways, per instance: the exact optimum for one output, and their search by gradients.
"""

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.fast.exact_adversary import optimum
from lib.fast.search_adversary import search
from lib.metrics import jensen_shannon, probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.quantity import JSD_BOUNDS, Quantity

METHODS = ("exact", "gradient")


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
        method: "exact", the optimum (one output with an affine read-out), or "gradient", Jain & Wallace's search, which
            keeps the best iterate that is within epsilon. Restarts, steps, seed and instance (batch,) are the search's.
    Returns:
        attention (batch, token), rows sum to 1 over the mask, and its JSD (batch,) in nats, 0 where there is no other.
    Raises:
        ValueError: epsilon or method is not allowed; the exact way is asked for where it does not hold.
    """
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
    if not epsilon >= 0:
        raise ValueError(f"epsilon is {epsilon}; a fraction of probability, 0 or more")
    base = output.attention.double()
    if method == "exact":
        affine = model.token_logits(output)
        if affine is None or output.logits.shape[-1] != 1:
            raise ValueError(
                "the exact adversary needs one output with an affine read-out; use method='gradient' for this model"
            )
        found = optimum((affine[0][:, :, 0] + affine[1]).double(), base, output.mask, epsilon)
    else:
        found = search(model, output, epsilon, restarts, steps, seed, instance)
    return found.to(output.attention.dtype), jensen_shannon(found, base).to(output.attention.dtype)


def adversary(
    epsilon: float = 0.01,
    method: str = "exact",
    with_attention: bool = False,
    max_tokens: int = 5000,
    name: str | None = None,
    **options,
) -> Quantity:
    """A quantity: {"jsd" (batch,) nats, "tvd" (batch,) fraction} of the adversarial attention of each text.

    Args:
        with_attention: also {"attention" (batch, token)}. options: those of adversarial_attention.
        max_tokens: longer texts are left out by `measure`; one of 20,000 tokens would take half a minute.
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
