"""python -m benchmarks.gpu: what one GPU does in a second, with one run on it and with eight that share it.

Words of train an epoch, and words of test that each measure goes through. Exit code 1 where there is no GPU.
"""

import multiprocessing
import sys
import time
from collections.abc import Callable

import torch

from benchmarks import texts
from lib.analysis import measure
from lib.datasets.batches import batches
from lib.datasets.corpus import Split
from lib.importance import gradient, gradient_times_input, leave_one_out, quantity
from lib.importance.rankings import RANKINGS
from lib.interventions import adversary, permutation_effect, until_flip
from lib.quantity import Quantity
from lib.training import fitting
from lib.training.tasks import Classification

DEVICE, SHARING, EPOCHS = "cuda", 8, 3
MEASURES = {
    "gradient": quantity("gradient", gradient),
    "gradient x input": quantity("gradient_times_input", gradient_times_input),
    "leave-one-out": quantity("leave_one_out", leave_one_out),
    "100 permutations": permutation_effect(100),
    "adversary, exact optimum": adversary(0.01, "exact"),
    "adversary, 5 x 500 steps": adversary(0.01, "gradient"),
    "erased until the decision flips": until_flip(RANKINGS),
}


def main() -> int:
    if not torch.cuda.is_available():
        print("there is no GPU here that torch can use: nothing was measured", file=sys.stderr)
        return 1
    name, train, test = texts.short(None)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {name}; words a second")
    alone = trained(train)
    tell("train, one run", alone)
    together = shared(train)
    tell(f"train, {SHARING} runs that share it", together)
    print(f"    {together / alone:.1f} times one run")
    model = texts.classifier(train).to(DEVICE)
    for measured, one in MEASURES.items():
        tell(measured, per_second(words(test), lambda one=one: once(model, test, one)))
    return 0


def words(split: Split) -> int:
    return int(split.lengths.sum())


def per_second(amount: int, work: Callable[[], object]) -> float:
    """`amount` by the seconds of a second go, as the first one also sets the GPU up."""
    work()
    torch.cuda.synchronize()
    started = time.monotonic()
    work()
    torch.cuda.synchronize()
    return amount / (time.monotonic() - started)


def trained(split: Split) -> float:
    """Words a second of one run, over EPOCHS epochs."""
    model = texts.classifier(split).to(DEVICE)
    optimizer = fitting.adam(model, 1e-5, 1e-3)
    task = Classification(torch.from_numpy(split.labels), outputs=1)

    def epochs():
        for epoch in range(EPOCHS):
            order = (batch.to(DEVICE) for batch in batches(split, 32, seed=(0, epoch)))
            fitting.train_epoch(model, order, optimizer, task.losses, "sum")

    return per_second(EPOCHS * words(split), epochs)


def shared(split: Split) -> float:
    """Words a second of SHARING runs together, each in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(SHARING) as pool:
        return sum(pool.map(trained, [split] * SHARING, chunksize=1))


def once(model: torch.nn.Module, split: Split, measured: Quantity) -> None:
    measure(model, (batch.to(DEVICE) for batch in batches(split, 512)), [measured])


def tell(what: str, speed: float) -> None:
    print(f"{what:36} {speed:14,.0f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
