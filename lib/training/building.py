"""The untrained model of a run."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from lib import datasets
from lib.datasets.corpus import Corpus
from lib.datasets.vectors import Vectors
from lib.models import (
    HIERARCHICAL,
    RETENTIONS,
    AttentionClassifier,
    GuidedClassifier,
    HierarchicalClassifier,
    QuestionClassifier,
)
from lib.models.attention import xavier
from lib.training.options import OF_ENCODERS
from lib.training.runs import Run, has_layers, is_guided


def build(run: Run, corpus: Corpus, vectors: Vectors) -> AttentionClassifier | QuestionClassifier:
    """The untrained model of a run; its initial weights depend on the seed alone."""
    encoder_options = {name: run.option(name) for name in OF_ENCODERS.get(run.encoder, {})}
    encoder_options |= {"hidden_size": run.hidden_size} | ({"layers": run.layers} if has_layers(run.encoder) else {})
    options = {name: run.option(name) for name in ("attention_share", "document_dropout", "classifier_dropout")}
    if datasets.spec(run.dataset).asks:
        kind, outputs = QuestionClassifier, len(corpus.classes)
    else:
        kind, outputs = classifier_of(run), 1 if len(corpus.classes) == 2 else len(corpus.classes)
        options |= {"retention": run.architecture if run.architecture in RETENTIONS else None}
        options |= {"query_init": run.option("query_init")}
    with drawn_apart(run):
        torch.manual_seed(run.seed)
        model = kind(
            word_table(run, vectors) * run.option("vector_scale"),
            run.encoder,
            run.attention,
            projection_name="uniform" if run.variant == "uniform" else run.projection,
            outputs=outputs,
            frozen=run.freezes_embeddings,
            **options,
            **encoder_options,
        )
        if run.option("linear_init") == "xavier":
            xavier(model)
    return model.to(run.device_kind)


@contextmanager
def drawn_apart(run: Run) -> Iterator[None]:
    """Random numbers may be seeded and drawn inside; the caller's own are as they were, also on the run's GPU.

    On no other one: to ask a GPU for its state alone takes half a GiB there, in every process.
    """
    with torch.random.fork_rng(devices=[torch.cuda.current_device()] if run.device_kind == "cuda" else []):
        yield


def classifier_of(run: Run) -> type[AttentionClassifier]:
    """The kind of model of a run that classifies texts by themselves."""
    if run.encoder in HIERARCHICAL:
        return HierarchicalClassifier
    return GuidedClassifier if is_guided(run) else AttentionClassifier


def word_table(run: Run, vectors: Vectors) -> Tensor:
    """(word, embedding): the vectors, and for a masked language model one row more, the mask's, drawn from the seed."""
    if run.architecture != "mlm":
        return vectors.table
    mask = torch.randn(1, vectors.table.shape[1], generator=torch.Generator().manual_seed(run.seed))
    return torch.cat([vectors.table, mask * vectors.table[vectors.table.any(dim=1)].std()])
