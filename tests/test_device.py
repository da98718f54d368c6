"""Devices without having one: every measure and every variant of training on a simulated GPU, and cuDNN's limits."""

import re
from dataclasses import replace
from pathlib import Path

import everything
import pandas as pd
import pytest
import small
import test_hierarchical as documents
import test_questions as questions
import torch
from far import far_away
from torch import nn

from lib.analysis import information
from lib.analysis.adversaries import measure_versus_base
from lib.datasets.corpus import Corpus, Split
from lib.metrics import kendall_tau
from lib.models import evaluation
from lib.models.check_interface import check_interface
from lib.models.evaluation import eval_mode, gradients_enabled, measurable
from lib.training import Run, cache, fitting, train
from lib.training.tasks import Classification

FEW = (("epochs", 1), ("batch_size", 4), ("embedding_size", 8))
BASE = Run("planted", vectors="random", recipe="tutek2020", options=FEW)
SERRANO = Run("planted-documents", vectors="random", recipe="serrano2019", options=FEW)


def adversary(**options) -> Run:
    options = (*BASE.options, ("divergence", "jsd"), *options.items())
    return replace(BASE, variant="adversary", base=BASE, options=options)


RUNS = {
    "base": BASE,
    "tying": replace(BASE, variant="tying"),
    "mlm": replace(BASE, variant="mlm"),
    "pulled": replace(BASE, variant="pulled", options=(*BASE.options, ("target", "ranker"))),
    "sparse": replace(BASE, encoder="conv", projection="entmax:learned"),
    "transformer": replace(BASE, encoder="transformer"),
    "adversary": adversary(),
    "frozen adversary": adversary(trains="attention"),
    "guided": replace(BASE, variant="guide_base", base=BASE),
    "documents": replace(SERRANO, encoder="han-rnn"),
    "questions": Run("snli", vectors="random", options=(*FEW, ("hidden_size", 8))),
}
RUNS |= {name: replace(BASE, variant=name) for name in ("frozen", "concat", "residual", "uniform")}


def marked(split: Split) -> Split:
    """The same texts with their last word, and of long ones the second too, as their rationale."""
    of = [(len(one.tokens) - 1, len(one.tokens)) for one in split.instances]
    spans = [((1, 2), last) if last[0] > 2 else (last,) for last in of]
    marked = zip(split.instances, spans, strict=True)
    return replace(split, instances=tuple(replace(one, rationale=given) for one, given in marked))


def corpus_of(run: Run) -> Corpus:
    """Ten small texts, the same in all three splits."""
    split, classes = marked(small.split(range(1, 11))), ("0", "1")
    if run.dataset == "planted-documents":
        split = documents.documents(documents.CUTS * 2)
    if run.dataset == "snli":
        split, classes = questions.split(), ("0", "1", "2")
        labelled = tuple(replace(one, label=number % 3) for number, one in enumerate(split.instances))
        split = replace(split, instances=labelled)
    parts = {name: replace(split, name=name) for name in ("train", "dev", "test")}
    return Corpus(run.dataset, "", classes, split.vocabulary, **parts, checksum=run.dataset)


@pytest.mark.parametrize("name", everything.MODELS)
def test_every_measure_is_the_same_on_another_device(name, monkeypatch):
    near = everything.measured(name)
    with far_away(monkeypatch) as far:
        pd.testing.assert_frame_equal(everything.measured(name, far), near)


@pytest.mark.parametrize("name", RUNS)
def test_every_variant_trains_the_same_on_another_device(name, monkeypatch, tmp_path):
    monkeypatch.setenv("CACHE_HOME", str(tmp_path))
    run, corpus = RUNS[name], corpus_of(RUNS[name])
    near = train(run, corpus=corpus, say=lambda _: None)
    with far_away(monkeypatch) as far:
        base = replace(run.base, device_kind=far) if run.base else None
        found = train(replace(run, device_kind=far, base=base), corpus=corpus, say=lambda _: None)
        assert {value.device.type for value in found.model.state_dict().values()} == {far}
        for key, value in near.model.state_dict().items():
            torch.testing.assert_close(found.model.state_dict()[key].cpu(), value, rtol=0, atol=1e-6)
    of_near, of_far = (pd.DataFrame(one.history).drop(columns="seconds") for one in (near, found))
    pd.testing.assert_frame_equal(of_far, of_near, rtol=1e-4, atol=1e-6)


def test_a_checkpoint_is_read_onto_the_device(monkeypatch, tmp_path):
    def epoch(device: str) -> dict[str, float]:
        model, given = small.model().float().to(device), small.batch(range(1, 11)).to(device)
        optimizer = fitting.adam(model, 1e-5, 1e-3, True, False, None)
        cache.restore_checkpoint(tmp_path / "c", model, optimizer)
        losses = fitting.train_epoch(model, [given], optimizer, Classification(given.label.cpu(), 1), "sum")
        cache.save_checkpoint(tmp_path / "c", model, optimizer, {}, [])
        return losses

    near = [epoch("cpu") for _ in range(3)]
    (tmp_path / "c").unlink()
    assert epoch("cpu") == near[0]
    with far_away(monkeypatch) as far:
        assert [epoch(far)["loss"] for _ in range(2)] == pytest.approx([one["loss"] for one in near[1:]], rel=1e-5)


def test_what_goes_round_a_measure_is_the_same_on_another_device(monkeypatch, tmp_path):
    monkeypatch.setenv("CACHE_HOME", str(tmp_path))
    run, corpus = RUNS["adversary"], corpus_of(RUNS["adversary"])

    def all_of_it(device: str) -> list[pd.DataFrame]:
        base = replace(run.base, device_kind=device)
        one = train(replace(run, device_kind=device, base=base), corpus=corpus, say=lambda _: None)
        output = check_interface(one.model, next(one.batches("test", 4)))
        taus = kendall_tau(output.attention, output.scores, output.mask)
        against = measure_versus_base([one], [one.base]).drop(columns="attention_weights")
        return [against, information([one], words=5), *(pd.DataFrame(part.cpu()) for part in taus)]

    near = all_of_it("cpu")
    with far_away(monkeypatch) as far:
        for found, expected in zip(all_of_it(far), near, strict=True):
            pd.testing.assert_frame_equal(found, expected, atol=1e-6)


def test_the_make_believe_device_refuses_what_cuda_refuses(monkeypatch):
    with far_away(monkeypatch) as far:
        one = torch.ones(3, device=far)
        assert (one * torch.tensor(2.0)).tolist() == [2, 2, 2] and one[torch.tensor([0])].device.type == far
        for wrong in (lambda: one + torch.ones(3), lambda: torch.ones(3)[one.long()], lambda: one.numpy()):
            with pytest.raises((RuntimeError, TypeError), match="same device|Tensor.cpu"):
                wrong()


def test_gradients_are_enabled_in_one_module_alone():
    """`gradients_enabled` works around what cuDNN cannot do; gradients enabled elsewhere would not."""
    sources = Path(evaluation.__file__).parents[1].rglob("*.py")
    enables = re.compile(r"enable_grad|backends\.cudnn").search
    assert [path.name for path in sources if enables(path.read_text(encoding="utf-8"))] == ["evaluation.py"]


@pytest.fixture
def recurrent(monkeypatch) -> list[bool]:
    """Of every pass through a recurrent layer whether gradients were on; a pass that cuDNN would spoil is an error."""
    passes = []

    def watched(plain):
        def forward(layer, *given, **options):
            wants = torch.is_grad_enabled()
            assert layer.training or not (wants and torch.backends.cudnn.enabled), "cuDNN gives no gradient here"
            passes.append(wants)
            return plain(layer, *given, **options)

        return forward

    for kind in (nn.LSTM, nn.GRU):
        monkeypatch.setattr(kind, "forward", watched(kind.forward))
    return passes


@pytest.mark.parametrize("name", ["bilstm", "flan-rnn", "question", "the interface alone"])
def test_no_measure_takes_a_gradient_through_cudnn(name, recurrent):
    everything.measured(name)
    check_interface(*(make() for make in everything.MODELS[name][:2]))
    assert any(recurrent)
    assert not all(recurrent), "without gradients cuDNN may do it"
    assert torch.backends.cudnn.enabled


def test_cudnn_comes_back_whatever_happens(recurrent):
    model, given = everything.pooled(), everything.texts()
    with eval_mode(model), gradients_enabled(model), measurable(model):
        assert not torch.backends.cudnn.allow_tf32
        model(given)
        with pytest.raises(ValueError, match="RNN input"):
            model.gru(torch.zeros(1, 2, 99))
        assert torch.backends.cudnn.enabled
    assert torch.backends.cudnn.allow_tf32 and not model.gru._forward_hooks and not model.gru._forward_pre_hooks
    with pytest.raises(AssertionError, match="no gradient"):
        model(given)  # outside of the context: the fixture notices
