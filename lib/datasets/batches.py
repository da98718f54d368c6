"""Texts as padded tensors, grouped by length so that almost nothing is padding."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from lib.datasets.corpus import PAD, Split
from lib.numerics import by_length


@dataclass(frozen=True)
class Batch:
    """Some texts of a split; the last five are None where they have no such thing."""

    tokens: Tensor  # (batch, word) ids: start, the text, end, then padding
    lengths: Tensor  # (batch,) ids of a text, start and end included
    mask: Tensor  # (batch, word) True on the text's own tokens: not on start, end or padding
    label: Tensor  # (batch,) class
    instance: Tensor  # (batch,) position in the split
    guide: Tensor | None = None  # (batch, word) attention to be imposed, 0 where the mask is False
    sentence: Tensor | None = None  # (batch, word) the number of the word's sentence, -1 where the mask is False
    query: Tensor | None = None  # as tokens, of the texts' questions
    query_mask: Tensor | None = None
    states: Tensor | None = None  # (batch, word, hidden) of a frozen encoder, which then need not compute them

    @classmethod
    def of(cls, tokens: Tensor, lengths: Tensor, label: Tensor, instance: Tensor) -> "Batch":
        """A batch from padded ids; the mask follows from the lengths."""
        position = torch.arange(tokens.shape[1], device=tokens.device)
        mask = (position > 0) & (position < lengths[:, None] - 1)
        return cls(tokens, lengths, mask, label, instance)

    def to(self, device: str | torch.device) -> "Batch":
        """The batch on a device; copies to a GPU are asynchronous."""
        held = (getattr(self, f.name) for f in fields(self))
        there = torch.device(device).type != "cpu"  # what comes from a GPU may be read only when it has come
        return Batch(*(value if value is None else value.to(device, non_blocking=there) for value in held))

    def rows(self, keep: Tensor) -> "Batch":
        """The texts that `keep` (bool or positions) names, padded no longer than they need, but for questions."""
        lengths = self.lengths[keep]
        width = int(lengths.max()) if len(lengths) else 0
        per_word = (self.tokens, self.mask, self.guide, self.sentence, self.states)
        tokens, mask, guide, sentence, states = (value if value is None else value[keep, :width] for value in per_word)
        asked = (value if value is None else value[keep] for value in (self.query, self.query_mask))
        return Batch(tokens, lengths, mask, self.label[keep], self.instance[keep], guide, sentence, *asked, states)

    def __len__(self) -> int:
        return len(self.tokens)


def collate(split: Split, instances: np.ndarray) -> Batch:
    """The named instances of a split (positions) as one batch."""
    where, lengths = _places(split.encoded[1], instances)
    inside = where >= 0
    tokens = np.where(inside, split.encoded[0][where], PAD)
    parts = tokens, lengths, split.labels[instances], np.asarray(instances, dtype=np.int64)
    batch = Batch.of(*map(torch.from_numpy, parts))
    if split.sentences is not None:
        batch = replace(batch, sentence=torch.from_numpy(np.where(inside, split.sentences[where], -1)))
    if split.queries is not None:
        where, asked = _places(split.queries[1], instances)
        query = torch.from_numpy(np.where(where >= 0, split.queries[0][where], PAD))
        padded = Batch.of(query, torch.from_numpy(asked), None, None)
        batch = replace(batch, query=padded.tokens, query_mask=padded.mask)
    return batch


def _places(offsets: np.ndarray, instances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(batch, word) the position of each word in the texts laid end to end, -1 for padding; (batch,) their lengths."""
    lengths = offsets[instances + 1] - offsets[instances]
    position = np.arange(lengths.max(initial=0))
    return np.where(position < lengths[:, None], offsets[instances][:, None] + position, -1), lengths


def batches(split: Split, size: int, seed: int | Sequence[int] | None = None) -> Iterator[Batch]:
    """Every text of a split once, in batches of texts of nearly one length.

    Without a seed the texts come from short to long. With a seed they are shuffled, cut into pools of 50 batches,
    sorted by length inside each pool, and the batches shuffled: several times faster on long texts.
    """
    if size < 1:
        raise ValueError(f"batch size is {size}; allowed: 1 or more")
    if seed is None:
        order = np.argsort(split.lengths, kind="stable")
    else:
        random = np.random.default_rng(seed)
        order = random.permutation(len(split))
        order = order[np.lexsort((split.lengths[order], np.arange(len(order)) // (50 * size)))]
    chunks = [order[start : start + size] for start in range(0, len(order), size)]
    if seed is not None:
        random.shuffle(chunks)
    return (collate(split, chunk) for chunk in chunks)


def micro_batches(batches: Iterable[Batch], words: int) -> Iterator[Batch]:
    """The batches, cut into those of at most `words` words or one text: a long text does not pad many short ones."""
    for batch in batches:
        for rows in by_length(batch.lengths, words):
            yield batch if len(rows) == len(batch) else batch.rows(rows)
