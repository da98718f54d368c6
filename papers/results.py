"""What the `paper` runs of each notebook and dataset gave, row by row: kept for the README and the summary.

<notebook>-<dataset>.csv has a row for each run and quantity, and <notebook>-<dataset>-evidence.csv one for each claim,
model and seed. Several runs, of more seeds or of another part of a notebook, merge in them.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import fields
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib import provenance
from lib.analysis.statistics import FEW
from lib.analysis.summarising import by_seed_rows
from lib.atomic_write import write_text
from lib.datasets import Own
from lib.notebook import Kept
from lib.provenance import PROJECT
from lib.quantity import RUN_COLUMNS
from lib.training import Run, Trained, cache
from lib.training.trained import CODE, CODE_OF
from papers import Settings

FOLDER = PROJECT / "reports" / "results"
# Where a row comes from: columns that each row has.
ABOUT = ("commit", "code", "profile", "chosen", "device", "vectors", "corpus", "run_seeds", "adversary_epochs")
ABOUT += ("train_texts", "dev_texts", "test_texts")
# What a newer run's rows replace: those with the same of these columns. Options of runs and of measures among them.
OPTIONS = ("trains", "lambda", "rate", "ranking", "way", "series", "at", "against", "start", "vector_scale")
KEYS = {"values": (*RUN_COLUMNS, "quantity", "seed", *OPTIONS), "evidence": ("short", "model", "seed", "at")}
ENDINGS = {"values": "", "evidence": "-evidence"}
# Settings that "chosen" does not name: they are in other columns, are folders, or choose which of the models are run.
ELSEWHERE = {"dataset", "profile", "seeds", "device", "vectors", "data_home", "show_text", "encoders", "attentions"}
OF_ADVERSARIES = ("price", "point")  # quantities of `regularization`
NO_SEED = "-1"  # of evidence without a value


def keep(
    notebook: str,
    settings: Settings,
    trained: Sequence[Trained],
    values: pd.DataFrame,
    evidence: pd.DataFrame,
    commit: str = "",
) -> Kept | str:
    """Leaves both tables to the report; of a run in profile `paper`, or a part of one, it puts them into files too.

    The files are in $RESULTS_HOME, by default in reports/results of the project. Rows of the same
    configuration, options, quantity and seed that are there already are replaced, all others stay. Each row carries
    where it comes from: the columns ABOUT.

    Args:
        settings: of the notebook; nothing is kept where they make another experiment than the paper's.
        trained: the runs that were measured, all of one dataset; nothing is kept of those of your own model.
        values: of `summarise` and the like; those with `of_seeds` become a row for each seed.
        evidence: rows of `papers.claims.EVIDENCE`, from which the summary judges anew.
        commit: of the code that ran; by default of the code as it is now.
    """
    first = trained[0].run
    if not isinstance(first, Run):
        return "not kept: the model is your own; only results of models that are trained here are kept"
    made = {"commit": commit or provenance.commit()} | provenance_of(settings, trained)
    tables = {"values": by_seed_rows(values).assign(**made), "evidence": evidence.assign(**made)}
    folder = Path(os.environ.get("RESULTS_HOME") or FOLDER)
    paths = {name: folder / f"{notebook}-{first.dataset}{ending}.csv" for name, ending in ENDINGS.items()}
    old = {}
    if not (refused := not_kept(settings)):
        old = {name: path.read_text(encoding="utf-8") if path.exists() else "" for name, path in paths.items()}
        tables["evidence"]["looked"] = looked(old["evidence"], tables["evidence"])
    tables = {name: table.infer_objects() for name, table in tables.items()}  # numbers, beside an empty table
    texts = {name: table.to_csv(index=False, float_format="%.6g") for name, table in tables.items()}
    left = {"dataset": str(first.dataset), **texts}
    if refused:
        return Kept(f"not kept: {refused}", left)
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in paths.items():
        write_text(path, merged(old[name], texts[name], KEYS[name]))
    names = " and ".join(path.name for path in paths.values())
    return Kept(f"kept in {names}; python -m tools.summary shows them in the README", left)


def looked(old: str, new: pd.DataFrame) -> list[str]:
    """Of each row of new evidence with how many seeds, FEW or more, its claim was judged of its model so far: "3 5".

    Args:
        old: the kept evidence that it goes to, as CSV text.
    """
    kept = pd.read_csv(StringIO(old), dtype=str, keep_default_na=False) if old else pd.DataFrame(columns=[*new])
    kept = kept[kept["corpus"].isin(new["corpus"])] if "corpus" in kept else kept[:0]
    sizes = {}
    for pair, same in new.groupby(["short", "model"]):
        before = kept[kept["short"].eq(pair[0]) & kept["model"].eq(pair[1])]
        seeds = len({*same["seed"].astype(str), *before["seed"]} - {NO_SEED})
        again = " ".join(before.get("looked", ())).split()
        sizes[pair] = " ".join(sorted({*again, *([str(seeds)] if seeds >= FEW else [])}, key=int))
    return [sizes[pair] for pair in zip(new["short"], new["model"], strict=True)]


def merged(old: str, new: str, keys: Sequence[str]) -> str:
    """The rows of two kept tables, as CSV text: the new ones, then those of the old whose keys no new one has.

    Tables of other texts are replaced whole, and those from before rows had the digest of their texts. Evidence without
    a value, of no seed, goes where the same claim and model have some. A row of several seeds together, such as a
    trend, stays where a new one by the same code is of fewer seeds, or of fewer points; of OF_ADVERSARIES those that
    were trained longer stay, whatever their seeds.
    """
    tables = [pd.read_csv(StringIO(text), dtype=str, keep_default_na=False) for text in (old or new, new)]
    if tables[1].empty:
        return old or new
    if set(tables[0].get("corpus", ())) != set(tables[1]["corpus"]):
        return new
    of_old, of_new = (
        table.reindex(columns=list(keys), fill_value="").replace(r"\.0$", "", regex=True).apply(tuple, axis=1)
        for table in tables  # a whole number: 2.0 in a table with empty cells is 2 in another
    )
    if all({"per", "run_seeds", "code"} <= set(table) for table in tables):
        sizes = [pd.DataFrame({"seeds": table["run_seeds"].str.split().str.len()}) for table in tables]
        for size, table in zip(sizes, tables, strict=True):
            size["points"] = pd.to_numeric(table["points"]).fillna(0) if "points" in table else 0
            of_adversaries = table["adversary_epochs"].where(table["quantity"].isin(OF_ADVERSARIES), "")
            size["epochs"] = pd.to_numeric(of_adversaries.str.split().str[-1]).fillna(0)
        before = dict(zip(zip(of_old, tables[0]["code"], strict=True), sizes[0].to_numpy().tolist(), strict=True))
        known = np.array([before.get(one, (0, 0, 0)) for one in zip(of_new, tables[1]["code"], strict=True)])
        larger, smaller = known > sizes[1].to_numpy(), known < sizes[1].to_numpy()
        longer = larger[:, 2] | (larger[:, :2].any(axis=1) & ~smaller[:, 2])
        stays = tables[1]["per"].ne("seed") & longer
        tables[1], of_new = tables[1][~stays], of_new[~stays]
    both = pd.concat([tables[1], tables[0][~of_old.isin(set(of_new))]], ignore_index=True).fillna("")
    if "short" in both:
        measured = set(both.loc[both["seed"] != NO_SEED, ["short", "model"]].itertuples(index=False, name=None))
        pairs = pd.Series(list(both[["short", "model"]].itertuples(index=False, name=None)), dtype=object)
        both = both[(both["seed"] != NO_SEED) | ~pairs.isin(measured)]
    return both.to_csv(index=False)


def not_kept(settings: Settings) -> str:
    """Why the tables of a run with these settings are not written down; "" where they are."""
    if settings.profile != "paper":
        return f"the profile is {settings.profile!r}; only results of 'paper' are"
    if isinstance(settings.dataset, Own):
        return "the text is your own; only results on public datasets are"
    altered = [name for name in changed(settings) if name in settings.altering()]
    return f"{' and '.join(altered)} made it another experiment than the paper's" if altered else ""


def changed(settings: Settings) -> dict[str, Any]:
    """The settings that are not their defaults, by name."""
    defaults = {one.name: one.default for one in fields(settings)}
    return {name: getattr(settings, name) for name, usual in defaults.items() if getattr(settings, name) != usual}


def in_words(chosen: dict[str, Any]) -> list[str]:
    """layers 2 3, papers_epochs True: each setting with its value, but those of ELSEWHERE."""
    texts = {name: " ".join(map(str, value)) if isinstance(value, tuple) else value for name, value in chosen.items()}
    return [f"{name} {text}" for name, text in texts.items() if name not in ELSEWHERE]


def provenance_of(settings: Settings, trained: Sequence[Trained]) -> dict[str, str | int]:
    """The columns ABOUT but the commit."""
    first, corpus = trained[0].run, trained[0].corpus
    adversaries = [one.run for one in trained if one.run.variant == "adversary" and one.run.option("trains") == "all"]
    made = {
        "code": training_code(next((CODE_OF[one.run.variant] for one in trained if one.run.variant in CODE_OF), CODE)),
        "profile": first.profile,
        "chosen": ", ".join(in_words(changed(settings))),
        "device": first.device_kind,
        "vectors": re.sub(r"\S*/|(, seed \d+)? \(.*|, seed \d+$", "", trained[0].vectors.source),  # a file by its name
        "corpus": corpus.checksum[:12],
        "run_seeds": " ".join(map(str, provenance.seeds_of(trained))),
        "adversary_epochs": " ".join(sorted({str(run.epochs) for run in adversaries})),
    }
    return made | {f"{name}_texts": len(getattr(corpus, name)) for name in ("train", "dev", "test")}


def training_code(modules: Sequence[str]) -> str:
    """What training does, by the syntax of these modules and of all that they import: 12 hex digits."""
    return cache.digest([cache.code_fingerprint(module) for module in modules])[:12]


def is_stale(rows: pd.DataFrame) -> pd.Series:
    """Whether other training code than the present made each row; so do rows that do not say what made them."""
    present = [training_code(modules) for modules in (CODE, *CODE_OF.values())]
    return ~rows.get("code", pd.Series("", index=rows.index)).isin(present)
