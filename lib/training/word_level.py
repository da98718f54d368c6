"""Courses with an objective for each word beside the label's (Tutek & Snajder 2020, section 3.1)."""

import torch
from torch import Tensor

from lib import objectives
from lib.datasets.batches import Batch
from lib.datasets.corpus import SPECIALS
from lib.models import AttentionClassifier
from lib.training.courses import Prediction
from lib.training.masking import masked


class Tying(Prediction):
    """Hidden states are kept close to their embeddings: + delta times their mean squared distance (Eq. 4).

    Args:
        ending: patience and judge, as of Prediction.
    """

    def __init__(self, labels: Tensor, outputs: int, delta: float, **ending):
        super().__init__(labels, outputs, **ending)
        self.delta = delta

    def losses(self, model: AttentionClassifier, batch: Batch) -> dict[str, Tensor]:
        """Sums over the batch; "loss" is minimised; "distance" is the mean per token, times the texts."""
        output = model(batch)
        prediction = self.of_labels(output.logits, batch)
        distance = len(batch) * objectives.tying_loss(output.hidden, output.embeddings, output.mask)
        return {"loss": prediction + self.delta * distance, "prediction": prediction, "distance": distance}


class MaskedLanguageModel(Prediction):
    """Masked words are guessed from their hidden states: + eta times their cross-entropy.

    Encoder and embedding are those of the classifier; the words are decoded by the embedding table. The texts as they
    are and the same with masked words are encoded together.
    """

    def __init__(
        self,
        labels: Tensor,
        outputs: int,
        words: int,
        eta: float,
        share: float,
        per: str,
        **ending,
    ):
        super().__init__(labels, outputs, **ending)
        self.words, self.eta, self.share, self.per = words, eta, share, per

    def losses(self, model: AttentionClassifier, batch: Batch) -> dict[str, Tensor]:
        """Sums over the batch; "loss" is minimised; "mlm" is of the masked words, times the texts where per token."""
        tokens, chosen = masked(batch.tokens, batch.mask, self.words, self.share)
        parts = ((batch.tokens, tokens), *((part, part) for part in (batch.lengths, batch.label, batch.instance)))
        output = model(Batch.of(*(torch.cat(pair) for pair in parts)))
        texts, first = len(batch), len(SPECIALS)
        prediction = self.of_labels(output.logits[:texts], batch)
        table = model.embedding.weight[first : self.words]
        guessed = output.hidden[texts:][chosen], batch.tokens[chosen] - first
        mlm = texts * objectives.mlm_loss(*guessed, table, texts, self.per)
        return {"loss": prediction + self.eta * mlm, "prediction": prediction, "mlm": mlm}
