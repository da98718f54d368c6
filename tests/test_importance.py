"""Importances against brute force, a hand computation and captum."""

import sys
import weakref

import pytest
import torch
from small import Foreign, NotAffine, batch, deletions_are_shortened_texts, model, shortened_by_hand

from lib import importance
from lib.datasets.batches import Batch
from lib.importance import deletions, gradients
from lib.importance.deletions import logits_without_each_token, logits_without_each_token_definition
from lib.importance.lstm import Recurrence
from lib.metrics import probabilities
from lib.models import ENCODERS

LENGTHS = (5, 1, 2, 3, 12, 7, 1, 4)
MEASURES = (importance.gradient, importance.gradient_times_input, importance.leave_one_out)
EVERYWHERE = [(encoder, *kind) for encoder in ENCODERS for kind in (("additive", 1), ("dot", 3))]
EVERYWHERE = pytest.mark.parametrize(("encoder", "attention", "outputs"), EVERYWHERE)


@EVERYWHERE
def test_the_fast_deletions_are_the_naive_ones_in_small_pieces_too(encoder, attention, outputs, monkeypatch):
    projection = "sparsemax" if attention == "dot" else "softmax"
    tested = model(encoder, attention, outputs, seed=1, projection_name=projection)
    given = batch((30, 1, 6, 9, 6), seed=1)
    deletions_are_shortened_texts(tested, given)
    fast = logits_without_each_token(tested, given)
    for name in ("ROWS", "PAIRS"):
        monkeypatch.setattr(deletions, name, 40)
    assert torch.allclose(logits_without_each_token(tested, given), fast, atol=1e-12, rtol=0, equal_nan=True)
    assert torch.allclose(logits_without_each_token(Foreign(tested), given), fast, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("remembers", [False, True], ids=("forgets", "remembers"))
def test_what_is_forgotten_is_swept_no_further_and_differs_no_more_than_by_rounding(remembers, monkeypatch):
    tested, given = model(outputs=3, projection_name="softmax", seed=2).float(), batch((200, 150), seed=1)
    for name, bias in tested.encoder.named_parameters() if remembers else ():  # forget gates near 1: nothing fades
        if "bias" in name:
            bias.data[len(bias) // 4 : len(bias) // 2] += 10
    rows, advance = [], Recurrence.advance
    counted = lambda own, gates, *states: rows.append(len(gates)) or advance(own, gates, *states)  # noqa: E731
    monkeypatch.setattr(Recurrence, "advance", counted)
    few, swept = logits_without_each_token(tested, given), sum(rows)
    monkeypatch.setattr(deletions, "ROUNDINGS", -1)
    rows.clear()
    whole = logits_without_each_token(tested, given)
    assert swept == sum(rows) if remembers else 2 * swept < sum(rows)
    rounding = (whole - logits_without_each_token(tested.double(), given)).nan_to_num(0)
    difference = (few - whole).nan_to_num(0)
    assert difference.norm() <= rounding.norm() and difference.abs().max() <= 2 * rounding.abs().max()


def test_a_deletion_that_leaves_only_far_lower_scores_is_still_exact():
    tested, given = model("average"), batch((4,))
    with torch.no_grad():
        tested.attention.context.weight.mul_(300)
    scores = tested(given).scores[given.mask]
    assert scores.max() - scores.min() > 700  # exp of which is no double
    expected = logits_without_each_token_definition(tested, given)
    assert torch.allclose(logits_without_each_token(tested, given), expected, atol=1e-9, equal_nan=True)


@torch.no_grad()
@pytest.mark.parametrize("outputs", [1, 3])
def test_the_sign_of_leave_one_out_is_that_of_the_shortened_text_by_one_pass(outputs, monkeypatch):
    tested, given = model(outputs=outputs), batch((4, 1, 6))
    output, passes, once = tested(given), [], logits_without_each_token
    of = sys.modules["lib.importance.leave_one_out"]
    monkeypatch.setattr(of, "logits_without_each_token", lambda *args: passes.append(1) or once(*args))
    parts = importance.leave_one_out_with_sign(tested, given, output)
    assert passes == [1] and torch.equal(parts["of_input"], importance.leave_one_out(tested, given))
    before = probabilities(output.logits)
    own = before.argmax(dim=-1)
    for row, position in given.mask.nonzero().tolist():
        if given.lengths[row] == 3:
            continue
        after = probabilities(tested(shortened_by_hand(given, row, position)).logits)[0]
        assert parts["signed"][row, position] == pytest.approx(float(before[row, own[row]] - after[own[row]]), abs=1e-9)
        assert parts["of_input"][row, position] == pytest.approx(float((after - before[row]).abs().sum() / 2), abs=1e-9)
    assert (parts["signed"] < 0).any() and (parts["signed"] > 0).any() and (parts["signed"][~given.mask] == 0).all()


@pytest.mark.parametrize("bias", [0.0, 30.0])
def test_a_token_that_changes_nothing_is_0_in_single_precision_and_of_a_sure_model_the_others_are_not(bias):
    tested, given = model("average", projection_name="sparsemax"), batch((30,) * 9)
    with torch.no_grad():
        tested.decoder.bias.fill_(bias)
    quantity, none = importance.leave_one_out_with_sign, tested(given).attention[given.mask] == 0
    exact, rounded = (quantity(one, given, one(given)) for one in (tested, tested.float()))
    for part in ("of_input", "signed"):
        of_exact, of_rounded = exact[part][given.mask], rounded[part][given.mask]
        assert none.any() and (of_rounded[none] == 0).all() and torch.equal(of_rounded.sign(), of_exact.sign().float())
    assert (exact["signed"] < 0).any() and (exact["signed"] > 0).any()


@torch.no_grad()
@pytest.mark.parametrize("outputs", [1, 3])
def test_what_attention_weighs_by_hand(outputs):
    tested, given = model(outputs=outputs), batch((3, 7, 1))
    output, weight = tested(given), tested.decoder.weight
    norms = importance.attention_times_norm(tested, given, output)
    parts = importance.attention_times_contribution(tested, given, output)
    for row, position in given.mask.nonzero().tolist():
        alpha, hidden = output.attention[row, position], output.hidden[row, position]
        assert norms[row, position] == pytest.approx(float(alpha) * sum(float(part) ** 2 for part in hidden) ** 0.5)
        chosen = int(output.logits[row].argmax())
        sign = 1 if outputs > 1 or output.logits[row] > 0 else -1
        expected = sign * float(alpha) * sum(float(a * b) for a, b in zip(weight[chosen], hidden, strict=True))
        assert parts[row, position] == pytest.approx(expected, abs=1e-12)
    assert (norms[~given.mask] == 0).all() and (parts[~given.mask] == 0).all()
    unknown = NotAffine(tested)  # so that no token has a part of the logit
    assert importance.attention_times_contribution(unknown, given, unknown(given)).isnan().all()


@EVERYWHERE
def test_gradients_are_captums(encoder, attention, outputs):
    from captum.attr import InputXGradient, Saliency  # takes over a second

    tested, given = model(encoder, attention, outputs), batch((4, 9, 2))
    embeddings = tested.embedding(given.tokens).detach()
    own = tested(given).attention.detach()
    through = lambda e: probabilities(tested.from_embeddings(e, given).logits)  # noqa: E731
    detached = lambda e: probabilities(tested.from_embeddings(e, given, own).logits)  # noqa: E731
    predicted = through(embeddings).argmax(dim=-1)
    saliency = Saliency(through).attribute(embeddings.clone(), target=predicted, abs=False).norm(dim=-1)
    assert torch.allclose(importance.gradient(tested, given), saliency * given.mask, atol=1e-12)
    classes = (1,) if outputs == 1 else range(outputs)
    parts = [InputXGradient(detached).attribute(embeddings.clone(), target=c).sum(dim=-1).abs() for c in classes]
    assert torch.allclose(importance.gradient_times_input(tested, given), sum(parts) * given.mask, atol=1e-12)


@EVERYWHERE
def test_integrated_gradients_are_captums(encoder, attention, outputs):
    from captum.attr import IntegratedGradients

    tested, given = model(encoder, attention, outputs), batch((4, 9, 2))
    text = tested.embedding(given.tokens).detach()
    baseline = text.masked_fill(given.mask[:, :, None], 0)

    def chances(embeddings):  # captum asks for all steps at once, one copy of the batch behind the other
        copies = given.rows(torch.arange(3).repeat(len(embeddings) // 3))
        return probabilities(tested.from_embeddings(embeddings, copies).logits)

    predicted = chances(text).argmax(dim=-1)
    found = importance.integrated_gradients(tested, given, steps=20)
    expected = IntegratedGradients(chances).attribute(text, baseline, target=predicted, n_steps=20).sum(dim=-1)
    assert torch.allclose(found, expected.masked_fill(~given.mask, 0), atol=1e-6, rtol=0)  # its weights are floats


@pytest.mark.parametrize("measure", [*MEASURES, importance.integrated_gradients])
def test_any_model_with_the_interface_is_measured_and_in_micro_batches(measure, monkeypatch):
    tested, given = model(outputs=3, layers=2), batch(LENGTHS)
    expected = measure(tested, given)
    assert torch.allclose(measure(Foreign(tested), given), expected, atol=1e-12)
    monkeypatch.setattr(gradients, "WORDS", 20)
    assert torch.allclose(measure(tested, given), expected, atol=1e-12)


@EVERYWHERE
def test_padding_and_other_texts_change_nothing(encoder, attention, outputs):
    tested, given = model(encoder, attention, outputs), batch(LENGTHS)
    alone = given.rows(torch.tensor([2]))
    wider = Batch.of(torch.nn.functional.pad(given.tokens, (0, 9)), given.lengths, given.label, given.instance)
    for measure in MEASURES:
        expected, padded = measure(tested, given), measure(tested, wider)
        assert (expected[~given.mask] == 0).all() and expected.isfinite().all()
        assert torch.allclose(padded[:, : expected.shape[1]], expected, atol=1e-12) and (padded[~wider.mask] == 0).all()
        assert torch.allclose(measure(tested, alone)[0], expected[2, : alone.tokens.shape[1]], atol=1e-12)


def test_the_gradients_of_many_classes_are_never_in_memory_together(monkeypatch):
    made, held, plain = weakref.WeakValueDictionary(), [], torch.autograd.grad

    def grad(*given, **options):
        held.append(len(made))
        made[len(held)] = found = plain(*given, **options)[0]
        return (found,)

    monkeypatch.setattr(torch.autograd, "grad", grad)
    importance.gradient_times_input(model(outputs=9), batch())
    assert len(held) == 9 and max(held) <= 1


def test_a_sure_model_still_ranks_its_tokens():
    tested, given = model(outputs=1).float(), batch((12,))
    with torch.no_grad():
        tested.decoder.bias.fill_(30.0)  # p rounds to 1 in single precision
    for measure in MEASURES:
        found = measure(tested, given)[given.mask]
        assert found.dtype == torch.float32 and len(found.unique()) == 12


def test_quantities_carry_the_bound_and_the_options_of_what_they_measure():
    tested, given = model(), batch()
    bounds = [importance.quantity("loo", importance.leave_one_out, bound).max_tokens for bound in (None, 5)]
    gradient = importance.quantity("gradient", importance.gradient, through_attention=False)
    assert bounds == [2000, 5] and gradient.max_tokens is None
    detached = importance.gradient(tested, given, through_attention=False)
    assert torch.equal(gradient(tested, given, tested(given)), detached)
