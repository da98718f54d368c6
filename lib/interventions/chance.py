"""How far an adversary gets by chance, and how far any attention could: what an adversarial attention is held against.

With equal weights over many tokens nearly every text has an adversary, whatever its model has learned. Jain & Wallace
(2019), section 4.2.2, have no such null; it is ours.
"""

from dataclasses import replace

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.interventions.adversary import MAX_TOKENS, adversarial_attention
from lib.interventions.permutation import permuted_attention
from lib.metrics.distances import jensen_shannon
from lib.models import AttentionModel, ModelOutput
from lib.quantity import JSD_BOUNDS, Quantity


def adversary_by_chance(
    epsilon: float = 0.01, method: str = "exact", draws: int = 5, seed: int = 0, **options
) -> Quantity:
    """A quantity: the JSD of the adversary where chance decides which token has which weight, (batch,) nats.

    The weights of each text are shuffled among its tokens, which is the same as shuffling its tokens' logits, and the
    adversary of that attention is found, within epsilon of its prediction. The mean over the draws. Each text has its
    own random orders: how texts are batched changes nothing.

    Args:
        draws: orders of each text. Epsilon, method and options are those of `adversary`.
    """

    @torch.no_grad()
    def found(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        jsd = []
        for attention in permuted_attention(output.attention, output.mask, draws, seed, batch.instance).unbind(dim=1):
            shuffled = replace(output, attention=attention, logits=model.read_out(output, attention))
            jsd.append(adversarial_attention(model, shuffled, epsilon, method, instance=batch.instance, **options)[1])
        return torch.stack(jsd).mean(dim=0)

    title = "JSD of the adversary by chance"
    return Quantity(f"adversary_{method}_by_chance", found, "nats", JSD_BOUNDS, title, MAX_TOKENS)


def largest_jsd() -> Quantity:
    """A quantity: the largest JSD from a text's attention that there is at all, whatever the prediction, (batch,) nats.

    JSD is convex, so its maximum is at a vertex of the simplex: all weight on the token that has the least. 0 for a
    text of one token.
    """

    def most(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        least = output.attention.masked_fill(~output.mask, torch.inf).argmin(dim=-1, keepdim=True)
        alone = torch.zeros_like(output.attention, dtype=torch.float64).scatter_(1, least, 1.0)
        return jensen_shannon(alone, output.attention.double())

    return Quantity("largest_jsd", most, "nats", JSD_BOUNDS, "largest JSD that the attention allows")
