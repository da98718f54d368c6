"""What a run minimises: the loss of its predictions, and later what a variant adds to it."""

from torch import Tensor
from torch.nn import functional

REDUCTIONS = ("sum", "mean")


def class_weights(labels: Tensor, outputs: int) -> Tensor | None:
    """Weight of the positive class, negatives / positives, for one sigmoid output; None for several classes.

    Jain & Wallace's code: a split with few positives would else be learned as all negative.
    """
    if outputs > 1:
        return None
    positives = labels.sum()
    return (len(labels) - positives) / positives


def prediction_loss(logits: Tensor, labels: Tensor, weight: Tensor | None = None, reduction: str = "sum") -> Tensor:
    """Cross-entropy of the predictions, in nats.

    Summed over the batch, as in Jain & Wallace's code: with Adam the step hardly changes, but weight decay is about
    32 times weaker than with the mean over a batch of 32 (`reduction="mean"`).

    Args:
        logits: (batch, 1) for one sigmoid output, or (batch, class). labels: (batch,) int64.
        weight: weight of the positive class, for one sigmoid output.
    """
    if logits.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(
            logits.squeeze(1), labels.to(logits.dtype), pos_weight=weight, reduction=reduction
        )
    return functional.cross_entropy(logits, labels, reduction=reduction)
