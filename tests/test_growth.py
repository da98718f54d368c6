"""How cost grows: a very long text takes bounded memory in sweeps and searches; each row of the benchmark runs."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from forked import Forked, highest_memory
from small import WORDS, split

from benchmarks import transformer
from benchmarks.__main__ import WORKS, row_of
from lib import importance, interventions
from lib.analysis.correlation import correlate
from lib.analysis.measuring import attention_weights, measure
from lib.datasets.batches import batches
from lib.importance.rankings import RANKINGS
from lib.importance.state_gradients import of_inputs_to_states
from lib.models import AttentionClassifier

TOKENS = 1500
# a matrix of all pairs of the tokens, in single precision, is 9: nothing holds several but importances of states
MEGABYTES = {"transformer": 60, "average": 25, "bilstm": 110}
FAR = {"max_tokens": 10**9}
SWEPT = {
    "gone": importance.quantity("gone", importance.leave_one_out, **FAR),
    "states": replace(of_inputs_to_states, name="states", max_tokens=None),
}
SWEEPS = {"transformer": (), "average": ("gone",), "bilstm": ("gone", "states")}
OTHERS = [
    attention_weights,
    importance.quantity("gradient", importance.gradient),
    importance.quantity("gone_states", importance.leave_one_out, of="hidden", **FAR),
    interventions.until_flip(RANKINGS),
    interventions.single_erasure(RANKINGS),
    interventions.permutation_effect(100),
    replace(interventions.adversary(0.01, "exact"), **FAR),
    replace(interventions.adversary(0.01, "gradient", steps=20), **FAR),
]


def numbers(encoder: str, length: int) -> dict[str, float]:
    """What every measure gives of one text of that length, summed where it is of each token."""
    torch.manual_seed(0)
    model = AttentionClassifier(torch.randn(len(WORDS) + 4, 4), encoder, "additive", hidden_size=2)
    quantities = [*OTHERS, *(SWEPT[name] for name in SWEEPS[encoder])]
    found = measure(model, batches(split((length,)), 8), quantities)
    pairs = [("attention", name) for name in ("gradient", "gone_states", *SWEEPS[encoder][:1])]
    row = correlate(found, pairs).iloc[0]
    assert not row["left_out"], row["left_out"]
    names = [name for name in row.index if isinstance(row[name], np.ndarray) or name.startswith("kendall")]
    names += ["length", "permutation", "adversary_exact_jsd", "adversary_gradient_jsd"]
    names += ["states_entropy", "states_own_share"] if "states" in SWEEPS[encoder] else []
    return {name: float(np.sum(row[name])) for name in names}


def print_numbers() -> None:
    for encoder in SWEEPS:
        numbers(encoder, 20)
        before = highest_memory()
        print(json.dumps(numbers(encoder, TOKENS) | {"megabytes": highest_memory() - before}))


def test_a_long_text_goes_through_sweeps_and_searches_in_bounded_memory(tmp_path):
    assert Forked(print_numbers, log=tmp_path / "log").wait() == 0
    for encoder, line in zip(SWEEPS, (tmp_path / "log").read_text().splitlines(), strict=True):
        found = json.loads(line)
        assert all(map(math.isfinite, found.values())), (encoder, found)
        assert found["length"] == TOKENS and found["attention_weights"] == pytest.approx(1, abs=1e-4)
        assert found["megabytes"] < MEGABYTES[encoder], (encoder, found["megabytes"])


@pytest.mark.parametrize("work", WORKS, ids=lambda work: f"{work.name}, {work.encoder}")
def test_each_row_of_the_benchmark_runs(work, monkeypatch):
    monkeypatch.setattr("benchmarks.__main__.LONGEST", 5)
    row = row_of(work._replace(texts=2), lengths=(5, 10))
    assert all(float(row[name].replace(",", "")) > 0 for name in ("10 tokens", "definition, 5", "times, 5"))


def test_the_benchmark_of_a_transformer_has_a_row_for_each_length(monkeypatch):
    monkeypatch.setattr(transformer, "LENGTHS", {3: 1, 5: 2})
    assert all(float(row["share"]) > 0 and row["captum's FeatureAblation, times"] for row in transformer.rows())
