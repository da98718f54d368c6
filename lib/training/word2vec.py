"""Word vectors learned from a corpus: word2vec over train and dev (Serrano & Smith 2019, appendix A.1).

Reproducible: gensim with one worker draws from its seed alone. Made once for a corpus, a size and a seed, and kept in
the cache beside the runs.
"""

from itertools import pairwise

import torch
from safetensors.torch import load_file, save_file

from lib.datasets.corpus import PAD, SPECIALS, Corpus
from lib.datasets.vectors import Vectors, with_checksum
from lib.training import cache

NAME = "word2vec"  # of `Run.vectors`
FILE = "vectors.safetensors"


def vectors(corpus: Corpus, size: int = 200, seed: int = 0) -> Vectors:
    """A vector for every word of the vocabulary, from the cache where it is.

    Words outside the vocabulary are learned as one, the unknown word; padding, start and end, which word2vec does not
    see, are zeros. gensim's own settings otherwise: CBOW, a window of 5, 5 epochs.
    """
    import gensim  # takes a second, and only these vectors need it

    decides = {"corpus": corpus.checksum, "size": size, "seed": seed, "gensim": gensim.__version__}
    decides["code"] = cache.code_fingerprint(__name__)
    name = f"word2vec-{corpus.name.replace('-', '_')}-{corpus.profile}-seed{seed}-{cache.digest(decides)[:16]}"
    folder = cache.finished(name)
    if not folder:
        with cache.locked(name):
            folder = cache.finished(name) or _kept(name, corpus, size, seed)
    found = load_file(folder / FILE)
    source = f"word2vec, learned from train and dev, seed {seed}"
    return with_checksum(found["table"].numpy(), found["covered"].numpy(), source)


def _kept(name: str, corpus: Corpus, size: int, seed: int):
    working = cache.working_folder(name)
    save_file(learned(corpus, size, seed), working / FILE)
    return cache.finish(name, working, (FILE,))


def learned(corpus: Corpus, size: int, seed: int) -> dict[str, torch.Tensor]:
    """table (word, size) float32, and covered (word,): which words of the vocabulary were seen."""
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
