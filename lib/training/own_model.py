"""Your own model, from the file that the parameter `model` of a notebook names.

The file is run as a program: name only files that you trust.
"""

import sys
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from runpy import run_path

import numpy as np
from torch import nn

from lib.datasets import Corpus
from lib.datasets.batches import collate
from lib.datasets.files import PROJECT
from lib.models.check_interface import InterfaceError, check_interface
from lib.training import Run
from lib.training.trained import Trained, load_corpus

FUNCTION = "load"  # where the parameter names none
TRIED = 6  # texts on which a model is checked, from the shortest to one of median length


class ModelError(ValueError):
    """Your own model cannot be measured, for the reason in the message."""


@dataclass(frozen=True)
class OwnRun:
    """In place of the Run of a trained model; several models of one file differ by seed."""

    dataset: str
    encoder: str
    seed: int = 0
    profile: str = "quick"
    device_kind: str = "cpu"
    attention: str = "attention"
    projection: str = ""
    variant: str = ""
    layers: str = ""
    base: None = None
    is_guided: bool = False

    def __str__(self) -> str:
        return f"{self.dataset} {self.encoder}, seed {self.seed}"


def own_model(named: str, run: Run, data_home: str | Path | None = None, corpus: Corpus | None = None) -> list[Trained]:
    """The models that a file gives, as if they were trained here, without a history; none where `named` is empty.

    >>> trained = own_model(model, runs[0], data_home, corpus) or train_all(runs, data_home)

    Args:
        named: "my_model.py:function"; without a function it is `load`. Called with the corpus it gives a module with
            the interface (lib/models/interface.py); a list of them, which count as seeds; or a pair of either and the
            corpus that they read, such as one in subwords.
        run: of those that would be trained: its data and its kind of device are taken. corpus: the run's.
    Raises:
        ModelError: the file, the function or the module is wrong, in one sentence.
    """
    if not named:
        return []
    path, function = locate(named)
    corpus = corpus or load_corpus(run, data_home)
    models = call_function(path, function, corpus)
    if isinstance(models, tuple) and len(models) == 2 and isinstance(models[1], Corpus):
        models, corpus = models
    encoder, own = path.stem if function == FUNCTION else f"{path.stem} {function}", []
    for seed, model in enumerate(models if isinstance(models, list | tuple) else [models]):
        try:
            prepare(model, corpus, run.device_kind)
        except InterfaceError as error:
            raise ModelError(f"{path.name}:{function}: {error}") from error
        parts = sum(parameter.numel() for parameter in model.parameters())
        vectors = f"those of {path.name}:{function}, a {type(model).__name__} of {parts:,} parameters, not trained here"
        of = OwnRun(corpus.name, encoder, seed, run.profile, run.device_kind)
        own.append(Trained(of, model, corpus, vectors, history=(), chosen=0))
    return own


def locate(named: str) -> tuple[Path, str]:
    """(file, function) of "my_model.py:function", the file from here or from the project's folder.

    Raises:
        ModelError: there is no such file.
    """
    file, colon, function = named.rpartition(":")
    if not colon or not function.isidentifier():
        file, function = named, FUNCTION
    given = Path(file).expanduser()
    for place in (given.resolve(), PROJECT / given):
        if place.suffix == ".py" and place.is_file():
            return place, function
    raise ModelError(f"model is {named!r}, but there is no file {file}; name one: my_model.py or my_model.py:function")


def call_function(path: Path, function: str, corpus: Corpus) -> object:
    """What a function of a file returns for a corpus; its relative paths start in the file's folder."""
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # it may import what lies beside it
    try:
        with chdir(path.parent):
            return run_path(str(path), run_name=f"own_{path.stem}")[function](corpus)
    except Exception as error:
        raise ModelError(f"{path.name}:{function}(corpus) failed: {type(error).__name__}: {error}") from error


def prepare(model: nn.Module, corpus: Corpus, device: str) -> None:
    """Puts the model into eval mode and onto the device, and checks it on a few texts of the test split.

    Raises:
        InterfaceError: it lacks the interface, has other classes than the corpus, or does not attend to words.
    """
    if not isinstance(model, nn.Module):
        raise InterfaceError(f"it gives a {type(model).__name__}; it must give a torch.nn.Module, or that and a corpus")
    if getattr(model, "vocabulary", corpus.vocabulary) != corpus.vocabulary:
        raise InterfaceError("the model reads another vocabulary than the corpus; give both: return model, corpus")
    by_length = corpus.test.lengths.argsort(kind="stable")
    tried = by_length[np.linspace(0, len(by_length) // 2, TRIED, endpoint=False).astype(int)]
    batch = collate(corpus.test, np.unique(tried)).to(device)
    output = check_interface(model.to(device).eval(), batch)
    outputs, classes = output.logits.shape[1], len(corpus.classes)
    if outputs != classes and (outputs, classes) != (1, 2):
        needed = f"{corpus.name} has {classes} classes, so it needs {'2, or one' if classes == 2 else classes}"
        raise InterfaceError(f"the model has {outputs} outputs; {needed}")
    if output.mask.shape != batch.mask.shape or (output.mask != batch.mask).any():
        raise InterfaceError("ModelOutput.mask is not batch.mask; the notebooks take models that attend to all words")
