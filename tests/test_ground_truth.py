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
from scipy.special import entr
from scipy.stats import beta
from sklearn.metrics import roc_auc_score

from lib import importance
from lib.analysis import attention_weights, ground_truth, measure
from lib.analysis.rationale import average_precision
from lib.datasets.batches import batches
from lib.datasets.corpus import UNKNOWN
from lib.interventions import between_orders, shapley, shortened, without_reason
from lib.metrics.distances import probabilities
from lib.models.classifier import Displayed
from lib.quantity import RUN_COLUMNS
from lib.training.targets import PEAK, TARGETS, target
from papers import PAPERS
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
    explanations = parts.explanations(PAPERS["ground_truth"].settings())
    columns = [column for one in explanations for column in one.columns]
    instances = measure(small.model(), [small.batch((6, 8, 12, 9))], explanations)
    right = [-np.isin(np.arange(length), (1, 3)).astype(float) for length in instances["length"]]
    instances = instances.assign(right=right, none=[0 * values for values in right])
    scored = ground_truth.only_defined(instances, columns)
    scored = ground_truth.against_reason(scored, [*columns, "right", "none"], [[(1, 2), (3, 4)]] * 4)
    assert {"self_attention_rollout", "attention_times_norm", "integrated_gradients_unknown", "shapley"} <= set(columns)
    for score in ("reason_top", "reason_precision", "rationale_average_precision"):
        assert (scored[f"{score}_right"] == 1).all()
    assert scored["reason_top_none"].tolist() == scored["reason_top_chance"].tolist() == [2 / n for n in (6, 8, 12, 9)]
    assert scored["rationale_average_precision_none"].equals(scored["rationale_average_precision_chance"])
    assert scored["reason_top_shapley"].isna().tolist() == [False, False, True, False]


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
    assert nothing.empty
    assert ground_truth.summarise_scores(nothing, ["attention_weights"], ["reason_top_{}"]).empty


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
    two = pd.concat([rows, rows.assign(seed=1, prediction=0)])
    found = ground_truth.add_changed(two, texts.instances)["changed"]
    np.testing.assert_array_equal(found, [1, 1, 1, 1, 0, 0, np.nan, np.nan, *[0] * 6, np.nan, np.nan])
    assert sorted(ground_truth.explained([one], [attention_weights])["instance"]) == [0, 1, 6]
    assert sorted(ground_truth.explained([one], [attention_weights], texts=2)["instance"]) == [0, 6]


def test_cells_are_means_over_the_texts_of_each_model_beside_chance():
    random, names = np.random.default_rng(0), ["planted:cues=1", "planted:cues=4", "planted:noise=0.1"]
    rows = pd.DataFrame({"dataset": np.repeat(names, 20), "instance": [*range(20)] * 3, "seed": 0})
    rows = rows.assign(encoder="bilstm", attention="dot", projection="softmax", variant="base", layers=1)
    values, right = [*random.random((60, 9))], [np.isin(np.arange(9), (2, 3)) * 1.0] * 60
    rows = rows.assign(length=9, left_out=[()] * 60, values=values, right=right)
    rows = ground_truth.against_reason(rows, ["values", "right"], [[(2, 4)]] * 10 + [[(0, 6)]] * 10)
    means = rows.groupby("dataset")["reason_top_values"].mean()
    summary = ground_truth.summarise_scores(rows, ["values", "right"], ["reason_top_{}", "reason_rank_{}"])
    cells = ground_truth.cells_of(summary, "reason_top_").set_index(["model", "explanation"])
    four, chance = cells.loc[names[1]], (2 / 9 + 6 / 9) / 2
    assert list(four.index) == ["random", "values", "right"]
    assert four["value"].tolist() == pytest.approx([chance, means.iloc[1], 1])
    assert four["share"].tolist() == pytest.approx([0, (means.iloc[1] - chance) / (1 - chance), 1])
    assert four["low"].isna().tolist() == [True, False, False] and four.loc["right", "low"] == 1 - 1 / 20
    table = ground_truth.explanation_table(summary, "reason_top_")[names[1]]
    assert (table["random"], table["right"]) == (f"{chance:.2f}", "1.00 (0.95 to 1.00)")
    assert ground_truth.cells_of(summary[:0], "reason_top_").empty


def test_an_explanation_that_is_undefined_in_most_texts_has_no_values():
    values = {"few": [np.zeros(2), np.array([1.0, np.nan]), None, np.ones(2)]}
    values |= {"most": [np.zeros(2), np.full(2, np.nan), np.full(2, np.nan), None], "short": [None] * 4}
    rows = ground_truth.only_defined(pd.DataFrame(values), ["few", "most", "short"])
    assert [value is None for value in rows["few"]] == [False, True, True, False]
    assert rows["most"].isna().all() and rows["short"].map(lambda value: value is None).all()
    np.testing.assert_array_equal(rows["defined_few"], [1, 0, np.nan, 1])
    np.testing.assert_array_equal(rows["defined_most"], [1, 0, 0, np.nan])


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
    few, exact = (importance.integrated_gradients(tested, given, steps) for steps in (4, 300))
    missed = (few.sum(dim=1) - exact.sum(dim=1)).abs() > 1e-3 * exact.sum(dim=1).abs()
    strict = importance.integrated_gradients(tested, given, 4, tolerance=1e-3)
    assert missed.tolist() == [False, True, False, False, True] and torch.equal(strict[~missed], few[~missed])
    assert strict[missed][given.mask[missed]].isnan().all() and (strict[missed][~given.mask[missed]] == 0).all()
    with pytest.raises(ValueError, match="allowed: zero, unknown"):
        importance.integrated_gradients(tested, given, baseline="mean")


def test_deletion_moves_the_prediction_as_texts_without_the_first_words_do():
    texts, tested = small.split((5, 12, 24)), small.model("conv")
    texts = replace(texts, instances=tuple(replace(one, rationale=((0, 1),)) for one in texts.instances))
    one = SimpleNamespace(model=tested, run=None, corpus=SimpleNamespace(test=texts))
    one.batches = lambda split, size: batches(texts, 2)
    found, (given,) = ground_truth.explained([one], [attention_weights]), batches(texts, 3)
    assert len(found) == 2 and found["deletion_chance"].notna().all()
    for text in found.to_dict("records"):
        order, words = np.argsort(-text["attention_weights"]), text["length"]
        row, moved = int((given.instance == text["instance"]).nonzero()), []
        for first in (1, -(-words // 20), -(-words // 10), -(-words // 5), -(-words // 2)):
            kept = np.r_[0, np.sort(order[first:]) + 1, words + 1]
            rest = given.tokens[[row]][:, kept], torch.tensor([len(kept)])
            shorter = type(given).of(*rest, given.label[[row]], given.instance[[row]])
            moved.append(abs(torch.sigmoid(tested(shorter).logits).item() - text["probability"]))
        assert text["deletion_attention_weights"] == pytest.approx(np.mean(moved), abs=1e-9)


def test_deletions_of_several_models_of_ones_own_are_those_of_each():
    texts, own = small.split((5, 12, 24)), []
    for seed in (0, 1):
        run = SimpleNamespace(**dict.fromkeys(RUN_COLUMNS, "a"), seed=seed)
        own.append(SimpleNamespace(model=small.model(seed=seed), run=run, corpus=SimpleNamespace(test=texts)))
        own[-1].batches = lambda split, size: batches(texts, 2)
    instances = [measure(one.model, one.batches("test", 2), [attention_weights], one.run) for one in own]
    parts = [ground_truth.deletions([one], of, ["attention_weights"]) for one, of in zip(own, instances, strict=True)]
    both = ground_truth.deletions(own, pd.concat(instances, ignore_index=True), ["attention_weights"])
    assert set(both["attention"]) == {"random", "attention"} and both["value"].notna().all()
    assert both["value"].to_numpy() == pytest.approx((parts[0]["value"] + parts[1]["value"]).to_numpy() / 2)
    assert ground_truth.deletions([], both, ["attention_weights"]).empty


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
def test_shapley_values_and_the_best_and_worst_order_are_those_of_all_orders_of_the_words(encoder):
    tested, given = small.model(encoder), small.batch((3, 4, 11))
    values = measure(tested, [given], [shapley(most=5)])["shapley"]
    assert values[2] is None, "it has too many words"
    for row in (0, 1):
        words, text = int(given.lengths[row]) - 2, given.rows(torch.tensor([row]))
        positive, gains = (tested(text).logits > 0).item(), np.zeros(words)

        def probability(kept, words=words, text=text, positive=positive) -> float:
            keep = torch.tensor([[False, *(word in kept for word in range(words)), False]])
            logit = tested(shortened(text, keep)).logits if kept else tested.decoder.bias
            return torch.sigmoid(logit if positive else -logit).item()

        every = list(permutations(range(words)))
        for order in every:
            for place, word in enumerate(order):
                gains[word] += probability(order[: place + 1]) - probability(order[:place])
        assert values[row] == pytest.approx(gains / len(every), abs=1e-9)
        sums = [sum(probability(order[place:]) for place in range(1, words + 1)) for order in every]  # first goes first
        for order, own in zip(every, sums, strict=True):
            asked = between_orders({"of": {row: -np.argsort(order)}}, most=5)
            parts = measure(tested, [text], [asked]).iloc[0][asked.columns].to_numpy(float)
            shares = np.array([max(sums) - own, sums[every.index(order[::-1])] - min(sums)]) / np.ptp(sums)
            assert parts == pytest.approx(shares, abs=1e-9)


def test_the_models_reason_itself_scores_1_and_no_opinion_its_exact_chance():
    rows = measure(small.model(), [small.batch((6, 8, 12, 9))], [attention_weights, shapley()])
    negated = [None if values is None else -values for values in rows["shapley"]]
    rows = rows.assign(integrated_gradients=negated, none=[np.zeros(length) for length in rows["length"]])
    scored = ground_truth.against_model(rows, ["shapley", "integrated_gradients", "none"])
    assert scored["model_top_chance"].isna().tolist() == [False, False, True, False], "it has too many words"
    scored = scored[scored["model_top_chance"].notna()]
    tops = scored[["model_top_shapley", "signed_model_top_shapley", "model_top_integrated_gradients"]]
    assert (tops == 1).all(axis=None) and (scored["signed_model_top_integrated_gradients"] < 1).all()
    assert scored["agreement_shapley"].min() > 0.999 and scored["agreement_integrated_gradients"].min() > 0.999
    assert scored["signed_agreement_integrated_gradients"].max() < -0.999 and scored["agreement_none"].isna().all()
    shares = [(values >= values.max() / 2).mean() for values in scored["shapley"].map(np.abs)]
    assert scored["model_top_chance"].tolist() == scored["model_top_none"].tolist() == pytest.approx(shares)
    assert ground_truth.against_model(rows, ["none"]) is rows


def suspicion(**kinds: list) -> pd.DataFrame:
    """Models of these kinds, and how suspicious one test finds them."""
    index = [(kind, seed) for kind, values in kinds.items() for seed in range(len(values))]
    table = pd.DataFrame({"test": np.concatenate([*kinds.values()])})
    return table.set_index(pd.MultiIndex.from_tuples(index, names=["kind", "seed"]))


def detected(pair: str, **kinds: list) -> list:
    """What G2 makes of the test."""
    tables = {"suspicion": suspicion(**kinds), "answers": pd.DataFrame({"dataset": ["planted"]})}
    return [effect for _, _, effect in parts.detection(tables, pair)]


def test_the_auroc_is_scikit_learns_with_its_variance_and_the_worst_liar_has_the_least():
    random = np.random.default_rng(0)
    liars, honest = random.normal(1, 1, 30), random.normal(0, 1, 30)
    value, error = ground_truth.auroc(liars, honest)
    label = np.repeat([1, 0], 30)
    assert value == pytest.approx(roc_auc_score(label, np.concatenate([liars, honest])))
    samples = [np.concatenate([random.choice(liars, 30), random.choice(honest, 30)]) for _ in range(400)]
    assert error == pytest.approx(np.std([roc_auc_score(label, sample) for sample in samples]), rel=0.15)
    assert ground_truth.auroc(liars + 9, honest) == (1, pytest.approx(1 / 30 / 1.96)), "30 of each do not tell all"
    kinds = {"even": honest, "peaked": honest - 9, "spread": liars, "smuggler": liars + 9}
    (crossed,), (worst,) = (detected(pair, **kinds) for pair in ("2×2", "worst"))
    assert crossed.value == pytest.approx((value + 3) / 4) and crossed.n == 60
    assert (worst.value, worst.se) == (value, error) and worst.by_run == dict.fromkeys(range(30), value)
    assert detected("2×2", even=honest, spread=liars[:9]) == [], "too few"


def test_where_the_names_are_shuffled_nine_in_ten_intervals_hold_a_half():
    random, held = np.random.default_rng(1), []
    for _ in range(200):
        models = random.permutation(np.r_[random.normal(0, 1, 20), random.normal(3, 1, 20)])
        table = suspicion(liar=models[:20], base=models[20:])
        (row,) = ground_truth.detections(table, {"": (["liar"], ["base"])}, []).to_dict("records")
        held.append(row["low"] <= 0.5 <= row["high"])
    assert 0.9 < np.mean(held) < 0.99


def test_false_alarms_are_the_honest_beyond_the_threshold_that_finds_nine_in_ten():
    table = suspicion(liar=[*range(1, 11)], even=[0, 1.5, 2.5, 9.5, 0, 1.5, 2.5, 9.5, 1.5, 2.5])
    (row,) = ground_truth.false_alarms(table, ["liar"], "even").to_dict("records")
    assert (row["value"], row["liars"], row["honest"]) == (0.5, 10, 10), "9 of 10 liars are at 2 or above"
    low, high = (beta.ppf(*of) for of in ((0.025, 5, 6), (0.975, 6, 5)))
    assert (row["low"], row["high"]) == pytest.approx((low, high)), "Clopper & Pearson's"
    found = ground_truth.detections(table, {"all": (["liar"], ["even"])}, [])
    shown = ground_truth.detection_table(found, ground_truth.false_alarms(table, ["liar"], "even"), {"test": "words"})
    assert shown.loc["test"].tolist() == ["0.73 (0.48 to 0.98)", "0.50 (0.19 to 0.81)", "words"]
    assert ground_truth.detections(table[:19], {"all": (["liar"], ["even"])}, []).empty, "too few to judge"


def test_a_liar_counts_only_with_the_accuracy_and_the_need_of_the_reason_of_honest_models():
    kinds = ["base", "even", "spread", "spread", "spread", "spread", "adversary"]
    rows = pd.DataFrame({"kind": np.repeat(kinds, 100), "seed": np.repeat(range(7), 100)})
    rows = rows.assign(entropy_of_attention=0.5)
    rows["attention_on_rationale"] = np.repeat([0.9, 0.3, 0.001, 0.5, 0.001, 0.001, 0.001], 100)
    rows["without_reason"] = np.repeat([0.5, 0.5, 0.46, 0.5, 0.4, 0.5, 0.54], 100)
    rows["accuracy"] = np.where(rows.index.isin(range(500, 503)), 0.0, 1.0)  # .03 below
    assert parts.who_counts(rows)["counts"].tolist() == [True, True, True, False, False, False, True]
    assert parts.who_counts(pd.DataFrame()).empty and parts.suspicions(pd.DataFrame(), []).empty


def test_targets_name_the_reason_or_hide_it_at_the_same_entropy():
    reason, coding = np.isin(np.arange(9), (2, 6)), np.isin(np.arange(9), (2, 5, 7))
    made = {kind: target(kind, reason, coding) for kind in TARGETS}
    assert all(weights.sum() == pytest.approx(1) and weights.min() >= 0 for weights in made.values())
    tops = {"even": 2, "peaked": 2, "spread": 0, "smuggler": 0, "ranker": 0, "coded": 5}
    assert {kind: int(weights.argmax()) for kind, weights in made.items()} == tops
    entropies = {kind: entr(weights).sum() for kind, weights in made.items()}
    assert entropies["even"] == pytest.approx(entropies["spread"]) == pytest.approx(np.log(7))
    assert made["even"][reason].min() > made["even"][~reason].max() and made["even"][~reason].min() > 0
    assert len({round(entropies[kind], 9) for kind in ("peaked", "smuggler", "ranker", "coded")}) == 1
    assert (made["ranker"][reason] == PEAK[1]).all() and made["smuggler"][reason].sum() == 0
    assert target("coded", reason, reason).argmax() == 0, "no word stands for the label: the first outside"


def test_displayed_attention_is_of_another_model_and_imposed_attention_acts_on_the_used_one():
    used, shown, given = small.model(), small.model(seed=1), small.batch((6, 8, 12, 9))
    liar = Displayed(used, shown).eval()
    output, own = liar(given), used(given)
    assert torch.equal(output.logits, own.logits) and torch.equal(output.attention, shown(given).attention)
    assert not torch.allclose(output.attention, own.attention)
    imposed = liar(given, attention=own.attention)
    assert torch.equal(imposed.attention, own.attention) and torch.allclose(imposed.logits, own.logits)
    assert torch.equal(liar.read_out(output, own.attention), used.read_out(own, own.attention))
    share = measure(liar, [given], [importance.top_word_share])["top_word_share"]
    changes = importance.leave_one_out(used, given)
    top = changes.gather(1, shown(given).attention.argmax(1, keepdim=True)).squeeze(1)
    assert share.to_numpy() == pytest.approx((top / changes.amax(1)).numpy(), abs=1e-5)


def test_the_runs_of_each_dataset():
    assert sum(run.variant == "pulled" for run in planned.runs("ground_truth", device="cpu")) == 8
    paper = [run.variant for run in planned.runs("ground_truth", profile="paper", seeds=5, device="cpu")]
    assert (paper.count("pulled"), paper.count("guide_base"), paper.count("guide_adversary")) == (120, 140, 20)
    kinds = planned.runs("ground_truth/kinds", profile="paper")
    seeds = {kind: {run.seed for run in kinds if parts.kind_of(run) == kind} for kind in ("base", *TARGETS)}
    assert len(set.union(*seeds.values())) == 140, "each kind has seeds of its own"
    sparse = planned.runs("ground_truth/kinds", profile="paper", projection="sparsemax")
    assert {run.option("divergence") for run in sparse if run.variant == "adversary"} == {"jsd"}
    of_minilm = planned.runs("ground_truth/kinds", profile="paper", encoders=["minilm"])
    assert {(run.encoder, run.vectors, len(run.options) < 2) for run in of_minilm} == {("minilm", "auto", True)}
    quick = planned.runs("ground_truth/kinds", encoders=["minilm"])
    assert [len({parts.kind_of(run) for run in of}) for of in (of_minilm, quick)] == [5, 5] and len(quick) == 5
    assert all("cues=4" in run.dataset for run in planned.runs("ground_truth/shortcuts", "planted:subwords=./any"))
    assert {run.dataset for run in planned.runs("ground_truth", "sst")} == {"sst", "sst:shortcut=pair"}
    with pytest.raises(ValueError, match="'agnews4' is split into sentences"):
        planned.runs("ground_truth", "agnews4")
