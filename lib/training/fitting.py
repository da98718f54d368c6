"""Training a model epoch by epoch, and how good it is on a split."""

import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from sklearn.metrics import f1_score, roc_auc_score
from torch import Tensor, nn
from torch.optim import Optimizer

from lib.datasets.batches import Batch, micro_batches
from lib.metrics.distances import normalized_entropy
from lib.models.evaluation import words_at_once
from lib.training import cache
from lib.training.losses import REDUCTIONS, prediction_loss

WORDS = 2**15  # with padding, in one forward and backward pass: a batch of 32 texts of a thousand words is not cut
Say = Callable[[str], None]


def adam(
    model: nn.Module, weight_decay: float, rate: float, amsgrad: bool, decoupled: bool, pretrained_rate: float | None
) -> torch.optim.Adam:
    """Adam over all trained parameters; the last attention's have no weight decay (Jain & Wallace's code).

    A pretrained encoder and its table of subwords have a learning rate of their own; None: as all.
    """
    learned = model.projection.parameters() if isinstance(model.projection, nn.Module) else ()
    of_attention = {id(parameter) for parameter in (*model.attention.parameters(), *learned)}
    groups = [{"params": [], "weight_decay": weight_decay}, {"params": [], "weight_decay": 0.0}]
    groups += [{"params": [], "weight_decay": weight_decay, "lr": pretrained_rate}] if pretrained_rate else []
    for name, parameter in model.named_parameters():
        of_model = pretrained_rate and name.startswith(("embedding.", "encoder."))
        if parameter.requires_grad:
            groups[2 if of_model else id(parameter) in of_attention]["params"].append(parameter)
    return torch.optim.Adam(groups, lr=rate, amsgrad=amsgrad, decoupled_weight_decay=decoupled, fused=True)


def rise_and_fall(optimizer: Optimizer, warmup: float, steps: int, done: int) -> None:
    """From now on each step's learning rates rise linearly in the share `warmup` of all steps, and then fall to 0."""

    def share(step: int) -> float:
        part = (done + step + 1) / (steps + 1)
        return min(part / warmup, (1 - part) / (1 - warmup))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
    optimizer.register_step_post_hook(lambda *_: scheduler.step())


def plateau(optimizer: Optimizer, factor: float | None, scores: Iterable[float]) -> Callable[[float], None]:
    """step(dev score): the learning rates become `factor` times what they were unless it is the best by .01% of it.

    A factor of None leaves them as they are; `scores` are those of the epochs that are already done.
    """
    patience = math.inf if factor is None else 0
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", factor or 0.5, patience)
    for score in scores:
        scheduler.step(score)
    return scheduler.step


def fit(untrained, task, say: Say, checkpoint: Path, checkpoint_seconds: float) -> tuple[cache.Weights, list[dict]]:
    """The weights of the kept epoch, and a record for each; goes on from the checkpoint where there is one.

    The model of `untrained`, a `Trained`, learns `task`, of lib.training.tasks; FloatingPointError: a loss not finite.
    """
    run, model, judged = untrained.run, untrained.model, f"dev_{untrained.run.option('judge')}"
    of_adam = "weight_decay", "learning_rate", "amsgrad", "decoupled", "pretrained_rate"
    optimizer = adam(model, *map(run.option, of_adam))
    for table in model.modules():
        if isinstance(table, nn.Embedding):  # dense gradients would be as fast, and have other last bits
            table.sparse = run.device_kind == "cpu"
    best, history = cache.restore_checkpoint(checkpoint, model, optimizer)
    if warmup := run.option("warmup"):
        steps = math.ceil(len(untrained.corpus.train) / run.option("batch_size"))
        rise_and_fall(optimizer, warmup, steps * run.epochs, steps * len(history))
    end_of_epoch = plateau(optimizer, run.option("plateau"), (record[judged] for record in history))
    saved = time.monotonic()
    while len(history) < run.epochs and not task.ended(history):
        started, epoch = time.monotonic(), len(history)
        torch.manual_seed(run.seed * 1_000_003 + epoch)  # of dropout and masked words, which so resume the same
        order = untrained.with_states("train", untrained.batches("train", run.option("batch_size"), (run.seed, epoch)))
        losses = train_epoch(model, order, optimizer, task, run.option("reduction"), run.option("clip"))
        if not math.isfinite(loss := losses["loss"]):
            raise FloatingPointError(f"{run}: the loss of epoch {epoch + 1} is {loss}; try a lower learning_rate")
        scores = task.scores(model, untrained.corpus.dev, untrained.with_states("dev", untrained.batches("dev")))
        record = {"epoch": epoch + 1} | {f"train_{name}": value for name, value in losses.items()}
        record |= {f"dev_{name}": value for name, value in scores.items()}
        history.append(record | {"seconds": round(time.monotonic() - started, 3)})
        end_of_epoch(record[judged])
        if task.chosen(history) == epoch + 1:
            best = cache.weights_of(model)
        say(f"{run}: epoch {epoch + 1}/{run.epochs}, loss {losses['loss']:.4f}, {judged} {record[judged]:.4f}")
        if time.monotonic() - saved > checkpoint_seconds and len(history) < run.epochs:
            cache.save_checkpoint(checkpoint, model, optimizer, best, history)
            saved = time.monotonic()
    return best, history


def train_epoch(
    model: nn.Module, batches: Iterable[Batch], optimizer: Optimizer, task, reduction: str, clip: float | None = None
) -> dict[str, float]:
    """One pass over the batches; the mean per text of each loss, "loss" being the one that is minimised.

    Args:
        task: of lib.training.tasks. Where it `adds_up`, a batch of long texts is cut into micro-batches of WORDS words
            for one step: the same gradient in bounded memory.
        reduction: of REDUCTIONS. clip: the gradient's largest norm.
    """
    model.train()
    totals, texts = {}, 0
    trained = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for batch in batches:
        optimizer.zero_grad(set_to_none=True)
        for part in micro_batches([batch], words_at_once(model, WORDS)) if task.adds_up else [batch]:
            sums = task.losses(model, part)
            (sums["loss"] * REDUCTIONS[reduction](len(batch))).backward()
            totals = {name: totals.get(name, 0) + value.detach() for name, value in sums.items()}
        for parameter in trained:
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce().to_dense()
        if clip is not None:
            nn.utils.clip_grad_norm_(trained, clip)
        optimizer.step()
        texts += len(batch)
    return {name: float(total) / texts for name, total in totals.items()}


def evaluate(model: nn.Module, batches: Iterable[Batch], weight: Tensor | None = None) -> dict[str, float]:
    """The scores of `scored`, the loss (nats), and `attention_entropy`, the mean of the normalised entropy (fraction).

    The loss weighs the positive class by `weight`, as training does.
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
    scores = scored(logits, labels) | {"loss": float(prediction_loss(logits, labels, weight, "mean"))}
    return scores | {"attention_entropy": float(torch.cat(evenness).nanmean())}


def scored(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """ROC-AUC, F1 of the positive class (several classes: macro averages) and accuracy of logits (text, class).

    Of several classes AUC is that of each against the rest, of those that occur.
    """
    if logits.shape[1] == 1:
        prediction, average = logits.squeeze(1) > 0, "binary"
        of_classes = [roc_auc_score(labels == 1, logits.sigmoid()[:, 0])]
    else:
        prediction, average, probability = logits.argmax(-1), "macro", logits.softmax(-1)
        of_classes = [roc_auc_score(labels == k, probability[:, k]) for k in labels.unique().tolist()]
    return {
        "auc": sum(map(float, of_classes)) / len(of_classes),
        "f1": float(f1_score(labels, prediction, average=average)),
        "accuracy": float((prediction == labels).double().mean()),
    }
