"""Several runs on one GPU: how much memory a run needs there, and how many fit side by side.

An estimate on the safe side, from sizes alone: it needs no GPU, so that a planner of jobs can ask it too. A run that
got too little would end with an error; one that asks for too much only waits for its turn.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from lib.datasets.corpus import Corpus, Split
from lib.models import evaluation
from lib.training import fitting
from lib.training.processes import cores
from lib.training.runs import Run, adds_up
from lib.training.tasks import HELD

MIB = 2**20
CONTEXT = 700  # MiB that a process takes before its first tensor: CUDA's context and the workspaces of its libraries
SINGLE = 4  # bytes of a number
COPIES = 6  # of each trained weight: itself, its gradient, Adam's three averages, one in passing
STATES = 48  # numbers of a state's size that training keeps for each word and layer: gates, cells, turned copies
WORDS = 10  # the same, of the embedding's size
PAIRS = 10  # numbers for each pair of words, head and layer of a Transformer: scores, weights, what projections keep
SPARE = 1.3  # the allocator keeps pieces that it cannot use
KEPT_FREE = 0.95  # of the free memory so much is given away


def gpu_memory_mb(run: Run, corpus: Corpus) -> int:
    """How much of a GPU's memory the training of a run takes at most, in MiB.

    Of its base too, where it has one: both are there at once.
    """
    at_work = max(of_step(run, corpus), of_evaluation(run, corpus))
    numbers = COPIES * weights(run, corpus) + at_work + of_base(run, corpus)
    return math.ceil(CONTEXT + SPARE * SINGLE * numbers / MIB)


def side_by_side(free_mb: float, needs: Sequence[int]) -> int:
    """How many of these runs may share a GPU, whichever of them meet: 1 at least.

    Args:
        free_mb: the memory that is free, in MiB. needs: of each run, as `gpu_memory_mb` says.
    """
    left, largest = KEPT_FREE * free_mb, sorted(needs, reverse=True)
    fit = sum(sum(largest[: count + 1]) <= left for count in range(len(largest)))
    return max(1, fit)


def processes(runs: Sequence[Run], corpora: Mapping[tuple, Corpus]) -> int:
    """How many of the runs are trained at once here: no more than cores, and on a GPU no more than fit into it.

    Args:
        corpora: of each `run.data`.
    """
    count = min(cores(), len(runs))
    needs = [gpu_memory_mb(run, corpora[run.data]) for run in runs if run.device_kind == "cuda"]
    return min(count, side_by_side(torch.cuda.mem_get_info()[0] / MIB, needs)) if needs and count > 1 else count


def weights(run: Run, corpus: Corpus) -> int:
    """How many numbers the model holds: its table of words, and more than any encoder of that size has."""
    words, size, hidden = len(corpus.vocabulary) + 1, run.option("embedding_size"), run.hidden_size
    tables = 2 if corpus.train.queries is not None else 1
    return words * size * tables + 12 * run.layers * tables * hidden * (size + 2 * hidden)


def of_step(run: Run, corpus: Corpus) -> int:
    """Numbers that one step of training keeps, on the largest batch that there can be."""
    batch = run.option("batch_size") * (2 if run.architecture == "mlm" else 1)
    kept = of_words(run, corpus.train, batch, fitting.WORDS if adds_up(run) else None)
    if run.architecture == "mlm" and run.variant == "mlm":  # scores of all words for each masked one, and their slopes
        kept += 4 * len(corpus.vocabulary) * math.ceil(batch * longest(corpus.train) * run.option("mlm_share"))
    return kept


def of_evaluation(run: Run, corpus: Corpus) -> int:
    """The same of a batch of dev; nothing is kept for gradients, but what is in use at once is less than that."""
    return of_words(run, corpus.dev, fitting.EVALUATION_BATCH, evaluation.WORDS) // 2


def of_words(run: Run, split: Split, batch: int, most: int | None) -> int:
    """What so many of the longest texts need: for each word and layer, and of a Transformer for each pair of words.

    Args:
        most: so many words at once, or one text, where a batch is cut.
    """
    length = longest(split)
    each = WORDS * run.option("embedding_size") + STATES * run.layers * run.hidden_size
    pairs = PAIRS * run.layers * run.option("heads") * length if run.encoder == "transformer" else 0
    words = min(batch, max(len(split), 1)) * length
    return (words if most is None else min(words, max(most, length))) * (each + pairs)


def of_base(run: Run, corpus: Corpus) -> int:
    """What a run takes of its base: the model, what it says of every word, and for a frozen adversary its states."""
    if run.base is None:
        return 0
    words = sum(len(split.encoded[0]) for split in (corpus.train, corpus.dev))
    states = min(2 * HELD, words * run.hidden_size) if dict(run.options).get("trains") == "attention" else 0
    texts = 8 * words  # a batch holds ids and masks, and the frozen adversary all batches
    return weights(run.base, corpus) + of_evaluation(run.base, corpus) + states + texts + of_base(run.base, corpus)


def longest(split: Split) -> int:
    """Words of the longest text, with its start and end, or of the longest question."""
    asked = 0 if split.queries is None else int(np.diff(split.queries[1]).max(initial=0))
    return max(int(split.lengths.max(initial=0)) + 2, asked)
