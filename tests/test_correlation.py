"""What `correlation` trains, and what it computes of each text."""

import numpy as np
import pandas as pd
import planned
import torch
from small import batch, model

from lib import interventions
from lib.analysis import add_entropies, attention_weights, correlate, measure, violation_by_chance
from lib.importance import (
    attention_times_contribution,
    attention_times_norm,
    gradient,
    gradient_times_input,
    leave_one_out_with_sign,
    quantity,
)
from lib.quantity import tau_name
from lib.training import Run
from papers import correlation

LEAVE_ONE_OUT = ("attention", "leave_one_out_of_input")
PAIRS = (correlation.PAIR, LEAVE_ONE_OUT, *((name, LEAVE_ONE_OUT[1]) for name in correlation.GRADIENTS))


def untrained(seeds=4, texts=40, length=14) -> pd.DataFrame:
    """What is measured of untrained models, whose attention is far from uniform and whose logits are random."""
    measures = [attention_weights, interventions.permutation_effect(30), interventions.largest_change()]
    measures += [
        interventions.permutation_share_by_chance(30),
        interventions.agreement_by_chance(gradient_times_input),
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
    measured = correlation.with_violation_gaps(pd.concat(frames, ignore_index=True))
    measured = add_entropies(correlate(measured, PAIRS), ["attention"])
    return correlation.with_shares(correlation.with_gaps(measured))


def test_random_logits_do_as_chance_has_it():
    measured = untrained()
    bilstm, average = (measured[measured["encoder"] == name] for name in ("bilstm", "average"))
    assert abs(bilstm["adversary_beyond_chance"].mean()) < 0.03 < 0.5 < bilstm["adversary_share"].mean()
    for name in ("agreement_beyond_chance", "permutation_beyond_chance", "violation_beyond_chance"):
        assert abs(bilstm[name].mean()) < 0.1, name
    assert average["agreement_by_chance"].mean() > 0.3, "shuffled weights agree with the gradient of an average"
    assert average[tau_name(correlation.PAIR)].mean() > 0.3, "and so do its own"
    gap = measured[tau_name(PAIRS[2])] - measured[tau_name(LEAVE_ONE_OUT)]
    assert np.allclose(measured["gap_to_leave_one_out"], gap, equal_nan=True)


def test_the_norm_explains_a_value_where_shorter_vectors_bring_ours_to_it():
    names, ours = [tau_name(pair) for pair in PAIRS[:3]], {1.0: (0.3, 0.5, 0.1), 0.1: (0.9, 0.7, 0.1)}
    rows = [
        {"encoder": "conv", "attention": "dot", "quantity": name, "value": value, "vector_scale": norm}
        for norm, values in ours.items()
        for name, value in zip(names, values, strict=True)
    ]
    theirs = pd.DataFrame(rows[:3]).assign(value=[0.35, 0.73, 0.6], unit="tau-b")
    explained = correlation.explained_by_norm(pd.DataFrame(rows), theirs)
    assert explained["norm"].tolist() == ["the same", "explains it", "does not explain it"]
    assert explained["ours at 0.1"].tolist() == [0.9, 0.7, 0.1]
    part = correlation.explained_by_norm(pd.DataFrame(rows), theirs.assign(value=[0.3, 0.8, 0.1]))
    assert part["norm"].tolist() == ["the same", "explains a part", "the same"]
    between = correlation.explained_by_norm(pd.DataFrame(rows), theirs.assign(value=[0.6, 0.4, 0.0]))
    assert between["norm"].tolist() == ["explains it", "does not explain it", "does not explain it"]
    assert correlation.explained_by_norm(pd.DataFrame(rows), theirs.iloc[:0]).empty


def test_dot_attention_may_start_from_the_normal_distribution():
    runs = planned.runs("correlation", "sst", "paper", encoders=["bilstm"], seeds=[0], query_init="normal")
    assert {run.attention: run.options for run in runs} == {"additive": (), "dot": (("query_init", "normal"),)}


def test_every_model_is_trained_with_shorter_vectors_and_in_quick_one():
    scales = planned.runs("correlation/vector_scales", "planted", "paper", encoders=["average"], seeds=[4, 5])
    assert [run.option("vector_scale") for run in scales] == [0.3] * 4 + [0.1] * 4
    assert {(run.attention, run.seed) for run in scales} == {("additive", 4), ("additive", 5), ("dot", 4), ("dot", 5)}
    (one,) = planned.runs("correlation/vector_scales", "planted", "quick")
    assert (one.encoder, one.attention, one.seed, one.option("vector_scale")) == ("bilstm", "additive", 0, 0.1)
    (one,) = planned.runs("correlation/vector_scales", "planted", "quick", vector_scales=[1, 0.5])
    assert one.option("vector_scale") == 0.5
    assert not planned.runs("correlation/vector_scales", "planted", "paper", shorter_vectors=False)
