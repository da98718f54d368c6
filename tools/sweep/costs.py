"""How long jobs are expected to take, in seconds of one core."""

import json
import statistics
from collections.abc import Mapping

from lib.datasets.corpus import Corpus
from lib.papers import PAPERS
from lib.training import Run, cache

# Of one pass over a million tokens; by the encoder's name, else 60. Measured on one core of a machine of 2023.
TRAINING = {"bilstm": 75.0, "average": 9.0, "conv": 40.0, "transformer": 60.0, "flan-noenc": 15.0, "han-noenc": 15.0}
VARIANTS = {"mlm": 3.0, "adversary": 1.2}  # times as long; one whose encoder is frozen takes a sixth
STARTING = 8.0  # until a job's process has imported and read what it needs
OPENING = 20.0  # of any report: its kernel, its imports, its page
REPORT_TOKENS = 8_000  # of the test split that Paper.seconds are about


def of_training(run: Run, corpus: Corpus) -> float:
    """The expected seconds of a run, before any pace of this machine."""
    millions = float(corpus.train.lengths.sum()) * run.epochs / 1e6
    frozen = run.variant == "adversary" and run.option("trains") == "attention"
    times = VARIANTS.get(run.variant, 1.0) / (6 if frozen else 1)
    return millions * TRAINING.get(run.encoder, 60.0) * times * run.layers + 0.5


def of_report(notebook: str, corpus: Corpus | None) -> float:
    """The expected seconds of a report whose models are trained, by the length of its test texts."""
    tokens = float(corpus.test.lengths.sum()) if corpus else REPORT_TOKENS
    seconds = PAPERS[notebook].seconds if notebook in PAPERS else 60.0
    return OPENING + seconds * tokens / REPORT_TOKENS


def pace(finished: Mapping[str, float]) -> float:
    """How many times as long as expected runs took on this machine; of entries of the cache the expected seconds."""
    ratios = []
    for name, expected in finished.items():
        try:
            history = json.loads((cache.home() / name / "history.json").read_text())
        except (OSError, ValueError):
            continue
        ratios.append(sum(record["seconds"] for record in history) / expected)
    return statistics.median(ratios) if ratios else 1.0
