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

METHODS = {
    "from_embeddings": "(embeddings, batch, attention=None) -> ModelOutput",
    "read_out": "(output, attention) -> logits",
    "token_logits": "(output) -> ((batch, token, class), bias (class,)), or None where the read-out is not affine",
}
FIELDS = ("logits", "scores", "attention", "mask", "hidden", "embeddings")
PADDING = {"tokens": 0, "mask": False, "guide": 0, "sentence": -1}  # the padding of each field of a batch
EXTRA = 3  # words of padding


class InterfaceError(ValueError):
    """A model does not have the interface; the message names what was found and what is expected."""


def check_interface(model: nn.Module, batch: Batch) -> ModelOutput:
    """The model's output on a batch, if the model has the interface (lib.models.interface.AttentionModel).

    The model runs in eval mode, and is then put back into its own mode.

    Args:
        batch: a few texts of several lengths, on the model's device.
    Raises:
        InterfaceError: a method is missing or fails; a shape is wrong; the attention is not a distribution over the
            mask; the model's own attention, imposed, changes the logits; from_embeddings, read_out or token_logits
            disagree with the forward pass; or padding or the other texts of a batch change a text's logits.
    """
    kind = type(model).__name__
    require(isinstance(model, nn.Module), f"a model is a torch.nn.Module; this is a {kind}")
    missing = [f"{name}{shapes}" for name, shapes in METHODS.items() if not callable(getattr(model, name, None))]
    require(not missing, f"a {kind} lacks methods of the interface: {'; '.join(missing)}")
    with eval_mode(model), gradients_enabled(model):
        output = attempt("model(batch)", model, batch)
        check_shapes(output, batch)
        check_attention(output)
        check_gradient(output)
        with torch.no_grad():
            imposed = check_imposed_attention(model, batch, output)
            check_read_out(model, output, imposed)
            check_independence(model, batch, output)
        check_from_embeddings(model, batch, output, imposed)
    return output


def attempt(call: str, function: Callable, *arguments, **options):
    """What the function returns; an InterfaceError that names the call where it fails."""
    try:
        return function(*arguments, **options)
    except Exception as error:
        raise InterfaceError(f"{call} failed: {type(error).__name__}: {error}") from error


def require(condition: bool, fault: str) -> None:
    """Raises InterfaceError with the fault where the condition does not hold."""
    if not condition:
        raise InterfaceError(fault)


def require_same(call: str, found: Tensor, expected: Tensor, name: str = "those of model(batch)") -> None:
    """Raises InterfaceError where the logits `found` by a call are not the `expected` ones, up to rounding."""
    found, expected = found.detach(), expected.detach()
    shapes = tuple(found.shape), tuple(expected.shape)
    require(shapes[0] == shapes[1], f"{call} gives logits of shape {shapes[0]}; expected {shapes[1]}")
    difference = float((found - expected).abs().max())
    allowed = tolerance(expected) * max(1.0, float(expected.abs().max()))
    require(difference <= allowed, f"{call} gives other logits, by up to {difference:.3g}; expected {name}")


def tolerance(values: Tensor) -> float:
    """The error that rounding may make: some 2e-4 in single precision, 2e-9 in doubles."""
    return torch.finfo(values.dtype).eps ** 0.55


def check_shapes(output: ModelOutput, batch: Batch) -> None:
    """Every field is there, of the shape that ModelOutput documents."""
    kind = type(output).__name__
    require(isinstance(output, ModelOutput), f"model(batch) gave a {kind}; it must give a lib.models.ModelOutput")
    missing = [name for name in FIELDS if not isinstance(getattr(output, name), Tensor)]
    require(not missing, f"model(batch) gave a ModelOutput without tensors for {' and '.join(missing)}")
    texts, words, tokens = *batch.tokens.shape, output.mask.shape[-1]
    shapes = dict.fromkeys(("mask", "scores", "attention"), (texts, tokens))
    shapes |= {"logits": (texts, None), "hidden": (texts, tokens, None), "embeddings": (texts, words, None)}
    for name, shape in shapes.items():
        found = tuple(getattr(output, name).shape)
        fits = len(found) == len(shape) and all(e in (None, size) for e, size in zip(shape, found, strict=True))
        expected = ", ".join("any" if size is None else str(size) for size in shape)
        require(fits, f"ModelOutput.{name} has shape {found}; expected ({expected}): {texts} texts of {words} words")
    kind = output.mask.dtype
    require(kind == torch.bool, f"ModelOutput.mask is of {kind}; expected torch.bool, True where attention may go")


def check_attention(output: ModelOutput) -> None:
    """The logits are finite, and the attention is a distribution over the mask."""
    require(bool(torch.isfinite(output.logits).all()), "ModelOutput.logits are not finite")
    attention = output.attention.detach()
    elsewhere = float(attention.masked_fill(output.mask, 0).abs().max())
    require(
        elsewhere == 0,
        f"the attention has {elsewhere:.3g} off the mask; expected exactly 0 there: on padding, and on what the mask "
        "leaves out, such as start and end",
    )
    sums, least = attention.sum(dim=-1), float(attention.min())
    furthest = float(sums[(sums - 1).abs().argmax()])
    require(
        abs(furthest - 1) <= tolerance(attention) and least >= 0,
        f"the attention of a text sums to {furthest:.4g}, its least weight is {least:.3g}; expected weights of 0 or "
        "more that sum to 1 over the mask",
    )


def check_gradient(output: ModelOutput) -> None:
    """The logits have a gradient with respect to the output's embeddings."""
    gradient = None
    if output.embeddings.requires_grad and output.logits.requires_grad:
        (gradient,) = torch.autograd.grad(output.logits.sum(), output.embeddings, allow_unused=True, retain_graph=True)
    require(
        gradient is not None,
        "ModelOutput.embeddings are not in the graph of the logits, so they have no gradient; from_embeddings must "
        "begin with: if torch.is_grad_enabled() and not embeddings.requires_grad: embeddings.requires_grad_()",
    )


def check_imposed_attention(model: AttentionModel, batch: Batch, output: ModelOutput) -> ModelOutput:
    """The attention that is given is the one that is used; returns the output under equal weights."""
    own, equal = output.attention.detach(), uniform(output.scores.detach(), output.mask)
    again, imposed = (attempt("model(batch, attention=...)", model, batch, attention=a) for a in (own, equal))
    require_same("its own attention imposed, model(batch, attention=output.attention),", again.logits, output.logits)
    used = imposed.attention.shape == equal.shape and (imposed.attention - equal).abs().max() <= tolerance(equal)
    require(bool(used), "model(batch, attention=given).attention is not the attention that was given")
    return imposed


def check_from_embeddings(model: AttentionModel, batch: Batch, output: ModelOutput, imposed: ModelOutput) -> None:
    """from_embeddings agrees with the forward pass, also with attention, and reads the embeddings that it is given."""
    call = "model.from_embeddings(output.embeddings, batch"
    embeddings = output.embeddings.detach().requires_grad_()
    found = attempt(f"{call})", model.from_embeddings, embeddings, batch)
    require_same(f"{call})", found.logits, output.logits)
    given = attempt(f"{call}, attention)", model.from_embeddings, embeddings, batch, imposed.attention)
    require_same(f"{call}, attention)", given.logits, imposed.logits, "those of model(batch, attention)")
    (gradient,) = torch.autograd.grad(found.logits.sum(), embeddings, allow_unused=True)
    fault = "model.from_embeddings(embeddings, batch) does not compute its logits from the embeddings that it is given"
    require(gradient is not None, fault)


def check_read_out(model: AttentionModel, output: ModelOutput, imposed: ModelOutput) -> None:
    """read_out and token_logits agree with the forward pass, under its own attention and an imposed one."""
    own, other = output.attention.detach(), imposed.attention.detach()
    found = [attempt("model.read_out(output, attention)", model.read_out, output, a) for a in (own, other)]
    require_same("model.read_out(output, output.attention)", found[0], output.logits)
    require_same("model.read_out(output, equal weights)", found[1], imposed.logits, "those of the model under them")
    call = "model.read_out with attention of shape (batch, draw, token)"
    draws = attempt(call, model.read_out, output, torch.stack([own, other, own], dim=1))
    expected = torch.stack([output.logits, imposed.logits, output.logits], dim=1)
    require_same(call, draws, expected, "those of each draw")
    nothing = attempt("model.read_out with all weights 0", model.read_out, output, torch.zeros_like(own))
    require(bool(torch.isfinite(nothing).all()), "model.read_out is not finite with all weights 0")
    affine = attempt("model.token_logits(output)", model.token_logits, output)
    if affine is not None:
        call, expected = "attention @ token_logits + bias", "the logits, or None where the read-out is not affine"
        for a, logits in ((own, output.logits), (other, imposed.logits)):
            require_same(call, attempt(call, lambda a=a: (a[:, None] @ affine[0])[:, 0] + affine[1]), logits, expected)


def check_independence(model: AttentionModel, batch: Batch, output: ModelOutput) -> None:
    """Neither more padding nor the other texts of the batch change a text's logits."""
    fields = {name: value for name, value in vars(batch).items() if name in PADDING and value is not None}
    wider = {name: pad(value, (0, EXTRA), value=PADDING[name]) for name, value in fields.items()}
    padded = attempt("model(batch) with more padding", model, replace(batch, **wider))
    require_same("with more padding model(batch)", padded.logits, output.logits)
    rows = [torch.tensor([row], device=batch.tokens.device) for row in range(len(batch))]
    alone = torch.cat([attempt("model(batch) of one text", model, batch.rows(row)).logits for row in rows])
    require_same("with each text alone model(batch)", alone, output.logits)
