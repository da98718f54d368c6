"""Any model asked: its read-out under many attentions, in pieces that fit in memory, and the model as it evaluates."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn

from lib.datasets.batches import Batch
from lib.models.cudnn import measurable
from lib.models.interface import AttentionModel, ModelOutput
from lib.numerics import by_length, rows_of

WORDS = 2**16  # read at once, padding included: some 70 MB of hidden states
CELLS = 2**20  # draws x tokens x texts read at once: 8 MB of doubles
Weights = Callable[[Tensor, Tensor], Tensor]  # (rows, draws) -> attention (row, draw, token) in doubles


def read_each(model: AttentionModel, output: ModelOutput, draws: Tensor, weights: Weights) -> Tensor:
    """Logits of each text under so many attentions of its own: (batch, draw, class), NaN beyond a text's draws.

    In doubles and of two classes at least, however the model computes.

    Args:
        draws: (batch,) how many of each text.
        weights: which they are, for the texts `rows` (row,) and the numbers `some` (draw,): (row, draw, token).
    """
    logits = None
    for rows, some in _pieces(draws, output.mask.shape[1]):
        attention = weights(rows, some).to(output.attention.dtype)
        part = two_classes(model.read_out(rows_of(output, rows), attention).double())
        if logits is None:
            logits = part.new_full((len(draws), int(draws.max()), part.shape[-1]), torch.nan)
        logits[rows[:, None], some] = part
    beyond = torch.arange(logits.shape[1], device=logits.device) >= draws[:, None]
    return logits.masked_fill(beyond[:, :, None], torch.nan)


def _pieces(draws: Tensor, tokens: int) -> Iterator[tuple[Tensor, Tensor]]:
    """(rows, draws) that are read at once; a text with very many draws in several pieces."""
    for rows in by_length(draws, max(1, CELLS // tokens)):
        most = int(draws[rows].max())
        step = max(1, CELLS // (tokens * len(rows)))
        for start in range(0, most, step):
            yield rows, torch.arange(start, min(start + step, most), device=draws.device)


def two_classes(logits: Tensor) -> Tensor:
    """One sigmoid output as two classes, the first of which is always 0: (..., class), two at least."""
    return torch.cat([torch.zeros_like(logits), logits], dim=-1) if logits.shape[-1] == 1 else logits


def at_once(model: nn.Module, words: int) -> int:
    """How many words a model is given at once: `words`, or fewer where it says so by an attribute `words_at_once`."""
    return min(words, getattr(model, "words_at_once", words))


@contextmanager
def evaluation(model: nn.Module) -> Iterator[None]:
    """The model in eval mode and `measurable`, and every part of it back in its own mode afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with measurable(model):
            yield
    finally:
        for module, training in modes:
            module.training = training


Ranking = Callable[[AttentionModel, ModelOutput], Tensor]  # a score for each token, (batch, token), the largest first


def class_terms(model: AttentionModel, output: ModelOutput) -> tuple[Tensor, Tensor, Tensor]:
    """What each token says for each class: logits = attention @ terms + bias, in doubles, two classes at least.

    One sigmoid output becomes two classes, the first of which is always 0: argmax and softmax stay what they were.

    Returns:
        attention (batch, token) and terms (batch, token, class), both 0 off the mask, and bias (class,).
    Raises:
        ValueError: the model's read-out is not affine.
    """
    found = terms_if_affine(model, output)
    if found is None:
        raise ValueError("this needs an affine read-out (model.token_logits), and this model has none")
    return found


def terms_if_affine(model: AttentionModel, output: ModelOutput) -> tuple[Tensor, Tensor, Tensor] | None:
    """The same, or None where the read-out is not affine."""
    affine = model.token_logits(output)
    if affine is None:
        return None
    terms, bias = (two_classes(part.double()) for part in affine)
    return own_attention(output), terms.masked_fill(~output.mask[:, :, None], 0), bias


def own_attention(output: ModelOutput) -> Tensor:
    """(batch, token) in doubles, exactly 0 off the mask."""
    return output.attention.double().masked_fill(~output.mask, 0)


def of_the_others(values: Tensor) -> Tensor:
    """The sum over all tokens but each, (batch, token, ...): of sums, and never a difference of nearly equal ones."""
    none = torch.zeros_like(values[:, :1])
    before = torch.cat([none, values[:, :-1].cumsum(dim=1)], dim=1)
    after = torch.cat([values[:, 1:].flip(1).cumsum(dim=1).flip(1), none], dim=1)
    return before + after


SAME = ("projection", "inner_attention", "reads_first", "words_at_once", "heads", "vocabulary")


class OneOutput(nn.Module):
    """The difference of two logits: softmax of both is sigmoid of it. What else the model offers it offers too."""

    def __init__(self, model: AttentionModel):
        super().__init__()
        self.model = model
        for name in SAME:
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        if hasattr(model, "without_text"):
            self.without_text = lambda batch: apart(model.without_text(batch))
        if hasattr(model, "with_inner_attention"):
            self.with_inner_attention = lambda batch, imposed: as_one(model.with_inner_attention(batch, imposed))

    def forward(self, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        return as_one(self.model(batch, attention=attention))

    def from_embeddings(self, embeddings: Tensor, batch: Batch, attention: Tensor | None = None) -> ModelOutput:
        return as_one(self.model.from_embeddings(embeddings, batch, attention))

    def read_out(self, output: ModelOutput, attention: Tensor) -> Tensor:
        return apart(self.model.read_out(output, attention))

    def token_logits(self, output: ModelOutput) -> tuple[Tensor, Tensor] | None:
        affine = self.model.token_logits(output)
        return None if affine is None else (apart(affine[0]), apart(affine[1]))


def as_one(output: ModelOutput) -> ModelOutput:
    return replace(output, logits=apart(output.logits))


def apart(logits: Tensor) -> Tensor:
    """(..., 2) -> (..., 1): the second less the first."""
    return logits[..., 1:] - logits[..., :1]
