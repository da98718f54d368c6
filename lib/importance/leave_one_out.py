"""How far the prediction moves when a token, or a hidden state, is left out."""

from functools import partial

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.importance.deletions import logits_without_each_token
from lib.importance.gradients import OF
from lib.metrics.distances import probabilities, total_variation
from lib.models import AttentionModel, ModelOutput
from lib.models.evaluation import measurable
from lib.numerics import by_length, rows_of
from lib.projections import project_the_rest, softmax
from lib.quantity import CHANGE_BOUNDS, Quantity, declare

MAX_TOKENS = 2000  # of the longest text that it is computed for
SCORES = 2**20  # that are projected again at once
ROUNDING = 100  # units in the last place: a smaller change of the logits is none
MAX_DISTANCE = 1e-4  # that an attention may lie from the projection of its own scores


@torch.no_grad()
def leave_one_out(model: AttentionModel, batch: Batch, of: str = "input") -> Tensor:
    """How far the prediction moves when the token is deleted and the text encoded again (Jain & Wallace 2019, sec. 3).

    |change of p|, with several classes the total variation. With nothing left the logits are those of
    `logits_of_nothing`. of="hidden" leaves the text's own hidden states as they are, and out of the attention
    one at a time: the remaining scores are projected again (Meister et al. 2021, section 3.1).
    Costs O(n) texts of n tokens: its quantities leave texts of more than MAX_TOKENS out.

    Returns:
        (batch, token), a fraction of probability, 0 off the mask; of hidden states exactly 0 where they have no weight.
    """
    if of not in OF:
        raise ValueError(f"of is {of!r}; importance is there of: {', '.join(OF)}")
    with measurable(model):
        output = model(batch)
        if of == "input":
            logits, without, mask = output.logits, logits_without_each_token(model, batch), batch.mask
        else:
            logits, without = logits_without_each_state(model, output)
            mask = output.mask & (output.attention > 0)
    return change_of_prediction(logits, without).to(output.logits.dtype).masked_fill(~mask, 0)


@torch.no_grad()
def logits_without_each_state(model: AttentionModel, output: ModelOutput) -> tuple[Tensor, Tensor]:
    """Logits with each hidden state removed at the attention layer (Meister et al. 2021, section 3.1).

    The remaining scores are projected again, all of them: under a sparse projection tokens from outside the support may
    enter. Where nothing is left the attended vector is zero. A state without weight changes nothing.

    Returns:
        In doubles, as small changes need it: the text's own logits (batch, class), computed in the same way, and
        (batch, token, class), NaN off the mask.
    """
    projection, scores = getattr(model, "projection", softmax), output.scores.double()
    attention = projection(scores, output.mask)
    if (attention - output.attention).abs().max() > MAX_DISTANCE:
        raise ValueError(
            "it is unknown how the rest is weighed when a hidden state is left out: the attention is imposed, or not "
            "what `model.projection`, (scores, mask) -> attention, makes of the scores (softmax, where there is none)"
        )
    affine = model.token_logits(output)

    def read(rows: Tensor, attention: Tensor) -> Tensor:
        """Logits (row, class) of those texts under attention (row, token)."""
        if affine is None:
            return model.read_out(rows_of(output, rows), attention.to(output.scores.dtype)).double()
        return (attention[:, None] @ affine[0][rows].double()).squeeze(1) + affine[1].double()

    own = read(torch.arange(len(scores), device=scores.device), attention)
    logits = own[:, None].repeat(1, output.mask.shape[1], 1)
    texts, positions = (output.mask & (attention > 0)).nonzero(as_tuple=True)
    for some in by_length(output.mask.sum(dim=1)[texts], SCORES // 64 if affine is None else SCORES):
        rows, without = texts[some], positions[some]
        kept = output.mask[rows].scatter(1, without[:, None], False)
        logits[rows, without] = read(rows, project_the_rest(projection, scores[rows], kept))
    return own, logits.masked_fill(~output.mask[:, :, None], torch.nan)


@torch.no_grad()
def with_sign(model: AttentionModel, batch: Batch, output: ModelOutput, mask: bool = False) -> dict[str, Tensor]:
    """{"of_input": `leave_one_out`, "signed": `fall_of_the_predicted`} by one pass: each (batch, token), a fraction."""
    with measurable(model):
        without = logits_without_each_token(model, batch, mask)
    changes = {"of_input": change_of_prediction, "signed": fall_of_the_predicted}
    found = {name: change(output.logits, without) for name, change in changes.items()}
    return {name: value.to(output.logits.dtype).masked_fill(~batch.mask, 0) for name, value in found.items()}


declare("leave_one_out_signed", "fraction", "leave-one-out, signed", CHANGE_BOUNDS)
SIGNED = {"of_input": "fraction", "signed": "fraction"}
leave_one_out_with_sign = Quantity("leave_one_out", with_sign, SIGNED, max_tokens=MAX_TOKENS)
mask_one_out = Quantity("mask_one_out", partial(with_sign, mask=True), SIGNED, max_tokens=MAX_TOKENS)


def fall_of_the_predicted(logits: Tensor, without: Tensor) -> Tensor:
    """How far the probability of the class that logits (batch, class) predict falls under (batch, token, class).

    (batch, token), below 0 where it rises. It is what the others gain: its own difference would cancel in a sure model.
    """
    before, after = probabilities(logits.double())[:, None], probabilities(without.double())
    others = torch.ones_like(before).scatter(2, before.argmax(dim=-1, keepdim=True), 0)
    gain = ((after - before) * others).sum(dim=-1)
    return gain.masked_fill(gain.abs() < by_rounding(logits), 0)


def change_of_prediction(logits: Tensor, without: Tensor) -> Tensor:
    """The total variation between the predictions of logits (batch, class) and (batch, token, class): (batch, token).

    What rounding alone might give is 0: a word without any effect is tied with the others like it.
    """
    change = total_variation(probabilities(without.double()), probabilities(logits.double())[:, None])
    return change.masked_fill(change < by_rounding(logits), 0)


def by_rounding(logits: Tensor) -> Tensor:
    """How much probability rounding of logits (batch, class) can move: (batch, 1), by what other classes have."""
    others = probabilities(logits.double()).sort(dim=-1).values[:, :-1].sum(dim=-1, keepdim=True)
    return ROUNDING * torch.finfo(logits.dtype).eps * others


@torch.no_grad()
def share_of_largest(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
    """Leave-one-out of the most attended word as a share of the text's largest: (batch,); NaN where no word matters."""
    changes, top = leave_one_out(model, batch), output.attention.argmax(dim=-1, keepdim=True)
    return changes.gather(1, top).squeeze(1) / changes.amax(dim=-1)  # 0 / 0 is NaN


TOP = "leave-one-out of the top word / largest"
top_word_share = Quantity("top_word_share", share_of_largest, "fraction", None, TOP, MAX_TOKENS)
