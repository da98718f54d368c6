"""The parameters of notebooks, and the runs that they list."""

import planned
import pytest

import papers
from papers.settings import types
from tools.report.parameters import find_notebook, known_parameters


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


def test_erasure_takes_a_projection_for_every_model():
    runs = planned.runs("erasure", "planted-documents", projection="sparsemax", device="cpu")
    assert len({run.encoder for run in runs}) == 6 and {run.projection for run in runs} == {"sparsemax"}
