"""On a real GPU: it trains, measures as the CPU does, and is shared. Not run where there is none."""

from dataclasses import replace

import everything
import pandas as pd
import pytest
import torch
from small import WORDS, Foreign, batch

from lib.importance import leave_one_out
from lib.models import AttentionClassifier
from lib.training import Run, train, train_all

FEW = (("epochs", 2), ("embedding_size", 20), ("hidden_size", 16))
RUN = Run("planted", vectors="random", options=FEW)


@pytest.fixture(autouse=True)
def store(gpu, tmp_path, monkeypatch):
    """An empty cache for each test; no test where there is no GPU."""
    monkeypatch.setenv("CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("name", everything.MODELS)
def test_every_measure_is_that_of_the_cpu(name, gpu):
    frame = everything.measured(name, gpu)
    pd.testing.assert_frame_equal(frame, everything.measured(name), rtol=1e-6, atol=1e-8)


def test_leave_one_out_is_in_full_single_precision(gpu):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        tested = AttentionClassifier(torch.randn(len(WORDS) + 4, 64), "bilstm", "additive", hidden_size=64)
    given = batch((30, 9, 12))
    near = leave_one_out(Foreign(tested), given)
    far = leave_one_out(Foreign(tested.to(gpu)), given.to(gpu))  # each shortened text through cuDNN
    torch.testing.assert_close(far.cpu(), near, rtol=1e-3, atol=1e-5)


def test_training_is_that_of_the_cpu(gpu):
    near, far = (train(replace(RUN, device_kind=kind), say=lambda _: None) for kind in ("cpu", gpu))
    assert next(far.model.parameters()).is_cuda
    for one, other in zip(near.history, far.history, strict=True):
        assert other["train_loss"] == pytest.approx(one["train_loss"], rel=0.02)


def test_two_processes_share_it(gpu, capfd):
    runs = [replace(RUN, device_kind=gpu, seed=seed) for seed in (0, 1)]
    trained = train_all(runs, processes=2)
    assert [one.run.seed for one in trained] == [0, 1] and "2/2" in capfd.readouterr().out
    assert all(next(one.model.parameters()).is_cuda for one in trained)
