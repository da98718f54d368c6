"""A study's values under the names that published.csv has for them."""

import pandas as pd

from lib.papers import PAPERS
from lib.published import KEYS, with_text_keys
from tools.summary.studies import Study

COLUMNS = [*KEYS, "value", "unit", "low", "high", "sd_seeds", "seeds"]
# Where one of these says something, a row is one of several, and none of them is the value of the model by itself.
TELLING = ("trains", "lambda", "rate", "ranking", "way", "series", "at", "first", "against", "start", "epoch")


def partners(study: Study) -> pd.DataFrame:
    """One row for each key of published.csv: KEYS, value, unit, low, high, sd_seeds, seeds."""
    table = study.values.reindex(columns=list(dict.fromkeys([*study.values, *COLUMNS, *TELLING])))
    of_models = table[table["value"].notna() & table[list(TELLING)].isna().all(axis=1)]
    parts = [of_models, *PAPERS[study.notebook].partners(table, of_models)]
    parts = [part[COLUMNS] for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=COLUMNS)
    found = with_text_keys(pd.concat(parts, ignore_index=True))
    return found.drop_duplicates(KEYS, ignore_index=True)
