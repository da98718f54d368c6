"""Wiegreffe & Pinter's models: trained adversaries, guided and uniform models, and what they are compared with."""

from dataclasses import replace

import numpy as np
import planned
import pytest
import small
import torch
from scipy.special import rel_entr

from lib import analysis
from lib.analysis.adversaries import distances, measure_versus_base
from lib.datasets import DATASETS
from lib.datasets.batches import batches, collate
from lib.metrics.distances import kullback_leibler, probabilities
from lib.models import GuidedClassifier
from lib.provenance import seeds_of
from lib.training import Run, losses, train
from lib.training.tasks import Adversary, BaseOutputs, Classification, PerWord
from lib.training.trained import build, task_of

pytestmark = pytest.mark.usefixtures("one_cache")
BASE = Run("planted", vectors="random", options=(("embedding_size", 20), ("epochs", 3), ("hidden_size", 16)))


def adversary(base: Run = BASE, **options) -> Run:
    return replace(base, variant="adversary", base=base, options=(*base.options, *options.items()))


@pytest.fixture(scope="module")
def base(one_cache):
    return train(BASE, say=print)


def test_imitation_comes_closer_than_another_seed_and_a_larger_lambda_goes_further(base):
    others = [train(replace(BASE, seed=1), say=print)]
    others += [train(adversary(**{"lambda": strength}), say=print) for strength in (0.0, 1e-4, 0.05)]
    seed, imitates, near, far = (measure_versus_base([one], [base])["tvd"].mean() for one in others)
    assert imitates < seed and near < far
    assert [one.chosen for one in others[1:]] == [3, 3, 3], "the last epoch is kept"
    assert others[3].history[-1]["dev_jsd"] > 2 * others[2].history[-1]["dev_jsd"]
    outputs = BaseOutputs.compute(base.model, base.corpus.dev, base.batches("dev"))
    measured = analysis.measure(others[3].model, others[3].batches("dev"), distances(outputs))
    assert measured["jsd"].mean() == pytest.approx(others[3].history[-1]["dev_jsd"], abs=1e-5)


def test_kl_is_0_of_equal_attention_and_infinite_where_only_the_first_has_weight():
    p, one = torch.tensor([[0.2, 0.8, 0.0], [0.0, 1.0, 0.0]])
    assert kullback_leibler(p, p) == 0 and kullback_leibler(p, one) == torch.inf > kullback_leibler(one, p)


def test_the_adversarial_loss_by_hand_and_its_gradient_through_padding():
    scores = torch.randn(2, 4, generator=torch.Generator().manual_seed(1)).double().requires_grad_()
    mask = torch.tensor([[True, True, True, False], [True, True, False, False]])
    own = torch.softmax(scores.masked_fill(~mask, -torch.inf), -1)
    of_base = torch.tensor([[0.2, 0.3, 0.5, 0.0], [0.9, 0.1, 0.0, 0.0]]).double()
    p = probabilities(torch.tensor([[0.5], [-1.0]]).double())
    q = probabilities(torch.tensor([[0.1], [-0.2]]).double())
    by_hand = np.abs((p - q)[:, 1].numpy()) / 2 - 0.1 * rel_entr(own.detach().numpy(), of_base.numpy()).sum(axis=1)
    found = losses.adversarial_loss((p, q), (own, of_base), 0.1)
    assert found["loss"].detach().numpy() == pytest.approx(by_hand, rel=1e-9)
    full = losses.adversarial_loss((p, q), (own, of_base), 0.2, tvd="full")
    assert torch.allclose(full["loss"], 2 * found["loss"])
    by_jsd = losses.adversarial_loss((p, q), (own, of_base), 0.1, "jsd")
    assert torch.allclose(by_jsd["loss"], full["tvd"] / 2 - 0.1 * by_jsd["jsd"])
    for loss in (found, by_jsd):
        (slope,) = torch.autograd.grad(loss["loss"].sum(), scores, retain_graph=True)
        assert torch.isfinite(slope).all() and slope[mask].abs().min() > 0 and not slope[~mask].any()
    # a weight that has underflowed does not make the loss infinite
    gone = losses.adversarial_loss((p, q), (own, of_base.where(of_base != 0.2, 0)), 0.1)
    assert torch.isfinite(gone["loss"]).all()


def history(given: list[float]) -> list[dict]:
    """Of these training losses; the distances on dev differ by epoch."""
    return [{"train_loss": loss, "dev_jsd": n / 100, "dev_tvd": 0.2, "dev_f1": 0.8} for n, loss in enumerate(given, 1)]


def test_the_loss_stands_still_when_it_falls_by_less_than_a_ten_thousandth_in_ten_epochs():
    assert not Adversary.ended(history([0.1] * 10)) and Adversary.ended(history([0.1] * 11))
    assert not Adversary.ended(history([0.1] * 10 + [0.0998]))
    assert Adversary.ended(history([0.1] * 10 + [0.09995]))
    assert not Adversary.ended(history([0.0] * 10 + [-0.0002])) and Adversary.ended(history([0.0] * 10 + [-0.00005]))


@pytest.mark.parametrize(("step", "converged"), [(0.0005, False), (0.0001, True)])
def test_an_adversary_that_still_moves_away_has_not_converged_whatever_its_loss(base, step, converged):
    """With a small lambda the loss stands still while the distance on dev grows by a tenth in ten epochs."""
    records = [{"train_loss": 0.1, "dev_f1": 0.9, "dev_tvd": 0.1, "dev_jsd": 0.03 + step * n} for n in range(30)]
    runs = (adversary(**{"lambda": strength}) for strength in (0.0, 1e-4))
    imitates, moved = (replace(base, run=run, history=tuple(records), chosen=30, base=base) for run in runs)
    assert moved.converged
    assert analysis.adversaries.adversaries_by_dev([imitates, moved])["converged"].tolist() == [True, converged]
    rows = analysis.adversaries.measure_versus_base([imitates, moved])
    assert rows.groupby("lambda")["converged"].all().to_dict() == {0.0: True, 1e-4: converged}


def test_a_frozen_adversary_changes_no_weight_but_the_attentions(base):
    frozen = train(adversary(**{"lambda": 1e-2, "trains": "attention"}), say=print)
    before, after = base.model.state_dict(), frozen.model.state_dict()
    for name, weight in before.items():
        assert torch.equal(weight, after[name]) == (not name.startswith("attention.")), name
    assert frozen.history[-1]["dev_jsd"] > 0
    other = replace(frozen, run=replace(frozen.run, seed=base.run.seed + 100))
    both = analysis.adversaries.measure_versus_base([base, other])
    assert [*set(both["seed"])] == seeds_of([other]) == [base.run.seed], "pairs are of one seed"


def test_a_frozen_adversary_minimises_what_the_whole_model_would(base):
    run = adversary(**{"lambda": 1e-2, "trains": "attention"})
    untrained = replace(base, run=run, model=train(replace(BASE, seed=3), say=print).model, base=base)
    task, batch = task_of(untrained), next(base.batches("train", 32))
    whole = replace(task, frozen=None).losses(untrained.model, batch)["loss"]
    (kept,) = untrained.with_states("train", [batch])
    assert torch.allclose(task.losses(untrained.model, kept)["loss"], whole, rtol=1e-5) and kept.states is not None


@pytest.mark.parametrize("trains", ["all", "attention"])
def test_an_adversary_may_start_from_all_of_its_bases_parameters(base, trains):
    chosen = {"lambda": 1.0, "divergence": "jsd", "trains": trains, "starts": "base"}
    run = adversary(base.run, classifier_dropout=0.1, **chosen)  # without noise its loss has no slope where it starts
    untrained = replace(base, run=run, model=build(run, base.corpus, base.vectors), base=base)
    assert not torch.equal(untrained.model.decoder.weight, base.model.decoder.weight)
    terms = task_of(untrained).losses(untrained.model.eval(), next(base.batches("train", 32)))
    assert float(terms["tvd"]) < 1e-4 and float(terms["jsd"]) < 1e-4, "at the start it is its base"
    for name, weight in base.model.state_dict().items():
        assert torch.equal(untrained.model.state_dict()[name], weight), name
    moved = train(run, say=print)
    assert not torch.equal(moved.model.attention.context.weight, base.model.attention.context.weight)
    assert moved.history[-1]["dev_jsd"] > terms["jsd"]


def test_imposed_attention_is_used_exactly_and_does_not_learn(base):
    guided = train(replace(BASE, encoder="average", variant="guide_base", base=BASE), say=print)
    assert isinstance(guided.model, GuidedClassifier)
    given = BaseOutputs.compute(base.model, base.corpus.dev, base.batches("dev")).attention
    output = guided.model(batch := next(guided.batches("dev")))
    assert torch.equal(output.attention, given.look_up(batch)) and not output.attention[~batch.mask].any()
    by_hand = guided.model.decoder(torch.einsum("bt,bth->bh", output.attention, output.hidden))
    assert torch.allclose(output.logits, by_hand, atol=1e-5)
    task = Classification(torch.from_numpy(base.corpus.train.labels), 1)
    task.losses(guided.model, next(guided.batches("train", 8, (0, 0))))["loss"].backward()
    assert all(parameter.grad is None for parameter in guided.model.attention.parameters())
    bare = collate(guided.corpus.test, np.arange(3))
    with pytest.raises(ValueError, match="has no attention"):
        guided.model(bare)
    imposed = torch.full(bare.mask.shape, 0.5)
    assert torch.equal(guided.model(bare, attention=imposed).attention, imposed)


def test_values_per_word_come_back_whatever_the_batches():
    split = small.split()
    given = [(batch, torch.rand(*batch.tokens.shape) * (batch.tokens != 0)) for batch in batches(split, 2)]
    held = PerWord(split)
    for batch, values in given:
        held.put(batch, values)
    together = held.look_up(collate(split, np.arange(len(split))[::-1].copy()))
    for batch, values in given:
        assert torch.equal(held.look_up(batch), values)
        assert torch.equal(together[len(split) - 1 - batch.instance, : values.shape[1]], values)


def test_every_dataset_and_variant_has_its_runs():
    for dataset in (name for name, spec in DATASETS.items() if not spec.asks):
        runs = planned.runs("adversary", dataset, "paper", device="cpu")
        assert {run.variant for run in runs} == {"base", "uniform", "adversary", "guide_base", "guide_adversary"}
        sweep = planned.runs("adversary/sweep", dataset, "paper")
        assert {run.option("lambda") for run in sweep} == {0, 1e-4, 5.25e-4, 1e-3, 2e-3, 3e-3} and len(sweep) == 5 * 6
        assert {(run.option("tvd"), run.option("divergence")) for run in sweep} == {("half", "kl")}
        assert all(run.base.seed == run.seed for run in runs if run.base)
    runs = planned.runs("adversary/sweep", projection="sparsegen:-3", attention="dot", adversary_epochs=2)
    bounded = {("jsd", "dot", 2)}  # where attention may be 0
    assert {(run.option("divergence"), run.attention, run.epochs) for run in runs} == bounded


def test_without_trained_adversaries_tables_2_and_3_are_left():
    runs = {one: planned.runs("adversary", "sst", "paper", device="cpu", adversaries=one) for one in (True, False)}
    assert {run.variant for run in runs[False]} == {"base", "uniform", "guide_base"} and len(runs[False]) == 9 + 4 * 5
    assert sum(run.encoder == "bilstm" for run in runs[False]) == 9 + 5 and set(runs[False]) < set(runs[True])


def test_the_adversary_of_table_3_guides_or_that_of_the_largest_lambda_and_never_what_only_imitates():
    for lambdas, guiding in (((1e-3, 2e-3), {1e-3}), ((1e-4, 5e-4), {5e-4}), ((0.0,), set())):
        settings = {"dataset": "sst", "profile": "paper", "lambdas": lambdas, "device": "cpu"}
        guides = planned.runs("adversary/guides", **settings)
        assert {run.base.option("lambda") for run in guides if run.variant == "guide_adversary"} == guiding
        imitating = planned.runs("adversary/imitation_guides", **settings)
        assert {run.base.option("lambda") for run in imitating} == {0} and len(imitating) == 5
