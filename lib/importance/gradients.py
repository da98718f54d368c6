"""How much each token, or each hidden state, matters to the prediction, by gradients.

Two measures, two names: `gradient` is Meister et al.'s (2021) norm, with the attention in the graph;
`gradient_times_input` is Jain & Wallace's (2019), with the attention weights detached.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from lib.datasets.batches import Batch
from lib.fast.shortcuts import in_micro_batches, shortcut
from lib.metrics.distances import probabilities
from lib.models import AttentionModel, ModelOutput
from lib.models.evaluation import gradients_enabled, words_at_once

OF = ("input", "hidden")
WORDS = 2**15  # of the texts whose gradients are computed at once: some 500 MB at the papers' sizes


def gradient_definition(
    model: AttentionModel, batch: Batch, through_attention: bool = True, of: str = "input"
) -> Tensor:
    """L2 norm of the gradient of the prediction for each embedded token or hidden state (Meister et al. 2021, Eq. 4).

    The prediction is p, or with several classes the probability of the predicted one. The norm is not normalised to
    sum 1; no rank correlation depends on that.

    Args:
        through_attention: whether the gradient also flows through the attention weights.
        of: "input" or "hidden". With the attention detached the gradient of a hidden state is its weight times one
            vector for the whole text.
    Returns:
        (batch, token), 0 off the mask.
    Raises:
        ValueError: `of` is neither, or the model's output is not in the graph.
    """
    refuse_other_than(of)
    with fixed_parameters(model):
        output = forward_pass(model, batch, through_attention)
        states, mask = (output.embeddings, batch.mask) if of == "input" else (output.hidden, output.mask)
        norm = gradients_for(states, predicted(output.logits))[0].norm(dim=-1)
    return norm.masked_fill(~mask, 0)


def gradient(model: AttentionModel, batch: Batch, through_attention: bool = True, of: str = "input") -> Tensor:
    """`gradient_definition`, by the model's shortcut where it has one."""
    if of != "input":
        return gradient_definition(model, batch, through_attention, of)
    gradients = shortcut("gradients", model)

    def norm(part: Batch) -> Tensor:
        if gradients is None:
            return gradient_definition(model, part, through_attention)
        with fixed_parameters(model):
            return gradients(model, part, through_attention, predicted)[0].norm(dim=-1)

    return in_micro_batches(norm, batch, words_at_once(model, WORDS))


def gradient_times_input_definition(model: AttentionModel, batch: Batch, through_attention: bool = False) -> Tensor:
    """|gradient . embedding| of each token, summed over the outputs (Jain & Wallace 2019, section 3).

    Where the text answers a question, of the predicted answer's probability alone, as in their code.

    Args:
        through_attention: whether the gradient also flows through the attention weights; theirs does not.
    Returns:
        (batch, token), 0 off the mask.
    """
    of = every_output if batch.query is None else predicted
    with fixed_parameters(model):
        output = forward_pass(model, batch, through_attention)
        gradients = gradients_for(output.embeddings, of(output.logits))  # (output, batch, word, embedding)
    products = (gradients * output.embeddings.detach()).sum(dim=-1)
    return products.abs().sum(dim=0).masked_fill(~batch.mask, 0)


def gradient_times_input(model: AttentionModel, batch: Batch, through_attention: bool = False) -> Tensor:
    """`gradient_times_input_definition`, by the model's shortcut where it has one."""
    products = shortcut("gradients_times_inputs", model)

    def times_input(part: Batch) -> Tensor:
        if products is None:
            return gradient_times_input_definition(model, part, through_attention)
        with fixed_parameters(model):
            return products(model, part, through_attention, every_output).abs().sum(dim=0)

    return in_micro_batches(times_input, batch, words_at_once(model, WORDS))


def forward_pass(model: AttentionModel, batch: Batch, through_attention: bool) -> ModelOutput:
    """The model's output; with the attention detached, the output under its own attention as a constant."""
    output = model(batch)
    return output if through_attention else model(batch, attention=output.attention.detach())


def gradients_for(states: Tensor, values: Tensor) -> Tensor:
    """The gradient of each value for states (batch, word, size): (value, batch, word, size).

    Args:
        values: (batch, value), each a function of its own text alone.
    """
    if not states.requires_grad:
        raise ValueError(
            "the model's embeddings, or its hidden states, are not in the graph: ModelOutput.embeddings and "
            "ModelOutput.hidden must require a gradient"
        )
    last = values.shape[1] - 1
    gradients = [
        torch.autograd.grad(value.sum(), states, retain_graph=number < last)[0] for number, value in enumerate(values.T)
    ]
    return torch.stack(gradients)


@contextmanager
def fixed_parameters(model: nn.Module) -> Iterator[None]:
    """Gradients on, for inputs alone: no parameter requires one."""
    required = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in required:
        parameter.requires_grad_(False)
    try:
        with gradients_enabled(model):
            yield
    finally:
        for parameter in required:
            parameter.requires_grad_(True)


def every_output(logits: Tensor) -> Tensor:
    """(batch, output): the less likely of p and 1 - p (their gradients differ in sign alone, and 1 - p cannot round to
    0 where the model is sure), or every class. In doubles."""
    chances = probabilities(logits.double())
    return chances.min(dim=-1, keepdim=True).values if logits.shape[-1] == 1 else chances


def predicted(logits: Tensor) -> Tensor:
    """(batch, 1): as every_output for one output, else the probability of the predicted class."""
    return every_output(logits).max(dim=-1, keepdim=True).values


def refuse_other_than(of: str) -> None:
    """ValueError if `of` is not one of OF."""
    if of not in OF:
        raise ValueError(f"of is {of!r}; importance is there of: {', '.join(OF)}")
