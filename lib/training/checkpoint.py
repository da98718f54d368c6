"""The state of a run in the middle of training, in one file that appears whole or not at all."""

import hashlib
import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer

Weights = dict[str, Tensor]


def weights_of(model: nn.Module) -> Weights:
    """A copy of the model's weights on the CPU."""
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}


def digest(tensors: Weights) -> str:
    """SHA-256 of the tensors' names and bytes: 64 hex digits."""
    summed = hashlib.sha256()
    for name in sorted(tensors):
        summed.update(name.encode())
        summed.update(tensors[name].contiguous().flatten().view(torch.uint8).numpy())
    return summed.hexdigest()


def save(path: Path, model: nn.Module, optimizer: Optimizer, best: Weights, history: list[dict]) -> None:
    """Writes all that the rest of the run depends on; batches and dropout depend on seed and epoch alone."""
    tensors = {f"model.{name}": value for name, value in weights_of(model).items()}
    tensors |= {f"best.{name}": value for name, value in best.items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value.detach().cpu() for name, value in state.items()}
    partial = path.with_name(path.name + ".partial")
    save_file(tensors, partial, metadata={"history": json.dumps(history), "digest": digest(tensors)})
    partial.replace(path)


def restore(path: Path, model: nn.Module, optimizer: Optimizer) -> tuple[Weights, list[dict]]:
    """Puts a saved state into model and optimizer; (best weights, history), empty where there is nothing to restore.

    A damaged file is removed: the run then starts anew.
    """
    if not path.exists():
        return {}, []
    try:
        tensors = load_file(path)
        with safe_open(path, "pt") as file:
            history = json.loads(file.metadata()["history"])
            if file.metadata()["digest"] != digest(tensors):
                raise ValueError("the tensors are not those that were written")
    except (SafetensorError, OSError, KeyError, TypeError, ValueError):
        path.unlink()
        return {}, []
    parts: dict[str, Weights] = {"model": {}, "best": {}, "optimizer": {}}
    for name, value in tensors.items():
        part, rest = name.split(".", 1)
        parts[part][rest] = value
    model.load_state_dict(parts["model"])
    state = optimizer.state_dict()
    for name, value in parts["optimizer"].items():
        index, rest = name.split(".", 1)
        state["state"].setdefault(int(index), {})[rest] = value
    optimizer.load_state_dict(state)
    return parts["best"], history
