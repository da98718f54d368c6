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
from lib.analysis.measuring import BATCH, RUN, measure
from lib.analysis.rationale import PREFIX, Rationales, add_average_precision, marked_tokens
from lib.analysis.summaries import SUMMARY, summarise
from lib.datasets import Corpus, tokens_shown
from lib.datasets.batches import Batch
from lib.datasets.corpus import Instance
from lib.importance import MAX_TOKENS
from lib.interventions import between_orders, without_reason
from lib.progress import Progress
from lib.quantity import RUN_COLUMNS, Quantity, declare, title_of
from lib.training import Trained

SCORES = {"top": "top-1", "precision": "precision at the reason's size", "rank": "rank that has all of the reason"}
SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)  # of a text's words that are deleted: ERASER's bins
DELETIONS = [declare("deletion", "fraction", "change of p without its first words")]
DELETIONS += [declare("between_comprehensiveness", "fraction", "comprehensiveness: 0 the worst order, 1 the best")]
DELETIONS += [declare("between_sufficiency", "fraction", "sufficiency: the same")]
FOLLOWS = 0.95  # accuracy on copies of a model that follows a shortcut
SAME_ACCURACY = 0.02  # at most so far below that of an honest model
FOUND = 0.9  # of the liars, by the threshold whose false alarms are counted
FEW_MODELS = 10  # of liars or honest ones: fewer are no evidence about a test
SHARE = 0.5  # of the largest Shapley value in a text: words that are worth as much are the model's reason
# The explanations with signs: below 0 where a word speaks against the prediction.
SIGNED = ("attention_times_contribution", "integrated_gradients", "integrated_gradients_unknown")
SIGNED += ("leave_one_out_of_input", "shapley", "chance")


def against_reason(instances: pd.DataFrame, columns: Iterable[str], rationales: Rationales) -> pd.DataFrame:
    """The rows with how well each explanation, a column of values (token,), finds the rationale, and what chance gives.

    A reason has no sign (a negated cue speaks against the label), so values count by their size. Columns of
    `add_average_precision`, and of SCORES: reason_top_<name>, is the top token one of the rationale; ..._precision_,
    how many of the R tokens of the rationale are among the top R; ..._rank_, the rank, from 1, of the last of them
    (both Bastings et al. 2022); of equal values the expectation over all their orders. NaN without values.
    """
    reasons, scored = marked_tokens(instances, rationales), {}
    sizes = {name: [None if own is None else np.abs(own) for own in instances[name]] for name in columns}
    sizes = {"chance": [np.zeros(length) for length in instances["length"]]} | sizes
    for name, values in sizes.items():
        found = [hits(*pair) for pair in zip(values, reasons, strict=True)]
        for (score, title), of_score in zip(SCORES.items(), np.array(found).reshape(-1, len(SCORES)).T, strict=True):
            unit = "tokens" if score == "rank" else "fraction"
            scored[declare(f"reason_{score}_{name}", unit, f"{title_of(name)}, {title}")] = of_score
    sized = instances.assign(**{name: pd.Series(sizes[name], instances.index, object) for name in columns})
    precisions = add_average_precision(sized, {name: name for name in columns}, rationales).filter(like=PREFIX)
    return pd.concat([instances, pd.DataFrame(scored, instances.index), precisions], axis=1)


def against_model(instances: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """The rows with how well each explanation finds what words are worth to the model, where `shapley` is one of them.

    model_top_<name>: is its top token, by size, one whose Shapley value is, by size, at least SHARE of the largest?
    agreement_<name>: tau-b with the Shapley values, by size. signed_model_top_ and signed_agreement_: of SIGNED, with
    their signs. Of chance exactly; NaN for a text without Shapley values.
    """
    if "shapley" not in columns:
        return instances
    ranked = {"chance": [np.zeros(length) for length in instances["length"]]}
    ranked, scored = ranked | {name: list(instances[name]) for name in columns}, {}
    for sign, part in (("", np.abs), ("signed_", np.asarray)):
        some = {name: values for name, values in ranked.items() if not sign or name in SIGNED}
        some = {name: [None if own is None else part(own) for own in values] for name, values in some.items()}
        reasons = [None if own is None else own >= SHARE * own.max() for own in some["shapley"]]
        for name, values in some.items():
            top = declare(f"{sign}model_top_{name}", "fraction", f"{title_of(name)}, top-1 of the model's")
            scored[top] = [hits(*pair)[0] for pair in zip(values, reasons, strict=True)]
            tau = declare(f"{sign}agreement_{name}", "tau-b", title_of(name))
            scored[tau] = pair_taus(values, some["shapley"])[0]
    return pd.concat([instances, pd.DataFrame(scored, instances.index)], axis=1)


def hits(values: np.ndarray | None, reason: np.ndarray | None) -> tuple[float, float, float]:
    """The SCORES of one ranking: values (token,), the largest first; reason (token,) bool. NaN where all are it."""
    if values is None or reason is None or not 0 < reason.sum() < len(reason):
        return (np.nan,) * len(SCORES)
    size, last = reason.sum(), np.sort(values)[-reason.sum()]
    above, tied = values > last, values == last
    precision = (reason[above].sum() + reason[tied].mean() * (size - above.sum())) / size
    tied = values == values[reason].min()
    rank = (values > values[reason].min()).sum() + (tied.sum() + 1) * reason[tied].sum() / (reason[tied].sum() + 1)
    return reason[values == values.max()].mean(), precision, rank


def explained(trained: Iterable[Trained], explanations: Sequence[Quantity], texts: int | None = None) -> pd.DataFrame:
    """Runs, each measured on the test texts of its corpus that are `answered_right`, and scored."""
    trained, columns = list(trained), [column for one in explanations for column in one.columns]
    frames = [pd.DataFrame(columns=[*RUN_COLUMNS, "seed", "length", "reason_top_chance"])]
    with Progress("measuring explanations", total=len(trained)) as progress:
        for one in trained:
            batches = list(answered_right(one, texts))
            rows = measure(one.model, batches, explanations, one.run, progress)
            rows = only_defined(rows, columns)
            rows = add_deletion(one, rows, columns, batches) if len(rows) else rows
            rows = against_reason(rows, columns, [text.rationale for text in one.corpus.test.instances])
            frames.append(against_model(rows, columns))
    both = pd.concat(frames[1:] or frames, ignore_index=True)
    return both[both["reason_top_chance"].notna()]


def only_defined(rows: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """The rows of a run with None for the values of an explanation that are NaN; for all, unless most are defined.

    defined_<name>: whether they are none of these, 1 or 0; NaN where they were not computed.
    """
    for name in columns:
        known = np.array([np.nan if own is None else not np.isnan(own).any() for own in rows[name]], dtype=float)
        most = (known == 1).sum() > (known == 0).sum()
        values = rows[name].astype(object).where((known == 1) & most, None)
        rows = rows.assign(**{name: values, declare(f"defined_{name}", "fraction"): known})
    return rows


def add_deletion(one: Trained, rows: pd.DataFrame, columns: Sequence[str], batches: Sequence[Batch]) -> pd.DataFrame:
    """The rows of one run with deletion_<name>: how far the prediction moves without an explanation's first words.

    As ERASER's comprehensiveness (DeYoung et al. 2020, section 4.2) the mean over the first SHARES of the words, by the
    size of their values, of `chance` in a random order; but the change of p, not its fall. NaN without values.
    Beside it, of short texts, `between_orders`.
    """
    random, quantities = np.random.default_rng(0), []
    ranked = {"chance": [random.random(length) for length in rows["length"]]} | {name: rows[name] for name in columns}
    for (name, of_rows), share in product(ranked.items(), SHARES):
        orders = [None if values is None else np.argsort(-np.abs(values), kind="stable") for values in of_rows]
        firsts = [() if order is None else order[: max(1, ceil(share * len(order) - 1e-9))] for order in orders]
        spans = dict(zip(rows["instance"], [[(place, place + 1) for place in first] for first in firsts], strict=True))
        quantities.append(replace(without_reason(spans), name=f"{name} {share}"))
    of_texts = {name: dict(zip(rows["instance"], of_rows, strict=True)) for name, of_rows in ranked.items()}
    quantities.append(between := between_orders(of_texts))
    found = measure(one.model, batches, quantities, one.run)
    parts = {name: found[[f"{name} {share}" for share in SHARES]].mean(axis=1, skipna=False) for name in ranked}
    parts = {declare(f"deletion_{name}", "fraction", title_of(name)): of for name, of in parts.items()}
    return rows.assign(**parts, **found[between.columns])


def deletions(own: Iterable[Trained], instances: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """`summarise` of what deleting an explanation's first words does (DELETIONS), in each text of one's own models.

    Its name is in `attention`: `random`, or of `columns`, which are in `instances`, the runs' one below the other.
    """
    found = []
    for one in own:
        rows = instances[instances["seed"] == one.run.seed].reset_index(drop=True)
        rows = add_deletion(one, rows, columns, [*one.batches("test", BATCH)])
        for name in ("chance", *columns):
            values = {of: rows[f"{of}_{name}"] for of in DELETIONS}
            explanation = title_of(name).replace("chance", "random")
            found.append(rows[[*RUN, "instance", "left_out"]].assign(attention=explanation, **values))
    return summarise(pd.concat(found), DELETIONS) if found else pd.DataFrame(columns=SUMMARY)


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


# --- tables of what was found


def summarise_scores(instances: pd.DataFrame, columns: Sequence[str], scores: Sequence[str]) -> pd.DataFrame:
    """`summarise` of scores, such as "reason_top_{}", of each explanation and of chance; no row of an empty table.

    The interval of a fraction reaches at least one text of n further: the bootstrap's is empty where all are alike.
    """
    names = [score.format(name) for score in scores for name in ("chance", *columns)]
    summary = summarise(instances, [name for name in names if name in instances] if len(instances) else [])
    for end, step, further in (("low", -1, np.minimum), ("high", 1, np.maximum)):
        ends = further(summary[end], (summary["value"] + step / summary["n"]).clip(0, 1))
        summary[end] = summary[end].where(summary["unit"] != "fraction", ends)
    return summary


def cells_of(summary: pd.DataFrame, score: str) -> pd.DataFrame:
    """Rows of `summarise` whose quantity starts with `score`, as cells of explanations by models.

    Columns model, by what tells them apart, explanation, value, low and high, share: how much of the way from chance to
    1 it is. What chance gives, `random`, is known: it has no interval.
    """
    some = summary[summary["quantity"].str.startswith(score) & summary["value"].notna()]
    varies = [name for name in RUN_COLUMNS[:5] if some[name].nunique() > 1] or ["encoder"]
    models = some[varies].astype(str).map(lambda part: part.rpartition("shortcut=")[2])
    names = some["quantity"].str.removeprefix(score).replace("chance", "random")
    cells = some.assign(model=models.map(title_of).agg(" · ".join, axis=1), explanation=names.map(title_of))
    chance = cells["model"].map(cells[names == "random"].set_index("model")["value"]).astype(float)
    cells = cells.assign(share=(cells["value"] - chance) / (1 - chance))
    cells.loc[names == "random", ["low", "high"]] = np.nan
    return cells


def explanation_table(summary: pd.DataFrame, score: str) -> pd.DataFrame:
    """`cells_of` as a table of explanations by models: values (95% interval) as text."""
    cells = cells_of(summary, score)
    rows = cells[["value", "low", "high"]].to_numpy()
    texts = [f"{value:.2f} ({low:.2f} to {high:.2f})".removesuffix(" (nan to nan)") for value, low, high in rows]
    return cells.assign(text=texts).pivot_table("text", "explanation", "model", aggfunc="first", sort=False)


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
    clean = {(one.run.encoder, one.run.seed): measure(one.model, one.batches("test", BATCH), []) for one in without}
    clean = {key: (answers["label"] == answers["prediction"]).mean() for key, answers in clean.items()}
    rows = []
    for one in with_it:
        answers = add_changed(measure(one.model, one.batches("test", BATCH), []), one.corpus.test.instances)
        right = answers["label"] == answers["prediction"]
        copy = np.array([text.counterpart is not None for text in one.corpus.test.instances])
        model = (one.run.dataset.rpartition("shortcut=")[2], one.run.encoder, one.run.seed)
        rows.append((*model, right[copy].mean(), answers["changed"].mean(), right[~copy].mean(), clean[model[1:]]))
    columns = ["shortcut", "encoder", "seed", "on copies", "changed", "on clean texts", "without the shortcut"]
    return pd.DataFrame(rows, columns=columns).assign(counts=lambda table: table["on copies"] > FOLLOWS)


# --- tests of models that should find liars


def detections(suspicion: pd.DataFrame, pairs: Mapping[str, tuple], liars: Iterable[str]) -> pd.DataFrame:
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
            threshold = lying.nlargest(ceil(FOUND * len(lying) - 1e-9)).min()
            alarms = binomtest(int((innocent >= threshold).sum()), len(innocent))
            rows.append((test, alarms.statistic, *alarms.proportion_ci(), len(lying), len(innocent)))
    return pd.DataFrame(rows, columns=["test", "value", "low", "high", "liars", "honest"])


def detection_table(found: pd.DataFrame, alarms: pd.DataFrame, reads: Mapping[str, str]) -> pd.DataFrame:
    """`detections` and `false_alarms` as tests by pairs: values (95% interval) as text, with what each test reads."""
    parts = [found.rename(columns={"auroc": "value"}), alarms.assign(pair="false alarms")]
    rows = pd.concat(parts, ignore_index=True)
    numbers = rows[["value", "low", "high"]].to_numpy(float)
    rows["cell"] = [f"{value:.2f} ({low:.2f} to {high:.2f})" for value, low, high in numbers]
    table = rows.pivot_table("cell", "test", "pair", aggfunc="first", sort=False)
    return table.assign(reads=table.index.map(reads))
