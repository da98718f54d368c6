"""A study's values under the names that published.csv has for them."""

import pandas as pd

from lib.published import KEYS, with_text_keys
from tools.summary.studies import Study

COLUMNS = [*KEYS, "value", "unit", "low", "high", "sd_seeds", "seeds"]
# Where one of these says something, a row is one of several, and none of them is the value of the model by itself.
TELLING = ("trains", "lambda", "rate", "ranking", "way", "series", "at", "first", "against", "start", "epoch")
OF_LAMBDA = {
    "entropy_of_gradient_of_input": "kendall_tau_lambda_vs_entropy_of_input_importance",
}


def partners(study: Study) -> pd.DataFrame:
    """One row for each key of published.csv: KEYS, value, unit, low, high, sd_seeds, seeds."""
    table = study.values.reindex(columns=list(dict.fromkeys([*study.values, *COLUMNS, *TELLING])))
    special = {"adversary": of_adversary, "sparsity": of_sparsity, "erasure": of_erasure}
    parts = [plain(table), *(special[study.notebook](table) if study.notebook in special else ())]
    parts = [part[COLUMNS] for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=COLUMNS)
    found = with_text_keys(pd.concat(parts, ignore_index=True))
    return found.drop_duplicates(KEYS, ignore_index=True)


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that are about a model and nothing else."""
    return table[table["value"].notna() & table[list(TELLING)].isna().all(axis=1)]


def of_adversary(table: pd.DataFrame) -> list[pd.DataFrame]:
    """Wiegreffe & Pinter's tables 3 and 4: guides, and the adversary whose lambda dev chose, else the largest.

    Their TVD is half of the two-class TVD, as in their code.
    """
    adversaries = table[table["trains"].eq("all") & table["value"].notna()]
    dev = table[table["quantity"].eq("dev")].reindex(columns=["lambda", "chosen"])
    chosen = dev.loc[dev["chosen"].astype(str).eq("True"), "lambda"].max()
    chosen = adversaries["lambda"].max() if pd.isna(chosen) else chosen
    adversaries = adversaries[adversaries["lambda"].eq(chosen) & adversaries["quantity"].ne("tvd")]
    guides = plain(table)
    softmax = guides["attention"].eq("additive") & guides["projection"].eq("softmax")
    guides = guides[softmax & guides["variant"].astype(str).str.startswith("guide_")].assign(encoder="mlp")
    imposed = guides["variant"].ne("guide_learned")
    guides = guides.assign(
        attention=guides["attention"].mask(imposed, "imposed"), projection=guides["projection"].mask(imposed, "")
    )
    return [adversaries.replace({"quantity": {"tvd_half": "tvd"}}), guides]


def of_sparsity(table: pd.DataFrame) -> list[pd.DataFrame]:
    """Meister et al.'s table 2, the taus along sparsegen's lambda, and table 5, the adversaries farthest away."""
    slopes = table.reindex(columns=list(dict.fromkeys([*table, "tau", "tau_low", "tau_high"])))
    slopes = slopes[slopes["tau"].notna() & slopes["quantity"].isin(OF_LAMBDA)]
    slopes = slopes.replace({"quantity": OF_LAMBDA}).assign(unit="tau-b")
    slopes = slopes.assign(value=slopes["tau"], low=slopes["tau_low"], high=slopes["tau_high"])
    adversaries = table[table["trains"].notna() & table["value"].notna() & table["projection"].eq("softmax")]
    farthest = adversaries.groupby("trains")["lambda"].transform("max") == adversaries["lambda"]
    return [slopes, adversaries[farthest].assign(projection="")]  # the paper does not say which


def of_erasure(table: pd.DataFrame) -> list[pd.DataFrame]:
    """Serrano & Smith's table 2: attention's top item against another one, drawn as their code does."""
    return [table[table["ranking"].eq("attention") & table["way"].eq("authors_code") & table["value"].notna()]]
