"""What training reported on dev: the epochs that runs keep, and the hyperparameter that is chosen."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.analysis.statistics import t_interval
from lib.quantity import title_of
from lib.training import Run, Trained
from lib.training.runs import JAIN, OF_VARIANTS
from lib.training.tasks import LEAST, PATIENCE, kept_epoch, stands_still

FAR = 0.4  # nats: an attention that is nearer to the base's has not moved (Wiegreffe & Pinter 2019, table 4)
ON_PAR = 0.02  # of F1: less than the papers' own spread between two reports of one model
AT_REST = 1e-6  # nats: an adversary that starts from its base, where nothing but rounding moves it, and stays there
BEYOND = {"quick": 0, "paper": 4}  # values that are tried beyond a grid
USUAL = OF_VARIANTS["adversary"] | {"reduction": JAIN["reduction"]}
# When an adversary's training may end: (rule, most epochs). The last is that of the released code.
ENDINGS = {
    "as trained": (None, None),
    "the lowest loss kept": ("lowest", None),
    "at most 80 epochs": (None, 80),
    "both": ("lowest", 80),
}


def dev_scores(trained: Sequence[Trained], option: str) -> pd.DataFrame:
    """A row for each attention and value of an option: the dev scores of the epochs that runs keep, means over seeds.

    `chosen` is the value with the highest dev AUC, by which the epochs are chosen too; of equals the largest value.
    `epoch` is the one that is kept, `of` the most there could be: where the last is kept, more might do better.
    """
    rows = [
        {"attention": one.run.attention, option: one.run.option(option), "of": one.run.epochs}
        | one.history[one.chosen - 1]
        for one in trained
    ]
    scores = ["dev_auc", "dev_f1", "dev_loss", "epoch", "of"]
    frame = pd.DataFrame(rows).groupby(["attention", option])[scores].mean().reset_index()
    return frame.assign(chosen=frame.index.isin(frame[::-1].groupby("attention")["dev_auc"].idxmax()))


def tried(
    runs: Sequence[Run], option: str, train: Callable[[Sequence[Run]], list[Trained]], beyond: bool = True
) -> list[Trained]:
    """Runs of a grid, trained, and of values `beyond` it, until for each attention dev's best lies inside.

    While the best of an attention is its smallest value or its largest, a third of it is tried, or three times as
    much, to one digit; at most BEYOND values. A grid of one value stays as it is.
    """
    trained = train(runs)
    for _ in range(BEYOND[runs[0].profile] * beyond):
        more = []
        for attention, best, end in at_ends(trained, option):
            further = float(f"{best / 3 if end == 'smallest' else best * 3:.1g}")
            more += [moved(one.run, option, further) for one in trained if one.run.attention == attention]
        if not more:
            break
        trained = [*trained, *train(list(dict.fromkeys(more)))]
    return trained


def moved(run: Run, option: str, value: float) -> Run:
    """The run with another value of an option."""
    return replace(run, options=tuple((dict(run.options) | {option: value}).items()))


def on_dev(trained: Sequence[Trained], option: str) -> list[float]:
    """The value of an option that dev chose for each attention, in the order of the runs."""
    table = dev_scores(trained, option).query("chosen").set_index("attention")[option]
    return [float(table[attention]) for attention in dict.fromkeys(one.run.attention for one in trained)]


def at_ends(trained: Sequence[Trained], option: str) -> Iterator[tuple[str, float, str]]:
    """(attention, its best value of an option, smallest or largest) where dev's best is an end of what was tried."""
    for attention, some in dev_scores(trained, option).groupby("attention"):
        best, ends = float(some.loc[some["chosen"], option].iloc[0]), (some[option].min(), some[option].max())
        if len(some) > 1 and best in ends:
            yield attention, best, "smallest" if best == ends[0] else "largest"


def at_an_end(trained: Sequence[Trained], option: str) -> list[str]:
    """A sentence for each of `at_ends`."""
    return [
        f"{option} of {title_of(name)} attention: {best:g} is the {end} tried."
        for name, best, end in at_ends(trained, option)
    ]


def not_converged(adversaries: Sequence[Trained]) -> str:
    """How many adversaries used up their epochs before their loss converged, as the start of a sentence."""
    capped = sum(not one.converged for one in adversaries)
    most = adversaries[0].run.epochs
    return f"{capped} of {len(adversaries)} adversaries reached the maximum number of epochs ({most})"


def best_epochs(trained: Sequence[Trained]) -> pd.DataFrame:
    """Which epochs the runs of each model keep, of at most how many, seeds side by side: a row a model.

    attention_entropy is that of dev at these epochs, of the largest. A run that keeps the last of them was not trained
    to the end: with more epochs it might do better.
    """
    rows = [
        {name: getattr(one.run, name) for name in ("attention", "variant", "layers")}
        | {"of": one.run.epochs, "epoch": one.chosen}
        | {"entropy": one.history[one.chosen - 1]["dev_attention_entropy"]}
        for one in trained
    ]
    groups = pd.DataFrame(rows).groupby(["attention", "variant", "layers", "of"], sort=False)
    return groups.agg(
        epochs_kept=("epoch", lambda kept: " ".join(map(str, kept))),
        attention_entropy=("entropy", lambda values: " ".join(f"{value:.2f}" for value in values)),
    ).reset_index()


def adversaries_by_dev(trained: Sequence[Trained]) -> pd.DataFrame:
    """What dev shows of each trained adversary at the epoch that it keeps: a row each, none averaged.

    Wiegreffe & Pinter (2019), table 4: the highest F1 among those whose mean JSD is at least FAR. Differs from the
    paper: each seed chooses among its own runs, as runs of one lambda may move or stay; and on dev, not on test.

    Returns:
        lambda, seed, trains, epochs, last_gain (`last_gain`), leaving (`still_leaving`), furthest (the largest
        dev_jsd of any epoch), dev_f1, base_f1 (its base's on dev), dev_tvd, dev_jsd, moved (dev_jsd is at least FAR),
        why (it is no evidence, else ""), chosen (at most one of a seed and `trains`).
    """
    rows = [
        {"lambda": one.run.option("lambda"), "seed": one.run.seed, "trains": one.run.option("trains")}
        | {"epochs": len(one.history), "last_gain": last_gain(one.history), "leaving": still_leaving(one.history)}
        | {"furthest": max(record["dev_jsd"] for record in one.history)}
        | {name: one.history[one.chosen - 1][name] for name in ("dev_f1", "dev_tvd", "dev_jsd")}
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
    if adversary["lambda"] > 0 and adversary["furthest"] < AT_REST:
        return "it never left its base: its loss has no slope where it starts"
    if adversary["lambda"] == 0:
        return ""
    if adversary["leaving"]:
        return f"not converged (it still moved away by a tenth or more in the last {PATIENCE} epochs)"
    if adversary["last_gain"] < LEAST:
        return ""
    if np.isnan(adversary["last_gain"]):
        return f"not converged (trained for {PATIENCE} epochs or fewer)"
    return f"not converged (the loss still fell by {LEAST:g} or more in the last {PATIENCE} epochs)"


def last_gain(history: Sequence[dict]) -> float:
    """By how much the training loss fell in the last PATIENCE epochs; NaN for a shorter history."""
    losses = [record["train_loss"] for record in history]
    return min(losses[:-PATIENCE]) - min(losses[-PATIENCE:]) if len(losses) > PATIENCE else np.nan


def still_leaving(history: Sequence[dict]) -> bool:
    """Whether an adversary's distance on dev grew by a tenth or more in the last PATIENCE epochs.

    The distance is weighted by lambda: with a small one the loss hardly falls while attention moves.
    """
    away = [record["dev_jsd"] for record in history]
    return len(away) > PATIENCE and away[-1] >= AT_REST and away[-1] - away[-1 - PATIENCE] >= away[-1] / 10


def by_recipe(trained: Sequence[Trained]) -> pd.DataFrame:
    """How far adversaries get on dev by what their training has otherwise than ours, and by how it might have ended.

    The endings of ENDINGS are read off one history: a run that ended before is not continued.

    Returns:
        recipe ("ours", or the options that differ), ending, seed, epoch (the one kept), jsd (nats), tvd_half
        (fraction), f1.
    """
    rows = []
    for one in trained:
        given = {name: one.run.option(name) for name in USUAL if name != "lambda"}
        recipe = ", ".join(f"{name} {value}" for name, value in given.items() if value != USUAL[name]) or "ours"
        for ending, (ends, most) in ENDINGS.items():
            record = kept_record(one.history, ends or one.run.option("ends"), most)
            row = {"recipe": recipe, "ending": ending, "seed": one.run.seed, "epoch": record["epoch"]}
            rows.append(row | {"jsd": record["dev_jsd"], "tvd_half": record["dev_tvd"] / 2, "f1": record["dev_f1"]})
    return pd.DataFrame(rows)


def kept_record(history: Sequence[dict], ends: str, most: int | None) -> dict:
    """The epoch that would have been kept, had training ended by this rule and after at most so many epochs."""
    lengths = range(1, min(most or len(history), len(history)) + 1)
    end = next((n for n in lengths if stands_still(history[:n], ends)), lengths[-1])
    return history[kept_epoch(history[:end], ends) - 1]


def recipe_effects(rows: pd.DataFrame) -> pd.DataFrame:
    """What each recipe and ending of `by_recipe` changes against ours as trained, in pairs of one seed.

    Returns:
        recipe, ending, epochs, jsd_of_seeds (of each seed), jsd, tvd_half, f1 (means over seeds), less_ours (nats of
        JSD), low, high (Student's 95% interval over seeds).
    """
    ours, found = rows.query("recipe == 'ours' and ending == 'as trained'").set_index("seed")["jsd"], []
    for (recipe, ending), some in rows.groupby(["recipe", "ending"], sort=False):
        gap = some.set_index("seed")["jsd"] - ours
        low, high = t_interval(gap.to_numpy(float)) if gap.any() else (np.nan, np.nan)
        epochs = " ".join(map(str, some["epoch"]))
        means = some[["jsd", "tvd_half", "f1"]].mean().to_dict()
        each = " ".join(f"{value:.2f}" for value in some["jsd"])
        found.append({"recipe": recipe, "ending": ending, "epochs": epochs, "jsd_of_seeds": each} | means)
        found[-1] |= {"less_ours": gap.mean(), "low": low, "high": high}
    return pd.DataFrame(found)
