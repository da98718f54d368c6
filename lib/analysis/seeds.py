"""Rows of `summarise` seed by seed, as they are kept, and back: one row over all seeds."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy import special

from lib.analysis.statistics import LEVEL, interval_of, t_interval
from lib.quantity import bounds_of

OVER = ("low", "high", "sd_seeds", "low_texts", "high_texts", "low_seeds", "high_seeds", "seeds")  # of all seeds
OF_RUNS = ("seed", "value", "se_texts", "sd_instances", "n", "undefined", "left_out")  # of a run, or of those together
OF_CONTRASTS = ("first", "second", "difference", "word", "se", "p")  # of the runs together, where value is a difference


def by_seed_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each seed of the rows that have `of_seeds`; all others, such as those of `contrast`, as they are.

    Args:
        rows: of `summarise` and the like; others may lie between them.
    Returns:
        the columns of rows but `of_seeds`. Of a row for one seed `per` is "seed" and value is that seed's; se_texts is
        still that of the mean over the seeds together, and what follows from all seeds is missing.
    """
    rows = rows.reset_index(drop=True)
    if "of_seeds" not in rows or "value" not in rows:
        return rows
    many = rows["of_seeds"].map(lambda given: isinstance(given, dict) and bool(given)) & rows["value"].notna()
    pairs = [pair for given in rows.loc[many, "of_seeds"] for pair in given.items()]
    single = rows.loc[rows.index[many].repeat(rows.loc[many, "of_seeds"].map(len))]
    single = single.assign(seed=[seed for seed, _ in pairs], value=[value for _, value in pairs], per="seed")
    single = single.drop(columns=list(OVER), errors="ignore")
    return pd.concat([single, rows[~many]]).sort_index(kind="stable").reset_index(drop=True).drop(columns="of_seeds")


def over_seeds(rows: pd.DataFrame, about: Iterable[str] = ()) -> pd.DataFrame:
    """The rows of `by_seed_rows` with those of single seeds put together again, in the columns of `summarise`.

    Where runs of several studies are together, se_texts is the mean of theirs: at least that of all their seeds.

    Args:
        about: columns that say where a row comes from; rows that differ in them alone are of one quantity.
    """
    if "per" not in rows:
        return rows
    single = rows["per"].eq("seed")
    of_one = rows[single].dropna(axis=1, how="all")
    by = [name for name in of_one if name not in (*OVER, *OF_RUNS, *OF_CONTRASTS, *about, "per")]
    groups = of_one.drop_duplicates([*by, "seed"]).groupby(by, sort=False, dropna=False)
    found = [dict(zip(by, key, strict=True)) | over_seeds_of(same) for key, same in groups]
    return pd.concat([pd.DataFrame(found), rows[~single].drop(columns="per")], ignore_index=True)


def over_seeds_of(same: pd.DataFrame) -> dict[str, float]:
    """What `summarise` has of one quantity, from a row for each seed."""
    values, name = same["value"].to_numpy(float), same["quantity"].iloc[0]
    value, se = float(values.mean()), float(same.get("se_texts", pd.Series(dtype=float)).mean())
    half = special.ndtri((1 + LEVEL) / 2) * se
    intervals = {
        "": interval_of(value, se, values),
        "_texts": (value - half, value + half),
        "_seeds": t_interval(values),
    }
    row = {"value": value, "se_texts": se, "sd_seeds": float(same["value"].std()), "seeds": len(same)}
    for of, bounds in intervals.items():
        row |= dict(zip((f"low{of}", f"high{of}"), map(float, within(name, bounds)), strict=True))
    if "sd_instances" in same:
        row["sd_instances"] = float(np.sqrt((same["sd_instances"] ** 2).mean()))
    return row | {column: same[column].max() for column in ("n", "undefined", "left_out") if column in same}


def within(name: str, interval: tuple[float, float]) -> np.ndarray:
    """An interval that ends where the quantity's values do, if that is known here."""
    try:
        return np.clip(interval, *bounds_of(name))
    except KeyError:
        return np.asarray(interval)
