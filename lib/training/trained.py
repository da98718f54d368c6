"""One training run: `train(Run(...))` trains it, or reads it from the cache, bit for bit the same."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import torch
from joblib import cpu_count
from safetensors.torch import load_file, save_file

from lib import datasets, models
from lib.atomic_write import write_json
from lib.datasets import batches as length_batches
from lib.datasets.batches import Batch
from lib.datasets.corpus import Corpus
from lib.datasets.files import Home
from lib.datasets.pretrained import is_pretrained
from lib.datasets.word_vectors import Vectors
from lib.models import evaluation
from lib.models.attention import xavier
from lib.processes import gpu_runs, run_all
from lib.progress import Progress
from lib.training import cache, fitting, tasks
from lib.training.fitting import Say
from lib.training.runs import OF_ENCODERS, Run, default_of, stages, with_bases
from lib.training.targets import targets
from lib.training.vectors import load_vectors, word_table

SAY = partial(print, flush=True)  # also out of a process of its own
MOST = 2**29  # numbers of the states of a split that are kept: 2 GB
TINY = 500_000  # tokens of all epochs: starting processes would take longer than training


@dataclass(frozen=True)
class Trained:
    """A finished run."""

    run: Run
    model: models.AttentionClassifier
    corpus: Corpus
    vectors: Vectors | None  # None of your own model
    history: tuple[dict, ...]  # a record for each epoch
    chosen: int  # the epoch whose weights the model has
    base: "Trained | None" = None  # the run whose outputs this one uses
    guides: dict[str, tasks.PerWord] = field(default_factory=dict, repr=False, compare=False)  # by split, once each
    states: dict[str, tasks.PerWord] = field(default_factory=dict, repr=False, compare=False)  # the same

    def batches(self, split: str, size: int = 128, seed: Sequence[int] | None = None) -> Iterator[Batch]:
        """The texts of train, dev or test on the run's device; a guided run's with their guide, its base's attention.

        From short to long, and of long texts smaller than `size`; with a seed as in training, in random order.
        """
        texts, base = getattr(self.corpus, split), self.base
        if self.run.is_guided and split not in self.guides:
            self.guides[split] = tasks.BaseOutputs.compute(base.model, texts, base.batches(split)).attention
        guide = self.guides.get(split)
        batches = length_batches.batches(texts, size, seed)
        for batch in length_batches.micro_batches(batches, evaluation.WORDS) if seed is None else batches:
            here = batch.to(self.run.device_kind)
            yield replace(here, guide=guide.look_up(here)) if guide else here

    @torch.no_grad()
    def with_states(self, split: str, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches of a split; with the states of an encoder that does not learn, computed once for all epochs."""
        model = self.base.model if ("trains", "attention") in self.run.options else self.model
        texts, learns = getattr(self.corpus, split), model is self.model and not getattr(model.encoder, "frozen", False)
        if learns or len(texts.encoded[0]) * model.encoder.hidden_size > MOST:
            yield from batches
            return
        if split not in self.states:
            self.states[split] = tasks.PerWord(texts, self.run.device_kind, (model.encoder.hidden_size,))
            for batch in self.batches(split):
                self.states[split].put(batch, model.encoder(model.embedding(batch.tokens), batch.lengths))
        yield from (replace(batch, states=self.states[split].look_up(batch)) for batch in batches)

    @property
    def converged(self) -> bool:
        """Whether the adversary's loss converged by the last epoch."""
        return tasks.Adversary.ended(self.history)


class Corpora(dict):
    """The corpora that runs read, by `Run.data`, each loaded once. home: the folder of datasets."""

    def __init__(self, home: str | Path | None = None):
        self.home = home

    def load(self, run: Run) -> Corpus:
        """The corpus of a run."""
        return self.get(run.data) or self.setdefault(run.data, load_corpus(run, self.home))


def untrained(trained: Trained) -> Trained:
    """The model as it was before training, with the same initial weights."""
    return replace(trained, model=build(trained.run, trained.corpus, trained.vectors).eval(), history=(), chosen=0)


def select(trained: Iterable[Trained], **wanted: object) -> list[Trained]:
    """The models whose runs have these values; of a tuple, one of them: `select(trained, variant=("base", "mlm"))`."""
    several = {name: value if isinstance(value, tuple) else (value,) for name, value in wanted.items()}
    return [one for one in trained if all(getattr(one.run, name) in values for name, values in several.items())]


def load_corpus(run: Run, data_home: str | Path | None = None) -> Corpus:
    """The corpus that a run reads."""
    dataset, size, options = run.data
    return datasets.load(dataset, size, data_home, **dict(options))


def train(
    run: Run, data_home: Home = None, corpus: Corpus | None = None, say: Say = SAY, checkpoint_seconds: float = 30
) -> Trained:
    """The trained model of a run, from the cache where it is.

    A run that was killed goes on from its last checkpoint, at most `checkpoint_seconds` of training earlier, and ends
    in the same weights. While another process trains the same run, this one waits for it.

    DataError: the data are missing or wrong. FloatingPointError: the loss is not finite. ValueError: there is no GPU.
    """
    if run.device_kind == "cuda" and not torch.cuda.is_available():
        raise ValueError("device is 'cuda', but torch finds no GPU here; use 'cpu' or 'auto'")
    corpus = corpus or load_corpus(run, data_home)
    base = train(run.base, data_home, corpus, say, checkpoint_seconds) if run.base else None
    vectors = load_vectors(run, corpus, data_home)

    def make(folder: Path) -> tuple[str, ...]:
        untrained = Trained(run, build(run, corpus, vectors), corpus, vectors, (), 0, base)
        with reproducible(run):
            saving = folder / "checkpoint.safetensors", checkpoint_seconds
            best, history = fitting.fit(untrained, task_of(untrained), say, *saving)
        save_file(best, folder / "weights.safetensors")
        write_json(folder / "history.json", history)
        write_json(folder / "run.json", asdict(run))
        return "weights.safetensors", "history.json", "run.json"

    waiting = partial(say, f"{run}: another process is training it; waiting")
    folder = cache.entry(entry_name(run, corpus, data_home), make, waiting)
    model = build(run, corpus, vectors)
    model.load_state_dict(load_file(folder / "weights.safetensors"))
    history = json.loads((folder / "history.json").read_text())
    chosen = len(history) if run.variant == "adversary" else tasks.best_epoch(history, run.option("judge"))
    return Trained(run, model.eval(), corpus, vectors, tuple(history), chosen, base)


def entry_name(run: Run, corpus: Corpus, data_home: str | Path | None = None) -> str:
    """Readable name and hash of what decides the weights: run, device, data, vectors, torch, `cache.WEIGHTS`."""
    vectors = load_vectors(run, corpus, data_home)
    decides = {
        "run": asdict(run) | {"vectors": vectors.checksum, "base": None},  # not where the file lies
        "base": entry_name(run.base, corpus, data_home) if run.base else None,
        "epochs": run.epochs,
        "corpus": corpus.checksum,
        "torch": torch.__version__,
        "weights": cache.WEIGHTS,
    }
    if run.variant == "pulled":  # it learns from what the corpus' checksum leaves out
        decides["reasons"] = [text.rationale for split in (corpus.train, corpus.dev) for text in split.instances]
    if "/" in run.encoder:  # the weights in a folder may change; those of a known model do not
        decides["folder"] = [cache.file_digest(path) for path in sorted(corpus.subwords.glob("*.safetensors"))]
    parts = [run.dataset, run.encoder, run.attention, run.projection, run.variant, run.profile, f"seed{run.seed}"]
    readable = "-".join(re.sub(r"[^A-Za-z0-9]+", "_", part)[:30] for part in parts)
    return f"{readable}-{cache.digest(decides)[:16]}"


def train_all(
    runs: Sequence[Run], data_home: str | Path | None = None, processes: int | None = None, corpus: Corpus | None = None
) -> list[Trained]:
    """The trained models of all runs, in their order; what the cache lacks is trained in processes of one thread each.

    A run's base is trained before it; runs that are tiny altogether (TINY) in this process.

    Args:
        processes: how many; None: as many as cores, or as share a GPU. corpus: of the first run, if loaded already.
    """
    corpora = Corpora(data_home)
    if corpus and runs:
        corpora[runs[0].data] = corpus
    named = {run: entry_name(run, corpora.load(run), data_home) for run in with_bases(runs)}
    missing = [run for run, name in named.items() if not cache.finished(name)]
    if missing and sum(int(corpora.load(run).train.lengths.sum()) * run.epochs for run in missing) < TINY:
        processes = processes or 1
    with Progress("training", total=len(missing)) if missing else nullcontext() as progress:
        for stage in stages(missing):
            most = gpu_runs() if any(run.device_kind == "cuda" for run in stage) else len(stage)
            calls = [(run, data_home, corpora.load(run)) for run in stage]
            number = processes or min(cpu_count(), most, len(stage))
            in_turn = (put_in_cache(*call, progress.write) for call in calls)
            for run in run_all(put_in_cache, calls, number) if number > 1 else in_turn:
                progress.advance(run)
    return [train(run, data_home, corpora.load(run)) for run in runs]


def put_in_cache(run: Run, data_home: str | Path | None, corpus: Corpus, say: Say = SAY) -> str:
    """Trains a run; its name, for its model stays in the cache."""
    train(run, data_home, corpus, say)
    return str(run)


def build(run: Run, corpus: Corpus, vectors: Vectors) -> models.AttentionClassifier:
    """The untrained model of a run; its initial weights depend on the seed alone."""
    names = ("attention_share", "document_dropout", "classifier_dropout", *OF_ENCODERS.get(run.encoder, {}))
    options = {name: run.option(name) for name in names}
    if is_pretrained(run.encoder):
        options["folder"] = corpus.subwords
    else:
        size = run.option("hidden_size") or default_of(run.encoder, "hidden_size") or "embeddings"
        options["hidden_size"] = vectors.table.shape[1] if size == "embeddings" else size
    if default_of(run.encoder, "layers"):
        options["layers"] = run.layers
    kind, outputs = models.QuestionClassifier, len(corpus.classes)
    if not datasets.spec(run.dataset).asks:
        plain = models.GuidedClassifier if run.is_guided else models.AttentionClassifier
        kind = models.HierarchicalClassifier if run.encoder in models.HIERARCHICAL else plain
        outputs = 1 if outputs == 2 else outputs
        options |= {"retention": run.architecture if run.architecture in models.RETENTIONS else None}
        options |= {"query_init": run.option("query_init")}
    projection = "uniform" if run.variant == "uniform" else run.projection
    with reproducible(run):
        torch.manual_seed(run.seed)
        options |= {"outputs": outputs, "frozen": run.freezes_embeddings}
        model = kind(word_table(run, vectors), run.encoder, run.attention, projection_name=projection, **options)
        if run.option("linear_init") == "xavier":
            xavier(model)
    return model.to(run.device_kind)


@contextmanager
def reproducible(run: Run) -> Iterator[None]:
    """One thread, as sums of more differ in the last bits; the caller's random state comes back, on its GPU too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[torch.cuda.current_device()] if run.device_kind == "cuda" else []):
            yield
    finally:
        torch.set_num_threads(before)


def task_of(untrained: Trained) -> tasks.Classification | tasks.Adversary:
    """What a run learns; the model of an adversary gets those of the base's weights that it fixes or starts from.

    One that trains its attention alone mostly keeps its own: at the base's both terms of the loss are 0 and flat.
    """
    run, corpus, model, base = untrained.run, untrained.corpus, untrained.model, untrained.base
    if run.variant == "adversary":
        splits, own = (corpus.train, corpus.dev), ("attention.", "projection.")
        outputs = {of.name: tasks.BaseOutputs.compute(base.model, of, base.batches(of.name)) for of in splits}
        frozen, whole = run.option("trains") == "attention", run.option("starts") == "base"
        of_base = base.model.state_dict().items()
        taken = {name: value for name, value in of_base if whole or (frozen and not name.startswith(own))}
        model.load_state_dict(taken, strict=False)
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(parameter.requires_grad and (not frozen or name.startswith(own)))
        aim = (run.option(name) for name in ("lambda", "divergence", "tvd"))
        return tasks.Adversary(*aim, outputs, base.model if frozen else None)
    labels = torch.from_numpy(corpus.train.labels), model.decoder.out_features
    usual = *labels, run.option("patience"), run.option("judge")
    if run.variant == "tying":
        return tasks.Tying(*usual, run.option("delta"))
    if run.variant == "mlm":
        return tasks.MaskedLanguageModel(*usual, len(corpus.vocabulary), run.option("eta"))
    if run.variant != "pulled":
        return tasks.Classification(*usual)
    kind, splits = run.option("target"), (corpus.train, corpus.dev)
    return tasks.Pulled(*usual, run.option("lambda"), {of.name: targets(of, kind, run.device_kind) for of in splits})
