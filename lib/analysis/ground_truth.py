"""Explanations held against a reason that is known, and the papers' tests held against models that are known to lie."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import torch
from scipy.stats import rankdata
from torch import Tensor

from lib.analysis.correlation import taus as pair_taus
from lib.analysis.measuring import BATCH, declared_columns, forward, joined, measure
from lib.analysis.statistics import share_limits, t_interval, weighted_auc, weighted_f1
from lib.analysis.summaries import summarise
from lib.analysis.token_values import PREFIX, Rationales, marked_tokens, on_rationale
from lib.datasets.batches import Batch, batches
from lib.importance import MAX_TOKENS
from lib.interventions import normalised_scores
from lib.interventions.deletion import REMOVED, shapley
from lib.metrics.distances import probabilities
from lib.models import AttentionModel, ModelOutput, wired
from lib.models.interface import Ranking
from lib.progress import Progress
from lib.quantity import Quantity, declare, title_of
from lib.training import Trained

SCORES = {"top": "top-1", "recall": "recall at the reason's size", "rank": "mean rank"}
UNITS = {"top": "fraction", "recall": "fraction", "rank": "tokens"}
MOVED = 0.05  # of the probability: permuting changes the prediction (Jain & Wallace 2019, section 4.2.2)
DETECTORS = {  # of a model: the column of its texts, and its sign: which direction the paper takes for a liar
    "J: attention and gradient agree little": ("kendall_tau_attention_vs_gradient_times_input", -1),
    "J: permuting moves few texts": ("permutation_moves", -1),
    "J: the adversary gets far": ("adversary_share", 1),
    "W: uniform attention costs no F1": ("uniform", -1),
    "W: attention is no guide for an MLP": ("guided", -1),
    "S: the top item flips no decision": ("top_attention_flip", -1),
    "S: attention flips later than the gradient": ("flips_later", 1),
    "T: permuting costs no F1": ("permuted", -1),
    "M: attention and leave-one-out of states agree little": ("kendall_tau_attention_vs_leave_one_out_of_hidden", -1),
    "trivial: the attention is spread": ("entropy_of_attention", 1),
}
CHANGES = {  # what an explanation should sum to: its quantity, and the baseline
    "integrated_gradients": ("change_from_zero", "zero"),
    "integrated_gradients_unknown": ("change_from_unknown", "unknown"),
}
COMPLETE = 1e-3  # of the probability: an explanation that sums to the change is no further from it
INTERVAL = ["value", "low", "high"]
USED = 0.01  # of the probability: the Shapley value of a word that a wired model uses
KINDS = ("liar", "adversary", "base")
SAME_ACCURACY, LITTLE_MASS, SAME_EFFECT = 0.02, 0.01, 0.9


# --- explanations against the reason


def against_reason(instances: pd.DataFrame, measures: Mapping[str, str], rationales: Rationales) -> pd.DataFrame:
    """The rows with how well each measure's ranking of the tokens finds the rationale, and what chance gives exactly.

    Columns of `on_rationale`, and of SCORES: reason_top_<name>, is the top token one of the rationale; ..._recall_,
    how many of the R tokens of the rationale are among the top R; ..._rank_, their mean rank, from 1. Of equal values
    the expectation over all their orders. NaN for a text without a rationale, or of rationale alone.

    Args:
        instances, measures, rationales: as of `on_rationale`.
    """
    marked = marked_tokens(instances, rationales)
    found = {name: np.full((len(instances), len(SCORES)), np.nan) for name in ("chance", *measures)}
    for row, reason in enumerate(marked):
        if reason is not None:
            found["chance"][row] = reason.mean(), reason.mean(), (len(reason) + 1) / 2
            for name, column in measures.items():
                found[name][row] = hits(np.asarray(instances[column].iloc[row], dtype=np.float64), reason)
    columns = {
        declare(f"reason_{score}_{name}", UNITS[score], f"{title_of(name)}, {SCORES[score]}"): values[:, place]
        for name, values in found.items()
        for place, score in enumerate(SCORES)
    }
    return on_rationale(instances, measures, rationales).assign(**columns)


def hits(values: np.ndarray, reason: np.ndarray) -> tuple[float, float, float]:
    """The SCORES of one ranking: values (token,), the largest first; reason (token,) bool."""
    size, last = reason.sum(), np.sort(values)[-reason.sum()]
    above, tied = values > last, values == last
    recall = (reason[above].sum() + reason[tied].mean() * (size - above.sum())) / size
    return reason[values == values.max()].mean(), recall, rankdata(-values)[reason].mean()


def explained(
    trained: Sequence[Trained], quantities: Sequence[Quantity], more: Sequence[Quantity] = (), erased: bool = False
) -> pd.DataFrame:
    """Runs, each measured on the test texts of its own corpus that it answers right and whose reason is known.

    Args:
        quantities: explanations, a value for each token each. more: others.
        erased: whether each explanation's tokens are erased too; see `faithfulness`.
    """
    measures, frames = {column: column for column in columns_of(quantities)}, []
    with Progress("measuring explanations", total=len(trained)) as progress:
        for one in trained:
            rows = measure(one.model, answered_right(one), [*quantities, *more], one.run, progress)
            if erased and len(rows):
                along_each = [faithfulness(rows, list(measures))]
                rows = joined(rows, measure(one.model, answered_right(one), along_each, one.run))
            frames.append(against_reason(rows, measures, [text.rationale for text in one.corpus.test.instances]))
    if not frames:
        return pd.DataFrame(columns=["dataset", "encoder"])
    both = pd.concat(frames, ignore_index=True)
    return beyond_chance(both[both["reason_top_chance"].notna()], measures)


def answered_right(one: Trained) -> Iterator[Batch]:
    """Batches of the test texts whose reason is known, of at most MAX_TOKENS, and that the model answers right."""
    texts = one.corpus.test.instances
    known = torch.tensor([bool(text.rationale) and len(text.tokens) <= MAX_TOKENS for text in texts])
    for batch in one.batches("test", BATCH):
        some = batch.rows(known.to(batch.instance.device)[batch.instance])
        if len(some):
            right = probabilities(forward(one.model, some).logits).argmax(dim=-1) == some.label
            if right.any():
                yield some.rows(right)


def columns_of(quantities: Sequence[Quantity]) -> list[str]:
    """The columns of the quantities, those of several parts one for each."""
    return [column for one in quantities for column in declared_columns(one)]


def beyond_chance(instances: pd.DataFrame, measures: Iterable[str]) -> pd.DataFrame:
    """The rows with beyond_chance_<name>: average precision as a share of the way from chance (0) to 1."""
    chance, result = instances[f"{PREFIX}chance"], {}
    for name in measures:
        own = declare(f"beyond_chance_{name}", "fraction", f"{title_of(name)} / beyond chance", (-np.inf, 1.0))
        result[own] = (instances[PREFIX + name] - chance) / (1 - chance)
    return instances.assign(**result)


def with_completeness(instances: pd.DataFrame) -> pd.DataFrame:
    """The rows with complete_<name>: do the integrated gradients sum to the change to within COMPLETE? 1 or 0.

    Gradients with kinks along the line, of a ReLU or of sparse attention, need more steps than smooth ones.
    """
    columns = {}
    for name, (change, _) in CHANGES.items():
        own = declare(f"complete_{name}", "fraction", f"{title_of(name)}, complete")
        sums = instances[name].map(np.sum).astype(float)
        columns[own] = ((sums - instances[change]).abs() <= COMPLETE).astype(float)
    return instances.assign(**columns)


def along(turned: pd.DataFrame, dial: str, columns: Iterable[str]) -> pd.DataFrame:
    """`summarise` at each value of a dial, in the column of its name, of the runs whose dataset turns it."""
    values = turned["dataset"].str.extract(rf":{dial}=([\d.]+)$", expand=False)
    some = turned[values.notna()]
    return summarise(some, columns).assign(**{dial: lambda rows: rows["dataset"].str.rpartition("=")[2].astype(float)})


def explanation_matrix(parts: Mapping[str, pd.DataFrame], explanations: Sequence[str]) -> pd.DataFrame:
    """Explanations (rows) by what is known (columns): `beyond_chance` of each, with its 95% interval, as text.

    Args:
        parts: rows of `explained` of one configuration each; an empty one was not measured.
    """
    table = pd.DataFrame({"explanation": map(title_of, explanations)})
    for part, instances in parts.items():
        columns = [f"beyond_chance_{name}" for name in explanations]
        found = summarise(instances, columns) if len(instances) else pd.DataFrame(np.nan, range(len(columns)), INTERVAL)
        table[part] = in_cells(found, {part: INTERVAL})[part]
    return table


def explanation_table(summary: pd.DataFrame, score: str) -> pd.DataFrame:
    """Rows of `summarise` as explanations (rows) by models (columns): values with their 95% intervals as text.

    Args:
        score: what the quantities' names start with, such as "reason_top_".
    """
    some = summary[summary["quantity"].str.startswith(score)]
    if some.empty:
        return pd.DataFrame()
    varies = [name for name in ("dataset", "encoder", "attention", "projection", "variant") if some[name].nunique() > 1]
    models = some[varies or ["encoder"]].map(title_of).agg(" · ".join, axis=1)
    cells = in_cells(some, {"cell": INTERVAL})["cell"].to_list()
    names = some["quantity"].str.removeprefix(score).map(title_of)
    table = pd.DataFrame({"explanation": names, "model": models, "cell": cells})
    order = models.drop_duplicates()
    return table.pivot(index="explanation", columns="model", values="cell").loc[names.drop_duplicates(), order]


def faithfulness(measured: pd.DataFrame, columns: Sequence[str]) -> Quantity:
    """`normalised_scores` along explanations that were measured before, columns of values for each token."""
    of_text = measured.set_index("instance")

    def scores(model: AttentionModel, batch: Batch, output: ModelOutput) -> dict[str, Tensor]:
        rows = of_text.loc[batch.instance.tolist()]

        def ranking(name: str) -> Ranking:
            values = torch.from_numpy(np.concatenate(rows[name].to_list()).astype(np.float64)).to(output.mask.device)
            return lambda model, output: values.new_zeros(output.mask.shape).masked_scatter(output.mask, values)

        return normalised_scores({name: ranking(name) for name in columns})(model, batch, output)

    return replace(normalised_scores(dict.fromkeys(columns)), function=scores)


def plausible_and_faithful(instances: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """Does each explanation name what people marked, and what the model uses? Of rows of `explained` with `erased`.

    A row for each encoder, attention and explanation. plausible: recall at the number of marked words, there the token
    F1 with them (DeYoung et al. 2020); faithful: normalised comprehensiveness. Both with their 95% _low and _high.
    """
    axes, columns = {"plausible": "reason_recall_{}", "faithful": "normalised_{}_comprehensiveness"}, list(columns)
    if instances.empty:
        return pd.DataFrame()
    means = summarise(instances, [column.format(name) for column in axes.values() for name in columns])
    means, found = means.set_index(["quantity", "encoder", "attention"])[INTERVAL], []
    for name in columns:
        sides = [
            means.loc[column.format(name)].set_axis([side, f"{side}_low", f"{side}_high"], axis=1)
            for side, column in axes.items()
        ]
        found.append(pd.concat(sides, axis=1).reset_index().assign(explanation=name))
    return pd.concat(found, ignore_index=True)


def against_shapley(quantities: Sequence[Quantity]) -> pd.DataFrame:
    """Explanations of the models of lib.models.wired against exact Shapley values, as rows of `explained`.

    The reason of a text are the tokens whose Shapley value is above USED; the dataset is "wired: RULE, REMOVED".
    agreement_<name> is the rank correlation with the Shapley values, tau-b.
    """
    split, measures, frames = wired.texts(), {column: column for column in columns_of(quantities)}, []
    for kind, removed in product(wired.SIZES, REMOVED):
        rows = measure(wired.wired(kind), batches(split, len(split)), [*quantities, shapley(removed)])
        rows = rows.assign(encoder=kind, dataset=f"wired: {removed}", seed=0, layers=1)
        truth = rows[f"shapley_{removed}"].tolist()
        spans = [[(place, place + 1) for place in np.flatnonzero(of > USED)] for of in truth]
        rows = against_reason(rows, measures, spans)
        taus = {name: pair_taus(rows[name].tolist(), truth)[0] for name in measures}
        taus = {declare(f"agreement_{name}", "tau-b", title_of(name)): values for name, values in taus.items()}
        frames.append(beyond_chance(rows.assign(**taus), measures))
    both = pd.concat(frames, ignore_index=True)
    return both[both["reason_top_chance"].notna()]


# --- tests against liars


def with_test_values(instances: pd.DataFrame) -> pd.DataFrame:
    """The rows with what the tests of DETECTORS make of a text: permutation_moves, adversary_share, flips_later."""
    return instances.assign(
        permutation_moves=(instances["permutation"] > MOVED).astype(float),
        adversary_share=instances["adversary_exact_jsd"] / instances["largest_jsd"],
        flips_later=instances["removed_attention_fraction"] - instances["removed_gradient_fraction"],
    )


def suspicions(instances: pd.DataFrame, guided: Mapping[tuple, float]) -> pd.DataFrame:
    """How suspicious each test finds each model: a row for each (variant, seed), a column for each of DETECTORS.

    The mean over the texts, or what other attention costs in F1, signed so that a liar should have more.

    Args:
        instances: with `with_test_values`, `substituted` and `correlate`. guided: (variant, seed) -> F1 of its MLP.
    """
    rows = {}
    for key, texts in instances.groupby(["variant", "seed"], sort=False):
        costs = dict(zip(("uniform", "permuted"), costs_of(texts), strict=True)) | {"guided": guided.get(key, np.nan)}
        values = {
            name: costs[column] if column in costs else texts[column].mean() for name, (column, _) in DETECTORS.items()
        }
        rows[key] = {name: DETECTORS[name][1] * value for name, value in values.items()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["variant", "seed"])


def costs_of(texts: pd.DataFrame) -> tuple[float, float]:
    """What equal weights, and random orders of the own weights, cost in F1: the mean over the orders."""
    label, ones = texts["label"].to_numpy(), np.ones((1, len(texts)))
    orders = np.stack(texts["under_permuted"].to_list())
    own, equal = (weighted_f1(ones, label, texts[name].to_numpy())[0] for name in ("prediction", "under_uniform"))
    return own - equal, own - weighted_f1(ones, label, orders)[0].mean()


def counted_liars(instances: pd.DataFrame) -> pd.DataFrame:
    """Each model with its accuracy, mass on the reason and the reason's effect, and whether it counts as what it is.

    A liar counts with an accuracy at most SAME_ACCURACY below the honest models' mean, less than LITTLE_MASS on the
    reason, and a mean change of its prediction without the reason of at least SAME_EFFECT of theirs; an adversary with
    that little mass; an honest model always.
    """
    right = (instances["label"] == instances["prediction"]).astype(float)
    columns = ["accuracy", "attention_on_rationale", "without_reason", "entropy_of_attention"]
    table = instances.assign(accuracy=right).groupby(["variant", "seed"], sort=False)[columns].mean()
    honest, kind = table.loc["base"].mean(), table.index.get_level_values("variant")
    little = table["attention_on_rationale"] < LITTLE_MASS
    as_accurate = table["accuracy"] >= honest["accuracy"] - SAME_ACCURACY
    alike = as_accurate & (table["without_reason"] >= SAME_EFFECT * honest["without_reason"])
    return table.assign(counts=(kind == "base") | (little & (alike | (kind == "adversary"))))


def auroc(found: np.ndarray, honest: np.ndarray) -> tuple[float, float, float]:
    """How often a liar is more suspicious than an honest model, ties half, with DeLong's 95% interval (1988).

    The standard error is at least 1 / n, n of the fewer: one model more on the other side. DeLong's is 0 where all
    liars are above all honest models, which few models would be by chance too.
    """
    if not len(found) or not len(honest):
        return np.nan, np.nan, np.nan
    above = (found[:, None] > honest) + 0.5 * (found[:, None] == honest)
    value, parts = above.mean(), (above.mean(axis=1), above.mean(axis=0))
    error = np.sqrt(sum(part.var(ddof=1) / len(part) for part in parts if len(part) > 1))
    half = 1.96 * max(error, 1 / min(above.shape))
    return value, max(0.0, value - half), min(1.0, value + half)


def detection(table: pd.DataFrame, counts: pd.Series) -> pd.DataFrame:
    """Each test (rows): its AUROC for either kind of liar, the share found at its threshold, and of false alarms.

    The threshold is the largest suspicion of the first half of the honest models; false alarms are of the other half.

    Args:
        table: of `suspicions`. counts: of `counted_liars`.
    Returns:
        test, and for each kind in ("liar", "adversary", "base" for false alarms) found, low, high (exact one-sided
        limits), n; auroc, auroc_low, auroc_high for "liar" and "adversary".
    """
    rows = []
    for test in table:
        groups = {
            kind: table.loc[counts & (table.index.get_level_values("variant") == kind), test].dropna().to_numpy()
            for kind in KINDS
        }
        calibrating, others = np.array_split(groups["base"], 2)
        threshold = calibrating.max(initial=-np.inf)
        row = {"test": test}
        for kind, values in (groups | {"base": others}).items():
            found = int((values > threshold).sum())
            limits = share_limits(found, len(values)) if len(values) else (np.nan, np.nan)
            row[f"{kind}_found"] = found / len(values) if len(values) else np.nan
            row |= {f"{kind}_low": limits[0], f"{kind}_high": limits[1], f"{kind}_n": len(values)}
            if kind != "base":
                area, low, high = auroc(values, groups["base"])
                row |= {f"{kind}_auroc": area, f"{kind}_auroc_low": low, f"{kind}_auroc_high": high}
        rows.append(row)
    return pd.DataFrame(rows)


def test_matrix(caught: pd.DataFrame, areas: bool = False) -> pd.DataFrame:
    """Rows of `detection` to read: shares with their exact limits, or AUROCs; and of how many models."""
    if caught.empty:
        return caught
    shares = {"liars found": "liar", "adversaries found": "adversary", "false alarms": "base"}
    parts = {title: [f"{kind}_{end}" for end in ("found", "low", "high")] for title, kind in shares.items()}
    if areas:
        parts = {f"AUROC, {kind}": [f"{kind}_auroc{end}" for end in ("", "_low", "_high")] for kind in KINDS[:2]}
    numbers = {"liars": "liar_n", "adversaries": "adversary_n", "other honest": "base_n"}
    counts = pd.DataFrame({title: caught[name].astype(int) for title, name in numbers.items()})
    return pd.concat([caught[["test"]], in_cells(caught, parts), counts], axis=1)


def per_text(instances: pd.DataFrame, counts: pd.Series) -> pd.DataFrame:
    """Of each test that gives a number per text: the AUROC over the texts of a liar and of an honest model.

    The mean over pairs of models, with Student's 95% interval over the pairs.
    """
    models = dict(list(instances.groupby(["variant", "seed"], sort=False)))
    keys = {kind: [key for key in models if key[0] == kind and counts[key]] for kind in ("liar", "base")}
    rows = []
    for test, (column, sign) in DETECTORS.items():
        if column not in instances:
            continue
        areas = []
        for liar, honest in zip(*keys.values(), strict=False):
            values = [sign * models[key][column].dropna().to_numpy(float) for key in (liar, honest)]
            label = np.repeat([1, 0], [len(of) for of in values])
            areas.append(weighted_auc(np.ones((1, len(label))), label, np.concatenate(values))[0])
        areas = np.array(areas)
        low, high = t_interval(areas)
        mean = areas.mean() if len(areas) else np.nan
        rows.append({"test": test, "AUROC over texts": mean, "low": low, "high": high})
    return pd.DataFrame(rows)


def in_cells(frame: pd.DataFrame, parts: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Columns of values with their intervals as text: {"AUROC": ("auroc", "auroc_low", "auroc_high")}."""
    values = {title: frame[list(names)].to_numpy(float) for title, names in parts.items()}
    return pd.DataFrame(
        {
            title: ["–" if np.isnan(row[0]) else "{:.2f} ({:.2f} to {:.2f})".format(*row) for row in rows]
            for title, rows in values.items()
        }
    )
