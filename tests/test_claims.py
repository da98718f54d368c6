"""Claims, examples, tables, kept results and the list of runs."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import planned
import pytest

import papers
from lib import tables
from lib.analysis import examples, joined
from lib.charts.curves import sweep
from lib.quantity import tau_name
from papers.correlation_claims import EACH_OTHER, GRADIENT
from papers.settings import types
from tools.report.parameters import find_notebook, known_parameters

TAUS = [tau_name(pair) for pair in (GRADIENT, EACH_OTHER)]


def instances(gradient: dict, each_other=0.6, permutation=0.01, jsd=0.69, texts=60, seeds=4) -> pd.DataFrame:
    """Measured texts of two encoders whose attention agrees with the gradient as `gradient` says."""
    random = np.random.default_rng(0)
    frames = []
    for (encoder, tau), seed in ((pair, seed) for pair in gradient.items() for seed in range(seeds)):
        frame = pd.DataFrame({"instance": range(texts), "seed": seed, "encoder": encoder, "attention": "additive"})
        frame["dataset"], frame["projection"], frame["variant"], frame["layers"] = "planted", "softmax", "base", 1
        frame["label"] = frame["prediction"] = frame["instance"] % 2
        frame["probability"] = random.uniform(0, 0.4, texts) + 0.6 * frame["label"]
        frame["length"], frame["left_out"] = 10, [()] * texts
        for name, mean in zip(TAUS, (tau, each_other), strict=True):
            frame[name] = mean + random.normal(0, 0.1, texts)
        frame["permutation"], frame["adversary_exact_jsd"] = permutation, jsd
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def test_examples_follow_their_rule():
    frame = instances({"bilstm": 0.3})
    chosen = examples(frame, ("bad", "good"), far="adversary_exact_jsd")
    first = frame[frame["seed"] == 0]
    assert chosen["seed"].eq(0).all()
    assert chosen.iloc[0]["probability"] == first.loc[first["label"] == 0, "probability"].min()
    assert chosen.iloc[1]["probability"] == first.loc[first["label"] == 1, "probability"].max()
    sureness = (first["probability"] - 0.5).abs()
    assert chosen.iloc[2]["instance"] == first.loc[sureness.idxmin(), "instance"]
    assert "good" in chosen.iloc[1]["why"]


def test_examples_are_short_right_and_have_an_adversary():
    frame = instances({"bilstm": 0.3}, seeds=1)
    frame.loc[frame["probability"].idxmax(), "length"] = 61  # too long to read
    second = frame.loc[frame["length"] < 61, "probability"].idxmax()
    frame.loc[second, "prediction"] = 0  # wrong
    third = frame.loc[(frame["length"] < 61) & (frame["prediction"] == 1), "probability"].idxmax()
    frame.loc[third, "adversary_exact_jsd"] = np.nan  # left out
    allowed = frame[(frame["length"] < 61) & (frame["prediction"] == 1) & frame["adversary_exact_jsd"].notna()]
    farthest = allowed.index[3]
    frame.loc[farthest, "adversary_exact_jsd"] = 0.693
    chosen = examples(frame, ("bad", "good"), far="adversary_exact_jsd")
    assert chosen.index[1] == allowed["probability"].idxmax() and chosen.index[-1] == farthest
    assert examples(frame.assign(length=100), ("bad", "good")).shape[0] == 3, "long texts where there is no short one"


def test_joined_adds_columns_and_refuses_what_does_not_fit():
    frame = instances({"bilstm": 0.3})
    run = ["dataset", "encoder", "attention", "projection", "variant", "layers", "seed", "instance", "left_out"]
    more = frame[run].assign(extra=1.5, left_out=[(("extra", "why"),)] * len(frame))
    both = joined(frame, more)
    assert both["extra"].eq(1.5).all() and both["left_out"].iloc[0] == (("extra", "why"),)
    arrays = frame[run].assign(weights=[np.array([0.5, np.nan])] * len(frame), left_out=more["left_out"])
    weighed = joined(both, arrays)
    pd.testing.assert_frame_equal(joined(joined(weighed, more), arrays.copy(deep=True)), weighed)  # a cell run again
    with pytest.raises(ValueError, match="both tables hold extra"):
        joined(both, more.assign(extra=1.6))
    with pytest.raises(ValueError, match="not of the same runs"):
        joined(frame, more.iloc[::-1])


def test_a_table_says_once_what_is_the_same_and_escapes_the_rest():
    frame = pd.DataFrame({"dataset": ["<b>x</b>"] * 2, "quantity": ["f1", "auc"], "value": [0.12345, 1e-7]})
    html = tables.show(frame).data
    assert html.count("&lt;b&gt;x") == 1 and "<b>" not in html
    assert ">0.123<" in html and ">1e-07<".replace("-", "−") in html and ">F1<" in html
    assert tables.show(frame.iloc[:0], "None.").data == "<p>None.</p>"


def test_every_run_is_listed_once():
    runs = planned.runs("correlation", "planted", "quick", seeds=[3, 5], device="cpu")
    assert len(runs) == len(set(runs)) == 12 and {run.seed for run in runs} == {3, 5}
    assert {run.seed for run in planned.runs("correlation", seeds=2, encoders=["average"])} == {0, 1}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"encoders": ["gru"]}, "bilstm, average, conv"),
        ({"attentions": ["cosine"]}, "additive, dot"),
        ({"encoders": ["conv", "conv"]}, "each value once"),
        ({"attentions": []}, "at least one"),
        ({"device": "tpu"}, "auto, cpu, cuda"),
        ({"seeds": [1, 1]}, "each value once"),
        ({"seeds": [-1]}, "whole numbers from 0 up"),
        ({"profile": "huge"}, "quick, paper"),
    ],
)
def test_wrong_choices_are_refused_with_what_is_allowed(wrong, message):
    with pytest.raises((KeyError, ValueError), match=message):
        planned.runs(**{"notebook": "correlation", **wrong})


def test_the_parameters_of_every_notebook_are_the_settings_of_its_paper():
    for name, paper in papers.PAPERS.items():
        cell = known_parameters(find_notebook(name))
        settings = paper.settings.of({one.name: one.default for one in cell.values()})
        kinds = types(paper.settings)
        assert set(cell) <= set(kinds) and settings.dataset == cell["dataset"].default
        unset = [one.name for one in cell.values() if one.default in ("", [], 0)]
        assert all(not getattr(settings, one) or one == "attentions" for one in unset)


def test_a_setting_may_be_text_as_papermill_hands_it_over():
    erasure, sparsity = (papers.PAPERS[name].settings for name in ("erasure", "sparsity"))
    assert sparsity(encoders="bilstm", strengths="-3, 0.5", papers_epochs="yes").strengths == (-3.0, 0.5)
    assert erasure(seeds="3").seeds == erasure(seeds=3).seeds == (0, 1, 2) and erasure(seeds="[3]").seeds == (3,)
    for wrong, message in (
        ({"train_texts": -1}, "'train_texts' is a whole number from 0 up, not -1"),
        ({"common_support": "perhaps"}, "'common_support' is a yes or no"),
        ({"encoders": [3]}, "'encoders' is a list of texts; 3 is none"),
        ({"seeds": 2019}, "for that seed alone write .2019."),
    ):
        with pytest.raises(ValueError, match=message):
            erasure(**wrong)
    with pytest.raises(ValueError, match="'lambdas' is a list of numbers from 0 up; -1 is none"):
        sparsity(lambdas=[-1])


def test_a_parameter_that_a_notebook_does_not_have_is_refused_by_its_first_cells():
    """IPython's `In` has the cells that ran, papermill's among them."""
    settings = papers.PAPERS["correlation"].settings
    own = "mine: int = 3\ndataset: str = 'planted'  # a dataset"
    assert settings.of({"In": ["", own, "# Parameters\nmine = 4\nseeds = [1]\n", "other = 5"]}).dataset == "planted"
    with pytest.raises(ValueError, match=r"unknown parameter 'sedes'; known: dataset, data,"):
        settings.of({"In": ["", own, "# Parameters\nmine = 4\nsedes = [1]\n"]})


def test_a_sweep_draws_a_line_and_an_interval_for_each_quantity():
    rows = [
        {"setting": setting, "quantity": name, "value": 0.5, "low": 0.4, "high": 0.6}
        for setting in (0.1, 1)
        for name in TAUS
    ]
    chart = sweep(pd.DataFrame(rows), "setting", "Title", "See.", scale="log").to_dict()
    drawn = [row for rows in chart["datasets"].values() for row in rows if "series" in row]
    assert len(chart["layer"]) == 3 and {row["setting"] for row in drawn} == {0.1, 1}
    with pytest.raises(ValueError, match="nothing to draw"):
        sweep(pd.DataFrame(columns=["setting", "quantity"]), "setting", "Title", "See.")


def test_what_the_intervals_of_a_report_are_over():
    models = [SimpleNamespace(run=SimpleNamespace(seed=seed, encoder="bilstm")) for seed in (0, 1, 2, 2)]
    two, three = (papers.what_varies(some, False) for some in (models[:2], models))
    assert two.startswith("The intervals are over texts: 2 seeds of BiLSTM."), "two seeds do not say how far"
    assert three.startswith("The intervals are over texts and seeds: 3 seeds of BiLSTM.")
    assert "The verdicts are of 4 models alone, and the intervals over texts" in papers.what_varies(models, True)
