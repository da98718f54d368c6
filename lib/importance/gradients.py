"""How much each token, or each hidden state, matters to the prediction, by gradients.

`gradient` is Meister et al.'s (2021) norm, with the attention in the graph; `gradient_times_input` is Jain & Wallace's
(2019), with the attention weights detached; `integrated_gradients` are Sundararajan et al.'s (2017).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.datasets.corpus import UNKNOWN
from lib.metrics.distances import probabilities
from lib.models import AttentionModel, ModelOutput
from lib.models.evaluation import gradients_enabled, gradients_for, words_at_once
from lib.numerics import by_length

OF = ("input", "hidden")
BASELINES = ("zero", "unknown")
WORDS = 2**15  # of the texts whose gradients are computed at once: some 500 MB at the papers' sizes


def gradient(model: AttentionModel, batch: Batch, through_attention: bool = True, of: str = "input") -> Tensor:
    """L2 norm of the gradient of the prediction for each embedded token or hidden state (Meister et al. 2021, Eq. 4).

    The prediction is p, or with several classes the probability of the predicted one. Not normalised to sum 1: (batch,
    token), 0 off the mask. `of` is "input" or "hidden", and `through_attention` whether the gradient also flows through
    the attention weights.
    """
    if of not in OF:
        raise ValueError(f"of is {of!r}; importance is there of: {', '.join(OF)}")

    def norms(part: Batch, rows: Tensor | None = None) -> Tensor:
        with gradients_enabled(model):
            output = forward_pass(model, part, through_attention, None)
            states, mask = (output.embeddings, part.mask) if of == "input" else (output.hidden, output.mask)
            (gradient,) = gradients_for(states, predicted(output.logits))
            return gradient.norm(dim=-1).masked_fill(~mask, 0)

    return in_micro_batches(model, batch, norms) if of == "input" else norms(batch)  # what is attended may be sentences


def gradient_times_input(
    model: AttentionModel, batch: Batch, through_attention: bool = False, attention: Tensor | None = None
) -> Tensor:
    """|gradient . embedding| of each token, summed over the outputs (Jain & Wallace 2019, section 3).

    (batch, token), 0 off the mask. Where the text answers a question, of the predicted answer's probability alone, as
    in their code.

    Args:
        through_attention: whether the gradient also flows through the attention weights; theirs does not.
        attention: (batch, token), imposed in place of the model's own.
    """
    outputs = every_output if batch.query is None else predicted

    def products(part: Batch, rows: Tensor) -> Tensor:
        imposed = None if attention is None else attention[rows, : part.mask.shape[1]]
        with gradients_enabled(model):
            output = forward_pass(model, part, through_attention, imposed)
            text, gradients = output.embeddings.detach(), gradients_for(output.embeddings, outputs(output.logits))
            return sum((gradient * text).sum(dim=-1).abs() for gradient in gradients)

    return in_micro_batches(model, batch, products)


def in_micro_batches(model: AttentionModel, batch: Batch, measure: Callable[[Batch, Tensor], Tensor]) -> Tensor:
    """(batch, token), 0 off the mask: a measure, (texts, rows) -> (text, token), of some rows at a time."""
    result = torch.zeros(batch.mask.shape, device=batch.mask.device)
    for rows in by_length(batch.lengths, words_at_once(model, WORDS)):
        part = measure(batch.rows(rows), rows)
        result = result.to(part.dtype)
        result[rows, : part.shape[1]] = part
    return result.masked_fill(~batch.mask, 0)


def integrated_gradients(
    model: AttentionModel, batch: Batch, steps: int = 50, baseline: str = "zero", tolerance: float = np.inf
) -> Tensor:
    """(x - x') . mean gradient on the line from a baseline x' to the embedded text x (Sundararajan et al. 2017, Eq. 1).

    The gradient is of F, the probability of the predicted class, for each embedded token at x' + t (x - x'), t from 0
    to 1. In the baseline the text's own tokens are zero vectors, or the unknown word's. They sum to F(x) - F(x').
    Differs from the paper: the mean is by Gauss-Legendre quadrature, which needs fewer steps than their Riemann sum.

    Args:
        steps: points on the line, a forward and a backward pass each. baseline: of BASELINES.
        tolerance: a text whose values miss F(x) - F(x') by more than this share of it has none: NaN.
    Returns:
        (batch, token) probability, positive where a token is evidence for the prediction; 0 off the mask.
    """
    if baseline not in BASELINES:
        raise ValueError(f"baseline is {baseline!r}; allowed: {', '.join(BASELINES)}")
    points, weights = np.polynomial.legendre.leggauss(steps)  # on [-1, 1]

    def attributions(part: Batch, rows: Tensor) -> Tensor:
        def chance(embeddings: Tensor) -> Tensor:
            return probabilities(model.from_embeddings(embeddings, part).logits.double()).gather(1, predicted)

        with gradients_enabled(model):
            output = model(part)
            predicted = probabilities(output.logits).argmax(dim=-1, keepdim=True)
            text = output.embeddings.detach()
            start = text.masked_fill(part.mask[:, :, None], 0)
            if baseline == "unknown":  # each subword of a word that has several
                start = model(replace(part, tokens=part.tokens.masked_fill(part.mask, UNKNOWN))).embeddings.detach()
                start = start.repeat(1, 1, text.shape[2] // start.shape[2])
            mean = torch.zeros_like(text)
            for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
                embeddings = (start + point * (text - start)).requires_grad_()
                mean += weight * next(gradients_for(embeddings, chance(embeddings)))
        with torch.no_grad():
            change, values = chance(text) - chance(start), ((text - start) * mean).sum(dim=-1)
        missed = (values.sum(dim=1, keepdim=True) - change).abs()
        return values.masked_fill(missed > tolerance * change.abs(), torch.nan)

    return in_micro_batches(model, batch, attributions)


def forward_pass(model: AttentionModel, batch: Batch, through_attention: bool, imposed: Tensor | None) -> ModelOutput:
    """The model's output under its own attention, in the graph or as a constant, or under an imposed one."""
    output = model(batch, attention=imposed)
    return output if through_attention or imposed is not None else model(batch, attention=output.attention.detach())


def every_output(logits: Tensor) -> Tensor:
    """(batch, output), in doubles: every class, or of one output the less likely of p and 1 - p.

    Their gradients differ in sign alone, and the less likely does not round to 1 where the model is sure.
    """
    chances = probabilities(logits.double())
    return chances.min(dim=-1, keepdim=True).values if logits.shape[-1] == 1 else chances


def predicted(logits: Tensor) -> Tensor:
    """(batch, 1): as every_output for one output, else the probability of the predicted class."""
    return every_output(logits).max(dim=-1, keepdim=True).values
