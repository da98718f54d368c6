"""The summarised tables of the last `paper` run of each notebook and dataset, kept with the project."""

import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from lib.provenance import PROJECT, commit

FOLDER = PROJECT / "reports" / "results"


def keep(
    notebook: str,
    run: object,
    seeds: Sequence[int],
    summary: pd.DataFrame,
    claims: pd.DataFrame,
    folder: Path | None = None,
) -> str:
    """Writes <notebook>-<dataset>.csv and <notebook>-<dataset>-claims.csv, and says where; README is made from them.

    Only a run in profile `paper` is kept. Each row carries the commit, the device, the vectors and the seeds.

    Args:
        run: a lib.training.Run, of which dataset, profile, vectors and device_kind are read.
        folder: by default $RESULTS_HOME, else reports/results of the project.
    """
    if run.profile != "paper":
        return f"not kept: the profile is {run.profile!r}; only results of 'paper' are"
    folder = Path(folder or os.environ.get("RESULTS_HOME") or FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    vectors = run.vectors if run.vectors in ("auto", "random") else Path(run.vectors).name
    made = {"commit": commit(), "device": run.device_kind, "vectors": vectors, "of_seeds": " ".join(map(str, seeds))}
    paths = []
    for name, table in ((f"{notebook}-{run.dataset}", summary), (f"{notebook}-{run.dataset}-claims", claims)):
        paths.append(folder / f"{name}.csv")
        partial = paths[-1].with_suffix(".partial")
        table.assign(**made).to_csv(partial, index=False, float_format="%.6g")
        partial.replace(paths[-1])
    return f"kept in {' and '.join(path.name for path in paths)}"
