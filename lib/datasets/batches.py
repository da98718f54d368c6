"""Texts as padded tensors, grouped by length so that almost nothing is padding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from lib.datasets.corpus import PAD, Split


@dataclass(frozen=True)
class Batch:
    """Some texts of a split.

    tokens    (batch, word) ids: start, the text, end, then padding
    lengths   (batch,) ids of a text, start and end included
    mask      (batch, word) True on the text's own tokens: not on start, end or padding
    label     (batch,) class
    instance  (batch,) position in the split
    guide     (batch, word) attention to be imposed, 0 where the mask is False; only for models that need it
    sentence  (batch, word) the number of the word's sentence in its text, -1 where the mask is False; only where the
              split knows sentences
    """

    tokens: Tensor
    lengths: Tensor
    mask: Tensor
    label: Tensor
    instance: Tensor
    guide: Tensor | None = None
    sentence: Tensor | None = None

    @classmethod
    def of(cls, tokens: Tensor, lengths: Tensor, label: Tensor, instance: Tensor) -> "Batch":
        """A batch from padded ids; the mask follows from the lengths."""
        position = torch.arange(tokens.shape[1], device=tokens.device)
        mask = (position > 0) & (position < lengths[:, None] - 1)
        return cls(tokens, lengths, mask, label, instance)

    def to(self, device: str | torch.device) -> "Batch":
        held = (getattr(self, f.name) for f in fields(self))
        return Batch(*(value if value is None else value.to(device, non_blocking=True) for value in held))

    def rows(self, keep: Tensor) -> "Batch":
        """The texts that `keep` (bool or positions) names, padded no longer than they need."""
        lengths = self.lengths[keep]
        width = int(lengths.max()) if len(lengths) else 0
        per_word = (self.tokens, self.mask, self.guide, self.sentence)
        tokens, mask, guide, sentence = (value if value is None else value[keep, :width] for value in per_word)
        return Batch(tokens, lengths, mask, self.label[keep], self.instance[keep], guide, sentence)

    def __len__(self) -> int:
        return len(self.tokens)


def collate(split: Split, instances: np.ndarray) -> Batch:
    """The named instances of a split (positions) as one batch."""
    ids, offsets = split.encoded
    lengths = offsets[instances + 1] - offsets[instances]
    position = np.arange(lengths.max(initial=0))
    inside = position < lengths[:, None]
    where = np.where(inside, offsets[instances][:, None] + position, 0)
    tokens = np.where(inside, ids[where], PAD)
    batch = Batch.of(
        torch.from_numpy(tokens),
        torch.from_numpy(lengths),
        torch.from_numpy(split.labels[instances]),
        torch.from_numpy(np.asarray(instances, dtype=np.int64)),
    )
    if split.sentences is None:
        return batch
    return replace(batch, sentence=torch.from_numpy(np.where(inside, split.sentences[where], -1)))


def batches(split: Split, size: int, seed: int | Sequence[int] | None = None, pool: int = 50) -> Iterator[Batch]:
    """Every text of a split once, in batches of texts of nearly one length.

    Without a seed the texts come from short to long (evaluation). With a seed they are shuffled, cut into pools of
    `pool` batches, sorted by length inside each pool, and the batches shuffled: texts of one length meet more often
    than in a plain shuffle, which makes an epoch on long texts several times faster.
    """
    if size < 1:
        raise ValueError(f"batch size is {size}; allowed: 1 or more")
    if seed is None or not len(split):
        order = np.argsort(split.lengths, kind="stable")
        chunks = [order[start : start + size] for start in range(0, len(order), size)]
    else:
        random = np.random.default_rng(seed)
        order = random.permutation(len(split))
        pools = [order[start : start + size * pool] for start in range(0, len(order), size * pool)]
        order = np.concatenate([p[np.argsort(split.lengths[p], kind="stable")] for p in pools])
        chunks = [order[start : start + size] for start in range(0, len(order), size)]
        random.shuffle(chunks)
    return (collate(split, chunk) for chunk in chunks)
