"""Runs: the same weights again, whatever happens between."""

import json
import os
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import Mock, patch

import numpy as np
import pytest
import small
import test_device
import torch
from forked import Forked

from lib.atomic_write import write_json
from lib.models import ATTENTIONS, ENCODERS, HIERARCHICAL, QUESTION_ENCODERS, evaluation
from lib.training import Run, cache, fitting, losses, stages, train, train_all, with_bases
from lib.training.runs import RECIPES, VARIANTS
from lib.training.targets import targets
from lib.training.trained import Trained, build, entry_name, load_vectors, task_of

RECORDED = Path(__file__).with_name("weights.json")
RECORD = "record anew with .venv/bin/python tests/test_training.py"
OF_TINY = (("batch_size", 4), ("embedding_size", 8), ("epochs", 3), ("hidden_size", 8))
TINY = Run("planted", vectors="random", options=OF_TINY)
CORPUS = test_device.corpus_of(TINY)
FAST = (*TINY.options, ("learning_rate", 0.05))
ROUGH = (*TINY.options, ("clip", 0.1), *((f"{part}_dropout", 0.2) for part in ("sentence", "document", "classifier")))
DOCUMENTS = Run("planted-documents", "han-rnn", vectors="random", recipe="serrano2019", options=ROUGH)


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    """An empty cache for each test, also in the processes that it starts."""
    monkeypatch.setenv("CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(cache.PROJECT))
    return tmp_path


def silent(message: str) -> None:
    pass


def weights(store: Path) -> bytes:
    return (the_entry(store) / "weights.safetensors").read_bytes()


def the_entry(store: Path) -> Path:
    (entry,) = [folder for folder in store.iterdir() if not folder.name.startswith(".")]
    return entry


def test_auto_is_the_file_that_the_recipe_names_and_a_tied_model_has_its_size(tmp_path):
    (tmp_path / "vectors").mkdir()
    words, random = CORPUS.vocabulary.words[4:], np.random.default_rng(0)
    for name, size in (("a", 4), ("indomain_word2vec_300d", 6), ("wiki_spacy_md_300d.f16", 10)):
        np.savez(tmp_path / f"vectors/{name}.npz", words=words, vectors=random.normal(size=(len(words), size)))
    for recipe, size in (("jain2019", 10), ("meister2021", 10), ("tutek2020", 6)):
        options = (("batch_size", 4), ("delta", 0.1), ("epochs", 1), ("hidden_size", "embeddings"))
        one = train(Run("planted", variant="tying", recipe=recipe, options=options), tmp_path, CORPUS, say=silent)
        assert one.model(next(one.batches("test"))).hidden.shape[-1] == one.vectors.table.shape[1] == size


def trained(messages: list[str], seed: int = 0) -> Trained:
    return train(replace(TINY, seed=seed), corpus=CORPUS, say=messages.append)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> bytes:
    """The weights of TINY, trained once without trouble."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with patch.dict(os.environ, {"CACHE_HOME": str(folder)}):
        trained([])
        return weights(folder)


def test_the_same_run_gives_the_same_weights_bit_for_bit(store, undisturbed, monkeypatch):
    messages = []
    first = trained(messages)
    monkeypatch.setattr(cache, "alone", None)  # nothing is locked or written: a cache may be read-only
    again = trained(messages)
    assert weights(store) == undisturbed and len(messages) == 3, "the second call reads the cache"
    batch = next(first.batches("test"))
    assert torch.equal(first.model(batch).logits, again.model(batch).logits)
    best = max(record["dev_auc"] for record in again.history)
    assert fitting.evaluate(again.model, again.batches("dev"))["auc"] == pytest.approx(best, abs=1e-6)
    files = {"weights.safetensors", "history.json", "run.json", "contents.json"}
    assert {file.name for file in the_entry(store).iterdir()} == files, "no pickle"


def say_and_wait(seconds: dict[str, float], message: str) -> None:
    """Prints it; then waits, where it is of one of these epochs."""
    print(message, flush=True)
    time.sleep(sum(seconds[epoch] for epoch in seconds if f"epoch {epoch}/" in message))


def in_a_process_of_its_own(log: Path, seconds: dict[str, float]) -> Forked:
    """Trains TINY and keeps what it says, with a checkpoint after each epoch."""
    return Forked(train, TINY, None, CORPUS, partial(say_and_wait, seconds), 0, log=log)


def test_a_killed_run_goes_on_from_its_checkpoint_to_the_same_weights(store, undisturbed):
    process = in_a_process_of_its_own(store / ".log", {"2": 600})
    while "epoch 2" not in ((store / ".log").read_text() if (store / ".log").exists() else ""):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not [folder for folder in store.iterdir() if not folder.name.startswith(".")], "nothing looks finished"
    messages = []
    trained(messages)
    assert "epoch 1/3" not in "".join(messages), "the first epoch is not trained twice"
    assert weights(store) == undisturbed


def test_two_processes_do_not_train_one_run_twice(store, undisturbed):
    logs = store / ".one", store / ".other"
    both = [in_a_process_of_its_own(log, {"1": 1}) for log in logs]
    assert [process.wait() for process in both] == [0, 0]
    said = "".join(log.read_text() for log in logs)
    assert said.count("epoch 1/3") == 1 and said.count("another process is training it") <= 1
    assert weights(store) == undisturbed


def test_a_damaged_entry_is_trained_again(store, undisturbed):
    trained([])
    entry = the_entry(store)
    weight_file, contents = entry / "weights.safetensors", entry / "contents.json"
    good, flipped = weight_file.read_bytes(), bytes([weight_file.read_bytes()[-1] ^ 1])
    for file, damaged in ((weight_file, good[:-1] + flipped), *((contents, data) for data in (b"{", b"[]", b"{}"))):
        whole = file.read_bytes()
        file.write_bytes(damaged)
        assert cache.finished(entry.name) is None
        file.write_bytes(whole)
        assert cache.finished(entry.name) == entry
    weight_file.unlink()
    messages = []
    trained(messages)
    assert len(messages) == 3 and weights(store) == undisturbed


def test_runs_are_trained_side_by_side_and_bases_first(store, undisturbed, capfd):
    base, *others = (replace(TINY, seed=seed) for seed in range(3))
    child = replace(base, variant="guide_base", base=base)
    assert with_bases([child, base]) == [base, child] and stages([base, child]) == [[base], [child]]
    assert [one.run for one in train_all([child, *others], processes=2, corpus=CORPUS)] == [child, *others]
    said, name = capfd.readouterr().out, entry_name(base, CORPUS)
    assert "4/4" in said and said.count("epoch 3/3") == 4
    assert (cache.home() / name / "weights.safetensors").read_bytes() == undisturbed, "as in this process"


def of_variant(name: str, **options) -> Run:
    """A run of the variant; its base, and that one's, is the first that it may have."""
    base = of_variant(VARIANTS[name][0]) if VARIANTS[name] else None
    return replace(TINY, variant=name, base=base, options=(*TINY.options, *options.items()))


EVERY = {
    **{name: of_variant(name) for name in VARIANTS},
    "adversary of attention": of_variant("adversary", trains="attention", **{"lambda": 1.0}),
    "adversary from base": of_variant("adversary", starts="base", divergence="jsd"),
    **{name: replace(TINY, encoder=name) for name in ENCODERS},
    **{name: replace(TINY, attention=name) for name in ATTENTIONS},
    **{name: replace(TINY, projection=name) for name in ("sparsemax", "sparsegen:0.5", "entmax:1.5", "entmax:learned")},
    **{name: replace(TINY, recipe=name, attention="dot", options=FAST) for name in RECIPES},
    **{name: replace(DOCUMENTS, encoder=name) for name in HIERARCHICAL},
    **{f"question {name}": replace(TINY, dataset="snli", encoder=name) for name in QUESTION_ENCODERS},
    "word2vec": replace(TINY, vectors="word2vec"),
}


def given_by(run: Run) -> list[float]:
    """The loss of the last epoch, the sum of the kept weights, and that of their sizes."""
    trained = train(run, corpus=test_device.corpus_of(run), say=silent)
    weights = torch.cat([value.double().flatten() for value in trained.model.state_dict().values()])
    return [trained.history[-1]["train_loss"], float(weights.sum()), float(weights.abs().sum())]


@pytest.mark.parametrize("name", EVERY)
def test_training_gives_the_recorded_weights(name):
    recorded = json.loads(RECORDED.read_text())
    assert name in recorded, f"nothing is recorded of it: {RECORD}"
    assert given_by(EVERY[name]) == pytest.approx([*map(float, recorded[name].split())], rel=1e-5, abs=1e-5), (
        f"training gives other weights: if that is meant, raise WEIGHTS in lib/training/cache.py, then {RECORD}"
    )


def test_another_version_of_the_weights_and_other_texts_are_another_entry(monkeypatch):
    before = entry_name(TINY, CORPUS)
    assert entry_name(TINY, replace(CORPUS, checksum="other")) != before
    monkeypatch.setattr(cache, "WEIGHTS", cache.WEIGHTS + 1)
    assert entry_name(TINY, CORPUS) != before


ADVERSARY = {"variant": "adversary", "base": Run("planted")}
WRONG = [
    ({"dataset": "sst3"}, "unknown dataset 'sst3'; known: "),
    ({"encoder": "gru"}, "encoder is 'gru'; allowed: bilstm"),
    ({"seed": -1}, "seed is -1; allowed: greater than or equal to 0"),
    ({"options": (("epoch", 3),)}, "unknown option 'epoch' of a run of base on planted; known: amsgrad"),
    ({"options": (("heads", 2),)}, "unknown option 'heads'"),
    ({"options": (("epochs", 0),)}, "epochs is 0; allowed: greater than 0"),
    ({"options": (("batch_size", "x"),)}, "batch_size is 'x'; allowed: a valid integer"),
    ({"options": (("clip", float("inf")),)}, "clip is inf; allowed: a finite number"),
    ({"options": (("reduction", "none"),)}, "reduction is 'none'; allowed: 'sum' or 'mean'"),
    (ADVERSARY | {"projection": "sparsemax"}, "divergence is 'kl', .* allowed with sparse attention: 'jsd'"),
    ({"variant": "adversary"}, "the base of a run of adversary is None; allowed: base or frozen"),
    ({"variant": "guide_adversary", "base": Run("planted")}, "is base; allowed: adversary"),
    ({"variant": "tying"}, "tying.* hidden_size is None; set hidden_size='embeddings'"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_a_wrong_run_is_refused_with_what_is_allowed(wrong, message):
    with pytest.raises((KeyError, ValueError), match=message):
        Run(**{"dataset": "planted", **wrong})


def test_the_losses_of_labels_and_of_a_target_by_hand():
    logits, labels = torch.tensor([[0.3], [-1.2], [2.0]]), torch.tensor([1, 0, 0])
    weight = losses.class_weights(labels, 1)
    p = logits.squeeze(1).sigmoid().numpy()
    by_hand = -2 * np.log(p[0]) - np.log(1 - p[1]) - np.log(1 - p[2])
    assert float(losses.prediction_loss(logits, labels, weight)) == pytest.approx(by_hand, rel=1e-6)
    assert float(losses.prediction_loss(logits, labels, weight, "mean")) == pytest.approx(by_hand / 3, rel=1e-6)
    attention, target = torch.tensor([[0.5, 0.3, 0.2], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]), torch.zeros(3, 3)
    target[0, :2] = 0.5
    target[1, 2] = 1
    paid = losses.pulling_loss(attention, target)
    assert paid.isfinite().all() and paid[[0, 2]].tolist() == pytest.approx([0.5 * np.log(5 / 3), 0], abs=1e-6)


def test_attention_is_pulled_to_its_target_and_other_reasons_make_another_model():
    corpus = test_device.corpus_of(test_device.RUNS["pulled"])
    options = {"embedding_size": 8, "epochs": 40, "hidden_size": 8, "patience": 40, "learning_rate": 0.01}
    run = Run("planted", vectors="random", options=tuple(options.items()))
    pulled = {"variant": "pulled", "options": (*options.items(), ("target", "spread"), ("lambda", 2.0))}
    base, liar = (train(one, corpus=corpus, say=silent) for one in (run, replace(run, **pulled)))
    wanted = targets(corpus.dev, "spread")

    def apart(trained: Trained) -> float:
        batch = next(iter(trained.batches("dev", 10)))
        return float(losses.pulling_loss(trained.model(batch).attention, wanted.look_up(batch)).mean())

    with torch.no_grad():
        assert 3 * apart(liar) < apart(base)
    last = liar.history[-1]
    assert last["dev_objective"] == pytest.approx(-last["dev_loss"] - 2 * last["dev_pulling"])
    first, *others = corpus.train.instances
    other = replace(corpus, train=replace(corpus.train, instances=(replace(first, rationale=None), *others)))
    assert entry_name(liar.run, other) != entry_name(liar.run, corpus)
    assert entry_name(run, other) == entry_name(run, corpus), "a plain model never sees them"
    without = replace(corpus, dev=replace(small.split(range(1, 11)), name="dev"))
    with pytest.raises(ValueError, match="pulled to or from the rationales .* here are none; allowed: "):
        train(liar.run, corpus=without, say=silent)


@pytest.mark.parametrize("name", test_device.RUNS)
def test_a_batch_of_long_texts_is_cut_into_micro_batches_for_the_same_step(name, monkeypatch):
    run, corpus = test_device.RUNS[name], test_device.corpus_of(test_device.RUNS[name])
    base = train(run.base, corpus=corpus, say=silent) if run.base else None
    vectors = load_vectors(run, corpus)
    longest = int(corpus.train.lengths.max()) + 2

    def stepped(words: int) -> tuple[bool, dict, dict, list[int]]:
        """Whether losses add up; after one step the weights, its losses and dev scores; the sizes of micro-batches."""
        monkeypatch.setattr(fitting, "WORDS", words)
        monkeypatch.setattr(evaluation, "WORDS", words)
        model, sizes = build(run, corpus, vectors).eval(), []
        model.train = lambda *_: model  # no dropout, which differs between micro-batches
        untrained = Trained(run, model, corpus, vectors, (), 0, base)
        task = task_of(untrained)

        def losses(model, batch):
            sizes.append(batch.tokens.numel())
            return task.losses(model, batch)

        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
        torch.manual_seed(0)
        order = untrained.batches("train", 10, (0, 0))
        scores = fitting.train_epoch(model, order, optimizer, Mock(losses=losses, adds_up=task.adds_up), "sum")
        scores |= task.scores(model, corpus.dev, untrained.batches("dev", 10))
        return task.adds_up, model.state_dict(), scores, sizes

    _, weights, scores, _ = stepped(fitting.WORDS)
    adds_up, other, again, sizes = stepped(longest)
    assert (max(sizes) <= longest and len(sizes) > 2) == adds_up
    for key, value in weights.items():
        torch.testing.assert_close(other[key], value, rtol=1e-4, atol=1e-5)
    assert again == pytest.approx(scores, rel=1e-4, abs=1e-5)


def test_a_damaged_checkpoint_is_no_checkpoint(tmp_path):
    model, path = small.model(), tmp_path / "checkpoint"
    optimizer = fitting.adam(model, 1e-5, 1e-3, True, False, None)
    cache.save_checkpoint(path, model, optimizer, {}, [{"epoch": 1}])
    whole = path.read_bytes()
    for damaged in (b"", whole[:1000], whole[:-64] + bytes(64), whole + bytes(64), b"<<<<<<< HEAD\n" + whole):
        path.write_bytes(damaged)
        assert cache.restore_checkpoint(path, model, optimizer) == ({}, [])
    path.write_bytes(whole)
    assert cache.restore_checkpoint(path, model, optimizer)[1] == [{"epoch": 1}]


if __name__ == "__main__":
    with TemporaryDirectory() as folder, patch.dict(os.environ, {"CACHE_HOME": folder}):
        write_json(RECORDED, {name: " ".join(f"{one:.9g}" for one in given_by(run)) for name, run in EVERY.items()})
