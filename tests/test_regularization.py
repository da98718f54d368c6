"""Tutek & Snajder's models: what holds hidden states to their words, in training and by hand."""

from dataclasses import replace
from functools import partial
from itertools import permutations, product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import planned
import pytest
import small
import torch
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, f1_score, mutual_info_score
from torch.nn import functional

from lib.analysis import add_average_precision, classification
from lib.analysis import information as information_of_runs
from lib.analysis.dev import every_weight, weigh
from lib.analysis.rationale import average_precision
from lib.analysis.summaries import FRAGILITY, add_sureness, beside_base, rank_correlation
from lib.analysis.word_states import information_difference, jackknife_error, summary, without_parts, word_states
from lib.datasets.batches import collate
from lib.datasets.corpus import SPECIALS
from lib.interventions import permuted, substituted, token_probabilities, token_probability_mean
from lib.metrics import mutual_information as information
from lib.metrics import probabilities
from lib.models import AttentionClassifier
from lib.quantity import Quantity
from lib.training import Run, select, train
from lib.training.fitting import evaluate
from lib.training.runs import REGULARIZED
from lib.training.tasks import MaskedLanguageModel, Tying, masked
from lib.training.vectors import word_table
from papers import PAPERS
from papers.regularization import imitation, measure_imitations, variants
from papers.results import recipe_text

pytestmark = pytest.mark.usefixtures("one_cache")
BASE = Run("planted", vectors="random", recipe="tutek2020", options=(("embedding_size", 16), ("epochs", 2)))


def variant(name: str, **options) -> Run:
    return replace(BASE, variant=name, options=(*BASE.options, *options.items()))


def test_residual_is_base_plus_embedding_and_concat_is_both_side_by_side():
    torch.manual_seed(0)
    base, batch = AttentionClassifier(torch.randn(34, 12), hidden_size=12).double().eval(), small.batch()
    hidden, embedded = base(batch).hidden, base.embedding(batch.tokens)
    expected = {"residual": hidden + embedded, "concat": torch.cat([hidden, embedded], dim=-1)}
    for retention, states in expected.items():
        table = base.embedding.weight.detach().clone()
        model = AttentionClassifier(table, retention=retention, hidden_size=12).double().eval()
        model.encoder.encoder.load_state_dict(base.encoder.state_dict())
        output = model(batch)
        assert torch.equal(output.hidden, states)
        weights = torch.softmax(model.attention(states).masked_fill(~batch.mask, -torch.inf), dim=-1)
        torch.testing.assert_close(output.attention, weights)


def test_masked_words_come_at_the_stated_rates_and_are_never_special():
    torch.manual_seed(0)
    words = 5000
    tokens = torch.randint(len(SPECIALS), words, (400, 500))
    tokens[:, 100:150], tokens[:, 400:] = 1, 0  # unknown words, padding
    mask = tokens != 0
    mask[:, 0] = False  # start
    hidden, chosen = masked(tokens, mask, words, 0.15)
    allowed = mask & (tokens >= len(SPECIALS))
    assert not chosen[~allowed].any() and torch.equal(hidden[~chosen], tokens[~chosen])
    assert chosen[allowed].double().mean() == pytest.approx(0.15, abs=0.003)  # sd .001
    among, same = hidden[chosen], hidden[chosen] == tokens[chosen]
    assert (among == words).double().mean() == pytest.approx(0.8, abs=0.012)
    assert same.double().mean() == pytest.approx(0.1, abs=0.009)
    others = among[(among != words) & ~same]
    assert others.min() >= len(SPECIALS) and others.max() < words
    assert others.double().mean() == pytest.approx((words + len(SPECIALS)) / 2, rel=0.03)  # any word


def test_losses_of_words_are_what_their_formulas_say_and_are_added_to_the_labels():
    batch, labels = small.batch(), small.batch().label
    torch.manual_seed(0)
    model = AttentionClassifier(torch.randn(35, 8), hidden_size=8).double().eval()  # a row more: the mask
    plain, tied = (Tying(labels, 1, delta=delta).losses(model, batch) for delta in (0, 3.0))
    output = model(batch)
    apart = [(output.hidden[i, t] - output.embeddings[i, t]).square().sum() for i, t in batch.mask.nonzero().tolist()]
    torch.testing.assert_close(tied["loss"], plain["loss"] + 3 * len(batch) * torch.stack(apart).mean())
    torch.manual_seed(4)
    found = MaskedLanguageModel(labels, 1, words=34, eta=2.0, share=0.5).losses(model, batch)
    torch.testing.assert_close(found["prediction"], plain["prediction"])  # of the words as they are
    torch.testing.assert_close(found["loss"], found["prediction"] + 2 * found["mlm"])
    torch.manual_seed(4)
    tokens, chosen = masked(batch.tokens, batch.mask, 34, 0.5)
    logits = model(replace(batch, tokens=tokens)).hidden[chosen] @ model.embedding.weight[4:34].T
    expected = functional.cross_entropy(logits, batch.tokens[chosen] - 4, reduction="sum")
    assert chosen.any()
    torch.testing.assert_close(found["mlm"], expected)


def test_frozen_embeddings_stay_as_they_were_and_no_text_reads_the_masks_row():
    runs = {"frozen": variant("frozen"), "mlm": variant("mlm", embeddings="frozen", eta=0.3), "base": variant("base")}
    models = {name: train(run) for name, run in runs.items()}
    for name, model in models.items():
        assert torch.equal(model.model.embedding.weight, word_table(model.run, model.vectors)) == (name != "base"), name
    words = len(models["mlm"].corpus.vocabulary)
    assert len(models["mlm"].model.embedding.weight) == words + 1
    assert max(int(batch.tokens.max()) for batch in models["mlm"].batches("test")) < words
    assert {"train_prediction", "train_mlm", "dev_attention_entropy"} <= set(models["mlm"].history[0])


def test_an_adversary_is_built_as_the_variant_it_imitates_and_has_no_objective_of_its_own():
    trained = train(imitation(variant("residual", embeddings="frozen"), 0.1, 1))
    assert type(trained.model.encoder).__name__ == "Residual" and not trained.model.embedding.weight.requires_grad
    assert set(trained.history[0]) >= {"train_tvd", "train_jsd"} and len(trained.history) == 1
    rows = measure_imitations([trained, trained])
    assert rows["variant"].eq("residual").all() and len(rows) == 2 * len(trained.corpus.test)
    assert "delta" not in dict(imitation(variant("tying", delta=5.0), 0.1, 1).options)


def test_the_paper_has_its_runs():
    runs = planned.runs("regularization", "sst", "paper", device="cpu", delta=20.0, eta=0.3)
    assert {run.variant for run in runs} == {*REGULARIZED, "adversary"}
    first = [run for run in runs if run.layers == 1 and run.attention == "additive" and run.variant != "adversary"]
    assert {run.option("delta") for run in first if run.variant == "tying"} == {20.0}, "a weight that is given"
    assert {run.freezes_embeddings for run in first if run.variant == "tying"} == {True, False}, "one is a control"
    imitating = [run for run in runs if run.variant == "adversary"]
    assert {(run.base.variant, run.base.seed) for run in imitating} == {*product(("base", "mlm"), (0, 1, 2))}
    few = planned.runs("regularization", "sst", "paper", delta=20.0, eta=0.3, epochs=8)
    assert {run.epochs for run in few if run.variant != "adversary"} == {8}, "of every variant, not of adversaries"
    assert {run.epochs for run in few if run.variant == "adversary"} == {run.epochs for run in imitating} != {8}
    of_minilm = planned.runs("regularization", "sst", "paper", encoder="minilm")
    assert {(run.layers, run.epochs) for run in of_minilm if run.variant != "adversary"} == {(1, 3)}
    without = planned.runs("regularization", "sst", "paper", encoder="conv")
    assert {run.layers for run in without} == {1}, "the encoder has no layers"
    starts = planned.runs("regularization/dot_initialisation", "sst", "paper", encoder="minilm")
    assert {run.option("query_init") for run in starts} == {"normal", "default"}


@pytest.mark.parametrize("outputs", [1, 3])
def test_tokens_of_one_alone_are_read_as_the_text_itself_and_sum_to_its_logit(outputs):
    model, batch = small.model(outputs=outputs), small.batch()
    output = model(batch)
    each, own = token_probabilities(model, batch, output), probabilities(output.logits)
    for row, position in batch.mask.nonzero().tolist():
        alone = torch.zeros_like(output.attention)
        alone[row, position] = 1
        probability = probabilities(model(batch, alone).logits)[row, own[row].argmax()]
        assert each[row, position] == pytest.approx(float(probability.detach()))
    assert (each[~batch.mask] == 0).all()
    torch.testing.assert_close(token_probability_mean(model, batch, output)[1], each[1, batch.mask[1]].mean())
    torch.testing.assert_close(token_probabilities(small.NotAffine(model), batch, output), each)
    if outputs == 1:
        signs = torch.where(own.argmax(dim=-1) == 1, 1.0, -1.0)
        logits = torch.logit(each.masked_fill(~batch.mask, 0.5)) * signs[:, None]
        torch.testing.assert_close((output.attention * logits).sum(dim=-1), output.logits[:, 0])


def test_substituted_attention_gives_the_classes_of_a_model_that_has_it():
    model, batch = small.model(outputs=3), small.batch((1, 2, 5, 9))
    output = model(batch)
    classes = substituted(draws=20, seed=3)(model, batch, output)
    equal = batch.mask / batch.mask.sum(dim=-1, keepdim=True)
    assert torch.equal(classes["uniform"], probabilities(model(batch, equal.double()).logits).argmax(dim=-1))
    logits = permuted(model, output, 20, 3, batch.instance)
    assert torch.equal(classes["permuted"].long(), probabilities(logits).argmax(dim=-1))


def answers(texts: int = 200, seeds: int = 2, draws: int = 6, classes: int = 2) -> pd.DataFrame:
    """A table as `measure` gives it, of made-up answers: trained right in 90%, uniform 80%, permuted 60%."""
    random = np.random.default_rng(0)
    label = random.integers(0, classes, texts)

    def right_in(share: float, *shape: int) -> np.ndarray:
        own = label.reshape(-1, *(1 for _ in shape))
        return np.where(random.random((texts, *shape)) < share, own, random.integers(0, classes, (texts, *shape)))

    run = {"dataset": "d", "encoder": "bilstm", "attention": "additive", "projection": "softmax", "variant": "base"}
    parts = []
    for seed in range(seeds):
        rows = pd.DataFrame({"instance": range(texts), "length": 5, "label": label, "probability": 0.5})
        rows = rows.assign(**run, layers=1, seed=seed, left_out=[()] * texts, prediction=right_in(0.9))
        parts.append(rows.assign(under_uniform=right_in(0.8).astype(float), under_permuted=[*right_in(0.6, draws)]))
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("classes", [2, 3])
def test_fragility_is_what_scikit_learn_says_of_every_order(classes):
    frame = answers(classes=classes)
    f1 = partial(f1_score, average="binary" if classes == 2 else "macro")
    values = []
    for _, rows in frame.groupby("seed"):
        own, uniform = (f1(rows["label"], rows[name]) for name in ("prediction", "under_uniform"))
        shuffled = np.mean([f1(rows["label"], order) for order in np.stack(rows["under_permuted"].to_list()).T])
        values.append((own, uniform, shuffled, uniform - own, shuffled - own))
    measured = classification(frame, FRAGILITY).set_index("quantity")
    assert measured.loc[list(FRAGILITY), "value"].tolist() == pytest.approx(np.mean(values, axis=0))


def test_mutual_information_has_its_closed_forms():
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 50)
    random.shuffle(labels)
    same, null = information.mutual_information(labels, labels)
    assert same == pytest.approx(np.log(8)) and null < 0.1
    found, null = information.mutual_information(*(random.integers(0, 10, 20_000) for _ in range(2)))
    assert found == pytest.approx(81 / 40_000, rel=0.5)  # (cells - rows - columns + 1) / 2n
    assert null == pytest.approx(found, rel=0.5)


def test_samples_of_words_follow_their_counts():
    counts = np.array([0, 5, 0, 100, 20, 20, 1])
    assert [information.frequent_words(counts, number).tolist() for number in (3, 100)] == [[3, 4, 5], [3, 4, 5, 1, 6]]
    single = np.concatenate([information.random_words(np.array([1, 16]), 1, seed) for seed in range(2000)])
    assert single.mean() == pytest.approx(8 / 9, abs=0.02)  # 16 ** .75 = 8 times as likely
    drawn = [information.random_words(np.ones(1000), 300, seed).tolist() for seed in (0, 0, 1)]
    assert len(set(drawn[0])) == 300 and drawn[0] == drawn[1] != drawn[2]


def test_states_of_words_are_those_of_their_occurrences(monkeypatch):
    trained = train(variant("frozen"))
    split, words = trained.corpus.dev, np.array([10, 11, 25])
    embedded, hidden, texts = word_states(trained, split, words)
    ids, offsets = split.encoded
    where = np.flatnonzero(np.isin(ids, words))
    assert len(embedded) == len(hidden) == len(where) > 10
    assert np.array_equal(embedded, trained.model.embedding.weight.detach().numpy()[ids[where]])
    assert np.array_equal(texts, np.searchsorted(offsets, where, side="right") - 1)
    with torch.no_grad():
        output = trained.model(collate(split, texts[:1]))
    assert np.allclose(hidden[0], output.hidden[0, where[0] - offsets[texts[0]]], atol=1e-5)
    monkeypatch.setattr("lib.analysis.word_states.MOST", 5)
    fewer = word_states(trained, split, words)[0]
    assert len(fewer) == 5 and {row.tobytes() for row in fewer} <= {row.tobytes() for row in embedded}


def test_information_of_runs_is_at_equal_n_and_higher_where_the_word_is_added():
    runs = variant("base"), variant("residual", embeddings="frozen")
    rows = information_of_runs([train(run) for run in runs], words=30)
    assert rows["n"].groupby(rows["quantity"]).nunique().eq(1).all()
    effect = information_difference(rows, "mutual_information_most_frequent", ("residual", "base"))
    assert effect.value > 0 and effect.by_run == {0: effect.value}
    means = summary(rows).set_index(["variant", "quantity"])["value"]
    assert (means == rows.set_index(["variant", "quantity"])["plug_in"]).all()


def test_the_error_of_mutual_information_is_that_of_other_texts():
    random = np.random.default_rng(0)

    def drawn(texts: int = 400) -> tuple[np.ndarray, ...]:
        """Labels of 20 words in each text, the second like the first in a share that is the text's own."""
        first, share = random.integers(0, 4, (texts, 20)), random.random((texts, 1))
        second = np.where(random.random((texts, 20)) < share, first, random.integers(0, 4, (texts, 20)))
        return first.ravel(), second.ravel(), np.repeat(np.arange(texts), 20)

    first, second, texts = drawn()
    without, left = without_parts(first, second, texts % 50), texts % 50 != 49
    assert without[49] == pytest.approx(mutual_info_score(first[left], second[left]))
    others = np.std([mutual_info_score(*drawn()[:2]) for _ in range(200)])
    assert jackknife_error(without) == pytest.approx(others, rel=0.4)


def test_average_precision_against_rationales():
    weights = [np.array([0.1, 0.6, 0.1, 0.2]), np.array([0.4, 0.3, 0.2, 0.1]), np.ones(3) / 3, None]
    frame = pd.DataFrame({"instance": [0, 1, 2, 3], "length": [4, 4, 3, 2], "attention_weights": weights})
    spans, measures = [((1, 2), (3, 4)), ((3, 4),), None, ((0, 2),)], {"attention": "attention_weights"}
    values = add_average_precision(frame, measures, spans)["rationale_average_precision_attention"]
    assert values[0] == 1 and values[1] == 0.25 and values[2:].isna().all()  # no rationale; nothing but rationale
    with pytest.raises(ValueError, match="a span ends at 4, the text has 2 tokens"):
        add_average_precision(frame, measures, [None, None, None, ((1, 4),)])


def test_average_precision_is_scikit_learns_mean_over_the_orders_of_equal_values():
    value, marked = np.array([3, 2, 2, 2, 1, 1.0]), np.array([0, 1, 0, 1, 0, 1], dtype=bool)
    orders = [0.1 * np.argsort(order) for order in permutations(range(6))]
    for values in (value, 0 * value):
        drawn = np.mean([average_precision_score(marked, values + order) for order in orders])
        assert average_precision(marked, values) == pytest.approx(drawn, abs=1e-9)
    with pytest.raises(ValueError, match="NaN has no rank"):
        average_precision(np.array([True, False]), np.array([1.0, np.nan]))


def tied(delta: float | None, f1: float, **run) -> SimpleNamespace:
    """As if trained: a base, or tying with a delta, whose kept epoch, the second of three, has this F1 on dev."""
    history = [{"epoch": k, "dev_auc": 1, "dev_f1": (1, f1, 1)[k - 1], "dev_loss": 1} for k in (1, 2, 3)]
    run = replace(variant("tying", delta=delta) if delta else variant("base"), **run)
    return SimpleNamespace(run=run, history=history, chosen=2)


def test_dev_chooses_the_largest_weight_that_costs_no_f1_for_each_attention():
    grid = [tied(None, 0.8), *map(tied, (1.0, 10.0, 20.0, 30.0), (0.7, 0.78, 0.9, 0.779))]
    table = weigh(grid, "delta")
    assert table[["costs_f1", "chosen"]].to_numpy().tolist() == [[1, 0], [0, 0], [0, 1], [1, 0]]
    none = [tied(delta, f1, attention="dot") for delta, f1 in ((None, 0.93), (1.0, 0.9), (10.0, 0.9))]
    table = weigh(models := [*none, *grid], "delta")
    assert table["costs_f1"].head(2).all() and table.query("chosen")["delta"].tolist() == [1.0, 20.0]
    chosen = PAPERS["regularization"].settings(profile="paper", delta=(0.003, 0.9))
    deltas = {run.attention: run.option("delta") for run in variants(chosen) if run.variant == "tying"}
    assert deltas == {"additive": 0.003, "dot": 0.9}
    assert select(models, attention="dot", seed=(0, 2)) == none and select(models) == models


def test_texts_are_correlated_by_rank_and_stand_beside_their_base():
    base, random = answers(texts=300), np.random.default_rng(0)
    base = add_sureness(base.assign(probability=random.random(len(base))))
    changed = [(np.array(row["under_permuted"]) != row["prediction"]).mean() for _, row in base.iterrows()]
    assert base["changed"].tolist() == changed
    assert base["sure"].equals(base["probability"].where(base["prediction"] == 1, 1 - base["probability"]))
    tied = base.sample(frac=0.9, random_state=0).assign(variant="tying")
    both = beside_base(pd.concat([base, tied]), ["sure"])
    assert len(both) == len(tied) and both["base_sure"].equals(both["sure"]), "of the same seed and text"
    drawn = [both.assign(leak=both["base_sure"] + random.exponential(0.3, len(both))) for _ in range(200)]
    effects = [rank_correlation(rows, ["leak", "base_sure"]) for rows in drawn]
    ranks = {seed: spearmanr(rows["leak"], rows["base_sure"])[0] for seed, rows in drawn[0].groupby("seed")}
    assert effects[0].by_run == pytest.approx(ranks)
    assert effects[1].se == pytest.approx(np.std([effect.by_run[0] for effect in effects]), rel=0.3)
    assert np.isnan(rank_correlation(both.assign(leak=0.1), ["leak", "base_sure"]).value), "it does not vary"


def test_every_weight_is_measured_on_test_and_kept_apart():
    runs = [variant("tying", delta=delta, embeddings="frozen") for delta in (1.0, 10.0)]
    models = [train(run) for run in (BASE, *runs)]
    alone = Quantity("token_probability_mean", token_probability_mean, "fraction")
    rows = every_weight(models, "delta", [substituted(2), alone])
    of = rows.set_index(["at", "quantity"])["value"]
    assert set(rows["series"]) == {"delta"} and rows["at"].unique().tolist() == [1.0, 10.0], "the base has no delta"
    for model, at in zip(models[1:], (1.0, 10.0), strict=True):
        assert of[at, "f1"] == pytest.approx(evaluate(model.model, model.batches("test"))["f1"])
    row = {"variant": "tying", "seed": 0, "series": "delta", "at": 1.0}
    assert recipe_text(row, runs[1:]) == recipe_text(row | {"series": ""}, runs[:1])
