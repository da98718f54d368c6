"""Rankings of the items of an attention layer: by their weight, and by what a change of it would do.

Each is a score (batch, token), the largest first, and signed: an item that is evidence against the decision comes
last (Serrano & Smith 2019, section 5.1).
"""

import torch
from torch import Tensor

from lib.metrics.distances import probabilities
from lib.models import AttentionModel, ModelOutput
from lib.models.evaluation import gradients_enabled
from lib.models.interface import Ranking


def by_attention(model: AttentionModel, output: ModelOutput) -> Tensor:
    """The weight itself."""
    return output.attention.detach()


def by_gradient(model: AttentionModel, output: ModelOutput) -> Tensor:
    """d d / d alpha_i, d the largest probability, each weight varied alone (section 5.1); 0 off the mask."""
    with gradients_enabled(model):
        weights = output.attention.detach().requires_grad_()
        largest = probabilities(model.read_out(output, weights).double()).amax(dim=-1)
        (gradient,) = torch.autograd.grad(largest.sum(), weights)
    return gradient.double().masked_fill(~output.mask, 0)


def by_product(model: AttentionModel, output: ModelOutput) -> Tensor:
    """Gradient times weight (section 5.1). It changes when a constant is added to all gradients; erasing does not."""
    return by_gradient(model, output) * by_attention(model, output)


RANKINGS: dict[str, Ranking] = {"attention": by_attention, "gradient": by_gradient, "product": by_product}
