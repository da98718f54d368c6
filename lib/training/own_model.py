"""Your own model, from the Hugging Face folder or the file that the parameter `model` of a notebook names.

A file is run as a program: name only files that you trust. Of a folder nothing is run.
"""

import sys
from collections.abc import Iterable
from contextlib import chdir, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from runpy import run_path

import numpy as np
import torch
from torch import Tensor, nn

from lib.datasets import Corpus
from lib.datasets.batches import batches, collate, micro_batches
from lib.datasets.files import PROJECT
from lib.importance import gradient, gradient_times_input, leave_one_out
from lib.models.check_interface import attempt, check_interface, check_same, made_single, require
from lib.models.evaluation import WORDS, eval_mode, words_at_once
from lib.models.huggingface import pretrained
from lib.progress import counted
from lib.training import Run
from lib.training.trained import Trained, load_corpus

FUNCTION = "load"  # where the parameter names none
TRIED = 6  # texts on which a model is checked, from the shortest to nearly the median length
LEFT_OUT = 2  # of these, the shortest: importance is tried on each by itself


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
    """The models of a file or folder, as if they were trained here, without a history; none where `named` is empty.

    >>> trained = own_model(model, runs[0], data_home, corpus) or train_all(runs, data_home)

    Args:
        named: the folder of a Hugging Face classifier, whose last layer is measured (`lib.models.huggingface`); or
            "my_model.py:function"; without a function it is `load`. Called with the corpus it gives a module with
            the interface (lib/models/interface.py); a list of them, which count as seeds; or a pair of either and the
            corpus that they read, such as one in subwords.
        run: of those that would be trained: its data and its kind of device are taken. corpus: the run's.
    Raises:
        ModelError: the file, the function or the module is wrong, in one sentence.
    """
    if not named:
        return []
    path, function = locate(named)
    corpus, own = corpus or load_corpus(run, data_home), []
    encoder = path.stem if function == FUNCTION else f"{path.stem} {function}" if function else path.name
    file = f"{path.name}:{function}" if function else path.name
    try:
        given = call_function(path, function, corpus) if function else pretrained(path, corpus)
        models, corpus = models_of(given, corpus)
        torch.set_default_dtype(torch.float32)  # whatever the file has set, for what runs after it
        torch.set_grad_enabled(True)
        for seed, model in enumerate(models):
            read = replace(corpus, notes=(*corpus.notes, *made_single(model)))
            attempt("the check", partial(prepare, model, read, run.device_kind))
            attention = getattr(model, "attention_name", "attention")
            of = OwnRun(corpus.name, encoder, seed, run.profile, run.device_kind, attention)
            own.append(Trained(of, model, read, None, (), 0))
            print(f"{file} passed the check on {counted(len(read.test), 'text')}", flush=True)
    except ValueError as error:  # of the interface, or of a folder
        raise ModelError(f"{file}: {error}") from error
    return own


def own_models(named: str, runs: Iterable[Run], data_home: str | Path | None = None) -> list[Trained]:
    """`own_model` of the data of each of these runs; its file may train one on them."""
    return [one for run in runs for one in own_model(named, run, data_home)]


def locate(named: str) -> tuple[Path, str]:
    """(file, function) of "my_model.py:function", or (folder, ""), from here or the project; else ModelError."""
    file, colon, function = named.rpartition(":")
    if not colon or not function.isidentifier():
        file, function = named, FUNCTION
    with suppress(OSError, RuntimeError, UnicodeError):  # a name too long, ~ of no user, not UTF-8
        given = Path(file).expanduser()
        for place in (given.resolve(), PROJECT / given):
            if place.suffix == ".py" and place.is_file() and str(place).encode():
                return place, function
            if place.is_dir() and file == named and str(place).encode():
                return place, ""
    seen = f"model is {ascii(named)[:200]}, but there is no folder or .py file {ascii(file)[1:-1][:200]}"
    raise ModelError(f"{seen}; name one: a Hugging Face folder, my_model.py or my_model.py:function")


def call_function(path: Path, function: str, corpus: Corpus) -> object:
    """What a function of a file returns for a corpus; its relative paths start in the file's folder."""
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # it may import what lies beside it
    name = f"own_{path.stem}"
    with chdir(path.parent):
        names = attempt("the file", lambda: run_path(str(path), run_name=name))
        own = [key for key, value in names.items() if getattr(value, "__module__", "") == name and callable(value)]
        require(function in names, f"the file has no function {function}; it has: {', '.join(own) or 'none'}")
        return attempt(f"{function}(corpus)", lambda: names[function](corpus))


def models_of(returned: object, corpus: Corpus) -> tuple[list[nn.Module], Corpus]:
    """The modules that a function returned, and the corpus that they read; InterfaceError where they are none."""
    models, other = returned, corpus
    if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], Corpus):
        models, other = returned
    models = list(models) if isinstance(models, list | tuple) else [models]
    kinds = [type(model).__name__ for model in models if not isinstance(model, nn.Module)]
    seen = f"it gives a {kinds[0]}" if kinds else "it gives no model"
    require(models and not kinds, f"{seen}; it must give a torch.nn.Module, or that and a corpus")
    require(len(set(models)) == len(models), "it gives one module twice; several count as runs of their own")
    texts, own = ({(one.id, one.label) for one in of.test.instances} for of in (corpus, other))
    require(own and own <= texts, "the corpus that it gives has other texts or labels than the report's")
    return models, other


def prepare(model: nn.Module, corpus: Corpus, device: str) -> None:
    """Puts the model into eval mode and onto the device, and tries on it what a report does.

    On a few texts the interface, on the shortest of them importance, and on all of test a forward pass.

    InterfaceError: it lacks the interface, has other classes, or does not attend to words.
    """
    own = getattr(model, "vocabulary", corpus.vocabulary)
    require(own == corpus.vocabulary, "the model reads another vocabulary than the corpus; give both: model, corpus")
    lengths = corpus.test.lengths
    places = np.linspace(0, len(lengths) // 2, TRIED, endpoint=False).astype(int)
    tried = lengths.argsort(kind="stable")[np.unique(places)]
    batch = collate(corpus.test, tried).to(device)
    output = check_interface(model.to(device).eval(), batch)
    outputs, classes = output.logits.shape[1], len(corpus.classes)
    needed = f"{corpus.name} has {classes} classes, so it needs {'2, or one' if classes == 2 else classes}"
    require(outputs == classes or (outputs, classes) == (1, 2), f"the model has {outputs} outputs; {needed}")
    require(output.mask.equal(batch.mask), "ModelOutput.mask is not batch.mask; a model must attend to all words")
    for row in torch.arange(len(tried), device=batch.tokens.device)[:LEFT_OUT, None]:
        for measure in (gradient, gradient_times_input, leave_one_out):
            attempt(f"{measure.__name__}(model, batch)", partial(measure, model, batch.rows(row)))
    logits = attempt("model(batch) on all texts of test", partial(logits_of, model, corpus, device))
    require(logits.isfinite().all(), "the logits of some texts of test are not finite")
    check_same("in the batches of a report model(batch)", logits[tried], output.logits.detach().cpu())


def logits_of(model: nn.Module, corpus: Corpus, device: str) -> Tensor:
    """Logits (text, class) of the texts of test, in the batches of a report."""
    found = {}
    with torch.no_grad(), eval_mode(model):
        for batch in micro_batches(batches(corpus.test, 512), words_at_once(model, WORDS)):
            found |= dict(zip(batch.instance.tolist(), model(batch.to(device)).logits.cpu(), strict=True))
    return torch.stack([found[place] for place in range(len(corpus.test))])
