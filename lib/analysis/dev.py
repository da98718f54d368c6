"""What training reported on dev: the value of a hyperparameter that is chosen, and the epochs that runs keep."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pandas as pd

from lib.quantity import title_of
from lib.training import Run, Trained

MOST_BEYOND = {"quick": 0, "paper": 4}  # values that are tried beyond a grid


def dev_scores(trained: Sequence[Trained], option: str) -> pd.DataFrame:
    """A row for each attention and value of an option: the dev scores of the epochs that runs keep, means over seeds.

    `chosen` is the value with the highest dev AUC, by which the epochs are chosen too; of equals the largest value.
    `epoch` is the one that is kept, `of` the most there could be: where the last is kept, more might do better.
    """
    rows = [
        {"attention": model.run.attention, option: model.run.option(option), "of": model.run.epochs}
        | model.history[model.chosen - 1]
        for model in trained
    ]
    scores = ["dev_auc", "dev_f1", "dev_loss", "epoch", "of"]
    frame = pd.DataFrame(rows).groupby(["attention", option])[scores].mean().reset_index()
    return frame.assign(chosen=frame.index.isin(frame[::-1].groupby("attention")["dev_auc"].idxmax()))


def train_grid(
    runs: Sequence[Run], option: str, train: Callable[[Sequence[Run]], list[Trained]], beyond: bool = True
) -> list[Trained]:
    """Runs of a grid, trained, and of values `beyond` it, until for each attention dev's best lies inside.

    While the best of an attention is its smallest value or its largest, a third of it is tried, or three times as
    much, to one digit; at most MOST_BEYOND values. A grid of one value stays as it is.
    """
    trained = train(runs)
    for _ in range(MOST_BEYOND[runs[0].profile] * beyond):
        more = []
        for attention, best, end in best_at_ends(trained, option):
            value = float(f"{best / 3 if end == 'smallest' else best * 3:.1g}")
            same = [model.run for model in trained if model.run.attention == attention]
            more += [replace(run, options=tuple((dict(run.options) | {option: value}).items())) for run in same]
        if not more:
            break
        trained = [*trained, *train(list(dict.fromkeys(more)))]
    return trained


def chosen_values(trained: Sequence[Trained], option: str) -> list[float]:
    """The value of an option that dev chose for each attention, in the order of the runs."""
    table = dev_scores(trained, option).query("chosen").set_index("attention")[option]
    return [float(table[attention]) for attention in dict.fromkeys(model.run.attention for model in trained)]


def best_at_ends(trained: Sequence[Trained], option: str) -> Iterator[tuple[str, float, str]]:
    """(attention, its best value of an option, smallest or largest) where dev's best is an end of what was tried."""
    for attention, some in dev_scores(trained, option).groupby("attention"):
        best, ends = float(some.loc[some["chosen"], option].iloc[0]), (some[option].min(), some[option].max())
        if len(some) > 1 and best in ends:
            yield attention, best, "smallest" if best == ends[0] else "largest"


def describe_ends(trained: Sequence[Trained], option: str) -> list[str]:
    """A sentence for each of `best_at_ends`."""
    ends = best_at_ends(trained, option)
    return [f"{option} of {title_of(name)} attention: {best:g} is the {end} tried." for name, best, end in ends]


def best_epochs(trained: Sequence[Trained]) -> pd.DataFrame:
    """Which epochs the runs of each model keep, of at most how many, seeds side by side: a row a model.

    attention_entropy is that of dev at these epochs, of the largest. A run that keeps the last of them was not trained
    to the end: with more epochs it might do better.
    """
    rows = [
        {name: getattr(model.run, name) for name in ("attention", "variant", "layers")}
        | {"of": model.run.epochs, "epoch": model.chosen}
        | {"entropy": model.history[model.chosen - 1]["dev_attention_entropy"]}
        for model in trained
    ]
    groups = pd.DataFrame(rows).groupby(["attention", "variant", "layers", "of"], sort=False)
    return groups.agg(
        epochs_kept=("epoch", lambda kept: " ".join(map(str, kept))),
        attention_entropy=("entropy", lambda values: " ".join(f"{value:.2f}" for value in values)),
    ).reset_index()
