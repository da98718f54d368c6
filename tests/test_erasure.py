"""Erasure at the attention layer against passes of the decoder, one for each set of items."""

from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from small import NotAffine, batch, model

from lib.importance.rankings import RANKINGS
from lib.interventions import erasure
from lib.interventions.erasure import random_rankings, until_flip
from lib.interventions.single_erasure import another_item, logits_without_each_item, single_erasure
from lib.metrics import jensen_shannon, probabilities

LENGTHS = (5, 1, 2, 7, 9, 4, 3)
CASES = [(1, "softmax"), (3, "softmax"), (5, "sparsemax"), (1, "entmax:1.5"), (2, "softmax")]
CASES = pytest.mark.parametrize(("outputs", "projection"), CASES)


def some(outputs: int, projection: str, seed: int = 0):
    tested = model("average", outputs=outputs, projection_name=projection, seed=seed)
    with torch.no_grad():
        tested.decoder.bias.mul_(3)
    given = batch(LENGTHS, seed)
    return tested, given, tested(given)


def decided(tested, output, row: int, erased: set[int]) -> tuple[int, torch.Tensor]:
    """The decision and the logits of one text by the decoder itself, with items erased and the rest renormalised."""
    attention = output.attention[row].clone()
    attention[list(erased)] = 0
    total = attention.sum()
    attention = attention / total if total > 0 else attention
    logits = tested.decode(attention[None], output.hidden[row][None])
    return int(probabilities(logits).argmax()), logits[0]


def items_of(given, row: int) -> list[int]:
    return given.mask[row].nonzero().squeeze(-1).tolist()


@CASES
@pytest.mark.parametrize("kind", ["attention", "random", "ties"])
@torch.no_grad()
def test_erasing_from_the_top_is_one_decoder_pass_an_item(outputs, projection, kind):
    tested, given, output = some(outputs, projection, seed=3)
    generator = torch.Generator().manual_seed(1)
    rankings = {"attention": output.attention, "random": torch.rand(given.mask.shape, generator=generator)}
    rankings["ties"] = (rankings["random"] * 3).round()
    found = erasure.erase_until_flip(tested, output, rankings[kind])
    for row in range(len(given)):
        items, erased = items_of(given, row), set()
        first, count, mass = decided(tested, output, row, set())[0], None, 0.0
        for place in sorted(items, key=lambda i, r=row: -rankings[kind][r, i].item()):
            erased.add(place)
            mass += output.attention[row, place].item()
            if decided(tested, output, row, erased)[0] != first:
                count = len(erased)
                break
        assert bool(found.flipped[row]) == (count is not None)
        if count is None:
            assert all(part[row].isnan() for part in (found.count, found.fraction, found.mass))
        else:
            got = found.count[row].item(), found.fraction[row].item(), found.mass[row].item()
            assert got == pytest.approx((count, count / len(items), mass), abs=1e-12)


@CASES
@pytest.mark.parametrize("seed", [0, 3])
@torch.no_grad()
def test_the_fewest_items_are_those_of_all_subsets(outputs, projection, seed):
    tested, given, output = some(outputs, projection, seed)
    found = erasure.fewest_to_flip(tested, output)
    ranked = erasure.erase_until_flip(tested, output, output.attention)
    for row in range(len(given)):
        items, first = items_of(given, row), decided(tested, output, row, set())[0]
        sets = (set(some) for size in range(1, len(items) + 1) for some in combinations(items, size))
        fewest = next((len(some) for some in sets if decided(tested, output, row, some)[0] != first), None)
        assert bool(found.flipped[row]) == (fewest is not None)
        if fewest is not None:
            erased = set(found.erased[row].nonzero().squeeze(-1).tolist())
            assert found.count[row] == fewest == len(erased) and erased <= set(items)
            assert decided(tested, output, row, erased)[0] != first, "these are such items"
            assert not ranked.flipped[row] or found.count[row] <= ranked.count[row]


def fewest_in_fractions(weights: list, terms: list, bias: list) -> int | None:
    """The size of the smallest set whose erasure changes the decision, of all sets, without rounding."""

    def decision(erased: tuple) -> int:
        left = [item for item in range(len(weights)) if item not in erased]
        total = sum(weights[item] for item in left)
        sums = [sum(weights[i] * terms[i][c] for i in left) / total if total else 0 for c in range(len(bias))]
        logits = [one + other for one, other in zip(sums, bias, strict=True)]
        return logits.index(max(logits))

    sets = (some for size in range(1, len(weights) + 1) for some in combinations(range(len(weights)), size))
    return next((len(some) for some in sets if decision(some) != decision(())), None)


def fewest(weights: list, terms: list, bias: list) -> int | None:
    """`fewest_to_flip` of one text."""
    attention = torch.tensor([[float(one) for one in weights]], dtype=torch.float64)
    output = SimpleNamespace(attention=attention, mask=attention >= 0)
    affine = torch.tensor(terms)[None].double(), torch.tensor(bias).double()
    found = erasure.fewest_to_flip(SimpleNamespace(token_logits=lambda output: affine), output)
    return int(found.count[0]) if found.flipped[0] else None


def test_an_item_without_weight_need_not_be_erased():
    assert fewest([0, 1], [[0, -2], [2, 0]], [-3, -1]) == 1  # without the second item nothing is left
    assert fewest([0, 0.5, 0.5], [[5, 0], [1, 0], [1, 0]], [0, 1]) == 2


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("kind", ["zero", "equal", "any"])
def test_the_fewest_are_exact_at_ties(classes, kind):
    random, ties = np.random.default_rng(classes), 0
    for _ in range(150):
        items = int(random.integers(1, 6))
        drawn = {"zero": random.integers(0, 3, items), "equal": np.ones(items), "any": random.integers(1, 9, items)}
        shares = [Fraction(int(one)) for one in drawn[kind]]
        shares = [one / sum(shares) for one in shares] if sum(shares) else [Fraction(1), *shares[1:]]
        terms, bias = random.integers(-2, 3, (items, classes)), random.integers(-1, 2, classes)
        expected = fewest_in_fractions(shares, terms.tolist(), bias.tolist())
        assert fewest(shares, terms.tolist(), bias.tolist()) == expected, (shares, terms, bias)
        pairs = [*zip(shares, terms.tolist(), strict=True)]
        whole = [sum(one * row[c] for one, row in pairs) + int(bias[c]) for c in range(classes)]
        ties += whole.count(max(whole)) > 1
    assert ties > 5


@CASES
@torch.no_grad()
def test_sums_are_a_read_out_for_each_step(outputs, projection):
    """The second by the same model without its tokens' logits."""
    tested, given, output = some(outputs, projection, seed=3)
    order = erasure.descending(torch.rand(given.mask.shape, generator=torch.Generator().manual_seed(1)), given.mask)
    by_sums, one_by_one = (erasure.logits_along(one, output, order) for one in (tested, NotAffine(tested)))
    torch.testing.assert_close(by_sums, one_by_one, atol=1e-9, rtol=0)
    by_sums, one_by_one = (logits_without_each_item(one, output) for one in (tested, NotAffine(tested)))
    torch.testing.assert_close(by_sums, one_by_one, atol=1e-9, rtol=0)


@pytest.mark.parametrize("rest", [1e-7, 1e-12, 0.0])
@torch.no_grad()
def test_nearly_all_weight_on_one_item(rest):
    tested, given, _ = some(3, "softmax")
    attention, row = given.mask * rest, 4
    attention[:, 1] = 1 - attention[:, 2:].sum(dim=1)
    output = tested(given, attention=attention.double())
    equal = given.mask[row].double() / (LENGTHS[row] - 1)
    equal[1] = 0
    expected = tested.decode(equal[None], output.hidden[row][None])[0] if rest else tested.decoder.bias
    assert torch.allclose(logits_without_each_item(tested, output)[row, 1], expected, atol=1e-9, rtol=0)


def test_what_cannot_be_erased_is_refused():
    tested, _, output = some(1, "softmax")
    ranking = output.attention.detach().clone()
    ranking[3, 2] = torch.nan
    with pytest.raises(ValueError, match="row 3"):
        erasure.erase_until_flip(tested, output, ranking)
    tested.token_logits = lambda output: None
    with pytest.raises(ValueError, match="affine"):
        erasure.fewest_to_flip(tested, output)


@CASES
def test_the_gradient_of_weights_is_autograds(outputs, projection):
    tested, given, output = some(outputs, projection)
    attention, mask = output.attention.detach().clone().requires_grad_(), given.mask
    chances = probabilities(tested.decode(attention, output.hidden.detach()))
    (expected,) = torch.autograd.grad(chances.amax(dim=-1).sum(), attention)
    assert torch.allclose(RANKINGS["gradient"](tested, output)[mask], expected[mask], atol=1e-12)
    assert torch.allclose(RANKINGS["product"](tested, output)[mask], (expected * output.attention)[mask], atol=1e-12)


@CASES
@torch.no_grad()
def test_one_item_against_the_others_by_hand(outputs, projection):
    tested, given, output = some(outputs, projection, seed=3)
    found = single_erasure({"attention": RANKINGS["attention"]})(tested, given, output)
    for row in range(len(given)):
        items = items_of(given, row)
        if len(items) == 1:
            assert all(value[row].isnan() for value in found.values())
            continue
        first, own = decided(tested, output, row, set())
        top = max(items, key=lambda place, r=row: output.attention[r, place].item())
        js, flip = {}, {}
        for place in items:
            decision, logits = decided(tested, output, row, {place})
            js[place] = jensen_shannon(probabilities(own[None]), probabilities(logits[None])).item()
            flip[place] = float(decision != first)
        others = [place for place in items if place != top]
        expected = {"js": js[top], "flip": flip[top], "negative": np.mean([js[place] > js[top] for place in others])}
        expected |= {f"others_{of}": np.mean([each[p] for p in others]) for of, each in (("js", js), ("flip", flip))}
        weight = torch.cat([0 * tested.decoder.weight, tested.decoder.weight])[-max(outputs, 2) :]
        rest = [weight[k] for k in range(len(weight)) if k != first]
        lead = output.hidden[row] @ (weight[first] - sum(rest) / len(rest))
        ahead = [(lead[top] - lead[place]).item() for place in others]
        expected["support"] = np.mean([0.5 if abs(by) < 1e-12 else by > 0 for by in ahead])
        for name, value in expected.items():
            assert found[f"attention_{name}"][row].item() == pytest.approx(value, abs=1e-9), name
        assert found["largest_js"][row].item() == pytest.approx(max(js.values()), abs=1e-9)
        drawn = {way: found[f"attention_{way}_delta_js"][row].item() for way in ("paper", "authors_code")}
        assert min(abs(drawn["paper"] - (js[top] - js[place])) for place in others) < 1e-9
        assert min(abs(drawn["authors_code"] - (js[top] - js[place])) for place in items[1:]) < 1e-9


def test_drawn_items_are_spread_as_each_way_says_and_depend_on_seed_and_text_alone():
    tested, given = model("average", outputs=3), batch((5,) * 400, seed=1)
    output = tested(given)
    drawn = torch.rand(400, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    places = another_item(drawn, torch.full((400,), 3), given.mask)
    of_paper, of_code = (torch.bincount(place, minlength=7) for place in places)
    assert of_paper.nonzero()[:, 0].tolist() == [1, 2, 4, 5] and of_paper[of_paper > 0].min() > 70
    assert of_code.nonzero()[:, 0].tolist() == [2, 3, 4, 5] and of_code[of_code > 0].min() > 70
    of = {"attention": RANKINGS["attention"]}
    whole, name = single_erasure(of, seed=5)(tested, given, output), "attention_paper_delta_js"
    some_rows = torch.tensor([7, 300, 11])
    part = given.rows(some_rows)
    assert torch.allclose(single_erasure(of, seed=5)(tested, part, tested(part))[name], whole[name][some_rows])
    assert not torch.equal(single_erasure(of, seed=6)(tested, given, output)[name], whole[name])


@torch.no_grad()
def test_along_every_ranking_at_once():
    tested, given = model("average", outputs=3), batch(LENGTHS)
    output = tested(given)
    found = until_flip(RANKINGS, orders=3, seed=4)(tested, given, output)
    several = torch.tensor(LENGTHS) > 1
    assert found["items"].tolist() == [*map(float, LENGTHS)]
    for name, ranking in RANKINGS.items():
        alone = erasure.erase_until_flip(tested, output, ranking(tested, output))
        for part in ("count", "fraction", "mass"):
            expected = getattr(alone, part).masked_fill(~several, torch.nan)
            assert torch.equal(found[f"{name}_{part}"].nan_to_num(-1), expected.nan_to_num(-1))
    fewest = erasure.fewest_to_flip(tested, output).count
    assert torch.equal(found["fewest_count"][several].nan_to_num(-1), fewest[several].nan_to_num(-1))
    part = given.rows(torch.tensor([4, 0]))  # the same orders in another batch
    again = until_flip(RANKINGS, orders=3, seed=4)(tested, part, tested(part))
    for name in found:
        assert torch.allclose(again[name].nan_to_num(-1), found[name][[4, 0]].nan_to_num(-1)), name


def test_random_orders_are_uniform():
    given = batch((3,) * 3000)
    rankings = random_rankings(given, model("average")(given), 2, seed=0)
    places = [ranking[:, 1:4].argsort(dim=1) for ranking in rankings]
    numbers = [(order * torch.tensor([9, 3, 1])).sum(dim=1) for order in places]
    counts = torch.stack([torch.bincount(number, minlength=27)[[5, 7, 11, 15, 19, 21]] for number in numbers])
    assert counts.sum(dim=1).tolist() == [3000, 3000] and (counts - 500).abs().max() < 100
    assert (numbers[0] == numbers[1]).double().mean() < 0.25  # a sixth by chance
