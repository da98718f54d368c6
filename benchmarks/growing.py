"""The works whose cost is followed as texts grow longer and more numerous, and what each algorithm promises."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch

from benchmarks import texts
from lib import importance, interventions
from lib.analysis.correlation import taus
from lib.analysis.measuring import BATCH, measure
from lib.datasets.batches import batches, micro_batches
from lib.datasets.corpus import Split
from lib.importance import rankings
from lib.importance.state_gradients import of_inputs_to_states
from lib.models import AttentionClassifier, evaluation
from lib.quantity import Quantity
from lib.training import fitting
from lib.training.tasks import Classification

WORDS = 2000  # of the made-up texts
PAPERS = {"embedding": 300}  # and 128 hidden units per direction of a BiLSTM, 128 of an average encoder
SMALL = {"embedding": 100, "hidden": 64}  # where the cost is one of pairs of tokens: 32 per direction
UPPER_LENGTH = 350  # tokens from which on fixed costs should no longer weigh
WITHOUT_BOUND = 10**9  # tokens: here no text is left out for its length


@dataclass(frozen=True)
class Promise:
    """How the cost grows with the tokens n of a text: in words, why, and as a function."""

    order: str
    why: str
    cost: Callable[[float], float]


LINEAR, QUADRATIC = (lambda n: n), (lambda n: n**2)
SORTING = lambda n: n * math.log(n)  # noqa: E731


@dataclass(frozen=True)
class Work:
    """A work that is done on a split; its cost is linear in the number of texts, by `promise` in their length.

    seconds    CPU seconds of doing it once, without what it starts from
    everything does it as a user would, from the split to the table: for its memory
    texts      at each length, where lengths are compared
    pairs      whether the encoder is asked once for pairs of tokens: then a small model, and memory is watched on few
               texts
    """

    name: str
    promise: Promise
    seconds: Callable[[Split], float]
    everything: Callable[[Split], object]
    texts: int
    pairs: bool = False


def made_up(number: int, tokens: int) -> Split:
    """So many texts of so many tokens."""
    return texts.random_texts(np.full(number, tokens), seed=number + tokens, vocabulary=WORDS)


def works() -> list[Work]:
    """All of them, in the order of the table."""
    return [*_of_encoders(), *_of_attention()]


def _of_encoders() -> Iterator[Work]:
    steps = Promise("n", "a step forward and one backward for each token", LINEAR)
    yield _training("bilstm", steps)
    yield _measured("gradient", "bilstm", importance.quantity("gradient", importance.gradient), steps, 64)
    loo = importance.quantity("leave_one_out", importance.leave_one_out, max_tokens=WITHOUT_BOUND)
    sweep = Promise("n", "each of n deletions changes later states until it is forgotten; n² until then", LINEAR)
    yield _measured("leave-one-out", "bilstm", loo, sweep, 4, pairs=True)
    sums = Promise("n", "a deletion changes no other state: sums of what is before and after", LINEAR)
    yield _measured("leave-one-out", "average", loo, sums, 64)
    unbounded = replace(of_inputs_to_states, max_tokens=None)
    faded = "the gradients of n states, each carried until it has faded; n² until then, as their table is"
    states = Promise("n", faded, LINEAR)
    yield _measured("g of input to hidden states", "bilstm", unbounded, states, 2, pairs=True)
    copies = Promise("n²", "by definition: a backward pass over n tokens for each of n states", QUADRATIC)
    yield _measured("g of input to hidden states", "average", unbounded, copies, 2, pairs=True)


def _of_attention() -> Iterator[Work]:
    erased = interventions.until_flip({name: rankings.RANKINGS[name] for name in ("attention", "gradient")})
    ranked = Promise("n log n", "a ranking is sorted, the rest are running sums", SORTING)
    yield _measured("erasure along 8 rankings", "bilstm", erased, ranked, 64)
    network = "the last hundred or so by a network, almost free"  # NumPy's
    drawn = Promise("n log n", f"each of the draws is sorted random keys; {network}", SORTING)
    yield _measured("100 permutations", "bilstm", interventions.permutation_effect(100), drawn, 64)
    vertices = Promise("n²", "every pair of tokens on either side of a bound may be the best", QUADRATIC)
    exact = interventions.adversary(0.01, "exact", max_tokens=WITHOUT_BOUND)
    yield _measured("adversary, exact", "bilstm", exact, vertices, 16)
    climb = Promise("n", "a step of the search is sums over the tokens; restarts and steps are fixed", LINEAR)
    searched = interventions.adversary(0.01, "gradient", max_tokens=WITHOUT_BOUND, restarts=5, steps=100)
    yield _measured("adversary, 5 x 100 steps", "bilstm", searched, climb, 16)
    yield _kendall(Promise("n log n", "one measure is sorted, the other merged in its order", SORTING))


def _measured(kind: str, encoder: str, quantity: Quantity, promise: Promise, number: int, pairs=False) -> Work:
    """A quantity: its own CPU time on the pieces that `measure` cuts; its memory in `measure` itself."""

    def classifier(split: Split) -> AttentionClassifier:
        return texts.classifier(split, encoder, **(SMALL if pairs else PAPERS))

    def seconds(split: Split) -> float:
        model, total = classifier(split), 0.0
        for piece in micro_batches(batches(split, BATCH), evaluation.WORDS):
            with torch.no_grad():
                output = model(piece)
            started = time.process_time()
            quantity(model, piece, output)
            total += time.process_time() - started
        return total

    def everything(split: Split) -> object:
        return measure(classifier(split), batches(split, BATCH), [quantity])

    name = f"{kind} ({NAMES[encoder]})" if kind.startswith(("leave", "g ")) else kind
    return Work(name, promise, seconds, everything, number, pairs)


NAMES: Mapping[str, str] = {"bilstm": "BiLSTM", "average": "average"}


def _training(encoder: str, promise: Promise) -> Work:
    def epoch(split: Split) -> float:
        model = texts.classifier(split, encoder, **PAPERS)
        optimizer = fitting.adam(model, 1e-5, 1e-3)
        task = Classification(torch.from_numpy(split.labels), outputs=1)
        started = time.process_time()
        fitting.train_epoch(model, batches(split, 32, seed=(0, 0)), optimizer, task.losses, "sum")
        return time.process_time() - started

    return Work("train one epoch", promise, epoch, epoch, 64)


def _kendall(promise: Promise) -> Work:
    def random(split: Split) -> list[list[np.ndarray]]:
        values = np.random.default_rng(0).random((2, int(split.lengths.sum())))
        ends = np.concatenate([[0], split.lengths.cumsum()])
        return [[side[start:stop] for start, stop in pairwise(ends)] for side in values]

    def seconds(split: Split) -> float:
        first, second = random(split)
        started = time.process_time()
        taus(first, second)
        return time.process_time() - started

    everything = lambda split: taus(*random(split))  # noqa: E731
    return Work("Kendall's tau-b with p-value", promise, seconds, everything, 64)
