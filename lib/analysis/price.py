"""What it costs to attend elsewhere: the curve of adversaries' mean TVD over their mean JSD."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from lib.analysis.adversaries import AXES
from lib.analysis.statistics import weighted_mean
from lib.analysis.summaries import summarise
from lib.quantity import title_of


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


def points_by_variant(adversaries: pd.DataFrame) -> pd.DataFrame:
    """`points` along lambda, of the adversaries of each variant (Tutek & Snajder 2020, figure 1)."""
    groups = adversaries.groupby(["attention", "variant"], sort=False)
    curves = [points(rows, title_of(name), "lambda").assign(attention=own) for (own, name), rows in groups]
    return pd.concat(curves, ignore_index=True)


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
