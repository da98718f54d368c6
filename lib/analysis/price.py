"""What it costs to attend elsewhere: adversaries' mean TVD over their mean JSD."""

from collections.abc import Mapping

import pandas as pd

from lib.analysis.adversaries import AXES
from lib.analysis.summaries import summarise
from lib.quantity import title_of

ENDS = ["value", "low", "high"]


def points(series: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The runs of each series on the plane of mean JSD (nats) and mean TVD (fraction), a point each.

    Wiegreffe & Pinter (2019), figure 5.

    Args:
        series: the name of each -> rows of `measure_versus_base`.
    Returns:
        quantity ("point"), series, at (lambda, or NaN), seed, jsd, jsd_low, jsd_high, tvd, tvd_low, tvd_high (95%, over
        texts), n.
    """
    points = []
    for name, instances in series.items():
        for (strength, seed), run in instances.groupby(["lambda", "seed"], dropna=False):
            summary = summarise(run, AXES).set_index("quantity")
            point = {"quantity": "point", "series": name, "at": strength, "seed": seed, "n": summary.loc["jsd", "n"]}
            for axis in AXES:
                point |= dict(zip((axis, f"{axis}_low", f"{axis}_high"), summary.loc[axis, ENDS], strict=True))
            points.append(point)
    return pd.DataFrame(points)


def points_by_variant(adversaries: pd.DataFrame) -> pd.DataFrame:
    """`points` of the adversaries of each variant, with their `attention` (Tutek & Snajder 2020, figure 1)."""
    groups = adversaries.groupby(["attention", "variant"], sort=False)
    curves = [points({title_of(name): rows}).assign(attention=own) for (own, name), rows in groups]
    return pd.concat(curves, ignore_index=True)
