"""A make-believe GPU: tensors that live "far" keep their numbers in CPU memory, and nobody may mix the two.

What CUDA refuses is refused here, in its words: an operation on tensors of both kinds, NumPy on a far one. So device
errors are found where there is no GPU. It tells nothing of CUDA's own numbers, nor of what cuDNN cannot do.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import torch
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing

FAR = "lazy"  # a kind of device that torch knows and that nothing uses: autograd takes it without any hardware
BY_CPU_INDICES = ("aten.index.Tensor", "aten.index_put", "aten.index_put_", "aten._index_put_impl_")
BETWEEN = ("aten._to_copy", "aten.copy_")


class Far(torch.Tensor):
    """A tensor that says it lives far; `here` has its numbers."""

    @staticmethod
    def __new__(cls, here: torch.Tensor):
        shape = {"strides": here.stride(), "storage_offset": here.storage_offset(), "dtype": here.dtype}
        return torch.Tensor._make_wrapper_subclass(cls, here.shape, device=FAR, **shape)

    def __init__(self, here: torch.Tensor):
        self.here = here

    @classmethod
    def __torch_dispatch__(cls, function, types, given=(), options=None):
        return compute(function, given, options or {})

    def __getitem__(self, index):
        parts = index if isinstance(index, tuple) else (index,)
        return super().__getitem__(tuple(torch.tensor(part) if isinstance(part, list) else part for part in parts))

    def new_tensor(self, data):
        return torch.tensor(data, dtype=self.dtype, device=FAR)

    def tolist(self) -> list:
        return self.here.tolist()

    def numpy(self, **_):
        raise TypeError("can't convert a far tensor to numpy. Use Tensor.cpu() to copy it to host memory first.")

    __array__ = numpy


def compute(function, given: tuple, options: dict):
    """The operation on the numbers; its results live where CUDA would have them."""
    leaves = [leaf for leaf in parts((*given, *options.values())) if isinstance(leaf, torch.Tensor)]
    far = any(isinstance(leaf, Far) for leaf in leaves)
    refuse_mixed(str(function), given, leaves, far)
    found = function(*each(here, given), **{name: each(here, value) for name, value in options.items()})
    wanted = options.get("device")
    if not (far if wanted is None else torch.device(wanted).type == FAR):
        return found
    found = each(lambda one: Far(one) if isinstance(one, torch.Tensor) else one, found)
    return return_and_correct_aliasing(function, given, options, found) if far else found


def each(change, value):
    """`change` of a value, or of all in a list or tuple of such; torch's own way for any container takes longer."""
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        return type(value)(each(change, one) for one in value)
    return change(value)


def parts(values) -> Iterator:
    for value in values:
        if isinstance(value, list | tuple):
            yield from parts(value)
        else:
            yield value


def here(one: object) -> object:
    if isinstance(one, Far):
        return one.here
    return torch.device("cpu") if isinstance(one, torch.device) else one


def refuse_mixed(name: str, given: tuple, leaves: list[torch.Tensor], far: bool) -> None:
    near = [leaf for leaf in leaves if not isinstance(leaf, Far)]
    if name.startswith(BY_CPU_INDICES) and isinstance(given[0], Far):
        near = [given[2]] if len(given) > 2 and not isinstance(given[2], Far) else []
    many = [leaf for leaf in near if leaf.dim() or not any(one.dim() for one in leaves if isinstance(one, Far))]
    if far and many and not name.startswith(BETWEEN):
        raise RuntimeError(f"{name}: expected all tensors to be on the same device, but found far and cpu")


class Everywhere(TorchDispatchMode):
    """So that also tensors that are made far are."""

    def __torch_dispatch__(self, function, types, given=(), options=None):
        return compute(function, given, options or {})


@contextmanager
def far_away(monkeypatch) -> Iterator[str]:
    """The name of a device, as "cuda" is one, on which tensors can be made inside."""
    plain, optimizer = torch.tensor, import_module("torch.optim.optimizer")
    fused = optimizer._get_fused_kernels_supported_devices()

    def made(data, device=None, **options):
        return plain(data, **options) if device is None else plain(data, **options).to(device)

    monkeypatch.setattr(torch, "tensor", made)  # torch's own goes past the mode
    monkeypatch.setattr(torch, "inference_mode", torch.no_grad)  # in which no tensor can be one's own
    monkeypatch.setattr(optimizer, "_get_fused_kernels_supported_devices", lambda: [*fused, FAR])
    with Everywhere():
        yield FAR
