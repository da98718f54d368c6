"""The curve of an adversary's price: mean TVD over mean JSD, its shape, and what lies beside it."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from lib.analysis.statistics import Effect, bootstrap, mean_over, standard_error, weighted_mean
from lib.analysis.summaries import DRAWS, difference_row, summarise
from lib.analysis.tradeoff import AXES
from lib.quantity import title_of

GRID = 50  # values of JSD at which two curves are compared
PRICE = ("first", "second", "difference", "low", "high", "se")
REACHES = 0.02  # of accuracy: an imitation that is farther below what it imitates has failed


def points(instances: pd.DataFrame, series: str, by: str | None = None, classes: Sequence[str] = ()) -> pd.DataFrame:
    """The points of a series on the plane of mean JSD (nats) and mean TVD (fraction), one for each run.

    Args:
        by: the column that makes a curve of each seed's runs. classes: names of the classes; of each that the base
            predicts (`base_prediction`) there are points too.
    Returns:
        series, texts ("all texts" or a class), at (the value of `by`, or NaN), seed, jsd, jsd_low, jsd_high, tvd,
        tvd_low, tvd_high (95%, over texts), n.
    """
    rows = []
    for texts, some in by_class(instances.assign(at=np.nan if by is None else instances[by]), classes):
        for (at, seed), group in some.groupby(["at", "seed"], dropna=False):
            summary = summarise(group, AXES).set_index("quantity")
            row = {"series": series, "texts": texts, "at": at, "seed": seed}
            for axis in AXES:
                ends = summary.loc[axis, ["value", "low", "high"]]
                row |= dict(zip((axis, f"{axis}_low", f"{axis}_high"), ends, strict=True))
            rows.append(row | {"n": summary.loc["jsd", "n"]})
    return pd.DataFrame(rows)


def by_class(instances: pd.DataFrame, classes: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """("all texts", all rows), then (class, rows) of each class that the base predicts."""
    yield "all texts", instances
    for number, name in enumerate(classes):
        of_class = instances[instances["base_prediction"] == number]
        if len(of_class):
            yield name, of_class


def curvatures(kinds: Mapping[str, pd.DataFrame], classes: Sequence[str] = ()) -> pd.DataFrame:
    """Is the curve of mean TVD over mean JSD convex (attention is easily moved) or concave (it has its price)?

    Wiegreffe & Pinter (2019), section 4 and figure 5. A seed's curve goes from its smallest lambda to its largest, the
    chord joins its ends. Each seed has its own: where runs of one lambda either moved or stayed, their means lie on a
    chord.

    Args:
        kinds: rows of `measure_versus_base` of each kind of adversary. classes: names of the classes; of each that the
            base predicts there are curves too.
    Returns:
        adversary, texts ("all texts" or a class), seed, below_chord (fraction), n: a row for a seed.
    """
    found = []
    for kind, instances in kinds.items():
        for texts, rows in by_class(instances, classes):
            for seed, table in zip(*tables_of_seeds(rows), strict=True):
                below = below_chord(weighted_mean(np.ones((1, len(table))), table))[0]
                found.append((kind, texts, seed, float(below), len(table)))
    return pd.DataFrame(found, columns=["adversary", "texts", "seed", "below_chord", "n"])


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


def tables_of_seeds(instances: pd.DataFrame) -> tuple[list[int], list[np.ndarray]]:
    """The seeds, and the table (instance, point by growing lambda, axis) of each; all of the same texts."""
    seeds = {int(seed): rows.sort_values(["lambda", "instance"]) for seed, rows in instances.groupby("seed")}
    shapes = [(rows["lambda"].nunique(), rows["instance"].nunique(), len(AXES)) for rows in seeds.values()]
    values = [rows[list(AXES)].to_numpy(float) for rows in seeds.values()]
    return list(seeds), [one.reshape(shape).swapaxes(0, 1) for one, shape in zip(values, shapes, strict=True)]


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
    pair = [np.stack(tables_of_seeds(rows)[1], axis=-1) for rows in (instances, base)]  # (text, point, axis, seed)
    floors = [bool((rows["lambda"] == 0).any()) for rows in (instances, base)]
    net = net and all(floors)
    ones, averaged = np.ones((1, len(pair[0]))), [mean_over(3, values) for values in pair]

    def curve(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(draw, point, axis), less the floor where both have one."""
        means = weighted_mean(weights, values)
        return means - means[:, :1] * np.array([0.0, 1.0]) if net else means

    ours, theirs = (curve(ones, values)[0] for values in averaged)
    points, found = min(len(ours), len(theirs)), dict.fromkeys((*PRICE, "from", "to"), np.nan)
    reached = [of[:, 0] for of in (ours, theirs)]  # JSD
    start, end = (max(map(np.min, reached)), min(map(np.max, reached))) if points else (0.0, 0.0)
    if start < end:
        grid = np.linspace(start, end, GRID)

        def heights(weights: np.ndarray, sides: list[np.ndarray]) -> list[np.ndarray]:
            return [height(curve(weights, values), grid) for values in sides]  # (draw,) each

        runs = [heights(ones, [values[..., run] for values in pair]) for run in range(pair[0].shape[-1])]
        by_run = {run: float(first[0] - second[0]) for run, (first, second) in enumerate(runs)}
        samples = bootstrap(lambda weights: np.subtract(*heights(weights, averaged)), len(ones[0]), DRAWS)
        first, second = (float(side[0]) for side in heights(ones, averaged))
        effect = Effect("tvd", first - second, by_run, standard_error(samples), len(ones[0]), first, second)
        row = difference_row(effect)
        found = {name: row[name] for name in PRICE} | {"from": start, "to": end}
    for name, there, values in zip(("floor", "base_floor"), floors, averaged, strict=True):
        found[name] = float(weighted_mean(ones, values)[0, 0, 1]) if there else np.nan
    return pd.Series(found | {"points": points, "n": len(pair[0]), "seeds": pair[0].shape[-1]})


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
        of_base = imitated[(imitated["variant"] == "base") & imitated["seed"].isin(some["seed"])]
        raw, net = price_difference(some, of_base, net=False), price_difference(some, of_base)
        failed = [why for of in (some, of_base) for why in (failed_imitation(of), unfinished(of))]
        if (floor := max(net["floor"], net["base_floor"])) >= abs(net["difference"]):
            failed.append(f"the floor, {floor:.3f}, exceeds the effect")
        row = {f"raw{end}": raw[name] for end, name in (("", "difference"), ("_low", "low"), ("_high", "high"))}
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
        (lost > REACHES, f"is {lost:.3f} below it in accuracy"),
        (nearest < only["tvd"].mean(), f"is farther from its predictions than an adversary ({nearest:.3f} of TVD)"),
    )
    why = ", ".join(words for holds, words in reasons if holds)
    return f"imitation of {name} alone {why}" if why else ""


def unfinished(some: pd.DataFrame) -> str:
    """That an adversary of one model beyond imitation did not converge; else ""."""
    away = some[some["lambda"] > 0]
    return "" if away["converged"].all() else f"an adversary of {title_of(some['variant'].iloc[0])} did not converge"


def height(curves: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The mean TVD of curves, straight between their points, over a grid of JSD: (draw, point, (x, y)) -> (draw,)."""
    ordered = (curve[np.argsort(curve[:, 0])].T for curve in curves)
    return np.array([np.interp(grid, *curve).mean() for curve in ordered])
