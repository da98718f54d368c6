"""What it costs to attend elsewhere: the curve of adversaries' mean TVD over their mean JSD."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from lib.analysis.adversaries import AXES
from lib.analysis.statistics import Effect, bootstrap, mean_over, standard_error, weighted_mean
from lib.analysis.summaries import DRAWS, difference_row, summarise
from lib.quantity import title_of

GRID = 50  # values of JSD at which two curves are compared
PRICE = ("first", "second", "difference", "low", "high", "se")
ON_PAR = 0.02  # of accuracy: an imitation that is farther below what it imitates has failed


def points(instances: pd.DataFrame, series: str, by: str | None = None) -> pd.DataFrame:
    """The points of a series on the plane of mean JSD (nats) and mean TVD (fraction), one for each run.

    Args:
        by: the column that makes a curve of each seed's runs.
    Returns:
        series, texts ("all texts"), at (the value of `by`, or NaN), seed, jsd, jsd_low, jsd_high, tvd, tvd_low,
        tvd_high (95%, over texts), n.
    """
    rows = []
    runs = instances.assign(at=np.nan if by is None else instances[by]).groupby(["at", "seed"], dropna=False)
    for (at, seed), group in runs:
        summary = summarise(group, AXES).set_index("quantity")
        row = {"series": series, "texts": "all texts", "at": at, "seed": seed, "n": summary.loc["jsd", "n"]}
        for axis in AXES:
            ends = summary.loc[axis, ["value", "low", "high"]]
            row |= dict(zip((axis, f"{axis}_low", f"{axis}_high"), ends, strict=True))
        rows.append(row)
    return pd.DataFrame(rows)


def curvatures(adversaries: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Is the curve of mean TVD over mean JSD convex (attention is easily moved) or concave (it has its price)?

    Wiegreffe & Pinter (2019), section 4 and figure 5. A seed's curve goes from its smallest lambda to its largest, the
    chord joins its ends. Each seed has its own: where runs of one lambda either moved or stayed, their means lie on a
    chord.

    Args:
        adversaries: rows of `measure_versus_base` of each kind.
    Returns:
        adversary, seed, below_chord (fraction), n: a row for a seed.
    """
    rows = []
    for kind, instances in adversaries.items():
        for seed, table in curve_tables(instances).items():
            below = below_chord(weighted_mean(np.ones((1, len(table))), table))[0]
            rows.append((kind, seed, float(below), len(table)))
    return pd.DataFrame(rows, columns=["adversary", "seed", "below_chord", "n"])


def below_chord(corners: np.ndarray) -> np.ndarray:
    """By how much curves run below their chords on average: (draw, point, (JSD, TVD)) -> (draw,), a fraction.

    The area between curve and chord, over the chord's JSD. NaN for a curve of fewer than three points, and for one
    that does not end farther away than it starts.
    """
    jsd, tvd = np.moveaxis(corners, -1, 0)
    width = jsd[:, -1] - jsd[:, 0]
    curve = (width > 0) & (corners.shape[1] > 2)
    under_the_chord = width * (tvd[:, 0] + tvd[:, -1]) / 2
    return np.where(curve, (under_the_chord - np.trapezoid(tvd, jsd)) / np.where(curve, width, 1), np.nan)


def curve_tables(instances: pd.DataFrame) -> dict[int, np.ndarray]:
    """{seed: (instance, point by growing lambda, axis)}; all of the same texts."""
    tables = {}
    for seed, rows in instances.groupby("seed"):
        shape = rows["lambda"].nunique(), rows["instance"].nunique(), len(AXES)
        values = rows.sort_values(["lambda", "instance"])[list(AXES)].to_numpy(float)
        tables[int(seed)] = values.reshape(shape).swapaxes(0, 1)
    return tables


def price_difference(instances: pd.DataFrame, base: pd.DataFrame, net: bool = True) -> pd.Series:
    """How much more TVD the adversaries of one model pay than those of the base, at the same JSD.

    The curves of both, straight between their points, are compared where their ranges of mean JSD overlap (Tutek &
    Snajder 2020, figure 1, judges by eye). Where there are adversaries with lambda 0, which only imitate, what these
    pay is subtracted from their curve first: the price of imitation itself, not of attention. So a net curve begins at
    a price of 0, where imitation alone gets. The bootstrap draws texts, the same for both.

    Args:
        instances, base: rows of `measure_versus_base` of either model's adversaries, on the same texts.
        net: whether the price of imitation is subtracted.
    Returns:
        first, second, difference (fraction; means over the shared range), low, high (95%, over texts and, where there
        are several, seeds), se (over texts); from, to (nats: the shared range; NaN where there is none);
        floor, base_floor (TVD of either model's adversary that only imitates; NaN without one), points (of either
        curve, the fewer), n, seeds.
    """
    sides = [
        np.stack([*curve_tables(rows).values()], axis=-1) for rows in (instances, base)
    ]  # (text, point, axis, seed)
    averaged, ones = [mean_over(3, side) for side in sides], np.ones((1, len(sides[0])))
    imitates = [bool((rows["lambda"] == 0).any()) for rows in (instances, base)]
    means = [weighted_mean(ones, side)[0] for side in averaged]  # (point, axis)
    price = dict.fromkeys((*PRICE, "from", "to"), np.nan)
    for name, there, mean in zip(("floor", "base_floor"), imitates, means, strict=True):
        price[name] = float(mean[0, 1]) if there else np.nan
    price |= {"points": min(map(len, means)), "n": len(sides[0]), "seeds": sides[0].shape[-1]}
    start, end = max(mean[:, 0].min() for mean in means), min(mean[:, 0].max() for mean in means)
    if start >= end:
        return pd.Series(price)
    grid, less_floor = np.linspace(start, end, GRID), net and all(imitates)

    def heights(weights: np.ndarray, tables: list[np.ndarray]) -> list[np.ndarray]:
        return [height(weighted_mean(weights, table), grid, less_floor) for table in tables]  # (draw,) of either side

    runs = [np.subtract(*heights(ones, [side[..., run] for side in sides])) for run in range(price["seeds"])]
    samples = bootstrap(lambda weights: np.subtract(*heights(weights, averaged)), price["n"], DRAWS)
    (first,), (second,) = heights(ones, averaged)
    by_run = {run: float(gap[0]) for run, gap in enumerate(runs)}
    row = difference_row(Effect("tvd", first - second, by_run, standard_error(samples), price["n"], first, second))
    return pd.Series(price | {name: row[name] for name in PRICE} | {"from": start, "to": end})


def height(curves: np.ndarray, grid: np.ndarray, less_floor: bool) -> np.ndarray:
    """The mean TVD of curves, straight between their points, over a grid of JSD: (draw, point, axis) -> (draw,).

    Args:
        less_floor: the TVD of a curve's first point is subtracted.
    """
    floors = curves[:, 0, 1] * less_floor
    ordered = (curve[np.argsort(curve[:, 0])].T for curve in curves)
    return np.array([np.interp(grid, *curve).mean() for curve in ordered]) - floors


def prices(imitated: pd.DataFrame) -> pd.DataFrame:
    """`price_difference` of each variant to the base, on the seeds that both have: a row a variant.

    Args:
        imitated: rows of `measure_versus_base`; variant is that of the imitated model, `converged` whether the
            adversary's loss did.
    Returns:
        variant, the columns of `price_difference`, raw, raw_low, raw_high (the same with nothing subtracted), failed
        (why they show nothing about attention, else "").
    """
    rows = []
    for variant, some in imitated[imitated["variant"] != "base"].groupby("variant", sort=False):
        base = imitated[(imitated["variant"] == "base") & imitated["seed"].isin(some["seed"])]
        raw, net = price_difference(some, base, net=False), price_difference(some, base)
        failed = [why for side in (some, base) for why in (failed_imitation(side), unfinished(side))]
        if (floor := max(net["floor"], net["base_floor"])) >= abs(net["difference"]):
            failed.append(f"the floor, {floor:.3f}, exceeds the effect")
        row = {"raw": raw["difference"], "raw_low": raw["low"], "raw_high": raw["high"]}
        row |= {"failed": "; ".join(dict.fromkeys(filter(None, failed)))}
        rows.append({"variant": variant} | net.to_dict() | row)
    return pd.DataFrame(rows)


def failed_imitation(some: pd.DataFrame) -> str:
    """Why the adversaries of one model that only imitate (lambda 0) are no measure of what imitation costs; else "".

    One seed's imitation that is worse than what it imitates is enough.
    """
    only, others, name = some[some["lambda"] == 0], some[some["lambda"] > 0], title_of(some["variant"].iloc[0])
    if only.empty:
        return f"no adversary of {name} only imitates"
    right = only[["base_prediction", "prediction"]].eq(only["label"], axis=0).groupby(only["seed"]).mean()
    lost = (right["base_prediction"] - right["prediction"]).max()  # in the worst seed
    nearest = others.groupby("lambda")["tvd"].mean().min()
    reasons = (
        (not only["converged"].all(), "did not converge"),
        (lost > ON_PAR, f"is {lost:.3f} below it in accuracy"),
        (nearest < only["tvd"].mean(), f"is farther from its predictions than an adversary ({nearest:.3f} of TVD)"),
    )
    why = ", ".join(words for holds, words in reasons if holds)
    return f"imitation of {name} alone {why}" if why else ""


def unfinished(some: pd.DataFrame) -> str:
    """That an adversary of one model beyond imitation did not converge; else ""."""
    away = some[some["lambda"] > 0]
    return "" if away["converged"].all() else f"an adversary of {title_of(some['variant'].iloc[0])} did not converge"
