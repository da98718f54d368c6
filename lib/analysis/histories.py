"""What training reported on dev: the epochs that runs keep, and the hyperparameter that is chosen."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.analysis.verdicts import FAR
from lib.training import Trained
from lib.training.tasks import PATIENCE

ON_PAR = 0.02  # of F1: less than the papers' own spread between two reports of one model
SETTLED = 0.05  # the share of itself by which the loss of a run that has converged may fall in the last epochs


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


def adversaries_by_dev(trained: Sequence[Trained]) -> pd.DataFrame:
    """What dev shows of each trained adversary at its last epoch: a row each, none averaged.

    Wiegreffe & Pinter (2019), table 4: the highest F1 among those whose mean JSD is at least FAR. Differs from the
    paper: each seed chooses among its own runs, as runs of one lambda may move or stay; and on dev, not on test.

    Returns:
        lambda, seed, trains, epochs, last_gain (`last_gain`), dev_f1, base_f1 (its base's on dev), dev_tvd, dev_jsd,
        moved (dev_jsd is at least FAR), why (it is no evidence, else ""), chosen (at most one of a seed and `trains`).
    """
    rows = [
        {"lambda": one.run.option("lambda"), "seed": one.run.seed, "trains": one.run.option("trains")}
        | {"epochs": len(one.history), "last_gain": last_gain(one.history)}
        | {name: one.history[-1][name] for name in ("dev_f1", "dev_tvd", "dev_jsd")}
        | {"base_f1": one.base.history[one.base.chosen - 1]["dev_f1"]}
        for one in trained
    ]
    frame = pd.DataFrame(rows)
    frame["moved"] = frame["dev_jsd"] >= FAR
    imitations = frame[frame["lambda"] == 0].set_index(["seed", "trains"])
    imitates = (imitations["dev_f1"] >= imitations["base_f1"] - ON_PAR).to_dict()
    frame["why"] = [why_not(row, imitates.get((row["seed"], row["trains"]))) for _, row in frame.iterrows()]
    able = frame[frame["moved"] & frame["why"].eq("") & (frame["lambda"] > 0)]
    return frame.assign(chosen=frame.index.isin(able.groupby(["seed", "trains"])["dev_f1"].idxmax()))


def why_not(adversary: Mapping, imitates: bool | None) -> str:
    """Why a trained adversary is no evidence, a row of `adversaries_by_dev`; "" where it is.

    Args:
        imitates: whether that of lambda 0, which only imitates, reaches its base's F1 on dev; None: there is none.
    """
    if imitates is None:
        return "no imitation (lambda 0) was trained"
    if not imitates:
        return "imitation alone (lambda 0) does not reach the base's F1 on dev"
    if adversary["lambda"] == 0 or adversary["last_gain"] <= SETTLED:
        return ""
    if np.isnan(adversary["last_gain"]):
        return f"not converged (trained for {PATIENCE} epochs or fewer)"
    return f"not converged (the loss still fell by more than {SETTLED:.0%} in the last {PATIENCE} epochs)"


def last_gain(history: Sequence[dict], epochs: int = PATIENCE) -> float:
    """The share of itself by which the training loss fell in the last epochs; NaN for a shorter history."""
    losses = [record["train_loss"] for record in history]
    if len(losses) <= epochs:
        return np.nan
    before = min(losses[:-epochs])
    return (before - min(losses[-epochs:])) / abs(before)
