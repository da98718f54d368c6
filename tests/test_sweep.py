"""Sweeps: what is planned, what jobs are handed out, and what is printed."""

import json
from itertools import groupby
from pathlib import Path

import pytest
import torch
from planned import runs

from lib.training import Run, train_all, with_bases
from lib.training.trained import Corpora, entry_name
from tools.report import parameters
from tools.sweep import jobs, master, plan
from tools.sweep.__main__ import arguments, main, reports_of
from tools.sweep.plan import Report, Request, Training, Work, bundles, needed

SMALL = (("encoders", "average"), ("attentions", "additive"), ("seeds", "0,1"))


@pytest.fixture
def store(tmp_path, monkeypatch) -> Path:
    """An empty cache, in a folder where nothing of the project is written."""
    for name in ("CACHE_HOME", "RESULTS_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return tmp_path


def report(notebook: str, *pairs: tuple[str, str]) -> Report:
    path = parameters.find_notebook(notebook)
    return Report(path, parameters.given_parameters(path, list(pairs)))


@pytest.mark.parametrize(
    ("given", "seeds"), [("5", [0, 1, 2, 3, 4]), ("0,3", [0, 3]), ("[5]", [5]), ("0", [0]), ("1", [0])]
)
def test_a_number_of_seeds_is_so_many_and_a_list_is_itself_in_both_commands(given, seeds):
    (planned,) = reports_of(arguments(["correlation", "--seeds", given]))
    assert planned.values["seeds"] == report("correlation", ("seeds", given)).values["seeds"] == seeds


def test_jobs_are_counted_from_one(capsys):
    for given in ("0", "-1"):
        with pytest.raises(SystemExit):
            arguments(["--jobs", given])
        assert f"--jobs is {given}; allowed: a whole number from 1 up" in capsys.readouterr().err


@pytest.mark.parametrize("notebook", ["correlation", "adversary", "sparsity", "erasure"])
def test_a_report_needs_the_papers_runs_with_their_bases(notebook):
    found, chooses = needed(report(notebook).request)
    dataset = report(notebook).request.settings["dataset"]
    beside = {"correlation": ["correlation/vector_scales"]}
    parts = [notebook, *beside.get(notebook, [])]
    assert found == with_bases([run for part in parts for run in runs(part, dataset)]) and chooses == []


def test_of_what_dev_chooses_the_sweeps_come_first_and_given_values_leave_nothing_to_choose():
    swept, chooses = needed(report("regularization").request)
    assert chooses == ["delta", "eta"] and {run.variant for run in swept} == {"tying", "mlm"}
    whole, nothing = needed(report("regularization", ("delta", "1"), ("eta", "0.1")).request)
    assert nothing == [] and {"concat", "adversary"} < {run.variant for run in whole}
    some, eta = needed(report("regularization", ("delta", "1")).request)
    assert eta == ["eta"] and {run.variant for run in some} == {"mlm"}


def test_a_model_of_ones_own_needs_nothing_trained():
    request = report("correlation").request
    own = type(request)(request.notebook, request.settings | {"model": "mine.py:load"})
    assert needed(own) == ([], [])


def made_up_plan(store: Path, least: float, *names: str) -> dict:
    return plan.plan([(report(name), report(name).work({})) for name in names], store, least=least)


def test_every_missing_run_is_in_one_job_after_those_that_it_stands_on(store, monkeypatch):
    monkeypatch.delenv("DATA_HOME", raising=False)  # random vectors: those of a file take seconds for each report
    made = made_up_plan(store, 60, "correlation", "adversary")
    names = [name for job in made["jobs"].values() for name in job["runs"]]
    assert len(names) == len(set(names)), "a run that two reports need is trained once"
    found = {name for kind in ("correlation", "adversary") for name, *_ in report(kind).work({}).missing.values()}
    assert set(names) == found
    place = {name: identity for identity, job in made["jobs"].items() for name in job["runs"]}
    for run, (name, *_) in report("adversary").work({}).missing.items():
        bases = {report("adversary").work({}).missing[run.base].name} if run.base else set()
        assert {place[base] for base in bases} <= {*made["jobs"][place[name]]["after"], place[name]}
    for kind in ("correlation", "adversary"):
        assert {place[name] for name, *_ in report(kind).work({}).missing.values()} == set(
            made["reports"][report(kind).name]["needs"]
        )


def test_what_the_longest_chain_waits_for_has_the_highest_rank(store):
    jobs = {name: {"seconds": 10.0, "after": after} for name, after in (("a", []), ("b", ["a"]), ("c", []), ("d", []))}
    reports = {
        "long": {"needs": ["b", "c"], "seconds": 100.0, "later": 0.0},
        "sweep": {"needs": ["d"], "seconds": 20.0, "later": 300.0},
        "short": {"needs": ["c"], "seconds": 30.0, "later": 0.0},
    }
    plan.rank(jobs, reports)
    assert {name: job["rank"] for name, job in jobs.items()} == {"a": 120, "b": 110, "c": 110, "d": 330}
    made = made_up_plan(store, 60, "regularization", "erasure")
    ranks = {
        name: max(job["rank"] for job in made["jobs"].values() if job["report"] == name) for name in made["reports"]
    }
    assert ranks[report("regularization").name] > ranks[report("erasure").name], "what waits for dev begins first"


def test_bundles_are_of_one_stage_with_each_corpus_in_one_place_and_of_no_bundle_each_run_is_a_job():
    bases = [Run("planted", seed=seed) for seed in range(5)]
    others = [Run("planted", seed=seed, profile="paper") for seed in range(2)]
    above = [Run("planted", variant="adversary", base=base, seed=base.seed) for base in bases]
    missing = {run: Training(str(run), 25.0) for run in (*bases, *others, *above)}
    assert [len(bundle) for bundle in bundles(missing, 60)] == [3, 3, 1, 3, 2]
    assert all(len({bool(run.base) for run in bundle}) == 1 for bundle in bundles(missing, 60))
    read = [run.data for bundle in bundles(missing, 60) for run in bundle if not run.base]
    assert len(list(groupby(read))) == 2, "a corpus is read by as few jobs as can be"
    assert [len(bundle) for bundle in bundles(missing, 0)] == [1] * 12


def test_what_is_left_is_printed_with_an_estimate_and_each_job_once(tmp_path):
    job = {"runs": ["a"], "title": "planted bilstm", "seconds": 10}
    made = {"jobs": {"a1": job, "b2": job | {"title": "another"}}, "reports": {"r": {"seconds": 40, "later": 0}}}
    made |= {"trainings_only": False}
    plan.write(tmp_path, made)
    watch = master.Progress(tmp_path, 2)
    assert watch.news() == [] and watch.line(made).startswith("0 of 3 jobs") and "about 40 s left" in watch.line(made)
    (tmp_path / "trained" / "a1").write_text(json.dumps({"seconds": 20}))
    (line,) = watch.news()
    assert line.startswith("1 of 3 jobs, 0 s, about 1 min 20 s left") and line.endswith(
        "trained planted bilstm in 20 s"
    )
    assert watch.news() == []
    (tmp_path / "trained" / "b2").write_text(json.dumps({"seconds": 20}))
    (tmp_path / "made" / "r").write_text(json.dumps({"seconds": 80}))
    assert [line.split(",")[0] for line in watch.news()] == ["2 of 3 jobs", "3 of 3 jobs"]
    assert "left" not in watch.line(made)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["corelation"], "adversary, correlation"),
        (["correlation", "--datasets", "sst3"], "planted"),
        (["correlation", "--on", "moon"], "here"),
        (["correlation", "--profile", "huge"], "quick, paper"),
        (["erasure", "-p", "lambdas", "1"], "unknown parameter 'lambdas'"),
    ],
)
def test_what_is_unknown_is_refused_in_one_sentence(store, capsys, given, expected):
    assert main([*given, "--output", str(store)]) == 2
    error = capsys.readouterr().err
    assert expected in error and len(error.splitlines()) == 1


def test_a_report_that_cannot_be_does_not_keep_others_from_the_plan(store, capsys, monkeypatch):
    monkeypatch.delenv("DATA_HOME", raising=False)
    code = main(["correlation", "--datasets", "planted", "sst", "--plan", "--output", str(store)])
    out, error = capsys.readouterr()
    assert code == 1 and "to do: 1 report, and 13 trainings" in out
    assert "correlation-sst: " in error and "set DATA_HOME" in error


def test_the_plan_of_ones_own_text_says_how_it_was_read(store, tmp_path, capsys):
    rows = [f"{word} film number {number},{word}" for number in range(30) for word in ("good", "bad")]
    (tmp_path / "my.csv").write_text("\n".join(["review,stars", *rows]))
    columns = ["-p", "text_column", "review", "-p", "label_column", "stars"]
    given = ["correlation", "erasure", "-p", "data", str(tmp_path / "my.csv"), *columns, "--output", str(store)]
    assert main([*given, "--plan"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "In my.csv 'review' is the text, 'stars' is the label." and out.count(out[0]) == 1
    assert out[-2] == "train 42 texts, dev 10 texts, test 8 texts; classes: bad (30), good (30)"
    assert out[-1].startswith("to do: 2 reports")


def test_a_job_whose_plan_fits_no_more_says_so(store, capsys):
    folder = store / "sweep"
    made = made_up_plan(store, 0, "erasure")
    (identity, job), *_ = made["jobs"].items()
    plan.write(folder, made | {"jobs": {identity: job | {"runs": ["gone-0123456789abcdef"]}}})
    assert jobs.main(["train", str(folder), identity]) == 1
    assert "data or code changed; start again" in capsys.readouterr().err
    assert not (folder / "trained" / identity).exists()


def test_marks_of_earlier_plans_are_removed(tmp_path):
    empty = {"jobs": {}, "reports": {}}
    plan.write(tmp_path, empty)
    for kind in ("trained", "made", "chosen"):
        (tmp_path / kind / "old.json").write_text('{"jobs": {"old": 1}}')
    plan.write(tmp_path, empty)
    assert plan.read(tmp_path) == empty and not list(tmp_path.glob("*/old.json"))


def test_a_work_without_anything_missing_needs_no_job():
    work = Work({}, [], 5.0, "cpu")
    made = plan.plan([(report("erasure"), work)], Path())
    assert made["jobs"] == {} and made["reports"][report("erasure").name]["needs"] == []


def test_runs_for_a_gpu_are_planned_where_there_is_none_and_trained_nowhere_else(monkeypatch, store):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    planned = report("correlation", ("device", "cuda"), *SMALL).work({})
    assert {run.device_kind for run in planned.missing} == {"cuda"} and planned.device == "cuda"
    with pytest.raises(ValueError, match="torch finds no GPU here; use 'cpu' or 'auto'"):
        train_all(list(planned.missing))
    here = report("correlation", *SMALL).work({})
    assert {run.device_kind for run in here.missing} == {"cpu"} and here.seconds > planned.seconds
    long, short = (sum(one.seconds - 0.5 for one in work.missing.values()) for work in (here, planned))
    assert long == pytest.approx(plan.SPEED["cuda"] * short)


def test_a_job_trains_what_dev_has_chosen_also_where_the_choice_was_made_before_the_plan(store, monkeypatch):
    one, data = report("regularization", ("seeds", "0")), Corpora(None)
    after = Request(one.request.notebook, one.request.settings | {"delta": [0.5], "eta": [0.5]})
    trained, choices = [], []
    monkeypatch.setattr(jobs, "train", lambda run, *others: trained.append(run))
    monkeypatch.setattr(jobs.plans, "chosen_on_dev", lambda *given: choices.append(given) or after)
    monkeypatch.setattr(jobs.cache, "finished", lambda name: True)
    planned = {"reports": {"one": {"notebook": "regularization.ipynb", "settings": one.request.settings}}}
    (swept, _), (whole, _) = needed(one.request), needed(after)
    for some, chosen in ((swept[:1], 0), ([run for run in whole if run not in swept][:2], 1)):
        names = [entry_name(run, data.of(run), None) for run in some]
        jobs.train_planned(planned, {"report": "one", "runs": names})
        assert trained == some and len(choices) == chosen, "nothing is chosen for what dev chooses from"
        trained.clear()
    for finished, chosen in ((True, 2), (False, 2)):
        monkeypatch.setattr(jobs.cache, "finished", lambda name: finished)  # noqa: B023
        with pytest.raises(RuntimeError, match="other is not needed any more"):
            jobs.train_planned(planned, {"report": "one", "runs": ["other"]})
        assert len(choices) == chosen, "dev cannot choose before what it chooses from is trained"
