"""Running a model for measurement: in eval mode, with gradients through cuDNN, in batches that fit in memory."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

WORDS = 2**16  # words of one forward pass, padding included: some 70 MB of hidden states


def words_at_once(model: nn.Module, words: int) -> int:
    """The most words of one forward pass: `words`, or fewer where a part of it has an attribute `words_at_once`."""
    return min([words, *(part.words_at_once for part in model.modules() if hasattr(part, "words_at_once"))])


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """The model in eval mode and `measurable`; afterwards each of its modules is back in its own mode."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with measurable(model):
            yield
    finally:
        for module, training in modes:
            module.training = training


@contextmanager
def gradients_enabled(model: nn.Module) -> Iterator[None]:
    """Gradients are enabled and the model is `measurable`: lib enables gradients here alone, outside of training."""
    with torch.enable_grad(), measurable(model):
        yield


def gradients_for(states: Tensor, values: Tensor) -> Iterator[Tensor]:
    """The gradients for states (batch, word, size) of values (batch, value), of one value after the other.

    Each value is a function of its own text alone. Together, for many classes, the gradients would not fit in memory.
    """
    if not states.requires_grad:
        raise ValueError("the embeddings or hidden states of the model's output are not in the graph; they must be")
    *others, last = values.sum(dim=0)
    for value in others:
        yield torch.autograd.grad(value, states, retain_graph=True)[0]
    yield torch.autograd.grad(last, states)[0]


@contextmanager
def measurable(model: nn.Module) -> Iterator[None]:
    """Works around two limits of cuDNN, so that gradients and small differences of predictions can be measured.

    Its recurrent layers have no gradients in eval mode, and never second ones: there they run without cuDNN where
    gradients are enabled, and with it, which is much faster, where not. And it rounds the factors of its products to 10
    bits (TF32): leave-one-out subtracts predictions that nearly agree, so here it computes in full single precision.
    """
    hooks, enabled = [], []

    def before(layer: nn.RNNBase, inputs: tuple) -> None:
        enabled.append(torch.backends.cudnn.enabled)
        torch.backends.cudnn.enabled = enabled[-1] and (layer.training or not torch.is_grad_enabled())

    def after(layer: nn.RNNBase, inputs: tuple, output: object) -> None:
        torch.backends.cudnn.enabled = enabled.pop()

    for layer in (module for module in model.modules() if isinstance(module, nn.RNNBase)):
        hooks.append(layer.register_forward_pre_hook(before))
        # prepended, so that nested contexts undo their settings in reverse order
        hooks.append(layer.register_forward_hook(after, prepend=True, always_call=True))
    cudnn = torch.backends.cudnn
    settings = {name: getattr(cudnn, name) for name in ("enabled", "benchmark", "deterministic")}
    try:
        with cudnn.flags(**settings, benchmark_limit=None, allow_tf32=False):
            yield
    finally:
        for hook in hooks:
            hook.remove()
