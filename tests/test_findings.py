"""Findings as data: each is sound, computed as by hand, and judged as its own interval says; controls find nothing."""

import re
import tomllib
from collections.abc import Sequence
from html import unescape
from importlib import import_module
from itertools import product
from math import log, nan

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import f1_score

from lib.analysis.summaries import rows_where
from lib.analysis.word_states import NAME, SAMPLES
from lib.datasets import spec
from lib.models import ATTENTIONS, ENCODERS, HIERARCHICAL
from lib.quantity import declare, tau_name, title_of
from lib.training.runs import REGULARIZED
from papers import PAPERS, effects, ground_truth, published, regularization, show, sparsity
from papers.effects import EFFECT, FINDINGS, MODEL, SOURCE, Finding, compute, finding_effects, left_out
from papers.judge import FOUND, NO, NONE, OPEN, YES, judge

PLACE = {"dataset": "sst", "encoder": "bilstm", "attention": "additive", "projection": "softmax", "variant": "base"}
ANSWERS = ("jsd", "jsd_of_seeds", "removed_items", "removed_attention_count", "removed_gradient_count")
PARTS = {"encoder": {*ENCODERS, *HIERARCHICAL}, "projection": {"softmax", "sparsemax", "sparsegen"}}
EXPLAINED = [name for one in ground_truth.explanations(ground_truth.GroundTruthSettings()) for name in one.columns]
PARTS |= {"attention": {*ATTENTIONS}, "variant": {*REGULARIZED}, "of": {title_of(name) for name in EXPLAINED}}
TEXTS, J1 = 120, tau_name(("attention", "gradient_times_input"))
COLUMNS = ["finding", "dataset", "model", "effect", "low", "high", "chance", "runs", "n", "word", "left_out"]


def measured_columns() -> dict[str, str]:
    """The unit of each column that findings name, and of those that their functions read."""
    found = dict.fromkeys(("gap_to_leave_one_out", "gap_to_norm"), "tau-b")
    for one in FINDINGS.values():
        kinds = {"mean", "median", "paired", "trend"} & set(one.effect)
        columns = [*(one.effect[kind] for kind in kinds), *([one.chance] if one.chance else [])]
        found |= dict.fromkeys(columns, one.unit if "trend" not in one.effect else "")
    return found


for name, unit in measured_columns().items():  # as when they are measured
    declare(name, unit or ("tau-b" if name.startswith("kendall") else "fraction"))


def effect_rows(name: str, values: Sequence[float], chance=nan, se=0.001, n=400, **more) -> pd.DataFrame:
    """What `papers.effects.compute` gives for one finding of one model, a run for each value."""
    row = dict.fromkeys(EFFECT, "") | {"finding": name, "model": "BiLSTM + additive", "layers": "1"} | PLACE
    rows = pd.DataFrame([row | {"se": se, "n": n} | more] * len(values), columns=EFFECT)
    return rows.assign(seed=range(len(values)), value=values, chance=chance)


def texts(random: np.random.Generator, seeds=3, count=TEXTS, right=0.9, **columns) -> pd.DataFrame:
    """Measured texts of one model; a number of a column is its mean, a function of the generator gives its values."""
    frames = []
    for seed in range(seeds):
        frame = pd.DataFrame({"instance": range(count), "seed": seed, **PLACE, "layers": 1, "left_out": [()] * count})
        frame["label"] = frame["instance"] % 2
        frame["prediction"] = np.where(random.random(count) < right, frame["label"], 1 - frame["label"])
        frame["probability"] = 0.1 + 0.8 * frame["prediction"]
        for column, given in columns.items():
            noise = random.normal(0, 0.05, count) + random.normal(0, 0.01)
            frame[column] = given(random) if callable(given) else given + noise if isinstance(given, float) else given
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def in_orders(share: float):
    """Predictions of each text under three random orders, of which `share` are the label of `texts`."""
    label = np.arange(TEXTS)[:, None] % 2
    return lambda random: list(np.where(random.random((TEXTS, 3)) < share, label, 1 - label))


def of(name: str, **tables: pd.DataFrame) -> pd.DataFrame:
    """The effects of one finding."""
    return pd.DataFrame(finding_effects(FINDINGS[name], tables), columns=EFFECT)


def same(found: pd.DataFrame, wanted: pd.Series, column="value") -> bool:
    """Whether the effects are what is wanted of each seed."""
    return found.set_index("seed")[column].to_dict() == pytest.approx(wanted.to_dict())


def printed_rows(finding: Finding, dataset: str) -> list[list[int]]:
    """Of each model that a finding is about, how many published rows each side of its printed effect selects."""
    given, theirs = finding.printed, published.table(PAPERS[finding.notebook].key, dataset)
    sides, match = [{"quantity": given["quantity"]} | given.get("where", {})], given.get("match", ())
    if {"less", "less_where"} & set(given):
        sides.append({"quantity": given.get("less", given["quantity"])} | given.get("less_where", {}))
    models = [dict(zip(match, values, strict=True)) for values in product(*(finding.shows[name] for name in match))]
    return [[len(rows_where(theirs, model | side)) for side in sides] for model in models]


def test_ids_are_unique_and_every_notebook_has_findings():
    by_notebook = tomllib.loads(SOURCE.read_text(encoding="utf-8"))
    names = [name for entries in by_notebook.values() for name in entries if name != "default"]
    assert set(by_notebook) == set(PAPERS) and sorted(names) == sorted(FINDINGS)


@pytest.mark.parametrize("finding", FINDINGS.values(), ids=list(FINDINGS))
def test_a_finding_is_sound(finding):
    assert all(one.strip() and not one.endswith(".") for one in (finding.sentence, finding.source, finding.quantity))
    assert finding.unit in ("tau-b", "rho", "nats", "fraction", "F1", "times")
    (kind,) = set(effects.KINDS) & set(finding.effect)
    if kind == "call":
        assert callable(getattr(import_module(f"papers.{finding.notebook}"), finding.effect["call"]))
    assert set(finding.effect.get("by", ())) <= {*MODEL, "guide"}
    assert finding.predicts in ("above", "below", "within", "level")
    assert bool(finding.d) or (finding.predicts != "within" and not finding.within_on)
    assert finding.predicts != "level" or not finding.threshold
    assert not finding.beyond_chance or (finding.chance and kind in ("mean", "median"))
    assert finding.unit != "times" or finding.threshold > 0
    assert set(finding.within_on) <= set(finding.datasets) and all(spec(name) for name in finding.datasets)
    assert all(set(names) <= PARTS[column] for column, names in finding.shows.items())
    if finding.printed:
        found = [sides for dataset in finding.datasets for sides in printed_rows(finding, dataset)]
        assert any(all(sides) for sides in found), "no dataset has what it says is printed"
        assert max(max(sides) for sides in found) == 1, "a printed effect is a mean of several values"


def cases(finding: Finding, dataset: str) -> list[tuple[str, float, float]]:
    """(word, middle, half-width) of effects, less what chance gives, by what the finding predicts."""
    d, predicts = finding.d or 0.05, "within" if dataset in finding.within_on else finding.predicts
    if predicts == "level":
        return [("", 0.3, 0.05)]
    if predicts == "within":
        one_side = [(YES, d / 2, d / 3), (NO, 2 * d, d / 3), (OPEN, d, d / 3)]
        return [*one_side, *((word, -middle, half) for word, middle, half in one_side), (OPEN, 0, 2 * d)]
    at = 0.0 if finding.beyond_chance else log(finding.threshold) if finding.unit == "times" else finding.threshold
    side = 1 if predicts == "above" else -1
    found = [(YES, at + side * 2 * d, d), (YES, at + side * d / 2, d / 3), (NO, at - side * d / 2, d / 3)]
    found += [(OPEN, at + d / 2, d), (OPEN, at, 2 * d)]
    return [*found, *([(OPEN, at, d / 100)] if at or not finding.d else [(NONE, 0, 0.9 * d), (NONE, d / 4, d / 2)])]


def made_up(runs: int, n=400) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All cases of all findings as effects of three runs or of one, and what `judge` must find.

    The interval of three is of runs to .8 and of texts to .6, so that its half-width is the root of their squares.
    """
    rows, wanted = [], []
    for finding in FINDINGS.values():
        datasets = (*finding.within_on[:1], "planted")
        for dataset, (word, middle, half) in ((name, one) for name in datasets for one in cases(finding, name)):
            spread = 0.8 * half * np.sqrt(3) / stats.t.ppf(0.975, 2)
            values, se = (np.array([-spread, 0, spread]), 0.6 * half) if runs == 3 else (np.zeros(1), half)
            chances = np.array([0.3, 0.35, 0.31])[:runs]
            centre, model = chances.mean() if finding.beyond_chance else 0.0, f"{word} {middle} {half}"
            values = middle + values + (chances if finding.beyond_chance else 0)
            se = se / stats.t.ppf(0.975, n - 1)
            rows.append(effect_rows(finding.id, values, chances, se, n, model=model, dataset=dataset))
            ends = np.array([middle, middle - half, middle + half]) + centre
            ends = np.exp(ends) if finding.unit == "times" else np.clip(ends, *finding.bounds)
            if "trend" in finding.effect and runs == 1:  # its error over texts is not known
                ends, word = np.array([ends[0], np.nan, np.nan]), OPEN
            wanted.append((finding.id, dataset, model, *ends, chances.mean(), runs, n, word, ""))
    return pd.concat(rows), pd.DataFrame(wanted, columns=COLUMNS)


@pytest.mark.parametrize(("runs", "these_models"), [(3, False), (1, True)])
def test_each_finding_is_judged_by_where_its_interval_lies(runs, these_models):
    rows, wanted = made_up(runs)
    assert set(wanted["word"]) == {YES, NO, NONE, OPEN, ""} and set(wanted["finding"]) == set(FINDINGS)
    shuffled = rows.sample(frac=1, random_state=0)  # whatever their order: as in the file
    found = judge(pd.concat([shuffled, effect_rows("no finding", [1.0])]), these_models)
    assert list(dict.fromkeys(found["finding"])) == list(FINDINGS)
    pair = [one.sort_values(COLUMNS[:3], ignore_index=True)[COLUMNS] for one in (found, wanted)]
    pd.testing.assert_frame_equal(*pair, check_dtype=False)


def test_fewer_than_three_runs_have_no_interval_and_cannot_tell():
    rows, _ = made_up(3)
    found = judge(rows[rows["seed"] < 2])
    levels = np.array([FINDINGS[name].predicts == "level" for name in found["finding"]])
    assert found[["low", "high"]].isna().all(axis=None) and found["effect"].notna().all()
    assert found["runs"].eq(2).all() and found["word"].eq(np.where(levels, "", OPEN)).all()


def test_what_other_word_vectors_give_is_a_hollow_point_of_the_same_row_and_no_further_run():
    a, b = {"vectors": "a.npz", "second": False}, {"vectors": "b.f16.npz", "second": True}
    parts = [effect_rows("J2", [0.2, 0.2, 0.2]).assign(**a), effect_rows("J2", [0.1, 0.4]).assign(**b)]
    parts += [effect_rows("J2", [0.5], model="two").assign(**a)]
    parts += [effect_rows("J2", [0.4], model="two", left_out="uniform").assign(**b)]
    found = judge(pd.concat(parts)).set_index("model")
    one, two = found.loc["BiLSTM + additive"], found.loc["two"]
    assert [*one[["runs", "word", "second_runs", "second_word"]], two["runs"]] == [3, YES, 2, OPEN, 1]
    np.testing.assert_allclose([one["effect"], one["second_effect"], two["second_effect"]], [0.2, 0.25, nan])
    chart = show.forest(found.reset_index()).to_dict()
    layers = (layer for panel in chart["concat"] for layer in panel["layer"] if not layer["mark"].get("filled"))
    hollow = [layer["encoding"]["x"]["field"] for layer in layers]
    assert "second_effect" in hollow and "effect" not in hollow
    assert "Hollow: from the second word vectors of docs/data.md." in chart["title"]["subtitle"]
    alone = show.forest(judge(effect_rows("J2", [0.2] * 6).assign(model=["L: a", "L: b"] * 3))).to_json(indent=None)
    assert not any(words in alone for words in ("Hollow", '"field": "second_effect"', "NaN")) and '["a", "b"]' in alone
    drawn = [show.forest(judge(effect_rows("W1", [0.0] * 3, dataset=of))).to_json() for of in ("agnews", "sst")]
    assert ['"at": -0.01' in one for one in drawn] == [True, False]  # a band where the paper finds none


def test_a_model_that_is_left_out_has_its_reasons_and_no_word():
    rows = pd.concat([effect_rows("J2", [0.5, 0.5, 0.5], left_out=reason) for reason in ("a: .98", "b", "a: .97")])
    (found,) = judge(rows.assign(model="one")).to_dict("records")
    assert (found["word"], found["left_out"], found["effect"]) == ("", "a: .97; b", 0.5)
    (found,) = judge(effect_rows("J2", [0.5, 0.5, 0.5])).to_dict("records")
    assert found["word"] == YES and list(found) == FOUND


def test_a_mean_is_that_of_each_runs_texts_with_what_chance_gives_beside_it_and_a_median_too():
    random, gap, middle = np.random.default_rng(0), "gap_to_gradient", "permutation_of_uneven"
    given = {gap: 0.2, J1: 0.3, "agreement_by_chance": 0.1, middle: lambda one: one.exponential(1, TEXTS)}
    one = texts(random, **given)
    other = texts(random, encoder="average", **{gap: 0.1, J1: 0.6, "agreement_by_chance": 0.5})
    one.loc[one["instance"].eq(7), [gap, J1]] = nan  # undefined in one text
    found, means = of("J2", measured=pd.concat([one, other])), one.groupby("seed")[gap].mean()
    assert same(found[found["encoder"] == "bilstm"], means)
    assert dict(zip(found["model"], found["n"], strict=True)) == {"BiLSTM + additive": 119, "average + additive": 120}
    assert found["chance"].isna().all() and found["left_out"].eq("").all() and found["layers"].eq(1).all()
    of_texts = one.groupby("instance")[gap].mean().sem()
    assert found["se"].iloc[0] == pytest.approx(of_texts, rel=0.1), "of the mean over runs"
    assert same(of("J1", measured=one), one.dropna().groupby("seed")["agreement_by_chance"].mean(), "chance")
    assert same(of("J5", measured=one), one.groupby("seed")[middle].median())
    assert judge(found)["effect"].iloc[0] == pytest.approx(means.mean())
    assert of("J2", measured=one.drop(columns=gap)).empty and of("J2").empty


def test_beyond_chance_the_standard_error_is_of_the_distance():
    random, share, by_chance = np.random.default_rng(1), "permutation_share", "permutation_share_by_chance"
    rows = texts(random, **{share: 0.3}).assign(**{by_chance: lambda rows: rows[share] - 0.1})
    rows[by_chance] += random.normal(0, 0.001, len(rows))
    rows.loc[0, by_chance] = nan  # nor is the text's share compared
    means, found = rows.dropna().groupby("seed").mean(numeric_only=True), of("J5c", measured=rows)
    assert same(found, means[share]) and same(found, means[by_chance], "chance")
    assert found["se"].iloc[0] < 0.0001 < rows.groupby("instance")[share].mean().sem()
    (row,) = judge(found).to_dict("records")
    assert row["word"] == YES and row["effect"] - row["chance"] == pytest.approx(0.1, abs=0.001)


def test_a_paired_difference_is_of_the_runs_and_texts_that_both_have():
    random = np.random.default_rng(3)
    simple = texts(random, seeds=4, encoder="average", **{J1: 0.6})
    rows = pd.concat([simple, texts(random, seeds=3, **{J1: 0.2})[5:]], ignore_index=True)
    rows.loc[[50, 170, 290, 200], J1] = nan  # text 50 in every seed that is paired, text 80 in one
    both = rows[rows["encoder"] == "average"].merge(rows[rows["encoder"] == "bilstm"], on=["seed", "instance"])
    found = of("J3", measured=rows)
    assert same(found, (both[f"{J1}_x"] - both[f"{J1}_y"]).groupby(both["seed"]).mean()) and len(found) == 3
    assert found["n"].eq(TEXTS - 1).all(), "those that are a pair in some seed"
    assert set(found["model"]) == {"average + additive"} and set(found["encoder"]) == {"average"}
    uniform = rows.assign(entropy_of_attention=np.where(rows["encoder"].eq("bilstm"), 0.99, 0.5))
    assert of("J3", measured=uniform)["left_out"].str.startswith("attention is uniform").all(), "the one or the other"
    assert of("J3", measured=simple).empty and of("J3", measured=rows[rows["seed"].eq(3)]).empty


def scores_of(rows: pd.DataFrame, predicted: str = "prediction") -> pd.Series:
    """F1 of each run by scikit-learn."""
    return pd.Series({seed: f1_score(one["label"], one[predicted]) for seed, one in rows.groupby("seed")})


def drops_of(rows: pd.DataFrame) -> pd.Series:
    """The mean change of F1 by a random order."""
    orders = [rows.assign(one=[each[place] for each in rows["under_permuted"]]) for place in range(3)]
    return sum(scores_of(one, "one") for one in orders) / 3 - scores_of(rows)


def test_a_score_is_scikit_learns_of_one_group_less_the_others_and_a_drop_that_of_its_own_base():
    random = np.random.default_rng(4)
    shares = {"base": 0.85, "frozen": 0.8, "tying": 0.6, "concat": 0.7, "uniform": 0.5}
    runs = {name: texts(random, variant=name, right=0.5 + share / 2, under_permuted=in_orders(share), under_uniform=0)
            for name, share in shares.items()}  # fmt: skip
    found = of("W1", measured=pd.concat(runs.values()))
    assert same(found, scores_of(runs["base"]) - scores_of(runs["uniform"])) and set(found["model"]) == {"BiLSTM"}
    found = of("T1", measured=pd.concat(runs.values())).groupby("model")
    assert set(found.groups) == {"concat + additive", "tying + additive"}
    for name, control in (("tying", "frozen"), ("concat", "base")):
        one = found.get_group(f"{name} + additive")
        assert same(one, drops_of(runs[control]) - drops_of(runs[name])) and set(one["variant"]) == {name}


def test_a_trend_is_kendalls_tau_within_each_run():
    random, column, dial = np.random.default_rng(6), "entropy_of_gradient_of_input", (-10, 0, 5, 9)
    rows = pd.concat([texts(random, **{"lambda": at, column: 0.5 - 0.001 * at}) for at in dial], ignore_index=True)
    found, means = of("M3", sweep=rows), rows.groupby(["seed", "lambda"])[column].mean().unstack()
    assert same(found, means.agg(lambda row: stats.kendalltau(dial, row).statistic, axis=1)) and found["n"].eq(4).all()
    assert of("M3", sweep=rows[rows["lambda"] < 5]).empty, "two points are no trend"


def test_attention_is_held_against_the_gradient_that_is_best_in_each_run():
    rows = texts(np.random.default_rng(7), gap_to_leave_one_out=0.3, gap_to_norm=0.3)
    means = rows.groupby("seed")[["gap_to_leave_one_out", "gap_to_norm"]].mean()
    assert same(of("J7", measured=rows), -means.max(axis=1))
    assert means.idxmax(axis=1).nunique() == 2, "neither is the best in all"


def test_what_adversaries_lose_is_read_where_both_kinds_are_equally_far_away():
    random = np.random.default_rng(9)
    base = texts(random, **{"lambda": nan, "kind": "", "jsd": 0})
    dials = {"adversary_frozen": {0: (0.0, 0.9), 1: (0.5, 0.7), 30: (0.69, 0.5)}}
    dials |= {"adversary_unfrozen": {0: (0.1, 0.8), 1: (0.6, 0.7)}, "frozen_by_kl": {0: (0.0, 0.9), 1: (0.3, 0.6)}}
    runs = {(kind, at): texts(random, right=right, variant="adversary", kind=kind, **{"lambda": at}).assign(jsd=jsd)
            for kind, dial in dials.items() for at, (jsd, right) in dial.items()}  # fmt: skip
    rows = pd.concat([base, *runs.values()], ignore_index=True).assign(converged=True)
    right = {key: one["label"].eq(one["prediction"]).groupby(one["seed"]).mean() for key, one in runs.items()}
    near, away = right["adversary_frozen", 1], right["adversary_frozen", 30]
    found = of("M5", adversaries=rows)
    frozen = found[found["model"].eq("BiLSTM, adversary frozen")]
    assert same(frozen, right["adversary_frozen", 0] - near - (0.6 - 0.5) / (0.69 - 0.5) * (away - near))
    assert same(of("M5b", adversaries=rows), right["adversary_unfrozen", 0] - right["adversary_unfrozen", 1])
    assert len(found) == len(frozen), "one by KL that stayed near is no evidence"
    far = rows.mask(rows["seed"].eq(1) & rows["lambda"].gt(0), rows.assign(jsd=0.2))
    assert of("M5b", adversaries=far)["seed"].tolist() == [0, 2], "a seed in which one kind stayed near is left out"
    assert of("M5", adversaries=rows[rows["kind"].ne("adversary_unfrozen")]).empty


def test_the_trend_beyond_ties_is_of_the_share_that_ties_allow():
    names = [f"kendall_tau_attention_vs_{name}_of_input" for name in ("gradient", "leave_one_out")]
    both = [texts(np.random.default_rng(3), projection=f"sparsegen:{at}", tau_ceiling=most, **dict.fromkeys(names, tau))
            for at, most, tau in ((-1, 1.0, 0.5), (0, 0.6, 0.4), (0.5, 0.3, 0.3))]  # fmt: skip
    sweep = sparsity.along_lambda(pd.concat(both, ignore_index=True))
    assert sparsity.along_lambda(both[1]).empty, "one lambda is no sweep"
    drawn, beyond = (of(name, sweep=sweep)["value"].tolist() for name in ("M4", "M4c"))
    assert drawn == [-1] * 3 and beyond == [1] * 3, "as it is drawn it falls, beyond ties it rises"


def test_a_model_counts_if_its_accuracy_is_above_the_largest_class_with_its_whole_interval():
    frame = texts(np.random.default_rng(12), seeds=1, count=100)
    for largest in (50, 70):
        rows = frame.assign(label=np.where(np.arange(100) < largest, 1, 0))
        for right in range(largest, 100):
            share = right / 100
            low = stats.t.interval(0.95, 99, share, (share * (1 - share) / 99) ** 0.5)[0]
            answers = rows.assign(prediction=np.where(np.arange(100) < right, rows["label"], 1 - rows["label"]))
            assert (left_out([answers]) == "") == (low > largest / 100), (largest, right)
    assert left_out([frame.assign(label=0, prediction=0)])[9:] == "1.00 [1.00, 1.00], not above the largest class, 1.00"
    weak = frame.assign(prediction=np.where(np.arange(100) < 60, frame["label"], 1 - frame["label"]))
    runs = pd.concat([weak.assign(seed=seed) for seed in range(3)], ignore_index=True)
    runs.loc[runs["seed"].eq(1), "prediction"] = runs["label"]  # of three runs the spread counts too
    assert left_out([weak]) == "" and left_out([runs]).startswith("accuracy 0.73 [0.16, 1.00]")


def test_attention_has_no_effect_where_one_run_has_nearly_the_largest_entropy_or_no_weights_move_it():
    rows = texts(np.random.default_rng(13), entropy_of_attention=np.full(TEXTS, 0.5))
    uniform = rows.assign(entropy_of_attention=np.where(rows["seed"].eq(2), 0.98, 0.5))
    assert left_out([rows]) == "" and left_out([rows, uniform]) == "attention is uniform: 98.0% of the largest entropy"
    assert left_out([uniform.assign(variant="uniform")]) == "", "equal weights are meant to be"
    changes = rows["seed"].map({0: 0.5, 1: 0.049, 2: 0.06})
    assert left_out([rows.assign(largest_change=changes)]).endswith("moves the prediction by 0.049")
    assert left_out([rows.assign(largest_change=changes.clip(lower=0.051))]) == ""
    dial = pd.concat([uniform.assign(**{"lambda": 0.0}), rows.assign(**{"lambda": 1.0})])
    assert left_out([dial]) == "" and left_out([dial.assign(entropy_of_attention=0.98)]).startswith("attention is uni")


def test_ones_own_encoder_is_what_each_finding_is_about():
    own = PLACE | {"layers": "1", "of": ""}
    for encoder, about in (("bilstm", True), ("average", False), ("flan-noenc", False), ("MyModel", True)):
        assert FINDINGS["J6"].is_about(own | {"encoder": encoder}) == about
    assert not FINDINGS["T1"].is_about(own) and FINDINGS["T1"].is_about(own | {"variant": "tying"})


def chance_tables(notebook: str, random: np.random.Generator) -> dict[str, pd.DataFrame]:
    """What each finding of a notebook reads, of models whose answers have nothing to do with the labels."""
    columns = dict.fromkeys((*measured_columns(), *ANSWERS), lambda random: random.random(TEXTS))
    columns |= {"under_permuted": in_orders(0.5), "under_uniform": 0, "entropy_of_attention": 0.5, "of": "attention"}

    def rows(column: str, *names: str, **more) -> pd.DataFrame:
        models = [texts(random, right=0.5, **columns | more | {column: name}) for name in names]
        return pd.concat(models, ignore_index=True)

    if notebook == "adversary":
        guides = rows("variant", "base", "uniform", "guide_base", "guide_adversary", encoder="average", guide="bilstm")
        adversary = rows("variant", "adversary", trains="all", **{"lambda": 1})
        tables = {"measured": pd.concat([rows("variant", "base", "uniform"), guides]), "bases": rows("variant", "base")}
        return tables | {"guides": guides, "searches": tables["bases"], "uniform": tables["bases"], "chosen": adversary}
    if notebook == "regularization":
        measured = rows("variant", *REGULARIZED, probability=lambda random: random.random(TEXTS))
        known = measured.drop_duplicates(["variant", "seed"])[["variant", "seed"]]
        known = known.assign(quantity=NAME + SAMPLES[0], above_null=random.random(len(known)), texts=TEXTS)
        measured["attention_weights"] = [np.array([0.6, 0.3, 0.1])] * len(measured)
        information = known.assign(without=[*random.random((len(known), 10))])
        return regularization.tables(measured, information)
    if notebook == "sparsity":
        both = [rows("lambda", 0, 1, variant="adversary", kind=kind) for kind in (sparsity.FROZEN, sparsity.UNFROZEN)]
        both = [one.assign(jsd=0.5, converged=True) for one in both] + [rows("lambda", nan, kind="", converged=True)]
        tables = {"measured": rows("projection", "softmax", "sparsemax"), "adversaries": pd.concat(both)}
        return tables | {"sweep": rows("lambda", 0, 1, 2, projection="sparsegen")}
    if notebook == "ground_truth":
        answers = rows("dataset", "planted")
        right = answers[answers["label"] == answers["prediction"]]  # as they are measured
        return {"answers": answers, "suspicion": pd.DataFrame()} | dict.fromkeys(("reasons", "people", "copies"), right)
    encoders = ("flan-rnn", "flan-conv", "flan-noenc") if notebook == "erasure" else ("bilstm", "average")
    return {"measured": rows("encoder", *encoders)}


@pytest.mark.parametrize("notebook", PAPERS)
def test_a_model_that_learned_nothing_is_evidence_for_no_finding(notebook):
    found = compute(notebook, chance_tables(notebook, np.random.default_rng(15)))
    assert set(found["finding"]) == {name for name, one in FINDINGS.items() if one.notebook == notebook} - {"G2", "G2b"}
    assert set(found.loc[found["finding"].isin(["W3", "W3b", "W3c"]), "model"]) <= {"MLP guided by BiLSTM"}
    taken = found[~found["left_out"].str.contains("not above the largest class") & found["finding"].ne("T4")]
    assert taken.empty, taken[["finding", "model"]].drop_duplicates()
    assert found["left_out"].ne("").all()


def test_the_box_of_ones_own_answers_with_numbers_or_says_why_it_cannot_under_the_rule_of_the_docs(monkeypatch):
    effects = [effect_rows(name, [0.3], chance=0.1, model=model) for model in ("mine", "other") for name in show.BOX]
    rows = judge(pd.concat(effects, ignore_index=True), these_models=True).assign(low=0.2, high=0.4, word=YES)

    def top(rows: pd.DataFrame, **words) -> tuple[list[str], str]:
        shown = []
        monkeypatch.setattr(show, "display", lambda data, raw: shown.append(data["text/html"]))
        show.headline(rows.assign(word=rows["finding"].map(words).astype(object).fillna(rows["word"])), own=True)
        return re.findall("<b>(.*?)</b>", shown[0]), unescape(shown[0])

    reads, decides, other = "As where the model reads: ", "As why it decides: ", f"Show {show.LEAVE_ONE_OUT}."
    lines, html = top(rows)
    assert lines == ["Show attention.", f"{reads}yes.", f"{decides}yes."]
    assert ".30 [.20, .40] (chance .10), yes (" in html and "mine, runs: 1" in html and "other" not in html
    assert top(rows, J5c=NO, J7=OPEN)[0] == [other, f"{reads}no.", f"{decides}can&#x27;t tell."]
    assert top(rows, J7=OPEN)[0] == [f"Show {show.BESIDE}.", f"{reads}yes.", f"{decides}can&#x27;t tell."]
    assert top(rows, J6=OPEN, J7=NO)[0] == [other, f"{reads}can&#x27;t tell.", f"{decides}no."]
    assert top(rows.assign(left_out="x"))[0] == [other, f"{reads}– x.", f"{decides}– x."]
    assert top(rows[rows["finding"] != "J6"])[0][:2] == [other, f"{reads}– only 0 texts have a value; it needs 50."]
    lines, elsewhere = top(rows.assign(finding="S2"))
    assert lines == [] and "A report of correlation answers" in elsewhere and "other" in elsewhere
    docs = (SOURCE.parents[1] / "docs" / "own-model.md").read_text(encoding="utf-8")
    rule = re.findall(r"^\d\. (.*)$", docs.partition("\n## May its attention be shown?\n")[2], re.MULTILINE)
    assert all(f" {shown} |\n" in docs for shown in ("attention", show.BESIDE, show.LEAVE_ONE_OUT))
    assert rule[:5] == re.findall("<li>(.*?)</li>", html) and reads in f"{rule[0]} " and decides in rule[1]
