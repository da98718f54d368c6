"""Values for every word of a split: rationales, and attention of one model as a guide that is imposed on another."""

from collections.abc import Iterable

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.datasets.corpus import Split
from lib.interventions.adversary import adversarial_attention
from lib.models import AttentionClassifier

EPSILON = 0.01  # how far the per-instance adversary may move the prediction (Jain & Wallace 2019)


class PerWord:
    """A value for each word of each text of a split, start and end included, found by batch.

    values   (word, ...) of all texts of the split end to end, 0 at first
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


def rationales(split: Split, device: str | torch.device = "cpu") -> PerWord:
    """1 for each word of a text's rationale, 0 for all others."""
    found = PerWord(split, device=device)
    for start, instance in zip(found.offsets.tolist(), split.instances, strict=False):
        for first, end in instance.rationale or ():
            found.values[start + 1 + first : start + 1 + end] = 1
    return found


@torch.no_grad()
def guide(kind: str, model: AttentionClassifier, split: Split, batches: Iterable[Batch]) -> PerWord:
    """The attention of a trained model on all texts of a split, to be imposed on another; 0 on start and end.

    Args:
        kind: "guide_base" and "guide_adversary": the model's own attention; "guide_instance_adversary": for each text
            the attention farthest from it that moves the prediction by at most EPSILON.
    """
    model.eval()
    given = []
    for batch in batches:
        output = model(batch)
        weights = output.attention
        if kind == "guide_instance_adversary":
            method = "exact" if output.logits.shape[1] == 1 else "gradient"
            weights, _ = adversarial_attention(model, output, EPSILON, method, instance=batch.instance)
        given.append((batch.to("cpu"), weights.masked_fill(~output.mask, 0).cpu()))
    return PerWord.of(split, given)
