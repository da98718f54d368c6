"""Whether a module has the interface of a model: a few forward passes on a few texts; each fault is one sentence."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from lib.datasets.batches import Batch
from lib.datasets.corpus import UNKNOWN
from lib.models.evaluation import eval_mode, gradients_enabled
from lib.models.interface import AttentionModel, ModelOutput
from lib.numerics import rows_of
from lib.projections import uniform

HALF = (torch.float16, torch.bfloat16)
DETACHED = 0.1  # of the change of the logits: a gradient that misses more is not theirs


class InterfaceError(ValueError):
    """A model does not have the interface; the message names what was seen and what is expected."""


def check_interface(model: nn.Module, batch: Batch) -> ModelOutput:
    """The model's output on a batch, if the model has the interface (lib.models.interface.AttentionModel).

    The model runs in eval mode, and is then put back into its own mode.

    Args:
        batch: a few texts of several lengths, on the model's device.
    Raises:
        InterfaceError: a method is missing, fails or gives a wrong shape; the attention is not a distribution over the
            mask; a gradient is missing or not that of the logits; or the logits depend on padding, on chance, on other
            texts of the batch or of an earlier one, or on the way by which they are computed.
    """
    given = rows_of(batch, torch.arange(len(batch), device=batch.tokens.device))  # a copy
    with eval_mode(model), gradients_enabled(model):
        output = attempt("model(batch)", lambda: model(batch))
        require(batch.mask.equal(given.mask) and batch.tokens.equal(given.tokens), "model(batch) changes the batch")
        check_shapes(output, batch)
        check_attention(output)
        check_logits(model, batch, output)
        check_gradients(model, batch, output)
    return output


def attempt(call: str, function: Callable):
    """What the function returns; an InterfaceError that names the call where it fails, or would end the program."""
    try:
        return function()
    except (KeyboardInterrupt, InterfaceError):
        raise
    except BaseException as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InterfaceError(f"{call} failed: {reason[:300]}") from error


def require(condition: bool | Tensor, fault: str) -> None:
    """Raises InterfaceError with the fault where the condition does not hold."""
    if not condition:
        raise InterfaceError(fault)


def tolerance(values: Tensor) -> float:
    """The error that rounding may make: some 2e-4 in single precision, 2e-9 in doubles."""
    return torch.finfo(values.dtype).eps ** 0.55


def made_single(model: nn.Module) -> list[str]:
    """Makes weights in half precision single, as small differences of predictions are measured; a note that says so."""
    half = sorted({str(part.dtype) for part in (*model.parameters(), *model.buffers()) if part.dtype in HALF})
    model.float() if half else None
    return [f"The model's weights, saved in {kind}, are measured in torch.float32." for kind in half]


def check_shapes(output: ModelOutput, batch: Batch) -> None:
    """Every field is there, of the shape that ModelOutput documents, and in one precision."""
    kind = type(output).__name__
    require(isinstance(output, ModelOutput), f"model(batch) gave a {kind}; it must give a lib.models.ModelOutput")
    texts, words = batch.tokens.shape
    tokens = output.mask.shape[-1] if isinstance(output.mask, Tensor) and output.mask.dim() else "any"
    shapes = {"logits": (texts, "any"), "hidden": (texts, tokens, "any"), "embeddings": (texts, words, "any")}
    shapes |= dict.fromkeys(("mask", "scores", "attention"), (texts, tokens))
    for name, shape in shapes.items():
        value = getattr(output, name)
        require(isinstance(value, Tensor), f"ModelOutput.{name} is a {type(value).__name__}; expected a Tensor")
        seen, kind = tuple(value.shape), torch.bool if name == "mask" else output.logits.dtype
        require(output.logits.dtype not in HALF, f"ModelOutput.logits are of {kind}; expected torch.float32 or float64")
        fits = len(seen) == len(shape) and all(e in ("any", size) for e, size in zip(shape, seen, strict=True))
        expected = ", ".join(map(str, shape))
        require(fits, f"ModelOutput.{name} has shape {seen}; expected ({expected}): {texts} texts of {words} words")
        require(value.dtype == kind, f"ModelOutput.{name} is of {value.dtype}; expected {kind}")


def check_attention(output: ModelOutput) -> None:
    """The logits are finite, and the attention is a distribution over the mask."""
    require(output.logits.isfinite().all(), "ModelOutput.logits are not finite")
    attention = output.attention.detach()
    elsewhere = float(attention.masked_fill(output.mask, 0).abs().max())
    require(elsewhere == 0, f"the attention has {elsewhere:.3g} off the mask, such as on padding; expected exactly 0")
    sums, least = attention.sum(dim=-1), float(attention.min())
    furthest = float(sums[(sums - 1).abs().argmax()])
    seen = f"the attention of a text sums to {furthest:.4g}, its least weight is {least:.3g}"
    fits = abs(furthest - 1) <= 1e-4 and least >= 0
    require(fits, f"{seen}; expected weights of 0 or more that sum to 1 over the mask")


def check_gradients(model: AttentionModel, batch: Batch, output: ModelOutput) -> None:
    """The logits have their gradient with respect to the embeddings, the output's and given ones, and the attention."""
    fault = "ModelOutput.embeddings are not in the graph of the logits, so they have no gradient; from_embeddings must "
    fault += "begin with: if torch.is_grad_enabled() and not embeddings.requires_grad: embeddings.requires_grad_(); "
    fault += "nothing behind them may detach (.detach(), no_grad)"
    logits, embeddings = output.logits.sum(), output.embeddings
    require(logits.requires_grad and embeddings.requires_grad, fault)
    slope = torch.autograd.grad(logits, embeddings, allow_unused=True, retain_graph=True)[0]
    require(slope is not None, fault)
    noise = torch.randn(slope.shape, generator=torch.Generator().manual_seed(0)).to(slope) * embeddings.detach().std()
    call = "model.from_embeddings(embeddings, batch)"
    check_slope(call, lambda given: model.from_embeddings(given, batch).logits, embeddings, noise)
    own, equal = output.attention.detach(), uniform(output.scores.detach(), output.mask)
    check_slope("model.read_out(output, attention)", lambda given: model.read_out(output, given), equal, own - equal)


def check_slope(call: str, function: Callable, at: Tensor, towards: Tensor) -> None:
    """The gradient of the logits of `function` is how they change in a direction: no part of it is detached."""
    at, eps = at.detach().clone().requires_grad_(), torch.finfo(at.dtype).eps
    logits, step = attempt(call, lambda: function(at)), eps ** (1 / 3)
    slope = torch.autograd.grad(logits[:, -1].sum(), at, allow_unused=True)[0] if logits.requires_grad else None
    require(slope is not None, f"{call} does not compute its logits from what it is given, or not in the graph")
    expected = (slope * towards).flatten(1).sum(dim=1)
    with torch.no_grad():
        moves = step * towards, step / 4 * towards
        far, near = ((function(at + move) - function(at - move))[:, -1] / (2 * step) for move in moves)
    missed, change = float((4 * near - expected).norm()), float(4 * near.norm())
    rounding = 100 * eps / step * float(logits.detach().abs().max())
    unsure = 2 * float((4 * near - far).norm()) + rounding  # the function may bend
    seen = f"the gradient of {call} misses {missed:.3g} of a change of the logits by {change:.3g}"
    require(missed <= DETACHED * change + unsure, f"{seen}; is a part of it detached?")


def check_logits(model: AttentionModel, batch: Batch, output: ModelOutput) -> None:
    """The same logits come by every way: again, imposed attention, read-out, token logits, one text, embeddings."""
    own, expected, embeddings = output.attention.detach(), output.logits.detach(), output.embeddings.detach()
    equal = uniform(output.scores.detach(), output.mask)
    imposed = attempt("model(batch, attention=...)", lambda: model(batch, attention=equal))
    used = imposed.attention.shape == equal.shape and (imposed.attention - equal).abs().max() <= tolerance(equal)
    require(used, "model(batch, attention=given).attention is not the attention that was given")
    nothing = attempt("model.read_out with all weights 0", lambda: model.read_out(output, torch.zeros_like(own)))
    require(nothing.isfinite().all(), "model.read_out is not finite with all weights 0")
    affine = attempt("model.token_logits(output)", lambda: model.token_logits(output))
    under_equal, draws = imposed.logits.detach(), torch.stack([own, equal, own], dim=1)
    of_draws = torch.stack([expected, under_equal, expected], dim=1)
    odd = torch.arange(batch.tokens.shape[1], device=own.device) % 2 == 1  # no text becomes longer in subwords
    other = replace(batch, tokens=batch.tokens.masked_fill(batch.mask & odd, UNKNOWN))
    of_other = attempt("model(other texts)", lambda: model(other)).logits.detach()  # it might keep what it saw last
    rows = [slice(row, row + 1) for row in range(len(batch))]
    alone = [rows_of(batch, row) for row in rows]
    of_each = ((rows_of(output, row), own[row]) for row in rows)
    cut = [batch.rows(torch.tensor([row], device=own.device)) for row in range(len(batch))]
    embedded = "model.from_embeddings(output.embeddings, batch"

    def without_gradients(*batches: Batch) -> Tensor:
        with torch.no_grad():
            return torch.cat([model(one).logits for one in batches])

    same = [
        ("a second time model(batch)", lambda: model(batch).logits, expected),
        ("without gradients model(batch)", lambda: without_gradients(batch), expected),
        ("without gradients model(other texts)", lambda: without_gradients(other), of_other),
        ("with each text alone model(batch)", lambda: without_gradients(*alone), expected),
        ("without padding model(batch)", lambda: without_gradients(*cut), expected),
        ("model(batch, attention=output.attention)", lambda: model(batch, attention=own).logits, expected),
        ("model.read_out(output, output.attention)", lambda: model.read_out(output, own), expected),
        ("model.read_out(output, equal weights)", lambda: model.read_out(output, equal), under_equal),
        ("model.read_out with attention (batch, draw, token)", lambda: model.read_out(output, draws), of_draws),
        ("model.read_out of each text", lambda: torch.cat([model.read_out(*one) for one in of_each]), expected),
        (f"{embedded})", lambda: model.from_embeddings(embeddings, batch).logits, expected),
        (f"{embedded}, attention)", lambda: model.from_embeddings(embeddings, batch, equal).logits, under_equal),
    ]
    if affine is not None:
        call, half = "attention @ token_logits + bias (token_logits is None where the read-out is not affine)", own / 2
        for weights, logits in ((own, expected), (equal, under_equal), (half, model.read_out(output, half).detach())):
            same.append((call, lambda weights=weights: (weights[:, None] @ affine[0])[:, 0] + affine[1], logits))
    for call, function, expected in same:
        check_same(call, attempt(call, function).detach(), expected)


def check_same(call: str, logits: Tensor, expected: Tensor) -> None:
    """The logits of a call are the expected ones, but for rounding."""
    shapes = tuple(logits.shape), tuple(expected.shape)
    require(shapes[0] == shapes[1], f"{call} gives logits of shape {shapes[0]}; expected {shapes[1]}")
    difference = float((logits - expected).abs().max())
    fits = difference <= tolerance(expected) * max(1.0, float(expected.abs().max()))
    require(fits, f"{call} gives other logits than a forward pass with the same attention, by up to {difference:.3g}")
