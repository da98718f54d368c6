"""What a run learns: the loss to minimise, how an epoch is judged, which epoch is kept, and when training ends."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lib.datasets.batches import Batch
from lib.datasets.corpus import SPECIALS, Split
from lib.metrics.distances import probabilities
from lib.models import AttentionClassifier
from lib.training import fitting
from lib.training.losses import adversarial_loss, class_weights, mlm_loss, prediction_loss, pulling_loss, tying_loss

PATIENCE, LEAST = 10, 1e-4  # epochs; by how much an adversary's loss, which is of probability, must fall within them
MASKED_SHARE = 0.15  # of the words
KEPT_MASKED, REPLACED = 0.8, 0.9  # of the chosen words: below the first masked, below the second replaced


class PerWord:
    """A number for each word of each text of a split, start and end included, looked up by batch; 0 at first.

    Or as many as the state of a word has: `size`.
    """

    def __init__(self, split: Split, device: str | torch.device = "cpu", size: tuple[int, ...] = ()):
        self.offsets = torch.from_numpy(split.encoded[1]).to(device)  # text i has values[offsets[i]:offsets[i + 1]]
        self.values = torch.zeros(int(self.offsets[-1]), *size, device=device)  # (word, ...) of all texts end to end

    def put(self, batch: Batch, values: Tensor) -> None:
        """Keeps the values (batch, word, ...) of a batch's words."""
        inside, where = self._places(batch)
        self.values[where[inside]] = values[inside].to(self.values.dtype)

    def look_up(self, batch: Batch) -> Tensor:
        """(batch, word, ...): 0 on padding."""
        inside, where = self._places(batch)
        return self.values[where] * inside.view(*inside.shape, *[1] * (self.values.dim() - 1))

    def _places(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """(batch, word): where a text has words, and where its values lie."""
        position = torch.arange(batch.tokens.shape[1], device=self.offsets.device)
        inside = position < batch.lengths[:, None]
        return inside, torch.where(inside, self.offsets[batch.instance][:, None] + position, 0)


@dataclass
class Classification:
    """The labels are learned; the epoch with the best dev score is kept, the first of equals."""

    labels: Tensor  # (instance,) of the training split
    outputs: int  # of the model
    patience: int | None = None  # training ends this many epochs after the best; None: after the last epoch
    judge: str = "auc"  # the dev score that decides
    adds_up = True  # a batch's losses are the sums of its texts', so micro-batches give the same gradient

    def __post_init__(self):
        self.weight = class_weights(self.labels, self.outputs)

    def losses(self, model: AttentionClassifier, batch: Batch) -> dict[str, Tensor]:
        """Sums over the batch; "loss" is minimised."""
        return {"loss": self.label_loss(model(batch).logits, batch)}

    def label_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """The loss of the labels, summed over the batch."""
        weight = None if self.weight is None else self.weight.to(batch.label.device)
        return prediction_loss(logits, batch.label, weight)

    def scores(self, model: AttentionClassifier, split: Split, batches: Iterable[Batch]) -> dict[str, float]:
        """The dev scores of an epoch."""
        return fitting.evaluate(model, batches, self.weight)

    def chosen(self, history: list[dict]) -> int:
        """Which epoch is kept, from 1."""
        return best_epoch(history, self.judge)

    def ended(self, history: list[dict]) -> bool:
        """Whether no later epoch will be kept: the best score is perfect, or patience is exhausted."""
        best = self.chosen(history) if history else 0
        perfect = best > 0 and history[best - 1][f"dev_{self.judge}"] >= 1
        return perfect or (self.patience is not None and len(history) - best >= self.patience)


def best_epoch(history: Sequence[dict], judge: str) -> int:
    """The first epoch with the best dev score, from 1."""
    return max(history, key=lambda record: record[f"dev_{judge}"])["epoch"]


@dataclass
class Tying(Classification):
    """Hidden states stay close to their embeddings: + delta times their mean squared distance (Tutek 2020, Eq. 4)."""

    delta: float = 10.0
    adds_up = False  # the distance is a mean over a batch's words

    def losses(self, model: AttentionClassifier, batch: Batch) -> dict[str, Tensor]:
        """Sums over the batch; "loss" is minimised; "distance" is the mean per token, times the texts."""
        output = model(batch)
        prediction = self.label_loss(output.logits, batch)
        distance = len(batch) * tying_loss(output.hidden, output.embeddings, output.mask)
        return {"loss": prediction + self.delta * distance, "prediction": prediction, "distance": distance}


@dataclass
class Pulled(Classification):
    """The labels are learned, and attention is pulled towards a target: + lambda KL(alpha* || alpha)."""

    strength: float = 1.0  # lambda
    targets: dict[str, PerWord] = field(default_factory=dict)  # of "train" and "dev", alpha*

    def losses(self, model: AttentionClassifier, batch: Batch) -> dict[str, Tensor]:
        """Sums over the batch; "loss" is minimised; "pulling" is the distance from the targets."""
        output = model(batch)
        prediction = self.label_loss(output.logits, batch)
        pulling = pulling_loss(output.attention, self.targets["train"].look_up(batch)).sum()
        return {"loss": prediction + self.strength * pulling, "prediction": prediction, "pulling": pulling}

    def scores(self, model: AttentionClassifier, split: Split, batches: Iterable[Batch]) -> dict[str, float]:
        """The dev scores of an epoch, "pulling" among them, and "objective"."""
        batches = list(batches)
        scores = super().scores(model, split, batches)
        with torch.inference_mode():
            pairs = ((model(batch).attention, self.targets["dev"].look_up(batch)) for batch in batches)
            paid = float(torch.cat([pulling_loss(*pair).double().cpu() for pair in pairs]).mean())
        return scores | {"pulling": paid, "objective": -scores["loss"] - self.strength * paid}


@dataclass
class MaskedLanguageModel(Classification):
    """Masked words are predicted from their hidden states by the embedding table: + eta times their cross-entropy."""

    words: int = 0  # of the vocabulary
    eta: float = 1.0
    share: float = MASKED_SHARE  # of the words that are chosen
    adds_up = False  # which words are masked is drawn for a batch

    def losses(self, model: AttentionClassifier, batch: Batch) -> dict[str, Tensor]:
        """Sums over the batch; "loss" is minimised; "mlm" is of the masked words."""
        tokens, chosen = masked(batch.tokens, batch.mask, self.words, self.share)
        parts = ((batch.tokens, tokens), *((part, part) for part in (batch.lengths, batch.label, batch.instance)))
        output = model(Batch.of(*(torch.cat(pair) for pair in parts)))
        texts, first = len(batch), len(SPECIALS)
        prediction = self.label_loss(output.logits[:texts], batch)
        table = model.embedding.weight[first : self.words]
        mlm = texts * mlm_loss(output.hidden[texts:][chosen], batch.tokens[chosen] - first, table, texts)
        return {"loss": prediction + self.eta * mlm, "prediction": prediction, "mlm": mlm}


def masked(tokens: Tensor, mask: Tensor, words: int, share: float) -> tuple[Tensor, Tensor]:
    """Tokens with some of them masked, and where: (batch, token) ids, (batch, token) bool.

    Each word is chosen with probability `share`; of the chosen 80% become the mask, whose id is `words`, 10% a random
    word, 10% stay. Padding, start, end and unknown words are never chosen, and never put in another's place.
    """
    chosen = mask & (tokens >= len(SPECIALS)) & (torch.rand(tokens.shape, device=tokens.device) < share)
    how = torch.rand(tokens.shape, device=tokens.device)
    others = torch.randint(len(SPECIALS), words, tokens.shape, device=tokens.device)
    hidden = torch.where(how < KEPT_MASKED, words, torch.where(how < REPLACED, others, tokens))
    return torch.where(chosen, hidden, tokens), chosen


@dataclass(frozen=True)
class BaseOutputs:
    """What a base model gives for all texts of a split: attention of every word, class distributions (text, class)."""

    attention: PerWord
    prediction: Tensor

    @classmethod
    @torch.no_grad()
    def compute(cls, base: AttentionClassifier, split: Split, batches: Iterable[Batch]) -> "BaseOutputs":
        """By a forward pass of each batch."""
        base.eval()
        attention, instances, predictions = PerWord(split, next(base.parameters()).device), [], []
        for batch in batches:
            output = base(batch)
            attention.put(batch, output.attention)
            instances.append(batch.instance)
            predictions.append(probabilities(output.logits))
        return cls(attention, torch.cat(predictions)[torch.cat(instances).argsort()])


@dataclass
class Adversary:
    """The base's predictions are imitated with other attention (Wiegreffe & Pinter 2019, section 4).

    The last epoch is kept, whatever dev says. Differs from the paper's code, which ends after PATIENCE epochs without a
    new lowest training loss, or after 80, and keeps the lowest.
    """

    strength: float  # lambda; divergence and tvd are those of `adversarial_loss`
    divergence: str
    tvd: str
    base_outputs: dict[str, BaseOutputs]  # of "train" and "dev"
    frozen: AttentionClassifier | None = None  # the base, where embedding, encoder and decoder stay its own
    adds_up = True

    def _each(self, model: AttentionClassifier, batch: Batch, split: str) -> tuple[Tensor, dict[str, Tensor]]:
        """Logits, and the terms of the loss, each (batch,)."""
        if self.frozen is None:
            output = model(batch)
            logits, attention = output.logits, output.attention
        else:
            with torch.no_grad():
                fixed, hidden = self.frozen, batch.states
                hidden = fixed.encoder(fixed.embedding(batch.tokens), batch.lengths) if hidden is None else hidden
            attention = model.projection(model.attention(hidden), batch.mask)
            logits = model.decode(attention, hidden)
        base = self.base_outputs[split]
        predictions = probabilities(logits), base.prediction[batch.instance]
        pair = attention, base.attention.look_up(batch)
        return logits, adversarial_loss(predictions, pair, self.strength, self.divergence, self.tvd)

    def losses(self, model: AttentionClassifier, batch: Batch) -> dict[str, Tensor]:
        """Sums over the batch; "loss" is minimised."""
        return {name: value.sum() for name, value in self._each(model, batch, "train")[1].items()}

    @torch.no_grad()
    def scores(self, model: AttentionClassifier, split: Split, batches: Iterable[Batch]) -> dict[str, float]:
        """The dev scores of an epoch, with the means of the loss's terms."""
        model.eval()
        rows = [(*self._each(model, batch, split.name), batch.label) for batch in batches]
        logits, each, labels = zip(*rows, strict=True)
        means = {name: float(torch.cat([of[name] for of in each]).double().mean()) for name in each[0]}
        scored = fitting.scored(torch.cat(logits).double().cpu(), torch.cat(labels).cpu())
        return scored | means

    def chosen(self, history: list[dict]) -> int:
        """Which epoch is kept, from 1: the last."""
        return len(history)

    @staticmethod
    def ended(history: Sequence[dict]) -> bool:
        """Whether the training loss fell by less than LEAST in the last PATIENCE epochs."""
        losses = [record["train_loss"] for record in history]
        return len(losses) > PATIENCE and min(losses[:-PATIENCE]) - min(losses[-PATIENCE:]) < LEAST
