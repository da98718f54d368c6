"""One training run: `train(Run(...))` trains it, or reads it from the cache, bit for bit the same."""

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from lib import datasets
from lib.atomic_write import write_json
from lib.datasets import batches as length_batches
from lib.datasets import vectors as word_vectors
from lib.datasets.batches import Batch
from lib.datasets.corpus import Corpus
from lib.models import AttentionClassifier, QuestionClassifier, evaluation
from lib.progress import Progress
from lib.training import cache, checkpoint, fitting, sharing, word2vec
from lib.training import processes as workers
from lib.training import tasks as courses
from lib.training import tasks as word_level
from lib.training.building import build, drawn_apart
from lib.training.guides import guide
from lib.training.runs import Run, adds_up, is_guided, stages, with_bases

Say = Callable[[str], None]
TINY = 500_000  # tokens of all epochs: to start processes would take longer
# What decides the weights of a variant: these modules and all that they import.
MODULES = {
    "base": ("lib.training",),
    "guide_instance_adversary": (
        "lib.training",
        "lib.interventions.adversary",
        "lib.fast.exact_adversary",
    ),
}


@dataclass(frozen=True)
class Trained:
    """A finished run. `history` has one record per epoch; `chosen` is the epoch whose weights the model has.

    `base` is the run whose outputs this one uses; `converged` says whether an adversary's loss came to stand still.
    """

    run: Run
    model: AttentionClassifier | QuestionClassifier
    corpus: Corpus
    vectors: word_vectors.Vectors
    history: tuple[dict, ...]
    chosen: int
    base: "Trained | None" = None

    def batches(self, split: str, size: int = fitting.EVALUATION_BATCH) -> Iterator[Batch]:
        """The texts of train, dev or test from short to long, on the model's device; a guided run's with its guide."""
        return source_of(self.run, self.corpus, self.base)(split, size)

    @property
    def converged(self) -> bool:
        return courses.Adversary.ended(list(self.history))


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
        FloatingPointError: the loss is not finite. ValueError: it is planned for a GPU, and there is none.
    """
    refuse_missing_gpu([run])
    corpus = corpus or load_corpus(run, data_home)
    base = train(run.base, data_home, corpus, say, checkpoint_seconds) if run.base else None
    vectors = load_vectors(run, corpus, data_home)
    name = entry_name(run, corpus, data_home)
    folder = cache.finished(name)
    if not folder:
        with cache.locked(name, lambda: say(f"{run}: another process is training it; waiting")):
            folder = cache.finished(name)  # the process that held the lock may have finished it
            if not folder:
                untrained = Trained(run, build(run, corpus, vectors), corpus, vectors, (), 0, base)
                folder = _train_into_cache(name, untrained, say, checkpoint_seconds)
    return _read(folder, run, corpus, vectors, base)


def load_vectors(run: Run, corpus: Corpus, data_home: str | Path | None = None) -> word_vectors.Vectors:
    """The word vectors that a run starts from; random ones are drawn from its seed, and so is word2vec."""
    size = run.option("embedding_size")
    if run.vectors == word2vec.NAME:
        return word2vec.vectors(corpus, size, run.seed)
    return word_vectors.load(run.vectors, corpus.vocabulary, data_home, seed=run.seed, size=size)


def is_trained(run: Run, corpus: Corpus, data_home: str | Path | None = None) -> bool:
    """Whether the cache holds the run."""
    return cache.finished(entry_name(run, corpus, data_home)) is not None


def entry_name(run: Run, corpus: Corpus, data_home: str | Path | None = None) -> str:
    """Readable name and hash of what decides the weights: run, data, vectors, code, torch, kind of device."""
    vectors = load_vectors(run, corpus, data_home)
    decides = {
        "run": asdict(run) | {"vectors": vectors.checksum, "base": None},  # not where the file lies
        "base": entry_name(run.base, corpus, data_home) if run.base else None,
        "epochs": run.epochs,
        "corpus": corpus.checksum,
        "code": [cache.code_fingerprint(module) for module in MODULES.get(run.variant, MODULES["base"])],
        "torch": torch.__version__,
    }
    parts = [run.dataset, run.encoder, run.attention, run.projection, run.variant, run.profile, f"seed{run.seed}"]
    readable = "-".join(re.sub(r"[^A-Za-z0-9]+", "_", part)[:30] for part in parts)
    return f"{readable}-{cache.digest(decides)[:16]}"


def train_all(
    runs: Sequence[Run],
    data_home: str | Path | None = None,
    processes: int | None = None,
    corpus: Corpus | None = None,
) -> list[Trained]:
    """The trained models of all runs, in their order; what the cache lacks is trained in spawned processes.

    One thread a process, and by default as many processes as cores, on a GPU as many as fit into its memory; runs that
    are tiny altogether (TINY) are trained in this one. A run's base is trained before it.

    Args:
        corpus: of the first run, where it is loaded already.
    Raises:
        ValueError: a run is planned for a GPU, and there is none. What `train` raises.
    """
    refuse_missing_gpu(runs)
    corpora = {runs[0].data: corpus} if corpus and runs else {}
    for run in with_bases(runs):
        if run.data not in corpora:
            corpora[run.data] = load_corpus(run, data_home)
    missing = [run for run in with_bases(runs) if not is_trained(run, corpora[run.data], data_home)]
    tokens = sum(int(corpora[run.data].train.lengths.sum()) * run.epochs for run in missing)
    if missing:
        with Progress("training", total=len(missing)) as progress:
            task = partial(_task, data_home, corpora)
            for stage in stages(missing):
                count = processes or (1 if tokens < TINY else sharing.processes(stage, corpora))
                work = workers.run_here if count == 1 else workers.run_all
                work(task, stage, count, progress.say, lambda run: progress.advance(str(run)))
    return [train(run, data_home, corpora[run.data]) for run in runs]


def refuse_missing_gpu(runs: Sequence[Run]) -> None:
    """ValueError where a run is planned for a GPU, and torch finds none here."""
    if any(run.device_kind == "cuda" for run in runs) and not torch.cuda.is_available():
        raise ValueError("device is 'cuda', but torch finds no GPU here; use 'cpu' or 'auto'")


def _task(data_home: str | Path | None, corpora: dict, run: Run, say: Say) -> None:
    train(run, data_home, corpora[run.data], say)


def source_of(run: Run, corpus: Corpus, base: Trained | None) -> Callable[..., Iterator[Batch]]:
    """batches(split, size, seed=None) of a run, each on its device; those of a guided run bring its guide.

    Without a seed they are for evaluation, and of long texts smaller than `size`. The guide of a split is computed
    once, from its base.
    """
    guides = {}

    def batches(split: str, size: int, seed: Sequence[int] | None = None) -> Iterator[Batch]:
        texts = getattr(corpus, split)
        if is_guided(run) and split not in guides:
            given = guide(run.variant, str(run.base), base.model, texts, base.batches(split))
            guides[split] = given.on(texts)
        found = length_batches.batches(texts, size, seed)
        for batch in length_batches.micro_batches(found, evaluation.WORDS) if seed is None else found:
            if is_guided(run):
                batch = replace(batch, guide=guides[split].at(batch))
            yield batch.to(run.device_kind)

    return batches


def course_of(untrained: Trained) -> courses.Prediction | courses.Adversary:
    """How a run is trained; makes a frozen adversary's model the base's, all but its attention."""
    run, corpus, model, base = untrained.run, untrained.corpus, untrained.model, untrained.base
    if run.variant != "adversary":
        return prediction_of(run, corpus, model.decoder.out_features)
    splits = {name: (getattr(corpus, name), list(base.batches(name))) for name in ("train", "dev")}
    told = {name: courses.Told.by(base.model, *given) for name, given in splits.items()}
    aim = *(run.option(name) for name in ("lambda", "divergence", "tvd")), told
    if run.option("trains") == "all":
        return courses.Adversary(*aim)
    courses.freeze_all_but_attention(model, base.model)
    return courses.FrozenAdversary(*aim, splits=splits, base=base.model)


def prediction_of(run: Run, corpus: Corpus, outputs: int) -> courses.Prediction:
    """The course of a run that learns the labels, with the objective for each word that its variant has."""
    labels = torch.from_numpy(corpus.train.labels)
    ending = {name: run.option(name) for name in ("patience", "judge")}
    if run.variant == "tying":
        return word_level.Tying(labels, outputs, run.option("delta"), **ending)
    if run.variant == "mlm":
        how = (run.option(name) for name in ("eta", "mlm_share", "mlm_loss"))
        return word_level.MaskedLanguageModel(labels, outputs, len(corpus.vocabulary), *how, **ending)
    return courses.Prediction(labels, outputs, **ending)


def _train_into_cache(name: str, untrained: Trained, say: Say, checkpoint_seconds: float) -> Path:
    working = cache.working_folder(name)
    with fitting.one_thread(), drawn_apart(untrained.run):
        best, history = _fit(working / "checkpoint.safetensors", untrained, say, checkpoint_seconds)
    save_file(best, working / "weights.safetensors")
    write_json(working / "history.json", history)
    write_json(working / "run.json", asdict(untrained.run))
    return cache.finish(name, working, ("weights.safetensors", "history.json", "run.json"))


def _fit(path: Path, untrained: Trained, say: Say, checkpoint_seconds: float) -> tuple[dict, list[dict]]:
    """The weights of the kept epoch, and the history; goes on from the checkpoint where there is one."""
    run, model, corpus = untrained.run, untrained.model, untrained.corpus
    course, batches = course_of(untrained), source_of(run, corpus, untrained.base)
    rates = (run.option(name) for name in ("weight_decay", "learning_rate", "attention_rate"))
    optimizer = fitting.Adam(fitting.parameter_groups(model, *rates), amsgrad=run.option("amsgrad"), fused=True)
    best, history = checkpoint.restore(path, model, optimizer)
    judged = f"dev_{run.option('judge')}"
    slow_down = fitting.plateau(optimizer, run.option("plateau"), (record[judged] for record in history))
    saved = time.monotonic()
    while len(history) < run.epochs and not course.ended(history):
        started, epoch = time.monotonic(), len(history)
        torch.manual_seed(run.seed * 1_000_003 + epoch)  # dropout, where a model has it, resumes the same
        order = batches("train", run.option("batch_size"), (run.seed, epoch))
        how = run.option("reduction"), run.option("clip")
        losses = fitting.train_epoch(model, order, optimizer, course.losses, *how, adds_up(run))
        if not math.isfinite(losses["loss"]):
            raise FloatingPointError(
                f"{run}: the loss of epoch {epoch + 1} is {losses['loss']}; try a lower learning_rate"
            )
        scores = course.scores(model, corpus.dev, batches("dev", fitting.EVALUATION_BATCH))
        record = {"epoch": epoch + 1} | {f"train_{key}": value for key, value in losses.items()}
        record |= {f"dev_{key}": value for key, value in scores.items()}
        history.append(record | {"seconds": round(time.monotonic() - started, 3)})
        slow_down(record[judged])
        if course.chosen(history) == epoch + 1:
            best = checkpoint.weights_of(model)
        say(f"{run}: epoch {epoch + 1}/{run.epochs}, {course.told_of(record)}")
        if time.monotonic() - saved > checkpoint_seconds and len(history) < run.epochs:
            checkpoint.save(path, model, optimizer, best, history)
            saved = time.monotonic()
    return best, history


def _read(folder: Path, run: Run, corpus: Corpus, vectors, base: Trained | None) -> Trained:
    model = build(run, corpus, vectors)
    model.load_state_dict(load_file(folder / "weights.safetensors"))
    history = json.loads((folder / "history.json").read_text())
    last = run.variant == "adversary"
    chosen = courses.Adversary.chosen(history) if last else courses.best_epoch(history, run.option("judge"))
    return Trained(run, model.eval(), corpus, vectors, tuple(history), chosen, base)
