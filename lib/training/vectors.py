"""The word vectors that a run starts from: those of a file, random ones, or word2vec's, learned from the texts."""

from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from lib.datasets import pretrained, word_vectors
from lib.datasets.corpus import PAD, SPECIALS, Corpus
from lib.datasets.subwords import ids_of
from lib.datasets.word_vectors import Vectors
from lib.training import cache
from lib.training.runs import FIRST_VECTORS, Run


def load_vectors(run: Run, corpus: Corpus, data_home: str | Path | None = None) -> Vectors:
    """The word vectors that a run starts from; random ones and word2vec's are drawn from its seed."""
    if corpus.subwords and run.vectors == "auto":
        return of_subwords(corpus.subwords)
    size = run.option("embedding_size")
    if run.vectors == "word2vec":
        return word2vec(corpus, size, run.seed)
    return word_vectors.load(run.vectors, corpus.vocabulary, data_home, run.seed, size, FIRST_VECTORS[run.recipe])


@lru_cache(maxsize=1)
def of_subwords(folder: Path) -> Vectors:
    """The embeddings of a pretrained model's subwords, in the order of a corpus in these; zeros for padding."""
    table = pretrained.whole_model(folder).get_input_embeddings().weight.detach().float()
    table = table[ids_of(pretrained.tokenizer_of(folder))].numpy()
    table[PAD] = 0
    return word_vectors.with_checksum(table, np.arange(len(table)) >= len(SPECIALS), folder.name)


def word2vec(corpus: Corpus, size: int = 200, seed: int = 0) -> Vectors:
    """Word vectors learned from train and dev (Serrano & Smith 2019, appendix A.1), from the cache where they are.

    gensim's defaults: CBOW, a window of 5, 5 epochs; reproducible, as one worker draws from its seed alone. Words
    outside the vocabulary are learned as one, the unknown word; padding, start and end, which word2vec does not see,
    are zeros.
    """
    import gensim  # takes a second, and only these vectors need it

    decides = {"corpus": corpus.checksum, "size": size, "seed": seed, "gensim": gensim.__version__}
    decides["weights"] = cache.WEIGHTS
    name = f"word2vec-{corpus.name.replace('-', '_')}-{corpus.profile}-seed{seed}-{cache.digest(decides)[:16]}"

    def make(folder: Path) -> tuple[str, ...]:
        words = corpus.vocabulary.words
        encoded = [split.encoded for split in (corpus.train, corpus.dev)]
        texts = [[words[i] for i in ids[start + 1 : end - 1]] for ids, at in encoded for start, end in pairwise(at)]
        model = gensim.models.Word2Vec(texts, vector_size=size, min_count=1, workers=1, seed=seed)
        table, covered = torch.zeros(len(words), size), torch.zeros(len(words), dtype=torch.bool)
        for row, word in enumerate(words):
            if word in model.wv and row != PAD:
                table[row] = torch.from_numpy(model.wv[word].copy())
                covered[row] = row >= len(SPECIALS)
        save_file({"table": table, "covered": covered}, folder / "vectors.safetensors")
        return ("vectors.safetensors",)

    learned = load_file(cache.entry(name, make) / "vectors.safetensors")
    source = f"word2vec, learned from train and dev, seed {seed}"
    return word_vectors.with_checksum(learned["table"].numpy(), learned["covered"].numpy(), source)


def word_table(run: Run, vectors: Vectors) -> Tensor:
    """(word, embedding): the vectors; for a masked language model one row more, the mask's, drawn from the seed."""
    if run.architecture != "mlm":
        return vectors.table
    mask = torch.randn(1, vectors.table.shape[1], generator=torch.Generator().manual_seed(run.seed))
    return torch.cat([vectors.table, mask * vectors.table[vectors.table.any(dim=1)].std()])
