"""The results that are kept: what each run of a notebook in profile paper gave, for the summary and its pages.

NOTEBOOK-DATASET.csv has a row for each run and quantity, NOTEBOOK-DATASET-findings.csv one for each finding, model and
run. The key of a row is its whole run, so that a row is replaced by the same run alone: runs on other texts, of other
sizes, from other vectors or by another recipe stand beside each other.
"""

import csv
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pandas as pd

from lib import provenance
from lib.analysis.summaries import split_seeds
from lib.atomic_write import alone, write_file
from lib.datasets import Own
from lib.provenance import PROJECT
from lib.quantity import RUN_COLUMNS
from lib.training import Run, Trained
from lib.training.cache import WEIGHTS
from lib.training.runs import EVERY, FIRST_VECTORS
from papers.effects import EFFECT, MODEL
from papers.settings import Settings

FOLDER = PROJECT / "reports" / "results"
MAIN_VECTORS = FIRST_VECTORS | {"serrano2019": "word2vec,"}  # how names begin: of the main runs', and of those beside
SECOND_VECTORS = dict.fromkeys(MAIN_VECTORS, "indomain_word2vec_300d") | {"tutek2020": "wiki_glove6b_100d"}
# What a row's run read, and how it was trained, beside dataset, model and seed: a part of its key.
READ = ["texts", "train_texts", "dev_texts", "test_texts", "vectors"]
RUN = (*READ, "recipe", "version")
ABOUT = (*RUN, "runs", "commit", "profile", "device")
OPTIONS = ("weights", "trains", "divergence", "lambda", "rate", "ranking", "way", "series", "at", "against", "start")
VALUE = (*RUN_COLUMNS, "quantity", "seed", "guide", *OPTIONS)
KEYS = {"values": VALUE, "findings": ("finding", "dataset", "model", "seed")}
ENDINGS = {"values": "", "findings": "-findings"}
NUMBERS = ("seed", "value", "chance", "se", "n", "train_texts", "test_texts")  # what is counted with
TEXTS = {"texts", "vectors", "recipe", "version", "runs", "commit", "profile", "device", *MODEL, "model", "left_out"}


@dataclass(frozen=True)
class Kept:
    """What became of a notebook's tables."""

    sentence: str  # whether they are kept, and where
    values: pd.DataFrame  # this run's rows with those kept of the same experiment; or, where nothing is kept, alone
    effects: pd.DataFrame  # the same
    own: bool  # the model or the text is one's own
    these_models: bool  # the findings are about these very models, so that only texts vary

    def __repr__(self) -> str:
        return self.sentence


def keep(
    notebook: str,
    settings: Settings,
    trained: Sequence[Trained],
    values: pd.DataFrame | Sequence[pd.DataFrame],
    effects: pd.DataFrame,
    commit: str = "",
) -> Kept:
    """Puts both tables of a run in profile `paper`, or a part of one, into files in $RESULTS_HOME, or reports/results.

    Args:
        trained: the runs that were measured, all of one dataset; nothing is kept of those of your own model.
        values: of `summarise` and the like, one or several; those with `of_seeds` become a row for each seed.
        effects: of `papers.effects.compute`. commit: of the code that ran; by default as it is now.
    """
    own_model, dataset = not isinstance(trained[0].run, Run), str(settings.dataset)
    own = own_model or isinstance(settings.dataset, Own)
    about = (own, own or settings.profile == "quick")
    values = pd.concat([values] if isinstance(values, pd.DataFrame) else values, ignore_index=True)
    values = split_seeds(values.assign(dataset=values.get("dataset", pd.Series(dtype=object)).fillna(dataset)))
    refused = "the model is your own; only models that are trained here are" if own_model else not_kept(settings)
    try:
        if not refused:
            tables = zip(KEYS, (values, effects), strict=True)
            new = {kind: with_run(rows, trained, commit or provenance.commit()) for kind, rows in tables}
            new = {kind: rows.to_csv(index=False, float_format="%.6g") for kind, rows in new.items()}
            names = write(notebook, dataset, new)
    except (Damaged, OSError) as error:
        refused = str(error)
    if refused:
        return Kept(f"not kept: {refused}", values, effects, *about)
    every = [kept(kind, notebook, dataset) for kind in ENDINGS]
    read = typed(new["findings"])[READ].drop_duplicates()
    values, main = (main_runs(rows.merge(read, on=READ), kind) for rows, kind in zip(every, ENDINGS, strict=True))
    sentence = f"kept in {' and '.join(names)}; python -m tools.summary shows them"
    return Kept(sentence, values, with_second(main, every[1]), *about)


def not_kept(settings: Settings) -> str:
    """Why the tables of a run with these settings are not written down; "" where they are."""
    if settings.profile != "paper":
        return f"the profile is {settings.profile!r}; only results of 'paper' are"
    if isinstance(settings.dataset, Own):
        return "the text is your own; only results on public datasets are"
    return "" if settings.projection == "softmax" else "projection made it another experiment than the paper's"


def with_run(rows: pd.DataFrame, trained: Sequence[Trained], commit: str) -> pd.DataFrame:
    """The rows with the columns ABOUT: what each was made from."""
    first, corpus, runs = trained[0], trained[0].corpus, [one.run for one in trained]
    made = {f"{name}_texts": len(getattr(corpus, name)) for name in ("train", "dev", "test")}
    vectors = Path(first.vectors.source.partition(" (")[0]).name
    made |= {"texts": corpus.checksum[:12], "vectors": re.sub(r", seed \d+$", "", vectors)}  # one experiment: all seeds
    made |= {"recipe": [recipe_text(row, runs) for row in rows.to_dict("records")], "version": WEIGHTS}
    made |= {"runs": " ".join(map(str, provenance.seeds_of(trained))), "commit": commit, "profile": first.run.profile}
    return rows.assign(**made, device=first.run.device_kind)


def recipe_text(row: Mapping, runs: Sequence[Run]) -> str:
    """How the run of a row was trained: the recipe and the options that all runs have that it may be of.

    A row of "sparsegen" may be of all of its strengths, one of "tying_with_learned_embeddings" of all tying.
    """

    def may_be(own: str, named: str) -> bool:
        return f"{own}:".startswith(f"{named}:") or named.startswith(f"{own}_")

    named = {name: str(row[name]) for name in MODEL[1:] if row.get(name, "") != "" and pd.notna(row[name])}
    same = [run for run in runs if all(may_be(getattr(run, name, of), of) for name, of in named.items())]
    same = same or [run for run in runs if run.base is None] or runs
    same = [run for run in same if (run.base or run).seed == row.get("seed")] or same
    options = dict(set.intersection(*(set(run.options) for run in same)))
    options |= {row["series"]: row["at"]} if row.get("series") in EVERY else {}  # of a value that is not the runs' own
    return " ".join([*sorted({run.recipe for run in same}), *(f"{name}={options[name]}" for name in sorted(options))])


class Damaged(ValueError):
    """A kept table that cannot be read whole; it is never written over."""


def home() -> Path:
    """The folder of kept results; a relative RESULTS_HOME is in the project."""
    return PROJECT / Path(os.environ.get("RESULTS_HOME") or FOLDER).expanduser()


def write(notebook: str, dataset: str, new: Mapping[str, str]) -> list[str]:
    """Puts new rows, as CSV, into the kept tables of a notebook and dataset, both or none; the files' names.

    Raises:
        Damaged: a kept table is. OSError: nothing can be written; the kept tables stay as they are.
    """
    of = f"{notebook}-{dataset}".replace(":", "@")  # no colon in the name of a file
    folder, names = home(), {kind: f"{of}{ending}.csv" for kind, ending in ENDINGS.items()}
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder / f".{of}.lock"):
        merged = {name: merge(read(folder / name), new[kind], kind) for kind, name in names.items()}
        parts = {name: write_file(folder / f"{name}.new", rows.to_csv(index=False)) for name, rows in merged.items()}
        for name, part in parts.items():
            part.replace(folder / name)
    return list(names.values())


def merge(old: str, new: str, kind: str) -> pd.DataFrame:
    """The new rows, then the old ones whose run no new one has, all text; a row of several runs has all their seeds."""
    new, old = (pd.read_csv(StringIO(text), dtype=str, keep_default_na=False) for text in (new, old))
    rows = pd.concat([new, old], ignore_index=True).fillna("")
    key = rows.reindex(columns=[*KEYS[kind], *RUN], fill_value="").replace(r"\.0$", "", regex=True)  # 2.0 is 2
    together = rows["runs"].mask(rows["per"].eq("seed"), "") if "per" in rows else ""
    keys, is_new = pd.MultiIndex.from_frame(key.assign(together=together)), rows.index < len(new)
    return rows[is_new | ~keys.isin(keys[is_new])]


def read(path: Path) -> str:
    """The CSV of a kept table; of its head alone where there is no file. Raises Damaged, with the line."""
    if not os.path.lexists(path):
        return f"{','.join(ABOUT)}\n"
    text = path.read_text(encoding="utf-8-sig", errors="replace") if path.is_file() else ""  # a pipe would wait
    lines, seen = csv.reader(StringIO(text), strict=True), set()
    try:
        head = next(lines, [])
        if not {*ABOUT, *NUMBERS[:2], "finding" if "-findings" in path.name else "quantity"} <= {*head}:
            raise ValueError
        places = [place for place, name in enumerate(head) if name in NUMBERS]
        for row in map(tuple, lines):
            if len(row) != len(head) or row in seen or re.search("[\0\ufffd]", "".join(row)):
                raise ValueError
            _ = [float(row[place].replace("_", "?").encode("ascii") or 0) for place in places]
            seen.add(row)
        if text[-1] != "\n":
            raise ValueError
    except (ValueError, csv.Error):
        why = "no line of a kept table, cut short, or there twice"
        raise Damaged(f"{path} is damaged: line {lines.line_num} is {why}; mend it or move it away") from None
    return text


def typed(text: str) -> pd.DataFrame:
    """The rows of CSV as numbers and text."""
    rows = pd.read_csv(StringIO(text), dtype=dict.fromkeys(TEXTS, str), low_memory=False)
    return rows.fillna(dict.fromkeys(TEXTS, ""))


def kept(kind: str, notebook: str | None = None, dataset: str | None = None) -> pd.DataFrame:
    """All kept rows of a kind, "values" or "findings", of one notebook and dataset where given. Raises Damaged."""
    parts = [pd.DataFrame(columns=["notebook", *(EFFECT if kind == "findings" else KEYS["values"]), *ABOUT])]
    for path in sorted(home().glob("*.csv")):
        stem = path.stem.replace("@", ":")
        name, _, of = stem.removesuffix(ENDINGS["findings"]).partition("-")
        if stem == f"{name}-{of}{ENDINGS[kind]}" and notebook in (None, name) and dataset in (None, of):
            parts.append(typed(read(path)).assign(notebook=name))
    return pd.concat(parts, ignore_index=True)


def main_runs(rows: pd.DataFrame, kind: str, vectors: Mapping[str, str] = MAIN_VECTORS) -> pd.DataFrame:
    """The main rows of each model and finding: most texts, its recipe's `vectors`, most runs, else the last."""
    place = ["notebook", *(x for x in (KEYS[kind] if kind == "findings" else RUN_COLUMNS) if x in rows and x != "seed")]
    named = [name for name in KEYS[kind] if name in rows and name not in ("seed", *place)]
    first = rows["recipe"].str.split().str[0].map(vectors).fillna(" ")
    rows = rows.copy().assign(own=[name.startswith(own) for name, own in zip(rows["vectors"], first, strict=True)])
    columns = {"own": ("own", "max"), "runs": ("seed", "nunique"), "rows": ("seed", "size")}
    for by, of in ((place, READ), ([*place, *READ, *named], ["recipe", "version"])):
        sets = rows.groupby([*by, *of], dropna=False, sort=False).agg(**columns).reset_index()
        sets = sets.sort_values(["train_texts", "test_texts", *columns], ascending=False, kind="stable")
        rows = rows.merge(sets.drop_duplicates(by)[[*by, *of]], on=[*by, *of])
    return rows.drop(columns="own")


def with_second(main: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Kept findings, and those of `rows` that read the same but for other word vectors (SECOND_VECTORS): `second`."""
    read = ["notebook", "dataset", "model", "finding", *(name for name in READ if name != "vectors")]
    rest = rows.merge(main[read].drop_duplicates(), on=read)
    rest = rest.merge(main[[*read, "vectors"]].drop_duplicates(), on=[*read, "vectors"], how="left_anti")
    return pd.concat([main.assign(second=False), main_runs(rest, "findings", SECOND_VECTORS).assign(second=True)])
