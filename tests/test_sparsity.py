"""What `sparsity` trains and measures."""

from itertools import permutations

import numpy as np
import pandas as pd
import planned
import pytest
import torch
from scipy import stats
from small import batch, model

from lib.analysis import add_entropies, add_support, add_violations, adversaries, attention_weights, left_out, measure
from lib.analysis.correlation import trend
from lib.metrics import normalized_entropy
from lib.projections import sparsegen_name, sparsegen_strength
from lib.quantity import RUN_COLUMNS, unit_of
from lib.training import Run, train, untrained
from lib.training.tasks import Classification
from lib.training.trained import build
from papers import sparsity

MEISTER = {"dataset": "planted", "recipe": "meister2021"}
STRENGTHS = (-100, -0.5, 0, 0.75, 0.9999999)


def measured(arrays: dict[str, list], **columns) -> pd.DataFrame:
    """Rows of `measure` of one run with token-level columns."""
    names = dict.fromkeys(RUN_COLUMNS, "") | {"encoder": "bilstm", "projection": "sparsegen", "layers": 1}
    lengths = [len(values) for values in next(iter(arrays.values()))]
    rows = pd.DataFrame(names | {"seed": 0}, index=range(len(lengths)))
    rows = rows.assign(instance=range(len(lengths)), length=lengths, label=0, prediction=0, probability=0.5)
    return rows.assign(left_out=[()] * len(lengths), **columns, **{name: list(of) for name, of in arrays.items()})


def test_entropies_are_those_of_the_metric_and_undefined_ones_are_counted():
    random = np.random.default_rng(0)
    values = [random.random(9), np.eye(5)[2], np.ones(4), np.zeros(3), np.ones(1), None]
    rows = measured({"gradient_of_input": [*values[:5], np.ones(2)]})
    rows.at[5, "gradient_of_input"] = None
    rows.at[5, "left_out"] = (("gradient_of_input", "longer than 9 tokens"),)
    found = add_entropies(rows, ["gradient_of_input"])
    shares = torch.from_numpy(values[0] / values[0].sum())[None]
    expected = float(normalized_entropy(shares, torch.ones(1, 9, dtype=torch.bool)))
    entropies = found["entropy_of_gradient_of_input"].to_numpy()
    assert entropies[:3] == pytest.approx([expected, 0, 1], abs=1e-12) and np.isnan(entropies[3:]).all()
    assert ("entropy_of_gradient_of_input", "longer than 9 tokens") in found.at[5, "left_out"]
    assert found.at[4, "left_out"] == ()


def test_violations_by_hand_of_ties_and_of_what_is_undefined():
    effects = [np.array([0.1, -0.1, 0.0, -0.2]), np.array([0.3, -0.1]), np.array([-0.5]), np.ones(2)]
    weights = [np.array([0.2, 0.4, 0.4, 0.0]), np.array([0.9, 0.1]), np.ones(1), np.ones(2)]
    undefined = [np.full(len(one), np.nan) for one in effects]
    rows = measured({"leave_one_out_signed": effects, "attention_weights": weights, "undefined": undefined})
    rows.at[3, "leave_one_out_signed"] = None
    rows.at[3, "left_out"] = (("leave_one_out_signed", "longer than 1 tokens"),)
    found = add_violations(rows, ["attention", "undefined"])
    assert found["violation_attention"].tolist()[:3] == [1 / 2, 0, 1]
    assert found["violation_random"].tolist()[:3] == [1 / 2, 1 / 2, 1]
    assert np.isnan(found.loc[3, "violation_attention"]) and found["violation_undefined"].isna().all()
    counted = left_out(found).set_index(["quantity", "why"])["texts left out"]
    assert counted["violation_undefined", "undefined"] == 3
    assert [counted[f"violation_{name}", "longer than 1 tokens"] for name in ("attention", "random")] == [1, 1]


def test_the_support_counts_what_is_exactly_above_zero():
    rows = measure(model(projection_name="sparsemax"), [batch((12, 5, 1))], [attention_weights])
    found, expected = add_support(rows), [int((weights > 0).sum()) for weights in rows["attention_weights"]]
    assert found["attention_support"].tolist() == expected and expected[2] == 1 and expected[0] < 12
    assert found["attention_support_share"].tolist() == [size / n for size, n in zip(expected, (12, 5, 1), strict=True)]
    assert (unit_of("attention_support"), unit_of("attention_support_share")) == ("tokens", "fraction")
    weights = [np.array([0.0, 0.2, 0.0, 0.5, 0.3, 0.0]), np.array([1.0, 0, 0, 0]), np.full(3, 1 / 3)]
    found = add_support(measured({"attention_weights": weights}))
    best = [max(stats.kendalltau(one, order).statistic for order in permutations(range(len(one)))) for one in weights]
    assert found["tau_ceiling"].tolist() == pytest.approx(np.nan_to_num(best)) and best[1] == pytest.approx(0.5**0.5)
    drawn = [stats.kendalltau(weights[0], (weights[0] > 0) * order).statistic for order in permutations(range(1, 7))]
    assert found["tau_by_ties"].tolist() == pytest.approx([np.mean(drawn), 1, 0]), "in the support any order"


def of_means(means: np.ndarray) -> pd.DataFrame:
    """Two texts, whose mean entropy in each seed along lambda is (seed, lambda); none where that is NaN."""
    places = [(*place, value) for place, value in np.ndenumerate(means) if not np.isnan(value)]
    rows = pd.DataFrame(places, columns=["seed", "lambda", "entropy"])
    apart = 9 * (rows["lambda"] % 2)  # so that neither text by itself follows the mean
    both = (rows["entropy"] - apart, rows["entropy"] + apart)
    return pd.concat([rows.assign(instance=text, entropy=of_text) for text, of_text in enumerate(both)])


def test_the_trend_along_a_hyperparameter():
    falling = 0.5 - 0.1 * np.arange(5) + np.zeros((3, 5))
    row = trend(rows := of_means(falling), "lambda", "entropy")
    assert (row["points"], row["seeds"], row["n"]) == (5, 3, 2)
    assert row["tau"] == row["tau_high"] == pytest.approx(-1)
    assert (row["first"], row["last"]) == pytest.approx((0.5, 0.1))
    one = trend(of_means(falling[:1]), "lambda", "entropy")
    assert one["tau"] == pytest.approx(-1) and np.isnan(one["tau_low"]), "one seed says nothing about others"
    few = trend(rows[rows["lambda"] > 2], "lambda", "entropy")
    flat = trend(rows.assign(entropy=0.5), "lambda", "entropy")
    assert np.isnan([few["tau"], flat["tau"]]).all() and few["points"] == 2
    rising = np.arange(6) + np.zeros((3, 6))
    rising[2, [1, 4]], rising[2, [0, 2]] = np.nan, rising[2, [2, 0]]  # those count that every seed has
    found = trend(of_means(rising), "lambda", "entropy")
    assert found["tau"] == pytest.approx((1 + 1 + stats.kendalltau(range(4), [2, 0, 3, 5]).statistic) / 3)
    rising[1, [0, 3]] = np.nan  # two points are left in common: each seed by itself, the whole ones alone
    assert trend(of_means(rising), "lambda", "entropy")["tau"] == pytest.approx(1)


def test_the_paper_has_each_run_once_and_lambda_zero_is_sparsemax():
    parts = {part.__name__: planned.runs(f"sparsity/{part.__name__}", profile="paper") for part in sparsity.PARTS}
    whole = planned.runs("sparsity", profile="paper")
    assert set(whole) == {run for part in parts.values() for run in part} and len(set(whole)) == len(whole)
    of_base = {(run.base, run.option("lambda")) for run in parts["adversaries"]}
    assert all((base, 0.0) in of_base for base, _ in of_base), "each has one that only imitates"
    at = {run.option("starts"): run.seed - run.base.seed for run in parts["frozen_adversaries"]}
    assert at["random"] and not at["base"], "attention that never left its start must not begin beside its model's"
    assert {run for run in parts["spectrum"] if run.projection in sparsity.PROJECTIONS} == set(parts["models"])
    of_kl = [run for run in parts["frozen_adversaries"] if run.option("divergence") == "kl"]
    kl = {(run.option("lambda"), run.option("starts")) for run in of_kl}
    assert kl == {(at, "random") for at in (0.03, 0.1, 0.3, 1)} and of_kl[0].base.option("learning_rate") == 1e-4
    rates = {(run.encoder, run.option("trains"), run.option("learning_rate")) for run in whole if run.base}
    own = {("transformer", "all", 1e-4), ("transformer", "attention", 1e-2)}
    assert rates == {("bilstm", "all", 1e-3), ("bilstm", "attention", 1e-3)} | own
    given = planned.runs("sparsity/frozen_adversaries", profile="paper", frozen_lambdas=[5])
    assert {(run.option("divergence"), run.option("lambda")) for run in given} == {("jsd", 0.0), ("jsd", 5.0)}
    with pytest.raises(ValueError, match="less than 1"):
        planned.runs("sparsity", strengths=[2])
    few = planned.runs("sparsity/spectrum", profile="paper", encoders=["conv"], seeds=1, strengths=[0.5, 0, -1])
    assert [run.projection for run in few] == ["softmax", "sparsegen:-1", "sparsemax", "sparsegen:0.5"]
    assert [sparsegen_strength(sparsegen_name(at)) for at in STRENGTHS] == list(STRENGTHS)
    assert np.isnan([sparsegen_strength(name) for name in ("softmax", "entmax:1.5")]).all()


def test_table_2_is_the_trend_of_the_gradient_and_table_5_where_both_kinds_reach():
    trends = pd.DataFrame({"quantity": ["entropy_of_gradient_of_input", "entropy_of_leave_one_out_of_input"]})
    trends = trends.assign(tau=[-0.8, 0.1], tau_low=[-1.0, -1.0], tau_high=[-0.5, 0.5])
    runs = [("all", 0.0, 0.0, 4), ("all", 0.2, 0.6, 3)]
    runs += [("attention", 0.0, 0.0, 4), ("attention", 1.0, 0.5, 3), ("attention", 3.0, 0.69, 1)]
    kind = {"projection": "softmax", "variant": "adversary", "divergence": "jsd", "tvd": 0.1, "converged": True}
    own = [{"trains": of, "lambda": at, "jsd": far, "label": np.arange(4) >= right} for of, at, far, right in runs]
    rows = [measured({"a": [np.ones(1)] * 4}).assign(**kind, **one) for one in own]
    searched = rows[0].assign(**{"lambda": np.nan})
    versus = adversaries.with_kinds(pd.concat(rows, ignore_index=True), searched, sparsity.KINDS)
    slope, matched = sparsity.partners(pd.concat([sparsity.table5(versus), trends], ignore_index=True), None)
    assert slope[["value", "low", "high"]].to_numpy().tolist() == [[-0.8, -1.0, -0.5]]
    assert slope["quantity"].tolist() == ["kendall_tau_lambda_vs_entropy_of_input_importance"]
    values = matched.set_index(["projection", "variant", "quantity"])["value"].loc[""].to_dict()
    frozen = 3 / 4 - 2 / 4 * (0.6 - 0.5) / (0.69 - 0.5)
    for name, accuracy in (expected := {sparsity.FROZEN: frozen, sparsity.UNFROZEN: 3 / 4}).items():
        assert (values[name, "jsd"], values[name, "accuracy"]) == pytest.approx((0.6, accuracy))
    for at, left in {0.0: 0, 1.0: 4}.items():  # without what imitates nothing is compared; without another, the rest
        few = versus.assign(converged=versus["trains"].eq("all") | versus["lambda"].ne(at))
        assert len(sparsity.table5(few)) == left
    assert {*adversaries.summarise_adversaries(versus)["variant"]} == {*expected, "searched_for_each_text"}
    kl = pd.concat([*rows[2:4], rows[4].assign(divergence="kl")], ignore_index=True)
    curve = adversaries.with_kinds(kl, searched, sparsity.KINDS).query("kind == 'frozen_by_kl'")
    assert curve["lambda"].unique().tolist() == [3.0, 0.0], "what only imitates begins both curves"


def test_patience_ends_training_after_the_best_epoch():
    labels, aucs = torch.tensor([0, 1]), [0.6, 0.8, 0.7, 0.8, 0.75]
    history = [{"epoch": number + 1, "dev_auc": auc} for number, auc in enumerate(aucs)]
    patient = Classification(labels, 1, patience=3)
    assert [patient.ended(history[:epochs]) for epochs in range(6)] == [False] * 5 + [True]
    assert not Classification(labels, 1).ended(history)
    assert Classification(labels, 1).ended([*history, {"epoch": 6, "dev_auc": 1.0}])  # no later epoch could be kept


def test_training_a_sparse_model_moves_its_alpha_and_untrained_is_its_start(monkeypatch, tmp_path):
    monkeypatch.setenv("CACHE_HOME", str(tmp_path))
    tiny = (("epochs", 1), ("embedding_size", 8), ("hidden_size", 8), ("learning_rate", 0.01))
    base = Run(**MEISTER, encoder="transformer", projection="entmax:learned", vectors="random", options=tiny)
    trained = train(base, say=lambda message: None)
    assert trained.history[0]["dev_attention_entropy"] < 1 and trained.model.projection.alpha.item() != 1.5
    at_first, first = untrained(trained), next(iter(trained.batches("test")))
    assert (at_first.history, at_first.chosen) == ((), 0)
    logits = at_first.model(first).logits
    assert torch.equal(logits, build(base, trained.corpus, trained.vectors).eval()(first).logits)
    assert not torch.equal(logits, trained.model(first).logits)
