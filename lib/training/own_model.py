"""A model of one's own in place of those that are trained here: what the parameter `model` of a notebook names.

Its file is run as a program is: name only files that you trust.
"""

import sys
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
from torch import nn

from lib.datasets import Corpus
from lib.datasets import batches as length_batches
from lib.datasets.batches import Batch, collate
from lib.datasets.files import PROJECT
from lib.models import ModelOutput
from lib.models.check_interface import InterfaceError, check_interface
from lib.models.readout import OneOutput
from lib.training import Run
from lib.training.trained import load_corpus

FUNCTION = "load"  # where the parameter names none
TRIED, LONGEST = 6, 100  # texts on which a model is tried, and their tokens


class ModelError(ValueError):
    """A model of one's own cannot be measured; the message says why."""


@dataclass(frozen=True)
class OwnRun:
    """What stands where a run of training stands; a seed tells several models of one kind apart."""

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

    def __str__(self) -> str:
        return f"{self.dataset} {self.encoder}, seed {self.seed}"


@dataclass(frozen=True)
class OwnModel:
    """A model that was not trained here, with the fields of lib.training.Trained; it has no history."""

    run: OwnRun
    model: nn.Module
    corpus: Corpus
    vectors: str
    history: tuple[dict, ...] = ()
    chosen: int = 0
    base: None = None

    def batches(self, split: str, size: int = 128) -> Iterator[Batch]:
        """The texts of train, dev or test from short to long, on the model's device."""
        for batch in length_batches.batches(getattr(self.corpus, split), size):
            yield batch.to(self.run.device_kind)


def own_model(
    named: str, run: Run, data_home: str | Path | None = None, corpus: Corpus | None = None
) -> list[OwnModel]:
    """The models that a file gives; none where `named` is empty.

    >>> trained = own_model(model, runs[0], data_home, corpus) or train_all(runs, data_home)

    Args:
        named: "my_model.py", whose function `load` is called with the corpus, or "my_model.py:function". It gives a
            module with the interface (lib/models/interface.py); or a list of such modules, which count as seeds; or
            a pair of either and the corpus that they read, such as one in subwords.
        run: of those that would be trained: its data and its kind of device are taken.
        corpus: the run's, where it is there already.
    Raises:
        ModelError: whatever is wrong with the file, the function or the module, in one sentence.
    """
    if not named:
        return []
    path, function = located(named)
    path = path.resolve()
    corpus = corpus or load_corpus(run, data_home)
    models = called(path, function, corpus)
    if isinstance(models, tuple) and len(models) == 2 and isinstance(models[1], Corpus):
        models, corpus = models
    models = list(models) if isinstance(models, list | tuple) else [models]
    encoder = path.stem if function == FUNCTION else f"{path.stem} {function}"
    own = []
    for seed, one in enumerate(models):
        try:
            fitted = as_measured(one, corpus, run.device_kind)
        except InterfaceError as error:
            raise ModelError(f"{path.name}:{function}: {error}") from error
        parts = sum(parameter.numel() for parameter in one.parameters())
        vectors = f"those of {path.name}:{function}, a {type(one).__name__} of {parts:,} parameters, not trained here"
        of = OwnRun(corpus.name, encoder, seed, run.profile, run.device_kind)
        own.append(OwnModel(of, fitted, corpus, vectors))
    return own


def located(named: str) -> tuple[Path, str]:
    """(file, function) of "my_model.py" or "my_model.py:function"; the file as it is named, or in the project's folder.

    Raises:
        ModelError: there is no such file.
    """
    file, colon, function = named.rpartition(":")
    if not colon or not function.isidentifier():
        file, function = named, FUNCTION
    given = Path(file).expanduser()
    for place in (Path.cwd() / given, PROJECT / given):
        if place.suffix == ".py" and place.is_file():
            return place, function
    raise ModelError(f"model is {named!r}, but there is no file {file}; name one: my_model.py or my_model.py:function")


def called(path: Path, function: str, corpus: Corpus) -> object:
    """What a function of a file gives for a corpus; paths in it are seen from the file's folder."""
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # it may import what lies beside it
    spec = spec_from_file_location(f"own_{path.stem}", path)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickles look for it there
    try:
        with chdir(path.parent):
            spec.loader.exec_module(module)
    except Exception as error:
        raise ModelError(f"{path.name} cannot be run: {type(error).__name__}: {error}") from error
    if not callable(getattr(module, function, None)):
        known = [name for name, part in vars(module).items() if getattr(part, "__module__", "") == spec.name]
        raise ModelError(f"{path.name} has no function {function!r}; it has: {', '.join(known) or 'none'}")
    try:
        with chdir(path.parent):
            return getattr(module, function)(corpus)
    except Exception as error:
        raise ModelError(f"{path.name}:{function}(corpus) failed: {type(error).__name__}: {error}") from error


def as_measured(model: nn.Module, corpus: Corpus, device: str) -> nn.Module:
    """The model as the notebooks measure it: tried, in eval mode, on the device; two outputs become one.

    Raises:
        InterfaceError: it lacks the interface, has other classes than the corpus, or does not attend to words.
    """
    if not isinstance(model, nn.Module):
        raise InterfaceError(f"it gives a {type(model).__name__}; it must give a torch.nn.Module, or that and a corpus")
    if getattr(model, "vocabulary", corpus.vocabulary) != corpus.vocabulary:
        raise InterfaceError("the model reads another vocabulary than the corpus; give both: return model, corpus")
    model = model.to(device).eval()
    batch = some_texts(corpus).to(device)
    output = check_interface(model, batch)
    refuse_other_classes(output, corpus)
    if output.mask.shape != batch.mask.shape or (output.mask != batch.mask).any():
        raise InterfaceError(
            "ModelOutput.mask is not batch.mask; the notebooks take models that may attend to all words"
        )
    return OneOutput(model) if output.logits.shape[1] == 2 else model


def refuse_other_classes(output: ModelOutput, corpus: Corpus) -> None:
    outputs, classes = output.logits.shape[1], len(corpus.classes)
    if outputs != classes and (outputs, classes) != (1, 2):
        needed = "2, or one" if classes == 2 else classes
        raise InterfaceError(
            f"the model has {outputs} outputs; {corpus.name} has {classes} classes, so it needs {needed}"
        )


def some_texts(corpus: Corpus) -> Batch:
    """A few texts of the test split, of all lengths that are quickly read."""
    lengths = corpus.test.lengths
    order = np.argsort(lengths, kind="stable")
    short = order[lengths[order] <= LONGEST] if (lengths <= LONGEST).any() else order[:1]
    return collate(corpus.test, np.unique(short[np.linspace(0, len(short) - 1, TRIED).astype(int)]))
