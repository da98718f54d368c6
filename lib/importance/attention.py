"""Importance from attention: times what it weighs, and through the layers of a Transformer.

The attended vector is the sum of alpha_t h_t: a weight alone says nothing about h_t, nor from which words that is.
"""

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.metrics.distances import probabilities
from lib.models import AttentionModel, ModelOutput
from lib.models.encoders import Pretrained
from lib.models.evaluation import gradients_enabled
from lib.models.huggingface import HuggingFaceClassifier
from lib.models.transformer import Transformer
from lib.quantity import Quantity


@torch.no_grad()
def times_norm(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
    """||alpha_t h_t||_2, the length of what a token adds to the attended vector: (batch, token), 0 off the mask.

    Kobayashi et al. (2020), for one read-out layer, whose values are the hidden states themselves.
    """
    return (output.attention * output.hidden.norm(dim=-1)).masked_fill(~output.mask, 0)


@torch.no_grad()
def times_contribution(model: AttentionModel, batch: Batch, output: ModelOutput) -> Tensor:
    """alpha_t w . h_t, what a token adds to the predicted class's logit: (batch, token), 0 off the mask.

    Below 0 where it is evidence against the class; NaN where the read-out is not affine. With the bias the tokens' sum
    is the logit (of one sigmoid output, of class 0 its negative).
    """
    affine = model.token_logits(output)
    if affine is None:
        return torch.full_like(output.attention, torch.nan)
    terms = affine[0] if affine[0].shape[-1] > 1 else torch.cat([-affine[0], affine[0]], dim=-1)
    own = probabilities(output.logits).argmax(dim=-1)[:, None, None].expand(-1, terms.shape[1], 1)
    return (output.attention * terms.gather(2, own).squeeze(2)).masked_fill(~output.mask, 0)


attention_times_norm = Quantity("attention_times_norm", times_norm, "1")
attention_times_contribution = Quantity("attention_times_contribution", times_contribution, "1")


def through_layers(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
    """From what a Transformer reads out of its last states, by attention or not: (batch, token); NaN for others.

    rollout (Abnar & Zuidema 2020, Eq. 1): through each layer go half its heads' mean and half the residual.
    times_gradient (Chefer et al. 2021, Eq. 5 and 6): all of the residual, and the mean of the weights times their
    gradients, of the predicted class's probability, where above 0.
    """
    hugging = isinstance(model, HuggingFaceClassifier)
    if not hugging and not isinstance(getattr(model, "encoder", None), Transformer | Pretrained):
        return dict.fromkeys(LAYERS, torch.full_like(output.attention, torch.nan))
    inner, embeddings = [], output.embeddings.detach()  # the weights of each layer, (batch, head, word, word)
    with gradients_enabled(model):
        embeddings.requires_grad_()
        if hugging:
            inside, packed = output.layout.inside, output.layout.pack(embeddings)
            read = model.read_from(inside).to(packed).requires_grad_()
            logits = model.logits(packed, inside, inner, output.layout.second)
        else:
            own = model.from_hidden(model.encoder(embeddings, batch.lengths, inner), embeddings, batch.mask, None)
            read, logits = own.attention, own.logits
        largest = probabilities(logits.double()).amax(dim=-1)
        *gradients, last = torch.autograd.grad(largest.sum(), [*inner, read], allow_unused=True)
    relevance = read if hugging else (read * last).clamp(min=0)
    for weights, gradient in zip(reversed(inner), reversed(gradients), strict=True):
        products = (weights * gradient).clamp(min=0).mean(dim=1)
        relevance = relevance + (relevance[:, None] @ products).squeeze(1)
    found = [rolled_out(read, inner), relevance]
    found = [output.layout.unpack(values).sum(dim=2) for values in found] if hugging else found
    return {name: value.masked_fill(~batch.mask, 0) for name, value in zip(LAYERS, found, strict=True)}


def rolled_out(read: Tensor, inner: list[Tensor]) -> Tensor:
    """Rollout of what the last states are read out by (batch, word), through the layers' weights: (batch, word)."""
    for weights in reversed(inner):
        read = (read + (read[:, None] @ weights.mean(dim=1)).squeeze(1)) / 2
    return read


OTHER_MAPS = ("mean of the last layer", "mean of all layers", "rollout")
LAYERS = {"rollout": "fraction", "times_gradient": "1"}
self_attention = Quantity("self_attention", through_layers, LAYERS)


def every_map(model: HuggingFaceClassifier) -> Quantity:
    """The weights of the words for what is read out: in each head, in two means of heads, by rollout."""
    layers, heads = (range(1, size + 1) for size in model.sizes)
    named = [*(f"layer {layer}, head {head}" for layer in layers for head in heads), *OTHER_MAPS]

    def measured(model: HuggingFaceClassifier, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
        inner, layout = [], output.layout
        with torch.no_grad():
            model.logits(layout.pack(output.embeddings), layout.inside, inner, layout.second)
        read = model.read_from(layout.inside).to(inner[0])
        rows = torch.stack([torch.einsum("tq,thqk->tkh", read, weights) for weights in inner], dim=2)
        maps = [*rows.flatten(2).unbind(2), rows[:, :, -1].mean(dim=2), rows.mean(dim=(2, 3)), rolled_out(read, inner)]
        words = layout.unpack(torch.stack(maps, dim=2)).sum(dim=2).masked_fill(~batch.mask[:, :, None], 0)
        return dict(zip(named, words.unbind(2), strict=True))

    return Quantity("map", measured, dict.fromkeys(named, "fraction"))
