"""Finished runs on disk, named by a hash of what decides them, never half-written; checkpoints of unfinished ones."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.optim import Optimizer

from lib.atomic_write import alone, write_file, write_json

PROJECT = Path(__file__).resolve().parents[2]
Weights = dict[str, Tensor]
WEIGHTS = 1  # the version of what training gives; whoever changes what training gives raises it


def home() -> Path:
    """The folder of finished runs: $CACHE_HOME, else data/cache; a relative path is one of the project."""
    return PROJECT / os.path.expanduser(os.environ.get("CACHE_HOME") or "data/cache")  # noqa: PTH111 - no user, no error


def digest(value: object) -> str:
    """SHA-256 of a JSON value, whatever the order of its keys: 64 hex digits."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file: 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def entry(name: str, make: Callable[[Path], Sequence[str]], waiting: Callable[[], None] = lambda: None) -> Path:
    """The folder of a finished entry; where there is none it is made first, by one process at a time.

    A process that is killed frees the lock, and what it left in the working folder is there for the next. The working
    folder becomes the entry in one rename; `contents.json`, written last, has the digests of its files.

    Args:
        make: writes the files into a working folder, and gives the names of those to keep.
        waiting: called once where another process makes the entry.
    """
    if folder := finished(name):
        return folder
    working, final = home() / ".working" / name, home() / name
    with alone(home() / ".locks" / f"{name}.lock", waiting):
        if folder := finished(name):  # by the process that held the lock
            return folder
        working.mkdir(parents=True, exist_ok=True)
        keep = make(working)
        for leftover in working.iterdir():
            if leftover.name not in keep:
                leftover.unlink()
        write_json(working / "contents.json", {file: file_digest(working / file) for file in keep})
        shutil.rmtree(final, ignore_errors=True)
        return working.rename(final)


def finished(name: str) -> Path | None:
    """The folder of a finished entry, or None. One whose files do not match their digests counts as not finished."""
    folder = home() / name
    try:
        contents = json.loads((folder / "contents.json").read_text())
        sound = bool(contents) and all(file_digest(folder / file) == expected for file, expected in contents.items())
    except (OSError, ValueError, AttributeError):
        sound = False
    return folder if sound else None


def weights_of(model: nn.Module) -> Weights:
    """A copy of the model's weights on the CPU."""
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}


def save_checkpoint(path: Path, model: nn.Module, optimizer: Optimizer, best: Weights, history: list[dict]) -> None:
    """Writes what the rest of a run depends on, whole or not at all; batches and dropout follow from seed and epoch."""
    parts = {"model": weights_of(model), "best": best} | optimizer.state_dict()["state"]
    tensors = {f"{part}/{name}": value.cpu() for part, values in parts.items() for name, value in values.items()}
    tensors["history"] = torch.frombuffer(bytearray(json.dumps(history).encode()), dtype=torch.uint8)
    write_file(path, (content := save(tensors)) + hashlib.sha256(content).digest())


def restore_checkpoint(path: Path, model: nn.Module, optimizer: Optimizer) -> tuple[Weights, list[dict]]:
    """Puts a saved state into model and optimizer; (best weights, history), empty without a whole one."""
    content = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(content[:-32]).digest() != content[-32:]:
        return {}, []
    tensors = load(content[:-32])
    history, parts = json.loads(bytes(tensors.pop("history").tolist())), {"best": {}}
    for key, tensor in tensors.items():
        part, name = key.split("/")
        parts.setdefault(part, {})[name] = tensor
    model.load_state_dict(parts.pop("model"))
    best = parts.pop("best")
    optimizer.load_state_dict(optimizer.state_dict() | {"state": {int(of): state for of, state in parts.items()}})
    return best, history
