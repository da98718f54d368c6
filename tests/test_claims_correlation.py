"""The claims of Jain & Wallace: known truths give each answer, and a model without skill supports none."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import planned
import pytest
import torch
from small import batch, model

import papers
from lib import charts, interventions
from lib.analysis import attention_weights, correlate, measure, violation_by_chance, with_entropies, witnesses
from lib.analysis.statistics import weighted_median
from lib.charts import curves
from lib.importance import (
    attention_times_contribution,
    attention_times_norm,
    gradient,
    gradient_times_input,
    gradient_times_input_definition,
    leave_one_out_with_sign,
    quantity,
)
from lib.quantity import tau_name
from lib.training import Run
from papers import correlation, published
from papers.claims import CONTRAST, UNIFORM
from papers.correlation_claims import (
    BY_NORM,
    CLAIMS,
    EACH_OTHER,
    GRADIENT,
    LEAVE_ONE_OUT,
    SINGLE,
    VIOLATION,
    evidence,
    with_gaps,
    with_shares,
    with_violation_gaps,
)

TEXTS, SEEDS = 200, 5
interventions.permutation_effect()  # declares its name, as do measured columns
PAIRS = (GRADIENT, LEAVE_ONE_OUT, EACH_OTHER, BY_NORM)
WEAKLY, BY_ANOTHER, SIMPLE_AGREES, SIMPLE, PERMUTED, MORE_MOVED, SIMPLE_MOVES, ADVERSARY, LESS_ROOM, *_ = CLAIMS
# Of each claim what makes it true, and its opposite: values of columns of a BiLSTM, in the middle of its texts
TRUTHS = {
    WEAKLY: ({tau_name(EACH_OTHER): 0.6}, {tau_name(EACH_OTHER): 0.1}),
    BY_ANOTHER: ({tau_name(BY_NORM): 0.6}, {tau_name(BY_NORM): 0.1}),
    SIMPLE_AGREES: ({tau_name(GRADIENT): 0.2}, {tau_name(GRADIENT): 0.4}),
    SIMPLE: ({"agreement_by_chance": 0.2}, {"agreement_by_chance": -0.2}),
    PERMUTED: ({"permutation": 0.01}, {"permutation": 0.2}),
    MORE_MOVED: ({"permutation_share_by_chance": 0.2}, {"permutation_share_by_chance": 0.6}),
    SIMPLE_MOVES: ({"permutation": 0.05}, {"permutation": 0.35}),
    ADVERSARY: ({"adversary_exact_jsd": 0.46}, {"adversary_exact_jsd": 0.3}),
    LESS_ROOM: ({"adversary_exact_jsd": 0.6}, {"adversary_exact_jsd": 0.3}),
    VIOLATION: ({"violation_attention": 0.1}, {"violation_attention": 0.6}),
}
USUAL = dict.fromkeys(map(tau_name, PAIRS), 0.3) | {
    **{"permutation": 0.2, "largest_change": 0.5, "entropy_of_attention": 0.8, "largest_jsd": 0.65},
    **{"adversary_exact_jsd": 0.45, "adversary_exact_by_chance": 0.45, "accuracy": 0.9},
    **{"permutation_share_by_chance": 0.4, "agreement_by_chance": 0.0},
    **{"violation_random": 0.4, "violation_attention": 0.3, "violation_attention_times_norm": 0.25},
    "violation_by_chance": 0.1,
}


def run_rows(values: dict, encoder: str, seed: int, attention="additive", spread=0.05, dataset="planted"):
    """Measured texts of one run, whose columns are spread about the values."""
    random = np.random.default_rng([seed, len(encoder), len(attention)])
    frame = pd.DataFrame({"instance": range(TEXTS), "seed": seed, "encoder": encoder, "attention": attention})
    frame = frame.assign(dataset=dataset, projection="softmax", variant="base", layers=1, length=10)
    frame["label"] = frame["instance"] % 2
    wrong = random.random(TEXTS) >= values["accuracy"]
    frame["prediction"], frame["left_out"] = np.where(wrong, 1 - frame["label"], frame["label"]), [()] * TEXTS
    for name, value in values.items():
        off = 0 if name.startswith(("entropy", "largest", "accuracy")) else random.normal(0, spread, TEXTS)
        frame[name] = value + off + (random.normal(0, spread / 10) if np.ndim(off) else 0)
    frame["violation_gap"] = frame["violation_random"] - frame["violation_attention"]
    frame["violation_beyond_chance"] = frame["violation_gap"] - frame["violation_by_chance"]
    return frame.drop(columns="accuracy")


def study(bilstm=(), average=(), conv=None, seeds=SEEDS, **options) -> pd.DataFrame:
    """Instances of a BiLSTM and of an average encoder, and of a convolution where given."""
    models = {"bilstm": USUAL | dict(bilstm), "average": USUAL | dict(average)}
    models |= {} if conv is None else {"conv": USUAL | dict(conv)}
    pairs = ((name, values, seed) for name, values in models.items() for seed in range(seeds))
    return pd.concat([run_rows(values, name, seed, **options) for name, values, seed in pairs], ignore_index=True)


def judged(instances: pd.DataFrame, these_models=False, dataset="planted") -> pd.DataFrame:
    """The verdicts on measured texts, by claim and model."""
    answers = instances[instances["seed"] == 0].drop_duplicates("instance").reset_index(drop=True)
    answers = answers.assign(prediction=answers["label"].where(answers["instance"] % 10 > 2, 1 - answers["label"]))
    known = witnesses(instances, answers, these_models)
    keys = instances[["encoder", "attention"]].drop_duplicates()
    shares = [keys.assign(quantity=tau_name(pair), significant=0.4, significant_null=0.05) for pair in PAIRS[:2]]
    rows = evidence(with_shares(with_gaps(instances)), known, pd.concat(shares), published.table("jain2019", dataset))
    return papers.verdicts(rows, CLAIMS, these_models).set_index(["short", "model"])


def of_bilstm(found: pd.DataFrame, short: str) -> pd.Series:
    return found.loc[short].loc["BiLSTM + additive" if short in SINGLE else "additive"]


@pytest.mark.parametrize("short", TRUTHS)
def test_a_claim_is_supported_where_it_is_true_and_contradicted_where_its_opposite_is(short):
    true, opposite = TRUTHS[short]
    assert of_bilstm(judged(study(true)), short)["verdict"] == "supported"
    assert of_bilstm(judged(study(opposite)), short)["verdict"] == "contradicted"


def test_an_effect_of_nothing_is_negligible_noise_is_open_and_one_run_decides_nothing():
    nothing = judged(study(spread=0.02))
    noisy = judged(study({"permutation": 0.05, "permutation_share_by_chance": 0.1}, seeds=3, spread=0.9))
    for short, claim in CLAIMS.items():
        assert claim.kind != "direction" or of_bilstm(nothing, short)["verdict"] == "negligible", short
        assert of_bilstm(noisy, short)["verdict"] == "open", short
    one = judged(study({name: value for true, _ in TRUTHS.values() for name, value in true.items()}, seeds=1))
    assert {(row["verdict"], row["reason"]) for _, row in one.iterrows()} == {
        ("open", "one run"),
        (CONTRAST, ""),
    }


def test_an_interval_ends_where_the_quantity_does():
    level = of_bilstm(judged(study({"permutation": 0.97}, seeds=3, spread=0.9)), PERMUTED)
    assert (level["low"] > 0.5) and level["high"] == 1
    tau = of_bilstm(judged(study({tau_name(EACH_OTHER): 1.3}, seeds=3, spread=0.01)), WEAKLY)
    assert tau["effect"] == pytest.approx(1, abs=0.02) and tau["high"] > 1, "a difference of two taus is at most 2"


def test_the_bound_of_a_small_change_is_shown_halved_and_doubled():
    row = of_bilstm(judged(study({"permutation": 0.04})), PERMUTED)
    assert (row["verdict"], row["halved"], row["doubled"]) == ("supported", "contradicted", "supported")


# --- controls


def test_a_model_of_shuffled_labels_supports_nothing():
    truths = {name: value for true, _ in TRUTHS.values() for name, value in true.items()}
    found = judged(study(truths | {"accuracy": 0.5}, {"accuracy": 0.5}))
    assert (
        set(found["verdict"]) == {"no verdict", CONTRAST}
        and found["reason"].str.contains("not above the largest class").all()
    )


def test_uniform_attention_is_no_witness_that_permuting_changes_little():
    harmless = {"permutation": 0.001}
    found = judged(study(harmless | {"entropy_of_attention": 0.99}))
    assert found.loc[found.index.get_level_values("model").str.contains("BiLSTM"), "verdict"].eq("no verdict").all()
    assert "the BiLSTM's attention is nearly uniform" in of_bilstm(found, PERMUTED)["reason"]
    some = study({"permutation": 0.2})
    even = (some["encoder"] == "bilstm") & (some["instance"] % 3 > 0)  # two thirds of the texts
    some.loc[even, ["permutation", "entropy_of_attention"]] = 0.001, 0.98
    row = of_bilstm(judged(some), PERMUTED)
    assert row["verdict"] == "contradicted" and "34% of the texts count" in row["evidence"]


def test_what_is_more_beyond_chance_but_less_of_what_chance_leaves_has_no_verdict():
    for tau, word in ((0.75, "no verdict"), (0.65, "supported")):  # .375 and .125 of what is left; the other has .3
        found = judged(study({tau_name(GRADIENT): tau, "agreement_by_chance": 0.6}))
        row = of_bilstm(found, SIMPLE)
        assert row["verdict"] == word and ("the other way round" in row["reason"]) == (word == "no verdict")


def test_tokens_that_are_all_read_alike_do_not_support_that_attention_is_less_needed_than_by_chance():
    values = {"permutation": 0.01, "largest_change": 0.02, "permutation_share_by_chance": 0.3}
    found = judged(study(values, spread=0.001))
    assert of_bilstm(found, PERMUTED)["verdict"] == "supported"
    assert of_bilstm(found, MORE_MOVED)["verdict"] == "supported"


def without_skill(seeds=4, texts=40, length=14) -> pd.DataFrame:
    """What is measured of untrained models, whose attention is far from uniform and whose logits are random."""
    measures = [attention_weights, interventions.permutation_effect(30), interventions.largest_change()]
    measures += [
        interventions.permutation_share_by_chance(30),
        interventions.agreement_by_chance(gradient_times_input_definition),
        violation_by_chance(),
    ]
    measures += [interventions.adversary(0.01), interventions.adversary_by_chance(0.01), interventions.largest_jsd()]
    measures += [quantity("gradient_times_input", gradient_times_input), quantity("gradient_of_input", gradient)]
    measures += [leave_one_out_with_sign, attention_times_norm, attention_times_contribution]
    frames = []
    for encoder in ("bilstm", "average"):
        for seed in range(seeds):
            tested = model(encoder, seed=seed)
            with torch.no_grad():
                tested.decoder.weight.mul_(8)
            given = batch((length,) * texts, seed=seed)
            frames.append(measure(tested, [given], measures, Run("planted", encoder, "additive", seed=seed)))
    measured = with_violation_gaps(pd.concat(frames, ignore_index=True))
    return with_entropies(correlate(measured, PAIRS), ["attention"])


def test_random_logits_support_neither_side_but_that_an_adversary_gets_as_far_as_by_chance():
    untrained = without_skill()
    assert set(judged(untrained)["verdict"]) == {"no verdict", CONTRAST}, "it has learned nothing"
    uneven = untrained["entropy_of_attention"].where(lambda entropy: entropy > UNIFORM, 0.5)  # enough to be judged
    found = judged(untrained.assign(prediction=untrained["label"], entropy_of_attention=uneven))
    assert of_bilstm(found, ADVERSARY)["verdict"] in ("supported", "open") and not CLAIMS[ADVERSARY].speaks
    assert abs(of_bilstm(found, ADVERSARY)["effect"]) < 0.03 < 0.5 < with_shares(untrained)["adversary_share"].mean()
    assert of_bilstm(found, LESS_ROOM)["verdict"] in ("negligible", "open")
    for short in (MORE_MOVED, SIMPLE, VIOLATION):
        row = of_bilstm(found, short)
        assert row["verdict"] in ("negligible", "open"), row["evidence"]
    assert of_bilstm(found, SIMPLE_AGREES)["verdict"] == "supported" and not CLAIMS[SIMPLE_AGREES].speaks
    simple = untrained[untrained["encoder"] == "average"]
    assert simple["agreement_by_chance"].mean() > 0.3, "and yet it agrees with the gradient"


# --- the norm of the word vectors


def test_the_norm_explains_a_value_where_shorter_vectors_bring_ours_to_it():
    names, ours = [tau_name(pair) for pair in PAIRS[:3]], {1.0: (0.3, 0.5, 0.1), 0.1: (0.9, 0.7, 0.1)}
    rows = [
        {"encoder": "conv", "attention": "dot", "quantity": name, "value": value, "vector_scale": norm}
        for norm, values in ours.items()
        for name, value in zip(names, values, strict=True)
    ]
    theirs = pd.DataFrame(rows[:3]).assign(value=[0.35, 0.73, 0.6], unit="tau-b")
    explained = papers.correlation.explained_by_norm(pd.DataFrame(rows), theirs)
    assert explained["norm"].tolist() == ["the same", "explains it", "does not explain it"]
    assert explained["ours at 0.1"].tolist() == [0.9, 0.7, 0.1]
    part = papers.correlation.explained_by_norm(pd.DataFrame(rows), theirs.assign(value=[0.3, 0.8, 0.1]))
    assert part["norm"].tolist() == ["the same", "explains a part", "the same"]
    between = papers.correlation.explained_by_norm(pd.DataFrame(rows), theirs.assign(value=[0.6, 0.4, 0.0]))
    assert between["norm"].tolist() == ["explains it", "does not explain it", "does not explain it"]
    assert papers.correlation.explained_by_norm(pd.DataFrame(rows), theirs.iloc[:0]).empty


def test_dot_attention_may_start_from_the_normal_distribution_and_is_another_model_then():
    runs = planned.runs("correlation", "sst", "paper", encoders=["bilstm"], seeds=[0], query_init="normal")
    assert {run.attention: run.options for run in runs} == {"additive": (), "dot": (("query_init", "normal"),)}
    settings = correlation.PAPER.settings(dataset="sst", query_init="normal")
    summary, rows = (pd.DataFrame({name: ["additive", "dot"]}) for name in ("attention", "model"))
    rows["model"] = "BiLSTM + " + rows["model"]
    kept = correlation.values_by_start(settings, summary)
    judged = correlation.evidence_by_start(settings, rows)
    assert kept["start"].tolist()[1] == "normal" and kept["start"].isna().tolist() == [True, False]
    assert judged["model"].tolist() == ["BiLSTM + additive", "BiLSTM + dot, query from N(0, 1)"]
    assert correlation.evidence_by_start(replace(settings, query_init="default"), rows) is rows


def test_every_model_is_trained_with_shorter_vectors_and_in_quick_one():
    scales = planned.runs("correlation/vector_scales", "planted", "paper", encoders=["average"], seeds=[4, 5])
    assert [run.option("vector_scale") for run in scales] == [0.3] * 4 + [0.1] * 4
    assert {(run.attention, run.seed) for run in scales} == {("additive", 4), ("additive", 5), ("dot", 4), ("dot", 5)}
    (one,) = planned.runs("correlation/vector_scales", "planted", "quick")
    assert (one.encoder, one.attention, one.seed, one.option("vector_scale")) == ("bilstm", "additive", 0, 0.1)
    (one,) = planned.runs("correlation/vector_scales", "planted", "quick", vector_scales=[1, 0.5])
    assert one.option("vector_scale") == 0.5
    assert not planned.runs("correlation/vector_scales", "planted", "paper", vector_scales=[1])


# --- what stands beside the verdicts


def test_the_share_within_a_bound_is_that_of_the_texts():
    some = study({"permutation": 0.2})
    chart = charts.shares_within(some, "permutation", [0.05], "Title", "See.").to_dict()
    (lines,) = [rows for rows in chart["datasets"].values() if "share" in rows[0]]
    for encoder, series in (("bilstm", "BiLSTM + additive"), ("average", "average + additive")):
        at = {row["bound"]: row["share"] for row in lines if row["series"] == series}
        assert len(at) == 101 and at[0.2] == pytest.approx(
            (some.loc[some["encoder"] == encoder, "permutation"] <= 0.2).mean(), abs=1e-6
        )


def test_a_length_is_drawn_for_each_model_with_the_published_values():
    rows = pd.DataFrame(
        {"encoder": ["conv", "conv", "bilstm", "bilstm"], "attention": "dot", "vector_scale": [1, 0.1] * 2}
    )
    rows = rows.assign(quantity=tau_name(GRADIENT), value=0.5, low=0.4, high=0.6)
    theirs = rows.iloc[:1].assign(value=0.3)
    chart = charts.sweep_by_model(rows, "vector_scale", "Title", "See.", theirs).to_dict()
    drawn = [row for rows in chart["datasets"].values() for row in rows]
    assert [row["value"] for row in drawn] == [0.5] * 4 + [0.3] and drawn[-1]["encoder"] == "conv"
    with pytest.raises(ValueError, match="nothing to draw"):
        curves.sweep_by_model(rows.iloc[:0], "vector_scale", "Title", "See.", theirs)


def test_the_differences_of_taus_are_those_of_each_text():
    some = with_gaps(study({tau_name(EACH_OTHER): 0.6}))
    gap = some[tau_name(EACH_OTHER)] - some[tau_name(LEAVE_ONE_OUT)]
    assert np.allclose(some["gap_to_leave_one_out"], gap)
    chart = charts.difference_histogram(some, {"gradient": "gap_to_leave_one_out"}, "Title", "See.").to_dict()
    (bins,) = chart["datasets"].values()
    means = {row["encoder"]: row["mean"] for row in bins}
    assert means["BiLSTM"] == pytest.approx(gap[some["encoder"] == "bilstm"].mean())


@pytest.mark.parametrize("draws", [1, 40])
def test_a_weighted_median_is_that_of_repeated_texts(draws):
    random = np.random.default_rng(0)
    values, weights = random.normal(size=(31, 3)), random.integers(0, 4, (draws, 31)).astype(float)
    values[5, 0], values[3, 1], values[:, 2] = values[6, 0], np.nan, np.nan
    found = weighted_median(weights, values)
    for row, column in product(range(draws), range(2)):
        repeated = np.repeat(values[:, column], weights[row].astype(int))
        assert found[row, column] == pytest.approx(np.nanmedian(repeated))
    assert np.isnan(found[:, 2]).all() and np.isnan(weighted_median(np.ones((1, 0)), np.empty((0, 2)))).all()


# --- scope


def test_what_the_findings_are_not_about_is_contrast_and_your_own_model_is_judged():
    found = judged(study()).reset_index()
    of_average = found[found["model"] == "average + additive"]
    assert len(of_average) == len(SINGLE) and set(of_average["verdict"]) == {CONTRAST}
    assert set(of_average["halved"] + of_average["doubled"] + of_average["reason"]) == {""}
    alone = run_rows(USUAL, "average", 0)
    assert set(judged(pd.concat([alone, run_rows(USUAL, "average", 1)]))["verdict"]) == {CONTRAST}
    mine = judged(pd.concat([run_rows(USUAL, "mine", seed, attention="") for seed in range(3)]))
    assert CONTRAST not in set(mine["verdict"]) and {model for _, model in mine.index} == {"mine"}


def test_encoders_are_compared_in_the_seeds_that_both_have():
    some = study({tau_name(GRADIENT): 0.1})
    row = of_bilstm(judged(some[~((some["encoder"] == "average") & (some["seed"] > 2))]), SIMPLE)
    assert row["seeds"] == 3 and row["effect"] == pytest.approx(0.2, abs=0.03)


def test_a_convolution_is_held_against_the_bilstm_as_contrast():
    found = judged(study({tau_name(GRADIENT): 0.1}, conv={tau_name(GRADIENT): 0.2, "adversary_exact_jsd": 0.3}))
    verdict, beside = (found.loc[(SIMPLE, model)] for model in ("additive", "additive, conv"))
    assert (verdict["verdict"], beside["verdict"], beside["seeds"]) == ("supported", CONTRAST, SEEDS)
    assert beside["effect"] == pytest.approx(0.1, abs=0.03) and "conv 0.2" in beside["evidence"]
    assert found.loc[(LESS_ROOM, "additive, conv"), "effect"] == pytest.approx(0.15 / 0.65, abs=0.03)


def test_the_other_measures_stand_beside_the_most_attended_token():
    row = of_bilstm(judged(study(TRUTHS[VIOLATION][0])), VIOLATION)
    assert "attention × norm 0.2" in row["evidence"] and row["source"].startswith("ours")


def test_a_search_alone_is_held_against_the_search_by_chance():
    names = {"adversary_exact_jsd": "adversary_gradient_jsd"}
    names |= {"adversary_exact_by_chance": "adversary_gradient_by_chance"}
    row = of_bilstm(judged(study(TRUTHS[ADVERSARY][1]).rename(columns=names)), ADVERSARY)
    assert row["verdict"] == "contradicted" and "by chance 0.45" in row["evidence"]


def test_undefined_values_do_not_count():
    some = study({"permutation": 0.01})
    some.loc[some["instance"] < 120, "permutation"] = np.nan
    assert of_bilstm(judged(some), PERMUTED)["n"] == TEXTS - 120


def test_the_papers_own_numbers_stand_beside_ours():
    found = judged(study(dataset="sst"), dataset="sst")
    assert of_bilstm(found, WEAKLY)["printed"] == pytest.approx(0.6559 - 0.3512)
    assert np.isnan(of_bilstm(found, ADVERSARY)["printed"])
