"""exp, log and tanh are torch's, whichever library computes them."""

import pytest
import torch

from lib import numerics as elementwise

NAMES = ("exp", "log", "tanh")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", (torch.float16, torch.float32, torch.float64))
def test_each_is_torchs_of_any_shape_and_in_place(name, kind):
    torch.manual_seed(0)
    values = (4 * torch.randn(3, 40, 7, dtype=torch.float64)).abs().to(kind).transpose(0, 2)[:, ::3]
    expected = getattr(torch, name)(values)
    bound = {"rtol": 4 * torch.finfo(kind).eps, "atol": 0.0}
    torch.testing.assert_close(getattr(elementwise, name)(values), expected, **bound)
    assert getattr(elementwise, name)(values, out=values) is values
    torch.testing.assert_close(values, expected, **bound)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", NAMES)
def test_infinities_and_what_is_not_defined_are_torchs_and_nothing_is_said(name):
    values = torch.tensor([0.0, -0.0, -1.0, torch.inf, -torch.inf, torch.nan, 1e-42, 1000.0])
    found = getattr(elementwise, name)(values)
    torch.testing.assert_close(found, getattr(torch, name)(values), equal_nan=True, rtol=1e-6, atol=0)
