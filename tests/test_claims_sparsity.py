"""What `sparsity` concludes where the truth is known, and what its controls refuse."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

import papers
from lib.analysis import with_ceiling, witnesses
from lib.analysis.correlation import share_of_ceiling
from lib.quantity import declare, tau_name
from papers import published
from papers.claims import EVIDENCE, uniform_attention
from papers.sparsity_claims import (
    AGREES,
    ANEW,
    APART,
    CLAIMS,
    FACETS,
    FALLS,
    FROZEN,
    MEASURES,
    MIXED,
    OTHERS_MORE,
    OWN,
    PRECISION,
    REASON,
    SPREAD,
    TO_HIDDEN,
    along_lambda,
    by_ties,
    evidence,
    misled,
)

TEXTS, LAMBDAS = 60, (-10.0, 0.0, 0.5, 0.9)
ABOUT_STATES = (MIXED, OTHERS_MORE, FACETS)
ABOUT_ATTENTION = set(CLAIMS).difference(ABOUT_STATES)
for share in (OWN, TO_HIDDEN, PRECISION, "entropy_of_attention", "facets_apart", "facets_uneven"):
    declare(share, "fraction")


def values(hidden: float, inputs: float, entropy: float, **others: float) -> dict[str, float]:
    """The mean of each column: the taus by both measures, the entropies of importance, and others."""
    taus = {"hidden": hidden, "input": inputs}
    found = {tau_name(("attention", f"{name}_of_{of}")): tau for name in MEASURES for of, tau in taus.items()}
    return found | {declare(f"entropy_of_{name}_of_input", "fraction"): entropy for name in MEASURES} | others


SOFT = values(0.8, 0.3, 0.9, **{"entropy_of_attention": 0.7, TO_HIDDEN: 0.8, OWN: 0.3})
SPARSE = SOFT | values(0.97, 0.4, 0.9, entropy_of_attention=0.3)
SOFT_CONTROL = values(0.9, 0.88, 0.9, entropy_of_attention=0.9)
SPARSE_CONTROL = values(0.95, 0.94, 0.4, entropy_of_attention=0.4)


def rows(means: dict, encoder="bilstm", projection="softmax", seeds=3, wrong=3, **columns) -> pd.DataFrame:
    """Texts of models that are wrong about `wrong` of them; the values vary over texts, and a little over seeds."""
    random, frames = np.random.default_rng(len(projection)), []
    for seed in range(seeds):
        frame = pd.DataFrame({"dataset": "sst", "encoder": encoder, "attention": "additive", "projection": projection,
                              "variant": "base", "layers": 1, "seed": seed, "instance": range(TEXTS), "length": 10,
                              "label": [0, 1] * (TEXTS // 2), "probability": 0.5})  # fmt: skip
        made = {name: mean + random.normal(0, 0.01, TEXTS) + random.normal(0, 0.002) for name, mean in means.items()}
        prediction = np.where(frame["instance"] < wrong, 1 - frame["label"], frame["label"])
        frames.append(frame.assign(prediction=prediction, left_out=[()] * TEXTS, **made, **columns))
    return pd.concat(frames, ignore_index=True)


def along(
    spread: float, agrees: float, of_ceiling: float, seeds: int, wrong: int, of: tuple[float, ...] = LAMBDAS
) -> pd.DataFrame:
    """A sweep whose entropy, tau-b and its share of the ceiling change by so much from one lambda to the next."""
    frames = []
    for step, strength in enumerate(of):
        shares = {share_of_ceiling(f"{name}_of_input"): 0.6 + of_ceiling * step for name in MEASURES}
        taus = {tau_name(("attention", f"{name}_of_input")): 0.5 + agrees * step for name in MEASURES}
        means = SOFT | taus | shares
        means |= {"entropy_of_gradient_of_input": 0.9 + spread * step, PRECISION: 0.2 + 0.1 * step}
        part = rows(means, projection="sparsegen", seeds=seeds, wrong=wrong)
        frames.append(part.assign(**{"lambda": strength}))
    return pd.concat(frames, ignore_index=True)


def adversaries(imitates=3, frozen=20, anew=3, jsd=0.6, seeds=3, entropy=0.7, wrong=3, converged=True) -> pd.DataFrame:
    """Bases, and of either kind adversaries with lambda 0 and 1 by how many texts they are wrong about."""
    kinds = [("attention", 0.0, imitates), ("attention", 1.0, frozen), ("all", 0.0, imitates), ("all", 1.0, anew)]
    made = [rows({}, seeds=seeds, wrong=wrong, trains="", jsd=0.0, **{"lambda": np.nan})]
    for trains, strength, mistakes in kinds:
        part = rows({}, seeds=seeds, wrong=mistakes, trains=trains, jsd=jsd, **{"lambda": strength})
        made.append(part.assign(variant="adversary"))
    return pd.concat(made, ignore_index=True).assign(entropy_of_attention=entropy, converged=converged)


def study(soft=SOFT, sparse=SPARSE, controls=(SOFT_CONTROL, SPARSE_CONTROL), before=0.6, spread=-0.05, agrees=-0.1,
          of_ceiling=None, seeds=3, wrong=3, lambdas=LAMBDAS, imitations=None, apart=0.01, uneven=0.3,
          plain_wrong=20) -> pd.DataFrame:  # fmt: skip
    """The evidence of a study whose truth is what the arguments say."""
    pair = tuple(zip(("softmax", "sparsemax"), (soft, sparse), strict=True))
    measured = pd.concat([rows(means, projection=name, seeds=seeds, wrong=wrong) for name, means in pair])
    without = dict(zip(("softmax", "sparsemax"), controls, strict=True))
    plain = pd.concat([rows(means, "average", name, seeds, plain_wrong) for name, means in without.items()])
    untrained = pd.concat([rows({TO_HIDDEN: before, OWN: 0.3}, projection=name, seeds=seeds) for name, _ in pair])
    sweep = along(spread, agrees, agrees if of_ceiling is None else of_ceiling, seeds, wrong, lambdas)
    answers = rows({}, seeds=1, wrong=15)
    sparsegen = sweep[sweep["lambda"] == sweep["lambda"].max()].assign(projection="sparsegen:0.9")
    known = witnesses(pd.concat([measured, plain, sparsegen]), answers)
    others = adversaries(seeds=seeds, entropy=soft["entropy_of_attention"], **(imitations or {}))
    facets = rows({"facets_apart": apart, "facets_uneven": uneven}, seeds=seeds)
    return evidence(measured, plain, untrained, sweep, others, known, known, facets)


def found(**truth) -> pd.DataFrame:
    return papers.verdicts(study(**truth), CLAIMS)


def words(**truth) -> dict[str, set[str]]:
    """The answers to each claim."""
    return found(**truth).groupby("short")["verdict"].agg(set).to_dict()


def test_every_claim_is_supported_where_it_is_true():
    assert {short: word for short, (word,) in words().items()} == dict.fromkeys(CLAIMS, "supported")


def test_every_claim_is_contradicted_where_its_opposite_is_true():
    soft, sparse = (means | {OWN: 0.7} for means in (SOFT | values(0.3, 0.5, 0.9), SPARSE | values(0.3, 0.5, 0.7)))
    turned = {"soft": soft, "sparse": sparse, "before": 0.9}
    answers = words(**turned, spread=0.02, agrees=0.1, imitations={"frozen": 3, "anew": 15}, apart=0.2)
    expected = dict.fromkeys(CLAIMS, "contradicted") | {REASON: "supported"}
    assert {short: word for short, (word,) in answers.items()} == expected


def test_evidence_has_one_row_for_each_claim_model_and_seed_and_of_a_trend_for_each_lambda():
    rows = study()
    assert list(rows) == EVIDENCE and set(rows["short"]) == set(CLAIMS)
    assert not rows.duplicated(["short", "model", "seed", "at"]).any()
    assert rows[rows["short"] == FALLS].groupby("model").size().tolist() == [3 * len(LAMBDAS)]
    assert rows["witness"].eq("good").all() and rows["excluded"].eq("").all() and rows["within"].all()


def test_what_an_untrained_encoder_spreads_by_itself_does_not_count():
    assert words(before=0.8)[MIXED] == {"negligible"}
    assert words(before=0.95)[MIXED] == {"contradicted"}
    notes = study().loc[lambda rows: rows["short"] == OTHERS_MORE, "note"]
    assert notes.str.fullmatch(r"untrained 0\.(69|70)\d").all(), "an untrained state's own word has .3 here"


def test_any_measure_agrees_with_another_where_shares_are_equal():
    (row,) = found(uneven=0.02).set_index("short").loc[[FACETS]].itertuples()
    assert row.verdict == "no verdict" and "of equal ones" in row.reason


def test_a_gap_that_states_of_one_word_have_too_does_not_count():
    answers = words(controls=(values(0.8, 0.3, 0.9, entropy_of_attention=0.9), SPARSE_CONTROL))
    assert answers[APART["gradient"]] == answers[APART["leave_one_out"]] == {"negligible", "supported"}


def test_an_encoder_without_context_that_learned_nothing_is_no_control():
    at_chance = words(plain_wrong=TEXTS // 2)
    for short in (*APART.values(), *SPREAD.values()):
        assert at_chance[short] == {"no verdict"}
    assert at_chance[MIXED] == {"supported"}


def test_one_uniform_run_of_three_is_enough():
    even = rows(SOFT)
    assert not uniform_attention(even)
    even.loc[even["seed"] == 1, "entropy_of_attention"] = 0.99
    assert uniform_attention(even) == "its attention is nearly uniform: 99.0% of the largest entropy"


def test_no_verdict_from_uniform_attention_but_on_states():
    uniform = {"soft": SOFT | {"entropy_of_attention": 0.99}, "sparse": SPARSE | {"entropy_of_attention": 0.98}}
    answers = found(**uniform)
    alongs = {FALLS, REASON, *AGREES.values()}  # the sweep's own attention is not uniform
    judged = answers[answers["short"].isin(ABOUT_ATTENTION - alongs)]
    assert (
        judged["verdict"].eq("no verdict").all() and judged["reason"].str.contains("attention is nearly uniform").all()
    )
    assert set(answers.loc[answers["short"] == MIXED, "verdict"]) == {"supported"}


def test_shuffled_labels_support_nothing():
    answers = found(wrong=TEXTS // 2, imitations={"wrong": TEXTS // 2})
    assert answers["verdict"].eq("no verdict").all()
    assert answers["reason"].str.contains("not above the largest class").all()


def test_importance_is_judged_only_where_attention_is_sparser_and_the_measure_shows_it():
    flat = found(sparse=SPARSE | {"entropy_of_attention": 0.68}).set_index("short").loc[list(SPREAD.values())]
    assert flat["verdict"].eq("no verdict").all() and flat["reason"].str.contains("attention is no sparser").all()
    blind = found(controls=(SOFT_CONTROL, SOFT_CONTROL)).set_index("short").loc[list(SPREAD.values())]
    assert blind["reason"].str.contains("importance where states are their inputs is no sparser").all()


def test_a_lambda_at_which_attention_is_uniform_does_not_count():
    sweep = along(-0.05, -0.1, -0.1, seeds=3, wrong=3)
    low = sweep[sweep["lambda"] == -10].assign(**{"lambda": -100.0, "entropy_of_gradient_of_input": 0.1})
    known = witnesses(sweep[sweep["lambda"] == 0.9].assign(projection="sparsegen:0.9"), rows({}, seeds=1, wrong=15))
    for entropy, word, seen in ((0.7, "open", -100), (0.99, "supported", -10)):
        low.loc[low["seed"] == 1, "entropy_of_attention"] = entropy
        made = pd.concat(along_lambda(pd.concat([low, sweep]), known, published.table("meister2021", "sst")))
        assert made["at"].min() == seen
        assert papers.verdicts(made, CLAIMS).set_index("short").loc[FALLS, "verdict"] == word


def test_no_verdict_along_lambda_where_attention_is_uniform_at_every_one():
    even = along(-0.05, -0.1, -0.1, seeds=3, wrong=3).assign(entropy_of_attention=0.99)
    known = witnesses(even[even["lambda"] == 0.9].assign(projection="sparsegen:0.9"), rows({}, seeds=1, wrong=15))
    made = papers.verdicts(pd.concat(along_lambda(even, known, published.table("meister2021", "sst"))), CLAIMS)
    assert made["verdict"].eq("no verdict").all() and made["reason"].str.contains("nearly uniform").all()


def test_one_lambda_or_one_seed_makes_no_trend():
    one = found(lambdas=(0.9,)).set_index("short").loc[[FALLS, REASON, *AGREES.values()]]
    assert one["verdict"].eq("no verdict").all() and one["reason"].eq("one value makes no trend").all()
    single = found(seeds=1).set_index("short").loc[[FALLS, REASON, *AGREES.values()]]
    assert single["verdict"].eq("open").all() and single["reason"].eq("a trend needs 3 seeds").all()


def test_a_trend_that_ties_alone_would_give_is_none():
    for agrees in (-0.1, 0.1):
        answers = found(agrees=agrees, of_ceiling=-agrees).set_index("short").loc[list(AGREES.values())]
        assert answers["verdict"].eq("no verdict").all(), "tau-b and its share of the ceiling part"
        assert answers["reason"].str.contains("falls, but" if agrees < 0 else "rises, but").all()
    sweep = along(-0.05, -0.1, -0.1, seeds=3, wrong=3)
    share = share_of_ceiling("gradient_of_input")
    sweep.loc[sweep["seed"] == 1, share] = 1 - sweep.loc[sweep["seed"] == 1, share]
    tau = tau_name(("attention", "gradient_of_input"))
    assert "not in every seed" in by_ties(sweep, tau, share), "one seed of three parts"
    assert not by_ties(sweep[sweep["seed"] != 1], tau, share)


def of_adversaries(**imitations) -> pd.DataFrame:
    """The verdicts on adversaries alone."""
    stayed, unfinished = imitations.pop("stayed", ()), imitations.pop("unfinished", None)
    measured = adversaries(**imitations)
    measured["converged"] &= measured["lambda"].ne(unfinished)
    measured.loc[measured["seed"].isin(stayed) & (measured["lambda"] > 0), "jsd"] = 0.1
    known = witnesses(measured[measured["variant"] == "base"], rows({}, seeds=1, wrong=15))
    made = pd.concat(misled(measured, known, published.table("meister2021", "sst")))
    return papers.verdicts(made, CLAIMS).set_index("short")


@pytest.mark.parametrize(
    ("imitations", "short", "reason"),
    [
        ({"imitates": 10, "anew": 10}, ANEW, "imitation alone reaches"),
        ({"imitates": 10}, FROZEN, "imitation alone reaches"),
        ({"converged": False}, ANEW, "its loss did not converge"),
        ({"converged": False}, FROZEN, "its loss did not converge"),
        ({"unfinished": 0.0}, ANEW, "the imitation's loss did not converge"),
        ({"jsd": 0.3}, ANEW, "does not attend elsewhere"),
        ({"jsd": 0.3}, FROZEN, "does not attend elsewhere"),
        ({"anew": TEXTS // 2}, ANEW, "is not above the largest class"),
    ],
)
def test_an_adversary_that_failed_is_no_witness(imitations, short, reason):
    answer = of_adversaries(**imitations).loc[short]
    assert answer["verdict"] == "no verdict" and reason in answer["reason"]


def test_one_seeds_imitation_that_failed_is_enough():
    measured = adversaries(imitates=0)
    bad = measured["lambda"].eq(0) & measured["seed"].eq(2) & (measured["instance"] < 6)
    measured.loc[bad, "prediction"] = 1 - measured.loc[bad, "label"]
    known = witnesses(measured[measured["variant"] == "base"], rows({}, seeds=1, wrong=15))
    made = papers.verdicts(pd.concat(misled(measured, known, published.table("meister2021", "sst"))), CLAIMS)
    assert made["verdict"].eq("no verdict").all() and made["reason"].str.contains("in seed 2").all()


def test_runs_that_stayed_are_counted_and_not_averaged_in():
    answer = of_adversaries(stayed=(1,)).loc[ANEW]
    assert answer["seeds"] == 2 and "2 of 3 runs attend elsewhere" in answer["evidence"]


def test_a_frozen_adversary_at_chance_lost_what_is_claimed():
    assert of_adversaries(frozen=TEXTS // 2).loc[FROZEN, "verdict"] == "supported"


def test_the_paper_s_own_numbers_stand_beside_ours():
    printed = study().drop_duplicates(["short", "model"]).set_index(["short", "model"])["printed"]
    assert printed[FALLS, "BiLSTM"] == pytest.approx(0.866)
    assert printed[APART["gradient"], "BiLSTM + softmax"] == pytest.approx(0.80 - 0.25)
    assert printed[FROZEN, "BiLSTM + softmax, lambda 1"] == pytest.approx(0.82 - 0.76)
    assert printed[ANEW, "BiLSTM + softmax, lambda 1"] == pytest.approx(0)


def test_the_ceiling_of_sparse_attention_is_the_largest_tau_that_its_ties_allow():
    random, length = np.random.default_rng(0), 9
    for support in (1, 2, 5, length):
        weights = np.concatenate([1 + np.arange(support), np.zeros(length - support)])
        best = kendalltau(weights, np.arange(length) + 100 * (weights > 0)).statistic
        taus = {tau_name(("attention", "gradient_of_input")): [best]}
        row = with_ceiling(
            pd.DataFrame({"length": [length], "attention_support": [support]} | taus), ["gradient_of_input"]
        )
        assert row["tau_ceiling"].item() == pytest.approx(best)
        assert row[share_of_ceiling("gradient_of_input")].item() == pytest.approx(1)
        others = [kendalltau(weights, random.permutation(length)).statistic for _ in range(50)]
        assert max(others) <= best + 1e-12
    alone = pd.DataFrame({"length": [1], "attention_support": [1]} | {name: [np.nan] for name in taus})
    assert np.isnan(with_ceiling(alone, ["gradient_of_input"])["tau_ceiling"].item())
