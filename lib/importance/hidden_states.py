"""How much each hidden state matters to the prediction, by gradients and by leaving it out of the attention."""

import torch
from torch import Tensor

from lib.chunks import by_length, rows_of
from lib.datasets.batches import Batch
from lib.importance.windowed_deletion import attended_without_each, terms
from lib.metrics import probabilities, total_variation
from lib.models import AttentionClassifier, AttentionModel, ModelOutput
from lib.projections import softmax

CELLS = 2**20  # scores projected at once


def gradient_of_states(output: ModelOutput, targets, through_attention: bool, model: AttentionModel) -> Tensor:
    """L2 norm of the gradient of a target for each hidden state: (batch, token), 0 off the mask.

    Args:
        output: of the model, in a graph. targets: logits (batch, class) -> (batch, 1).
        through_attention: whether the gradient also flows through the attention weights. Where it does not, it is the
            weight times one number for a whole text: the two rank the tokens alike.
    """
    if not output.hidden.requires_grad:
        raise ValueError("the model's hidden states are not in the graph; ModelOutput.hidden must require a gradient")
    logits = output.logits if through_attention else model.read_out(output, output.attention.detach())
    (gradient,) = torch.autograd.grad(targets(logits).sum(), output.hidden)
    return gradient.norm(dim=-1).masked_fill(~output.mask, 0)


@torch.no_grad()
def logits_without_each_state(model: AttentionModel, output: ModelOutput) -> Tensor:
    """Logits with each hidden state removed at the attention layer (Meister et al. 2021, section 3.1).

    The remaining scores are projected again, all of them: under a sparse projection tokens from outside the support may
    enter. Without a state that has no weight nothing changes, and the logits are exactly the text's own. Where nothing
    is left the attended vector is zero.

    Returns:
        (batch, token, class); NaN off the mask.
    Raises:
        ValueError: the model does not say how its scores become attention.
    """
    projection = getattr(model, "projection", None)
    if projection is None:
        raise ValueError(
            "hidden states can be left out only of a model with `projection`, (scores, mask) -> attention: what "
            "remains has to be weighed anew"
        )
    if projection is softmax and isinstance(model, AttentionClassifier):
        kept = terms(model, output.hidden, output.mask)
        logits = attended_without_each(kept, kept[:, :, None][:, :, :0], 0) + model.decoder.bias.double()
        return logits.to(output.logits.dtype).masked_fill(~output.mask[:, :, None], torch.nan)
    logits = output.logits[:, None].repeat(1, output.mask.shape[1], 1)
    row, position = (output.mask & (output.attention > 0)).nonzero(as_tuple=True)
    for some in by_length(output.mask.sum(dim=1)[row], CELLS):
        logits[row[some], position[some]] = _without(model, projection, output, row[some], position[some])
    return logits.masked_fill(~output.mask[:, :, None], torch.nan)


def _without(model: AttentionModel, projection, output: ModelOutput, row: Tensor, position: Tensor) -> Tensor:
    """(case, class): logits of the texts `row`, each without its state at `position`."""
    mask = output.mask[row].clone()
    mask[torch.arange(len(row), device=row.device), position] = False
    attention = torch.zeros_like(output.attention[row])
    some = mask.any(dim=-1)
    attention[some] = projection(output.scores[row[some]], mask[some])
    return model.read_out(rows_of(output, row), attention)


def change_without_each_state(model: AttentionModel, batch: Batch) -> Tensor:
    """How far the prediction moves when a hidden state is left out: (batch, token), a fraction of probability.

    |change of p|, with several classes the total variation; exactly 0 where the state has no weight, and off the mask.
    """
    with torch.no_grad():
        output = model(batch)
        without = logits_without_each_state(model, output)
        change = total_variation(probabilities(without.double()), probabilities(output.logits.double())[:, None])
    return change.to(output.logits.dtype).masked_fill(~output.mask | (output.attention == 0), 0)
