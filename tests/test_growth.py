"""How cost grows: one very long text takes bounded memory in every measure, and a benchmark's slopes are right."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from benchmarks.slopes import Slope, compared, line

TOKENS = 5000
# a matrix of all pairs of the tokens, in single precision, is 100: nothing holds one but importances of states
MEGABYTES = {"transformer": 120, "average": 120, "bilstm": 600}

LONG_TEXT = """
import json, sys
from dataclasses import replace
import numpy as np
import torch
from small import WORDS, split
from benchmarks.memory import highest
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
    interventions.eraser_scores(rankings.RANKINGS),
    interventions.permutation_effect(100),
    interventions.adversary(0.01, "exact", name="exact", **far),
    interventions.adversary(0.01, "gradient", steps=20, name="searched", **far),
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
    numbers = ["length", "permutation", "exact_jsd", "searched_jsd"]
    numbers += ["states_entropy", "states_own_share"] if "states" in SWEEPS[encoder] else []
    rest = {name: float(row[name]) for name in numbers}
    assert not row["left_out"], row["left_out"]
    return arrays | taus | rest


SWEEPS = {"transformer": (), "average": ("gone",), "bilstm": ("gone", "states")}
found = {}
for encoder in SWEEPS:
    numbers(encoder, 20)
    before = highest()
    found[encoder] = numbers(encoder, int(sys.argv[1])) | {"megabytes": highest() - before}
print(json.dumps(found))
"""


def run(program: str, *arguments: str) -> str:
    """What a Python program prints in a process of its own."""
    tests = Path(__file__).resolve().parent
    environment = os.environ | {"PYTHONPATH": f"{tests.parent}{os.pathsep}{tests}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_text_of_5000_tokens_goes_through_every_measure_in_bounded_memory():
    for encoder, found in json.loads(run(LONG_TEXT, str(TOKENS))).items():
        assert all(map(math.isfinite, found.values())), (encoder, found)
        assert found["length"] == TOKENS and found["attention_weights"] == pytest.approx(1, abs=1e-4)
        assert found["megabytes"] < MEGABYTES[encoder], (encoder, found["megabytes"])


def test_the_highest_memory_is_of_this_process_alone_and_counts_what_was_given_back():
    held = bytearray(b"x") * 2**28  # of the process that starts the other one
    program = "from benchmarks.memory import highest; bytearray(b'x') * 2**26; print(highest())"
    assert 64 < float(run(program)) < 128 < len(held) / 2**20


def test_a_slope_is_the_power_of_the_size():
    sizes = [200, 400, 800, 1600]
    slope, error = line(sizes, [3 * size**1.7 for size in sizes])
    assert slope == pytest.approx(1.7) and error == pytest.approx(0, abs=1e-7)
    noisy = [1.0, 2.2, 3.9, 8.1]
    told = scipy.stats.linregress(np.log(sizes), np.log(noisy))
    assert line(sizes, noisy) == (pytest.approx(told.slope), pytest.approx(told.stderr))
    with pytest.raises(ValueError, match="three points"):
        line([1, 2], [1, 2])


def test_a_verdict_holds_the_measured_slope_against_the_promised_one():
    sizes = [10, 400, 800, 1600]
    quadratic = [1, *(size**2 for size in sizes[1:])]  # the first one is below what counts
    assert compared(sizes, quadratic, lambda n: n**2, above=100).verdict == "as promised"
    assert compared(sizes, quadratic, lambda n: n, above=100).verdict == "steeper"
    assert compared(sizes, quadratic, lambda n: n**3, above=100).verdict.startswith("flatter")
    assert compared(sizes, quadratic, lambda n: n**2, above=100).promised == pytest.approx(2)
    assert Slope(2.0, 0.6, 1.0).verdict == "as promised"  # nobody could tell
