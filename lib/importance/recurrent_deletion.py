"""Every single deletion in a BiLSTM text at once, exactly.

Deleting token d changes the forward states after d and the backward states before it, nothing else. One sweep a
direction carries all deletions along: at step t there is a row for every earlier deletion, which went on from the state
before its token, and a row for the text as it is. What is kept of a state is its attention score and its features.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from lib.chunks import by_length
from lib.datasets.batches import Batch
from lib.importance.decoding import Decoding, Scoring, decoding
from lib.importance.recurrence import Recurrence
from lib.models import AttentionClassifier, QuestionClassifier
from lib.projections import softmax

ROWS = 2**11  # deletions times texts swept at once


@dataclass(frozen=True)
class Reading:
    """Scores and features as sums over the two directions: parts = h2 @ onward + h2' @ backward + bias.

    onward, backward (hidden / 2, part) read twice the states of a direction; the last `features` parts are features.
    bias (batch, part).
    """

    onward: Tensor
    backward: Tensor
    bias: Tensor
    scoring: Scoring
    features: int

    @classmethod
    def of(cls, decoding: Decoding, rows: Tensor) -> "Reading":
        """How the texts that `rows` names are read."""
        scoring, weight = decoding.scoring.rows(rows), decoding.weight
        both = torch.cat([scoring.weight, weight]).T / 2
        half = len(both) // 2
        bias = torch.cat([scoring.bias, scoring.bias.new_zeros(len(rows), len(weight))], dim=1)
        return cls(both[:half].contiguous(), both[half:].contiguous(), bias, scoring, len(weight))

    def scores_and_features(self, parts: Tensor) -> tuple[Tensor, Tensor]:
        """(..., batch, part) -> scores (..., batch), features (..., batch, feature)."""
        return self.scoring.of(parts[..., : -self.features]), parts[..., -self.features :]


@torch.no_grad()
def logits_by_one_sweep(model: AttentionClassifier | QuestionClassifier, batch: Batch) -> Tensor:
    """(batch, token, class) logits without each token, NaN off the mask; for a BiLSTM of one layer."""
    read = decoding(model, batch)
    directions = Recurrence.of(model.encoder.onward[0]), Recurrence.of(model.encoder.backward_[0])
    words, ids = batch.tokens.unique(return_inverse=True)
    tables = [direction.project(model.embedding(words)) for direction in directions]
    logits = read.weight.new_full((*batch.tokens.shape, model.decoder.out_features), torch.nan)
    for rows in by_length(batch.lengths, ROWS):
        lengths = batch.lengths[rows]
        width = int(lengths.max())
        reading = Reading.of(read, rows)
        some = _without_each(reading, directions, tables, ids[rows, :width].T, lengths, model.projection)
        logits[rows, :width] = read.finish(some, rows).transpose(0, 1)
    return logits.masked_fill(~batch.mask[:, :, None], torch.nan)


def _without_each(reading: Reading, directions, tables, ids: Tensor, lengths: Tensor, projection) -> Tensor:
    """(word, batch, feature): attended features. ids (word, batch) of the tables' rows."""
    place = torch.arange(len(ids), device=ids.device)[:, None]
    mirror = torch.where(place < lengths, lengths - 1 - place, place)  # its own inverse
    onward, backward = tables[0][ids], tables[1][ids.gather(0, mirror)]
    seen_onward = directions[0].states(onward) @ reading.onward + reading.bias
    seen_backward = directions[1].states(backward) @ reading.backward + reading.bias
    after = _sweep(directions[0], onward, reading.onward, _turned(seen_backward, mirror), reading, lengths)
    before = _sweep(directions[1], backward, reading.backward, _turned(seen_onward, mirror), reading, lengths)
    if projection is softmax:
        return _by_sums(_summed(*after), [_turned(part, mirror) for part in _summed(*before)])
    return _by_projection(projection, after, [_turned_both(part, mirror) for part in before])


def _by_sums(after: tuple[Tensor, Tensor], before: list[Tensor]) -> Tensor:
    """Softmax needs of either side only its mass and its attended features, each (word, batch, ...)."""
    mass = torch.logaddexp(after[0], before[0])
    share = [torch.exp(part - mass).nan_to_num_() for part, _ in (after, before)]  # nothing left: -inf - -inf
    return share[0] * after[1] + share[1] * before[1]


def _summed(scores: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
    """(word, batch, 1) log of the sum of exp(score), (word, batch, feature) attended features, over the tokens."""
    mass = scores.logsumexp(dim=0)
    share = scores.sub_(mass).exp_().nan_to_num_()
    return mass[:, :, None], (share[..., None] * logits).sum(dim=0)


def _by_projection(projection, after: tuple[Tensor, Tensor], before: list[Tensor]) -> Tensor:
    """Any other projection needs the scores of all tokens that a deletion leaves, from both sides."""
    later = after[0] > -torch.inf
    scores, logits = torch.where(later, after[0], before[0]), torch.where(later[..., None], after[1], before[1])
    scores, logits = scores.permute(1, 2, 0), logits.permute(1, 2, 0, 3)  # (deletion, batch, token)
    some = (scores > -torch.inf).any(dim=-1)  # else nothing is left: the attended vector is zero
    attended = logits.new_zeros(*logits.shape[:2], logits.shape[-1])
    attention = projection(scores[some], scores[some] > -torch.inf)
    attended[some] = (attention[:, None] @ logits[some]).squeeze(1)
    return attended


def _turned(sequences: Tensor, mirror: Tensor) -> Tensor:
    """(word, batch, feature), each text backwards."""
    return sequences.gather(0, mirror[:, :, None].expand_as(sequences))


def _turned_both(sequences: Tensor, mirror: Tensor) -> Tensor:
    """(token, deletion, batch, ...), each text backwards in both."""
    for axis in (0, 1):
        index = mirror[:, None] if axis == 0 else mirror[None]
        index = index.view(*index.shape, *(1,) * (sequences.dim() - 3)).expand_as(sequences)
        sequences = sequences.gather(axis, index)
    return sequences


def _sweep(direction: Recurrence, inputs, weight, others, reading: Reading, lengths) -> tuple[Tensor, Tensor]:
    """What the tokens after each deletion hold, in the order of this direction.

    Args:
        inputs: (word, batch, gate) projected. weight: (hidden, part) of this direction.
        others: (word, batch, part), the other direction's features and the bias.
    Returns:
        scores (token, deletion, batch) and features (token, deletion, batch, feature) of the later tokens; -inf and 0
        elsewhere.
    """
    words, texts, _ = inputs.shape
    twice, cell = inputs.new_zeros(2, words, texts, direction.size)  # row 0: nothing deleted; row d: without word d
    gates = inputs.new_empty(words, texts, 4 * direction.size)
    scores = inputs.new_full((words, words, texts), -torch.inf)  # (token, deletion, batch)
    kept = inputs.new_zeros(words, words, texts, reading.features)
    for word in range(words - 1):
        twice[word], cell[word] = twice[0], cell[0]  # without this word, its predecessor's state stays
        rows = slice(0, max(word, 1))
        gates[rows] = inputs[word]
        direction.advance(gates[rows].flatten(0, 1), twice[rows].flatten(0, 1), cell[rows].flatten(0, 1))
        if word > 1:
            parts = (twice[1:word].flatten(0, 1) @ weight).view(word - 1, texts, -1).add_(others[word])
            scores[word, 1:word], kept[word, 1:word] = reading.scores_and_features(parts)
    place = torch.arange(words, device=lengths.device)
    scores.masked_fill_((place[:, None] >= lengths - 1)[:, None], -torch.inf)  # end and padding
    return scores, kept
