"""Runs that share a GPU, planned without one: no estimate is too small, and no plan too full."""

from dataclasses import replace

import numpy as np
import pytest
import test_device
import torch

from lib.datasets.batches import collate
from lib.training import sharing, train
from lib.training.sharing import gpu_memory_mb, processes, side_by_side
from lib.training.trained import Trained, build, course_of, load_vectors

LIKE_THE_PAPERS = {"epochs": 1, "divergence": "jsd", "trains": "attention"}  # all other options as the recipe has them
RUNS = {name: run for name, run in test_device.RUNS.items() if not name.startswith("guided")}


def of_full_size(name: str):
    """A run with models of the papers' sizes, and its corpus of ten small texts."""

    def resized(run):
        kept = tuple((key, value) for key, value in run.options if LIKE_THE_PAPERS.get(key) == value)
        return replace(run, options=kept, base=resized(run.base) if run.base else None)

    return resized(RUNS[name]), test_device.corpus_of(RUNS[name])


def kept_for_the_gradient(model, course, batch) -> int:
    """Bytes that one step keeps from its way forward to its way back, the weights aside."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        course.losses(model.train(), batch)
    sizes = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in kept}
    return sum(size for place, size in sizes.items() if place not in weights)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_takes_no_more_than_is_said(name, monkeypatch, tmp_path):
    monkeypatch.setenv("CACHE_HOME", str(tmp_path))
    run, corpus = of_full_size(name)
    vectors = load_vectors(run, corpus)
    model = build(run, corpus, vectors)
    assert sum(parameter.numel() for parameter in model.parameters()) <= sharing.weights(run, corpus)
    base = train(run.base, corpus=corpus, say=lambda _: None) if run.base else None
    course = course_of(Trained(run, model, corpus, vectors, (), 0, base))
    batch = collate(corpus.train, np.arange(len(corpus.train)))
    assert kept_for_the_gradient(model, course, batch) <= sharing.SINGLE * sharing.of_step(run, corpus)


def test_what_makes_a_run_larger_makes_the_estimate_larger():
    run, corpus = of_full_size("base")
    larger = [
        replace(run, options=(("embedding_size", 3000),)),
        replace(run, options=(("batch_size", 6400),), layers=3),
        replace(run, variant="mlm"),
        of_full_size("adversary")[0],
    ]
    of_many = replace(corpus, train=replace(corpus.train, instances=corpus.train.instances * 50))
    small, *others = (gpu_memory_mb(one, of_many) for one in (run, *larger))
    assert sharing.CONTEXT < small < min(others)


def test_as_many_share_a_gpu_as_fit_whichever_of_them_meet():
    assert side_by_side(8000, [1000] * 20) == 7
    assert side_by_side(8000, [1000, 1000, 3000, 3000]) == 3  # the two large ones and one more
    assert side_by_side(8000, [9000, 1000]) == side_by_side(100, [9000]) == side_by_side(100, []) == 1
    assert side_by_side(1e6, [1000] * 3) == 3


def test_the_free_memory_decides_on_a_gpu_and_never_more_than_the_cores(monkeypatch):
    run, corpus = of_full_size("base")
    runs = [replace(run, seed=seed, device_kind="cuda") for seed in range(6)]
    corpora = {run.data: corpus}
    need = gpu_memory_mb(runs[0], corpus)
    monkeypatch.setattr(sharing, "cores", lambda: 4)
    for free, expected in ((100 * need, 4), (3.2 * need, 3), (need / 2, 1)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda free=free: (free * sharing.MIB, 0))
        assert processes(runs, corpora) == expected
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: pytest.fail("on a CPU nobody asks for a GPU's memory"))
    assert processes([replace(one, device_kind="cpu") for one in runs], corpora) == 4
    assert processes(runs[:1], corpora) == 1
