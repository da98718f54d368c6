"""What a model gave for every word of a split, kept end to end and looked up by batch."""

from collections.abc import Iterable

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.datasets.corpus import Split


class PerWord:
    """A value for each word of each text, start and end included.

    values   (word, ...) of all texts of the split end to end, 0 until it is `put`
    offsets  (text + 1,): text i has values[offsets[i]:offsets[i + 1]]
    """

    def __init__(self, split: Split, *shape: int, device: str | torch.device = "cpu"):
        self.offsets = torch.from_numpy(split.encoded[1]).to(device)
        self.values = torch.zeros(int(self.offsets[-1]), *shape, device=device)

    @classmethod
    def of(cls, split: Split, given: Iterable[tuple[Batch, Tensor]]) -> "PerWord":
        """From batches of the split with their values (batch, word, ...)."""
        held = None
        for batch, values in given:
            held = held or cls(split, *values.shape[2:], device=values.device)
            inside, where = held._places(batch)
            held.values[where[inside]] = values[inside].to(held.values.dtype)
        return held or cls(split)

    def at(self, batch: Batch) -> Tensor:
        """(batch, word, ...): 0 on padding."""
        inside, where = self._places(batch)
        found = self.values[where]
        return found * inside.view(*inside.shape, *(1,) * (found.dim() - 2))

    def _places(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(batch, word): where a text has words, and where its values lie."""
        position = torch.arange(batch.tokens.shape[1], device=self.offsets.device)
        inside = position < batch.lengths[:, None]
        return inside, torch.where(inside, self.offsets[batch.instance][:, None] + position, 0)
