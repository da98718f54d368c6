"""What dev chooses: the value of a hyperparameter, and the epoch that a model keeps."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pandas as pd

from lib.training import Run, Trained

MOST_BEYOND = {"quick": 0, "paper": 4}  # values that are tried beyond a grid


def dev_scores(trained: Sequence[Trained], option: str) -> pd.DataFrame:
    """A row for each attention and value of an option: the dev scores of the epochs that runs keep, means over seeds.

    `highest_auc` is the value that is chosen, by the score that chooses the epochs too; of equals the largest value.
    `epoch` is the one that is kept, `of` the most there could be: where the last is kept, more might do better.
    """
    rows = [
        {"attention": model.run.attention, option: model.run.option(option), "of": model.run.epochs}
        | model.history[model.chosen - 1]
        for model in trained
    ]
    scores = ["dev_auc", "dev_f1", "dev_loss", "epoch", "of"]
    frame = pd.DataFrame(rows).groupby(["attention", option])[scores].mean().reset_index()
    return frame.assign(highest_auc=frame.index.isin(frame[::-1].groupby("attention")["dev_auc"].idxmax()))


def train_grid(runs: Sequence[Run], option: str, train: Callable[[Sequence[Run]], list[Trained]]) -> list[Trained]:
    """Runs of a grid, trained, and of values beyond it, until for each attention dev's best lies inside.

    At most MOST_BEYOND values of each attention (`value_beyond`). A grid of one value stays as it is.
    """
    trained = train(runs)
    for _ in range(MOST_BEYOND[runs[0].profile]):
        scores = dev_scores(trained, option)
        values = {attention: value_beyond(some, option) for attention, some in scores.groupby("attention")}
        more = [
            replace(model.run, options=tuple((dict(model.run.options) | {option: value}).items()))
            for model in trained
            if (value := values[model.run.attention]) is not None
        ]
        if not more:
            break
        trained = [*trained, *train(list(dict.fromkeys(more)))]
    return trained


def value_beyond(scores: pd.DataFrame, option: str) -> float | None:
    """A third of the best value where it is the smallest of several, three times as much where it is the largest.

    To one digit; None where the best lies inside. scores: rows of `dev_scores` of one attention.
    """
    best, tried = float(scores.loc[scores["highest_auc"], option].iloc[0]), scores[option]
    if len(tried) == 1 or tried.min() < best < tried.max():
        return None
    return float(f"{best / 3 if best == tried.min() else best * 3:.1g}")


def chosen_values(trained: Sequence[Trained], option: str) -> list[float]:
    """The value of an option that dev chose for each attention, in the order of the runs."""
    table = dev_scores(trained, option).query("highest_auc").set_index("attention")[option]
    return [float(table[attention]) for attention in dict.fromkeys(model.run.attention for model in trained)]


def training_table(trained: Sequence[Trained]) -> pd.DataFrame:
    """How each model was trained: its learning rate, how many epochs of at most how many, and which is kept."""
    rows = [
        {name: getattr(model.run, name) for name in ("encoder", "attention", "projection", "variant", "layers", "seed")}
        | {"learning_rate": model.run.option("learning_rate")}
        | {"epochs": len(model.history), "at most": model.run.epochs, "kept": model.chosen}
        for model in trained
    ]
    return pd.DataFrame(rows)
