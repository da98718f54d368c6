"""The parameters of notebooks, and the runs that they list."""

import ast
import json
from typing import Any, get_args, get_origin

import planned
import pytest

import papers
from lib import datasets
from lib.profiles import PROFILES
from papers.settings import described
from tools.report.parameters import find_notebook


def test_every_run_is_listed_once_and_reads_as_many_texts_as_are_asked_for():
    runs = planned.runs("correlation", "planted", "quick", seeds=[3, 5], device="cpu")
    assert len(runs) == len(set(runs)) == 12 and {run.seed for run in runs} == {3, 5}
    assert {run.seed for run in planned.runs("correlation", seeds=2, encoders=["average"])} == {0, 1}
    for name in papers.PAPERS:
        runs = planned.runs(name, "imdb", "paper", train_texts=500)
        assert {one.data[2] for run in runs for one in (run, run.base or run)} == {(("train_texts", 500),)}, name


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"encoders": ["gru"]}, "'encoders' has 'gru'; allowed: bilstm, average, conv"),
        ({"encoders": ["conv", "conv"]}, "'conv' is there 2 times; allowed: each value once"),
        ({"attentions": []}, "'attentions' is .*at least 1"),
        ({"device": "tpu"}, "'device' is 'tpu'; allowed: auto, cpu, cuda"),
        ({"test_texts": 9}, "'planted' does not take test_texts; leave it out"),
        ({"seeds": [-1]}, "'seeds' has -1; input should be greater than or equal to 0"),
        ({"seeds": 2019}, "for that seed alone write .2019."),
        ({"projection": "soft"}, "unknown projection 'soft'; known: softmax"),
    ],
)
def test_wrong_choices_are_refused_in_a_sentence_with_what_is_allowed(wrong, message):
    with pytest.raises((KeyError, ValueError), match=message) as refused:
        papers.PAPERS["correlation"].settings.of(wrong)
    assert "\n" not in refused.value.args[0]


@pytest.mark.parametrize("name", papers.PAPERS)
def test_the_parameters_cell_of_a_notebook_is_the_settings_of_its_paper(name):
    settings = papers.PAPERS[name].settings
    cells = json.loads(find_notebook(name).read_text())["cells"]
    (cell,) = ("".join(cell["source"]) for cell in cells if "parameters" in cell["metadata"].get("tags", []))
    assert cell.splitlines() == [line(*setting) for setting in described(settings).items()]


def line(name: str, setting: Any) -> str:
    """A line of a parameters cell: `seeds: list[int] = None  # how many`."""
    default = list(setting.default) if isinstance(setting.default, tuple) else setting.default
    text = json.dumps(default) if isinstance(default, str | list) else repr(default)
    return f"{name}: {type_name(setting.annotation)} = {text}  # {setting.description}"


def type_name(kind: Any) -> str:
    first = next(iter(get_args(kind)), None)
    if get_origin(kind) is tuple:
        return f"list[{type_name(first)}]"
    return kind.__name__ if first is None else type_name(first)


def test_a_setting_may_be_text_as_a_command_line_has_it():
    erasure, sparsity = (papers.PAPERS[name].settings for name in ("erasure", "sparsity"))
    read = sparsity.of({"encoders": "bilstm", "strengths": "-3, 0.5", "adversary_epochs": "4"})
    assert (read.encoders, read.strengths, read.adversary_epochs) == (("bilstm",), (-3.0, 0.5), 4)
    assert erasure(seeds="3").seeds == erasure(seeds=3).seeds == (0, 1, 2)
    assert erasure(seeds="[3]").seeds == (3,) and erasure(seeds="0").seeds == (0,)


def test_what_is_not_given_is_the_choice_of_the_profile():
    for paper in papers.PAPERS.values():
        given, chosen = paper.settings(profile="paper"), described(paper.settings)
        assert all(setting.default not in ("", 0, ()) or setting.default is False for setting in chosen.values())
        assert given.seeds_or() == list(range(PROFILES["paper"].seeds))


@pytest.mark.parametrize("name", papers.PAPERS)
def test_every_notebook_asks_before_it_shows_words(name):
    code = [cell for cell in json.loads(find_notebook(name).read_text())["cells"] if cell["cell_type"] == "code"]
    nodes = [node for cell in code for node in ast.walk(ast.parse("".join(cell["source"])))]
    reached = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert not reached & {"tokens", "text", "words", "vocabulary", "encoded"}, "words reach a cell past tokens_shown"
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    asking = [call for call in calls if any(ast.unparse(argument) == "show_text" for argument in call.args)]
    shown = [call for call in calls if ast.unparse(call.func) == "datasets.tokens_shown"]
    assert asking and all(call in asking for call in shown)
    assert papers.PAPERS[name].settings.of({"show_text": "no"}).show_text is False
    one = (corpus := datasets.load("planted", "quick")).test.instances[0]
    assert datasets.tokens_shown(corpus, one) == one.tokens
    assert datasets.tokens_shown(corpus, one, False) == tuple(f"[{place + 1}]" for place in range(len(one.tokens)))
