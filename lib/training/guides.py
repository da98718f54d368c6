"""Values for every word of a split, and attention that is imposed on a model: the guide of each text."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.datasets.corpus import Split
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


@dataclass(frozen=True)
class Guide:
    """attention: id of a text -> (token,) its weights, which sum to 1. source: where they come from."""

    source: str
    attention: dict[str, Tensor]

    def on(self, split: Split) -> PerWord:
        """The guide of every text of a split, 0 on start and end.

        Raises:
            ValueError: a text has no attention here, or one of another length, or one that does not sum to 1.
        """
        guide = PerWord(split)
        for instance, start in zip(split.instances, guide.offsets[:-1].tolist(), strict=True):
            weights = self.attention.get(instance.id)
            if wrong := fault(weights, len(instance.tokens)):
                raise ValueError(
                    f"the guide ({self.source}) has {wrong} for text {instance.id!r} of {split.name}, which has "
                    f"{len(instance.tokens)} tokens; guide and model must read the same data, and weights be 0 or more "
                    "and sum to 1"
                )
            guide.values[start + 1 : start + 1 + len(weights)] = weights
        return guide


def fault(weights: Tensor | None, tokens: int) -> str:
    """What is wrong with the attention of a text of so many tokens; "" where nothing is."""
    if weights is None:
        return "no attention"
    if len(weights) != tokens:
        return f"{len(weights)} weights"
    total, least = float(weights.sum()), float(weights.min())
    return "" if abs(total - 1) < 1e-3 and least >= 0 else f"weights that sum to {total:.4f}, the least is {least:.4f},"


@torch.no_grad()
def guide(kind: str, source: str, model: AttentionClassifier, split: Split, batches: Iterable[Batch]) -> Guide:
    """The attention of a trained model on a split as a guide.

    Args:
        kind: "guide_base" and "guide_adversary": the model's own attention; "guide_instance_adversary": for each text
            the attention farthest from it that moves the prediction by at most EPSILON.
    """
    model.eval()
    attention = {}
    for batch in batches:
        output = model(batch)
        weights = output.attention
        if kind == "guide_instance_adversary":
            from lib.interventions.adversary import adversarial_attention  # the only runs that depend on its code

            method = "exact" if output.logits.shape[1] == 1 else "gradient"
            weights, _ = adversarial_attention(model, output, EPSILON, method, instance=batch.instance)
        rows = zip(batch.instance.tolist(), weights.cpu(), output.mask.cpu(), strict=True)
        attention |= {split.instances[position].id: row[mask] for position, row, mask in rows}
    return Guide(source, attention)
