"""The effect of each finding in each model and run: what findings.toml says, computed from a notebook's tables.

A row is a finding, a model and a run (its seed); `papers.judge` puts the runs together.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import product
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib.analysis import effects_between, mean_effect
from lib.analysis.correlation import taus_by_seed
from lib.analysis.statistics import Effect, interval, weighted_mean, weighted_median
from lib.analysis.summaries import rank_correlation, rows_where
from lib.quantity import RUN_COLUMNS, declare, title_of, unit_of

SOURCE = Path(__file__).with_name("findings.toml")
MODEL = (*RUN_COLUMNS, "of")  # of: an explanation or a test
EFFECT = ["finding", "model", *MODEL, "seed", "value", "chance", "se", "n", "left_out"]
UNIFORM = 0.97  # of the entropy of equal weights: attention beyond counts as uniform


@dataclass(frozen=True)
class Finding:
    """What a paper states, and how it is measured; the fields of findings.toml."""

    id: str
    notebook: str
    sentence: str
    source: str
    quantity: str
    effect: Mapping[str, Any]
    predicts: str = "above"
    unit: str = "fraction"
    d: float = 0.05
    threshold: float | str = 0.0
    chance: str = ""
    within_on: tuple[str, ...] = ()
    shows: Mapping[str, list[str]] = field(default_factory=dict)
    datasets: tuple[str, ...] = ()
    bounds: tuple[float, float] = (-inf, inf)
    printed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def beyond_chance(self) -> bool:
        """Whether the effect is held against what chance gives, not against a number."""
        return self.threshold == "chance"

    def predicts_on(self, dataset: str) -> str:
        """What the paper predicts of a dataset: above, below or within, or level for nothing."""
        return "within" if dataset in self.within_on else self.predicts

    def is_about(self, model: Mapping[str, Any]) -> bool:
        """Whether a row of `compute` is of a model that the finding is about; one's own model is."""
        own = {name for name, known in KNOWN.items() if model[name] not in known}
        return all(model[name] in allowed for name, allowed in self.shows.items() if name not in own)


# What effects of a kind have, unless their entry says otherwise.
OF_KIND = {"score": {"unit": "F1"}, "correlation": {"unit": "rho", "d": 0.1, "bounds": (-1.0, 1.0)}}
OF_KIND["trend"] = {"unit": "tau-b", "d": 0.0, "bounds": (-1.0, 1.0)}


def read(path: Path = SOURCE) -> dict[str, Finding]:
    """The findings by id, in the order of the file."""
    found = {}
    for notebook, entries in tomllib.loads(path.read_text(encoding="utf-8")).items():
        shared = entries.pop("default", {})
        for name, entry in entries.items():
            of_kind = next((OF_KIND[kind] for kind in entry["effect"] if kind in OF_KIND), {})
            found[name] = Finding(name, notebook, **shared | of_kind | entry)
    return found


FINDINGS = read()
# The values of a column that findings speak of: an encoder that none of them names is one's own.
KNOWN = {name: {value for one in FINDINGS.values() for value in one.shows.get(name, ())} for name in RUN_COLUMNS}
KNOWN["encoder"] |= {"bilstm", "average", "conv", "transformer", "flan-noenc", "han-noenc"}
KNOWN["variant"] |= {"base", "frozen", "concat", "residual", "adversary", "uniform", "tying_with_learned_embeddings"}
KNOWN["attention"] |= {"dot"}


def compute(notebook: str, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Every effect that a notebook's tables have: the columns EFFECT.

    value and chance are of one run; se is the standard error over texts of the mean over all these runs (of its
    distance from chance, where the finding is about that), n the number of texts, left_out why the model is no
    evidence. `tables` has "measured", others that findings name, and "answers", all texts, where these are some.
    """
    of_notebook = [one for one in FINDINGS.values() if one.notebook == notebook]
    rows = [row for finding in of_notebook for row in finding_effects(finding, tables)]
    return pd.DataFrame(rows, columns=EFFECT)


def finding_effects(finding: Finding, tables: Mapping[str, pd.DataFrame]) -> Iterator[dict]:
    """The rows of one finding."""
    kind = next(kind for kind in KINDS if kind in finding.effect)
    for model, groups, effect in KINDS[kind](finding, tables):
        chance, answers = model.get("chance", {}), []
        for rows in groups:  # where they are of some texts alone, all texts of that model
            all_texts = rows_where(tables["answers"], identity(rows)) if "answers" in tables and len(rows) else rows
            answers.append(all_texts if len(all_texts) else rows)
        about = {"finding": finding.id, "se": effect.se, "n": effect.n, "left_out": left_out(answers)}
        own = identity(groups[0])
        about |= dict.fromkeys(MODEL, "") | own | {"model": title_of(str(own.get("encoder", "")))} | model
        for seed, value in effect.by_run.items():
            if not np.isnan(value):
                yield about | {"seed": seed, "value": value, "chance": chance.get(seed, nan)}


def identity(rows: pd.DataFrame) -> dict[str, Any]:
    """The run columns that have one value in all rows."""
    there = [name for name in RUN_COLUMNS if name in rows and rows[name].nunique(dropna=False) == 1]
    return {name: rows[name].iloc[0] for name in there}


# --- kinds of effect: (finding, tables) -> (the model's name and columns, its rows, its `Effect`) of each model


def single_effects(finding: Finding, tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """The mean or median of a column over the texts of each model, beside what chance gives."""
    effect, chance = finding.effect, finding.chance
    column, middle = (effect["mean"], weighted_mean) if "mean" in effect else (effect["median"], weighted_median)
    for key, rows in select_models(finding, tables, column):
        if rows[column].isna().all():
            continue
        both = rows.dropna(subset=[column, chance]) if chance else rows
        by_chance = both.groupby("seed")[chance].mean().to_dict() if chance else {}
        if finding.beyond_chance:  # its error is that of the distance
            apart = declare(f"{column}_beyond_chance", unit_of(column), None, (-2, 2))
            measured = mean_effect(rows.assign(**{apart: rows[column] - rows[chance]}), apart, middle=middle)
            by_run = {seed: value + by_chance.get(seed, nan) for seed, value in measured.by_run.items()}
            measured = replace(measured, by_run=by_run)
        else:
            measured = mean_effect(rows, column, middle=middle)
        of = key.pop("of", "")
        model = model_name(value for name, value in key.items() if name != "dataset") + (of and f": {of}")
        yield {"model": model, "of": of, "chance": by_chance}, [rows], measured


def paired_effects(finding: Finding, tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """A column, or a score, of one group of runs less that of another, in pairs of one text and seed."""
    effect = finding.effect
    column, place = effect.get("paired"), 1 if effect.get("named") == "less" else 0
    firsts, seconds = alternatives(effect["more"]), alternatives(effect["less"])
    pairs = list(zip(firsts, seconds, strict=True) if len(firsts) == len(seconds) else product(firsts, seconds))
    for key, rows in select_models(finding, tables, column):
        for between in pairs:
            groups = [rows_where(rows, side) for side in between]
            measured = [group if column is None else group[group[column].notna()] for group in groups]
            if not all(map(len, measured)) or not set(groups[0]["seed"]) & set(groups[1]["seed"]):
                continue
            own, other = between[place], between[1 - place]
            parts = [value for name, value in own.items() if len(pairs) > 1 or value == other.get(name)]
            name = effect.get("label", "{}").format(model_name([*parts, *key.values()]))
            both = [groups[place], groups[1 - place]]
            yield {"model": name}, both, effects_between(rows, [column or effect["score"]], between)[0]


def alternatives(where: Mapping[str, Any]) -> list[dict]:
    """The columns that select a group of runs, once for each value of one that has several."""
    lists = (value if isinstance(value, list) else [value] for value in where.values())
    return [dict(zip(where, values, strict=True)) for values in product(*lists)]


def trend_effects(finding: Finding, tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """Kendall's tau-b between a dial and a column's mean over the texts, within each seed."""
    column, along = finding.effect["trend"], finding.effect["along"]
    for key, rows in select_models(finding, tables, column):
        points, taus = taus_by_seed(rows.groupby(["seed", along])[column].mean().unstack())
        by_run = dict(zip(points.index, map(float, taus), strict=True))
        effect = Effect(column, float(np.mean(taus)), by_run, 0.0, points.shape[1])
        yield {"model": model_name(key.values())}, [rows], effect


def correlation_effects(finding: Finding, tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """Spearman's correlation of two columns over the texts of each model."""
    for key, rows in select_models(finding, tables, finding.effect["correlation"][0]):
        yield {"model": model_name(key.values())}, [rows], rank_correlation(rows, finding.effect["correlation"])


def called_effects(finding: Finding, tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """What a function of the notebook's module computes."""
    called = getattr(import_module(f"papers.{finding.notebook}"), finding.effect["call"])
    yield from called(tables, **finding.effect.get("given", {}))


KINDS = {"mean": single_effects, "median": single_effects, "paired": paired_effects, "score": paired_effects}
KINDS |= {"trend": trend_effects, "correlation": correlation_effects, "call": called_effects}


def select_models(finding: Finding, tables: Mapping[str, pd.DataFrame], column: str | None) -> Iterator[tuple]:
    """`split_models` of the rows that a finding reads; none where the column was not measured."""
    table = tables.get(finding.effect.get("of", "measured"))
    if table is not None and len(table) and (column is None or column in table):
        yield from split_models(rows_where(table, finding.effect.get("where", {})), finding.effect.get("by", []))


def split_models(rows: pd.DataFrame, by: list[str]) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """({column: value}, rows) of each model: each group of the columns `by`, or all rows where there are none."""
    for key, group in rows.groupby(by, sort=False, dropna=False) if by else [((), rows)] * bool(len(rows)):
        yield dict(zip(by, key, strict=True)), group


def model_name(parts) -> str:
    """BiLSTM + additive: a model by its parts, without those that go without saying."""
    return " + ".join(title_of(str(part)) for part in parts if part not in ("", "softmax", "base", 1)) or "base"


def left_out(groups: list[pd.DataFrame]) -> str:
    """Why models are no evidence about attention: they did not learn the task, or it has no effect; else ""."""
    return "; ".join(dict.fromkeys(filter(None, [*map(not_learned, groups), *map(uniform, groups)])))


def not_learned(rows: pd.DataFrame) -> str:
    """Whether a model's accuracy is not above the largest class of test, with its whole 95% interval."""
    if not {"label", "prediction", "instance"} <= set(rows):
        return ""
    answers = rows.drop_duplicates(["instance", "seed"]) if "lambda" not in rows else rows
    right = (answers["label"] == answers["prediction"]).astype(float)
    of_texts, of_seeds = (right.groupby(answers[by]).mean() for by in ("instance", "seed"))
    low, high = interval(of_seeds.mean(), of_texts.sem(), of_seeds.to_numpy(), len(of_texts))
    largest = answers.drop_duplicates("instance")["label"].value_counts(normalize=True).max()
    seen = f"accuracy {of_seeds.mean():.2f} [{max(low, 0):.2f}, {min(high, 1):.2f}]"
    return "" if low > largest else f"{seen}, not above the largest class, {largest:.2f}"


def uniform(rows: pd.DataFrame) -> str:
    """Whether other weights change nothing: they are uniform (not by design), or all on any token moves p little."""
    least = rows.groupby("seed")["largest_change"].mean().min() if "largest_change" in rows else nan
    if least < 0.05:
        return f"all attention on any one token moves the prediction by {least:.3f}"
    column = "entropy_of_attention"
    if column not in rows or rows[column].isna().all() or "uniform" in set(rows["variant"]):
        return ""
    if "lambda" in rows and "trains" not in rows:  # along a dial: it must not be uniform at every point
        most = rows.groupby(["lambda", "seed"])[column].mean().groupby("lambda").max().min()
    else:
        most = rows.groupby("seed")[column].mean().max()
    return f"attention is uniform: {most:.1%} of the largest entropy" if most > UNIFORM else ""
