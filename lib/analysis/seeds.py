"""Rows of `summarise` seed by seed, as they are kept, and back: one row over all seeds."""

from collections.abc import Iterable
from math import inf, nan

import numpy as np
import pandas as pd
from scipy import special

from lib.analysis.statistics import FEW, LEVEL
from lib.quantity import bounds_of

OVER = ("low", "high", "sd_seeds", "low_texts", "high_texts", "low_seeds", "high_seeds", "seeds")  # of all seeds
OF_RUNS = ("seed", "value", "se_texts", "sd_instances", "n", "undefined", "left_out")  # of a run, or of those together
AGAIN = {"se_texts": "mean"} | dict.fromkeys(("n", "undefined", "left_out"), "max")  # of several runs together
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
    found = groups["value"].agg(value="mean", sd_seeds="std", seeds="size", defined="count").reset_index()
    found["value"] = found["value"].where(found.pop("defined") == found["seeds"])
    columns = {name: how for name, how in AGAIN.items() if name in of_one}
    found[list(columns)] = groups.agg(columns).to_numpy(float) if columns else ()
    if "sd_instances" in of_one:
        found["sd_instances"] = np.sqrt(groups["sd_instances"].agg(lambda some: (some**2).mean()).to_numpy(float))
    return pd.concat([with_intervals(found), rows[~single].drop(columns="per")], ignore_index=True)


def with_intervals(found: pd.DataFrame) -> pd.DataFrame:
    """With the intervals that `summarise` gives: over texts and seeds (`interval_over_texts_and_seeds`), over
    texts alone, over seeds alone; they end where the quantity's values do, if that is known here.
    """
    seeds = found["seeds"].to_numpy()
    over_texts = found.get("se_texts", pd.Series(nan, found.index)).to_numpy() * special.ndtri((1 + LEVEL) / 2)
    over_seeds = found["sd_seeds"].to_numpy() / np.sqrt(seeds) * special.stdtrit(seeds - 1, (1 + LEVEL) / 2)
    parts = np.stack([over_texts, np.where(seeds >= FEW, over_seeds, nan)])
    both = np.where(np.isnan(parts).all(axis=0), nan, np.linalg.norm(np.nan_to_num(parts), axis=0))
    least, most = np.transpose([limits(name) for name in found["quantity"]]) if len(found) else (nan, nan)
    for of, half in {"": both, "_texts": over_texts, "_seeds": over_seeds}.items():
        found[f"low{of}"] = np.clip(found["value"] - half, least, most)
        found[f"high{of}"] = np.clip(found["value"] + half, least, most)
    return found


def limits(name: str) -> tuple[float, float]:
    """The bounds of a quantity, infinite where they are not known here."""
    try:
        return bounds_of(name)
    except KeyError:
        return -inf, inf
