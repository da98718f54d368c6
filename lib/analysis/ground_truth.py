"""Explanations held against a reason that is known, and tests of models against models that are known to lie."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import ceil

import numpy as np
import pandas as pd
import torch
from scipy.stats import binomtest

from lib.analysis.correlation import taus as pair_taus
from lib.analysis.measuring import BATCH, measure
from lib.analysis.rationale import PREFIX, Rationales, add_average_precision, marked_tokens
from lib.analysis.summaries import rows_where, summarise
from lib.datasets import Corpus, tokens_shown
from lib.datasets.batches import Batch
from lib.datasets.corpus import Instance
from lib.importance import MAX_TOKENS
from lib.interventions import without_reason
from lib.progress import Progress
from lib.quantity import RUN_COLUMNS, Quantity, declare, title_of
from lib.training import Trained
from lib.training.fitting import evaluate

SCORES = {"top": "top-1", "precision": "precision at the reason's size", "rank": "rank that has all of the reason"}
SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)  # of a text's words that are deleted: ERASER's bins
FOLLOWS = 0.95  # accuracy on copies of a model that follows a shortcut
SAME_ACCURACY = 0.02  # at most so far below that of an honest model
FOUND = 0.9  # of the liars, by the threshold whose false alarms are counted
FEW_MODELS = 10  # of liars or honest ones: fewer are no evidence about a test
USED = 0.01  # of the probability: the size of the Shapley value of a word that the model uses


def against_reason(instances: pd.DataFrame, columns: Iterable[str], rationales: Rationales) -> pd.DataFrame:
    """The rows with how well each explanation, a column of values (token,), finds the rationale, and what chance gives.

    Columns of `add_average_precision`, and of SCORES: reason_top_<name>, is the top token one of the rationale;
    ..._precision_, how many of the R tokens of the rationale are among the top R; ..._rank_, the rank, from 1, of the
    last of them (both Bastings et al. 2022); of equal values the expectation over all their orders.
    beyond_chance_<name>: average precision as a share of what lies between chance (0) and 1.
    """
    columns, reasons, scored = list(columns), marked_tokens(instances, rationales), {}
    for name in ("chance", *columns):
        values = np.full((len(instances), len(SCORES)), np.nan)
        for row, reason in enumerate(reasons):
            if reason is not None:
                own = np.zeros(len(reason)) if name == "chance" else instances[name].iloc[row]
                values[row] = hits(np.asarray(own, dtype=np.float64), reason)
        for (score, title), of_score in zip(SCORES.items(), values.T, strict=True):
            unit = "tokens" if score == "rank" else "fraction"
            scored[declare(f"reason_{score}_{name}", unit, f"{title_of(name)}, {title}")] = of_score
    instances = add_average_precision(instances, {name: name for name in columns}, rationales).assign(**scored)
    chance = instances[f"{PREFIX}chance"]
    for name in columns:
        own = declare(f"beyond_chance_{name}", "fraction", f"{title_of(name)} / beyond chance", (-np.inf, 1.0))
        instances[own] = (instances[PREFIX + name] - chance) / (1 - chance)
    return instances


def hits(values: np.ndarray, reason: np.ndarray) -> tuple[float, float, float]:
    """The SCORES of one ranking: values (token,), the largest first; reason (token,) bool."""
    size, last = reason.sum(), np.sort(values)[-reason.sum()]
    above, tied = values > last, values == last
    precision = (reason[above].sum() + reason[tied].mean() * (size - above.sum())) / size
    tied = values == values[reason].min()
    rank = (values > values[reason].min()).sum() + (tied.sum() + 1) * reason[tied].sum() / (reason[tied].sum() + 1)
    return reason[values == values.max()].mean(), precision, rank


def explained(
    trained: Iterable[Trained],
    quantities: Sequence[Quantity],
    more: Sequence[Quantity] = (),
    texts: int | None = None,
    deleting: bool = False,
) -> pd.DataFrame:
    """Runs, each measured on the test texts of its corpus that are `answered_right`, at most so many.

    `quantities` are explanations, a value for each token each; `more` are not. deleting: also `add_deletion`.
    """
    trained, columns = list(trained), [column for one in quantities for column in one.columns]
    frames = [pd.DataFrame(columns=["dataset", "encoder", "variant", "reason_top_chance"])]
    with Progress("measuring explanations", total=len(trained)) as progress:
        for one in trained:
            rows = measure(one.model, answered_right(one, texts), [*quantities, *more], one.run, progress)
            rows = add_deletion(one, rows, columns, texts) if deleting and len(rows) else rows
            frames.append(against_reason(rows, columns, [text.rationale for text in one.corpus.test.instances]))
    both = pd.concat(frames[1:] or frames, ignore_index=True)
    return both[both["reason_top_chance"].notna()]


def add_deletion(one: Trained, rows: pd.DataFrame, columns: Sequence[str], texts: int | None) -> pd.DataFrame:
    """The rows of one run with deletion_<name>: how far the prediction moves without an explanation's first words.

    As ERASER's comprehensiveness (DeYoung et al. 2020, section 4.2) the mean over the first SHARES of the words, by the
    size of their values, of `chance` in a random order; but the change of p, not its fall. NaN without values.
    """
    random, quantities = np.random.default_rng(0), []
    ranked = {"chance": [random.random(length) for length in rows["length"]]} | {name: rows[name] for name in columns}
    for (name, of_rows), share in product(ranked.items(), SHARES):
        orders = [None if values is None else np.argsort(-np.abs(values), kind="stable") for values in of_rows]
        firsts = [() if order is None else order[: max(1, ceil(share * len(order) - 1e-9))] for order in orders]
        spans = dict(zip(rows["instance"], [[(place, place + 1) for place in first] for first in firsts], strict=True))
        quantities.append(replace(without_reason(spans), name=f"{name} {share}"))
    found = measure(one.model, answered_right(one, texts), quantities, one.run)
    parts = {name: found[[f"{name} {share}" for share in SHARES]].mean(axis=1, skipna=False) for name in ranked}
    return rows.assign(**{declare(f"deletion_{name}", "fraction", title_of(name)): of for name, of in parts.items()})


def answered_right(one: Trained, most: int | None = None) -> Iterator[Batch]:
    """Batches of the test texts whose reason is known, of at most MAX_TOKENS, and that the model answers right.

    Of a text with a counterpart the reason is also checked in the model: it must predict another class for that. Where
    there are more than `most`, as many of them, evenly spread over the split.
    """
    texts = one.corpus.test.instances
    answers = add_changed(measure(one.model, one.batches("test", BATCH), []), texts)
    known = [bool(text.rationale) and len(text.tokens) <= MAX_TOKENS for text in texts]
    known &= (answers["changed"] == 1).to_numpy() | [text.counterpart is None for text in texts]
    places = np.flatnonzero(known & (answers["label"] == answers["prediction"]))
    places = places[np.linspace(0, len(places) - 1, min(most or len(places), len(places))).astype(int)]
    wanted = torch.from_numpy(np.isin(np.arange(len(texts)), places))
    for batch in one.batches("test", BATCH):
        if (some := wanted.to(batch.instance.device)[batch.instance]).any():
            yield batch.rows(some)


def add_changed(answers: pd.DataFrame, texts: Sequence[Instance]) -> pd.DataFrame:
    """The rows, each run's of all texts, with changed: does it predict another class for the counterpart? NaN: none."""
    places = {text.id: place for place, text in enumerate(texts)}
    others = np.array([places.get(text.counterpart, -1) for text in texts])
    runs = answers.groupby([*RUN_COLUMNS, "seed"], dropna=False)["prediction"]
    changed = (answers["prediction"] != runs.transform(lambda own: own.to_numpy()[others])).astype(float)
    return answers.assign(**{declare("changed", "fraction"): changed.where(others[answers["instance"]] >= 0)})


def against_shapley(instances: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """Explanations held against the exact Shapley values of the model's own words, by size: rows of `explained`.

    The reason of a text are the words whose value is larger than USED, for the model or against it; an explanation's
    values count by their size too. agreement_<name> is its rank correlation with the Shapley values, tau-b. Texts
    without Shapley values, the longer ones, are left out.
    """
    if "shapley" not in instances:
        return instances[:0]
    rows = instances[instances["shapley"].notna()].reset_index(drop=True)
    rows = rows.assign(**{name: rows[name].map(np.abs) for name in columns})
    worth = rows["shapley"].map(np.abs).tolist()
    spans = [[(place, place + 1) for place in np.flatnonzero(values > USED)] for values in worth]
    scored = against_reason(rows.assign(instance=rows.index), columns, spans).assign(instance=rows["instance"])
    for name in columns:
        scored[declare(f"agreement_{name}", "tau-b", title_of(name))] = pair_taus(rows[name].tolist(), worth)[0]
    return scored[scored["reason_top_chance"].notna()]


# --- tables of what was found


def summarise_scores(instances: pd.DataFrame, columns: Sequence[str], scores: Sequence[str]) -> pd.DataFrame:
    """`summarise` of scores, such as "reason_top_{}", of each explanation and of chance; no row of an empty table."""
    names = [score.format(name) for score in scores for name in ("chance", *columns)]
    return summarise(instances, [name for name in names if name in instances] if len(instances) else [])


def turned_to(rows: pd.DataFrame, dial: str) -> pd.DataFrame:
    """The rows of the datasets whose name ends with a dial and its value, "cues=4"."""
    return rows[rows["dataset"].astype(str).str.endswith(dial)]


def along(turned: pd.DataFrame, columns: Sequence[str]) -> dict[str, pd.DataFrame]:
    """For each dial of datasets such as "planted:cues=2": `summarise` of beyond_chance_<name> at its values.

    These are in the column of the dial's name.
    """
    dials = turned["dataset"].astype(str).str.extract(r":(\w+)=")[0]
    curves = {}
    for dial, rows in turned.groupby(dials, sort=False):
        summary = summarise_scores(rows, columns, ["beyond_chance_{}"])
        curves[dial] = summary.assign(**{dial: summary["dataset"].str.rpartition("=")[2].astype(float)})
    return curves


def explanation_table(summary: pd.DataFrame, score: str) -> pd.DataFrame:
    """Rows of `summarise` whose quantity starts with `score`, as explanations by models: values (95% interval) as text.

    Models are the column `model`, or named by what tells them apart.
    """
    some = summary[summary["quantity"].str.startswith(score) & summary["value"].notna()]
    if some.empty:
        return pd.DataFrame()
    names = ("dataset", "encoder", "attention", "projection", "variant")
    varies = ["model"] if "model" in some else [name for name in names if some[name].nunique() > 1] or ["encoder"]
    cells = [f"{value:.2f} ({low:.2f} to {high:.2f})" for value, low, high in some[["value", "low", "high"]].to_numpy()]
    explanations = some["quantity"].str.removeprefix(score).map(title_of)
    models = some[varies].map(title_of).agg(" · ".join, axis=1)
    table = pd.DataFrame({"explanation": explanations, "model": models, "cell": cells})
    return table.pivot_table("cell", "explanation", "model", aggfunc="first", sort=False)


def explanation_matrix(parts: Mapping[str, pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """Explanations (rows) by what is known (columns): beyond_chance of each in the plain BiLSTM, as text."""
    plain = {"encoder": "bilstm", "variant": "base", "projection": "softmax"}
    known = {name: rows_where(rows, plain) for name, rows in parts.items() if len(rows)}
    tables = [summarise_scores(rows, columns, ["beyond_chance_{}"]).assign(model=name) for name, rows in known.items()]
    return explanation_table(pd.concat(tables), "beyond_chance_") if tables else pd.DataFrame()


def one_text(measured: pd.DataFrame, columns: Sequence[str], corpus: Corpus, show_text: bool) -> pd.DataFrame:
    """Every explanation of the first text: a row for each token; none where no reason is known."""
    if measured.empty:
        return pd.DataFrame()
    row = measured.iloc[0]
    instance = corpus.test.instances[row["instance"]]
    reason = [any(start <= place < end for start, end in instance.rationale) for place in range(row["length"])]
    values = {"reason": np.where(reason, "yes", "")} | {title_of(name): row[name] for name in columns}
    return pd.DataFrame(values, index=tokens_shown(corpus, instance, show_text))


def follows_shortcut(with_it: Sequence[Trained], without: Sequence[Trained]) -> pd.DataFrame:
    """Each model's accuracy on copies with the shortcut and on clean texts, that of the model without, and `counts`.

    changed: the share of the copies whose prediction is another one when the shortcut is removed.
    """
    clean = {(one.run.encoder, one.run.seed): evaluate(one.model, one.batches("test"))["accuracy"] for one in without}
    rows = []
    for one in with_it:
        answers = add_changed(measure(one.model, one.batches("test", BATCH), []), one.corpus.test.instances)
        right = answers["label"] == answers["prediction"]
        copy = np.array([text.counterpart is not None for text in one.corpus.test.instances])
        model = (one.run.dataset, one.run.encoder, one.run.seed)
        rows.append((*model, right[copy].mean(), answers["changed"].mean(), right[~copy].mean(), clean[model[1:]]))
    columns = ["dataset", "encoder", "seed", "on copies", "changed", "on clean texts", "without the shortcut"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(counts=table["on copies"] > FOLLOWS)


# --- tests of models that should find liars


def detections(
    suspicion: pd.DataFrame, pairs: Mapping[str, tuple[Sequence[str], Sequence[str]]], liars: Iterable[str]
) -> pd.DataFrame:
    """How well each test tells liars from honest models: a row for each test and pair, and "worst", the worst liar's.

    auroc, how often a liar is more suspicious than an honest model, with its standard error and 95% interval, and how
    many there are of both; no row where there are fewer than FEW_MODELS.

    Args:
        suspicion: a row for each (kind, seed), a column for each test. pairs: name -> kinds of liars, of honest models.
        liars: the pairs of which the worst is taken.
    """
    rows, kinds = [], suspicion.index.get_level_values(0)
    for test, (pair, sides) in product(suspicion, pairs.items()):
        lying, honest = (suspicion.loc[kinds.isin(side), test].dropna().to_numpy() for side in sides)
        if min(len(lying), len(honest)) >= FEW_MODELS:
            value, error = auroc(lying, honest)
            low, high = max(0.0, value - 1.96 * error), min(1.0, value + 1.96 * error)
            rows.append((test, pair, value, low, high, error, len(lying), len(honest)))
    found = pd.DataFrame(rows, columns=["test", "pair", "auroc", "low", "high", "se", "liars", "honest"])
    worst = found[found["pair"].isin(list(liars))].sort_values("auroc", kind="stable").groupby("test").head(1)
    return pd.concat([found, worst.assign(pair="worst")], ignore_index=True)


def auroc(liars: np.ndarray, honest: np.ndarray) -> tuple[float, float]:
    """How often a liar is more suspicious than an honest model, ties half, and its standard error (DeLong 1988).

    The error is at least 1 / n, n of the fewer, over 1.96: DeLong's is 0 where all liars are above all honest models.
    """
    above = (liars[:, None] > honest) + 0.5 * (liars[:, None] == honest)
    sides = above.mean(axis=1), above.mean(axis=0)
    error = np.sqrt(sum(side.var(ddof=1) / len(side) for side in sides if len(side) > 1))
    return float(above.mean()), float(max(error, 1 / min(above.shape) / 1.96))


def false_alarms(suspicion: pd.DataFrame, liars: Iterable[str], honest: str) -> pd.DataFrame:
    """The share of the honest models of one kind that each test takes for liars, where it finds FOUND of the liars.

    A row for each test: value, with its exact 95% interval (Clopper & Pearson 1934), low and high; liars, honest.
    """
    kinds, rows = suspicion.index.get_level_values(0), []
    for test in suspicion:
        lying, innocent = (suspicion.loc[some, test].dropna() for some in (kinds.isin(list(liars)), kinds == honest))
        if min(len(lying), len(innocent)) >= FEW_MODELS:
            alarms = binomtest(int((innocent >= lying.quantile(1 - FOUND, "higher")).sum()), len(innocent))
            rows.append((test, alarms.statistic, *alarms.proportion_ci(), len(lying), len(innocent)))
    return pd.DataFrame(rows, columns=["test", "value", "low", "high", "liars", "honest"])


def detection_table(found: pd.DataFrame, alarms: pd.DataFrame, reads: Mapping[str, str]) -> pd.DataFrame:
    """`detections` and `false_alarms` as tests by pairs: values (95% interval) as text, with what each test reads."""
    parts = [found.rename(columns={"auroc": "value"}), alarms.assign(pair="false alarms")]
    rows = pd.concat(parts, ignore_index=True)
    rows["cell"] = [
        f"{value:.2f} ({low:.2f} to {high:.2f})" for value, low, high in rows[["value", "low", "high"]].to_numpy(float)
    ]
    table = rows.pivot_table("cell", "test", "pair", aggfunc="first", sort=False)
    return table.assign(reads=table.index.map(reads))
