"""How much each token of the input matters to each hidden state: the gradients of all their norms."""

from collections.abc import Iterator

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.fast.lstm import denormals_as_zero
from lib.fast.shortcuts import shortcut
from lib.metrics.distances import normalized_entropy, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.models.evaluation import gradients_enabled
from lib.numerics import by_length
from lib.quantity import Quantity

PAIRS = 2**15  # of states and words at once


def state_gradients_definition(model: AttentionModel, batch: Batch) -> Tensor:
    """|| d ||h_p||_2 / d x_i ||_2 for every state p and token i (Meister et al. 2021, Eq. 5, before it is normalised).

    A backward pass for each state.

    Returns:
        (batch, state, token), 0 off the mask on either side.
    """
    with gradients_enabled(model):
        output = model(batch)
        result = output.hidden.new_zeros(*batch.mask.shape, batch.mask.shape[1])
        for state in batch.mask.any(dim=0).nonzero()[:, 0]:
            norms = output.hidden[:, state].norm(dim=-1)
            (gradient,) = torch.autograd.grad(norms.sum(), output.embeddings, retain_graph=True)
            result[:, state] = gradient.norm(dim=-1)
    return result.masked_fill(~(batch.mask[:, :, None] & batch.mask[:, None]), 0)


def state_gradients(model: AttentionModel, batch: Batch) -> Tensor:
    """`state_gradients_definition`, by the model's shortcut where it has one."""
    result = None
    for rows, found in _in_micro_batches(model, batch):
        if result is None:
            result = found.new_zeros(*batch.mask.shape, batch.mask.shape[1])
        width = found.shape[1]
        result[rows, :width, :width] = found
    return result


def _in_micro_batches(model: AttentionModel, batch: Batch) -> Iterator[tuple[Tensor, Tensor]]:
    """(rows, (row, state, token)) of some texts at a time, padded no longer than they need."""
    gradients = shortcut("state_gradients", model) or state_gradients_definition
    for rows in by_length(batch.lengths, PAIRS, power=2):
        part = batch.rows(rows)
        with denormals_as_zero():
            found = gradients(model, part)
        yield rows, found


def inputs_to_states(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
    """A quantity: how the importance g_{h_p}(x) of the inputs to a state is spread: means over the states p of a text.

    {"entropy" (batch,): normalised, NaN for texts of one token (their table 1); "own_share" (batch,): g_{h_p}(x_p), 1
    where states depend on their own token alone, 1/n where on all equally (not in the paper)}: each in [0, 1]. A state
    that no token moves has no distribution and does not count.
    """
    entropy, own_share = torch.full((2, len(batch)), torch.nan, dtype=torch.float64, device=batch.mask.device)
    for rows, gradients in _in_micro_batches(model, batch):
        mask = batch.rows(rows).mask[:, : gradients.shape[1]]
        entropy[rows] = _mean_entropy(gradients, mask)
        total = gradients.sum(dim=-1, dtype=torch.float64)
        shares = gradients.diagonal(dim1=1, dim2=2).double() / total  # NaN where no token moves the state
        own_share[rows] = shares.masked_fill(~mask, torch.nan).nanmean(dim=1)
    return {"entropy": entropy, "own_share": own_share}


def _mean_entropy(gradients: Tensor, mask: Tensor) -> Tensor:
    """(batch,) from gradients (batch, state, token), over the states that some token moves, where there are several."""
    entropies = []
    for part in gradients.split(max(1, PAIRS // mask.numel()), dim=1):  # some states at a time, as it takes doubles
        total = part.double().sum(dim=-1, keepdim=True)
        shares = part.double() / total.clamp_min(torch.finfo(torch.float64).tiny)
        found = normalized_entropy(shares.flatten(0, 1), mask[:, None].expand_as(shares).flatten(0, 1))
        entropies.append(found.view(shares.shape[:2]).masked_fill(total.squeeze(-1) == 0, torch.nan))
    return torch.cat(entropies, dim=1).masked_fill(~mask, torch.nan).nanmean(dim=1)


def facet_gradients(model: AttentionModel, batch: Batch) -> Tensor:
    """|| d h_p / d x_i || of the state itself, over all of its facets, and not of its norm alone (appendix A).

    The Frobenius norm of the Jacobian: copies of a text, one for each facet, need a single backward pass a state.

    Returns:
        (batch, state, token), 0 off the mask on either side.
    """
    result = torch.zeros(*batch.mask.shape, batch.mask.shape[1], device=batch.mask.device)
    with gradients_enabled(model):
        facets = torch.arange(model(batch).hidden.shape[-1], device=batch.mask.device)
        for row in range(len(batch)):
            part = batch.rows(torch.full_like(facets, row))
            output = model(part)
            for state in part.mask[0].nonzero()[:, 0]:
                own = output.hidden[facets, state, facets].sum()
                (gradient,) = torch.autograd.grad(own, output.embeddings, retain_graph=True)
                result[row, state, : gradient.shape[1]] = gradient.square().sum(dim=(0, 2)).sqrt()
    return result.masked_fill(~(batch.mask[:, :, None] & batch.mask[:, None]), 0)


def facet_distance(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
    """A quantity: does a state's norm stand for its facets, as Meister et al. (2021, appendix A) found?

    {"apart" (batch,): half the sum over i of |g_{h_p}(x_i) by the norm less the same by all facets|; "uneven" (batch,):
    that of g_{h_p}(x_i) by the norm less 1/n}: each the mean over the states p, in [0, 1].
    """
    shares = [of(model, batch).double() for of in (state_gradients, facet_gradients)]
    shares = [one / one.sum(dim=-1, keepdim=True) for one in shares]  # NaN where no token moves the state
    equal = (batch.mask / batch.mask.sum(dim=-1, keepdim=True))[:, None].double()
    apart, uneven = (total_variation(shares[0], other).nanmean(dim=-1) for other in (shares[1], equal))
    return {"apart": apart, "uneven": uneven}


facets = Quantity("facets", facet_distance, {"apart": "fraction", "uneven": "fraction"}, max_tokens=500)
PARTS = {"entropy": "fraction", "own_share": "fraction"}
of_inputs_to_states = Quantity("inputs_to_states", inputs_to_states, PARTS, max_tokens=500)
