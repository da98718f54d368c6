"""Each token deleted in turn: the text without it is encoded again, one token shorter.

Start and end stay. The naive way runs the model on every shortened text; where the model is one of ours, an exact
shorter way does the same (lib.fast.deletions_bilstm for a BiLSTM; deletions_windows for average and convolutions under
softmax).
"""

from dataclasses import replace

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.fast.deletions_bilstm import logits_by_one_sweep
from lib.fast.deletions_windows import logits_by_windows
from lib.fast.lstm import is_swept
from lib.models import AttentionClassifier, AttentionModel, QuestionClassifier
from lib.models.encoders import Average, Convolution
from lib.models.evaluation import words_at_once
from lib.numerics import by_length
from lib.projections import softmax

WORDS = 2**15  # of the shortened texts that are encoded at once


@torch.no_grad()
def logits_without_each(model: AttentionModel, batch: Batch) -> Tensor:
    """Logits of the text with the token at each position deleted.

    Where nothing is left, in a text of one token, the attended vector is zero and the logits are the decoder's bias
    (`of_nothing`).

    Returns:
        (batch, token, class); NaN off the mask.
    """
    if isinstance(model, AttentionClassifier | QuestionClassifier):
        if is_swept(model.encoder):
            return logits_by_one_sweep(model, batch)
        if isinstance(model.encoder, Average | Convolution) and model.projection is softmax:
            return logits_by_windows(model, batch)
    return naive_logits_without_each(model, batch)


@torch.no_grad()
def naive_logits_without_each(model: AttentionModel, batch: Batch) -> Tensor:
    """The same for any model, by encoding every shortened text: O(n) texts of n - 1 tokens each."""
    row, position = batch.mask.nonzero(as_tuple=True)
    alone = batch.mask.sum(dim=-1) == 1
    logits = None
    for some in by_length(batch.lengths[row].masked_fill(alone[row], 0), words_at_once(model, WORDS)):
        part = model(shortened(batch, row[some], position[some])).logits
        logits = _nowhere(batch, part) if logits is None else logits
        logits[row[some], position[some]] = part
    if alone.any():
        bias = of_nothing(model, batch.rows(alone))
        logits = _nowhere(batch, bias) if logits is None else logits
        logits[alone.nonzero().squeeze(-1), position[alone[row]]] = bias
    return logits


def shortened(batch: Batch, row: Tensor, position: Tensor) -> Batch:
    """The texts `row` (case,), each without its word at `position` (case,)."""
    lengths = batch.lengths[row] - 1
    word = torch.arange(int(lengths.max()), device=row.device).expand(len(row), -1)
    tokens = batch.tokens[row[:, None], word + (word >= position[:, None])]
    return replace(Batch.of(tokens, lengths, batch.label[row], batch.instance[row]), **batch.questions(row))


def of_nothing(model: AttentionModel, batch: Batch) -> Tensor:
    """Logits (batch, class) with no token left; a model that reads start and end too says so by `without_text`."""
    if hasattr(model, "without_text"):
        return model.without_text(batch)
    output = model(batch)
    return model.read_out(output, torch.zeros_like(output.attention))


def _nowhere(batch: Batch, like: Tensor) -> Tensor:
    return like.new_full((*batch.mask.shape, like.shape[-1]), torch.nan)
