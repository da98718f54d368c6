"""The rules by which a claim is judged: the partition, the seeds, the trends, and how often they are wrong."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib import tables
from lib.analysis.statistics import Estimate, Spread
from lib.analysis.verdicts import KINDS, NOT_BY_SEEDS, answer, judge, judge_runs, judge_trend, share_limits
from papers.claims import EVIDENCE, VERDICT, Claim, anchor, verdicts
from papers.findings import sentences

TEXTS, BOUND = 400, 0.05


def claim(kind="direction", **changed) -> Claim:
    parts = {"paper": "jain2019", "short": "it rises", "sentence": "It rises", "source": "section 4", "kind": kind}
    parts |= {"bound": BOUND, "unit": "fraction", "scope": "BiLSTM", "control": "chance gives 0", "refuted": "it falls"}
    return Claim(**parts | changed)


def study(random, effect, seeds, models=1, of_seeds=0.03, of_texts=0.3, of_both=0.3):
    """The values of seeds (model, seed) and their standard error over texts: texts and seeds are crossed."""
    texts = random.normal(0, of_texts, (models, 1, TEXTS))
    runs = random.normal(0, of_seeds, (models, seeds, 1))
    table = effect + texts + runs + random.normal(0, of_both, (models, seeds, TEXTS))
    return table.mean(axis=2), table.mean(axis=1).std(axis=1, ddof=1) / np.sqrt(TEXTS)


def words_of(effect, seeds, models, repeats, kind="direction", random_seed=0):
    """The share of each answer over simulated studies."""
    random, found = np.random.default_rng(random_seed), []
    for _ in range(repeats):
        values, se = study(random, effect, seeds, models)
        found += [judge(kind, BOUND, values[0], se[0], TEXTS, values[1:]).word]
    return pd.Series(found).value_counts(normalize=True)


@pytest.mark.parametrize(("seeds", "models"), [(1, 4), (3, 1), (3, 4), (5, 1)])
@pytest.mark.parametrize(
    ("effect", "wrong"), [(0.0, ("supported", "contradicted")), (0.15, ("contradicted", "negligible"))]
)
def test_wrong_answers_are_rare_where_the_truth_is_known(effect, wrong, seeds, models):
    shares = words_of(effect, seeds, models, repeats=400)
    error = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert shares.reindex(wrong).fillna(0).sum() <= error
    assert seeds > 1 or set(shares.index) == {"open"}, "one run decides nothing about training"


def test_a_large_effect_is_found_with_five_seeds_and_a_small_one_is_negligible():
    assert words_of(0.15, 5, 1, 200).get("supported", 0) > 0.9
    random = np.random.default_rng(3)
    values, se = study(random, 0.005, 5, of_seeds=0.01)
    assert judge("direction", BOUND, values[0], se[0] / 3, TEXTS).word == "negligible"


def test_answers_are_a_partition_of_all_intervals():
    grid = np.linspace(-0.12, 0.12, 25)
    for kind, (low, high) in product(("direction", "little", "at least"), product(grid, grid)):
        if low <= high:
            word = answer(kind, low, high, BOUND)
            assert word in ("supported", "contradicted", "negligible", "open")
            inside = low >= -BOUND and high <= BOUND
            expected = {"direction": "negligible", "little": "supported"}.get(kind)
            assert not inside or expected in (word, None)
    assert answer("direction", 0.01, 0.2, BOUND) == "supported" == answer("at least", 0.06, 0.2, BOUND)
    assert answer("little", 0.06, 0.2, BOUND) == "contradicted" == answer("at least", -1, 0.04, BOUND)
    assert answer("direction", np.nan, np.nan, BOUND) == "open"


def test_the_interval_adds_the_squares_of_both_and_p_is_where_it_ends():
    values, se = np.array([0.10, 0.14, 0.18]), 0.02
    found = judge("direction", BOUND, values, se, TEXTS)
    half = np.hypot(stats.t.ppf(0.975, 2) * 0.04 / np.sqrt(3), stats.t.ppf(0.975, TEXTS - 1) * se)
    assert (found.low, found.high) == pytest.approx((0.14 - half, 0.14 + half))
    estimate = Estimate.over(0.14, [(Spread.of([values]), 3)], se, TEXTS)
    assert estimate.interval(1 - found.p) == pytest.approx((0, 0.28))
    assert estimate.p_above(0.2) == pytest.approx(1 - Estimate(0.2, estimate.parts).p_above(0.14))


def test_with_seeds_alone_p_is_that_of_the_t_test():
    values = np.array([0.02, 0.05, 0.03, 0.08, 0.01])
    assert judge("direction", 0.001, values).p == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    within = judge("little", BOUND, values / 4)
    sides = [
        stats.ttest_1samp(values / 4, bound, alternative=side).pvalue
        for bound, side in ((-BOUND, "greater"), (BOUND, "less"))
    ]
    assert within.word == "supported" and within.p == pytest.approx(max(sides))
    beyond = judge("little", BOUND, values + 0.2)
    assert beyond.word == "contradicted"
    assert beyond.p == pytest.approx(stats.ttest_1samp(values + 0.2, BOUND).pvalue)
    least = judge("at least", 0.2, values)
    assert least.word == "contradicted" and least.p == pytest.approx(stats.ttest_1samp(values, 0.2).pvalue)
    none = judge("direction", BOUND, values / 4 - 0.03, refuted_by_none=True)
    smaller = stats.ttest_1samp(values / 4 - 0.03, BOUND, alternative="less").pvalue
    assert none.word == "negligible" and none.p == pytest.approx(smaller), "how far below 0 it lies does not matter"


@pytest.mark.parametrize("spread", [0.06, 0.1])
def test_a_model_whose_seeds_spread_more_than_those_of_the_others_is_not_judged_by_them(spread):
    random, wrong = np.random.default_rng(1), 0
    for _ in range(400):
        like = random.normal(0, 0.02, (5, 3))
        wrong += (
            judge("direction", 1e-6, random.normal(0, spread, 3) + random.normal(0, 0.015), 0.015, 400, like).word
            != "open"
        )
    assert wrong / 400 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_the_spread_of_few_seeds_is_pooled_over_like_models_and_of_five_is_not():
    own, like = np.array([0.1, 0.2, 0.15]), [np.array([0.25, 0.15, 0.2]), np.array([0.5])]
    pooled = Spread.of([own, *like])
    assert (pooled.variance, pooled.df) == (pytest.approx((0.005 + 0.005) / 4), 4)
    alone = judge("direction", BOUND, own).high - judge("direction", BOUND, own).low
    shared = judge("direction", BOUND, own, like=like)
    assert shared.high - shared.low < alone
    five = np.array([0.1, 0.2, 0.15, 0.12, 0.3])
    assert judge("direction", BOUND, five, like=like) == judge("direction", BOUND, five)


def test_an_open_answer_names_the_seeds_that_would_decide_it():
    values = np.array([0.02, 0.12, 0.20])
    found = judge("direction", BOUND, values, 0.01, TEXTS)
    assert found.word == "open" and 3 < found.needed <= 20
    spread = Spread(values.var(ddof=1), found.needed - 1)
    for seeds, decided in ((found.needed, True), (found.needed - 1, False)):
        over = Estimate.over(found.effect, [(Spread(spread.variance, seeds - 1), seeds)], 0.01, TEXTS)
        interval = over.interval(0.975)  # as a second look has it
        assert (answer("direction", *interval, BOUND) != "open") == decided
    never = judge("direction", BOUND, np.array([-0.4, 0.01, 0.41]), 0.01, TEXTS)
    assert (never.word, never.needed, never.reason) == ("open", 0, NOT_BY_SEEDS)
    assert judge("direction", BOUND, [0.3], 0.01, TEXTS, like=[values]).needed > 1


def test_the_bound_halved_and_doubled():
    found = judge("little", BOUND, np.array([0.03, 0.031, 0.029, 0.03, 0.032]))
    assert (found.word, found.halved, found.doubled) == ("supported", "contradicted", "supported")


def test_runs_of_two_kinds_are_counted_not_averaged():
    assert [judge_runs([1] * k + [0] * (5 - k)).word for k in (0, 3, 5)] == ["contradicted", "open", "supported"]
    assert judge_runs([1, 1, 1]).word == "open" and judge_runs([1, 1, 1]).needed == 6, "at 97.5%"
    assert judge_runs([1] * 5, looks=2).word == "open" and judge_runs([1] * 6, looks=2).word == "supported"
    low, high = share_limits(4, 5)
    assert stats.binom.sf(3, 5, low) == pytest.approx(0.05) and stats.binom.cdf(4, 5, high) == pytest.approx(0.05)


def test_each_look_at_a_model_has_its_share_of_the_level():
    values = np.array([0.10, 0.12, 0.14, 0.11])
    once, twice = (judge("direction", BOUND, values, 0.01, TEXTS, looks=looks) for looks in (1, 2))
    found = Estimate.over(float(values.mean()), [(Spread.of([values]), 4)], 0.01, TEXTS)
    assert (twice.low, twice.high) == found.interval(0.975) and twice.p == pytest.approx(2 * once.p)
    held = claim(kind="direction")
    rows = held.evidence("one", dict(enumerate(values)), se=0.01, n=TEXTS)
    for sizes, looks in (("", 1), ("4", 1), ("3 4", 2), ("3 4 10", 3)):
        judged = verdicts(rows.assign(looked=["", *[sizes] * 3]), {held.short: held}).iloc[0]
        assert judged["p"] == pytest.approx(looks * once.p)


def test_a_trend_is_held_against_all_orders_of_its_dial():
    at, values = [1.0, 2.0, 3.0], np.array([[0.1, 0.2, 0.3], [0.2, 0.3, 0.9], [0.1, 0.3, 0.25]])
    found = judge_trend(at, values)
    taus = [[stats.kendalltau(at, row[list(order)]).statistic for order in permutations(range(3))] for row in values]
    means = np.array([np.mean(each) for each in product(*taus)])
    assert found.effect == pytest.approx(means[0]) and found.p == pytest.approx((abs(means) >= means[0] - 1e-12).mean())
    assert found.word == "open", "14 of 216 orders are as far from 0"
    rising = np.sort(values, axis=1)
    assert judge_trend(at, rising).word == "supported" and judge_trend(at, -rising).word == "contradicted"
    assert judge_trend(at, rising[:2]).word == "open", "two seeds make no trend"
    mixed = np.array([[1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [5, 4, 3, 2, 1]], dtype=float)
    assert judge_trend(range(5), mixed).word == "open", "one seed goes the other way"


def test_a_trend_over_many_values_is_rarely_found_where_there_is_none():
    random = np.random.default_rng(0)
    found = [judge_trend(range(6), random.normal(size=(3, 6))).word for _ in range(60)]
    assert np.mean([word != "open" for word in found]) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 60)
    rising = np.arange(6) + random.normal(0, 0.3, (3, 6))
    assert judge_trend(range(6), rising).word == "supported"


def test_a_trend_counts_the_points_that_every_seed_has():
    rising = np.arange(6) + np.zeros((3, 6))
    rising[2, [1, 4]] = np.nan
    found = judge_trend(range(6), rising)
    assert len(found.of_seeds) == 3 and found.word == "supported"
    rising[1, [0, 3]] = np.nan  # two points are left in common: each seed by itself, the whole ones alone
    assert len(judge_trend(range(6), rising).of_seeds) == 1


def test_of_several_kept_runs_the_worst_witness_counts_and_one_that_allows_no_verdict_allows_none():
    held, uniform = claim(), "its attention is nearly uniform"
    runs = [
        held.evidence("dot", {0: 0.3, 1: 0.31}, witness="good", note="first"),
        held.evidence("dot", {2: 0.3}, witness="good"),
        held.evidence("dot", {3: 0.32}, witness="weak", note="last"),
    ]
    for order in (runs, runs[::-1]):
        row = verdicts(pd.concat(order), {held.short: held}).iloc[0]
        assert row["verdict"] == "supported" and row["seeds"] == 4 and row["witness"] == "weak"
        assert "seeds 0, 1: first" in row["evidence"] and "seed 3: last" in row["evidence"]
        even = [one.assign(excluded=uniform) if one is runs[1] else one for one in order]
        row = verdicts(pd.concat(even), {held.short: held}).iloc[0]
        assert row["verdict"] == "no verdict" and row["reason"] == uniform and row["seeds"] == 4
    whole = [one.assign(commit="c", run_seeds=seeds) for one, seeds in zip(runs, ("0 1 5", "2", "3"), strict=True)]
    row = verdicts(pd.concat(whole), {held.short: held}).iloc[0]
    assert "seeds 0, 1, 5: first" in row["evidence"], "a note is of all seeds of its run, of which two are judged"


def test_spread_is_pooled_over_models_of_the_same_scope_that_have_a_verdict():
    held = claim()
    few = held.evidence("dot", {0: 0.3, 1: 0.31, 2: 0.32})
    wild = held.evidence("other", {0: -5.0, 1: 5.0, 2: 0.0})
    alone, *beside = (
        verdicts(pd.concat(some), {held.short: held}).set_index("model").loc["dot", "high"]
        for some in ([few], [few, wild.assign(within=False)], [few, wild.assign(excluded="at chance")], [few, wild])
    )
    assert beside[:2] == [alone, alone] and beside[2] > alone
    tame = [held.evidence("other", {0: 0.3, 1: 0.31, 2: 0.32}), held.evidence("other", {3: -5.0}, excluded="at chance")]
    high = verdicts(pd.concat([few, *tame]), {held.short: held}).set_index("model").loc["dot", "high"]
    assert high == pytest.approx(alone, abs=0.02), "an excluded run of another model widens nothing either"


def test_what_excludes_one_point_of_a_dial_excludes_its_model():
    held = claim(kind="trend")
    values = {(seed, at): 0.1 * at for seed in range(3) for at in range(6)}
    rows = held.evidence("dot", values, excluded="ties").assign(
        excluded=lambda rows: rows["excluded"].where(rows["at"] > 0, "")
    )
    row = verdicts(rows, {held.short: held}).iloc[0]
    assert (row["verdict"], row["reason"], row["effect"]) == ("no verdict", "ties", pytest.approx(1))


def test_one_run_or_two_decide_nothing_about_training():
    for values, reason in (([0.3], "one run"), ([0.3, 0.31], "fewer than 3 seeds")):
        found = judge("direction", BOUND, values, 0.001, TEXTS, like=[[0.1, 0.11, 0.12]])
        assert (found.word, found.reason) == ("open", reason) and found.needed >= 3


def test_evidence_becomes_a_row_with_all_that_a_reader_needs():
    held = claim(sides=("average", "BiLSTM"))
    rows = held.evidence("BiLSTM", {0: 0.3, 1: 0.32, 2: 0.31}, {0: 0.5, 1: 0.5, 2: 0.5}, 0.19, 0.01, 700, printed=0.2)
    assert list(rows) == EVIDENCE and len(rows) == 3
    row = verdicts(rows, {held.short: held}).iloc[0]
    assert list(row.index) == VERDICT
    assert row["verdict"] == "supported" and row["of_seeds"] == "0.3 0.32 0.31" and row["printed"] == 0.2
    assert row["evidence"].startswith("average 0.500, BiLSTM 0.190; difference +0.310 [")
    assert row["evidence"].endswith("fraction; 3 seeds, 700 texts")


def test_outside_its_scope_a_claim_is_a_contrast_and_a_bad_witness_gives_no_verdict():
    held = claim()
    outside = held.evidence("average", {0: 0.3, 1: 0.32, 2: 0.31}, within=False)
    no_better = held.evidence("dot", {0: 0.3, 1: 0.32, 2: 0.31}, excluded="its accuracy is not above the largest class")
    weak = held.evidence("conv", {0: 0.3, 1: 0.32, 2: 0.31}, witness="weak")
    found = verdicts(pd.concat([outside, no_better, weak]), {held.short: held}).set_index("model")
    assert found["verdict"].to_dict() == {"average": "contrast", "dot": "no verdict", "conv": "supported"}
    assert found.loc["dot", "reason"] == "its accuracy is not above the largest class"
    assert found.loc["conv", "witness"] == "weak"
    low, high = found.loc["conv", ["low", "high"]]
    effect = f"+0.31 [{low:+.2f}, {high:+.2f}] fraction; weak witness"
    sentence = (
        f"It rises: supported for conv ({effect}); no verdict for dot (its accuracy is not above the largest class)."
    )
    assert sentences(found.reset_index()) == {sentence: anchor(held.short)}
    open_one = pd.concat([found.reset_index().assign(claim="It falls", verdict="open"), found.reset_index()])
    assert [one.split(":")[0] for one in sentences(open_one)] == ["It rises", "It falls"], "what is decided comes first"
    against = [
        open_one.assign(question="ranks", side=""),
        open_one.assign(question="ranks", side="against", verdict="contradicted", witness="good"),
    ]
    first = [next(iter(sentences(one))) for one in against]
    asked = "Does attention explain these models? Of 5 checks, one for each claim and model"
    assert first[0] == f"{asked}, none decides (most often: a weak witness)."
    assert "Of 6 checks, one for each claim and model: 6 say no. Each rests on a 95% interval" in first[1]
    some = pd.concat([against[1].iloc[:1], against[1].iloc[:1].assign(model="other", verdict="open", side="")])
    balance, single = sentences(some)
    assert ": 1 says no, 1 decides nothing. Each" in balance
    assert ", counting as no; open" in single
    again = pd.concat([found.reset_index(), found.reset_index().assign(claim="It falls", short="falls")])
    assert [one.count("(as above)") for one in sentences(again)] == [0, 1], "a reason stands once"
    again.loc[again["short"] == "falls", "reason"] = "another reason"
    assert [one.count("(as above)") for one in sentences(again)] == [0, 0], "another one stands too"
    of_sides = found.reset_index().assign(sides="one 0.5, other 0.2")
    assert "supported for conv (one 0.5, other 0.2; +0.31 [" in next(iter(sentences(of_sides)))
    shown = tables.verdicts(found.reset_index()).data
    assert shown.count("<tbody") == 1 and "Supported if" in shown
    assert "<em>supported 1 (1 by a weak witness), no verdict 1, contrast 1</em></summary>" in shown


def test_a_trend_that_is_a_contrast_has_an_effect_and_no_p():
    rising = claim("trend")
    for within, p in ((True, True), (False, False)):
        of_seeds = {(seed, at): at + seed / 9 for seed in range(3) for at in (1.0, 2.0, 3.0)}
        rows = rising.evidence("BiLSTM", of_seeds, within=within)
        words = verdicts(rows, {rising.short: rising})["evidence"][0]
        assert "in the claim's direction, +1.000 (of single seeds +1.000, +1.000, +1.000)" in words
        assert (", p " in words) == p and "[" not in words, "its p is by permutation, not by an interval over few taus"


def test_fewer_than_three_seeds_have_no_interval_and_no_verdict():
    held = claim()
    for of_seeds, seeds in (({0: 0.3}, 1), ({0: 0.3, 1: 0.31}, 2), ({0: 0.3, 1: 0.31, 2: 0.32}, 3)):
        row = verdicts(held.evidence("BiLSTM", of_seeds, se=0.01, n=300), {held.short: held}).iloc[0]
        assert np.isnan(row["low"]) == np.isnan(row["high"]) == (seeds < 3)
        assert (
            row["effect"] > 0 and (row["verdict"] == "open") == (seeds < 3) and ("[" in row["evidence"]) == (seeds > 2)
        )


def test_what_a_claim_needs_is_asked_of_all_seeds_together_however_they_were_run():
    reason = "no item flips more than {:.0%}"
    held = replace(claim("little"), bound=0.25, sides=("", "best item"), needs=(0.25, reason))
    values, best = {0: 0.2, 1: 0.2, 2: 0.2, 3: 0.3, 4: 0.3}, {0: 0.22, 1: 0.22, 2: 0.22, 3: 0.32, 4: 0.32}
    one = held.evidence("BiLSTM", values, second=best, n=300)  # .26 on average
    parts = [held.evidence("BiLSTM", {seed: values[seed]}, second=best[seed], n=300) for seed in values]
    for rows in (one, pd.concat(parts, ignore_index=True)):
        found = verdicts(rows, {held.short: held}).iloc[0]
        assert found["verdict"] == "open" and found["seeds"] == 5
    few = verdicts(one[one["seed"] < 3], {held.short: held}).iloc[0]
    assert few["verdict"] == "no verdict" and few["reason"] == "no item flips more than 22%"
    outside = verdicts(one[one["seed"] < 3].assign(within=False), {held.short: held}).iloc[0]
    assert outside["reason"] == "" and outside["effect"] == pytest.approx(0.2)


def test_quick_answers_are_about_these_models_alone():
    held = claim()
    rows = held.evidence("BiLSTM", {0: 0.1, 1: 0.3}, se=0.01, n=300)
    assert verdicts(rows, {held.short: held})["verdict"][0] == "open"
    assert verdicts(rows, {held.short: held}, these_models=True)["verdict"][0] == "supported"
    assert verdicts(rows[:1], {held.short: held}, these_models=True)["verdict"][0] == "supported", "of one too"
    assert verdicts(rows[:1], {held.short: held})["reason"][0] == "one run"


def test_a_claim_of_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=f"unknown kind 'rises'.*{', '.join(KINDS)}"):
        claim("rises")
