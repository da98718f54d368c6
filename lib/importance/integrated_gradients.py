"""Integrated gradients: how much each token contributes to the prediction, in shares that add up."""

import numpy as np
import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.fast.shortcuts import in_micro_batches
from lib.importance.gradients import WORDS, fixed_parameters, gradients_for
from lib.metrics.distances import probabilities
from lib.models import AttentionModel
from lib.models.evaluation import words_at_once


def integrated_gradients(model: AttentionModel, batch: Batch, steps: int = 50) -> Tensor:
    """(x - x') . mean gradient on the line from a baseline x' to the embedded text x (Sundararajan et al. 2017, Eq. 1).

    The gradient is of F, the probability of the predicted class, for each embedded token at x' + t (x - x'), t from 0
    to 1. In the baseline the text's own tokens are zero vectors; start and end stay. The attributions of a text sum to
    F(x) - F(x') (completeness).
    Differs from the paper: the mean is by Gauss-Legendre quadrature, which needs fewer steps than their Riemann sum.

    Args:
        steps: points on the line, a forward and a backward pass each.
    Returns:
        (batch, token) probability, positive where a token is evidence for the prediction; 0 off the mask.
    """
    points, weights = np.polynomial.legendre.leggauss(steps)  # on [-1, 1]

    def attributions(part: Batch) -> Tensor:
        with fixed_parameters(model):
            output = model(part)
            predicted = probabilities(output.logits).argmax(dim=-1, keepdim=True)
            text = output.embeddings.detach()
            baseline = text.masked_fill(part.mask[:, :, None], 0)
            mean = torch.zeros_like(text)
            for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
                embeddings = (baseline + point * (text - baseline)).requires_grad_()
                chance = probabilities(model.from_embeddings(embeddings, part).logits.double()).gather(1, predicted)
                mean += weight * gradients_for(embeddings, chance)[0]
        return ((text - baseline) * mean).sum(dim=-1)

    return in_micro_batches(attributions, batch, words_at_once(model, WORDS))
