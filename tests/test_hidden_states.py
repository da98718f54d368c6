"""Importance of hidden states, and of inputs to hidden states, against naive loops in float64."""

import sys

import numpy as np
import pytest
import torch
from small import Foreign, batch, model

from lib import importance
from lib.importance import state_gradients as of_states
from lib.importance.leave_one_out import logits_without_each_state
from lib.importance.state_gradients import inputs_to_states, state_gradients, state_gradients_definition
from lib.metrics import kendall_tau, normalized_entropy, probabilities
from lib.models import ENCODERS

PROJECTIONS = ("softmax", "sparsemax", "sparsegen:-3", "sparsegen:0.9", "entmax:1.5", "entmax:1.3", "entmax:learned")
LENGTHS = (5, 1, 2, 3, 12, 7, 1, 4)
MODELS = [("bilstm", "additive"), ("transformer", "dot"), ("average", "dot"), ("conv", "additive")]
MODELS = pytest.mark.parametrize(("encoder", "attention"), MODELS)


def left_out_by_hand(tested, output, row: int, position: int) -> torch.Tensor:
    """The prediction of one text whose state at `position` is cut out of scores and states."""
    kept = [other for other in output.mask[row].nonzero().squeeze(-1).tolist() if other != position]
    if not kept:
        return probabilities(tested.decoder.bias[None])
    scores, hidden = output.scores[row, kept][None], output.hidden[row, kept][None]
    attention = tested.projection(scores, torch.ones_like(scores, dtype=torch.bool))
    return probabilities(tested.decode(attention, hidden))


@MODELS
@pytest.mark.parametrize("name", PROJECTIONS)
@pytest.mark.parametrize("outputs", [1, 3])
@torch.no_grad()
def test_a_state_left_out_is_cut_out_and_the_rest_projected_again(encoder, attention, name, outputs, monkeypatch):
    tested, given = model(encoder, attention, outputs, projection_name=name), batch(LENGTHS)
    output = tested(given)
    found = importance.leave_one_out(tested, given, of="hidden")
    for row, position in given.mask.nonzero().tolist():
        moved = left_out_by_hand(tested, output, row, position) - probabilities(output.logits[row][None])
        assert float(found[row, position]) == pytest.approx(float(moved.abs().sum()) / 2, abs=1e-9)
    assert not found[~given.mask].any() and not found[output.attention == 0].any(), "off the support it is exact"
    monkeypatch.setattr(sys.modules["lib.importance.leave_one_out"], "SCORES", 50)
    assert torch.equal(importance.leave_one_out(tested, given, of="hidden"), found), "in small pieces"


@pytest.mark.parametrize("name", ["softmax", "sparsemax"])
@torch.no_grad()
def test_small_changes_are_not_rounded_to_ties_in_single_precision(name):
    tested, given = model(projection_name=name), batch((40, 60, 25))
    tested.attention.context.weight.mul_(10)
    tested.decoder.bias.fill_(9)  # sharp and sure of itself, as trained models are
    exact = importance.leave_one_out(tested, given, of="hidden")
    single = importance.leave_one_out(tested.float(), given, of="hidden")
    tau, _ = kendall_tau(exact, single.double(), given.mask)
    assert exact[given.mask].log10().amin() < -9 or name == "sparsemax"
    assert tau.min() > 0.999


@MODELS
@pytest.mark.parametrize("through", [True, False])
def test_the_gradient_of_hidden_states_by_central_differences(encoder, attention, through):
    tested, given = model(encoder, attention, projection_name="entmax:1.5"), batch((5, 1, 3))
    found = importance.gradient(tested, given, through_attention=through, of="hidden")
    output = tested(given)
    hidden, own = output.hidden.detach(), output.attention.detach()

    @torch.no_grad()
    def predicted(states):
        weights = tested.projection(tested.attention(states), given.mask) if through else own
        return probabilities(tested.decode(weights, states)).min(dim=-1).values

    for row, position in given.mask.nonzero().tolist():
        slopes = []
        for step in 1e-5 * torch.eye(hidden.shape[-1]):
            by = torch.zeros_like(hidden)
            by[row, position] = step
            slopes.append(float((predicted(hidden + by) - predicted(hidden - by))[row]) / 2e-5)
        assert float(found[row, position]) == pytest.approx(np.linalg.norm(slopes), rel=1e-4, abs=1e-8)


def of_each_state_by_hand(tested, given) -> torch.Tensor:
    """One backward pass a state."""
    found = torch.zeros(*given.mask.shape, given.mask.shape[1], dtype=torch.float64)
    for row, state in given.mask.nonzero().tolist():
        output = tested(given)
        (gradient,) = torch.autograd.grad(output.hidden[row, state].norm(), output.embeddings)
        found[row, state] = gradient[row].norm(dim=-1).masked_fill(~given.mask[row], 0)
    return found


@pytest.mark.parametrize("encoder", [*ENCODERS, "two layers"])
def test_gradients_of_all_states_are_those_of_a_loop_over_states(encoder, monkeypatch):
    more = {"layers": 2} if encoder == "two layers" else {}
    tested, given = model("bilstm" if more else encoder, **more), batch(LENGTHS)
    expected = of_each_state_by_hand(tested, given)
    assert torch.allclose(state_gradients(tested, given), expected, atol=1e-9, rtol=0)
    assert torch.allclose(state_gradients_definition(Foreign(tested), given), expected, atol=1e-9, rtol=0)
    monkeypatch.setattr(of_states, "PAIRS", 40)
    assert torch.allclose(state_gradients(tested, given), expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize("remembers", [False, True], ids=("forgets", "remembers"))
def test_gradients_that_have_faded_are_carried_no_further_and_differ_no_more_than_by_rounding(remembers, monkeypatch):
    tested, given = model(seed=2).float(), batch((300, 220), seed=1)
    for name, bias in tested.encoder.named_parameters() if remembers else ():  # forget gates near 1: no gradient fades
        if "bias" in name:
            bias.data[len(bias) // 4 : len(bias) // 2] += 10
    rows, product = [], torch.mm
    monkeypatch.setattr(torch, "mm", lambda one, other, out: rows.append(len(one)) or product(one, other, out=out))
    few, carried = state_gradients(tested, given), sum(rows)
    monkeypatch.setattr(of_states, "ROUNDINGS", -1)
    rows.clear()
    whole = state_gradients(tested, given)
    assert carried == sum(rows) if remembers else 3 * carried < sum(rows)
    rounding, difference = whole - state_gradients(tested.double(), given), few - whole
    assert difference.norm() <= rounding.norm() and difference.abs().max() <= 2 * rounding.abs().max()
    assert (difference.norm(dim=-1) <= 1e-6 * whole.norm(dim=-1)).all(), "of each state"


def test_the_entropy_of_states_is_the_mean_over_them_and_of_a_state_of_its_word_alone_none():
    tested, given = model("transformer"), batch((9, 4))
    found = of_each_state_by_hand(tested, given)
    for row in range(2):
        shares = found[row][given.mask[row]][:, given.mask[row]]
        shares = shares / shares.sum(dim=1, keepdim=True)
        expected = normalized_entropy(shares, torch.ones_like(shares, dtype=torch.bool)).mean()
        own, ours = float(shares.diagonal().mean()), inputs_to_states(tested, given, tested(given))
        assert float(ours["entropy"][row]) == pytest.approx(float(expected), abs=1e-9)
        assert float(ours["own_share"][row]) == pytest.approx(own, abs=1e-9)
    tested, given = model("average"), batch((12, 1, 7))
    found = inputs_to_states(tested, given, tested(given))
    assert found["entropy"][[0, 2]].numpy() == pytest.approx([0, 0], abs=1e-12) and found["entropy"][1].isnan()
    assert found["own_share"].numpy() == pytest.approx([1, 1, 1])


def test_what_cannot_be_weighed_anew_is_refused():
    tested, given = model(), batch((5, 9))
    with pytest.raises(ValueError, match="projection"):
        importance.leave_one_out(Foreign(model(projection_name="sparsemax")), given, of="hidden")
    equal = given.mask.double() / given.mask.sum(dim=1, keepdim=True)
    with pytest.raises(ValueError, match="imposed"):
        logits_without_each_state(tested, tested(given, equal))
    for measure in (importance.gradient, importance.leave_one_out):
        with pytest.raises(ValueError, match="of: input, hidden"):
            measure(tested, given, of="output")
