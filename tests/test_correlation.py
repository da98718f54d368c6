"""What `correlation` trains, and what it computes of each text."""

import numpy as np
import pandas as pd
import planned
import torch
from scipy.stats import kendalltau
from small import batch, model

from lib import analysis, interventions
from lib.analysis import attention_weights, correlate, known, measure, violation_by_chance
from lib.analysis.correlation import permutation_medians
from lib.datasets.corpus import UNKNOWN
from lib.importance import gradient, gradient_times_input, leave_one_out_with_sign, quantity
from lib.quantity import RUN_COLUMNS
from lib.training import Run
from papers import PAPERS, correlation
from papers.effects import UNIFORM

LOO = "leave_one_out_of_input"
PAIRS = [("attention", name) for name in ("gradient_times_input", LOO)]
PAIRS += [(name, LOO) for name in ("gradient_times_input", "gradient_of_input")]


def untrained(seeds=4, texts=40, length=14) -> pd.DataFrame:
    """What is measured of untrained models, whose attention is far from uniform and whose logits are random."""
    measures = [attention_weights, interventions.permutation_effect(30), interventions.largest_change()]
    measures += [interventions.permutation_share_by_chance(30), violation_by_chance()]
    measures += [interventions.agreement_by_chance(gradient_times_input)]
    measures += [interventions.adversary(0.01), interventions.adversary_by_chance(0.01), interventions.largest_jsd()]
    measures += [quantity("gradient_times_input", gradient_times_input), quantity("gradient_of_input", gradient)]
    measures += [leave_one_out_with_sign]
    frames = []
    for encoder in ("bilstm", "average"):
        for seed in range(seeds):
            tested = model(encoder, seed=seed)
            with torch.no_grad():
                tested.decoder.weight.mul_(8)
            given = batch((length,) * texts, seed=seed)
            frames.append(measure(tested, [given], measures, Run("planted", encoder, "additive", seed=seed)))
    measured = analysis.add_violations(pd.concat(frames, ignore_index=True), ["attention"])
    measured = correlation.add_differences(analysis.add_entropies(correlate(measured, PAIRS), ["attention"]))
    return analysis.add_adversary_shares(analysis.add_permutation_shares(measured, UNIFORM))


def test_random_logits_do_as_chance_has_it():
    measured = untrained()
    bilstm, average = (measured[measured["encoder"] == name] for name in ("bilstm", "average"))
    beyond = bilstm["adversary_share"] - bilstm["chance_share"]
    assert abs(beyond.mean()) < 0.03 < 0.5 < bilstm["adversary_share"].mean()
    assert abs(bilstm["agreement_beyond_chance"].mean()) < 0.1
    assert abs((bilstm["permutation_share"] - bilstm["permutation_share_by_chance"]).mean()) < 0.1
    assert abs(bilstm["violation_beyond_chance"].mean()) < 0.1
    assert average["agreement_by_chance"].mean() > 0.3, "shuffled weights agree with the gradient of an average"
    assert average[correlation.GRADIENT].mean() > 0.3, "and so do its own"
    gap = measured[correlation.GRADIENT_LEAVE_ONE_OUT] - measured[correlation.LEAVE_ONE_OUT]
    assert np.allclose(measured["gap_to_leave_one_out"], gap, equal_nan=True)


def test_taus_of_known_words_are_scipys_over_the_tokens_that_have_a_vector():
    tested, given, absent = model("average"), batch((4, 9, 14)), 7
    given.tokens[1, 2:6] = torch.tensor([absent, UNKNOWN, absent, UNKNOWN])
    given.tokens[2, 1:15] = torch.arange(8, 22)  # all known
    with torch.no_grad():
        tested.embedding.weight[absent] = 0  # a word that the file lacks; the unknown one has some vector
    measures = [attention_weights, known, quantity("gradient_times_input", gradient_times_input)]
    measured = analysis.add_unknown(measure(tested, [given], measures))
    every, some = (correlate(measured, PAIRS[:1], among=among) for among in ("", "known"))
    for row, ids in zip(some.to_dict("records"), given.tokens, strict=True):
        inside = [place for place, word in enumerate(ids[1 : row["length"] + 1]) if word not in (UNKNOWN, absent)]
        expected = kendalltau(row["attention_weights"][inside], row["gradient_times_input"][inside])
        found = [row[f"{correlation.GRADIENT}_known{part}"] for part in ("", "_p")]
        np.testing.assert_allclose(found, expected, atol=1e-9)
        assert np.isclose(row["unknown_attention"], 1 - row["attention_weights"][inside].sum(), atol=1e-6)
    assert some[f"{correlation.GRADIENT}_known"][2] == every[correlation.GRADIENT][2], "all words are known"
    assert some[f"{correlation.GRADIENT}_known"][1] != every[correlation.GRADIENT][1]
    assert measured["unknown_share"].iloc[1:].tolist() == [4 / 9, 0] and measured["unknown_text"][2] == 0


def test_an_adversary_is_far_from_half_of_ln_2_on_where_it_was_searched_and_there_is_another_token():
    rows = pd.DataFrame({"length": [9, 9, 9, 1, 9], "largest_jsd": [0.6, 0.69, 0.3, 0.0, 0.6]})
    rows = rows.assign(adversary_gradient_jsd=[0.55, 0.35, 0.3, 0.0, np.nan], adversary_gradient_by_chance=0.3)
    done = analysis.add_adversary_shares(rows)
    assert done["adversary_gradient_far"].tolist()[:3] == [1, 1, 0] and "adversary_exact_far" not in done
    assert done["adversary_gradient_farthest"].tolist()[:3] == [1, 0, 1]
    assert done[["adversary_gradient_far", "adversary_gradient_farthest"]][3:].isna().all(axis=None)


def test_values_stand_beside_those_that_the_paper_printed_of_the_same_quantities():
    row = dict(zip(RUN_COLUMNS, ("sst", "bilstm", "additive", "softmax", "base", 1), strict=True))
    values = pd.DataFrame([row | {"quantity": correlation.GRADIENT, "value": 0.3, "unit": "tau-b"}])
    both = PAPERS["correlation"].compare(values)
    assert set(both["quantity"]) == {correlation.GRADIENT} and both["theirs"].tolist() == [0.3512]
    assert PAPERS["correlation"].compare(values.iloc[:0]).empty
    answers = pd.DataFrame([row | {"label": 0, "prediction": 4, "max_attention": 0.5}])  # of many classes: no figure 6
    assert PAPERS["correlation"].compare(permutation_medians(answers)).empty


def test_dot_attention_may_start_from_the_normal_distribution():
    runs = planned.runs("correlation", "sst", "paper", encoders=["bilstm"], seeds=[0], query_init="normal")
    assert {run.attention: run.options for run in runs} == {"additive": (), "dot": (("query_init", "normal"),)}
