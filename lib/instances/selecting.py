"""Which value of a training option is taken: by dev, never by test."""

from collections.abc import Sequence

import pandas as pd

from lib.training import Trained


def by_dev(trained: Sequence[Trained], option: str) -> pd.DataFrame:
    """A row for each value of an option: the dev scores of the epoch that each run keeps, means over its seeds.

    `chosen` is the value with the highest dev AUC, by which the epochs are chosen too; of equals the first. `epoch` is
    the one that is kept, `of` how many there were: where the last is kept, more epochs might do better.
    """
    rows = [{option: one.run.option(option), "of": len(one.history)} | one.history[one.chosen - 1] for one in trained]
    scores = ["dev_auc", "dev_f1", "dev_loss", "epoch", "of"]
    frame = pd.DataFrame(rows).groupby(option)[scores].mean().reset_index()
    return frame.assign(chosen=frame.index == frame["dev_auc"].idxmax())


def kept_epochs(trained: Sequence[Trained]) -> pd.DataFrame:
    """Which epoch each run keeps, and how even its attention is there on dev: a row a model, seeds side by side."""
    rows = [
        {"attention": one.run.attention, "variant": one.run.variant, "seed": one.run.seed, "of": len(one.history)}
        | {"epoch": one.chosen, "entropy": one.history[one.chosen - 1]["dev_attention_entropy"]}
        for one in trained
    ]
    groups = pd.DataFrame(rows).groupby(["attention", "variant", "of"], sort=False)
    return groups.agg(
        epochs_kept=("epoch", lambda kept: " ".join(map(str, kept))),
        attention_entropy=("entropy", lambda values: " ".join(f"{value:.2f}" for value in values)),
    ).reset_index()
