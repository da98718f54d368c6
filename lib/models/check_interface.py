"""Does a module offer the seam? One run on a few texts tells, and each fault is one sentence."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from lib.datasets.batches import Batch
from lib.models.cudnn import gradients_of
from lib.models.interface import ModelOutput
from lib.models.readout import evaluation
from lib.projections import uniform

METHODS = {
    "read_out": "(output, attention) -> logits",
    "token_logits": "(output) -> ((batch, token, class), bias (class,)), or None where the read-out is not affine",
}
FIELDS = ("logits", "scores", "attention", "mask", "hidden", "embeddings")
PADDING = {"tokens": 0, "mask": False, "guide": 0, "sentence": -1}  # of what a batch holds for each word
WIDER = 3  # words of padding


class SeamError(ValueError):
    """A model does not offer the seam; the message says what is wrong, and what is expected."""


def check_seam(model: nn.Module, batch: Batch) -> ModelOutput:
    """The model's output on a batch, if the model offers all of the seam (lib/models/interface.py).

    The model is taken as it evaluates, and left in the mode that it had.

    Args:
        batch: a few texts of several lengths, on the model's device.
    Raises:
        SeamError: a method is missing or fails, a shape is wrong, the attention is none, its own attention put back
            changes the logits, the read-out says something else than the model, or padding or the other texts of a
            batch change a text.
    """
    if not isinstance(model, nn.Module):
        raise SeamError(f"a model is a torch.nn.Module; this is a {type(model).__name__}")
    missing = [f"{name}{told}" for name, told in METHODS.items() if not callable(getattr(model, name, None))]
    if missing:
        raise SeamError(f"a {type(model).__name__} lacks of the seam's methods: {'; '.join(missing)}")
    with evaluation(model), gradients_of(model):
        output = asked("model(batch)", model, batch)
        refuse_wrong_shapes(output, batch)
        refuse_no_attention(output)
        refuse_embeddings_apart(output)
        with torch.no_grad():
            refuse_another_read_out(model, batch, output)
            refuse_what_others_change(model, batch, output)
    return output


def asked(what: str, function: Callable, *arguments, **options):
    """What a function of the model gives; a SeamError that says what failed, and how."""
    try:
        return function(*arguments, **options)
    except Exception as error:
        raise SeamError(f"{what} failed: {type(error).__name__}: {error}") from error


def refuse_wrong_shapes(output: ModelOutput, batch: Batch) -> None:
    if not isinstance(output, ModelOutput):
        raise SeamError(f"model(batch) gave a {type(output).__name__}; it must give a lib.models.ModelOutput")
    missing = [name for name in FIELDS if not isinstance(getattr(output, name), Tensor)]
    if missing:
        raise SeamError(f"model(batch) gave a ModelOutput whose {' and '.join(missing)} are no tensors")
    texts, words, tokens = *batch.tokens.shape, output.mask.shape[-1]
    per_token = {name: (texts, tokens) for name in ("mask", "scores", "attention")}
    wider = {"logits": (texts, None), "hidden": (texts, tokens, None), "embeddings": (texts, words, None)}
    for name, shape in (per_token | wider).items():
        found = tuple(getattr(output, name).shape)
        if len(found) != len(shape) or any(size not in (None, seen) for size, seen in zip(shape, found, strict=True)):
            told = ", ".join("any" if size is None else str(size) for size in shape)
            raise SeamError(f"ModelOutput.{name} has shape {found}; expected ({told}): {texts} texts of {words} words")
    if output.mask.dtype != torch.bool:
        raise SeamError(f"ModelOutput.mask is of {output.mask.dtype}; expected torch.bool, True where attention may go")


def refuse_no_attention(output: ModelOutput) -> None:
    if not torch.isfinite(output.logits).all():
        raise SeamError("ModelOutput.logits are not finite")
    attention, elsewhere = output.attention.detach(), ~output.mask
    if (attention[elsewhere] != 0).any():
        raise SeamError(
            f"the attention has {float(attention[elsewhere].abs().max()):.3g} off the mask; expected exactly 0 there: "
            "on padding, and on what the mask leaves out, such as start and end"
        )
    sums = attention.sum(dim=-1)
    furthest = (sums - 1).abs().max()
    if not furthest <= tolerance(attention) or (attention < 0).any():
        raise SeamError(
            f"the attention of a text sums to {float(sums[(sums - 1).abs().argmax()]):.4g}, its least weight is "
            f"{float(attention.min()):.3g}; expected weights of 0 or more that sum to 1 over the mask"
        )


def refuse_embeddings_apart(output: ModelOutput) -> None:
    gradient = None
    if output.embeddings.requires_grad and output.logits.requires_grad:
        (gradient,) = torch.autograd.grad(output.logits.sum(), output.embeddings, allow_unused=True, retain_graph=True)
    if gradient is None:
        raise SeamError(
            "ModelOutput.embeddings are not in the graph of the logits, so nothing has a gradient for them; before "
            "they are used, forward must say: if torch.is_grad_enabled() and not embeddings.requires_grad: "
            "embeddings.requires_grad_()"
        )


def refuse_another_read_out(model: nn.Module, batch: Batch, output: ModelOutput) -> None:
    """Under the own attention, and under equal weights, the read-out must say what the model says."""
    own, equal = output.attention.detach(), uniform(output.scores.detach(), output.mask)
    put_back, made_equal = (asked("model(batch, attention=...)", model, batch, attention=a) for a in (own, equal))
    same("its own attention put back, model(batch, attention=output.attention),", put_back.logits, output.logits)
    if made_equal.attention.shape != equal.shape or (made_equal.attention - equal).abs().max() > tolerance(equal):
        raise SeamError("model(batch, attention=given).attention is not the attention that was given")
    read = [asked("model.read_out(output, attention)", model.read_out, output, a) for a in (own, equal)]
    same("model.read_out(output, output.attention)", read[0], output.logits)
    same("model.read_out(output, equal weights)", read[1], made_equal.logits, "those of the model with equal weights")
    three = "model.read_out with attention of shape (batch, draw, token)"
    draws = asked(three, model.read_out, output, torch.stack([own, equal, own], dim=1))
    same(three, draws, torch.stack([output.logits, made_equal.logits, output.logits], dim=1), "those of each draw")
    nothing = asked("model.read_out with all weights 0", model.read_out, output, torch.zeros_like(own))
    if not torch.isfinite(nothing).all():
        raise SeamError("model.read_out is not finite where nothing is attended, with all weights 0")
    affine = asked("model.token_logits(output)", model.token_logits, output)
    if affine is not None:
        told, or_none = "attention @ token_logits + bias", "the logits, or None where the read-out is not affine"
        for weights, logits in ((own, output.logits), (equal, made_equal.logits)):
            same(told, asked(told, lambda a=weights: (a[:, None] @ affine[0])[:, 0] + affine[1]), logits, or_none)


def refuse_what_others_change(model: nn.Module, batch: Batch, output: ModelOutput) -> None:
    held = {name: value for name, value in vars(batch).items() if name in PADDING and value is not None}
    wider = {name: pad(value, (0, WIDER), value=PADDING[name]) for name, value in held.items()}
    padded = asked("model(batch) with more padding", model, type(batch)(**(vars(batch) | wider)))
    same("with more padding model(batch)", padded.logits, output.logits)
    rows = [torch.tensor([row], device=batch.tokens.device) for row in range(len(batch))]
    alone = torch.cat([asked("model(batch) of one text", model, batch.rows(row)).logits for row in rows])
    same("with each text by itself model(batch)", alone, output.logits)


def same(what: str, found: Tensor, expected: Tensor, of: str = "those of model(batch)") -> None:
    found, expected = found.detach(), expected.detach()
    if found.shape != expected.shape:
        raise SeamError(f"{what} gives logits of shape {tuple(found.shape)}; expected {tuple(expected.shape)}")
    apart = float((found - expected).abs().max())
    if not apart <= tolerance(expected) * max(1.0, float(expected.abs().max())):
        raise SeamError(f"{what} gives other logits, by up to {apart:.3g}; expected {of}")


def tolerance(values: Tensor) -> float:
    """What rounding may do: some 2e-4 in single precision, 2e-9 in doubles."""
    return torch.finfo(values.dtype).eps ** 0.55
