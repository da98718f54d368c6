"""Attention to be imposed on a model in training and in test: one distribution per text, found by the text's id."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.datasets.corpus import Split
from lib.interventions.adversary import adversarial_attention
from lib.models import AttentionClassifier
from lib.training.ragged import PerWord

EPSILON = 0.01  # how far the per-instance adversary may move the prediction (Jain & Wallace 2019)


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
        starts = guide.offsets[:-1].tolist()
        for instance, start in zip(split.instances, starts, strict=True):
            weights = self.attention.get(instance.id)
            if weights is None:
                raise ValueError(
                    f"the guide ({self.source}) has no attention for text {instance.id!r} of {split.name}; it knows "
                    f"{len(self.attention):,} texts: guide and model must read the same data"
                )
            if len(weights) != len(instance.tokens):
                raise ValueError(
                    f"the guide ({self.source}) has {len(weights)} weights for text {instance.id!r} of {split.name}, "
                    f"which has {len(instance.tokens)} tokens: guide and model must read the same data"
                )
            if not (abs(float(weights.sum()) - 1) < 1e-3 and float(weights.min()) >= 0):
                raise ValueError(
                    f"the guide's ({self.source}) weights for text {instance.id!r} sum to {float(weights.sum()):.4f}, "
                    f"the least is {float(weights.min()):.4f}; they must be 0 or more and sum to 1"
                )
            guide.values[start + 1 : start + 1 + len(weights)] = weights
        return guide


@torch.no_grad()
def guide(kind: str, source: str, model: AttentionClassifier, split: Split, batches: Iterable[Batch]) -> Guide:
    """The attention of a trained model on a split as a guide.

    Args:
        kind: "guide_base" and "guide_adversary": the model's own attention; "guide_instance_adversary": the attention
            farthest from it that moves the prediction by at most EPSILON, of each text by itself.
    """
    model.eval()
    attention = {}
    for batch in batches:
        output = model(batch)
        weights = output.attention
        if kind == "guide_instance_adversary":
            method = "exact" if output.logits.shape[1] == 1 else "gradient"
            weights, _ = adversarial_attention(model, output, EPSILON, method, instance=batch.instance)
        rows = zip(batch.instance.tolist(), weights.cpu(), output.mask.cpu(), strict=True)
        attention |= {split.instances[position].id: row[mask] for position, row, mask in rows}
    return Guide(source, attention)
