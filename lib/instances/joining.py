"""Several measurements of the same runs as one table, and a few of its texts to look at."""

from collections.abc import Sequence

import pandas as pd

from lib.instances.measuring import OWN_COLUMNS, RUN
from lib.quantities import readable

MOST = 6  # classes of which there is a text to be read
READABLE = 60  # tokens: the longest text that is chosen to be read, where there is a shorter one


def joined(instances: pd.DataFrame, more: pd.DataFrame) -> pd.DataFrame:
    """The first table with the second's quantities as further columns.

    Raises:
        ValueError: the tables are not of the same runs and instances in the same order, or share a quantity.
    """
    keys = [*RUN, "instance"]
    if not instances[keys].reset_index(drop=True).equals(more[keys].reset_index(drop=True)):
        raise ValueError("the two tables are not of the same runs and instances; measure the same runs and split again")
    quantities = [column for column in more if column not in OWN_COLUMNS]
    shared = [column for column in quantities if column in instances]
    if shared:
        raise ValueError(f"both tables hold {', '.join(shared)}; measure each quantity once")
    left_out = [one + other for one, other in zip(instances["left_out"], more["left_out"], strict=True)]
    added = more[quantities].set_axis(instances.index)
    return pd.concat([instances.assign(left_out=left_out), added], axis=1)


def examples(instances: pd.DataFrame, classes: Sequence[str], far: str | None = None) -> pd.DataFrame:
    """A few texts of one run, chosen by a rule and not by hand; the column `why` says by which.

    Of each class (of more than MOST, of the most frequent) the text that the model is surest of and right about, the
    text it is least sure of, and, where `far` names a column, the text in which that is largest; among the texts of at
    most READABLE tokens, if there are any.
    The run is the table's first.
    """
    first = instances.iloc[0][list(RUN)]
    run = instances[(instances[list(RUN)] == first).all(axis=1)]
    run = run if far is None or run[far].isna().all() else run[run[far].notna()]
    short = run[run["length"] <= READABLE]
    run = short if len(short) else run
    sureness = (run["probability"] - 0.5).abs() if run["label"].max() < 2 else run["probability"]
    right = run["label"] == run["prediction"]
    chosen = {}
    for label in sorted(run["label"].value_counts().index[:MOST]):
        sure = sureness[right & (run["label"] == label)]
        if len(sure):
            chosen[f"The text that is most surely, and rightly, {classes[label]}"] = sure.idxmax()
    chosen["The text the model is least sure of"] = sureness.idxmin()
    if far is not None and run[far].notna().any():
        chosen[f"The text with the largest {readable(far)}"] = run[far].idxmax()
    return run.loc[list(chosen.values())].assign(why=list(chosen))
