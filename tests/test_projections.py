"""From scores to attention: nearest points of the simplex, exact zeros, gradients right through padding and ties."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

from lib.projections import Entmax, projection

NAMES = ("softmax", "sparsemax", "uniform", "sparsegen:-3", "sparsegen:0.5", "entmax:1.25", "entmax:1.5", "entmax:3")


def made(name: str):
    found = projection(name)
    return found.double() if isinstance(found, nn.Module) else found


def rows(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores with ties, and a mask with holes, one token alone and none left out."""
    torch.manual_seed(seed)
    scores = torch.randn(4, 6, dtype=torch.float64)
    scores[2, :3] = 0.7
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [0, 1, 1, 0, 1, 0], [1, 1, 1, 1, 0, 0], [0, 0, 1, 0, 0, 0]]).bool()
    return scores, mask


@pytest.mark.parametrize("name", [*NAMES, "entmax:learned"])
def test_rows_sum_to_one_and_padding_changes_nothing(name):
    scores, mask = rows()
    attention = made(name)(scores, mask)
    torch.testing.assert_close(attention.sum(dim=-1), torch.ones(4, dtype=torch.float64))
    assert (attention[~mask] == 0).all() and (attention >= 0).all()
    for row in range(4):
        alone = made(name)(scores[row, mask[row]][None], torch.ones(1, int(mask[row].sum()), dtype=torch.bool))
        torch.testing.assert_close(attention[row, mask[row]], alone[0])
    assert torch.equal(made(name)(scores.masked_fill(~mask, 1e6), mask), attention)
    with pytest.raises(ValueError, match="row 1 of the mask is empty"):
        made(name)(scores, mask & (torch.arange(4) != 1)[:, None])


def simplex(steps: int) -> torch.Tensor:
    """All points of the simplex of three tokens whose weights are multiples of 1 / steps."""
    points = [(i, j, steps - i - j) for i, j in product(range(steps + 1), repeat=2) if i + j <= steps]
    return torch.tensor(points, dtype=torch.float64) / steps


def objective(name: str, p: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """What the projection of the scores makes largest of all points p (point, token) of the simplex: (point,)."""
    kind, _, number = name.partition(":")
    if kind == "entmax":  # p . scores + Tsallis' entropy
        alpha = float(number)
        return p @ scores + (p - p**alpha).sum(dim=1) / (alpha * (alpha - 1))
    return float(number or 0) * p.square().sum(dim=1) - (p - scores).square().sum(dim=1)


@pytest.mark.parametrize("name", ["sparsemax", "sparsegen:-3", "sparsegen:0.75", *NAMES[-3:]])
def test_a_projection_is_the_best_point_of_the_simplex(name):
    grid, mask = simplex(200), torch.ones(1, 3, dtype=torch.bool)
    for scores in torch.from_numpy(np.random.default_rng(0).normal(size=(20, 3))):
        found, values = made(name)(scores[None], mask), objective(name, grid, scores)
        assert objective(name, found, scores) >= values.max() - 1e-12
        torch.testing.assert_close(found[0], grid[values.argmax()], atol=0.006, rtol=0)


def test_the_ends_of_the_spectrum():
    scores, mask = rows()
    scores[2, 1] += 0.1  # no tie
    assert torch.equal(made("sparsegen:0")(scores, mask), made("sparsemax")(scores, mask))
    best = scores.masked_fill(~mask, -torch.inf).argmax(dim=-1)
    assert torch.equal(made("sparsegen:0.9999")(scores, mask), nn.functional.one_hot(best, 6).double())
    torch.testing.assert_close(made("sparsegen:-1e7")(scores, mask), made("uniform")(scores, mask), atol=1e-6, rtol=0)
    for name, same in (("entmax:1", "softmax"), ("entmax:2", "sparsemax")):
        assert torch.equal(made(name)(scores, mask), made(same)(scores, mask))
    torch.testing.assert_close(made("entmax:1.0001")(scores, mask), made("softmax")(scores, mask), atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "uniform"])
def test_gradients_are_right_through_padding_and_ties(name):
    scores, mask = rows()
    # where a score stands exactly at the threshold there is a corner; ties above it are smooth
    function = made(name)
    assert torch.autograd.gradcheck(lambda x: function(x, mask), (scores.requires_grad_(),))
    (gradient,) = torch.autograd.grad(function(scores, mask).square().sum(), scores)
    assert (gradient[~mask] == 0).all() and gradient.isfinite().all()


def test_a_learned_alpha_has_the_gradient_of_its_value():
    (scores, mask), learned = rows(), Entmax("learned").double()
    assert learned.alpha == 1.5
    position = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    call = torch.func.functional_call
    assert torch.autograd.gradcheck(lambda at: call(learned, {"position": at}, (scores, mask)), position)


def test_a_wrong_name_is_refused_with_what_is_allowed():
    for name, message in (("sofmax", "known: softmax, sparsemax, uniform, sparsegen:NUMBER"), ("sparsegen", "learned")):
        with pytest.raises(KeyError, match=message):
            projection(name)
    for name, message in (("sparsegen:1", "below 1"), ("entmax:0.5", "from 1 up, or learned"), ("entmax:many", "many")):
        with pytest.raises(ValueError, match=message):
            projection(name)
