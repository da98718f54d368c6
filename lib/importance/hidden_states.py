"""How much each hidden state matters to the prediction, by gradients and by leaving it out of the attention."""

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.fast.decoding import of_texts
from lib.fast.deletions_windows import attended_without_each, terms
from lib.metrics import probabilities, total_variation
from lib.models import AttentionClassifier, AttentionModel, ModelOutput
from lib.models.readout import read_each
from lib.numerics import by_length
from lib.projections import softmax

CELLS = 2**20  # scores projected at once
APART = 1e-4  # how far an attention may lie from the projection of its own scores


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
def logits_without_each_state(model: AttentionModel, output: ModelOutput) -> tuple[Tensor, Tensor]:
    """Logits with each hidden state removed at the attention layer (Meister et al. 2021, section 3.1).

    The remaining scores are projected again, all of them: under a sparse projection tokens from outside the support may
    enter. Without a state that has no weight nothing changes, and the logits are exactly the text's own. Where nothing
    is left the attended vector is zero. A model says by `model.projection` how scores become attention; one that does
    not is asked whether softmax gives its attention.

    Returns:
        In doubles, as small changes need it: the text's own logits (batch, class), computed in the same way, and
        (batch, token, class), NaN off the mask.
    Raises:
        ValueError: the model does not say how its scores become attention, or its attention is not what that gives.
    """
    projection = getattr(model, "projection", softmax)
    attention = projection(output.scores.double(), output.mask)
    if (attention - output.attention).abs().max() > APART:
        raise ValueError(
            "nothing says how the rest is weighed when a hidden state is left out: the attention is imposed, or not "
            "what `model.projection`, (scores, mask) -> attention, makes of the scores (softmax, where there is none)"
        )
    if projection is softmax and isinstance(model, AttentionClassifier):
        return _by_sums(model, output)
    affine = model.token_logits(output)
    if affine is None:
        return _by_reading(model, output, projection, attention)
    affine = affine[0].double(), affine[1].double()
    own = (attention[:, None] @ affine[0]).squeeze(1) + affine[1]
    logits = own[:, None].repeat(1, output.mask.shape[1], 1)
    row, position = (output.mask & (attention > 0)).nonzero(as_tuple=True)
    for some in by_length(output.mask.sum(dim=1)[row], CELLS):
        rows, others = row[some], _without(projection, output, row[some], position[some])
        logits[rows, position[some]] = (others[:, None] @ affine[0][rows]).squeeze(1) + affine[1]
    return own, logits.masked_fill(~output.mask[:, :, None], torch.nan)


def _by_reading(model: AttentionModel, output: ModelOutput, projection, attention: Tensor) -> tuple[Tensor, Tensor]:
    """Where the read-out is not affine it is asked anew for every state; first of all for the text as it is."""
    tokens = output.mask.shape[1]

    def others(rows: Tensor, draws: Tensor) -> Tensor:
        row, position = (part.flatten() for part in torch.meshgrid(rows, draws - 1, indexing="ij"))
        asked = (position >= 0) & (attention[row, position] > 0)
        found = attention[row]
        found[asked] = _without(projection, output, row[asked], position[asked])
        return found.view(len(rows), len(draws), -1)

    every = torch.full((len(output.mask),), tokens + 1, device=output.mask.device)
    logits = read_each(model, output, every, others)
    return logits[:, 0], logits[:, 1:].masked_fill(~output.mask[:, :, None], torch.nan)


def _by_sums(model: AttentionClassifier, output: ModelOutput) -> tuple[Tensor, Tensor]:
    """Under softmax what remains is divided by its own sum: sums of all terms but each."""
    rows = torch.arange(len(output.mask), device=output.mask.device)
    kept = terms(of_texts(model, len(rows)), rows, output.hidden, output.mask)
    bias = model.decoder.bias.double()
    logits = attended_without_each(kept, kept[:, :, None][:, :, :0], 0) + bias
    sums = kept.logsumexp(dim=1)
    positive, negative = (sums[:, 1:] - sums[:, :1]).exp().chunk(2, dim=-1)
    return positive - negative + bias, logits.masked_fill(~output.mask[:, :, None], torch.nan)


def _without(projection, output: ModelOutput, row: Tensor, position: Tensor) -> Tensor:
    """(case, token): the attention of texts `row`, each without its state at `position`; 0 where nothing is left."""
    mask = output.mask[row].clone()
    mask[torch.arange(len(row), device=row.device), position] = False
    attention = torch.zeros_like(mask, dtype=torch.float64)
    some = mask.any(dim=-1)
    attention[some] = projection(output.scores[row[some]].double(), mask[some])
    return attention


def change_without_each_state(model: AttentionModel, batch: Batch) -> Tensor:
    """How far the prediction moves when a hidden state is left out: (batch, token), a fraction of probability.

    |change of p|, with several classes the total variation; exactly 0 where the state has no weight, and off the mask.
    """
    with torch.no_grad():
        output = model(batch)
        own, without = logits_without_each_state(model, output)
        change = total_variation(probabilities(without), probabilities(own)[:, None])
    return change.to(output.logits.dtype).masked_fill(~output.mask | (output.attention == 0), 0)
