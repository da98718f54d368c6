"""The terms of what a run minimises: cross-entropy of labels or masked words, tying, distance from a target or base."""

import torch
from torch import Tensor
from torch.nn import functional

from lib.metrics.distances import jensen_shannon, kullback_leibler, total_variation

# A batch's loss by the sum over its texts.
REDUCTIONS = {"sum": lambda texts: 1.0, "mean": lambda texts: 1.0 / texts}
Pair = tuple[Tensor, Tensor]
TVDS = {"half": 0.5, "full": 1.0}


def class_weights(labels: Tensor, outputs: int) -> Tensor | None:
    """Weight of the positive class, negatives / positives, of one sigmoid output (Jain & Wallace's code); else None."""
    if outputs > 1:
        return None
    positives = labels.sum()
    return (len(labels) - positives) / positives


def prediction_loss(logits: Tensor, labels: Tensor, weight: Tensor | None = None, reduction: str = "sum") -> Tensor:
    """Cross-entropy of the predictions, in nats, of logits (batch, 1) for one sigmoid output, or (batch, class).

    Of labels (batch,) int64; `weight` is of the positive class, for one sigmoid output. Summed over the batch, as in
    Jain & Wallace's code: with Adam weight decay is about 32 times weaker than with the mean over a batch of 32.
    """
    if logits.shape[1] == 1:
        pair = logits.squeeze(1), labels.to(logits.dtype)
        return functional.binary_cross_entropy_with_logits(*pair, pos_weight=weight, reduction=reduction)
    return functional.cross_entropy(logits, labels, reduction=reduction)


def adversarial_loss(
    prediction: Pair, attention: Pair, strength: float, divergence: str = "kl", tvd: str = "half"
) -> dict[str, Tensor]:
    """Wiegreffe & Pinter (2019), section 4: TVD(y_a, y_b) - lambda KL(alpha_a || alpha_b), of each text.

    As in their code TVD counts half: |p_a - p_b| / 2 of one sigmoid output. Tutek & Snajder (2020), Eq. 6, is
    `tvd="full"` with the bounded `divergence="jsd"`. Of the class distributions (batch, class) and the attention
    (batch, token), 0 off the mask, of adversary and base: loss, tvd (full, a fraction), jsd and kl (nats): (batch,).
    """
    own, base = attention
    positive = base.clamp_min(torch.finfo(base.dtype).tiny)  # where it has underflowed to 0, KL would be infinite
    terms = {"jsd": jensen_shannon(own, base), "kl": kullback_leibler(own, positive)}
    terms["tvd"] = total_variation(*prediction)
    loss = TVDS[tvd] * terms["tvd"] - strength * terms[divergence]
    return {"loss": loss} | {name: value.detach() for name, value in terms.items()}


def tying_loss(hidden: Tensor, embeddings: Tensor, mask: Tensor) -> Tensor:
    """The mean over a batch's tokens of ||h_t - e_t||^2 (Tutek & Snajder 2020, Eq. 4, without delta).

    Of hidden, embeddings (batch, token, size), where mask (batch, token) is True.
    """
    return (hidden - embeddings).square().sum(dim=-1)[mask].mean()


def pulling_loss(attention: Tensor, target: Tensor) -> Tensor:
    """KL(alpha* || alpha), what a text pays for attention other than its target alpha*, without lambda.

    Of attention and target (batch, token), rows sum to 1; a target of zeros asks for nothing: (batch,) nats.
    """
    return kullback_leibler(target, attention.clamp_min(torch.finfo(attention.dtype).tiny))


def mlm_loss(hidden: Tensor, words: Tensor, table: Tensor, texts: int) -> Tensor:
    """Cross-entropy of masked words, decoded by the embedding table itself (Tutek & Snajder 2020, section 3.1), nats.

    The mean per text, summed over its masked tokens, so that long texts weigh more: the paper's footnote 5 implies it.
    Of hidden (masked token, size), words (masked token,), rows of table (word, size), from so many texts.
    """
    return functional.cross_entropy(hidden @ table.T, words, reduction="sum") / texts
