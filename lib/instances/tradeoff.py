"""How far attention can go before the prediction does: mean JSD against mean TVD along lambda, and its curvature."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from lib.instances.statistics import bootstrap, interval_over_texts_and_seeds, mean_over, weighted_mean
from lib.instances.summarising import by_seed, summarise

AXES = ("jsd", "tvd")
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


def curvature(instances: pd.DataFrame, by: str = "lambda", draws: int = 1000, seed: int = 0) -> pd.Series:
    """Is the curve of mean TVD over mean JSD convex (attention is easily moved) or concave (it has its price)?

    Wiegreffe & Pinter (2019), section 4 and figure 5. The curve starts at the base itself, which is at distance 0 of
    itself in both, and goes on by growing lambda; its chord joins its two ends. The area between them is positive where
    the curve runs below the chord.

    Args:
        instances: rows of `measure_against` of one kind of adversary, each seed with every value of `by`.
    Returns:
        area (nats x fraction), low, high (95%, over texts and seeds), share (of the triangle under the chord), word:
        convex or concave where the interval lies on one side of 0, else undecided; n, seeds.
    Raises:
        ValueError: the seeds have not all the same values of `by`.
    """
    tables = [[by_seed(group, axis) for axis in AXES] for _, group in instances.groupby(by)]
    seeds = {tuple(table.columns) for pair in tables for table in pair}
    if len(seeds) != 1:
        raise ValueError(f"not every seed has every {by}: {sorted(seeds)}; train the whole sweep")
    values = np.stack([[table.to_numpy() for table in pair] for pair in tables])  # (lambda, axis, instance, seed)
    strengths, axes, texts, of_seeds = values.shape
    flat = values.transpose(2, 0, 1, 3).reshape(texts, -1)

    def areas(weights: np.ndarray) -> np.ndarray:
        means = weighted_mean(weights, flat).reshape(len(weights), strengths, axes, of_seeds)
        return area(mean_over(3, means))

    ones = np.ones((1, texts))
    each = area(weighted_mean(ones, flat).reshape(strengths, axes, of_seeds).transpose(2, 0, 1))
    value = float(areas(ones)[0])
    low, high = interval_over_texts_and_seeds(value, bootstrap(areas, texts, draws, seed), each)
    end = np.nanmean(values[-1], axis=(1, 2))
    return pd.Series(
        {
            "area": value,
            "low": low,
            "high": high,
            "share": 2 * value / float(end.prod()) if end.prod() else np.nan,
            "word": "convex" if low > 0 else "concave" if high < 0 else "undecided",
            "n": texts,
            "seeds": of_seeds,
        }
    )


def area(corners: np.ndarray) -> np.ndarray:
    """The signed area between curves that start at 0 and their chords: corners (..., point, (x, y)) -> (...).

    Positive where the curve runs below its chord. The polygon's area by the shoelace formula: with the corner at 0 only
    neighbouring points matter.
    """
    x, y = corners[..., 0], corners[..., 1]
    return (x[..., :-1] * y[..., 1:] - x[..., 1:] * y[..., :-1]).sum(axis=-1) / 2


def lambda_by_dev(histories: dict[tuple[float, int], tuple[dict, ...]], least: float = 0.4) -> pd.DataFrame:
    """Dev scores of each lambda at its last epoch, means over seeds, and which one is chosen.

    Wiegreffe & Pinter (2019), table 4: the highest F1 among those whose mean JSD is at least `least` nats. Differs from
    the paper: chosen on dev, not on test.

    Args:
        histories: (lambda, seed) -> history of the run.
    Returns:
        lambda, seeds, epochs (mean), dev_f1, dev_tvd, dev_jsd, chosen (at most one True).
    """
    last = [{"lambda": at, "seed": seed} | dict(history[-1]) for (at, seed), history in histories.items()]
    wanted = {name: (name, "mean") for name in ("dev_f1", "dev_tvd", "dev_jsd")}
    frame = pd.DataFrame(last).groupby("lambda").agg(seeds=("seed", "size"), epochs=("epoch", "mean"), **wanted)
    far = frame[frame["dev_jsd"] >= least]
    return frame.assign(chosen=frame.index == (far["dev_f1"].idxmax() if len(far) else None)).reset_index()
