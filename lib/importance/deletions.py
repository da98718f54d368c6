"""The logits of a text without each of its tokens.

The definition encodes every shortened text. Our classifiers with an average, convolutional or one-layer LSTM encoder
give the same, to rounding, from the states that a deletion changes. A Transformer does not: the words behind the
deleted one move, so that every state of every layer changes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from lib import numerics as elementwise
from lib.datasets.batches import Batch
from lib.importance.lstm import Recurrence, both_directions, has_one_lstm
from lib.models import AttentionClassifier, AttentionModel, QuestionClassifier
from lib.models.attention import Additive, AdditiveWithQuery
from lib.models.encoders import Average, Convolution
from lib.models.evaluation import words_at_once
from lib.numerics import by_length
from lib.projections import project_the_rest

MAX_WORDS_PER_PASS = 2**11  # of shortened texts
CLASSIFIERS = (AttentionClassifier, QuestionClassifier)  # not their subclasses: these attend differently
PAIRS = 2**22  # deletions x tokens x texts whose scores are held at once, of one feature each
ROWS = 2**11  # deletions x texts that are swept at once: their states stay in the processor's cache
ROUNDINGS = 4  # of the largest state: a difference that sums make too
EVERY = 8  # words after which forgotten deletions are looked for


@torch.no_grad()
def logits_without_each_token_definition(model: AttentionModel, batch: Batch) -> Tensor:
    """Logits of the text with the token at each position deleted, one token shorter; start and end stay.

    Where nothing is left, in a text of one token, they are `logits_of_nothing`.

    Returns:
        (batch, token, class); NaN off the mask.
    """
    texts, positions = batch.mask.nonzero(as_tuple=True)
    alone = batch.mask[texts].sum(dim=1) == 1
    parts = [(alone, logits_of_nothing(model, batch.rows(texts[alone])))] if alone.any() else []
    for rows in by_length(batch.lengths[texts] * ~alone, words_at_once(model, MAX_WORDS_PER_PASS)):
        parts.append((rows, model(without_words(batch.rows(texts[rows]), positions[rows])).logits))
    logits = parts[0][1].new_full((*batch.mask.shape, parts[0][1].shape[1]), torch.nan)
    for rows, shortened in parts:
        logits[texts[rows], positions[rows]] = shortened
    return logits


def without_words(batch: Batch, positions: Tensor) -> Batch:
    """The texts, each without its word at the position (batch,) that is named for it."""
    tokens = without_each(batch.tokens, positions)
    shorter = Batch.of(tokens, batch.lengths - 1, batch.label, batch.instance)
    return replace(shorter, query=batch.query, query_mask=batch.query_mask)


def without_each(values: Tensor, positions: Tensor) -> Tensor:
    """Each row of values (batch, word) without the one at its position (batch,): (batch, word - 1)."""
    place = torch.arange(values.shape[1] - 1, device=positions.device)
    return values.gather(1, place + (place >= positions[:, None]).long())


def logits_of_nothing(model: AttentionModel, batch: Batch) -> Tensor:
    """Logits (batch, class) with no token left; of a model that reads start and end too its `without_text`."""
    if hasattr(model, "without_text"):
        return model.without_text(batch)
    output = model(batch)
    return model.read_out(output, torch.zeros_like(output.attention))


def logits_without_each_token(model: AttentionModel, batch: Batch) -> Tensor:
    """`logits_without_each_token_definition`, from the changed states alone where the encoder allows it."""
    if type(model) in CLASSIFIERS and isinstance(model.encoder, Average | Convolution):
        return _in_parts(model, batch, windowed)
    if type(model) in CLASSIFIERS and has_one_lstm(model):
        return _in_parts(model, batch, swept)
    return logits_without_each_token_definition(model, batch)


@torch.no_grad()
def _in_parts(model: AttentionModel, batch: Batch, attended: Callable[["Reading"], Tensor]) -> Tensor:
    """(batch, token, class) from attended features (text, token, feature) of some texts at a time; NaN off the mask."""
    logits = model.decoder.weight.new_full((*batch.tokens.shape, model.decoder.out_features), torch.nan)
    whole = Reading.of(model, batch)
    for rows in by_length(batch.lengths, min(ROWS, PAIRS // int(batch.lengths.max()) // len(whole.weight))):
        part = whole.rows(rows)
        logits[rows, : part.batch.tokens.shape[1]] = part.decode(attended(part)).to(logits.dtype)
    return logits.masked_fill(~batch.mask[:, :, None], torch.nan)


@dataclass(frozen=True)
class Reading:
    """How one of our classifiers reads the states of a batch: scores each, and logits from their attended features.

    weight (feature, hidden), features of a state; query (text, hidden), only where the text answers a question.
    """

    model: AttentionClassifier | QuestionClassifier
    batch: Batch
    weight: Tensor
    query: Tensor | None

    @classmethod
    def of(cls, model: AttentionClassifier | QuestionClassifier, batch: Batch) -> "Reading":
        """Of texts alone, or of texts with their questions."""
        if isinstance(model, QuestionClassifier):
            return cls(model, batch, model.affine_text.weight, model.encode_query(batch))
        return cls(model, batch, model.decoder.weight, None)

    def rows(self, rows: Tensor) -> "Reading":
        """The same of the texts at those positions of the batch."""
        return replace(self, batch=self.batch.rows(rows), query=None if self.query is None else self.query[rows])

    def scores(self, hidden: Tensor) -> Tensor:
        """States (text, state, hidden) -> (text, state): `model.attention`, with the faster tanh of NumPy."""
        attention = self.model.attention
        given = (hidden,) if self.query is None else (hidden, self.query)
        if not isinstance(attention, Additive | AdditiveWithQuery):
            return attention(*given)
        inner = attention.affine(hidden)
        if self.query is not None:
            inner += attention.affine_query(self.query)[:, None]
        return attention.context(elementwise.tanh(inner, out=inner)).squeeze(-1)

    def features(self, hidden: Tensor) -> Tensor:
        """States (..., hidden) -> (..., feature)."""
        return hidden @ self.weight.T

    def decode(self, attended: Tensor) -> Tensor:
        """Attended features (text, place, feature) -> logits (text, place, class)."""
        if self.query is None:
            return attended + self.model.decoder.bias
        of_query = self.model.affine_query(self.query)[:, None]
        return self.model.answer(attended + self.model.affine_text.bias, of_query)


# --- encoders whose states see their neighbours alone


def windowed(reading: Reading) -> Tensor:
    """Attended features (text, deletion, feature): a deletion changes the states of `reach` tokens on each side."""
    model, batch = reading.model, reading.batch
    embedded = model.embedding(batch.tokens)
    hidden = model.encoder(embedded, batch.lengths)
    changed = _states_beside(model.encoder, embedded, batch.lengths)
    texts, words, neighbours, size = changed.shape
    scores = reading.scores(hidden).double().masked_fill(~batch.mask, -torch.inf)
    beside = reading.scores(changed.view(texts, words * neighbours, size)).double().view(texts, words, neighbours)
    for number, by in enumerate(_offsets(neighbours // 2)):
        beside[:, :, number].masked_fill_(~_shifted(batch.mask, by), -torch.inf)
    features, of_beside = reading.features(hidden).double(), reading.features(changed).double()
    place, attended = torch.arange(words, device=scores.device), []
    for some in place.split(max(1, PAIRS // 8 // (texts * words))):
        far = (place - some[:, None]).abs() > neighbours // 2
        kept = torch.cat([torch.where(far, scores[:, None], -torch.inf), beside[:, some]], dim=2)
        attention = project_the_rest(model.projection, kept, kept > -torch.inf)
        changed_sums = (attention[:, :, words:, None] * of_beside[:, some]).sum(dim=2)
        attended.append(attention[:, :, :words] @ features + changed_sums)
    return torch.cat(attended, dim=1)


def _states_beside(encoder: Average | Convolution, embedded: Tensor, lengths: Tensor) -> Tensor:
    """The states around each word once it is deleted: (text, word, neighbour, hidden), of neighbours in text order.

    Each tap of a filter is applied once to each word; the rest is additions.
    """
    if isinstance(encoder, Average):
        return embedded.new_empty(*embedded.shape[:2], 0, encoder.hidden_size)
    reach = max(conv.kernel_size[0] // 2 for conv in encoder.convolutions)
    inside = torch.arange(embedded.shape[1], device=embedded.device) < lengths[:, None]
    embedded = embedded * inside[:, :, None]
    changed = []
    for conv in encoder.convolutions:
        taps = [embedded @ weight.T for weight in conv.weight.unbind(dim=2)]
        changed.append(torch.stack([_tapped(taps, conv.bias, by) for by in _offsets(reach)], dim=2))
    return torch.relu(torch.cat(changed, dim=-1))


def _tapped(taps: list[Tensor], bias: Tensor, by: int) -> Tensor:
    """The output at the neighbour `by` words away once the word here is deleted: taps that reach across it move on."""
    half = len(taps) // 2
    read = [by + k - half for k in range(len(taps))]  # the word that each tap reads, relative to the deleted one
    moved = [at + (at >= 0 > by) - (at <= 0 < by) for at in read]
    return bias + sum(_shifted(tap, at) for tap, at in zip(taps, moved, strict=True))


def _offsets(reach: int) -> list[int]:
    return [by for by in range(-reach, reach + 1) if by]


def _shifted(sequences: Tensor, by: int) -> Tensor:
    """(batch, word, ...): at each word the value `by` words later, zero beyond the ends."""
    words = sequences.shape[1]
    by = max(-words, min(by, words))
    ends = (0, 0) * (sequences.dim() - 2) + (max(-by, 0), max(by, 0))
    return pad(sequences, ends)[:, max(by, 0) : max(by, 0) + words]


# --- a BiLSTM of one layer
# Deleting a token changes the forward states after it and the backward states before it. One sweep per direction
# computes all deletions: a step has a row for every earlier deletion, continued from the state before its token.
# A trained LSTM forgets: some tens of words after a deletion its states are those of the whole text again, to rounding,
# and so is all that follows. Such a row is swept no further.


def swept(reading: Reading) -> Tensor:
    """Attended features (text, deletion, feature), from one sweep in each direction."""
    batch, encoder = reading.batch, reading.model.encoder
    texts, words = batch.tokens.shape
    place = torch.arange(words, device=batch.tokens.device)[:, None]
    mirror = torch.where(place < batch.lengths, batch.lengths - 1 - place, place)  # (word, text), its own inverse
    directions, inputs = both_directions(encoder, reading.model.embedding(batch.tokens), batch.lengths)
    passed = [direction.run(own.clone()) for direction, own in zip(directions, inputs, strict=True)]
    others = [states.gather(0, mirror[:, :, None].expand_as(states)) for states, _ in reversed(passed)]
    onward, backward = map(Sweep, directions, inputs, passed, others, (True, False), (reading, reading))
    attended = []
    for some in place[:, 0].split(words if texts > 1 else max(1, PAIRS // words // len(reading.weight))):
        first, last = int(some[0]), int(some[-1]) + 1
        after, before = onward.later(first, last), backward.later(words - last, words - first)
        at = mirror[:, None], mirror[some] - (words - last), torch.arange(texts, device=place.device)
        later = after[0] > -torch.inf
        scores = torch.where(later, after[0], before[0][at]).permute(2, 1, 0)  # (text, deletion, token)
        features = torch.where(later[..., None], after[1], before[1][at]).permute(2, 1, 0, 3)
        attention = project_the_rest(reading.model.projection, scores, scores > -torch.inf)
        attended.append((attention[:, :, None] @ features).squeeze(2))
    return torch.cat(attended, dim=1)


@dataclass(frozen=True)
class Sweep:
    """Some texts in one direction, from which any deletions can be swept.

    inputs   (word, text, gate), projected
    passed   twice the hidden states, and the cells, of the texts as they are: (word, text, hidden) each
    others   (word, text, hidden): twice the other direction's states
    onward   whether this is the forward direction, whose states come first
    """

    direction: Recurrence
    inputs: Tensor
    passed: tuple[Tensor, Tensor]
    others: Tensor
    onward: bool
    reading: Reading

    def later(self, first: int, last: int) -> tuple[Tensor, Tensor]:
        """What the tokens after each of the deletions first .. last - 1 hold, in the order of this direction.

        Returns:
            scores (token, deletion, text) and features (token, deletion, text, feature) of the later tokens; -inf and 0
            elsewhere.
        """
        words, texts, _ = self.inputs.shape
        scores = self.inputs.new_full((words, last - first, texts), -torch.inf)
        features = self.inputs.new_zeros(*scores.shape, len(self.reading.weight))
        whole = self.read(self.passed[0], self.others)
        for word, back, going, states in self.steps(first, last):
            changed = self.read(states, self.others[word])
            for held, of_text, of_rows in zip((scores, features), whole, changed, strict=True):
                held[word, :back], held[word, back:going] = of_text[word], of_rows
        ended = torch.arange(words, device=scores.device)[:, None] >= self.reading.batch.lengths - 1
        return scores.masked_fill_(ended[:, None], -torch.inf), features

    def read(self, twice: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (row, text) and features (row, text, feature) of states (row, text, hidden) of both directions."""
        halves = (twice, others.expand_as(twice))
        hidden = torch.cat(halves if self.onward else halves[::-1], dim=-1).div_(2)
        return self.reading.scores(hidden.transpose(0, 1)).T, self.reading.features(hidden)

    def steps(self, first: int, last: int) -> Iterator[tuple[int, int, int, Tensor]]:
        """For each word the deletions, counted from `first`, whose later states it changes.

        Deletions come back to the whole text's states in about their own order.

        Yields:
            word, back, going: those before `back` have come back, those from `going` on lie ahead; twice the states
            (deletion, text, hidden) of the others at the word.
        """
        words, texts, _ = self.inputs.shape
        rows, size, back = last - first, self.direction.size, 0
        twice, cell = self.inputs.new_zeros(2, rows, texts, size)
        for state, passed in zip((twice, cell), self.passed, strict=True):  # without a word, its predecessor's stays
            state[max(1 - first, 0) :] = passed[max(first, 1) - 1 : last - 1]
        gates = self.inputs.new_empty(rows, texts, 4 * size)
        for word in range(first + 1, words - 1):
            going = min(word, last) - first
            if back < going:
                gates[back:going] = self.inputs[word]
                self.direction.advance(*(part[back:going].flatten(0, 1) for part in (gates, twice, cell)))
            yield word, back, going, twice[back:going]
            if word % EVERY == 0 and back < going:
                back += self.come_back(word, twice[back:going], cell[back:going])

    def come_back(self, word: int, *states: Tensor) -> int:
        """How many of the first rows have the whole text's states again, (row, text, hidden) each."""
        least = ROUNDINGS * torch.finfo(self.inputs.dtype).eps
        differ = [
            (state - passed[word]).abs().amax(dim=(1, 2)) > least * passed[word].abs().amax()
            for state, passed in zip(states, self.passed, strict=True)
        ]
        return int((~(differ[0] | differ[1])).to(torch.uint8).cumprod(dim=0).sum())
