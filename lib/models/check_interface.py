"""Whether a module has the interface of a model: a few forward passes on a few texts; each fault is one sentence."""

from collections.abc import Callable, Iterator
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
EXTRA_PADDING = 3  # words
OF_MODEL, UNDER_EQUAL = "those of model(batch)", "those of model(batch, equal weights)"


class InterfaceError(ValueError):
    """A model does not have the interface; the message names what was seen and what is expected."""


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
        for call, logits, expected, name in same_logits(model, batch, output):
            require_same(call, attempt(call, logits), expected, name)
        embeddings = output.embeddings.detach().requires_grad_()
        again = model.from_embeddings(embeddings, batch).logits
        (gradient,) = torch.autograd.grad(again.sum(), embeddings, allow_unused=True)
        call = "model.from_embeddings(embeddings, batch)"
        require(gradient is not None, f"{call} does not compute its logits from the embeddings that it is given")
    return output


def same_logits(model: AttentionModel, batch: Batch, output: ModelOutput) -> Iterator[tuple]:
    """What must give the same logits: (call, its function, the expected logits, what these are)."""
    own, equal = output.attention.detach(), uniform(output.scores.detach(), output.mask)
    call = "its own attention imposed, model(batch, attention=output.attention),"
    yield call, lambda: model(batch, attention=own).logits, output.logits, OF_MODEL
    imposed = attempt("model(batch, attention=...)", model, batch, attention=equal)
    used = imposed.attention.shape == equal.shape and (imposed.attention - equal).abs().max() <= tolerance(equal)
    require(bool(used), "model(batch, attention=given).attention is not the attention that was given")
    under = ((own, output.logits, OF_MODEL), (equal, imposed.logits, UNDER_EQUAL))

    for attention, logits, name in under:
        call = f"model.read_out(output, {'output.attention' if attention is own else 'equal weights'})"
        yield call, lambda attention=attention: model.read_out(output, attention), logits, name
    call, draws = "model.read_out with attention of shape (batch, draw, token)", torch.stack([own, equal, own], dim=1)
    expected = torch.stack([output.logits, imposed.logits, output.logits], dim=1)
    yield call, lambda: model.read_out(output, draws), expected, "those of each draw"
    nothing = attempt("model.read_out with all weights 0", model.read_out, output, torch.zeros_like(own))
    require(bool(torch.isfinite(nothing).all()), "model.read_out is not finite with all weights 0")
    affine = attempt("model.token_logits(output)", model.token_logits, output)
    for attention, logits, _ in under if affine is not None else ():
        call, name = "attention @ token_logits + bias", "the logits, or None where the read-out is not affine"
        yield call, lambda attention=attention: (attention[:, None] @ affine[0])[:, 0] + affine[1], logits, name

    yield "with more padding model(batch)", lambda: model(padded(batch)).logits, output.logits, OF_MODEL
    texts = [batch.rows(torch.tensor([row], device=batch.tokens.device)) for row in range(len(batch))]
    alone = "with each text alone model(batch)"
    yield alone, lambda: torch.cat([model(text).logits for text in texts]), output.logits, OF_MODEL
    call, embeddings = "model.from_embeddings(output.embeddings, batch", output.embeddings.detach()
    yield f"{call})", lambda: model.from_embeddings(embeddings, batch).logits, output.logits, OF_MODEL
    call = f"{call}, attention)"
    yield call, lambda: model.from_embeddings(embeddings, batch, equal).logits, imposed.logits, UNDER_EQUAL


def padded(batch: Batch) -> Batch:
    """The same texts with more padding behind them."""
    fields = {name: value for name, value in vars(batch).items() if name in PADDING and value is not None}
    return replace(
        batch, **{name: pad(value, (0, EXTRA_PADDING), value=PADDING[name]) for name, value in fields.items()}
    )


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


def require_same(call: str, logits: Tensor, expected: Tensor, name: str) -> None:
    """Raises InterfaceError where the logits of a call are not the expected ones, up to rounding."""
    logits, expected = logits.detach(), expected.detach()
    shapes = tuple(logits.shape), tuple(expected.shape)
    require(shapes[0] == shapes[1], f"{call} gives logits of shape {shapes[0]}; expected {shapes[1]}")
    difference = float((logits - expected).abs().max())
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
        seen = tuple(getattr(output, name).shape)
        fits = len(seen) == len(shape) and all(e in (None, size) for e, size in zip(shape, seen, strict=True))
        expected = ", ".join("any" if size is None else str(size) for size in shape)
        require(fits, f"ModelOutput.{name} has shape {seen}; expected ({expected}): {texts} texts of {words} words")
    kind = output.mask.dtype
    require(kind == torch.bool, f"ModelOutput.mask is of {kind}; expected torch.bool, True where attention may go")


def check_attention(output: ModelOutput) -> None:
    """The logits are finite, and the attention is a distribution over the mask."""
    require(bool(torch.isfinite(output.logits).all()), "ModelOutput.logits are not finite")
    attention = output.attention.detach()
    elsewhere = float(attention.masked_fill(output.mask, 0).abs().max())
    where = "on padding, and on what the mask leaves out, such as start and end"
    require(elsewhere == 0, f"the attention has {elsewhere:.3g} off the mask; expected exactly 0 there: {where}")
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
