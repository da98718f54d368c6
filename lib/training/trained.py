"""One training run: `train(Run(...))` trains it, or reads it from the cache, bit for bit the same."""

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from lib import datasets, objectives
from lib.datasets import batches as length_batches
from lib.datasets import vectors as word_vectors
from lib.datasets.batches import Batch
from lib.datasets.corpus import Corpus
from lib.models import AttentionClassifier
from lib.progress import Progress
from lib.training import cache, checkpoint, fitting, workers
from lib.training.runs import Run, stages, with_bases

Say = Callable[[str], None]
TINY = 500_000  # tokens of all epochs: to start processes would take longer


@dataclass(frozen=True)
class Trained:
    """A finished run. `history` has one record per epoch; `chosen` is the epoch with the best dev ROC-AUC."""

    run: Run
    model: AttentionClassifier
    corpus: Corpus
    vectors: word_vectors.Vectors
    history: tuple[dict, ...]
    chosen: int

    def batches(self, split: str, size: int = fitting.EVALUATION_BATCH) -> Iterator[Batch]:
        """The texts of train, dev or test from short to long, on the model's device."""
        device = next(self.model.parameters()).device
        return (batch.to(device) for batch in length_batches.batches(getattr(self.corpus, split), size))


def load_corpus(run: Run, data_home: str | Path | None = None) -> Corpus:
    """The corpus that a run reads."""
    dataset, size, options = run.data
    return datasets.load(dataset, size, data_home, **dict(options))


def train(
    run: Run,
    data_home: str | Path | None = None,
    corpus: Corpus | None = None,
    say: Say = print,
    checkpoint_seconds: float = 30,
) -> Trained:
    """The trained model of a run, from the cache where it is.

    A run that was killed goes on from its last checkpoint, at most `checkpoint_seconds` of training earlier, and ends
    in the same weights. While another process trains the same run, this one waits for it.

    Raises:
        DataError: the data are missing or wrong. KeyError: unknown encoder, attention or projection.
        FloatingPointError: the loss is not finite.
    """
    corpus = corpus or load_corpus(run, data_home)
    vectors = load_vectors(run, corpus, data_home)
    name = entry_name(run, corpus, vectors)
    folder = cache.finished(name)
    if not folder:
        with cache.locked(name, lambda: say(f"{run}: another process is training it; waiting")):
            folder = cache.finished(name)  # the process that held the lock may have finished it
            if not folder:
                folder = _train_into_cache(name, run, corpus, vectors, say, checkpoint_seconds)
    return _read(folder, run, corpus, vectors)


def load_vectors(run: Run, corpus: Corpus, data_home: str | Path | None = None) -> word_vectors.Vectors:
    """The word vectors that a run starts from; random ones are drawn from its seed."""
    size = run.option("embedding_size")
    return word_vectors.load(run.vectors, corpus.vocabulary, data_home, seed=run.seed, size=size)


def is_trained(run: Run, corpus: Corpus, data_home: str | Path | None = None) -> bool:
    """Whether the cache holds the run."""
    return cache.finished(entry_name(run, corpus, load_vectors(run, corpus, data_home))) is not None


def entry_name(run: Run, corpus: Corpus, vectors: word_vectors.Vectors) -> str:
    """Readable name and hash of what decides the weights: run, data, vectors, code, torch, kind of device."""
    decides = {
        "run": asdict(run) | {"vectors": vectors.checksum},  # not where the file lies
        "epochs": run.epochs,
        "corpus": corpus.checksum,
        "code": cache.code_fingerprint("lib.training"),
        "torch": torch.__version__,
    }
    parts = [run.dataset, run.encoder, run.attention, run.projection, run.variant, run.profile, f"seed{run.seed}"]
    readable = "-".join(re.sub(r"[^A-Za-z0-9]+", "_", part)[:30] for part in parts)
    return f"{readable}-{cache.digest(decides)[:16]}"


def train_all(runs: Sequence[Run], data_home: str | Path | None = None, processes: int | None = None) -> list[Trained]:
    """The trained models of all runs, in their order; what the cache lacks is trained in spawned processes.

    One thread a process, and by default as many processes as cores; runs that are tiny altogether (TINY) are trained
    in this one. A run's base is trained before it.
    """
    corpora = {}
    for run in with_bases(runs):
        if run.data not in corpora:
            corpora[run.data] = load_corpus(run, data_home)
    missing = [run for run in with_bases(runs) if not is_trained(run, corpora[run.data], data_home)]
    tokens = sum(int(corpora[run.data].train.lengths.sum()) * run.epochs for run in missing)
    if missing:
        with Progress("training", total=len(missing)) as progress:
            task = partial(_task, data_home, corpora)
            for stage in stages(missing):
                count = processes or (1 if tokens < TINY else min(workers.cores(), len(stage)))
                work = workers.run_here if count == 1 else workers.run_all
                work(task, stage, count, progress.say, lambda run: progress.advance(str(run)))
    return [train(run, data_home, corpora[run.data]) for run in runs]


def _task(data_home: str | Path | None, corpora: dict, run: Run, say: Say) -> None:
    train(run, data_home, corpora[run.data], say)


def build(run: Run, corpus: Corpus, vectors: word_vectors.Vectors) -> AttentionClassifier:
    """The untrained model of a run; its initial weights depend on the seed alone."""
    encoder_options = {name: run.option(name) for name in ("hidden_size", "activation") if run.option(name)}
    if run.encoder == "bilstm":
        encoder_options["layers"] = run.layers
    elif run.layers != 1:
        raise ValueError(f"layers is {run.layers}; the encoder {run.encoder!r} has one")
    with torch.random.fork_rng():
        torch.manual_seed(run.seed)
        outputs = 1 if len(corpus.classes) == 2 else len(corpus.classes)
        model = AttentionClassifier(
            vectors.table * run.option("vector_scale"),
            run.encoder,
            run.attention,
            run.projection,
            outputs,
            **encoder_options,
        )
    return model.to(run.device_kind)


def _train_into_cache(name, run, corpus, vectors, say: Say, checkpoint_seconds: float) -> Path:
    working = cache.working_folder(name)
    with fitting.one_thread(), torch.random.fork_rng():  # leaves the caller's random numbers alone
        best, history = _fit(working / "checkpoint.safetensors", run, corpus, vectors, say, checkpoint_seconds)
    save_file(best, working / "weights.safetensors")
    cache.write_json(working / "history.json", history)
    cache.write_json(working / "run.json", asdict(run))
    return cache.finish(name, working, ("weights.safetensors", "history.json", "run.json"))


def _fit(path: Path, run, corpus, vectors, say: Say, checkpoint_seconds: float) -> tuple[dict, list[dict]]:
    """The weights of the best epoch, and the history; goes on from the checkpoint where there is one."""
    model = build(run, corpus, vectors)
    optimizer = torch.optim.Adam(
        fitting.parameter_groups(model, run.option("weight_decay")),
        run.option("learning_rate"),
        amsgrad=True,
        fused=True,
    )
    best, history = checkpoint.restore(path, model, optimizer)
    weight = objectives.class_weights(torch.from_numpy(corpus.train.labels), model.decoder.out_features)
    saved = time.monotonic()
    for epoch in range(len(history), run.epochs):
        started = time.monotonic()
        torch.manual_seed(run.seed * 1_000_003 + epoch)  # dropout, where a model has it, resumes the same
        order, size = (run.seed, epoch), run.option("batch_size")
        loss = fitting.train_epoch(model, corpus.train, optimizer, order, size, run.option("reduction"))
        if not math.isfinite(loss):
            raise FloatingPointError(f"{run}: the loss of epoch {epoch + 1} is {loss}; try a lower learning_rate")
        scores = {f"dev_{key}": value for key, value in fitting.evaluate(model, corpus.dev, weight).items()}
        if all(scores["dev_auc"] > record["dev_auc"] for record in history):
            best = checkpoint.weights_of(model)
        seconds = time.monotonic() - started
        history.append({"epoch": epoch + 1, "train_loss": loss, **scores, "seconds": round(seconds, 3)})
        say(f"{run}: epoch {epoch + 1}/{run.epochs}, loss {loss:.3f}, dev AUC {scores['dev_auc']:.4f}")
        if time.monotonic() - saved > checkpoint_seconds and epoch + 1 < run.epochs:
            checkpoint.save(path, model, optimizer, best, history)
            saved = time.monotonic()
    return best, history


def _read(folder: Path, run: Run, corpus: Corpus, vectors) -> Trained:
    model = build(run, corpus, vectors)
    model.load_state_dict(load_file(folder / "weights.safetensors"))
    history = json.loads((folder / "history.json").read_text())
    chosen = max(history, key=lambda record: record["dev_auc"])["epoch"]  # the first of equals
    return Trained(run, model.eval(), corpus, vectors, tuple(history), chosen)
