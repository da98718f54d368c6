"""Distances, entropy and Kendall's tau-b against SciPy."""

import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy as scipy_entropy
from scipy.stats import kendalltau

from lib import metrics


def distributions(rows=40, tokens=9, seed=0):
    """Random rows with exact zeros and very unequal values, and their mask: two rows of one token among them."""
    generator = torch.Generator().manual_seed(seed)
    count = torch.randint(1, tokens + 1, (rows,), generator=generator)
    count[:2] = 1
    mask = torch.arange(tokens) < count[:, None]
    values = torch.rand(rows, tokens, generator=generator, dtype=torch.float64) ** 12 * mask
    values[rows // 2 :] *= torch.rand(rows - rows // 2, tokens, generator=generator) > 0.4
    values[:, 0] += 1e-9
    return values / values.sum(dim=-1, keepdim=True), mask


def test_jensen_shannon_is_scipys_squared_and_keeps_its_digits_where_they_are_nearly_equal():
    p, q = distributions(seed=1)[0], distributions(seed=2)[0]
    expected = jensenshannon(p.numpy(), q.numpy(), axis=-1) ** 2
    np.testing.assert_allclose(metrics.jensen_shannon(p, q), expected, atol=1e-12)
    assert (metrics.jensen_shannon(p, p) == 0).all()
    apart = metrics.jensen_shannon(torch.tensor([1.0, 0, 0]), torch.tensor([0, 0.25, 0.75]))
    assert apart == pytest.approx(math.log(2))
    p, step = torch.tensor([[0.25, 0.75], [1e-7, -1e-7]], dtype=torch.float64)
    assert float(metrics.jensen_shannon(p, p + step)) == pytest.approx((1e-14 / p).sum().item() / 8, rel=1e-5)


def test_jensen_shannon_passes_gradcheck_with_padding():
    scores = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mask = torch.arange(6) < torch.tensor([[6], [4], [2], [1]])

    def distance(first, second):
        p, q = (torch.softmax(s.masked_fill(~mask, -torch.inf), dim=-1) for s in (first, second))
        return metrics.jensen_shannon(p, q)

    assert torch.autograd.gradcheck(distance, [s.clone().requires_grad_() for s in scores])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_finite_at_zeros_and_subnormal_values(dtype):
    smallest = torch.finfo(dtype).tiny / 8
    p = torch.tensor([[0, 1, 0, smallest, 0.0]], dtype=dtype, requires_grad=True)
    q = torch.tensor([[0, 0, 1, smallest, smallest]], dtype=dtype, requires_grad=True)
    metrics.jensen_shannon(p, q).sum().backward()
    assert p.grad.isfinite().all() and q.grad.isfinite().all()


def test_one_sigmoid_output_is_a_distribution_over_two_classes():
    logits = torch.tensor([[-800.0], [0.3], [800.0]], dtype=torch.float64)
    chances = metrics.probabilities(logits)
    assert torch.equal(chances[:, 1], logits[:, 0].sigmoid())
    assert torch.allclose(chances.sum(dim=-1), torch.ones(3, dtype=torch.float64))
    assert torch.allclose(metrics.total_variation(chances[:1], chances), (chances[:, 1] - chances[0, 1]).abs())


def test_entropy_is_scipys_and_normalised_by_the_real_tokens():
    p, mask = distributions()
    share, count = metrics.normalized_entropy(p, mask), mask.sum(dim=-1)
    assert torch.equal(share.isnan(), count == 1)
    expected = scipy_entropy(p.numpy(), axis=-1)[count > 1] / np.log(count[count > 1].numpy())
    np.testing.assert_allclose(share[count > 1], expected, atol=1e-12)
    assert torch.allclose(metrics.normalized_entropy(mask / count[:, None], mask)[count > 1], torch.tensor(1.0))


def values(kind: str, seed=0):
    """Rows of 0 to 60 tokens and two of 512 and 1025, at random places of a wider tensor; infinities among them."""
    generator = torch.Generator().manual_seed(seed)
    count = torch.cat([torch.arange(61), torch.randint(1, 60, (200,), generator=generator), torch.tensor([512, 1025])])
    start = torch.randint(0, 5, (len(count), 1), generator=generator)
    place = torch.arange(1030)
    mask = (place >= start) & (place < start + count[:, None])
    x, y = torch.rand(2, len(count), 1030, generator=generator, dtype=torch.float64)
    if kind == "ties":
        x, y = (x * 5).floor(), (y * 9).floor()
    if kind == "half":
        x[:, ::2], x[:, ::4] = 0, -0.0  # equal, and in one measure only
    if kind == "same":
        y = x.clone()
        y[::2] *= -1
        y[::3, 7:9] = y[::3, 7:9].flip(1)  # and a pair or two out of order
        y[::5, 6:9:2] = torch.inf
    return x, y, mask


@pytest.mark.parametrize("kind", ["plain", "ties", "half", "same"])
@pytest.mark.filterwarnings("ignore:One or more sample arguments is too small")
def test_tau_and_p_value_are_scipys(kind):
    x, y, mask = values(kind)
    expected = np.array([tuple(kendalltau(a[m].numpy(), b[m].numpy())) for a, b, m in zip(x, y, mask, strict=True)])
    tau, p_value = metrics.kendall_tau(x, y, mask)
    np.testing.assert_allclose(tau, expected[:, 0], atol=1e-12)
    np.testing.assert_allclose(p_value, expected[:, 1], atol=1e-12)


def test_tau_is_undefined_for_constants_one_token_and_nan_and_refuses_other_shapes():
    x = torch.tensor([[1.0, 2, 3], [1, 1, 1], [1, 2, 3], [1, 2, torch.nan], [1, 2, torch.nan]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 1], [1, 0, 0], [1, 1, 1], [1, 1, 0]]).bool()
    tau, p_value = metrics.kendall_tau(x, x[:1].expand(5, 3), mask)
    assert tau.isnan().tolist() == p_value.isnan().tolist() == [False, True, True, True, False]
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(2, 4\)"):
        metrics.kendall_tau(torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(2, 4).bool())
