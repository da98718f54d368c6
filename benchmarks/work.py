"""The rows of the table: what is done, our way, the straightforward way, and whether both give the same."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from benchmarks import naive, texts
from benchmarks.texts import classifier
from lib import importance, interventions
from lib.datasets.batches import batches, collate
from lib.datasets.corpus import Split
from lib.importance import rankings
from lib.importance.state_gradients import state_gradients
from lib.metrics import kendall_tau
from lib.training import fitting
from lib.training.tasks import Adversary, BaseOutputs, Classification, FrozenAdversary, freeze_all_but_attention

SIZE = 512  # texts in a batch, our way


class Goal(NamedTuple):
    """CPU seconds, and how many times as long the straightforward way should take; None: it is no measure of this."""

    seconds: float
    ratio: float | None

    def of(self, texts: int) -> "Goal":
        return Goal(self.seconds * texts, self.ratio)


@dataclass(frozen=True)
class Row:
    """One row. `ours` and `theirs` do the work and return what they found; `compare` says how far apart it is.

    sample: how many texts the straightforward way does, its time then scaled up; None: all.
    prepare: what `theirs` needs of those texts, made outside the clock; texts are sorted by length.
    forward: our way to what `ours` starts from, where `prepare` is a forward pass; it is then timed, too.
    """

    name: str
    goal: Goal
    ours: Callable[[], object]
    theirs: Callable[[object], object]
    split: Split
    sample: int | None = None
    compare: Callable[[object, object], float] | None = None
    prepare: Callable[[Split], object] = lambda split: split
    forward: Callable[[], object] | None = None


class Work:
    """A split, a model for it, and what several rows start from, computed once and outside the clock."""

    def __init__(self, split: Split):
        self.split, self.model = split, classifier(split)
        self.packed = naive.PackedClassifier(self.model)

    @cached_property
    def outputs(self) -> list:
        """(batch, output) of all texts, sorted by length."""
        return self.forward()

    def forward(self) -> list:
        with torch.no_grad():
            return [(batch, self.model(batch)) for batch in batches(self.split, SIZE)]

    def states(self, split: Split) -> list:
        return naive.encoded(self.packed, split)

    def importances(self, measure) -> list[np.ndarray]:
        """Per text, in the split's order."""
        found = [np.empty(0)] * len(self.split)
        for batch in batches(self.split, SIZE):
            for row, values, mask in zip(batch.instance.tolist(), measure(self.model, batch), batch.mask, strict=True):
                found[row] = values[mask].numpy()
        return found

    def quantity(self, quantity) -> np.ndarray:
        """Per text, in the split's order; a dict of quantities gives its JSD."""
        found = np.empty(len(self.split))
        for batch, output in self.outputs:
            value = quantity(self.model, batch, output)
            found[batch.instance] = value["jsd"] if isinstance(value, dict) else value
        return found


def apart(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """The largest difference between two lists of importances, as a share of the largest importance."""
    both = list(zip(ours, theirs, strict=False))
    return max(np.abs(a - b).max() for a, b in both) / max(np.abs(b).max() for _, b in both)


def mean_apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Ours minus theirs on average: where both are random."""
    return float(ours[: len(theirs)].mean() - theirs.mean())


def training(train: Split) -> Row:
    work = Work(train)

    def ours():
        model = classifier(train)
        optimizer = fitting.adam(model, 1e-5, 1e-3)
        task = Classification(torch.from_numpy(train.labels), outputs=1)
        fitting.train_epoch(model, batches(train, 32, seed=(0, 0)), optimizer, task.losses, "sum")

    return Row("train one epoch", Goal(4.9, 2.6), ours, lambda split: naive.train_epoch(work.packed, split), train)


def adversaries(train: Split) -> list[Row]:
    """Beside an epoch of the base, which is `straightforward` here, one of an adversary, whole or all but frozen."""
    base = classifier(train)
    texts = list(batches(train, 128))
    aim = 5e-4, "kl", "half", {"train": BaseOutputs.of(base, train, texts)}
    frozen = FrozenAdversary(*aim, splits={"train": (train, texts)}, base=base)

    def epoch(task, freeze: bool = False):
        model = classifier(train)
        if freeze:
            freeze_all_but_attention(model, base)
        optimizer = fitting.adam(model, 1e-5, 1e-3)
        fitting.train_epoch(model, batches(train, 32, seed=(0, 0)), optimizer, task.losses, "sum")

    def of_base(split):
        epoch(Classification(torch.from_numpy(split.labels), outputs=1))

    return [
        Row(
            "train one epoch, an adversary (ratio: to its base)",
            Goal(9.1, None),
            lambda: epoch(Adversary(*aim)),
            of_base,
            train,
        ),
        Row("train one epoch, its encoder frozen", Goal(1.7, None), lambda: epoch(frozen, True), of_base, train),
    ]


def short_rows(test: Split) -> list[Row]:
    work = Work(test)
    return [
        *_rows(work, (Goal(1.0, 1.5), Goal(2.8, 3.8), Goal(0.05, 110), Goal(1.0, 47)), samples=(None, None, None, 128)),
        Row(
            "per-instance adversary, exact optimum",
            Goal(1.0, 47),
            lambda: work.quantity(interventions.adversary(0.01, "exact")),
            lambda states: naive.adversary(work.packed, states),
            test,
            128,
            mean_apart,
            work.states,
            work.forward,
        ),
        _kendall(test, Goal(0.02, 15)),
        of_states(test, Goal(0.0016, 9.4), 128),
        erasing(work, Goal(3e-5, 18)),
    ]


def long_rows(split: Split) -> list[Row]:
    some = texts.first(split, 20)
    work = Work(split)
    rows = _rows(work, (Goal(5, 1.36), Goal(140, 3.9), Goal(0.2, 160), Goal(5, 140)), samples=(None, 64, 256, 32))
    return [*rows, _kendall(split, Goal(0.1, 5)), of_states(some, Goal(0.15, 5), 4), erasing(work, Goal(3e-4, 9))]


def mixed_rows(split: Split) -> list[Row]:
    """The same of texts of many lengths: equal lengths need no padding, which flatters the straightforward way."""
    goals = (Goal(5, 1.36), Goal(280, 3.9), Goal(0.2, 160), Goal(5, 140))
    work, longest = Work(split), texts.random_texts(np.full(64, 2000), seed=3)
    rows = [*_rows(work, goals, (128, 32, 128, 32)), _kendall(split, Goal(0.1, 5)), erasing(work, Goal(3e-4, 9))]
    return [*rows, _kendall(texts.first(longest, len(split)), Goal(0.01, 10))]


def _rows(work: Work, goals: tuple, samples: tuple) -> list[Row]:
    model, split = work.packed, work.split
    ways = (
        (
            "gradient",
            lambda: work.importances(importance.gradient_times_input),
            lambda some: naive.gradients(model, some),
            apart,
        ),
        (
            "leave-one-out",
            lambda: work.importances(importance.leave_one_out),
            lambda some: naive.leave_one_out(model, some),
            apart,
        ),
        (
            "100 permutations",
            lambda: work.quantity(interventions.permutation_effect(100)),
            lambda states: naive.permutation_effect(model, states),
            mean_apart,
            work.states,
            work.forward,
        ),
        (
            "per-instance adversary, 5 x 500 steps",
            lambda: work.quantity(interventions.adversary(0.01, "gradient")),
            lambda states: naive.adversary(model, states),
            mean_apart,
            work.states,
            work.forward,
        ),
    )
    return [
        Row(name, goal, ours, theirs, split, sample, *others)
        for (name, ours, theirs, *others), goal, sample in zip(ways, goals, samples, strict=True)
    ]


def of_states(split: Split, goal: Goal, sample: int) -> Row:
    """The inputs' importance to every hidden state; goal: for one text."""
    work = Work(split)

    def ours() -> list[np.ndarray]:
        found = [np.empty(0)] * len(split)
        for batch in batches(split, SIZE):
            gradients = state_gradients(work.model, batch)
            for row, values, mask in zip(batch.instance.tolist(), gradients, batch.mask, strict=True):
                found[row] = values[mask][:, mask].numpy()
        return found

    def theirs(some: Split) -> list[np.ndarray]:
        return naive.state_gradients(work.packed, some)

    return Row("importance to each hidden state", goal.of(len(split)), ours, theirs, split, sample, apart)


def erasing(work: Work, goal: Goal) -> Row:
    """Items erased along four rankings until the decision flips; goal: for one text."""
    along = [rankings.RANKINGS[name] for name in ("attention", "gradient", "product")]

    def ours() -> np.ndarray:
        found = np.empty((len(work.split), len(along) + 1))
        for batch, output in work.outputs:
            drawn = lambda model, output: torch.rand(output.mask.shape)  # noqa: E731
            for column, ranking in enumerate([*along, drawn]):
                erased = interventions.erase_until_flip(work.model, output, ranking(work.model, output))
                found[batch.instance, column] = erased.count
        return found

    def compare(own: np.ndarray, theirs: np.ndarray) -> float:
        own, theirs = (np.nan_to_num(counts[: len(theirs), :3], nan=-1) for counts in (own, theirs))
        return float((own != theirs).mean())

    name, goal = "erased until the decision flips, 4 rankings", goal.of(len(work.split))

    def theirs(states: list) -> np.ndarray:
        return naive.erasures(work.packed, states)

    return Row(name, goal, ours, theirs, work.split, 128, compare, work.states, work.forward)


def _kendall(split: Split, goal: Goal) -> Row:
    split, random = texts.by_length(split)[1], np.random.default_rng(0)
    pairs = [random.random((2, n)) for n in split.lengths]
    batch = collate(split, np.arange(len(split)))
    x, y = torch.zeros(2, *batch.mask.shape, dtype=torch.float64)
    for row, pair in enumerate(pairs):
        x[row, batch.mask[row]], y[row, batch.mask[row]] = torch.from_numpy(pair)

    def ours():
        return np.stack([part.numpy() for part in kendall_tau(x, y, batch.mask)], axis=-1)

    def theirs(some: Split):
        return np.array(naive.kendall(*zip(*pairs[: len(some)], strict=True)))

    return Row(
        "Kendall tau-b with p-value, one pair",
        goal,
        ours,
        theirs,
        split,
        None,
        lambda a, b: float(np.abs(a[: len(b)] - b).max()),
    )
