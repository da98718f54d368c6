"""One epoch of training, and how good a model is on a split."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from sklearn.metrics import f1_score, roc_auc_score
from torch import Tensor, nn

from lib.datasets.batches import Batch, micro_batches
from lib.metrics import normalized_entropy
from lib.models.evaluation import words_at_once
from lib.training import losses as objectives

EVALUATION_BATCH = 128
WORDS = 2**15  # with padding, that go forth and back at once: a batch of 32 texts of a thousand words is not cut
Losses = Callable[[nn.Module, Batch], dict[str, Tensor]]


class Adam(torch.optim.Adam):
    """torch's own, without what lets torch.compile read it: to import the compiler takes 1.5 s of each process."""

    add_param_group = torch.optim.Optimizer.add_param_group.__wrapped__
    state_dict = torch.optim.Optimizer.state_dict.__wrapped__
    load_state_dict = torch.optim.Optimizer.load_state_dict.__wrapped__
    zero_grad = torch.optim.Optimizer.zero_grad.__wrapped__
    step = torch.no_grad()(torch.optim.Adam.step.__wrapped__)


def parameter_groups(
    model: nn.Module, weight_decay: float, learning_rate: float, attention_rate: float = 1.0
) -> list[dict]:
    """All trained parameters; the attention's have no weight decay (Jain & Wallace's code), and a rate of their own.

    Args:
        attention_rate: the attention's learning rate is so many times `learning_rate`.
    """
    own = (*model.attention.parameters(), *parameters_of(model.projection))
    attention = {id(parameter) for parameter in own}
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    rest = [parameter for parameter in trained if id(parameter) not in attention]
    attending = [parameter for parameter in trained if id(parameter) in attention]
    return [
        {"params": rest, "weight_decay": weight_decay, "lr": learning_rate},
        {"params": attending, "weight_decay": 0.0, "lr": learning_rate * attention_rate},
    ]


def parameters_of(projection) -> list[nn.Parameter]:
    """What a projection learns: nothing, but for a learned alpha."""
    return list(projection.parameters()) if isinstance(projection, nn.Module) else []


def plateau(optimizer: torch.optim.Optimizer, factor: float | None, scores: Iterable[float]) -> Callable[[float], None]:
    """step(dev score): the learning rates become `factor` times what they were unless the score is the best so far.

    Args:
        factor: None: they never change. scores: of the epochs that are already done.
    """
    if factor is None:
        return lambda score: None
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", factor=factor, patience=0)
    for score in scores:
        scheduler.step(score)
    return scheduler.step


def train_epoch(
    model: nn.Module,
    batches: Iterable[Batch],
    optimizer: torch.optim.Optimizer,
    losses: Losses,
    reduction: str,
    clip: float | None = None,
    adds_up: bool = True,
) -> dict[str, float]:
    """One pass over the batches; the mean per text of each loss, "loss" being the one that is minimised.

    Args:
        losses: (model, batch) -> sums over the batch. reduction: "sum" minimises the sum, "mean" the mean per text.
        clip: the gradient's norm is cut to it; None: never.
        adds_up: whether a batch's losses are the sums of its texts'. Then a batch of long texts goes forth and back in
            micro-batches of WORDS words, for one step: the same gradient in bounded memory.
    """
    model.train()
    totals, texts = {}, 0
    trained = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for batch in batches:
        optimizer.zero_grad(set_to_none=True)
        for part in micro_batches([batch], words_at_once(model, WORDS)) if adds_up else [batch]:
            found = losses(model, part)
            loss = found["loss"] if reduction == "sum" else found["loss"] / len(batch)
            loss.backward()
            totals = {name: totals.get(name, 0) + value.detach() for name, value in found.items()}
        if clip is not None:
            nn.utils.clip_grad_norm_(trained, clip)
        optimizer.step()
        texts += len(batch)
    return {name: float(total) / texts for name, total in totals.items()}


def evaluate(model: nn.Module, batches: Iterable[Batch], weight: Tensor | None = None) -> dict[str, float]:
    """How well the model classifies: the scores of `scored`, the loss (nats), and how even its attention is.

    The loss weighs the positive class by `weight`, as training does; `attention_entropy` is the mean over the texts of
    the attention's entropy as a share of that of equal weights.
    """
    model.eval()
    logits, labels, evenness = [], [], []
    with torch.inference_mode():
        for batch in batches:
            output = model(batch)
            logits.append(output.logits.double().cpu())
            labels.append(batch.label.cpu())
            evenness.append(normalized_entropy(output.attention.double(), output.mask).cpu())
    logits, labels = torch.cat(logits), torch.cat(labels)
    found = scored(logits, labels) | {"loss": float(objectives.prediction_loss(logits, labels, weight, "mean"))}
    return found | {"attention_entropy": float(torch.cat(evenness).nanmean())}


def scored(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """ROC-AUC, F1 of the positive class (several classes: macro averages) and accuracy of logits (text, class).

    Of several classes AUC is that of each against the rest, of those that occur.
    """
    if logits.shape[1] == 1:
        probability, prediction, average = logits.sigmoid(), logits.squeeze(1) > 0, "binary"
        kinds = [1]
    else:
        probability, prediction, average = logits.softmax(-1), logits.argmax(-1), "macro"
        kinds = labels.unique().tolist()
    of_classes = [roc_auc_score(labels == kind, probability[:, min(kind, logits.shape[1] - 1)]) for kind in kinds]
    return {
        "auc": sum(map(float, of_classes)) / len(of_classes),
        "f1": float(f1_score(labels, prediction, average=average)),
        "accuracy": float((prediction == labels).double().mean()),
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
