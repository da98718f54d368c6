"""What both tables share: made-up texts, and how a call is timed."""

import time
from collections.abc import Callable

import numpy as np

from lib.datasets.corpus import Instance, Split, Vocabulary

WORDS = [f"w{number}" for number in range(2000)]


def made_up(number: int, tokens: int, vocabulary: Vocabulary) -> Split:
    """So many texts of so many random words."""
    drawn = np.random.default_rng(0).choice(WORDS, (number, tokens))
    instances = tuple(Instance(f"{row}", "", tuple(words), row % 2) for row, words in enumerate(drawn.tolist()))
    return Split("test", instances, vocabulary)


def cpu_seconds(call: Callable[[], object]) -> float:
    """CPU seconds: the least of three runs, of one where it takes more than half a second."""
    times = []
    while len(times) < 3 and sum(times) < 0.5:
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)
