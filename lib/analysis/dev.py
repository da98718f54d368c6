"""What dev chooses: the value of a hyperparameter, and the epoch that a model keeps."""

from collections.abc import Sequence

import pandas as pd

from lib.training import Trained

SCORES = ["dev_auc", "dev_f1", "dev_loss", "epoch", "of"]
NO_DETRIMENT = 0.02  # of F1 on dev that a weight of another loss may cost (Tutek & Snajder 2020, section 6)


def dev_scores(trained: Sequence[Trained], option: str) -> pd.DataFrame:
    """A row for each attention and value of an option: the dev scores of the epochs that runs keep, means over seeds.

    `epoch` is the one kept, `of` the most there are. Models without the option are left out.
    """
    rows = [(one.run, one.history[one.chosen - 1]) for one in trained if option in one.run.defaults]
    kept = [row | {"of": run.epochs, "attention": run.attention, option: run.option(option)} for run, row in rows]
    return pd.DataFrame(kept).groupby(["attention", option], sort=False)[SCORES].mean().reset_index()


def weigh(trained: Sequence[Trained], option: str) -> pd.DataFrame:
    """`dev_scores` of the weight of another loss, with the F1 of the `base`, and which is `chosen`.

    The largest whose F1 is at most NO_DETRIMENT below that of the base of the same seed; if each `costs_f1`, the least.
    """
    table, bases = dev_scores(trained, option), [one for one in trained if option not in one.run.defaults]
    table["base"] = table["attention"].map(dev_scores(bases, "learning_rate").set_index("attention")["dev_f1"])
    table["costs_f1"] = table["dev_f1"] < table["base"] - NO_DETRIMENT - 1e-9
    values, attention = table[option], table["attention"]
    best = values.mask(table["costs_f1"]).groupby(attention).transform("max")
    return table.assign(chosen=values.eq(best.fillna(values.groupby(attention).transform("min"))))
