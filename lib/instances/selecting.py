"""Which value of a training option is taken: by dev, never by test."""

from collections.abc import Sequence

import pandas as pd

from lib.training import Trained


def by_dev(trained: Sequence[Trained], option: str) -> pd.DataFrame:
    """A row for each value of an option: the dev scores of the epoch that each run keeps, means over its seeds.

    `chosen` is the value with the highest dev AUC, by which the epochs are chosen too; of equals the first.
    """
    rows = [{option: one.run.option(option)} | one.history[one.chosen - 1] for one in trained]
    scores = ["dev_auc", "dev_f1", "dev_loss"]
    frame = pd.DataFrame(rows).groupby(option)[scores].mean().reset_index()
    return frame.assign(chosen=frame.index == frame["dev_auc"].idxmax())
