"""How much each token of the input matters to each hidden state: the gradients of all their norms."""

from collections.abc import Iterator

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.fast.shortcuts import shortcut
from lib.fast.state_sweep import denormals_as_zero
from lib.importance.gradients import fixed_parameters
from lib.metrics.distances import normalized_entropy
from lib.models import AttentionModel, ModelOutput
from lib.numerics import by_length
from lib.quantity import Quantity

PAIRS = 2**15  # of states and words at once


def state_gradients_definition(model: AttentionModel, batch: Batch) -> Tensor:
    """|| d ||h_p||_2 / d x_i ||_2 for every state p and token i (Meister et al. 2021, Eq. 5, before it is normalised).

    A backward pass for each state.

    Returns:
        (batch, state, token), 0 off the mask on either side.
    """
    with fixed_parameters(model):
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


def state_entropy(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
    """A quantity: the normalised entropy of g_{h_p}(x), the mean over the states p of a text (their table 1).

    (batch,) in [0, 1]; NaN for texts of one token. A state that no token moves has no distribution and does not count.
    """
    found = torch.full((len(batch),), torch.nan, dtype=torch.float64, device=batch.mask.device)
    for rows, gradients in _in_micro_batches(model, batch):
        found[rows] = _mean_entropy(gradients, batch.rows(rows).mask)
    return found


def _mean_entropy(gradients: Tensor, mask: Tensor) -> Tensor:
    """(batch,) from gradients (batch, state, token); some states at a time, as it takes doubles."""
    some = max(1, PAIRS // mask.numel())
    entropies = torch.cat([_entropies(part.double(), mask) for part in gradients.split(some, dim=1)], dim=1)
    there = mask & ~entropies.isnan()
    mean = entropies.masked_fill(~there, 0).sum(dim=1) / there.sum(dim=1)
    return mean.masked_fill(~there.any(dim=1), torch.nan)


def _entropies(gradients: Tensor, mask: Tensor) -> Tensor:
    """(batch, state) from gradients (batch, state, token); NaN where no token moves the state, or there is but one."""
    total = gradients.sum(dim=-1, keepdim=True)
    shares = gradients / total.clamp_min(torch.finfo(gradients.dtype).tiny)
    every = mask[:, None].expand_as(shares)
    entropies = normalized_entropy(shares.flatten(0, 1), every.flatten(0, 1)).view(shares.shape[:2])
    return entropies.masked_fill(total.squeeze(-1) == 0, torch.nan)


def state_own_share(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
    """A quantity: the share of a state's own token, g_{h_p}(x_p), the mean over the states of a text.

    (batch,) in [0, 1]: 1 where states depend on their own token alone, 1/n where on all equally. Not in the paper.
    """
    found = torch.full((len(batch),), torch.nan, dtype=torch.float64, device=batch.mask.device)
    for rows, gradients in _in_micro_batches(model, batch):
        total = gradients.double().sum(dim=-1)
        shares = gradients.diagonal(dim1=1, dim2=2).double() / total  # NaN where no token moves the state
        found[rows] = shares.masked_fill(~batch.rows(rows).mask[:, : shares.shape[1]], torch.nan).nanmean(dim=1)
    return found


OWN_TITLE = "a state's own token, share of the inputs' importance to it"
own_share = Quantity(
    "own_share_of_input_to_hidden_importance", state_own_share, "fraction", title=OWN_TITLE, max_tokens=500
)
of_inputs_to_states = Quantity("entropy_of_input_to_hidden_importance", state_entropy, "fraction", max_tokens=500)
