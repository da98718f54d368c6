"""Tutek & Snajder's models: what holds hidden states to their words, in training and by hand."""

from dataclasses import replace

import pytest
import small
import torch
from torch.nn import functional

from lib import objectives, programme
from lib.datasets import DATASETS
from lib.datasets.corpus import SPECIALS
from lib.models import AttentionClassifier
from lib.training import Run, train, workers
from lib.training.masking import masked
from lib.training.trained import build, course_of, load_corpus, load_vectors, word_table
from lib.training.word_level import MaskedLanguageModel, Tying

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
    with workers.environment({"CACHE_HOME": str(folder)}):
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
    with pytest.raises(ValueError, match="mlm_share is 1.5; allowed: a number between 0 and 1"):
        variant("mlm", mlm_share=1.5)
    with pytest.raises(ValueError, match="twice"):
        variant("tying", epochs=3)
    with pytest.raises(KeyError, match="unknown recipe 'cake'; known: jain2019, tutek2020"):
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
    loss = objectives.tying_loss(hidden, embedded, batch.mask)
    torch.testing.assert_close(loss, torch.stack(by_hand).mean())
    states, words, table = torch.randn(7, size), torch.tensor([0, 3, 3, 5, 1, 2, 9]), torch.randn(10, size)
    each = functional.cross_entropy(states @ table.T, words, reduction="none")
    torch.testing.assert_close(objectives.mlm_loss(states, words, table, 4), each.sum() / 4)
    torch.testing.assert_close(objectives.mlm_loss(states, words, table, 4, "token"), each.mean())
    assert objectives.mlm_loss(states[:0], words[:0], table, 4) == 0
    assert model(batch).logits.isfinite().all()


def test_a_course_adds_its_objective_to_the_labels_loss():
    batch = small.batch()
    labels = batch.label
    torch.manual_seed(0)
    model = AttentionClassifier(torch.randn(35, 8), hidden_size=8).double().eval()  # a row more: the mask
    plain = Tying(labels, 1, delta=0).losses(model, batch)
    tied = Tying(labels, 1, delta=3.0).losses(model, batch)
    output = model(batch)
    distance = len(batch) * objectives.tying_loss(output.hidden, output.embeddings, batch.mask)
    torch.testing.assert_close(tied["loss"], plain["loss"] + 3 * distance)
    course = MaskedLanguageModel(labels, 1, words=34, eta=2.0, share=0.5, per="text")
    torch.manual_seed(4)
    losses = course.losses(model, batch)
    torch.testing.assert_close(losses["prediction"], plain["prediction"])  # of the words as they are
    torch.testing.assert_close(losses["loss"], losses["prediction"] + 2 * losses["mlm"])
    torch.manual_seed(4)
    tokens, chosen = masked(batch.tokens, batch.mask, 34, 0.5)
    states = model(replace(batch, tokens=tokens)).hidden[chosen]
    logits = states @ model.embedding.weight[4:34].T
    expected = functional.cross_entropy(logits, batch.tokens[chosen] - 4, reduction="sum")
    assert chosen.any()
    torch.testing.assert_close(losses["mlm"], expected)


def test_a_huge_delta_drives_hidden_states_to_their_embeddings():
    distance = {}
    for delta in (0.0, 1e4):
        how = {"embeddings": "frozen", "learning_rate": 0.01, "vector_scale": 0.3, "epochs": 10}
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
    run = programme.regularization.imitation(base, 0.1, 1)
    model, _ = untrained(run)
    assert model.encoder.__class__.__name__ == "Residual" and not model.embedding.weight.requires_grad
    trained = train(run, say=silent)
    assert set(trained.history[0]) >= {"train_tvd", "train_jsd"} and len(trained.history) == 1
    tied = programme.regularization.imitation(variant("tying", delta=5.0), 0.1, 1)
    assert "delta" not in dict(tied.options) and not isinstance(course_of_base(tied), Tying)


def course_of_base(run: Run):
    return course_of(train(run, say=silent))


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
        course = Tying(batch.label, 1, delta=0)
        losses = {"of": lambda m, b, c=course: {"loss": c.of_labels(m(b).logits, b)}}["of"]
        fitting.train_epoch(model, [batch], optimizer, losses, "sum", clip)
        moved = (
            sum(float((now - then).square().sum()) for now, then in zip(model.parameters(), before, strict=True)) ** 0.5
        )
        assert moved > 1e-2 if bound is None else moved == pytest.approx(bound, rel=1e-3)


def test_every_dataset_has_its_runs_and_a_run_is_named_by_what_sets_it_apart():
    for dataset in DATASETS:
        runs = programme.runs("regularization", dataset, "paper", device="cpu", delta=20.0, eta=0.3)
        names = {run.variant for run in runs}
        assert names == {"base", "frozen", "concat", "residual", "tying", "mlm", "adversary"}
        first = [run for run in runs if run.layers == 1 and run.attention == "additive" and run.variant != "adversary"]
        assert {run.option("delta") for run in first if run.variant == "tying"} == {1.0, 10.0, 20.0, 30.0}
        assert {run.seed for run in first} == {0, 1, 2}
        assert {run.layers for run in runs} == {1, 2, 3}
        assert {run.option("query_init") for run in runs if run.attention == "dot"} == {"default", "normal"}
        imitating = [run for run in runs if run.variant == "adversary"]
        assert len({run.option("lambda") for run in imitating}) == 4 and {run.seed for run in imitating} == {0}
    assert str(variant("tying", delta=5.0)).startswith("planted bilstm additive tying delta 5.0 ")
