"""How much each token, or each hidden state, matters to the prediction, by gradients and by leaving it out.

Two gradient measures, two names: `gradient` is Meister et al.'s (2021) norm, with the attention in the graph;
`gradient_times_input` is Jain & Wallace's (2019), with the attention weights detached.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from lib.datasets.batches import Batch
from lib.fast.lstm import bilstm_gradients, bilstm_gradients_times_inputs, is_swept
from lib.importance.deletion import logits_without_each
from lib.importance.hidden_states import change_without_each_state, gradient_of_states
from lib.metrics import probabilities, total_variation
from lib.models import AttentionClassifier, AttentionModel
from lib.models.evaluation import gradients_enabled, measurable, words_at_once
from lib.numerics import by_length
from lib.quantity import Quantity

OF = ("input", "hidden")
WORDS = 2**15  # of the texts whose gradients are computed at once: some 500 MB at the papers' sizes


def gradient(model: AttentionModel, batch: Batch, through_attention: bool = True, of: str = "input") -> Tensor:
    """L2 norm of the gradient of the prediction for each embedded token or hidden state (Meister et al. 2021, Eq. 4).

    The prediction is p, or with several classes the probability of the predicted one. The norm is not normalised to
    sum 1; no rank correlation depends on that.

    Args:
        through_attention: whether the gradient also flows through the attention weights.
        of: "input" or "hidden".
    Returns:
        (batch, token), 0 off the mask.
    Raises:
        ValueError: `of` is neither.
    """
    refuse_other_than(of)
    if of == "hidden":
        with fixed_parameters(model):
            return gradient_of_states(model(batch), _predicted, through_attention, model)

    def norm(part: Batch) -> Tensor:
        if _by_hand(model):
            return bilstm_gradients(model, part, through_attention, _predicted)[0].norm(dim=-1)
        gradients, _ = _autograd(model, part, through_attention, _predicted)
        return gradients[0].norm(dim=-1)

    return _in_pieces(model, batch, norm)


def gradient_times_input(model: AttentionModel, batch: Batch, through_attention: bool = False) -> Tensor:
    """|gradient . embedding| of each token, summed over the outputs (Jain & Wallace 2019, section 3).

    Where the text answers a question, of the predicted answer's probability alone, as in their code.

    Args:
        through_attention: whether the gradient also flows through the attention weights; theirs does not.
    Returns:
        (batch, token), 0 off the mask.
    """

    targets = _every_output if batch.query is None else _predicted

    def times_input(part: Batch) -> Tensor:
        if _by_hand(model):
            return bilstm_gradients_times_inputs(model, part, through_attention, targets).abs().sum(dim=0)
        gradients, embedded = _autograd(model, part, through_attention, targets)
        return (gradients * embedded).sum(dim=-1).abs().sum(dim=0)

    return _in_pieces(model, batch, times_input)


def leave_one_out(model: AttentionModel, batch: Batch, of: str = "input") -> Tensor:
    """How far the prediction moves when the token is deleted and the text encoded again (Jain & Wallace 2019, sec. 3).

    |change of p|, with several classes the total variation. With nothing left the attended vector is zero and the
    logits are the decoder's bias. Costs O(n) texts of n tokens: `measure` omits texts beyond MAX_TOKENS.
    of="hidden" leaves the text's own hidden states as they are, and out of the attention one at a time, which weighs
    the others anew (Meister et al. 2021, section 3.1).

    Returns:
        (batch, token), a fraction of probability, 0 off the mask; of hidden states exactly 0 where they have no weight.
    Raises:
        ValueError: `of` is neither "input" nor "hidden".
    """
    refuse_other_than(of)
    if of == "hidden":
        return change_without_each_state(model, batch)
    with torch.no_grad(), measurable(model):
        logits = model(batch).logits
        without = logits_without_each(model, batch)
        # doubles: where the model is sure, single precision would round small changes to ties
        change = total_variation(probabilities(without.double()), probabilities(logits.double())[:, None])
    return change.to(logits.dtype).masked_fill(~batch.mask, 0)


MAX_TOKENS = {leave_one_out: 2000}  # the longest text that it is computed for, where there is a bound
UNITS = {leave_one_out: "fraction"}


def quantity(name: str, function: Callable[..., Tensor], max_tokens: int | None = None, **options) -> Quantity:
    """An importance, function(model, batch, **options) -> (batch, token), as a quantity for `measure`.

    Args:
        max_tokens: the longest text it is computed for; None: the function's own bound, if it has one.
    """
    longest = MAX_TOKENS.get(function) if max_tokens is None else max_tokens
    unit = UNITS.get(function, "1")
    return Quantity(name, lambda model, batch, output: function(model, batch, **options), unit, max_tokens=longest)


def _by_hand(model: AttentionModel) -> bool:
    return isinstance(model, AttentionClassifier) and is_swept(model.encoder)


def _in_pieces(model: AttentionModel, batch: Batch, importance: Callable[[Batch], Tensor]) -> Tensor:
    """(batch, token), 0 off the mask: the importance of some texts at a time, which may take gradients."""
    result = torch.zeros(batch.mask.shape, device=batch.mask.device)
    with fixed_parameters(model):
        for rows in by_length(batch.lengths, words_at_once(model, WORDS)):
            part = importance(batch.rows(rows)).detach()
            result = result.to(part.dtype)
            result[rows, : part.shape[1]] = part
    return result.masked_fill(~batch.mask, 0)


def _autograd(model: AttentionModel, batch: Batch, through_attention: bool, targets) -> tuple[Tensor, Tensor]:
    """By autograd, for any model; with attention detached, the model's own attention is imposed on it."""
    output = model(batch)
    if not through_attention:
        output = model(batch, attention=output.attention.detach())
    if not output.embeddings.requires_grad:
        raise ValueError("the model's embeddings are not in the graph; ModelOutput.embeddings must require a gradient")
    values = targets(output.logits)
    gradients = [
        torch.autograd.grad(value.sum(), output.embeddings, retain_graph=k + 1 < values.shape[1])[0]
        for k, value in enumerate(values.T)
    ]
    return torch.stack(gradients), output.embeddings.detach()


@contextmanager
def fixed_parameters(model: nn.Module) -> Iterator[None]:
    """Gradients on, for inputs alone: no parameter asks for one."""
    asking = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in asking:
        parameter.requires_grad_(False)
    try:
        with gradients_enabled(model):
            yield
    finally:
        for parameter in asking:
            parameter.requires_grad_(True)


def _every_output(logits: Tensor) -> Tensor:
    """(batch, target): the less likely of p and 1 - p (their gradients differ in sign alone, and 1 - p cannot round to
    0 where the model is sure), or every class. In doubles."""
    chances = probabilities(logits.double())
    return chances.min(dim=-1, keepdim=True).values if logits.shape[-1] == 1 else chances


def _predicted(logits: Tensor) -> Tensor:
    """(batch, 1): as _every_output for one output, else the probability of the predicted class."""
    return _every_output(logits).max(dim=-1, keepdim=True).values


def refuse_other_than(of: str) -> None:
    if of not in OF:
        raise ValueError(f"of is {of!r}; importance is there of: {', '.join(OF)}")
