"""What the tests of Jain & Wallace (2019) give where chance places the weights.

The weights of each text are shuffled among its tokens and imposed, and the same test is made of that attention. Much of
what a test measures is there by chance too: gradients have the weight as a factor, permuting moves any uneven
attention, and with many tokens nearly every text has an adversary. The papers have no such nulls; they are ours. How
texts are batched changes no order.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.interventions.adversary import MAX_TOKENS, adversarial_attention, is_too_slow
from lib.interventions.substitution import permuted, permuted_attention, with_all_on_each_token
from lib.metrics import kendall_tau
from lib.metrics.distances import jensen_shannon, probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.quantity import JSD_BOUNDS, Quantity


@torch.no_grad()
def shuffled(model: AttentionModel, batch: Batch, output: ModelOutput, draws: int, seed: int) -> Iterator[ModelOutput]:
    """The output with its weights in random orders, and the logits that they give."""
    for attention in permuted_attention(output.attention, output.mask, draws, seed, batch.instance).unbind(dim=1):
        yield replace(output, attention=attention, logits=model.read_out(output, attention))


def agreement_by_chance(measure: Callable[..., Tensor], seed: int = 0) -> Quantity:
    """A quantity: tau-b of shuffled attention with the importance of tokens under it, (batch,); NaN where undefined.

    Gradient x input has the weight of a token as a factor, in an average encoder of that token alone: it agrees with
    whatever attention is imposed. One order of each text. `measure`: (model, batch, attention=(batch, token)) ->
    (batch, token), such as `lib.importance.gradient_times_input`.
    """

    def tau(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        (other,) = shuffled(model, batch, output, 1, seed)
        return kendall_tau(other.attention, measure(model, batch, attention=other.attention), output.mask)[0]

    return Quantity("agreement_by_chance", tau, "tau-b", title="attention / importance, by chance")


def permutation_share_by_chance(draws: int = 100, seed: int = 0, placed: int = 5) -> Quantity:
    """A quantity: how far permuting moves the prediction of shuffled attention, (batch,), as a share of the largest.

    The median over the other orders of |change of p|, with several classes the total variation, from the prediction
    under one random order, divided by the largest change from there with all attention on one token; the mean over
    `placed` orders. NaN where no attention changes anything. The same share of the model's own attention is that of
    `permutation_effect` over `largest_change`.
    """

    @torch.no_grad()
    def share(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        orders = probabilities(permuted(model, output, draws, seed, batch.instance).double())
        alone, bases = with_all_on_each_token(model, output), orders[:, :placed, None]
        moved = total_variation(orders[:, None], bases)  # (batch, base, draw)
        moved.diagonal(dim1=1, dim2=2).fill_(torch.nan)
        most = total_variation(alone[:, None], bases).masked_fill(~output.mask[:, None], 0).amax(dim=-1)
        return (moved.nanquantile(0.5, dim=-1) / most).where(most > 0, torch.nan).mean(dim=1)

    title = "permutation by chance, share of the largest"
    return Quantity("permutation_share_by_chance", share, "fraction", title=title)


def adversary_by_chance(
    epsilon: float = 0.01, method: str = "exact", draws: int = 5, seed: int = 0, **options
) -> Quantity:
    """A quantity: the JSD of the adversary where chance decides which token has which weight, (batch,) nats.

    The adversary of shuffled attention, within epsilon of its prediction: as if the tokens' logits were shuffled. The
    mean over the draws, orders of each text; epsilon, method and options are those of `adversary`.
    """

    def found(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        if is_too_slow(model, method):
            return torch.full_like(output.attention[:, 0], torch.nan)
        total, attack = 0, {"epsilon": epsilon, "method": method, "instance": batch.instance} | options
        for other in shuffled(model, batch, output, draws, seed):
            total += adversarial_attention(model, other, **attack)[1]
        return total / draws

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
