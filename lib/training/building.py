"""The untrained model of a run, and the word vectors that it starts from."""

from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from lib import datasets
from lib.datasets import word_vectors
from lib.datasets.corpus import PAD, SPECIALS, Corpus
from lib.datasets.word_vectors import Vectors
from lib.models import (
    HIERARCHICAL,
    RETENTIONS,
    AttentionClassifier,
    GuidedClassifier,
    HierarchicalClassifier,
    QuestionClassifier,
)
from lib.models.attention import xavier
from lib.training import cache
from lib.training.runs import OF_ENCODERS, Run, default_of, is_guided


def build(run: Run, corpus: Corpus, vectors: Vectors) -> AttentionClassifier | QuestionClassifier:
    """The untrained model of a run; its initial weights depend on the seed alone."""
    encoder_options = {name: run.option(name) for name in OF_ENCODERS.get(run.encoder, {})}
    encoder_options |= {"hidden_size": run.hidden_size} | (
        {"layers": run.layers} if default_of(run.encoder, "layers") else {}
    )
    options = {name: run.option(name) for name in ("attention_share", "document_dropout", "classifier_dropout")}
    if datasets.spec(run.dataset).asks:
        kind, outputs = QuestionClassifier, len(corpus.classes)
    else:
        plain = GuidedClassifier if is_guided(run) else AttentionClassifier
        kind = HierarchicalClassifier if run.encoder in HIERARCHICAL else plain
        outputs = 1 if len(corpus.classes) == 2 else len(corpus.classes)
        options |= {"retention": run.architecture if run.architecture in RETENTIONS else None}
        options |= {"query_init": run.option("query_init")}
    with own_random_state(run):
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


def own_random_state(run: Run) -> AbstractContextManager[None]:
    """Random numbers may be seeded and drawn inside; the caller's own state comes back, also on the run's GPU.

    On no other GPU: to read its random state takes half a GiB there, in every process.
    """
    return torch.random.fork_rng(devices=[torch.cuda.current_device()] if run.device_kind == "cuda" else [])


def word_table(run: Run, vectors: Vectors) -> Tensor:
    """(word, embedding): the vectors; for a masked language model one row more, the mask's, drawn from the seed."""
    if run.architecture != "mlm":
        return vectors.table
    mask = torch.randn(1, vectors.table.shape[1], generator=torch.Generator().manual_seed(run.seed))
    return torch.cat([vectors.table, mask * vectors.table[vectors.table.any(dim=1)].std()])


def load_vectors(run: Run, corpus: Corpus, data_home: str | Path | None = None) -> Vectors:
    """The word vectors that a run starts from; random ones and word2vec's are drawn from its seed."""
    size = run.option("embedding_size")
    if run.vectors == "word2vec":
        return word2vec(corpus, size, run.seed)
    return word_vectors.load(run.vectors, corpus.vocabulary, data_home, seed=run.seed, size=size)


def word2vec(corpus: Corpus, size: int = 200, seed: int = 0) -> Vectors:
    """Word vectors learned from train and dev (Serrano & Smith 2019, appendix A.1), from the cache where they are.

    Reproducible: gensim with one worker draws from its seed alone. Words outside the vocabulary are learned as one, the
    unknown word; padding, start and end, which word2vec does not see, are zeros.
    """
    import gensim  # takes a second, and only these vectors need it

    decides = {"corpus": corpus.checksum, "size": size, "seed": seed, "gensim": gensim.__version__}
    decides["weights"] = cache.WEIGHTS
    name = f"word2vec-{corpus.name.replace('-', '_')}-{corpus.profile}-seed{seed}-{cache.digest(decides)[:16]}"

    def make(folder: Path) -> tuple[str, ...]:
        save_file(learn_word2vec(corpus, size, seed), folder / "vectors.safetensors")
        return ("vectors.safetensors",)

    found = load_file(cache.entry(name, make) / "vectors.safetensors")
    source = f"word2vec, learned from train and dev, seed {seed}"
    return word_vectors.with_checksum(found["table"].numpy(), found["covered"].numpy(), source)


def learn_word2vec(corpus: Corpus, size: int, seed: int) -> dict[str, Tensor]:
    """table (word, size) float32, and covered (word,): which words of the vocabulary have a trained vector.

    gensim's defaults otherwise: CBOW, a window of 5, 5 epochs.
    """
    from gensim.models import Word2Vec

    words = corpus.vocabulary.words
    encoded = [split.encoded for split in (corpus.train, corpus.dev)]
    texts = [[words[i] for i in ids[start + 1 : end - 1]] for ids, at in encoded for start, end in pairwise(at)]
    model = Word2Vec(texts, vector_size=size, min_count=1, workers=1, seed=seed)
    table, covered = torch.zeros(len(words), size), torch.zeros(len(words), dtype=torch.bool)
    seen = [(row, word) for row, word in enumerate(words) if word in model.wv and row != PAD]
    for row, word in seen:
        table[row] = torch.from_numpy(model.wv[word].copy())
        covered[row] = row >= len(SPECIALS)
    return {"table": table, "covered": covered}
