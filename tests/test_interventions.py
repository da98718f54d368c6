"""Permuted, uniform and adversarial attention against enumeration, grids and other searches."""

import sys
from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kendalltau
from small import NotAffine, batch, model

from lib import interventions
from lib.analysis import violation_by_chance
from lib.datasets.batches import Batch
from lib.importance import gradient_times_input
from lib.interventions import searched_adversary
from lib.interventions.adversary import exact_adversary, exact_adversary_definition
from lib.interventions.searched_adversary import searched_adversary_definition
from lib.metrics import jensen_shannon, probabilities, total_variation
from lib.numerics import rows_of
from lib.random_streams import orders, streams

LENGTHS = (5, 1, 2, 3, 12, 7, 1, 4)


def case(lengths=LENGTHS, outputs=1, seed=0, spread=4.0):
    """A model whose predictions depend on the attention, a batch, and its output."""
    tested, given = model(outputs=outputs, seed=seed), batch(lengths, seed)
    with torch.no_grad():
        tested.decoder.weight.mul_(spread)
        return tested, given, tested(given)


def moved(tested, output, attention):
    return total_variation(probabilities(tested.read_out(output, attention)), probabilities(output.logits))


@pytest.mark.parametrize("tokens", [3, 4])
def test_permutations_are_uniform_over_all_orders(tokens):
    drawn = orders(streams(0, 20), 1200, np.tile(np.arange(6) < tokens, (20, 1)))
    assert (drawn[:, :, tokens:] == np.arange(tokens, 6)).all()
    _, counts = np.unique(drawn[:, :, :tokens].reshape(-1, tokens), axis=0, return_counts=True)
    assert len(counts) == np.prod(np.arange(1, tokens + 1)) and chisquare(counts).pvalue > 0.001
    _, counts = np.unique(drawn[:, 0, 0] * 10 + drawn[:, 1, 0], return_counts=True)
    assert len(counts) > tokens  # draws and instances differ


@pytest.mark.parametrize("tokens", [255, 256, 257, 900])
def test_orders_of_many_tokens_are_orders_and_uniform(tokens):
    """Keys of 32 bits and of 64 bits: each token once, and equally often at every place."""
    drawn = orders(streams(0, 2), 2000, np.ones((2, tokens), dtype=bool))
    assert (np.sort(drawn) == np.arange(tokens)).all()
    for place in (0, tokens // 2, tokens - 1):
        expected = np.bincount(np.arange(tokens) * 10 // tokens) * 4000 / tokens
        assert chisquare(np.bincount(drawn[:, :, place].ravel() * 10 // tokens), expected).pvalue > 0.001
    assert abs(np.corrcoef(drawn[0, :, 0], drawn[0, :, 1])[0, 1]) < 0.1


def test_a_text_has_the_same_orders_in_any_batch():
    lengths = np.array([3, 20, 129, 256, 257])
    together = orders(streams(0, 5), 50, np.arange(300) < lengths[:, None])
    for row, length in enumerate(lengths):
        alone = orders(streams(0, 1, torch.tensor([row])), 50, np.ones((1, length), dtype=bool))
        assert (together[row, :, :length] == alone[0]).all()
        assert (together[row, :, length:] == np.arange(length, 300)).all()


def test_permuted_logits_are_those_of_permuted_attention():
    tested, _, output = case((3, 5), outputs=2)
    weights = interventions.permuted_attention(output.attention, output.mask, 400)
    assert torch.equal(weights.sort().values, output.attention[:, None].sort().values.expand_as(weights))
    assert not weights.masked_fill(output.mask[:, None], 0).any()
    assert len(weights[0].unique(dim=0)) == 6 and len(weights[1].unique(dim=0)) > 0.9 * 120
    assert torch.allclose(interventions.permuted(tested, output, 400), tested.read_out(output, weights), atol=1e-12)


def test_the_seed_and_the_instance_decide_a_permutation_and_the_batch_does_not():
    tested, given, output = case()
    first = interventions.permuted(tested, output, 20, seed=1)
    assert torch.equal(first, interventions.permuted(tested, output, 20, seed=1))
    assert not torch.equal(first[0], interventions.permuted(tested, output, 20, seed=2)[0])
    rows = torch.tensor([5, 3])
    alone = interventions.permuted(tested, rows_of(output, rows), 20, seed=1, instance=rows)
    assert torch.allclose(alone, first[rows], atol=1e-12)
    effect = interventions.permutation_effect(20, seed=1)
    expected = np.median(total_variation(probabilities(first), probabilities(output.logits)[:, None]).numpy(), axis=-1)
    np.testing.assert_allclose(effect(tested, given, output), expected, atol=1e-12)
    part = given.rows(rows)
    np.testing.assert_allclose(effect(tested, part, tested(part)), expected[rows])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("epsilon", [0.01, 0.1])
def test_no_grid_point_beats_the_exact_adversary(seed, epsilon):
    tested, _, output = case((3,), seed=seed)
    _, jsd = interventions.adversarial_attention(tested, output, epsilon)
    step = torch.linspace(0, 1, 401, dtype=torch.float64)
    first, second = (part.flatten() for part in torch.meshgrid(step, step, indexing="ij"))
    grid = torch.stack([first * 0, first, second, 1 - first - second, first * 0], dim=-1)[first + second <= 1]
    allowed = moved(tested, rows_of(output, torch.zeros(len(grid)).long()), grid) <= epsilon
    assert -1e-12 < jsd - jensen_shannon(grid[allowed], output.attention).max() < 0.03, "and the grid comes close"


@pytest.mark.parametrize("epsilon", [0.0, 0.02, 0.3, 1.0])
def test_the_exact_adversary_is_its_definition(epsilon, monkeypatch):
    tested, given, output = case()
    quantity = interventions.adversary(epsilon, with_attention=True)(tested, given, output)
    found, jsd = quantity["attention"], quantity["jsd"]
    assert (quantity["tvd"] <= epsilon + 1e-9).all()
    assert torch.allclose(found.sum(dim=-1), torch.ones(8).double())
    assert torch.equal(found[[1, 6]], output.attention[[1, 6]]), "one token"
    expected = exact_adversary_definition(tested, output, epsilon)
    assert torch.allclose(jsd, jensen_shannon(expected, output.attention), atol=1e-9, rtol=0)
    assert torch.allclose(found, expected, atol=1e-7, rtol=0)
    monkeypatch.setattr(sys.modules[exact_adversary.__module__], "PAIRS_AT_ONCE", 7)
    again, _ = interventions.adversarial_attention(tested, output, epsilon)
    assert torch.allclose(again, found, atol=1e-9, rtol=0), "in small pieces"


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("restarts", [1, 4, 5])
def test_the_search_is_its_definition(outputs, restarts, monkeypatch):
    tested, _, output = case((4, 9, 1, 2), outputs)
    options = {"restarts": restarts, "steps": 60}
    expected = searched_adversary_definition(tested, output, 0.02, streams(3, 4), **options)
    for read_by, cells in product((tested, NotAffine(tested)), (searched_adversary.CELLS, 60)):
        monkeypatch.setattr(searched_adversary, "CELLS", cells)
        found, _ = interventions.adversarial_attention(read_by, output, 0.02, "gradient", seed=3, **options)
        assert torch.allclose(found, expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("epsilon", [0.01, 0.05])
def test_the_search_stays_within_epsilon_and_below_the_optimum(outputs, epsilon):
    tested, _, output = case((2, 3, 5, 8, 12, 20, 1), outputs)
    attention, jsd = interventions.adversarial_attention(tested, output, epsilon, "gradient")
    assert (moved(tested, output, attention) <= epsilon + 1e-12).all()
    assert (attention[~output.mask] == 0).all() and jsd[:-1].max() > 0.3
    if outputs == 1:
        optimum = interventions.adversarial_attention(tested, output, epsilon)[1]
        assert (jsd <= optimum + 1e-12).all() and (optimum - jsd).mean() < 0.15


def test_the_search_honours_its_seed_and_not_its_batch():
    tested, _, output = case()
    rows, of = torch.tensor([5, 3]), {"epsilon": 0.05, "method": "gradient", "restarts": 2, "steps": 40}
    search = interventions.adversarial_attention
    first, again, other = (search(tested, output, seed=s, **of)[0] for s in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert torch.allclose(search(tested, rows_of(output, rows), seed=1, instance=rows, **of)[0], first[rows], atol=1e-9)


def test_the_largest_divergence_is_that_of_the_least_token():
    tested, given, output = case()
    found = interventions.largest_jsd()(tested, given, output)
    for row, mask in enumerate(output.mask):
        own, tokens = output.attention[row, mask], int(mask.sum())
        random = torch.distributions.Dirichlet(torch.full((tokens,), 0.1)).sample((500,)).double()
        others = torch.cat([torch.eye(tokens).double(), random])
        assert found[row] == pytest.approx(jensen_shannon(others, own).max().item(), abs=1e-12)


def test_the_adversary_by_chance_is_that_of_shuffled_weights_imposed():
    tested, given, output = case((5, 6, 1))
    by_chance, rows = interventions.adversary_by_chance(0.05, draws=3, seed=1), torch.tensor([1])
    imposed = interventions.permuted_attention(output.attention, output.mask, 3, 1).unbind(dim=1)
    others = [tested(given, attention=weights) for weights in imposed]
    expected = sum(interventions.adversarial_attention(tested, other, 0.05)[1] for other in others) / 3
    assert torch.allclose(by_chance(tested, given, output), expected, atol=1e-9, rtol=0)
    assert expected[:2].min() > 0 and expected[2] == 0, "one token"
    alone = by_chance(tested, given.rows(rows), tested(given.rows(rows)))
    assert alone == pytest.approx(expected[1].item()), "and the batch does not"


@pytest.mark.parametrize("outputs", [1, 3])
def test_permuting_by_chance_is_permuting_attention_that_was_shuffled_before(outputs):
    tested, given, output = case((5, 1, 7), outputs)
    found = interventions.permutation_share_by_chance(9, seed=1, placed=2)(tested, given, output)
    weights = interventions.permuted_attention(output.attention, output.mask, 9, 1)
    for row in (0, 2):
        text, shares = given.rows(torch.tensor([row])), []
        for base in range(2):
            shuffled = tested(text, attention=weights[row, base, None, : text.tokens.shape[1]])
            others = [weights[row, o, None, : text.tokens.shape[1]] for o in range(9) if o != base]
            most = interventions.largest_change()(tested, text, shuffled)
            shares.append(np.median([moved(tested, shuffled, other).item() for other in others]) / most.item())
        assert found[row].item() == pytest.approx(np.mean(shares), abs=1e-9)
    assert torch.isnan(found[1]), "one token: nothing changes anything"


def test_attention_by_chance_agrees_with_the_gradient_that_has_its_weights_as_a_factor():
    """In an average encoder |g x| of a token is its weight times what its own state does: SciPy's tau of the two."""
    tested, given = model("average"), batch(LENGTHS)
    with torch.no_grad():
        output = tested(given)
        weights = interventions.permuted_attention(output.attention, output.mask, 1, 3)[:, 0]
    found = interventions.agreement_by_chance(gradient_times_input, seed=3)(tested, given, output)
    assert torch.isnan(found[[1, 6]]).all(), "one token"
    embedded = output.embeddings.clone().requires_grad_()
    tested.from_embeddings(embedded, given, attention=weights).logits.sigmoid().sum().backward()
    products = (embedded.grad * embedded).sum(dim=-1).abs().detach()
    for row in (0, 2, 3, 4, 5, 7):
        tau = kendalltau(weights[row, output.mask[row]], products[row, output.mask[row]]).statistic
        assert found[row].item() == pytest.approx(tau, abs=1e-9)


@pytest.mark.parametrize(("outputs", "name"), [(1, "softmax"), (3, "softmax"), (3, "sparsegen:0.999")])
def test_violations_by_chance_are_those_of_texts_that_are_read_by_shuffled_attention(outputs, name):
    tested, given = model("bilstm", outputs=outputs, projection_name=name), batch(LENGTHS)
    with torch.no_grad():
        tested.decoder.weight.mul_(8)
        output = tested(given)
    found = violation_by_chance(seed=3, placed=4)(tested, given, output)
    orders = interventions.permuted_attention(output.attention, output.mask, 8, 3)
    assert (found[[1, 6]] == 0).all() and len(found.unique()) > 2
    for row in (0, 2, 3, 4, 5, 7):
        text, mask, gaps = given.rows(torch.tensor([row])), output.mask[row], []
        width = text.tokens.shape[1]
        for weights, others in zip(orders[row, :4, :width], orders[row, 4:, :width], strict=True):
            before = probabilities(tested(text, attention=weights[None]).logits.double())[0]
            falls = []
            for place in (others.argmax(), weights.argmax()):
                kept = torch.arange(width) != place
                shorter = Batch.of(text.tokens[:, kept], text.lengths - 1, text.label, text.instance)
                rest = weights[kept] if weights[kept].any() else mask[:width][kept].to(weights)  # one-hot: equal ones
                after = probabilities(tested(shorter, attention=(rest / rest.sum())[None]).logits.double())[0]
                falls.append((before - after)[before.argmax()] < 0)
            gaps.append(float(falls[0]) - float(falls[1]))
        assert found[row].item() == pytest.approx(np.mean(gaps)), mask


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_largest_change_is_that_of_one_token_alone(outputs):
    tested, given, output = case(outputs=outputs)
    found = interventions.largest_change()(tested, given, output)
    for row, mask in enumerate(output.mask):
        alone = torch.zeros(int(mask.sum()), len(mask)).double()
        alone[torch.arange(len(alone)), mask.nonzero()[:, 0]] = 1
        one = rows_of(output, torch.full((len(alone),), row))
        assert found[row] == pytest.approx(moved(tested, one, alone).max().item())


def test_what_is_not_there_is_refused():
    tested, _, output = case(outputs=3)
    for given, said in (((0.1,), "two classes"), ((0.1, "best"), "exact, gradient"), ((-0.1, "gradient"), "-0.1")):
        with pytest.raises(ValueError, match=said):
            interventions.adversarial_attention(tested, output, *given)
