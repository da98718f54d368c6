"""How far attention can go before the prediction does: mean JSD against mean TVD along lambda, and its curvature."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from lib.analysis.contrast import contrast
from lib.analysis.statistics import bootstrap, interval_over_texts_and_seeds, mean_over, weighted_mean
from lib.analysis.summarising import by_seed, summarise
from lib.training import Trained
from lib.training.tasks import PATIENCE

AXES = ("jsd", "tvd")
GRID = 50  # values of JSD at which two curves are compared
MOST = {"jsd": np.log(2), "tvd": 1.0}


def points(
    instances: pd.DataFrame, series: str, by: str | None = None, classes: Sequence[str] = (), draws: int = 1000
) -> pd.DataFrame:
    """The points of a series on the plane of mean JSD (nats) and mean TVD (fraction), one per value of `by`.

    Args:
        classes: names of the classes; of each that the base predicts (`base_prediction`) there are points too.
    Returns:
        series, texts ("all texts" or a class), at (the value of `by`, or NaN), jsd, jsd_low, jsd_high, tvd, tvd_low,
        tvd_high (95%, over texts and seeds), n, seeds.
    """
    rows = []
    for texts, some in by_class(instances, classes):
        for at, group in [(np.nan, some)] if by is None else some.groupby(by):
            summary = summarise(group, AXES, draws).set_index("quantity")
            row = {"series": series, "texts": texts, "at": at}
            for axis in AXES:
                value, low, high = summary.loc[axis, ["value", "low", "high"]]
                row |= {axis: value, f"{axis}_low": max(low, 0), f"{axis}_high": min(high, MOST[axis])}
            rows.append(row | summary.loc["jsd", ["n", "seeds"]].to_dict())
    return pd.DataFrame(rows)


def by_class(instances: pd.DataFrame, classes: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """("all texts", all rows), then (class, rows) of each class that the base predicts."""
    yield "all texts", instances
    for number, name in enumerate(classes):
        of_class = instances[instances["base_prediction"] == number]
        if len(of_class):
            yield name, of_class


def curvatures(kinds: Mapping[str, pd.DataFrame], classes: Sequence[str] = (), by: str = "lambda") -> pd.DataFrame:
    """`curvature` of each kind of adversary, of all texts and of each class that the base predicts: a row each."""
    return pd.DataFrame(
        [
            {"adversary": kind, "texts": texts} | curvature(rows, by).to_dict()
            for kind, instances in kinds.items()
            for texts, rows in by_class(instances, classes)
        ]
    )


def curvature(
    instances: pd.DataFrame, by: str = "lambda", from_base: bool = False, draws: int = 1000, seed: int = 0
) -> pd.Series:
    """Is the curve of mean TVD over mean JSD convex (attention is easily moved) or concave (it has its price)?

    Wiegreffe & Pinter (2019), section 4 and figure 5. The curve goes from the smallest `by` to the largest, the chord
    joins its ends. The area between them is positive where the curve runs below the chord.

    Args:
        instances: rows of `measure_versus_base` of one kind of adversary, each seed with every value of `by`.
        from_base: the curve starts at the base itself, which is at distance 0 of itself in both. Not so by default: no
            model that was trained to imitate it comes there, so that the start would always look costly.
    Returns:
        area (nats x fraction), low, high (95%, over texts and seeds), share (of the triangle under the chord), word:
        convex or concave where the interval lies on one side of 0, else undecided; points, n, seeds. The area is NaN
        where fewer than three points make no curve.
    Raises:
        ValueError: the seeds have not all the same values of `by`.
    """
    values = tabulated(instances, by)
    texts = len(values)
    if from_base:
        values = np.concatenate([np.zeros_like(values[:, :1]), values], axis=1)

    ones, averaged = np.ones((1, texts)), mean_over(3, values)
    ends = weighted_mean(ones, averaged)[0]
    each_seed = area(np.moveaxis(weighted_mean(ones, values)[0], -1, 0))
    value = float(area(ends)) if len(ends) > 2 else np.nan
    samples = bootstrap(lambda weights: area(weighted_mean(weights, averaged)), texts, draws, seed)
    low, high = interval_over_texts_and_seeds(value, samples, each_seed)
    triangle = float(np.prod(ends[-1] - ends[0])) / 2
    return pd.Series(
        {
            "area": value,
            "low": low,
            "high": high,
            "share": value / triangle if triangle else np.nan,
            "word": "convex" if low > 0 else "concave" if high < 0 else "undecided",
            "points": len(ends),
            "n": texts,
            "seeds": values.shape[-1],
        }
    )


def tabulated(instances: pd.DataFrame, by: str) -> np.ndarray:
    """(instance, point by growing `by`, axis, seed) of rows of `measure_versus_base`.

    Raises:
        ValueError: the seeds have not all the same values of `by`.
    """
    tables = [[by_seed(group, axis) for axis in AXES] for _, group in instances.groupby(by)]
    seeds = {tuple(table.columns) for pair in tables for table in pair}
    if len(seeds) != 1:
        raise ValueError(f"not every seed has every {by}: {sorted(seeds)}; train the whole sweep")
    texts = tables[0][0].index
    values = np.stack([[table.reindex(texts).to_numpy() for table in pair] for pair in tables], axis=2)
    return values.transpose(1, 2, 0, 3)


def price_difference(
    instances: pd.DataFrame, base: pd.DataFrame, by: str = "lambda", draws: int = 1000, seed: int = 0
) -> pd.Series:
    """How much more TVD the adversaries of one model pay than those of the base, at the same JSD.

    The curves of both, straight between their points, are compared where their ranges of mean JSD overlap (Tutek &
    Snajder 2020, figure 1, judges by eye). Where there are adversaries with `by` 0, which only imitate, what these pay
    is taken off their curve first: the price of imitation itself, which is none of attention. The bootstrap draws
    texts, the same for both.

    Args:
        instances, base: rows of `measure_versus_base` of either model's adversaries, on the same texts.
    Returns:
        difference (fraction; the mean over the shared range), low, high (95%, over texts and, where there are several,
        seeds), from, to (nats: the shared range; NaN where there is none), floor (TVD of the first model's adversary
        that only imitates; NaN without one), points (of either curve, the fewer), n, seeds.
    """
    pair = [tabulated(rows, by) for rows in (instances, base)]
    floors = [bool((rows[by] == 0).any()) for rows in (instances, base)]
    ones, averaged = np.ones((1, len(pair[0]))), [mean_over(3, values) for values in pair]

    def curve(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(draw, point, axis), less the floor where both have one."""
        means = weighted_mean(weights, values)
        return means[:, 1:] - means[:, :1] * np.array([0.0, 1.0]) if all(floors) else means

    ours, theirs = (curve(ones, values)[0] for values in averaged)
    points, found = min(len(ours), len(theirs)), dict.fromkeys(("difference", "low", "high", "from", "to"), np.nan)
    reached = [of[:, 0] for of in (ours, theirs)]  # JSD
    start, end = (max(map(np.min, reached)), min(map(np.max, reached))) if points else (0.0, 0.0)
    if start < end:
        grid, seeds = np.linspace(start, end, GRID), range(min(values.shape[-1] for values in pair))
        heights = contrast(
            ["tvd"],
            lambda weights, values: np.stack([height(curve(weights, values[..., k]), grid) for k in seeds], axis=-1),
            pair,
            paired=True,
            draws=draws,
            seed=seed,
            pooled=lambda weights, values: height(curve(weights, mean_over(3, values)), grid),
        ).iloc[0]
        found = heights[["difference", "low", "high"]].to_dict() | {"from": start, "to": end}
    found["floor"] = float(weighted_mean(ones, averaged[0])[0, 0, 1]) if floors[0] else np.nan
    return pd.Series(found | {"points": points, "n": len(pair[0]), "seeds": pair[0].shape[-1]})


def height(curves: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The mean TVD of curves, straight between their points, over a grid of JSD: (draw, point, (x, y)) -> (draw, 1)."""
    ordered = (curve[np.argsort(curve[:, 0])].T for curve in curves)
    return np.array([[np.interp(grid, *curve).mean()] for curve in ordered])


def area(corners: np.ndarray) -> np.ndarray:
    """The signed area between curves and their chords: corners (..., point, (x, y)) -> (...).

    Positive where the curve runs below its chord. The polygon's area by the shoelace formula, the first corner moved
    to 0, so that only neighbouring points matter.
    """
    x, y = np.moveaxis(corners[..., 1:, :] - corners[..., :1, :], -1, 0)
    return (x[..., :-1] * y[..., 1:] - x[..., 1:] * y[..., :-1]).sum(axis=-1) / 2


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


def dev_scores(trained: Sequence[Trained], option: str) -> pd.DataFrame:
    """A row for each value of an option: the dev scores of the epoch that each run keeps, means over its seeds.

    `chosen` is the value with the highest dev AUC, by which the epochs are chosen too; of equals the first. `epoch` is
    the one that is kept, `of` how many there were: where the last is kept, more epochs might do better.
    """
    rows = [{option: one.run.option(option), "of": len(one.history)} | one.history[one.chosen - 1] for one in trained]
    scores = ["dev_auc", "dev_f1", "dev_loss", "epoch", "of"]
    frame = pd.DataFrame(rows).groupby(option)[scores].mean().reset_index()
    return frame.assign(chosen=frame.index == frame["dev_auc"].idxmax())


def best_epochs(trained: Sequence[Trained]) -> pd.DataFrame:
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
