"""Tutek & Snajder's claims: tables whose truth is known, and for each claim a control that takes its verdict away."""

from collections.abc import Iterable
from functools import cache

import numpy as np
import pandas as pd
import pytest

import papers
from lib.analysis import prices, witnesses
from lib.quantity import RUN_COLUMNS
from papers import PAPERS
from papers.regularization_claims import CLAIMS, LEARNED_TYING
from papers.regularization_evidence import (
    ALONE,
    RATIONALE,
    Models,
    alike,
    by_length,
    collapses,
    costly,
    diminishing,
    evenness,
    fragile,
    grounded,
    informed,
    on_par,
    on_the_rationale,
    robust_by_depth,
)

NAMES = ("base", "frozen", "concat", "residual", "tying", "mlm")
FROZEN = ("residual", "tying", "mlm")
TEXTS, SEEDS, DRAWS = 240, 5, 4
WRONG = {"base": 0.1, "frozen": 0.15, "concat": 0.15, "residual": 0.2, "tying": 0.4, "mlm": 0.4}  # when permuted


@cache
def model(name: str, layers: int = 1, wrong: float | None = None, right: float = 0.95, **more) -> pd.DataFrame:
    """Texts of one variant: the share `right` is predicted right, and the share `wrong` wrong under other attention."""
    wrong, rows = WRONG[name] if wrong is None else wrong, []
    label = np.arange(TEXTS) % 2
    for seed in range(SEEDS):
        random = np.random.default_rng([seed, layers, NAMES.index(name)])
        own = np.where(np.random.default_rng(seed).random(TEXTS) < right, label, 1 - label)
        flipped = [np.where(random.random(TEXTS) < wrong, 1 - label, label) for _ in range(DRAWS + 1)]
        frame = pd.DataFrame({"instance": range(TEXTS), "length": 5 + np.arange(TEXTS) // 2, "label": label})
        frame["seed"], frame["prediction"], frame["probability"] = seed, own, np.where(own == 1, 0.9, 0.1)
        frame["under_uniform"], frame["under_permuted"] = flipped[0].astype(float), list(np.stack(flipped[1:], 1))
        kept = name in ("tying", "mlm")
        frame[ALONE] = (0.55 if kept else 0.8) + random.normal(0, 0.05, TEXTS)
        frame[RATIONALE] = (0.7 if kept else 0.4) + random.normal(0, 0.05, TEXTS)
        rows.append(frame.assign(**more))
    identity = dict(zip(RUN_COLUMNS, ("made_up", "bilstm", "additive", "softmax", name, layers), strict=True))
    return pd.concat(rows, ignore_index=True).assign(**identity)


def measured(**changed: dict) -> pd.DataFrame:
    """All variants; `changed` has other arguments of `model` for some."""
    return pd.concat([model(name, **changed.get(name, {})) for name in NAMES], ignore_index=True)


def deeper(base=(0.06, 0.03), tying=(0.2, 0.05), right: float = 0.95) -> pd.DataFrame:
    """The base, with fixed embeddings too, and tying with 2 and 3 layers: how often wrong under other attention."""
    wrong = {"base": base, "frozen": base, "tying": tying}
    return pd.concat([model(name, layers, of[layers - 2], right) for name, of in wrong.items() for layers in (2, 3)])


def epochs(kept: int = 6, entropy: float = 0.5) -> pd.DataFrame:
    rows = [
        {"attention": "additive", "variant": name, "layers": layers, "seed": seed}
        | {"of": 8, "epoch": kept if name == "tying" else 6, "entropy": entropy if name == "tying" else 0.5}
        for name in NAMES
        for layers in (1, 2, 3)
        for seed in range(SEEDS)
    ]
    return pd.DataFrame(rows)


def information(**values: float) -> pd.DataFrame:
    """Mutual information of each variant; by default freezing gives .5 of what tying gains."""
    values = {"base": 2.0, "frozen": 2.5, "residual": 4.0, "tying": 3.5, "mlm": 2.5} | values
    random = np.random.default_rng(0)
    rows = [
        {"variant": name, "seed": seed, "quantity": f"mutual_information_{sample}", "texts": 900}
        | {"above_null": value + random.normal(0, 0.02), "without": value + random.normal(0, 0.001, 50)}
        for name, value in values.items()
        for sample in ("most_frequent", "random_sample")
        for seed in range(SEEDS)
    ]
    return pd.DataFrame(rows)


def imitated(price: float = 0.6, floor: float = 0.01, converged: bool = True, seeds: int = 3) -> pd.DataFrame:
    """Adversaries of mlm and tying, which pay `price` for each nat of JSD, and of the base, which pay .1."""
    parts, random = [], np.random.default_rng(0)
    for name in ("base", "mlm", "tying"):
        for seed, at, jsd in ((seed, *point) for seed in range(seeds) for point in ((0, 0.01), (0.1, 0.1), (0.2, 0.6))):
            tvd = floor + (0.1 if name == "base" else price) * jsd * (at > 0) + random.normal(0, 0.003, 100)
            rows = pd.DataFrame({"instance": range(100), "jsd": jsd + random.normal(0, 0.003, 100), "tvd": tvd})
            parts.append(rows.assign(**{"lambda": at}, variant=name, seed=seed))
    frame = pd.concat(parts).assign(dataset="made_up", encoder="bilstm", attention="additive", projection="softmax")
    return frame.assign(layers=1, label=1, prediction=1, base_prediction=1, converged=converged)


def starts(default: float = 0.99, normal: float = 0.5) -> pd.DataFrame:
    of = {"default": default, "normal": normal}
    return evenness({(k, s): ({"dev_attention_entropy": v},) for k, v in of.items() for s in range(SEEDS)})


def of_starts(right: float = 0.95) -> pd.DataFrame:
    """What the models of `starts` learned."""
    frame = pd.concat([model("base", right=right).assign(variant=name) for name in ("default", "normal")])
    return witnesses(frame, model("base")[lambda rows: rows["seed"] == 0])


def models(frame: pd.DataFrame | None = None, kept: pd.DataFrame | None = None, frozen: tuple = FROZEN) -> Models:
    frame = measured() if frame is None else frame
    good = frame[[*RUN_COLUMNS]].drop_duplicates().assign(witness="good", excluded="")
    return Models(frame, epochs() if kept is None else kept, good, frozen)


def judged(rows: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The verdicts on evidence, by model."""
    return papers.verdicts(pd.concat(rows), CLAIMS).set_index("model")


@pytest.fixture(scope="module")
def truth() -> pd.DataFrame:
    """The verdicts on all claims, by claim and model."""
    tables = [getattr(models(), name) for name in ("epochs", "witnesses")]
    tables += [information(), prices(imitated()), starts(), of_starts(), FROZEN]
    rows = PAPERS["regularization"].evidence(measured(), deeper(), *tables)
    return papers.verdicts(rows, PAPERS["regularization"].claims).set_index(["short", "model"])


def test_each_claim_is_supported_where_it_is_true_and_baselines_are_contrast(truth):
    tied = truth.xs("tying + additive", level="model")["verdict"]
    inside = ["without a loss", "attention matters more", "equal weights cost more", "words are kept"]
    inside += ["neutral words stay neutral", "regularization does less in depth", "attention comes onto the reason"]
    assert set(tied[inside]) == {"supported"}
    assert truth.loc[("adversaries are harder to find", "MLM + additive"), "verdict"] == "supported"
    assert truth.loc[("adversaries are harder to find", "tying + additive"), "verdict"] == "contrast"
    assert truth.loc[("depth makes attention matter less", "base + additive, 3 layers"), "verdict"] == "supported"
    assert truth.loc[("initialisation decides", "base + dot"), "verdict"] == "supported"
    assert truth.loc[("attention matters more", "concat + additive"), "verdict"] == "contrast"
    assert truth.loc["longer texts are more fragile", "verdict"].isin(["negligible", "open"]).all(), "answers at random"
    assert set(truth.index.get_level_values("short")) == set(CLAIMS)


def test_freezing_that_does_all_leaves_nothing_to_the_method():
    same = measured(frozen={"wrong": 0.4})
    for row in (
        judged(fragile(models(same))).loc["tying + additive"].iloc[0],
        judged(informed(models(), information(frozen=3.5))).loc["tying + additive"],
    ):
        assert row["verdict"] in ("negligible", "open") and abs(row["effect"]) < 0.05
    known = judged(informed(models(), information())).loc["MLM + additive"]
    assert known["verdict"] == "negligible" and "above the base +0.5" in known["evidence"]
    learned = judged(fragile(models(same, frozen=()))).loc["tying + additive"]
    assert set(learned["verdict"]) == {"supported"}, "embeddings that learn are compared with the base"


def test_tying_whose_embeddings_learn_is_compared_with_the_base_that_learns_them_too():
    learned = model("tying").assign(variant=LEARNED_TYING).drop(columns=[ALONE, RATIONALE])
    kept = epochs()
    kept = pd.concat([kept, kept[kept["variant"] == "tying"].assign(variant=LEARNED_TYING)])
    of = models(pd.concat([measured(frozen={"wrong": 0.4}), learned]), kept)
    found, name = judged([*on_par(of), *fragile(of)]), "tying with learned embeddings + additive"
    assert set(found.loc[name, "verdict"]) == {"supported"} and len(found.loc[name]) == 3
    assert not found.loc[name, "evidence"].str.contains("against the base").any()
    assert name not in judged([*grounded(of), *on_the_rationale(of)]).index, "not measured there"


def test_labels_at_random_support_no_words_kept():
    none = information(**dict.fromkeys(("base", "frozen", "residual", "tying", "mlm"), 0.0))
    found = judged(informed(models(), none))["verdict"]
    assert set(found) == {"negligible", "contrast"} and found.filter(like="residual").eq("contrast").all()


def test_a_run_that_kept_its_last_epoch_refutes_no_method():
    worse = measured(tying={"right": 0.8})
    assert judged(on_par(models(worse))).loc["tying + additive", "verdict"] == "contradicted"
    row = judged(on_par(models(worse, epochs(kept=8)))).loc["tying + additive"]
    assert row["verdict"] == "no verdict"
    assert row["reason"] == "not trained to the end: tying + additive kept its last epoch of 8 in 5 of 5 runs"


@pytest.mark.parametrize(
    ("right", "entropy", "reason"), [(0.85, 0.5, "not on par"), (0.95, 0.99, "attends uniformly (0.990")]
)
def test_fragility_of_a_worse_model_or_of_uniform_attention_is_no_verdict(right, entropy, reason):
    of = models(measured(tying={"right": right}), epochs(entropy=entropy))
    found = judged([*fragile(of), *grounded(of)]).loc["tying + additive"]
    assert (
        len(found) == 3
        and set(found["verdict"]) == {"no verdict"}
        and found["reason"].str.contains(reason, regex=False).all()
    )


def test_models_at_chance_allow_no_verdict():
    frame = measured(**{name: {"right": 0.5} for name in NAMES})
    known = witnesses(frame, model("base")[lambda rows: rows["seed"] == 0])
    of = Models(frame, epochs(), known, FROZEN)
    rows = [*on_par(of), *fragile(of), *informed(of, information()), *costly(of, prices(imitated())), *grounded(of)]
    rows += [*alike(of), *by_length(of), *on_the_rationale(of), *collapses(of, starts(), of_starts(0.5))]
    deep = pd.concat([frame, deeper(right=0.5)])
    deep = Models(deep, epochs(), witnesses(deep, model("base")[lambda rows: rows["seed"] == 0]), FROZEN)
    found = judged([*rows, *robust_by_depth(deep), *diminishing(deep)]).query("verdict != 'contrast'")
    assert set(found["short"]) == set(CLAIMS) and set(found["verdict"]) == {"no verdict"}
    assert found["reason"].str.contains("is not above the largest class").all()


def test_no_verdict_rests_on_uniform_attention():
    even = models(pd.concat([measured(), deeper()]), epochs().assign(entropy=0.99))
    rows = [*on_par(even), *fragile(even), *grounded(even), *alike(even), *by_length(even), *on_the_rationale(even)]
    rows += [*costly(even, prices(imitated())), *robust_by_depth(even), *diminishing(even)]
    found = judged(rows).query("verdict != 'contrast'")
    about_words = {"words are kept", "initialisation decides"}  # the one is about states, the other about uniformity
    assert set(found["short"]) == set(CLAIMS) - about_words and set(found["verdict"]) == {"no verdict"}
    assert found["reason"].str.contains("attends uniformly").all()


def test_models_that_are_all_alike_support_no_direction():
    same = pd.concat([model(name, wrong=0.2) for name in NAMES]).assign(**{ALONE: 0.7, RATIONALE: 0.4})
    of = models(same)
    found = judged([*fragile(of), *grounded(of), *on_the_rationale(of), *costly(of, prices(imitated(price=0.1)))])
    assert "supported" not in set(found["verdict"])
    assert judged(on_par(of)).loc["tying + additive", "verdict"] == "supported"


def test_the_price_of_distance_is_no_verdict_where_imitation_explains_it():
    of = models()

    def row(**change) -> pd.Series:
        return judged(costly(of, prices(imitated(**change)))).loc["MLM + additive"]

    assert row()["verdict"] == "supported" and row(price=0.02)["effect"] < 0
    assert "less the floors of 0.01" in row()["evidence"] and "with nothing subtracted" in row()["evidence"]
    high = row(floor=0.3)
    assert high["verdict"] == "no verdict" and "the floor, 0.3" in high["reason"]
    assert "did not converge" in row(converged=False)["reason"]
    assert row(seeds=1)["verdict"] == "no verdict" and row(seeds=1)["reason"] == "one seed"
    few = imitated()
    only = judged(costly(of, prices(few[few["lambda"] == 0]))).loc["MLM + additive"]
    assert only["verdict"] == "no verdict" and only["reason"] == "one value of lambda makes no curve"
    assert judged(costly(of, prices(few[few["lambda"] != 0.1]))).loc["MLM + additive", "verdict"] == "supported"


def test_no_price_is_judged_where_the_imitated_attention_is_uniform():
    even = epochs().assign(entropy=0.99)
    row = judged(costly(models(kept=even), prices(imitated()))).loc["MLM + additive"]
    assert row["verdict"] == "no verdict" and "base + additive attends uniformly" in row["reason"]


def test_imitation_that_fails_says_how():
    frame = imitated()
    wrong = (frame["variant"] == "mlm") & (frame["lambda"] == 0)
    frame.loc[wrong, "tvd"] += 0.5
    frame.loc[wrong & (frame["instance"] < 10), "prediction"] = 0
    failed = prices(frame).set_index("variant").loc["mlm", "failed"]
    assert failed.startswith("imitation of MLM alone is 0.100 below it in accuracy, is farther from its predictions")
    row = judged(costly(models(), prices(frame))).loc["MLM + additive"]
    assert row["verdict"] == "no verdict" and row["reason"].startswith(failed)
    one = imitated()
    first = (one["variant"] == "mlm") & (one["lambda"] == 0) & (one["seed"] == 1) & (one["instance"] < 10)
    one.loc[first, "prediction"] = 0
    assert prices(one).set_index("variant").loc["mlm", "failed"].startswith("imitation of MLM alone is"), "one seed"
    none = imitated().query("variant != 'mlm' or `lambda` > 0")
    assert prices(none).set_index("variant").loc["mlm", "failed"] == "no adversary of MLM only imitates"
    away = imitated()
    away.loc[(away["variant"] == "mlm") & (away["lambda"] == 0.2), "converged"] = False
    row = judged(costly(models(), prices(away))).loc["MLM + additive"]
    assert row["verdict"] == "no verdict" and row["reason"] == "an adversary of MLM did not converge"


def test_a_loss_of_confidence_is_not_grounding():
    frame = measured()
    tied = frame["variant"] == "tying"
    frame.loc[tied, "probability"] = np.where(frame.loc[tied, "prediction"] == 1, 0.55, 0.45)
    row = judged(grounded(models(frame))).loc["tying + additive"]
    assert row["verdict"] == "no verdict" and "whole texts lose as much confidence" in row["reason"]


def test_depth_is_a_trend_of_three_and_a_worse_deep_model_says_nothing(truth):
    def trend(deep: pd.DataFrame) -> pd.Series:
        return judged(diminishing(models(pd.concat([measured(), deep])))).loc["tying + additive"]

    row = trend(deeper())
    assert row["effect"] == 1 and row["seeds"] == SEEDS and "by layers: 1: -0." in row["evidence"]
    assert trend(deeper(tying=(0.5, 0.6)))["verdict"] == "contradicted"
    two = trend(deeper()[lambda rows: rows["layers"] == 2])
    assert two["verdict"] == "no verdict" and two["reason"] == "2 values make no trend"
    lost = pd.concat([measured(), model("base", 3, 0.05, right=0.7)])
    lost = judged(robust_by_depth(models(lost))).loc["base + additive, 3 layers"]
    assert lost["verdict"] == "no verdict" and "not on par" in lost["reason"]
    collapsed = trend(deeper(base=(0.0, 0.0), tying=(0.0, 0.0), right=0.7))
    assert collapsed["verdict"] == "no verdict" and "frozen + additive, 2 layers is" in collapsed["reason"]
    assert not [*diminishing(models()), *robust_by_depth(models())], "one depth"


def test_residual_and_concat_are_alike_beyond_their_own_controls_or_not(truth):
    def row(frame: pd.DataFrame) -> pd.Series:
        return judged(alike(models(frame))).loc["residual + additive"]

    assert truth.loc["residual is like concat", "verdict"].isin(["supported", "open"]).all()
    apart = row(measured(residual={"wrong": 0.45}))
    assert apart["verdict"] == "contradicted" and apart["effect"] < -0.2
    nothing = row(measured(**{name: {"wrong": 0.05} for name in NAMES}))
    assert nothing["verdict"] == "no verdict" and "costs neither" in nothing["reason"]


def test_longer_texts_are_more_fragile_where_they_are():
    frame = measured()
    longer = frame["length"] > frame["length"].median()
    orders = zip(frame["under_permuted"], longer, strict=True)
    frame["under_permuted"] = [1 - order if long else order for order, long in orders]
    row = judged(by_length(models(frame))).loc["base + additive"]
    assert row["verdict"] == "supported" and row["effect"] > 0.5


def test_a_start_decides_run_by_run():
    mixed = starts()
    mixed.loc[mixed["seed"] < 2, "entropy"] = 0.5  # of five runs three collapse
    row = judged(collapses(models(), mixed, of_starts())).loc["base + dot"]
    assert row["verdict"] == "open" and row["effect"] == pytest.approx(0.6)
    assert judged(collapses(models(), starts(), of_starts())).loc["base + dot", "verdict"] == "supported"
    for neither in (starts(0.5, 0.5), starts(normal=0.96)):  # both attend; one between uniform and not
        found = judged(collapses(models(), neither, of_starts()))
        assert found.loc["base + dot", "verdict"] == "contradicted"


def test_more_than_two_classes_are_outside_the_papers_scope():
    frame = measured()
    frame.loc[frame["instance"] == 0, ["label", "prediction"]] = 2
    assert set(judged(on_par(models(frame, epochs(kept=8))))["verdict"]) == {"contrast"}
    assert set(judged(fragile(models(frame)))["verdict"]) == {"contrast"}


def test_the_papers_own_numbers_contradict_its_text_for_dot_and_mlm_on_sst():
    of = models(measured().assign(dataset="sst", attention="dot"), epochs().assign(attention="dot"))
    permuted = (
        judged(fragile(of)).set_index("short", append=True)["printed"].xs("attention matters more", level="short")
    )
    assert permuted["MLM + dot"] == pytest.approx(-0.065 + 0.054) and permuted["tying + dot"] == pytest.approx(0.135)
    assert judged(on_par(of)).loc["MLM + dot", "printed"] == pytest.approx(0.827 - 0.843)
