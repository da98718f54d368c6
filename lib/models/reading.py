"""Any model asked: its read-out under many attentions, in pieces that fit in memory, and the model as it evaluates."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from lib.chunks import by_length, rows_of
from lib.models.cudnn import measurable
from lib.models.output import AttentionModel, ModelOutput

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
