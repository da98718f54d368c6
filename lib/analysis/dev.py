"""What dev chooses: the value of a hyperparameter, and the epoch that a model keeps."""

from collections.abc import Sequence

import pandas as pd

from lib.training import Trained


def dev_scores(trained: Sequence[Trained], option: str) -> pd.DataFrame:
    """A row for each attention and value of an option: the dev scores of the epochs that runs keep, means over seeds.

    `highest_auc` is the value that is chosen, of equals the largest; `epoch` is the one kept, `of` the most there are.
    """
    kept = pd.DataFrame([model.history[model.chosen - 1] for model in trained])
    runs = [model.run for model in trained]
    kept["of"], kept["attention"] = [run.epochs for run in runs], [run.attention for run in runs]
    kept[option] = [run.option(option) for run in runs]
    scores = ["dev_auc", "dev_f1", "dev_loss", "epoch", "of"]
    frame = kept.groupby(["attention", option])[scores].mean().reset_index()
    return frame.assign(highest_auc=frame.index.isin(frame[::-1].groupby("attention")["dev_auc"].idxmax()))


def chosen_values(trained: Sequence[Trained], option: str) -> list[float]:
    """The value of an option that dev chose for each attention, in the order of the runs."""
    table = dev_scores(trained, option).query("highest_auc").set_index("attention")[option]
    return [float(table[attention]) for attention in dict.fromkeys(model.run.attention for model in trained)]
