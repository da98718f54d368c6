"""Whether a module has the interface of a model: a few forward passes on a few texts; each fault is one sentence."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from lib.datasets.batches import Batch
from lib.models.evaluation import eval_mode, gradients_enabled
from lib.models.interface import AttentionModel, ModelOutput
from lib.projections import uniform

PADDING = {"tokens": 0, "mask": False, "guide": 0, "sentence": -1}  # the padding of each field of a batch
EXTRA_PADDING = 3  # words


class InterfaceError(ValueError):
    """A model does not have the interface; the message names what was seen and what is expected."""


def check_interface(model: nn.Module, batch: Batch) -> ModelOutput:
    """The model's output on a batch, if the model has the interface (lib.models.interface.AttentionModel).

    The model runs in eval mode, and is then put back into its own mode.

    Args:
        batch: a few texts of several lengths, on the model's device.
    Raises:
        InterfaceError: a method is missing, fails or gives a wrong shape; the attention is not a distribution over the
            mask; or the logits depend on padding, on a batch's other texts, or on the way by which they are computed.
    """
    with eval_mode(model), gradients_enabled(model):
        output = attempt("model(batch)", lambda: model(batch))
        check_shapes(output, batch)
        check_attention(output)
        check_gradients(model, batch, output)
        check_logits(model, batch, output)
    return output


def attempt(call: str, function: Callable):
    """What the function returns; an InterfaceError that names the call where it fails."""
    try:
        return function()
    except Exception as error:
        raise InterfaceError(f"{call} failed: {type(error).__name__}: {error}") from error


def require(condition: bool | Tensor, fault: str) -> None:
    """Raises InterfaceError with the fault where the condition does not hold."""
    if not condition:
        raise InterfaceError(fault)


def tolerance(values: Tensor) -> float:
    """The error that rounding may make: some 2e-4 in single precision, 2e-9 in doubles."""
    return torch.finfo(values.dtype).eps ** 0.55


def check_shapes(output: ModelOutput, batch: Batch) -> None:
    """Every field is there, of the shape that ModelOutput documents."""
    kind = type(output).__name__
    require(isinstance(output, ModelOutput), f"model(batch) gave a {kind}; it must give a lib.models.ModelOutput")
    texts, words, tokens = *batch.tokens.shape, output.mask.shape[-1]
    shapes = dict.fromkeys(("mask", "scores", "attention"), (texts, tokens))
    shapes |= {"logits": (texts, "any"), "hidden": (texts, tokens, "any"), "embeddings": (texts, words, "any")}
    for name, shape in shapes.items():
        seen = tuple(getattr(output, name).shape)
        fits = len(seen) == len(shape) and all(e in ("any", size) for e, size in zip(shape, seen, strict=True))
        expected = ", ".join(map(str, shape))
        require(fits, f"ModelOutput.{name} has shape {seen}; expected ({expected}): {texts} texts of {words} words")
    kind = output.mask.dtype
    require(kind == torch.bool, f"ModelOutput.mask is of {kind}; expected torch.bool, True where attention may go")


def check_attention(output: ModelOutput) -> None:
    """The logits are finite, and the attention is a distribution over the mask."""
    require(output.logits.isfinite().all(), "ModelOutput.logits are not finite")
    attention = output.attention.detach()
    elsewhere = float(attention.masked_fill(output.mask, 0).abs().max())
    require(elsewhere == 0, f"the attention has {elsewhere:.3g} off the mask, such as on padding; expected exactly 0")
    sums, least = attention.sum(dim=-1), float(attention.min())
    furthest = float(sums[(sums - 1).abs().argmax()])
    seen = f"the attention of a text sums to {furthest:.4g}, its least weight is {least:.3g}"
    fits = abs(furthest - 1) <= tolerance(attention) and least >= 0
    require(fits, f"{seen}; expected weights of 0 or more that sum to 1 over the mask")


def check_gradients(model: AttentionModel, batch: Batch, output: ModelOutput) -> None:
    """The logits have a gradient with respect to the output's embeddings, and to those that are given."""
    call, given = "model.from_embeddings(embeddings, batch)", output.embeddings.detach().requires_grad_()
    again = attempt(call, lambda: model.from_embeddings(given, batch).logits)
    own = "ModelOutput.embeddings are not in the graph of the logits, so they have no gradient; from_embeddings must "
    own += "begin with: if torch.is_grad_enabled() and not embeddings.requires_grad: embeddings.requires_grad_()"
    foreign = f"{call} does not compute its logits from the embeddings that it is given"
    for logits, embeddings, fault in ((output.logits, output.embeddings, own), (again, given, foreign)):
        require(logits.requires_grad and embeddings.requires_grad, fault)
        slope = torch.autograd.grad(logits.sum(), embeddings, allow_unused=True, retain_graph=True)[0]
        require(slope is not None, fault)


def check_logits(model: AttentionModel, batch: Batch, output: ModelOutput) -> None:
    """The same logits come by every way: imposed attention, read-out, token logits, padding, one text, embeddings."""
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
    fields = {name: value for name in PADDING if (value := getattr(batch, name)) is not None}
    padded = {name: pad(value, (0, EXTRA_PADDING), value=PADDING[name]) for name, value in fields.items()}
    texts = [batch.rows(torch.tensor([row], device=batch.tokens.device)) for row in range(len(batch))]
    embedded = "model.from_embeddings(output.embeddings, batch"
    same = [
        ("model(batch, attention=output.attention)", lambda: model(batch, attention=own).logits, expected),
        ("model.read_out(output, output.attention)", lambda: model.read_out(output, own), expected),
        ("model.read_out(output, equal weights)", lambda: model.read_out(output, equal), under_equal),
        ("model.read_out with attention (batch, draw, token)", lambda: model.read_out(output, draws), of_draws),
        ("with more padding model(batch)", lambda: model(replace(batch, **padded)).logits, expected),
        ("with each text alone model(batch)", lambda: torch.cat([model(text).logits for text in texts]), expected),
        (f"{embedded})", lambda: model.from_embeddings(embeddings, batch).logits, expected),
        (f"{embedded}, attention)", lambda: model.from_embeddings(embeddings, batch, equal).logits, under_equal),
    ]
    if affine is not None:
        call = "attention @ token_logits + bias (token_logits is None where the read-out is not affine)"
        for weights, logits in ((own, expected), (equal, under_equal)):
            same.append((call, lambda weights=weights: (weights[:, None] @ affine[0])[:, 0] + affine[1], logits))
    for call, function, expected in same:
        logits = attempt(call, function).detach()
        shapes = tuple(logits.shape), tuple(expected.shape)
        require(shapes[0] == shapes[1], f"{call} gives logits of shape {shapes[0]}; expected {shapes[1]}")
        difference = float((logits - expected).abs().max())
        fits = difference <= tolerance(expected) * max(1.0, float(expected.abs().max()))
        require(fits, f"{call} gives other logits than the forward pass with that attention, by up to {difference:.3g}")
