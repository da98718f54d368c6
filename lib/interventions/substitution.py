"""Other attention put in place of the model's own: permuted, uniform, or all of it on one token."""

import torch
from torch import Tensor

from lib import projections
from lib.datasets.batches import Batch
from lib.metrics.distances import probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.models.interface import read_each
from lib.quantity import Quantity
from lib.random_streams import orders, streams


@torch.no_grad()
def permuted(
    model: AttentionModel, output: ModelOutput, draws: int, seed: int = 0, instance: Tensor | None = None
) -> Tensor:
    """Logits under random orders of the real tokens' attention (Jain & Wallace 2019, section 4.2.1, algorithm 1).

    Uniform over all orders. The orders of a row depend on the seed and on its number alone, not on its batch.

    Args:
        instance: (batch,) the number of each row; None: its position in the batch.
    Returns:
        (batch, draw, class).
    """
    numbers = torch.arange(len(output.mask)) if instance is None else instance.cpu()

    def in_orders(rows: Tensor, some: Tensor) -> Tensor:
        parts = output.attention[rows], output.mask[rows], draws, seed, numbers[rows.cpu()]
        return permuted_attention(*parts)[:, some]

    logits = read_each(model, output, draws, in_orders)
    return logits[:, :, -output.logits.shape[-1] :].to(output.logits.dtype)  # as many outputs as the model has


def permuted_attention(
    attention: Tensor, mask: Tensor, draws: int, seed: int = 0, instance: Tensor | None = None
) -> Tensor:
    """The attention (batch, token) in random orders of its real tokens: (batch, draw, token)."""
    front = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices  # real tokens first
    order = orders(streams(seed, len(mask), instance), draws, mask.gather(1, front).cpu().numpy())
    order = torch.from_numpy(order).to(mask.device)
    weights = attention.gather(1, front)[:, None].expand_as(order).gather(2, order)
    return torch.zeros_like(weights).scatter(2, front[:, None].expand_as(order), weights)


def uniform(model: AttentionModel, output: ModelOutput) -> Tensor:
    """Logits under equal attention to all real tokens: (batch, class)."""
    return model.read_out(output, projections.uniform(output.scores, output.mask))


@torch.no_grad()
def with_all_on_each_token(model: AttentionModel, output: ModelOutput) -> Tensor:
    """Probabilities with all attention on one token, a read-out for each: (batch, token, class), in doubles."""
    place = torch.arange(output.mask.shape[1], device=output.mask.device)
    logits = read_each(model, output, len(place), lambda rows, some: (place == some[:, None]).expand(len(rows), -1, -1))
    return probabilities(logits[:, :, -output.logits.shape[-1] :])


def permutation_effect(draws: int = 100, seed: int = 0) -> Quantity:
    """A quantity: the median over draws of how far the prediction moves under permuted attention.

    |change of p|, with several classes the total variation (Jain & Wallace 2019, section 4.2.1): (batch,), a fraction
    of probability. Each instance has its own random orders: how texts are batched changes nothing.
    """

    @torch.no_grad()
    def moved(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        logits = permuted(model, output, draws, seed, batch.instance)
        change = total_variation(probabilities(logits), probabilities(output.logits)[:, None])
        return change.quantile(0.5, dim=-1)

    return Quantity("permutation", moved, "fraction")


def largest_change() -> Quantity:
    """A quantity: how far the prediction moves at most with all attention on one token, (batch,) fraction.

    |change of p|, with several classes the total variation. With one output and an affine read-out no attention at all
    moves it farther.
    """

    @torch.no_grad()
    def most(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
        own = probabilities(output.logits.double())[:, None]
        moved = total_variation(with_all_on_each_token(model, output), own)
        return moved.masked_fill(~output.mask, 0).amax(dim=-1)

    return Quantity("largest_change", most, "fraction", title="largest |change of p| of any attention")


def substituted(draws: int = 100, seed: int = 0) -> Quantity:
    """A quantity: the class predicted under other attention (Tutek & Snajder 2020, section 4.1).

    {"uniform" (batch,): under equal weights; "permuted" (batch, draw): under random orders of the own weights}. Each
    text has its own random orders: how texts are batched changes nothing.
    """

    @torch.no_grad()
    def predicted(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
        equal = probabilities(uniform(model, output))
        shuffled = probabilities(permuted(model, output, draws, seed, batch.instance))
        return {"uniform": equal.argmax(dim=-1), "permuted": shuffled.argmax(dim=-1).to(torch.int16)}

    return Quantity("under", predicted, {"uniform": "class", "permuted": "class"}, draws=draws)


@torch.no_grad()
def token_probabilities(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
    """A quantity: how sure of its prediction the model were if all attention were on this token, (batch, token).

    sigma(w . h_t + b) of the class that it predicts for the text (Tutek & Snajder 2020, section 5 and Eq. 9), a
    fraction; with several classes the softmax's; 0 off the mask.
    """
    predicted = probabilities(output.logits).argmax(dim=-1)
    own = with_all_on_each_token(model, output)[torch.arange(len(batch), device=predicted.device), :, predicted]
    return own.masked_fill(~output.mask, 0)


def token_probability_mean(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
    """A quantity: the mean of `token_probabilities` over a text's tokens, (batch,) fraction (their table 3)."""
    return token_probabilities(model, batch, output).sum(dim=-1) / output.mask.sum(dim=-1)
