"""How cost grows: one very long text takes bounded memory in every measure, and each row of the benchmark runs."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import WORKS, row_of

TOKENS = 5000
# a matrix of all pairs of the tokens, in single precision, is 100: nothing holds one but importances of states
MEGABYTES = {"transformer": 120, "average": 120, "bilstm": 600}

LONG_TEXT = """
import json, sys
from dataclasses import replace
from pathlib import Path
import numpy as np
import torch
from forked import highest_memory
from small import WORDS, split
from lib import importance, interventions
from lib.datasets.batches import batches
from lib.importance import rankings
from lib.importance.state_gradients import of_inputs_to_states
from lib.analysis.correlation import correlate
from lib.analysis.measuring import attention_weights, measure
from lib.models import AttentionClassifier

far = dict(max_tokens=10**9)
SWEPT = {
    "gone": importance.quantity("gone", importance.leave_one_out, **far),
    "states": replace(of_inputs_to_states, name="states", max_tokens=None),
}
OTHERS = [
    attention_weights,
    importance.quantity("gradient", importance.gradient),
    importance.quantity("gone_states", importance.leave_one_out, of="hidden", **far),
    interventions.until_flip(rankings.RANKINGS),
    interventions.single_erasure(rankings.RANKINGS),
    interventions.permutation_effect(100),
    interventions.adversary(0.01, "exact", **far),
    interventions.adversary(0.01, "gradient", steps=20, **far),
]


def numbers(encoder, length):
    quantities = [*OTHERS, *(SWEPT[name] for name in SWEEPS[encoder])]
    torch.manual_seed(0)
    model = AttentionClassifier(torch.randn(len(WORDS) + 4, 4), encoder, "additive", hidden_size=2)
    found = measure(model, batches(split((length,)), 8), quantities)
    found = correlate(found, [("attention", name) for name in ("gradient", "gone_states", *SWEEPS[encoder][:1])])
    row = found.iloc[0]
    arrays = {name: float(value.sum()) for name, value in row.items() if isinstance(value, np.ndarray)}
    taus = {name: value for name, value in row.items() if name.startswith("kendall")}
    numbers = ["length", "permutation", "adversary_exact_jsd", "adversary_gradient_jsd"]
    numbers += ["states_entropy", "states_own_share"] if "states" in SWEEPS[encoder] else []
    rest = {name: float(row[name]) for name in numbers}
    assert not row["left_out"], row["left_out"]
    return arrays | taus | rest


SWEEPS = {"transformer": (), "average": ("gone",), "bilstm": ("gone", "states")}
found = {}
for encoder in SWEEPS:
    numbers(encoder, 20)
    before = highest_memory()
    found[encoder] = numbers(encoder, int(sys.argv[1])) | {"megabytes": highest_memory() - before}
print(json.dumps(found))
"""


def numbers_of_a_long_text() -> dict[str, dict[str, float]]:
    """What LONG_TEXT prints in a process of its own."""
    tests = Path(__file__).resolve().parent
    environment = os.environ | {"PYTHONPATH": f"{tests.parent}{os.pathsep}{tests}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", LONG_TEXT, str(TOKENS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_text_of_5000_tokens_goes_through_every_measure_in_bounded_memory():
    for encoder, found in numbers_of_a_long_text().items():
        assert all(map(math.isfinite, found.values())), (encoder, found)
        assert found["length"] == TOKENS and found["attention_weights"] == pytest.approx(1, abs=1e-4)
        assert found["megabytes"] < MEGABYTES[encoder], (encoder, found["megabytes"])


@pytest.mark.parametrize("work", WORKS, ids=lambda work: f"{work.name}, {work.encoder}")
def test_a_row_of_the_benchmark_compares_a_fast_form_with_its_definition(work, monkeypatch):
    monkeypatch.setattr("benchmarks.__main__.LONGEST", 10)
    row = row_of(work._replace(texts=2), lengths=(5, 10, 20))
    assert all(float(row[name].replace(",", "")) > 0 for name in ("20 tokens", "definition, 10", "times, 10"))
