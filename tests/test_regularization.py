"""Tutek & Snajder's models: what holds hidden states to their words, in training and by hand."""

from dataclasses import replace
from functools import partial
from itertools import combinations, permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import planned
import pytest
import small
import torch
from forked import Forked, highest_memory
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    homogeneity_score,
    mutual_info_score,
    roc_auc_score,
    v_measure_score,
)
from torch.nn import functional

import papers
from lib import processes
from lib.analysis import (
    add_average_precision,
    best_epochs,
    chosen_values,
    describe_ends,
    dev_scores,
    difference,
    fragility,
    measure,
    price_difference,
    prices,
    summarise,
    train_grid,
)
from lib.analysis import information as instances_information
from lib.analysis.rationale import average_precision, chance_precision
from lib.analysis.summaries import DROPS, FRAGILITY, ORDERS
from lib.analysis.word_states import differences, jackknife_error, without_parts, word_states
from lib.datasets import DATASETS
from lib.datasets.batches import collate
from lib.datasets.corpus import SPECIALS
from lib.interventions import permuted, substituted, token_probabilities, token_probability_mean
from lib.metrics import mutual_information as information
from lib.metrics import probabilities
from lib.models import AttentionClassifier
from lib.training import Run, losses, train
from lib.training.tasks import MaskedLanguageModel, Tying, masked
from lib.training.trained import build, load_corpus, load_vectors, task_of
from lib.training.vectors import word_table
from papers import PAPERS
from papers.regularization import imitation, variants

SMALL = (("embedding_size", 16), ("epochs", 2), ("hidden_size", 16))
BASE = Run("planted", vectors="random", recipe="tutek2020", options=SMALL)


def silent(message: str) -> None:
    pass


def variant(name: str, **options) -> Run:
    return replace(BASE, variant=name, options=(*BASE.options, *options.items()))


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory):
    """One cache for the module."""
    folder = tmp_path_factory.mktemp("cache")
    with processes.environment({"CACHE_HOME": str(folder)}):
        yield folder


def untrained(run: Run):
    corpus = load_corpus(run)
    return build(run, corpus, load_vectors(run, corpus)), corpus


def with_weights_of(base: AttentionClassifier, retention: str) -> AttentionClassifier:
    """A small model that keeps its input, with the base's encoder."""
    torch.manual_seed(1)
    table = base.embedding.weight.detach().clone()
    made = AttentionClassifier(table, retention=retention, hidden_size=base.encoder.hidden_size).double()
    made.encoder.encoder.load_state_dict(base.encoder.state_dict())
    return made.eval()


def test_residual_is_base_plus_embedding_and_concat_is_both_side_by_side():
    torch.manual_seed(0)
    base = AttentionClassifier(torch.randn(34, 12), hidden_size=12).double().eval()
    batch = small.batch()
    embedded = base.embedding(batch.tokens)
    hidden = base(batch).hidden
    for retention, expected in (
        ("residual", hidden + embedded),
        ("concat", torch.cat([hidden, embedded], dim=-1)),
    ):
        output = with_weights_of(base, retention)(batch)
        assert torch.equal(output.hidden, expected)
        weights = torch.softmax(output.scores.masked_fill(~batch.mask, -torch.inf), dim=-1)
        torch.testing.assert_close(output.attention, weights)


@pytest.mark.parametrize("name", ["residual", "tying", "mlm"])
def test_a_variant_that_needs_equal_sizes_says_so(name):
    with pytest.raises(ValueError, match=f"{name}.* hidden_size is 12, embedding_size 16; set hidden_size=16"):
        replace(variant(name), options=(("embedding_size", 16), ("hidden_size", 12)))
    with pytest.raises(ValueError, match="hidden_size is 256, embedding_size 300"):  # an encoder's own size counts
        replace(variant(name), recipe="jain2019", options=())


def test_options_belong_to_their_variant_and_must_make_sense():
    with pytest.raises(KeyError, match="unknown option 'delta' of a run of mlm"):
        variant("mlm", delta=3.0)
    with pytest.raises(ValueError, match="eta is -1; allowed: a number from 0 up"):
        variant("mlm", eta=-1)
    with pytest.raises(ValueError, match="twice"):
        variant("tying", epochs=3)
    with pytest.raises(KeyError, match="unknown recipe 'cake'; known: jain2019, jain2019-questions, tutek2020"):
        replace(BASE, recipe="cake")
    with pytest.raises(ValueError, match="query_init is 'zero'; allowed: default or normal"):
        variant("base", query_init="zero")


def test_masked_words_come_at_the_stated_rates_and_are_never_special():
    torch.manual_seed(0)
    words = 5000
    tokens = torch.randint(len(SPECIALS), words, (400, 500))
    tokens[:, 100:150] = 1  # unknown words
    tokens[:, 400:] = 0
    mask = tokens != 0
    mask[:, 0] = False  # start
    hidden, chosen = masked(tokens, mask, words, 0.15)
    allowed = mask & (tokens >= len(SPECIALS))
    assert not chosen[~allowed].any()
    assert torch.equal(hidden[~chosen], tokens[~chosen])
    assert chosen[allowed].double().mean() == pytest.approx(0.15, abs=0.003)  # sd .001
    among = hidden[chosen]
    assert (among == words).double().mean() == pytest.approx(0.8, abs=0.012)
    assert (among == tokens[chosen]).double().mean() == pytest.approx(0.1, abs=0.009)
    others = among[(among != words) & (among != tokens[chosen])]
    assert others.min() >= len(SPECIALS) and others.max() < words
    assert others.double().mean() == pytest.approx((words + len(SPECIALS)) / 2, rel=0.03)  # any word


def test_losses_of_words_are_what_their_formulas_say():
    batch = small.batch()
    model, size = small.model(), 8
    hidden, embedded = torch.randn(2, *batch.tokens.shape, size, dtype=torch.float64)
    by_hand = [
        sum((hidden[i, t, k] - embedded[i, t, k]) ** 2 for k in range(size)) for i, t in batch.mask.nonzero().tolist()
    ]
    loss = losses.tying_loss(hidden, embedded, batch.mask)
    torch.testing.assert_close(loss, torch.stack(by_hand).mean())
    states, words, table = torch.randn(7, size), torch.tensor([0, 3, 3, 5, 1, 2, 9]), torch.randn(10, size)
    each = functional.cross_entropy(states @ table.T, words, reduction="none")
    torch.testing.assert_close(losses.mlm_loss(states, words, table, 4), each.sum() / 4)
    assert losses.mlm_loss(states[:0], words[:0], table, 4) == 0
    assert model(batch).logits.isfinite().all()


def test_a_course_adds_its_objective_to_the_labels_loss():
    batch = small.batch()
    labels = batch.label
    torch.manual_seed(0)
    model = AttentionClassifier(torch.randn(35, 8), hidden_size=8).double().eval()  # a row more: the mask
    plain = Tying(labels, 1, delta=0).losses(model, batch)
    tied = Tying(labels, 1, delta=3.0).losses(model, batch)
    output = model(batch)
    distance = len(batch) * losses.tying_loss(output.hidden, output.embeddings, batch.mask)
    torch.testing.assert_close(tied["loss"], plain["loss"] + 3 * distance)
    task = MaskedLanguageModel(labels, 1, words=34, eta=2.0, share=0.5)
    torch.manual_seed(4)
    found = task.losses(model, batch)
    torch.testing.assert_close(found["prediction"], plain["prediction"])  # of the words as they are
    torch.testing.assert_close(found["loss"], found["prediction"] + 2 * found["mlm"])
    torch.manual_seed(4)
    tokens, chosen = masked(batch.tokens, batch.mask, 34, 0.5)
    states = model(replace(batch, tokens=tokens)).hidden[chosen]
    logits = states @ model.embedding.weight[4:34].T
    expected = functional.cross_entropy(logits, batch.tokens[chosen] - 4, reduction="sum")
    assert chosen.any()
    torch.testing.assert_close(found["mlm"], expected)


def test_a_huge_delta_drives_hidden_states_to_their_embeddings():
    distance = {}
    for delta in (0.0, 1e4):
        how = {"embeddings": "frozen", "learning_rate": 0.05, "vector_scale": 0.3, "epochs": 4}
        run = variant("tying", delta=delta)
        trained = train(replace(run, options=tuple((dict(run.options) | how).items())), say=silent)
        batch = next(trained.batches("test"))
        with torch.no_grad():
            output = trained.model(batch)
        away = (output.hidden - output.embeddings).square().sum(dim=-1)[batch.mask]
        distance[delta] = float(away.mean() / output.embeddings.square().sum(dim=-1)[batch.mask].mean())
    assert distance[1e4] < 0.1 < 0.9 < distance[0.0]


def test_frozen_embeddings_stay_as_they_were_and_trained_ones_do_not():
    for run, stays in (
        (variant("frozen"), True),
        (variant("mlm", embeddings="frozen", eta=0.3), True),
        (variant("base"), False),
    ):
        trained = train(run, say=silent)
        assert torch.equal(trained.model.embedding.weight, word_table(run, trained.vectors)) == stays, run


def test_the_mask_has_a_row_of_its_own_which_no_text_reads():
    run = variant("mlm", embeddings="frozen", eta=0.3)
    trained = train(run, say=silent)
    words = len(trained.corpus.vocabulary)
    assert len(trained.model.embedding.weight) == words + 1
    assert max(int(batch.tokens.max()) for batch in trained.batches("test")) < words
    assert {"train_prediction", "train_mlm", "dev_attention_entropy"} <= set(trained.history[0])


def test_an_adversary_is_built_as_the_variant_it_imitates_and_has_no_objective_of_its_own():
    base = variant("residual", embeddings="frozen")
    run = imitation(base, 0.1, 1)
    model, _ = untrained(run)
    assert model.encoder.__class__.__name__ == "Residual" and not model.embedding.weight.requires_grad
    trained = train(run, say=silent)
    assert set(trained.history[0]) >= {"train_tvd", "train_jsd"} and len(trained.history) == 1
    tied = imitation(variant("tying", delta=5.0), 0.1, 1)
    assert "delta" not in dict(tied.options) and not isinstance(task_of_base(tied), Tying)


def task_of_base(run: Run):
    return task_of(train(run, say=silent))


def test_the_query_of_dot_attention_starts_where_it_is_told():
    std = {}
    for start in ("default", "normal"):
        model, _ = untrained(replace(variant("base", query_init=start), attention="dot"))
        std[start] = float(model.attention.context.weight.detach().std())
    assert std["default"] < 0.25 < 0.6 < std["normal"]


def test_clipping_bounds_the_step():
    from lib.training import fitting

    batch = small.batch()
    for clip, bound in ((None, None), (1e-3, 1e-3)):
        model = small.model().float()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        before = [parameter.detach().clone() for parameter in model.parameters()]
        task = Tying(batch.label, 1, delta=0)
        losses = {"of": lambda m, b, c=task: {"loss": c.label_loss(m(b).logits, b)}}["of"]
        fitting.train_epoch(model, [batch], optimizer, losses, "sum", clip)
        pairs = zip(model.parameters(), before, strict=True)
        moved = sum(float((now.detach() - then).square().sum()) for now, then in pairs) ** 0.5
        assert moved > 1e-2 if bound is None else moved == pytest.approx(bound, rel=1e-3)


def test_every_dataset_has_its_runs_and_a_run_is_named_by_what_sets_it_apart():
    for dataset in (name for name, spec in DATASETS.items() if not spec.asks):
        runs = planned.runs("regularization", dataset, "paper", device="cpu", delta=20.0, eta=0.3)
        names = {run.variant for run in runs}
        assert names == {"base", "frozen", "concat", "residual", "tying", "mlm", "adversary"}
        first = [run for run in runs if run.layers == 1 and run.attention == "additive" and run.variant != "adversary"]
        assert {run.option("delta") for run in first if run.variant == "tying"} == {20.0}, "a weight that is given"
        assert {run.seed for run in first} == {0, 1, 2}
        assert {run.layers for run in runs} == {1, 2, 3}
        assert {run.option("query_init") for run in runs if run.attention == "dot"} == {"default", "normal"}
        imitating = [run for run in runs if run.variant == "adversary"]
        assert len({run.option("lambda") for run in imitating}) == 3
        judged = {run.base.variant for run in imitating if run.seed > 0}
        assert judged == {"base", "mlm"}, "the figure is about mlm: with one seed there would be no verdict"
    assert str(variant("tying", delta=5.0)).startswith("planted bilstm additive tying delta 5.0 ")


def test_tokens_of_one_alone_are_read_as_the_text_itself_and_sum_to_its_logit():
    for outputs in (1, 3):
        model, batch = small.model(outputs=outputs), small.batch()
        output = model(batch)
        each = token_probabilities(model, batch, output)
        own = probabilities(output.logits)
        assert each[0, 1].item() == pytest.approx(own[0].max().item())  # a text of one token
        for row, position in batch.mask.nonzero().tolist():
            alone = torch.zeros_like(output.attention)
            alone[row, position] = 1
            probability = probabilities(model(batch, alone).logits)[row, own[row].argmax()]
            assert each[row, position] == pytest.approx(float(probability.detach()))
        assert (each[~batch.mask] == 0).all()
        if outputs == 1:
            signs = torch.where(own.argmax(dim=-1) == 1, 1.0, -1.0)
            logits = torch.logit(each.masked_fill(~batch.mask, 0.5)) * signs[:, None]
            torch.testing.assert_close((output.attention * logits).sum(dim=-1), output.logits[:, 0])
        mean = token_probability_mean(model, batch, output)
        torch.testing.assert_close(mean[1], each[1, batch.mask[1]].mean())


@pytest.mark.parametrize("outputs", [1, 3])
def test_substituted_attention_gives_the_classes_of_a_model_that_has_it(outputs):
    model, batch = small.model(outputs=outputs), small.batch((1, 2, 5, 9))
    output = model(batch)
    found = substituted(draws=20, seed=3)(model, batch, output)
    equal = batch.mask / batch.mask.sum(dim=-1, keepdim=True)
    assert torch.equal(found["uniform"], probabilities(model(batch, equal.double()).logits).argmax(dim=-1))
    logits = permuted(model, output, 20, 3, batch.instance)
    assert torch.equal(found["permuted"].long(), probabilities(logits).argmax(dim=-1))
    if outputs == 1:
        torch.testing.assert_close(found["permuted_probability"].double(), probabilities(logits)[..., 1])
        assert torch.equal(found["uniform_probability"].round().long(), found["uniform"])
    assert len(found) == (4 if outputs == 1 else 2)
    slow = small.NotAffine(model)
    for name, value in substituted(draws=20, seed=3)(slow, batch, output).items():
        assert torch.equal(value, found[name])
    torch.testing.assert_close(token_probabilities(slow, batch, output), token_probabilities(model, batch, output))
    frame = measure(model, [batch], [substituted(7)])
    assert all(len(row) == 7 for row in frame["under_permuted"])


def answers(texts: int = 200, seeds: int = 2, draws: int = 6, classes: int = 2, variant: str = "base", seed: int = 0):
    """A table as `measure` gives it, of made-up answers: trained right in 90%, uniform 80%, permuted 60%."""
    random, rows = np.random.default_rng(seed), []
    label = random.integers(0, classes, texts)
    for number in range(seeds):

        def some(share, *shape, label=label):
            shape = (texts, *shape)
            wrong = random.integers(0, classes, shape)
            return np.where(random.random(shape) < share, label.reshape(-1, *(1,) * (len(shape) - 1)), wrong)

        trained, uniform, permuted_ = some(0.9), some(0.8), some(0.6, draws)
        sure = [0.5 * (one + random.random(one.shape).round(1)) / classes for one in (trained, uniform, permuted_)]
        rows += [
            {"dataset": "d", "encoder": "bilstm", "attention": "additive", "projection": "softmax", "variant": variant}
            | {"layers": 1, "seed": number, "instance": text, "length": 5, "label": label[text]}
            | {"prediction": trained[text], "probability": sure[0][text], "left_out": ()}
            | {"under_uniform": float(uniform[text]), "under_permuted": permuted_[text]}
            | {"under_uniform_probability": sure[1][text], "under_permuted_probability": sure[2][text]}
            for text in range(texts)
        ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("classes", [2, 3])
def test_fragility_is_what_scikit_learn_says_of_every_order(classes):
    frame = answers(classes=classes, draws=ORDERS + 2)
    f1 = partial(f1_score, average="binary" if classes == 2 else "macro")
    each = {name: [] for name in FRAGILITY}
    for _, rows in frame.groupby("seed"):
        orders = np.stack(rows["under_permuted"].to_list())
        values = []
        for score in (f1, balanced_accuracy_score):
            trained, uniform = (score(rows["label"], rows[name]) for name in ("prediction", "under_uniform"))
            shuffled = np.mean([score(rows["label"], order) for order in orders.T])
            values += trained, uniform, shuffled, uniform - trained, shuffled - trained
        if classes == 2:
            columns = rows["probability"], rows["under_uniform_probability"]
            trained, uniform = (roc_auc_score(rows["label"], column) for column in columns)
            orders = np.stack(rows["under_permuted_probability"].to_list())
            shuffled = np.mean([roc_auc_score(rows["label"], order) for order in orders.T[:ORDERS]])
            values += trained, uniform, shuffled, uniform - trained, shuffled - trained
        values += [np.nan] * (len(FRAGILITY) - len(values))  # of more classes there is no AUC
        for name, value in zip(FRAGILITY, values, strict=True):
            each[name].append(value)
    found = fragility(frame, FRAGILITY).set_index("quantity")
    for name in FRAGILITY:
        assert found.loc[name, "value"] == pytest.approx(np.mean(each[name]), nan_ok=True)
    drop = found.loc["f1_drop_permuted"]
    assert -1 <= drop["low"] < drop["value"] < drop["high"] < 0


def test_a_difference_of_fragility_pairs_texts_and_seeds():
    base, between = answers(), ({"variant": "tying"}, {"variant": "base"})
    same = base.assign(variant="tying")
    both = pd.concat([base, same])
    row = difference(both, ["f1", *DROPS], between).set_index("quantity").loc["f1_drop_permuted"]
    assert row["difference"] == row["low"] == row["high"] == 0 and row["word"] == "open"
    random = np.random.default_rng(1)
    worse = [
        np.where(random.random(len(order)) < 0.8, 1 - label, order)
        for order, label in zip(base["under_permuted"], base["label"], strict=True)
    ]
    both = pd.concat([base, base.assign(variant="tying", under_permuted=worse)])
    row = difference(both, ["f1", *DROPS], between).set_index("quantity").loc["f1_drop_permuted"]
    assert row["word"] == "lower" and row["high"] < -0.2
    values = {name: fragility(rows, ["f1_drop_permuted"]).loc[0, "value"] for name, rows in both.groupby("variant")}
    assert row["difference"] == pytest.approx(values["tying"] - values["base"])
    with pytest.raises(KeyError, match="measure with"):
        fragility(base.drop(columns="under_permuted"))


def test_mutual_information_has_its_closed_forms():
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(8), 50)
    random.shuffle(labels)
    same = information.mutual_information(labels, labels)
    assert same.plug_in == pytest.approx(np.log(8))
    assert same.miller_madow == pytest.approx(np.log(8) + (8 - 1) / 800)  # 8 cells, 8 rows, 8 columns
    assert same.null < 0.1 < same.plug_in
    pairs = np.stack(np.meshgrid(np.arange(5), np.arange(7)), axis=-1).reshape(-1, 2).repeat(3, axis=0)
    independent = information.mutual_information(*pairs.T)
    assert independent.plug_in == pytest.approx(0, abs=1e-12)
    drawn = [random.integers(0, 10, 20_000) for _ in range(2)]
    found = information.mutual_information(*drawn)
    assert found.plug_in == pytest.approx(81 / 40_000, rel=0.5)  # (cells - rows - columns + 1) / 2n
    assert abs(found.miller_madow) < found.plug_in and found.null == pytest.approx(found.plug_in, rel=0.5)
    renamed = information.mutual_information(random.permutation(8)[labels], labels)
    assert renamed.plug_in == pytest.approx(same.plug_in)


def test_clusters_are_the_same_for_the_same_seed_and_find_what_is_there():
    random = np.random.default_rng(0)
    centres = random.normal(size=(12, 20)).astype(np.float32) * 10
    truth = random.integers(0, 12, 3000)
    vectors = centres[truth] + random.normal(size=(3000, 20)).astype(np.float32)
    first, again = (information.clusters(vectors, 40, seed=3) for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, information.clusters(vectors, 40, seed=4))
    assert v_measure_score(truth, first) > 0.75 and homogeneity_score(truth, first) > 0.99
    assert len(information.clusters(vectors[:7], 40, seed=3)) == 7  # fewer vectors than clusters


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_clusters_are_scikit_learns_own(kind):
    """Its draws by weights are replaced by faster ones: the same numbers."""
    vectors = np.random.default_rng(0).normal(size=(2500, 6)).astype(kind)
    whole = {"max_iter": information.PASSES, "max_no_improvement": None, "n_init": 1, "compute_labels": False}
    theirs = MiniBatchKMeans(30, batch_size=information.BATCH, random_state=3, **whole).fit(vectors).predict(vectors)
    assert np.array_equal(information.clusters(vectors, 30, seed=3), theirs)
    weights = np.arange(1, 6) / 15
    drawn = [of.choice(5, 40, p=weights) for of in (information.Draws(1), np.random.RandomState(1)) for _ in range(2)]
    assert np.array_equal(drawn[:2], drawn[2:])


def test_samples_of_words_follow_their_counts():
    counts = np.array([0, 5, 0, 100, 20, 20, 1])
    assert information.frequent_words(counts, 3).tolist() == [3, 4, 5]
    assert sorted(information.frequent_words(counts, 100).tolist()) == [1, 3, 4, 5, 6]
    many = np.r_[np.full(500, 16), np.full(500, 1), 0]
    drawn = information.random_words(many, 300, seed=0)
    assert len(set(drawn.tolist())) == 300 and drawn.max() < 1000
    assert (drawn < 500).sum() > 200  # 16 ** .75 = 8 times as likely
    assert np.array_equal(drawn, information.random_words(many, 300, seed=0))


def test_states_of_words_are_those_of_their_occurrences(monkeypatch):
    trained = train(variant("frozen"), say=silent)
    split = trained.corpus.dev
    words = np.array([10, 11, 25])
    embedded, hidden, which, texts = word_states(trained, split, words)
    ids, offsets = split.encoded
    where = np.flatnonzero(np.isin(ids, words))
    assert len(embedded) == len(hidden) == len(where) > 10
    table = trained.model.embedding.weight.detach().numpy()
    assert np.array_equal(embedded, table[ids[where]]) and np.array_equal(which, ids[where])
    text = int(np.searchsorted(offsets, where[0], side="right")) - 1
    with torch.no_grad():
        output = trained.model(collate(split, np.array([text])))
    assert texts[0] == text and texts[-1] == np.searchsorted(offsets, where[-1], side="right") - 1
    assert np.allclose(hidden[0], output.hidden[0, where[0] - offsets[text]], atol=1e-5)
    monkeypatch.setattr("lib.analysis.word_states.MOST", 5)
    fewer = word_states(trained, split, words)[0]
    assert len(fewer) == 5 and {row.tobytes() for row in fewer} <= {row.tobytes() for row in embedded}


def test_information_of_runs_is_at_equal_n_and_higher_where_the_word_is_added():
    runs = [
        train(variant(name, **options), say=silent)
        for name, options in (("base", {}), ("residual", {"embeddings": "frozen"}))
    ]
    found = instances_information(runs, words=30, clusters=30)
    assert found["n"].groupby(found["quantity"]).nunique().eq(1).all()
    row = differences(found, [("residual", "base")]).set_index("quantity").loc["mutual_information_most_frequent"]
    exact = instances_information(runs, words=30, clusters=30, embedding_labels="words")
    assert (exact["plug_in"] > 0.8 * found["plug_in"]).all() and (exact["n"] == found["n"]).all()
    assert row["difference"] > 0 and np.isnan(row["low"]) and row["word"] == "open"  # one seed


def test_the_error_of_mutual_information_is_that_of_other_texts():
    random = np.random.default_rng(0)

    def drawn(texts: int = 400) -> tuple[np.ndarray, ...]:
        """Labels of 20 words in each text, the second like the first in a share that is the text's own."""
        first, share = random.integers(0, 4, (texts, 20)), random.random((texts, 1))
        second = np.where(random.random((texts, 20)) < share, first, random.integers(0, 4, (texts, 20)))
        return first.ravel(), second.ravel(), np.repeat(np.arange(texts), 20)

    first, second, texts = drawn()
    without = without_parts(first, second, texts % 50)
    for part in (0, 49):
        left = texts % 50 != part
        assert without[part] == pytest.approx(mutual_info_score(first[left], second[left]))
    others = np.std([mutual_info_score(*drawn()[:2]) for _ in range(200)])
    assert jackknife_error(without) == pytest.approx(others, rel=0.4)


def test_average_precision_against_rationales_and_what_chance_gives():
    frame = pd.DataFrame(
        {
            "instance": [0, 1, 2, 3],
            "length": [4, 4, 3, 2],
            "attention_weights": [np.array([0.1, 0.6, 0.1, 0.2]), np.array([0.4, 0.3, 0.2, 0.1]), np.ones(3) / 3, None],
        }
    )
    spans = [((1, 2), (3, 4)), ((3, 4),), None, ((0, 2),)]
    found = add_average_precision(frame, {"attention": "attention_weights"}, spans)
    values = found["rationale_average_precision_attention"]
    assert values[0] == 1 and values[1] == 0.25 and values[2:].isna().all()  # no rationale; nothing but rationale
    for relevant, tokens in ((1, 4), (2, 4), (3, 7), (5, 5)):
        every = [
            average_precision_score([place in marked for place in range(tokens)], -np.arange(tokens))
            for marked in combinations(range(tokens), relevant)
        ]
        assert chance_precision(relevant, tokens) == pytest.approx(np.mean(every))


def test_average_precision_is_scikit_learns_mean_over_the_orders_of_equal_values():
    random = np.random.default_rng(3)
    lengths = [1, 2, *random.integers(2, 40, size=200)]
    for length in lengths:
        values, marked = random.permutation(length) * 0.1, random.random(length) < 0.3
        marked[random.integers(length)] = True
        assert average_precision(marked, values) == pytest.approx(average_precision_score(marked, values), abs=1e-12)
        assert average_precision(marked, np.zeros(length)) == pytest.approx(
            chance_precision(marked.sum(), length), abs=1e-12
        )
    value, marked = np.array([3, 2, 2, 2, 1, 1.0]), np.array([0, 1, 0, 1, 0, 1], dtype=bool)
    orders = [value + 0.1 * np.argsort(order) for order in permutations(range(6))]
    drawn = np.mean([average_precision_score(marked, order) for order in orders])
    assert average_precision(marked, value) == pytest.approx(drawn, abs=1e-9)
    with pytest.raises(ValueError, match="NaN has no rank"):
        average_precision(np.array([True, False]), np.array([1.0, np.nan]))


def curve_rows(price: float, texts: int = 300, variant: str = "base", seed: int = 0) -> pd.DataFrame:
    random, parts = np.random.default_rng(seed), []
    for at, jsd in ((0.1, 0.1), (0.2, 0.3), (0.3, 0.5)):
        noise = random.normal(scale=0.02, size=(2, texts))
        parts.append(
            pd.DataFrame(
                {
                    "lambda": at,
                    "seed": 0,
                    "instance": range(texts),
                    "variant": variant,
                    "jsd": jsd + noise[0],
                    "tvd": price * jsd + noise[1],
                }
            )
        )
    return pd.concat(parts).assign(dataset="d", encoder="bilstm", attention="additive", projection="softmax", layers=1)


def test_the_price_of_distance_is_compared_at_equal_distance():
    row = price_difference(curve_rows(0.4, variant="mlm", seed=1), curve_rows(0.1))
    assert row["difference"] == pytest.approx(0.3 * 0.3, abs=0.01)  # of the slopes, at the mean JSD
    assert 0 < row["low"] < row["difference"] < row["high"] and row["to"] - row["from"] == pytest.approx(0.4, abs=0.02)
    away = curve_rows(0.1).assign(jsd=lambda rows: rows["jsd"] + 1)
    assert price_difference(away, curve_rows(0.1))[["difference", "low", "from"]].isna().all()


def test_weights_are_chosen_by_dev_alone():
    def one(delta: float, aucs: tuple, seed: int = 0) -> SimpleNamespace:
        history = [{"epoch": k + 1, "dev_auc": auc, "dev_f1": auc, "dev_loss": 1 - auc} for k, auc in enumerate(aucs)]
        chosen = int(np.argmax(aucs)) + 1
        return SimpleNamespace(run=variant("tying", delta=delta), history=history, chosen=chosen)

    table = dev_scores([one(1.0, (0.7, 0.9, 0.8)), one(10.0, (0.95, 0.6, 0.1)), one(20.0, (0.9, 0.9, 0.9))], "delta")
    assert table["dev_auc"].tolist() == [0.9, 0.95, 0.9] and table["chosen"].tolist() == [False, True, False]
    table = dev_scores([one(delta, (1.0,)) for delta in (1.0, 10.0)], "delta")
    assert table["chosen"].tolist() == [False, True], "of equals the one that regularizes more"


def test_the_epochs_that_runs_keep_stand_beside_each_other():
    histories = [[{"dev_attention_entropy": value} for value in of] for of in ((0.9, 0.4), (0.8, 0.7, 0.6))]
    runs = [replace(variant("tying", delta=1.0), seed=seed) for seed in (0, 1)]
    pairs = zip(runs, histories, (2, 1), strict=True)
    (row,) = best_epochs([SimpleNamespace(run=run, history=of, chosen=k) for run, of, k in pairs]).to_dict("records")
    assert (row["variant"], row["of"], row["epochs_kept"], row["attention_entropy"]) == ("tying", 2, "2 1", "0.40 0.80")


def test_a_weight_below_all_of_the_papers_is_named():
    paper = papers.PAPERS["regularization"]
    settings = paper.settings(dataset="planted", attentions=("additive", "dot"), delta=(0.01, 1.0), eta=(0.1,))
    found = papers.regularization.below_the_papers(settings)
    assert len(found) == 1 and found[0].startswith("delta 0.01 for additive attention is 100 times below")


def test_a_grid_grows_for_each_attention_until_devs_best_lies_inside():
    best = {"additive": 0.002, "dot": 1.0}  # of delta: the smaller end for one attention, the larger for the other

    def made(runs: list[Run]) -> list[SimpleNamespace]:
        aucs = [1 - 0.1 * abs(np.log(run.option("delta") / best[run.attention])) for run in runs]
        records = [[{"epoch": 1, "dev_auc": auc, "dev_f1": 0.5, "dev_loss": 0.5}] for auc in aucs]
        return [SimpleNamespace(run=run, history=of, chosen=1) for run, of in zip(runs, records, strict=True)]

    grid = planned.runs("regularization/delta_sweep", profile="paper", device="cpu")
    trained = train_grid(grid, "delta", made)
    of = {name: [one.run.option("delta") for one in trained if one.run.attention == name] for name in best}
    assert of == {"additive": [0.01, 0.03, 0.1, 0.003, 0.001], "dot": [0.01, 0.03, 0.1, 0.3, 0.9, 3]}
    assert chosen_values(trained, "delta") == [0.003, 0.9] and len({one.run for one in trained}) == len(trained)
    best["dot"] = 1e9
    endless = train_grid(grid, "delta", made)
    assert max(one.run.option("delta") for one in endless) == 9, "four values beyond, and no more"
    assert describe_ends(endless, "delta") == ["delta of dot attention: 9 is the largest tried."]
    assert describe_ends(trained, "delta") == [] and describe_ends(trained[:1], "delta") == []
    assert len(train_grid(grid, "delta", made, beyond=False)) == len(grid)
    chosen = PAPERS["regularization"].settings(profile="paper", delta=(0.003, 0.9))
    of = {run.attention: run.option("delta") for run in variants(chosen) if run.variant == "tying"}
    assert of == {"additive": 0.003, "dot": 0.9}
    same = PAPERS["regularization"].settings(delta=[0.1, 0.1])
    assert same.delta == (0.1, 0.1), "both attentions may choose the same"


def test_what_imitation_costs_is_taken_off_the_price():
    def with_floor(rows: pd.DataFrame, floor: float) -> pd.DataFrame:
        rows = rows.assign(tvd=rows["tvd"] + floor)
        zero = rows[rows["lambda"] == 0.1].assign(**{"lambda": 0.0}, jsd=0.02, tvd=floor)
        return pd.concat([zero, rows])

    first, base = curve_rows(0.4, variant="mlm", seed=1), curve_rows(0.1)
    plain = price_difference(first, base)
    assert np.isnan(plain["floor"]) and plain["points"] == 3
    row = price_difference(with_floor(first, 0.3), with_floor(base, 0.05))
    raw = price_difference(with_floor(first, 0.3), with_floor(base, 0.05), net=False)["difference"]
    assert raw == pytest.approx(row["difference"] + 0.25, abs=0.01)
    assert row["base_floor"] == pytest.approx(0.05)
    assert row["points"] == 4 and row["difference"] == pytest.approx(0.0775, abs=0.003), "from 0 at .02 nats on"
    assert row["floor"] == pytest.approx(0.3)
    ends = [with_floor(rows, 0.3)[lambda rows: rows["lambda"].isin([0, 0.1])] for rows in (first, base)]
    row = price_difference(*ends)
    assert row["points"] == 2 and row["difference"] == pytest.approx(0.015, abs=0.003), "imitation and one beyond it"
    assert price_difference(*ends, net=False)["difference"] == pytest.approx(0.015, abs=0.003), "of equal floors"
    one = first[first["lambda"] == 0.1]
    assert price_difference(one, base)["points"] == 1 and np.isnan(price_difference(one, base)["difference"])
    only = [with_floor(rows, 0.1)[lambda rows: rows["lambda"] == 0] for rows in (first, base)]  # none but imitations
    row = price_difference(*only)
    assert (row["points"], row["floor"]) == (1, pytest.approx(0.1)) and np.isnan(row["difference"])


def imitated(price: float = 0.6, floor: float = 0.01, converged: bool = True, seeds: int = 3) -> pd.DataFrame:
    """Adversaries of mlm and tying, which pay `price` for each nat of JSD, and of the base, which pay .1."""
    parts, random = [], np.random.default_rng(0)
    for name in ("base", "mlm", "tying"):
        for seed, at, jsd in ((seed, *point) for seed in range(seeds) for point in ((0, 0.01), (0.1, 0.1), (0.2, 0.6))):
            tvd = floor + (0.1 if name == "base" else price) * jsd * (at > 0) + random.normal(0, 0.003, 100)
            rows = pd.DataFrame({"instance": range(100), "jsd": jsd + random.normal(0, 0.003, 100), "tvd": tvd})
            parts.append(rows.assign(**{"lambda": at}, variant=name, seed=seed))
    frame = pd.concat(parts).assign(dataset="made_up", encoder="bilstm", attention="additive", projection="softmax")
    return frame.assign(layers=1, label=1, prediction=1, base_prediction=1, converged=converged)


def price_of_mlm(frame: pd.DataFrame) -> pd.Series:
    return prices(frame).set_index("variant").loc["mlm"]


def test_a_price_says_nothing_where_imitation_explains_it_or_training_did_not_end():
    row = price_of_mlm(imitated())
    assert row["failed"] == "" and row["low"] > 0 and row["raw"] == pytest.approx(row["difference"], abs=0.01)
    assert price_of_mlm(imitated(price=0.02))["difference"] < 0
    assert price_of_mlm(imitated(floor=0.3))["failed"].startswith("the floor, 0.3")
    assert "did not converge" in price_of_mlm(imitated(converged=False))["failed"]
    few = imitated()
    assert price_of_mlm(few[few["lambda"] == 0])["points"] == 1
    assert price_of_mlm(few[few["lambda"] != 0.1])["failed"] == ""
    few.loc[(few["variant"] == "mlm") & (few["lambda"] == 0.2), "converged"] = False
    assert price_of_mlm(few)["failed"] == "an adversary of MLM did not converge"


def test_imitation_that_fails_says_how():
    frame = imitated()
    wrong = (frame["variant"] == "mlm") & (frame["lambda"] == 0)
    frame.loc[wrong, "tvd"] += 0.5
    frame.loc[wrong & (frame["instance"] < 10), "prediction"] = 0
    why = price_of_mlm(frame)["failed"]
    assert why.startswith("imitation of MLM alone is 0.100 below it in accuracy, is farther from its predictions")
    one = imitated()
    first = (one["variant"] == "mlm") & (one["lambda"] == 0) & (one["seed"] == 1) & (one["instance"] < 10)
    one.loc[first, "prediction"] = 0
    assert price_of_mlm(one)["failed"].startswith("imitation of MLM alone is"), "one seed is enough"
    none = imitated().query("variant != 'mlm' or `lambda` > 0")
    assert price_of_mlm(none)["failed"] == "no adversary of MLM only imitates"


def test_rationales_of_another_split_are_refused():
    frame = pd.DataFrame({"instance": [0, 1], "length": [3, 2], "attention_weights": [np.ones(3), np.ones(2)]})
    with pytest.raises(ValueError, match="a span ends at 4, the text has 2 tokens"):
        add_average_precision(frame, {"attention": "attention_weights"}, [None, ((1, 4),)])


def test_a_text_counts_in_the_seeds_in_which_both_models_have_it():
    base = answers(texts=60, seeds=2)
    random = np.random.default_rng(0)
    base["token_probability_mean"] = random.random(len(base))
    tied = base.assign(variant="tying", prediction=random.permutation(base["prediction"]))
    tied["token_probability_mean"] = random.random(len(tied))
    both = pd.concat([base, tied])
    right = both[both["label"] == both["prediction"]]
    row = difference(right, ["token_probability_mean"], ({"variant": "tying"}, {"variant": "base"})).iloc[0]
    joined = right.pivot(index=["seed", "instance"], columns="variant", values="token_probability_mean").dropna()
    of_seeds = (joined["tying"] - joined["base"]).groupby("seed").mean()
    assert row["difference"] == pytest.approx(of_seeds.mean())
    assert row["n"] == joined.index.get_level_values("instance").nunique()
    alone = summarise(right[right["variant"] == "base"], ["token_probability_mean"]).loc[0, "value"]
    runs = right[right["variant"] == "base"].groupby("seed")["token_probability_mean"].mean()
    assert alone == pytest.approx(runs.mean()), "the mean of the runs' means, as the papers have it"


def information_of_many_rows() -> None:
    """Prints bytes per row, beyond what the process had before."""
    information.PASSES = 1  # they take time, no memory
    before, random, rows = highest_memory(), np.random.default_rng(0), 200_000
    table, words = random.standard_normal((50, 300), dtype=np.float32), random.integers(0, 50, rows)
    noise = random.standard_normal((1009, 300), dtype=np.float32)  # drawn anew for each word it takes longest
    sides = table[words], noise[np.arange(rows) % 1009]
    np.add(*sides, out=sides[1])
    labels = [information.clusters(side, 64, seed=0) for side in sides]
    found = information.mutual_information(*labels)
    assert found.n == rows and found.plug_in > 1 > found.null
    print((highest_memory() - before) * 2**20 / rows)


def test_a_million_rows_of_states_fit_in_8_gb(tmp_path):
    """Synthetic embeddings and hidden states of a fifth of them; the process' own peak is the judge."""
    assert Forked(information_of_many_rows, log=tmp_path / "log").wait() == 0
    assert 2 * 300 * 4 < float((tmp_path / "log").read_text()) < 4_000
