"""One epoch of training, and how good a model is on a split."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from sklearn.metrics import f1_score, roc_auc_score
from torch import Tensor, nn

from lib import objectives
from lib.datasets.batches import batches
from lib.datasets.corpus import Split

EVALUATION_BATCH = 128


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict]:
    """All trained parameters, with weight decay on all but the attention's (Jain & Wallace's code)."""
    attention = {id(parameter) for parameter in model.attention.parameters()}
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [p for p in trained if id(p) not in attention], "weight_decay": weight_decay},
        {"params": [p for p in trained if id(p) in attention], "weight_decay": 0.0},
    ]


def train_epoch(
    model: nn.Module, split: Split, optimizer: torch.optim.Optimizer, order: Sequence[int], size: int, reduction: str
) -> float:
    """One pass over the split in batches of `size`, shuffled by the seed `order`; the mean loss per text, in nats."""
    model.train()
    device = next(model.parameters()).device
    weight = objectives.class_weights(torch.from_numpy(split.labels), model.decoder.out_features)
    weight = None if weight is None else weight.to(device)
    losses = torch.zeros((), device=device)
    for batch in batches(split, size, seed=order):
        batch = batch.to(device)
        loss = objectives.prediction_loss(model(batch).logits, batch.label, weight, reduction)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses += loss.detach() * (1 if reduction == "sum" else len(batch))
    return float(losses) / len(split)


def evaluate(model: nn.Module, split: Split, weight: Tensor | None = None) -> dict[str, float]:
    """ROC-AUC, F1 of the positive class (several classes: macro averages), accuracy and loss (nats) on a split.

    The loss weighs the positive class by `weight`, as training does.
    """
    model.eval()
    device = next(model.parameters()).device
    logits, labels = [], []
    with torch.inference_mode():
        for batch in batches(split, EVALUATION_BATCH):
            logits.append(model(batch.to(device)).logits.double().cpu())
            labels.append(batch.label)
    logits, labels = torch.cat(logits), torch.cat(labels)
    if logits.shape[1] == 1:
        probability, prediction, average = logits.sigmoid().squeeze(1), logits.squeeze(1) > 0, "binary"
    else:
        probability, prediction, average = logits.softmax(-1), logits.argmax(-1), "macro"
    return {
        "auc": float(roc_auc_score(labels, probability, multi_class="ovr")),
        "f1": float(f1_score(labels, prediction, average=average)),
        "accuracy": float((prediction == labels).double().mean()),
        "loss": float(objectives.prediction_loss(logits, labels, weight, reduction="mean")),
    }


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread: several of them on busy cores are slower than one, and their sums differ in the last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
