"""What cuDNN cannot do for a model that is measured on a GPU, held in one place; without a GPU nothing changes."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def measurable(model: nn.Module) -> Iterator[None]:
    """Inside, all of a model can be measured: its gradients in eval mode, and small differences of its predictions.

    cuDNN's recurrent layers refuse gradients in eval mode, and second ones always. So a recurrent layer that runs in
    eval mode with gradients enabled runs without cuDNN; without gradients it keeps it, which is much faster.
    cuDNN also rounds what its layers multiply to 10 bits (TF32) where the GPU can. Leave-one-out subtracts predictions
    that nearly agree, so here the layers compute in full single precision.
    """
    hooks, before = [], []

    def enter(layer: nn.RNNBase, given: tuple) -> None:
        before.append(torch.backends.cudnn.enabled)
        torch.backends.cudnn.enabled = before[-1] and (layer.training or not torch.is_grad_enabled())

    def leave(layer: nn.RNNBase, given: tuple, output: object) -> None:
        torch.backends.cudnn.enabled = before.pop()

    within = model.modules() if isinstance(model, nn.Module) else ()  # a read-out may stand for a model
    for layer in (part for part in within if isinstance(part, nn.RNNBase)):
        last_in_first_out = layer.register_forward_hook(leave, prepend=True, always_call=True)  # where these nest
        hooks += [layer.register_forward_pre_hook(enter), last_in_first_out]
    try:
        with full_precision():
            yield
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def full_precision() -> Iterator[None]:
    """cuDNN as it is set, but for TF32, which is off."""
    cudnn = torch.backends.cudnn
    kept = {"enabled": cudnn.enabled, "benchmark": cudnn.benchmark, "deterministic": cudnn.deterministic}
    with cudnn.flags(**kept, benchmark_limit=None, allow_tf32=False):
        yield


@contextmanager
def gradients_of(model: nn.Module) -> Iterator[None]:
    """Gradients are on, and the model can give them: the only way in which lib asks for any outside of training."""
    with torch.enable_grad(), measurable(model):
        yield
