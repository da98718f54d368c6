"""What dev chooses: the value of a hyperparameter, and the epoch that a model keeps; and what else it could choose."""

from collections.abc import Sequence

import pandas as pd

from lib.analysis.measuring import measure_all
from lib.analysis.summaries import DROPS, classification, summarise
from lib.quantity import Quantity
from lib.training import Trained

SCORES = ["dev_auc", "dev_f1", "dev_loss", "epoch", "of"]
NO_DETRIMENT = 0.02  # of F1 on dev that a weight of another loss may cost (Tutek & Snajder 2020, section 6)


def dev_scores(trained: Sequence[Trained], option: str) -> pd.DataFrame:
    """A row for each attention and value of an option: the dev scores of the epochs that runs keep, on average.

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


def every_weight(trained: Sequence[Trained], option: str, quantities: Sequence[Quantity]) -> pd.DataFrame:
    """What the models with each value of an option give on test, chosen or not; those without the option are left out.

    F1 and its DROPS, of all texts, and the mean token probability of those classified correctly, as rows of `summarise`
    with `series`, the option, and `at`, its value. quantities: `interventions.substituted` and token_probability_mean.
    """
    rows = []
    for model in (one for one in trained if option in one.run.defaults):
        measured = measure_all([model], quantities)
        right = summarise(measured[measured["label"] == measured["prediction"]], ["token_probability_mean"])
        both = pd.concat([classification(measured, ["f1", *DROPS]), right])
        rows.append(both.assign(series=option, at=model.run.option(option)))
    return pd.concat(rows, ignore_index=True)
