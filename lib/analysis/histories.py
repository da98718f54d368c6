"""What training reported on dev: the epochs that runs keep, and the hyperparameter that is chosen."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.training import Trained
from lib.training.tasks import PATIENCE


def dev_scores(trained: Sequence[Trained], option: str) -> pd.DataFrame:
    """A row for each value of an option: the dev scores of the epoch that each run keeps, means over its seeds.

    `chosen` is the value with the highest dev AUC, by which the epochs are chosen too; of equals the first. `epoch` is
    the one that is kept, `of` how many there were: where the last is kept, more epochs might do better.
    """
    rows = [{option: one.run.option(option), "of": len(one.history)} | one.history[one.chosen - 1] for one in trained]
    scores = ["dev_auc", "dev_f1", "dev_loss", "epoch", "of"]
    frame = pd.DataFrame(rows).groupby(option)[scores].mean().reset_index()
    return frame.assign(chosen=frame.index == frame["dev_auc"].idxmax())


def kept_epochs(trained: Sequence[Trained]) -> pd.DataFrame:
    """Which epoch each run keeps, of how many, and the entropy of its attention on dev there, a share of the largest.

    A run that keeps its last epoch was not trained to the end: with more epochs it might do better.
    """
    rows = [
        {name: getattr(one.run, name) for name in ("attention", "variant", "layers", "seed")}
        | {"of": len(one.history), "epoch": one.chosen}
        | {"entropy": one.history[one.chosen - 1]["dev_attention_entropy"]}
        for one in trained
    ]
    return pd.DataFrame(rows)


def best_epochs(trained: Sequence[Trained]) -> pd.DataFrame:
    """`kept_epochs`, a row a model, seeds side by side."""
    groups = kept_epochs(trained).groupby(["attention", "variant", "of"], sort=False)
    return groups.agg(
        epochs_kept=("epoch", lambda kept: " ".join(map(str, kept))),
        attention_entropy=("entropy", lambda values: " ".join(f"{value:.2f}" for value in values)),
    ).reset_index()


def lambda_by_dev(histories: dict[tuple[float, int], tuple[dict, ...]], least: float = 0.4) -> pd.DataFrame:
    """Dev scores of each lambda at its last epoch, means over seeds, and which lambda is chosen.

    Wiegreffe & Pinter (2019), table 4: the highest F1 among those whose mean JSD is at least `least` nats. Differs from
    the paper: chosen on dev, not on test.

    Args:
        histories: (lambda, seed) -> history of the run.
    Returns:
        lambda, seeds, epochs (mean), last_gain (by which share of itself the training loss still fell in the last ten
        epochs; training ends below .001), dev_f1, dev_tvd, dev_jsd, chosen (at most one True).
    """
    last = [
        {"lambda": at, "seed": seed, "last_gain": last_gain(history)} | dict(history[-1])
        for (at, seed), history in histories.items()
    ]
    wanted = {name: (name, "mean") for name in ("last_gain", "dev_f1", "dev_tvd", "dev_jsd")}
    frame = pd.DataFrame(last).groupby("lambda").agg(seeds=("seed", "size"), epochs=("epoch", "mean"), **wanted)
    far = frame[frame["dev_jsd"] >= least]
    return frame.assign(chosen=frame.index == (far["dev_f1"].idxmax() if len(far) else None)).reset_index()


def last_gain(history: Sequence[dict], epochs: int = PATIENCE) -> float:
    """The share of itself by which the training loss fell in the last epochs; NaN for a shorter history."""
    losses = [record["train_loss"] for record in history]
    if len(losses) <= epochs:
        return np.nan
    before = min(losses[:-epochs])
    return (before - min(losses[-epochs:])) / abs(before)
