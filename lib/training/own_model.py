"""Your own model, from the file that the parameter `model` of a notebook names.

The file is run as a program: name only files that you trust.
"""

import sys
from contextlib import chdir
from dataclasses import dataclass, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from lib.datasets import Corpus
from lib.datasets.batches import Batch, collate
from lib.datasets.files import PROJECT
from lib.models.check_interface import InterfaceError, check_interface
from lib.models.interface import AttentionModel, ModelOutput
from lib.training import Run
from lib.training.trained import Trained, load_corpus

FUNCTION = "load"  # where the parameter names none
TRIED, LONGEST = 6, 100  # texts on which a model is checked, and their most tokens
BEYOND_THE_INTERFACE = ("projection", "inner_attention", "words_at_once", "vocabulary")


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

    def __str__(self) -> str:
        return f"{self.dataset} {self.encoder}, seed {self.seed}"


def own_model(named: str, run: Run, data_home: str | Path | None = None, corpus: Corpus | None = None) -> list[Trained]:
    """The models that a file gives, as if they were trained here, without a history; none where `named` is empty.

    >>> trained = own_model(model, runs[0], data_home, corpus) or train_all(runs, data_home)

    Args:
        named: "my_model.py", whose function `load` is called with the corpus, or "my_model.py:function". It gives a
            module with the interface (lib/models/interface.py); or a list of such modules, which count as seeds; or
            a pair of either and the corpus that they read, such as one in subwords.
        run: of those that would be trained: its data and its kind of device are taken.
        corpus: the run's, where it is there already.
    Raises:
        ModelError: the file, the function or the module is wrong, in one sentence.
    """
    if not named:
        return []
    path, function = locate(named)
    path = path.resolve()
    corpus = corpus or load_corpus(run, data_home)
    models = call_function(path, function, corpus)
    if isinstance(models, tuple) and len(models) == 2 and isinstance(models[1], Corpus):
        models, corpus = models
    models = list(models) if isinstance(models, list | tuple) else [models]
    encoder = path.stem if function == FUNCTION else f"{path.stem} {function}"
    own = []
    for seed, model in enumerate(models):
        try:
            fitted = prepare(model, corpus, run.device_kind)
        except InterfaceError as error:
            raise ModelError(f"{path.name}:{function}: {error}") from error
        parts = sum(parameter.numel() for parameter in model.parameters())
        vectors = f"those of {path.name}:{function}, a {type(model).__name__} of {parts:,} parameters, not trained here"
        of = OwnRun(corpus.name, encoder, seed, run.profile, run.device_kind)
        own.append(Trained(of, fitted, corpus, vectors, history=(), chosen=0))
    return own


def describe_own(trained: list[Trained]) -> list[str]:
    """A sentence about models of one's own, for the notebook that measures them; none for those trained here."""
    if not isinstance(trained[0].run, OwnRun):
        return []
    name, tokens = trained[0].run.encoder, trained[0].corpus.test.lengths.mean()
    measured = f"Measured: {len(trained)} of {name}, not trained here. The text above on encoders and attentions is "
    measured += f"not about it, and no published value is of it. As it reads the test texts, they have {tokens:.1f} "
    return [f"{measured}tokens on average."]


def locate(named: str) -> tuple[Path, str]:
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


def call_function(path: Path, function: str, corpus: Corpus) -> object:
    """What a function of a file returns for a corpus; its relative paths start in the file's folder."""
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # it may import what lies beside it
    spec = spec_from_file_location(f"own_{path.stem}", path)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
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


def prepare(model: nn.Module, corpus: Corpus, device: str) -> nn.Module:
    """The model as the notebooks measure it: checked, in eval mode, on the device; two outputs become one.

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
    outputs, classes = output.logits.shape[1], len(corpus.classes)
    if outputs != classes and (outputs, classes) != (1, 2):
        needed = "2, or one" if classes == 2 else classes
        raise InterfaceError(
            f"the model has {outputs} outputs; {corpus.name} has {classes} classes, so it needs {needed}"
        )
    if output.mask.shape != batch.mask.shape or (output.mask != batch.mask).any():
        raise InterfaceError(
            "ModelOutput.mask is not batch.mask; the notebooks take models that may attend to all words"
        )
    return OneOutput(model) if outputs == 2 else model


def some_texts(corpus: Corpus) -> Batch:
    """A few texts of the test split, of various lengths up to LONGEST."""
    lengths = corpus.test.lengths
    order = np.argsort(lengths, kind="stable")
    short = order[lengths[order] <= LONGEST] if (lengths <= LONGEST).any() else order[:1]
    return collate(corpus.test, np.unique(short[np.linspace(0, len(short) - 1, TRIED).astype(int)]))


class OneOutput(nn.Module):
    """A model of two classes as one sigmoid output, the difference of its logits: sigmoid of it is their softmax.

    What the model has beyond the interface, this one has too.
    """

    def __init__(self, model: AttentionModel):
        super().__init__()
        self.model = model
        for name in BEYOND_THE_INTERFACE:
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        if hasattr(model, "without_text"):
            self.without_text = lambda batch: second_minus_first(model.without_text(batch))

    def forward(self, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        return to_one_output(self.model(batch, attention=attention))

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        """The model's forward pass from embeddings, its two logits as one: (batch, 1)."""
        return to_one_output(self.model.from_embeddings(embeddings, batch, attention))

    def read_out(self, output: ModelOutput, attention: Tensor) -> Tensor:
        """The model's read-out, its two logits as one."""
        return second_minus_first(self.model.read_out(output, attention))

    def token_logits(self, output: ModelOutput) -> tuple[Tensor, Tensor] | None:
        """The model's token logits and bias, the two classes as one; None if it has none."""
        affine = self.model.token_logits(output)
        return None if affine is None else (second_minus_first(affine[0]), second_minus_first(affine[1]))


def to_one_output(output: ModelOutput) -> ModelOutput:
    """The same forward pass with logits (batch, 1)."""
    return replace(output, logits=second_minus_first(output.logits))


def second_minus_first(logits: Tensor) -> Tensor:
    """(..., 2) -> (..., 1): the second minus the first."""
    return logits[..., 1:] - logits[..., :1]
