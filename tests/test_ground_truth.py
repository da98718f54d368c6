"""Explanations against a known reason, liars, and the tests that should find them."""

from dataclasses import replace
from itertools import pairwise, permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import planned
import pytest
import small
import torch
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

import papers
from lib import importance
from lib.analysis import attention_weights, ground_truth, measure
from lib.analysis.token_values import average_precision
from lib.datasets.batches import batches
from lib.datasets.corpus import UNKNOWN
from lib.importance.rankings import RANKINGS
from lib.interventions import frame_effect, normalised_scores, shapley, shortened, without_reason
from lib.metrics.distances import probabilities
from lib.models import wired
from lib.quantity import declare
from lib.training import train
from lib.training.tasks import rationales
from papers import ground_truth as parts


def silent(message: str) -> None:
    pass


def test_the_reason_itself_scores_1_and_one_without_an_opinion_its_exact_chance():
    reason = np.array([False, True, False, True, True, False, False])
    assert ground_truth.hits(reason.astype(float), reason) == (1, 1, 2)
    assert average_precision(reason, reason.astype(float)) == 1
    top, recall, rank = ground_truth.hits(np.zeros(7), reason)
    assert (top, recall, rank) == pytest.approx((3 / 7, 3 / 7, 4))


def test_scores_with_ties_are_the_mean_over_their_orders():
    reason = np.array([True, False, True, False, False, True])
    values = np.array([2.0, 2.0, 1.0, 1.0, 1.0, 0.5])
    orders = [values + 0.1 * np.array(order) / 6 for order in permutations(range(6))]
    mean = np.mean([ground_truth.hits(order, reason) for order in orders], axis=0)
    assert ground_truth.hits(values, reason) == pytest.approx(mean)
    assert ground_truth.hits(orders[0], reason)[2] == rankdata(-orders[0])[reason].mean()


def test_every_explanation_is_scored_and_what_is_right_by_construction_is_best():
    split = small.split((6, 8, 12, 9))
    texts = [[(1, 2), (3, 4)] for _ in split.instances]
    tested, given = small.model(), small.batch((6, 8, 12, 9))
    quantities = parts.explanations(steps=4)
    columns = ground_truth.columns_of(quantities)
    instances = measure(tested, [given], quantities)
    right = [np.isin(np.arange(length), (1, 3)).astype(float) for length in instances["length"]]
    measures = {name: name for name in (*columns, "right", "none")}
    instances = instances.assign(right=right, none=[0 * values for values in right])
    found = ground_truth.beyond_chance(ground_truth.against_reason(instances, measures, texts), measures)
    assert {"leave_one_out_signed", "attention_times_norm", "integrated_gradients_unknown"} <= set(columns)
    for score in ("reason_top", "reason_recall", "rationale_average_precision", "beyond_chance"):
        assert (found[f"{score}_right"] == 1).all()
    assert found["reason_top_none"].tolist() == found["reason_top_chance"].tolist() == [2 / n for n in (6, 8, 12, 9)]
    assert found["reason_rank_none"].tolist() == found["reason_rank_chance"].tolist()


def test_only_texts_of_a_known_reason_that_are_answered_right_are_measured_and_erased():
    """The first text has no reason, the second is all reason; of the others the model must be right."""
    texts, spans = small.split((4, 2, 9, 6, 8, 12)), ((), ((0, 2),), ((1, 2),), ((0, 3),), ((5, 7),), ((2, 3),))
    instances = tuple(replace(one, rationale=of) for one, of in zip(texts.instances, spans, strict=True))
    texts, tested = replace(texts, instances=instances), small.model("average")
    one = SimpleNamespace(
        model=tested, run=None, corpus=SimpleNamespace(test=texts), batches=lambda split, size: batches(texts, 2)
    )
    all_texts = measure(tested, batches(texts, 6), [attention_weights, normalised_scores(RANKINGS)])
    right = (all_texts["label"] == all_texts["prediction"]).to_numpy()
    expected = [place for place in range(2, 6) if right[place]]
    assert 0 < len(expected) < 4
    found = ground_truth.explained([one], [attention_weights], erased=True).set_index("instance")
    assert sorted(found.index) == expected and (found["reason_top_chance"] < 1).all()
    theirs = all_texts.loc[expected, "normalised_attention_comprehensiveness"].to_numpy()
    ours = found.loc[expected, "normalised_attention_weights_comprehensiveness"].to_numpy()
    assert ours == pytest.approx(theirs, nan_ok=True) and np.isfinite(ours).any()


def test_what_people_marked_stands_beside_what_the_model_uses():
    random, models = np.random.default_rng(0), ("bilstm", "average")
    rows = pd.DataFrame({"encoder": [*models] * 20, "attention": "additive", "instance": np.arange(40) // 2, "seed": 0})
    rows = rows.assign(dataset="films", projection="softmax", variant="base", layers=1, left_out=[()] * 40)
    columns = [declare(f"{start}_{name}{end}", "fraction") for name in ("one", "other") for start, end in STARTS]
    rows = rows.assign(**{column: random.random(40) for column in columns})
    points = ground_truth.plausible_and_faithful(rows, ["one", "other"])
    mean = rows.loc[rows["encoder"] == "bilstm", "normalised_other_comprehensiveness"].mean()
    row = points[(points["explanation"] == "other") & (points["encoder"] == "bilstm")].squeeze()
    assert len(points) == 4 and row["faithful"] == pytest.approx(mean)
    assert row["faithful_low"] < mean < row["faithful_high"]


STARTS = (("reason_recall", ""), ("normalised", "_comprehensiveness"))


@pytest.mark.parametrize("encoder", ["bilstm", "average"])
@pytest.mark.parametrize("baseline", ["zero", "unknown"])
def test_integrated_gradients_are_complete_from_either_baseline(encoder, baseline):
    tested, given = small.model(encoder), small.batch()
    found = importance.integrated_gradients(tested, given, steps=100, baseline=baseline)
    output = tested(given)
    tokens = given.tokens.masked_fill(given.mask, UNKNOWN)
    start = (
        tested.embedding(tokens) if baseline == "unknown" else output.embeddings.masked_fill(given.mask[..., None], 0)
    )
    predicted = probabilities(output.logits).argmax(dim=-1, keepdim=True)
    ends = [probabilities(one.logits).gather(1, predicted) for one in (output, tested.from_embeddings(start, given))]
    change = (ends[0] - ends[1]).squeeze(1)
    assert torch.allclose(found.sum(dim=1), change, atol=1e-3 * change.abs().max().item())
    of_baseline = importance.change_from_baseline(tested, given, baseline)
    assert torch.allclose(of_baseline, change.double(), atol=1e-12)
    explained = {name: [values.numpy() for values in found] for name in ground_truth.CHANGES}
    both = pd.DataFrame(explained | {change: of_baseline.numpy() for change, _ in ground_truth.CHANGES.values()})
    for added, complete in ((0, 1), (2 * ground_truth.COMPLETE, 0)):
        rows = ground_truth.with_completeness(both.assign(change_from_zero=both["change_from_zero"] + added))
        assert (rows["complete_integrated_gradients"] == complete).all()
        assert (rows["complete_integrated_gradients_unknown"] == 1).all()
    known = given.tokens.masked_fill(given.mask & (torch.arange(given.tokens.shape[1]) > 2), UNKNOWN)
    blind = type(given).of(known, given.lengths, given.label, given.instance)
    credited = importance.integrated_gradients(tested, blind, steps=4, baseline="unknown")
    assert (credited[known == UNKNOWN] == 0).all()
    with pytest.raises(ValueError, match="allowed: zero, unknown"):
        importance.integrated_gradients(tested, given, baseline="mean")


def test_words_deleted_together_give_the_shortened_text():
    given = small.batch((5, 3, 7))
    by_hand = small.shortened_by_hand(given, 0, 2)
    keep = given.mask.clone()
    keep[0, 2] = False
    one = shortened(given, keep)
    assert one.tokens[0, : int(one.lengths[0])].tolist() == by_hand.tokens[0].tolist() and one.lengths.tolist() == [
        6,
        5,
        9,
    ]
    assert shortened(given, torch.zeros_like(keep)).lengths.tolist() == [2, 2, 2]
    tested = small.model()
    measured = measure(tested, [given], [without_reason([[(1, 2)], None, [(0, 7)]])])["without_reason"]
    expected = (tested(by_hand).logits.sigmoid() - tested(given).logits.sigmoid()[:1]).abs().item()
    assert measured[0] == pytest.approx(expected) and measured[1:].isna().all()


def test_a_frame_is_drawn_for_each_text_alone_and_none_without_a_known_word():
    given, tested = small.batch((5, 3, 7)), small.model()
    tokens = given.tokens.masked_fill(given.mask & (torch.arange(given.tokens.shape[1]) != 2), UNKNOWN)
    tokens[1, given.mask[1]] = UNKNOWN
    blind = type(given).of(tokens, given.lengths, given.label, given.instance)
    together = measure(tested, [blind], [frame_effect()])["frame"]
    assert together[0] > 0 and np.isnan(together[1])
    assert measure(tested, [blind.rows(torch.tensor([2]))], [frame_effect()])["frame"][0] == pytest.approx(together[2])
    assert measure(tested, [blind], [frame_effect(seed=1)])["frame"][0] != together[0]


def test_a_liar_keeps_its_accuracy_and_moves_its_attention(tmp_path, monkeypatch):
    monkeypatch.setenv("CACHE_HOME", str(tmp_path))
    settings = papers.PAPERS["ground_truth"].settings(device="cpu")
    run = parts.honest(settings)[0]
    accuracy, masses = {}, {}
    for one in (run, parts.lying(run, settings.strength)):
        trained = train(one, say=silent)
        reasons = rationales(trained.corpus.test)
        masses[one.variant] = np.concatenate(
            [
                (trained.model(batch).attention.detach() * reasons.look_up(batch)).sum(dim=1)
                for batch in trained.batches("test")
            ]
        )
        accuracy[one.variant] = parts.evaluate(trained.model, trained.batches("test"))["accuracy"]
    assert accuracy["base"] > 0.95 and accuracy["liar"] > accuracy["base"] - 0.03
    assert masses["liar"].mean() < 0.01 < 0.5 < masses["base"].mean()


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
    drawn = [
        roc_auc_score(label, np.concatenate([random.choice(liars, 30), random.choice(honest, 30)])) for _ in range(400)
    ]
    assert high - low == pytest.approx(2 * 1.96 * np.std(drawn), rel=0.15)
    (effect,) = effects_of(suspicion(liars, honest))
    assert effect["of_seeds"] == pytest.approx(dict.fromkeys(range(30), value)) and effect["n"] == 30
    assert 1.96 * effect["se"] == pytest.approx((high - low) / 2, rel=0.25)
    value, low, high = ground_truth.auroc(liars + 9, honest)
    assert (value, high) == (1, 1) and 0.9 < low < 0.95, "30 of each tell something, not all"
    (apart,) = effects_of(suspicion(liars + 9, honest))
    assert 1.96 * apart["se"] == pytest.approx(1 - low)
    assert effects_of(suspicion(liars[:1], honest[:1])) == []


def effects_of(table: pd.DataFrame) -> list[dict]:
    """What G2 makes of each test."""
    answers = pd.DataFrame({"dataset": ["planted"]})
    return [row for _, _, row in parts.detection({"suspicion": table, "answers": answers})]


def test_the_threshold_is_of_other_honest_models_than_the_false_alarms():
    table = suspicion([5, 5, 1, 0.5], [1, 2, 0, 3])
    found = ground_truth.detection(table, pd.Series(True, index=table.index)).iloc[0]
    assert (found["liar_found"], found["liar_n"], found["base_found"], found["base_n"]) == (0.5, 4, 0.5, 2)
    counts = pd.Series([True, False, False, True, True, True, True, True], index=table.index)
    assert ground_truth.detection(table, counts).iloc[0]["liar_n"] == 2
    shown = ground_truth.test_matrix(ground_truth.detection(table, counts))
    assert shown["adversaries found"].tolist() == ["–"] and shown["liars found"].tolist() == ["0.50 (0.03 to 0.97)"]
    assert "AUROC, liar" in ground_truth.test_matrix(ground_truth.detection(table, counts), areas=True)


def test_the_runs_of_each_dataset():
    listed = planned.runs("ground_truth", device="cpu")
    assert sum(run.variant == "liar" for run in listed) == 6 and {run.variant for run in listed} >= {"adversary"}
    paper = planned.runs("ground_truth", profile="paper", seeds=5, device="cpu")
    assert sum(run.variant == "liar" for run in paper) == 43 and sum(run.variant == "guide_base" for run in paper) == 80
    honest = {run.seed for run in planned.runs("ground_truth/honest", profile="paper")}
    assert not honest & {run.seed for run in planned.runs("ground_truth/liars", profile="paper")}
    of_sst = planned.runs("ground_truth", "sst", device="cpu")
    assert {run.dataset for run in of_sst} == {"sst", "sst:shortcut=pair"}
    assert {run.dataset for run in planned.runs("ground_truth", "agnews4")} == {"agnews4"}


def truth_of(kind: str, words: list[str]) -> float:
    """What a wired model answers, from its rule."""
    cues = [word for word in words if word in wired.CUES]
    if kind == "average":
        return 8 * sum({"good": 1, "bad": -1}[word] for word in cues) / len(words)
    if kind == "conv":
        return 3 if ("good", "bad") in pairwise(words) else -3
    return 0 if not cues else {"good": 4, "bad": -4}[cues[0]] * np.tanh(1)


@pytest.mark.parametrize("kind", wired.SIZES)
def test_wired_models_follow_their_rule_and_their_shapley_values_are_those_of_all_orders(kind):
    split, tested = wired.texts(30, longest=6), wired.wired(kind)
    given = next(batches(split, len(split)))
    logits = tested(given).logits[:, 0]
    for row, text in enumerate(given.instance.tolist()):
        assert logits[row].item() == pytest.approx(truth_of(kind, list(split.instances[text].tokens)), abs=1e-3)
    found = measure(tested, [given], [shapley("deleted")])["shapley_deleted"]
    for text in (0, 1):
        words = list(split.instances[text].tokens)
        sign, marginal = np.sign(truth_of(kind, words)) or -1, np.zeros(len(words))
        empty = 1 / (1 + np.exp(-sign * (-3 if kind == "conv" else 0)))
        orders = list(permutations(range(len(words))))
        for order in orders:
            before, kept = empty, []
            for place in order:
                kept = sorted([*kept, place])
                after = 1 / (1 + np.exp(-sign * truth_of(kind, [words[one] for one in kept])))
                marginal[place] += after - before
                before = after
        assert found[text] == pytest.approx(marginal / len(orders), abs=1e-3)


def test_shapley_values_are_their_own_best_explanation():
    table = ground_truth.against_shapley([replace(shapley("deleted"), name="right"), parts.attention_weights])
    own = table[table["dataset"] == "wired: deleted"]
    assert own["agreement_right"].min() > 0.999 and (own["reason_top_right"] == 1).all()
    assert (own["beyond_chance_attention_weights"] <= 1).all() and set(own["encoder"]) == set(wired.SIZES)
