"""The logits of a text without each of its tokens.

The definition encodes every shortened text. Our classifiers with an average, convolutional or one-layer LSTM encoder
give the same, to rounding, from the states that a deletion changes. A Transformer does not: the words behind the
deleted one move, so that every state of every layer changes.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from lib import numerics as elementwise
from lib.datasets.batches import Batch
from lib.datasets.corpus import UNKNOWN
from lib.importance.lstm import Recurrence, both_directions, has_one_lstm
from lib.models import AttentionClassifier, AttentionModel, QuestionClassifier
from lib.models.attention import Additive
from lib.models.encoders import Average, Convolution
from lib.models.evaluation import words_at_once
from lib.models.interface import logits_of_nothing
from lib.numerics import by_length
from lib.projections import project_the_rest

MAX_WORDS_PER_PASS = 2**11  # of shortened texts
CLASSIFIERS = (AttentionClassifier, QuestionClassifier)  # not their subclasses: these attend differently
PAIRS = 2**22  # deletions x tokens x texts whose scores are held at once, of one feature each
ROWS = 2**11  # deletions x texts that are swept at once: their states stay in the processor's cache
ROUNDINGS = 4  # of the largest state: a difference that sums make too
EVERY = 8  # words after which forgotten deletions are looked for


@torch.no_grad()
def logits_without_each_token_definition(model: AttentionModel, batch: Batch, mask: bool = False) -> Tensor:
    """Logits of the text with the token at each position deleted, one token shorter; start and end stay.

    (batch, token, class), NaN off the mask. Where nothing is left they are `logits_of_nothing`. With `mask` [MASK], or
    the unknown word, is put in its place.
    """
    texts, positions = batch.mask.nonzero(as_tuple=True)
    alone = (batch.mask[texts].sum(dim=1) == 1) & (not mask)
    parts = [(alone, logits_of_nothing(model, batch.rows(texts[alone])))] if alone.any() else []
    for rows in by_length(batch.lengths[texts] * ~alone, words_at_once(model, MAX_WORDS_PER_PASS)):
        part, at = batch.rows(texts[rows]), positions[rows]
        given = replace(part, tokens=part.tokens.scatter(1, at[:, None], UNKNOWN)) if mask else without_words(part, at)
        parts.append((rows, model(given).logits))
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


@torch.no_grad()
def logits_without_each_token(model: AttentionModel, batch: Batch, mask: bool = False) -> Tensor:
    """`logits_without_each_token_definition`, from the changed states alone where the encoder allows it."""
    windows = type(model) in CLASSIFIERS and isinstance(model.encoder, Average | Convolution)
    if mask or (not windows and not (type(model) in CLASSIFIERS and has_one_lstm(model))):
        return logits_without_each_token_definition(model, batch, mask)
    logits = model.decoder.weight.new_full((*batch.tokens.shape, model.decoder.out_features), torch.nan)
    asks = isinstance(model, QuestionClassifier)
    layer = model.affine_text if asks else model.decoder  # its weight: (feature, hidden)
    query = model.encode_query(batch) if asks else None
    for rows in by_length(batch.lengths, min(ROWS, PAIRS // int(batch.lengths.max()) // layer.out_features)):
        part, asked = batch.rows(rows), query[rows] if asks else None
        found = (windowed if windows else swept)(model, part, layer.weight, asked) + layer.bias
        found = model.answer(found, model.affine_query(asked)[:, None]) if asks else found
        logits[rows, : part.tokens.shape[1]] = found.to(logits.dtype)
    return logits.masked_fill(~batch.mask[:, :, None], torch.nan)


def scored(model: AttentionClassifier, hidden: Tensor, query: Tensor | None) -> Tensor:
    """States (text, state, hidden) -> (text, state): `model.attention`, with the faster tanh of NumPy."""
    attention = model.attention
    if not isinstance(attention, Additive):
        return attention(hidden) if query is None else attention(hidden, query)
    inner = attention.affine(hidden)
    if query is not None:
        inner += attention.affine_query(query)[:, None]
    return attention.context(elementwise.tanh(inner, out=inner)).squeeze(-1)


# --- encoders whose states see their neighbours alone


def windowed(model: AttentionClassifier, batch: Batch, weight: Tensor, query: Tensor | None) -> Tensor:
    """What is attended without each token: a deletion changes the states of `reach` tokens on each side.

    (text, deletion, feature). weight: (feature, hidden), the features of a state that are read. query: (text, hidden),
    of texts with one.
    """
    embedded = model.embedding(batch.tokens)
    hidden = model.encoder(embedded, batch.lengths)
    reach, changed = _states_beside(model.encoder, embedded, batch.lengths)
    texts, words, neighbours, size = changed.shape
    scores = scored(model, hidden, query).double().masked_fill(~batch.mask, -torch.inf)
    beside = scored(model, changed.view(texts, -1, size), query).double().view(texts, words, neighbours)
    there = [_shifted(batch.mask, by) for by in range(-reach, reach + 1) if by]
    beside = beside.masked_fill(~torch.stack(there, dim=2), -torch.inf) if there else beside
    features, of_beside = (hidden @ weight.T).double(), (changed @ weight.T).double()
    place, attended = torch.arange(words, device=scores.device), []
    for some in place.split(max(1, PAIRS // 8 // (texts * words))):
        far = (place - some[:, None]).abs() > reach
        kept = torch.cat([torch.where(far, scores[:, None], -torch.inf), beside[:, some]], dim=2)
        attention = project_the_rest(model.projection, kept, kept > -torch.inf)
        changed_sums = (attention[:, :, words:, None] * of_beside[:, some]).sum(dim=2)
        attended.append(attention[:, :, :words] @ features + changed_sums)
    return torch.cat(attended, dim=1)


def _states_beside(encoder: Average | Convolution, embedded: Tensor, lengths: Tensor) -> tuple[int, Tensor]:
    """How far a word reaches, and the states that it reaches once it is deleted: (text, word, neighbour, hidden).

    Each tap of a filter is applied once to each word; the rest is additions: taps that reach across the deleted word
    move on. Neighbours are in the text's order.
    """
    if isinstance(encoder, Average):
        return 0, embedded.new_empty(*embedded.shape[:2], 0, encoder.hidden_size)
    reach = max(conv.kernel_size[0] // 2 for conv in encoder.convolutions)
    inside = torch.arange(embedded.shape[1], device=embedded.device) < lengths[:, None]
    changed = []
    for conv in encoder.convolutions:
        taps = [embedded * inside[:, :, None] @ weight.T for weight in conv.weight.unbind(dim=2)]
        outputs = []
        for by in (*range(-reach, 0), *range(1, reach + 1)):
            read = range(by - len(taps) // 2, by + len(taps) // 2 + 1)  # words from the deleted one
            read = [at + (at >= 0 > by) - (at <= 0 < by) for at in read]
            outputs.append(conv.bias + sum(map(_shifted, taps, read)))
        changed.append(torch.stack(outputs, dim=2))
    return reach, torch.relu(torch.cat(changed, dim=-1))


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


def swept(model: AttentionClassifier, batch: Batch, weight: Tensor, query: Tensor | None) -> Tensor:
    """As `windowed`, from one sweep in each direction."""
    texts, words = batch.tokens.shape
    place = torch.arange(words, device=batch.tokens.device)[:, None]
    mirror = torch.where(place < batch.lengths, batch.lengths - 1 - place, place)  # (word, text), its own inverse
    directions, inputs = both_directions(model.encoder, model.embedding(batch.tokens), batch.lengths)
    passed = [direction.run(own.clone()) for direction, own in zip(directions, inputs, strict=True)]
    onward, backward = (states.gather(0, mirror[:, :, None].expand_as(states)) for states, _ in passed)

    def read(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (row, text) and features (row, text, feature), of twice the states of both directions."""
        hidden = torch.cat([first, second], dim=-1).div_(2)
        return scored(model, hidden.transpose(0, 1), query).T, hidden @ weight.T

    def read_onward(states: Tensor, word: int | slice) -> tuple[Tensor, Tensor]:
        return read(states, backward[word].expand_as(states))

    def read_backward(states: Tensor, word: int | slice) -> tuple[Tensor, Tensor]:
        return read(onward[word].expand_as(states), states)

    ways = zip(directions, inputs, passed, (read_onward, read_backward), strict=True)
    after_each, before_each = (partial(_later, *way) for way in ways)
    attended = []
    for some in place[:, 0].split(words if texts > 1 else max(1, PAIRS // words // len(weight))):
        first, last = int(some[0]), int(some[-1]) + 1
        after, before = after_each(first, last), before_each(words - last, words - first)
        at = mirror[:, None], mirror[some] - (words - last), torch.arange(texts, device=place.device)
        later = (place > some)[:, :, None] & (place < batch.lengths - 1)[:, None]  # (token, deletion, text)
        kept = (later | ((place > 0) & (place < some))[:, :, None]).permute(2, 1, 0)
        scores = torch.where(later, after[0], before[0][at]).permute(2, 1, 0)
        features = torch.where(later[..., None], after[1], before[1][at]).permute(2, 1, 0, 3)
        attention = project_the_rest(model.projection, scores, kept)
        attended.append((attention[:, :, None] @ features).squeeze(2))
    return torch.cat(attended, dim=1)


def _later(
    direction: Recurrence, inputs: Tensor, passed: tuple[Tensor, Tensor], read: Callable, first: int, last: int
) -> tuple[Tensor, Tensor]:
    """What the tokens after each of the deletions first .. last - 1 hold, in the order of this direction.

    Deletions come back to the whole text's states in about their own order: those before `back` have.

    Args:
        inputs: (word, text, gate), projected. passed: twice the hidden states, and the cells, of the whole texts.
        read: (twice the states (row, text, hidden), at which word) -> scores (row, text), features (row, text, feature)
    Returns:
        scores (token, deletion, text) and features (token, deletion, text, feature) of the later tokens, 0 elsewhere.
    """
    words, texts, _ = inputs.shape
    rows, back, least = last - first, 0, ROUNDINGS * torch.finfo(inputs.dtype).eps
    states = inputs.new_zeros(2, rows, texts, direction.state_weight.shape[1])  # twice the hidden ones, and the cells
    for state, of_text in zip(states, passed, strict=True):  # without a word, its predecessor's stays
        state[max(1 - first, 0) :] = of_text[max(first, 1) - 1 : last - 1]
    gates, whole = inputs.new_empty(rows, texts, inputs.shape[2]), read(passed[0], slice(None))
    found = [of_text.new_zeros(words, rows, *of_text.shape[1:]) for of_text in whole]
    for word in range(first + 1, words - 1):
        going = min(word, last) - first
        if back < going:
            gates[back:going] = inputs[word]
            direction.advance(*(part[back:going].flatten(0, 1) for part in (gates, *states)))
        for held, of_text, of_rows in zip(found, whole, read(states[0, back:going], word), strict=True):
            held[word, :back], held[word, back:going] = of_text[word], of_rows
        if word % EVERY == 0 and back < going:
            own = torch.stack([part[word] for part in passed])
            away = (states[:, back:going] - own[:, None]).abs().amax(dim=(2, 3))
            same = (away <= least * own.abs().amax(dim=(1, 2))[:, None]).all(dim=0)
            back += int(same.to(torch.uint8).cumprod(dim=0).sum())
    return found
