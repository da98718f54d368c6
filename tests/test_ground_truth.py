"""Explanations against a known reason, liars, and the tests that should find them."""

from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import planned
import pytest
import small
import torch
from sklearn.metrics import roc_auc_score

from lib import importance
from lib.analysis import attention_weights, ground_truth, measure
from lib.analysis.rationale import average_precision
from lib.datasets.batches import batches
from lib.datasets.corpus import UNKNOWN
from lib.interventions import shapley, shortened, without_reason
from lib.metrics.distances import probabilities
from lib.quantity import RUN_COLUMNS
from papers import ground_truth as parts


def test_the_reason_itself_scores_1_no_opinion_its_chance_and_ties_the_mean_over_their_orders():
    reason = np.array([False, True, False, True, True, False, False])
    assert ground_truth.hits(reason.astype(float), reason) == (1, 1, 3)
    assert average_precision(reason, reason.astype(float)) == 1
    assert ground_truth.hits(np.zeros(7), reason) == pytest.approx((3 / 7, 3 / 7, 3 * 8 / 4))
    reason, values = np.array([True, False, True, False, False, True]), np.array([2.0, 2.0, 1.0, 1.0, 1.0, 0.5])
    orders = [values + 0.1 * np.array(order) / 6 for order in permutations(range(6))]
    mean = np.mean([ground_truth.hits(order, reason) for order in orders], axis=0)
    assert ground_truth.hits(values, reason) == pytest.approx(mean)
    last = [max(np.flatnonzero(reason[np.argsort(-order)])) + 1 for order in orders]
    assert ground_truth.hits(values, reason)[2] == pytest.approx(np.mean(last))


def test_every_explanation_is_scored_and_what_is_right_by_construction_is_best():
    split = small.split((6, 8, 12, 9))
    texts = [[(1, 2), (3, 4)] for _ in split.instances]
    columns = [column for one in parts.explanations(steps=4) for column in one.columns]
    instances = measure(small.model(), [small.batch((6, 8, 12, 9))], parts.explanations(steps=4))
    right = [np.isin(np.arange(length), (1, 3)).astype(float) for length in instances["length"]]
    instances = instances.assign(right=right, none=[0 * values for values in right])
    scored = ground_truth.against_reason(instances, [*columns, "right", "none"], texts)
    assert {"leave_one_out_signed", "attention_times_norm", "integrated_gradients_unknown"} <= set(columns)
    for score in ("reason_top", "reason_precision", "rationale_average_precision", "beyond_chance"):
        assert (scored[f"{score}_right"] == 1).all()
    assert scored["reason_top_none"].tolist() == scored["reason_top_chance"].tolist() == [2 / n for n in (6, 8, 12, 9)]
    assert scored["beyond_chance_none"].tolist() == pytest.approx([0] * 4)


def test_only_texts_of_a_known_reason_that_are_answered_right_are_measured():
    """The first text has no reason, the second is all reason; of the others the model must be right."""
    texts, spans = small.split((4, 2, 9, 6, 8, 12)), ((), ((0, 2),), ((1, 2),), ((0, 3),), ((5, 7),), ((2, 3),))
    instances = tuple(replace(one, rationale=of) for one, of in zip(texts.instances, spans, strict=True))
    texts, tested = replace(texts, instances=instances), small.model("average")
    one = SimpleNamespace(model=tested, run=None, corpus=SimpleNamespace(test=texts))
    one.batches = lambda split, size: batches(texts, 2)
    all_texts = measure(tested, batches(texts, 6), [attention_weights])
    expected = [place for place in range(2, 6) if all_texts["label"][place] == all_texts["prediction"][place]]
    assert 0 < len(expected) < 4
    explained = ground_truth.explained([one], [attention_weights])
    assert sorted(explained["instance"]) == expected and (explained["reason_top_chance"] < 1).all()
    nothing = ground_truth.explained([], [attention_weights])
    assert ground_truth.summarise_scores(nothing, ["attention_weights"], ["reason_top_{}"]).empty
    assert ground_truth.along(nothing, ["attention_weights"]) == {} and nothing.empty


def test_a_reason_counts_where_the_model_predicts_another_class_without_it():
    """Pairs of texts; one text has no counterpart, and that of another is not in the split."""
    texts, tested = small.split((4, 2, 9, 6, 8, 12, 3, 5)), small.model("conv")
    others = ["test-1", "test-0", "test-3", "test-2", "test-5", "test-4", None, "gone"]
    pairs = zip(texts.instances, others, strict=True)
    texts = replace(texts, instances=tuple(replace(one, rationale=((0, 1),), counterpart=of) for one, of in pairs))
    one = SimpleNamespace(model=tested, run=None, corpus=SimpleNamespace(test=texts))
    one.batches = lambda split, size: batches(texts, 3)
    rows = measure(tested, batches(texts, 8), [])
    assert rows["prediction"].tolist() == [0, 1, 1, 0, 1, 1, 0, 1] and rows["label"].tolist() == [0, 1] * 4
    found = ground_truth.decided_by_reason(one, rows["prediction"])
    np.testing.assert_array_equal(found, [1, 1, 1, 1, 0, 0, np.nan, np.nan])
    assert sorted(ground_truth.explained([one], [attention_weights])["instance"]) == [0, 1, 6]


def test_values_along_each_dial_and_the_matrix_are_means_of_their_texts():
    random, datasets = np.random.default_rng(0), ["planted:cues=1", "planted:cues=4", "planted:noise=0.1"]
    rows = pd.DataFrame({"dataset": np.repeat(datasets, 20), "instance": [*range(20)] * 3, "seed": 0})
    rows = rows.assign(encoder="bilstm", attention="dot", projection="softmax", variant="base", layers=1)
    rows = ground_truth.against_reason(
        rows.assign(length=9, left_out=[()] * 60, values=[*random.random((60, 9))]), ["values"], [[(2, 4)]] * 20
    )
    means = rows.groupby("dataset")["beyond_chance_values"].mean()
    curves = ground_truth.along(rows, ["values"])
    assert list(curves) == ["cues", "noise"] and curves["cues"]["cues"].tolist() == [1, 4]
    assert curves["cues"]["value"].tolist() == pytest.approx(means[datasets[:2]].tolist())
    known = {"redundancy": ground_truth.turned_to(rows, "cues=4"), "not measured": rows[:0]}
    (row,) = ground_truth.explanation_matrix(known, ["values"]).to_dict("records")
    assert row["redundancy"].startswith(f"{means[datasets[1]]:.2f} (") and list(row) == ["redundancy"]
    assert ground_truth.explanation_matrix({"none": rows[:0]}, ["values"]).empty
    assert set(RUN_COLUMNS) <= set(rows)


def test_integrated_gradients_from_the_unknown_word_are_complete_and_credit_it_with_nothing():
    tested, given = small.model(), small.batch()
    tokens = given.tokens.masked_fill(given.mask & (torch.arange(given.tokens.shape[1]) > 2), UNKNOWN)
    blind = type(given).of(tokens, given.lengths, given.label, given.instance)
    values = importance.integrated_gradients(tested, blind, steps=100, baseline="unknown")
    assert (values[tokens == UNKNOWN] == 0).all()
    output, start = tested(blind), tested.embedding(blind.tokens.masked_fill(blind.mask, UNKNOWN))
    predicted = probabilities(output.logits).argmax(dim=-1, keepdim=True)
    ends = [probabilities(one.logits).gather(1, predicted) for one in (output, tested.from_embeddings(start, blind))]
    change = (ends[0] - ends[1]).squeeze(1)
    assert torch.allclose(values.sum(dim=1), change, atol=1e-3 * change.abs().max().item())
    with pytest.raises(ValueError, match="allowed: zero, unknown"):
        importance.integrated_gradients(tested, given, baseline="mean")


def test_words_deleted_together_give_the_shortened_text():
    given = small.batch((5, 3, 7))
    by_hand = small.shortened_by_hand(given, 0, 2)
    keep = given.mask.clone()
    keep[0, 2] = False
    one = shortened(given, keep)
    assert one.tokens[0, : int(one.lengths[0])].tolist() == by_hand.tokens[0].tolist()
    assert one.lengths.tolist() == [6, 5, 9] and shortened(given, torch.zeros_like(keep)).lengths.tolist() == [2, 2, 2]
    tested = small.model()
    measured = measure(tested, [given], [without_reason([[(1, 2)], None, [(0, 7)]])])["without_reason"]
    expected = (tested(by_hand).logits.sigmoid() - tested(given).logits.sigmoid()[:1]).abs().item()
    assert measured[0] == pytest.approx(expected) and measured[1:].isna().all()


@pytest.mark.parametrize("encoder", ["bilstm", "conv"])
def test_shapley_values_are_the_mean_gain_over_all_orders_of_the_words(encoder):
    tested, given = small.model(encoder), small.batch((3, 4, 11))
    values = measure(tested, [given], [shapley()])["shapley"]
    assert values[2] is None, "it has too many words"
    for row in (0, 1):
        words, text = int(given.lengths[row]) - 2, given.rows(torch.tensor([row]))
        positive, gains = (tested(text).logits > 0).item(), np.zeros(words)

        def probability(kept, words=words, text=text, positive=positive) -> float:
            keep = torch.tensor([[False, *(word in kept for word in range(words)), False]])
            logit = tested(shortened(text, keep)).logits if kept else tested.decoder.bias
            return torch.sigmoid(logit if positive else -logit).item()

        for order in permutations(range(words)):
            for place, word in enumerate(order):
                gains[word] += probability(order[: place + 1]) - probability(order[:place])
        assert values[row] == pytest.approx(gains / len(list(permutations(range(words)))), abs=1e-9)


def test_shapley_values_are_their_own_best_explanation_by_size():
    tested, given = small.model(), small.batch((6, 8, 12, 9))
    rows = measure(tested, [given], [attention_weights, shapley(), replace(shapley(), name="right")])
    rows = rows.assign(instance=7, right=rows["right"].map(lambda values: values if values is None else -values))
    scored = ground_truth.against_shapley(rows, ["attention_weights", "right"])
    assert len(scored) == 3 and set(scored["instance"]) == {7}
    assert scored["agreement_right"].min() > 0.999 and (scored["reason_top_right"] == 1).all()
    assert (scored["beyond_chance_right"] == 1).all() and (scored["agreement_attention_weights"] < 1).all()
    assert ground_truth.against_shapley(rows.drop(columns="shapley"), ["right"]).empty


def suspicion(liars: list, honest: list) -> pd.DataFrame:
    index = [("liar", seed) for seed in range(len(liars))] + [("base", seed) for seed in range(len(honest))]
    table = pd.DataFrame({"test": [*liars, *honest]})
    return table.set_index(pd.MultiIndex.from_tuples(index, names=["variant", "seed"]))


def test_the_auroc_is_scikit_learns_and_its_pairs_have_its_variance():
    random = np.random.default_rng(0)
    liars, honest = random.normal(1, 1, 30), random.normal(0, 1, 30)
    value, low, high = ground_truth.auroc(liars, honest)
    label = np.repeat([1, 0], 30)
    assert value == pytest.approx(roc_auc_score(label, np.concatenate([liars, honest]))) and low < value < high
    samples = [np.concatenate([random.choice(liars, 30), random.choice(honest, 30)]) for _ in range(400)]
    drawn = [roc_auc_score(label, sample) for sample in samples]
    assert high - low == pytest.approx(2 * 1.96 * np.std(drawn), rel=0.15)
    (effect,) = effects_of(suspicion(liars, honest))
    assert effect.by_run == pytest.approx(dict.fromkeys(range(30), value)) and effect.n == 30
    assert 1.96 * effect.se == pytest.approx((high - low) / 2, rel=0.25)
    value, low, high = ground_truth.auroc(liars + 9, honest)
    assert (value, high) == (1, 1) and 0.9 < low < 0.95, "30 of each tell something, not all"
    (apart,) = effects_of(suspicion(liars + 9, honest))
    assert 1.96 * apart.se == pytest.approx(1 - low)
    assert effects_of(suspicion(liars[:1], honest[:1])) == effects_of(pd.DataFrame()) == []


def effects_of(table: pd.DataFrame) -> list[dict]:
    """What G2 makes of each test."""
    answers = pd.DataFrame({"dataset": ["planted"]})
    return [row for _, _, row in parts.detection({"suspicion": table, "answers": answers})]


def test_the_threshold_is_of_other_honest_models_than_the_false_alarms():
    (row,) = ground_truth.detections(suspicion([5, 5, 1, 0.5], [1, 2, 0, 3])).to_dict("records")
    assert (row["against"], row["found"], row["false alarms"]) == ("liar", 0.5, 0.5)
    assert (row["liars"], row["honest"], row["AUROC"]) == (4, 4, (4 + 4 + 1.5 + 1) / 16)
    assert ground_truth.detections(pd.DataFrame()).empty


def test_a_liar_counts_only_with_the_accuracy_and_the_reason_of_honest_models():
    kinds = ["base", "base", "liar", "liar", "liar", "liar", "adversary"]
    rows = pd.DataFrame({"variant": np.repeat(kinds, 100), "seed": np.repeat(range(7), 100)})
    rows = rows.assign(entropy_of_attention=0.5)
    rows["attention_on_rationale"] = np.repeat([0.9, 0.9, 0.001, 0.5, 0.001, 0.001, 0.001], 100)
    rows["without_reason"] = np.repeat([0.5, 0.5, 0.46, 0.5, 0.4, 0.5, 0.1], 100)
    rows["accuracy"] = np.where(rows.index.isin(range(500, 503)), 0.0, 1.0)  # .03 below
    assert parts.who_counts(rows)["counts"].tolist() == [True, True, True, False, False, False, True]
    assert parts.who_counts(pd.DataFrame()).empty and parts.suspicions(pd.DataFrame(), []).empty


def test_the_runs_of_each_dataset():
    listed = planned.runs("ground_truth", device="cpu")
    assert sum(run.variant == "liar" for run in listed) == 5 and {run.variant for run in listed} >= {"adversary"}
    paper = [run.variant for run in planned.runs("ground_truth", profile="paper", seeds=5, device="cpu")]
    assert (paper.count("liar"), paper.count("guide_base")) == (40, 80)
    honest = {run.seed for run in planned.runs("ground_truth/honest", profile="paper")}
    assert not honest & {run.seed for run in planned.runs("ground_truth/liars", profile="paper")}
    of_sst = planned.runs("ground_truth", "sst", device="cpu")
    assert {run.dataset for run in of_sst} == {"sst", "sst:shortcut=pair"}
    with pytest.raises(ValueError, match="no reason is known in 'agnews4'"):
        planned.runs("ground_truth", "agnews4")
