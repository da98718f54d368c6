"""Every single deletion in a BiLSTM text at once, exactly.

Deleting token d changes the forward states after d and the backward states before it, nothing else. One sweep per
direction computes all deletions together: at step t there is a row for every earlier deletion, continued from the state
before its token. Of each state only its attention score and its features are kept. The deletions of a long text are
swept in blocks, so that scores and features of all pairs of tokens and deletions are never in memory at once.

A trained LSTM forgets: some tens of words after a deletion its states are those of the whole text again, to rounding,
and so is all that follows. Such a row is swept no further.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.fast.decoding import Decoding, Scoring, decoding
from lib.fast.lstm import Recurrence
from lib.models import AttentionClassifier, QuestionClassifier
from lib.numerics import by_length
from lib.projections import project_the_rest, softmax

ROWS = 2**13  # deletions times texts swept at once; a fourth where all pairs of words and deletions are held
PAIRS = 2**22  # tokens times deletions of one text whose scores are held at once: 16 MB a direction
FORGOTTEN = 4  # roundings of the largest state: a difference that sums make too
EVERY = 8  # words after which it is looked whether states have come back
Attended = tuple[Tensor, Tensor]  # (..., 1) log of a sum of exp(score); (..., feature) features under softmax


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
def logits_without_each_token(model: AttentionClassifier | QuestionClassifier, batch: Batch) -> Tensor:
    """(batch, token, class) logits without each token, NaN off the mask; for a BiLSTM of one layer."""
    read = decoding(model, batch)
    directions = Recurrence.of(model.encoder.forwards[0]), Recurrence.of(model.encoder.backwards[0])
    words, ids = batch.tokens.unique(return_inverse=True)
    tables = [direction.project(model.embedding(words)) for direction in directions]
    logits = read.weight.new_full((*batch.tokens.shape, model.decoder.out_features), torch.nan)
    for rows in by_length(batch.lengths, ROWS if model.projection is softmax else ROWS // 4):
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
    inputs = tables[0][ids], tables[1][ids.gather(0, mirror)]
    passed = [direction.remembered(own.clone()) for direction, own in zip(directions, inputs, strict=True)]
    weights = reading.onward, reading.backward
    seen = [states @ weight + reading.bias for (states, _), weight in zip(passed, weights, strict=True)]
    others = [_turned(part, mirror) for part in reversed(seen)]
    onward, backward = (
        Sweep(*of_direction, reading, lengths)
        for of_direction in zip(directions, inputs, passed, weights, others, strict=True)
    )
    if projection is softmax:
        return merged(onward.summed(), [_turned(part, mirror) for part in backward.summed()])[1]
    return _by_projection(projection, onward, backward, mirror)


def _blocks(words: int, texts: int) -> Iterator[tuple[int, int]]:
    """(first, last + 1) of the deletions that are swept at once; all of them where several texts share a sweep."""
    step = words if texts > 1 else max(1, PAIRS // words)
    return ((first, min(first + step, words)) for first in range(0, words, step))


def _by_projection(projection, onward: "Sweep", backward: "Sweep", mirror: Tensor) -> Tensor:
    """Any other projection needs the scores of all tokens that a deletion leaves, from both sides."""
    words, texts = len(mirror), torch.arange(mirror.shape[1], device=mirror.device)
    found = []
    for first, last in _blocks(*mirror.shape):
        after = onward.later(first, last)
        before = backward.later(words - last, words - first)  # the same deletions, counted from the end
        deletions = mirror[first:last] - (words - last)
        before = [part[mirror[:, None], deletions, texts] for part in before]  # each text backwards in both
        later = after[0] > -torch.inf
        scores = torch.where(later, after[0], before[0]).permute(1, 2, 0)  # (deletion, batch, token)
        features = torch.where(later[..., None], after[1], before[1]).permute(1, 2, 0, 3)
        attention = project_the_rest(projection, scores, scores > -torch.inf)
        found.append((attention[:, :, None] @ features).squeeze(2))
    return torch.cat(found)


def _turned(sequences: Tensor, mirror: Tensor) -> Tensor:
    """(word, batch, feature), each text backwards."""
    return sequences.gather(0, mirror[:, :, None].expand_as(sequences))


def merged(some: Sequence[Tensor], others: Sequence[Tensor]) -> Attended:
    """The sums over some tokens and those over others as sums over both."""
    mass = torch.logaddexp(some[0], others[0])
    shares = [torch.exp(part[0] - mass).nan_to_num_() for part in (some, others)]  # of nothing: -inf - -inf
    return mass, shares[0] * some[1] + shares[1] * others[1]


def from_the_end_in_logs(values: Tensor) -> Tensor:
    """log of the sum of exp(value) from each place on, along the first axis."""
    return values.flip(0).logcumsumexp(dim=0).flip(0)


@dataclass(frozen=True)
class Sweep:
    """Some texts in one direction, from which any deletions can be swept.

    inputs   (word, batch, gate), projected
    passed   twice the hidden states, and the cells, of the texts as they are: (word, batch, hidden) each
    weight   (hidden, part) of this direction
    others   (word, batch, part), the other direction's features and the bias
    """

    direction: Recurrence
    inputs: Tensor
    passed: tuple[Tensor, Tensor]
    weight: Tensor
    others: Tensor
    reading: Reading
    lengths: Tensor

    def later(self, first: int, last: int) -> tuple[Tensor, Tensor]:
        """What the tokens after each of the deletions first .. last - 1 hold, in the order of this direction.

        Deletions come back to the whole text's states in about their own order: those before `back` have.

        Returns:
            scores (token, deletion, batch) and features (token, deletion, batch, feature) of the later tokens; -inf
            and 0 elsewhere.
        """
        words, texts, _ = self.inputs.shape
        scores = self.inputs.new_full((words, last - first, texts), -torch.inf)
        kept = self.inputs.new_zeros(words, last - first, texts, self.reading.features)
        whole = self.of_text()
        for word, back, going, found in self.steps(first, last):
            for held, of_text, of_rows in zip((scores, kept), whole, found, strict=True):
                held[word, :back], held[word, back:going] = of_text[word], of_rows
        return scores.masked_fill_(self.outside(0, words)[:, None], -torch.inf), kept

    def summed(self) -> Attended:
        """All that softmax needs of the tokens after each deletion, in the order of this direction, (word, batch, ...).

        Sums grow as a deletion is swept; when it is forgotten, the rest of the text as it is completes them.
        """
        words, texts, features = len(self.inputs), len(self.lengths), self.reading.features
        mass = self.inputs.new_full((words, texts, 1), -torch.inf, dtype=torch.float64)
        sums = mass, mass.new_zeros(words, texts, features)
        rest, done, steps = self.rest_of_text(), 0, []

        def add(first: int, last: int, others: Sequence[Tensor]) -> None:
            grown = merged([part[first:last] for part in sums], others)
            for part, value in zip(sums, grown, strict=True):
                part[first:last] = value

        for word, back, going, found in self.steps(0, words):
            if back > done:
                add(done, back, [part[word] for part in rest])
                done = back
            steps.append((word, going, found))
            if word % EVERY == 0 or word == words - 2:
                add(done, going, self.attended(steps, done))
                steps.clear()
        return sums[0].to(self.inputs.dtype), sums[1].to(self.inputs.dtype)

    def attended(self, steps: list[tuple[int, int, tuple[Tensor, Tensor]]], first: int) -> Attended:
        """The sums over some `steps`, of the deletions from `first` on."""
        last = steps[-1][1]
        shape = len(steps), last - first, len(self.lengths)
        scores, kept = self.inputs.new_full(shape, -torch.inf), self.inputs.new_zeros(*shape, self.reading.features)
        for place, (_, going, found) in enumerate(steps):
            scores[place, : going - first], kept[place, : going - first] = found
        scores.masked_fill_(self.outside(steps[0][0], steps[-1][0] + 1)[:, None], -torch.inf)
        mass = scores.logsumexp(dim=0)
        return mass[..., None], ((scores - mass).exp().nan_to_num_()[..., None] * kept).sum(dim=0)

    def rest_of_text(self) -> Attended:
        """The sums over a text as it is, from each word on, in doubles."""
        scores, kept = (part.double() for part in self.of_text())
        scores = scores.masked_fill(self.outside(0, len(scores)), -torch.inf)[..., None]
        mass = from_the_end_in_logs(scores)
        parts = (from_the_end_in_logs(scores + part.clamp_min(0).log()) for part in (kept, -kept))
        above, below = ((part - mass).exp().nan_to_num_() for part in parts)
        return mass, above - below

    def outside(self, first: int, last: int) -> Tensor:
        """(word, batch) True where a text has its end or padding, of the words first .. last - 1."""
        return torch.arange(first, last, device=self.lengths.device)[:, None] >= self.lengths - 1

    def of_text(self) -> tuple[Tensor, Tensor]:
        """Scores (word, batch) and features (word, batch, feature) of the texts as they are."""
        return self.reading.scores_and_features(self.passed[0] @ self.weight + self.others)

    def steps(self, first: int, last: int) -> Iterator[tuple[int, int, int, tuple[Tensor, Tensor]]]:
        """For each word the deletions, counted from `first`, that it is new to: those from `back` up to `going`.

        Those before `back` have come back to the whole text's states; those from `going` on lie ahead.

        Yields:
            word, back, going; scores (deletion, batch) and features (deletion, batch, feature) of the word after each.
        """
        words, texts, _ = self.inputs.shape
        rows, size, back = last - first, self.direction.size, 0
        twice, cell = self.inputs.new_zeros(2, rows, texts, size)
        for state, passed in zip((twice, cell), self.passed, strict=True):  # without a word, its predecessor's stays
            state[max(1 - first, 0) :] = passed[max(first, 1) - 1 : last - 1]
        gates = self.inputs.new_empty(rows, texts, 4 * size)
        for word in range(first + 1, words - 1):
            going = min(word, last) - first  # those whose word lies behind
            gates[back:going] = self.inputs[word]
            if back < going:
                self.direction.advance(*(part[back:going].flatten(0, 1) for part in (gates, twice, cell)))
            parts = (twice[back:going].flatten(0, 1) @ self.weight).view(going - back, texts, -1)
            yield word, back, going, self.reading.scores_and_features(parts.add_(self.others[word]))
            if word % EVERY == 0 and back < going:
                back += self.come_back(word, twice[back:going], cell[back:going])

    def come_back(self, word: int, *states: Tensor) -> int:
        """How many of the first rows have the whole text's states again, (row, batch, hidden) each."""
        least = FORGOTTEN * torch.finfo(self.weight.dtype).eps
        differ = [
            (state - passed[word]).abs().amax(dim=(1, 2)) > least * passed[word].abs().amax()
            for state, passed in zip(states, self.passed, strict=True)
        ]
        return int((~(differ[0] | differ[1])).to(torch.uint8).cumprod(dim=0).sum())
