"""Sweeps: what is planned, what jobs are handed out, and what is printed."""

import io
import json
import os
from pathlib import Path
from threading import Event

import pytest
import torch
from planned import report, runs

from lib.training import Run, train_all, with_bases
from lib.training.trained import Corpora
from tools.sweep import jobs, plan
from tools.sweep.__main__ import arguments, main, reports_of
from tools.sweep.plan import Report, trainings

SMALL = (("encoders", "average"), ("attentions", "additive"), ("seeds", "0,1"))


@pytest.fixture
def store(tmp_path, monkeypatch) -> Path:
    """An empty cache, in a folder where nothing of the project is written; vectors of a file would take seconds."""
    for name in ("CACHE_HOME", "RESULTS_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("DATA_HOME", raising=False)
    return tmp_path


def test_the_seeds_of_a_sweep_are_those_of_a_report():
    for given, seeds in (("3", [0, 1, 2]), ("[3]", [3]), ("0,3", [0, 3])):
        (planned,) = reports_of(arguments(["correlation", "--seeds", given]))
        assert planned.values["seeds"] == report("correlation", ("seeds", given)).values["seeds"] == seeds


@pytest.mark.parametrize("notebook", ["correlation", "adversary", "sparsity", "erasure"])
def test_a_report_needs_the_papers_runs_with_their_bases(store, notebook):
    planned = report(notebook)
    expected = with_bases(runs(notebook, planned.settings["dataset"]))
    assert list(planned.runs(Corpora(None)).values()) == expected
    assert Report(planned.notebook, {"model": "mine.py:load"}).runs(Corpora(None)) == {}, "one's own is trained"


@pytest.mark.parametrize(
    ("given", "chosen"),
    [([("seeds", "0,1")], {"tying", "mlm"}), ([("delta", "1")], {"mlm"}), ([("delta", "1"), ("eta", "0.1")], set())],
)
def test_of_what_dev_chooses_those_to_choose_from_are_planned_and_of_all_else_all(store, given, chosen):
    planned = list(report("regularization", *given).runs(Corpora(None)).values())
    assert {run.variant for run in planned} == {"base", "frozen", "concat", "residual", "tying", "mlm", "adversary"}
    for run in planned:
        assert run.variant not in chosen or (run.seed == 0 and {"delta", "eta"} & dict(run.options).keys())
        assert not run.base or run.base.variant not in chosen, "what imitates a choice waits for it"


def test_every_missing_run_is_in_one_job_after_those_that_it_stands_on(store):
    lacking = [(one, one.runs(Corpora(None))) for one in map(report, ("correlation", "adversary"))]
    made = plan.plan(lacking, store, workers=3)
    training = {name: job for name, job in made["jobs"].items() if "runs" in job}
    names = [name for job in training.values() for name in job["runs"]]
    assert len(names) == len(set(names)), "a run that two reports need is trained once"
    assert set(names) == {name for _, missing in lacking for name in missing}
    job_of = {name: identity for identity, job in training.items() for name in job["runs"]}
    for one, missing in lacking:
        name_of = {run: name for name, run in missing.items()}
        for run, name in name_of.items():
            assert run.base is None or job_of[name_of[run.base]] in training[job_of[name]]["after"]
        assert {job_of[name] for name in missing} == set(made["jobs"][one.name]["after"])
    only = plan.plan(lacking, store, 3, trainings_only=True)
    assert only["jobs"] == training


def test_trainings_are_dealt_to_jobs_of_equal_size_by_stage():
    bases = [Run("planted", seed=seed) for seed in range(5)]
    above = [Run("planted", variant="adversary", base=base, seed=base.seed) for base in bases]
    missing = {str(run): run for run in (*bases, *above)}
    made = trainings(missing, {}, 3).values()
    assert [len(job["runs"]) for job in made] == [2, 2, 1] * 2
    assert all(len({bool(missing[name].base) for name in job["runs"]}) == 1 for job in made)
    assert trainings(missing, dict.fromkeys(missing, "other"), 2) == {}, "another report's jobs train them"


def test_a_line_is_printed_as_each_job_ends_and_failures_name_their_logs(tmp_path):
    job = {"after": [], "device": "cpu"}
    made = {"jobs": {"a1": job | {"runs": ["a"], "title": "planted bilstm"}, "r": job | {"title": "r"}}}
    for _ in range(2):
        plan.write(made, tmp_path)
        assert json.loads((tmp_path / "plan.json").read_text()) == made
        assert not list((tmp_path / "done").iterdir()), "marks of earlier plans go"
        (tmp_path / "done" / "a1").touch()
    (tmp_path / "logs" / "r.log").write_text("Traceback\nr failed: No data.\n more\n")
    terminal, ended = io.StringIO(), Event()
    ended.set()
    plan.report_progress(made, tmp_path, terminal, ended)
    assert terminal.getvalue() == "1 of 2 jobs, 0 s · planted bilstm\n"
    logs = f"logs: {tmp_path / 'logs'}, {tmp_path / 'snakemake.log'}"
    assert plan.failures(made, tmp_path) == ["r was not made: No data.", logs]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["corelation"], "adversary, correlation"),
        (["correlation", "--datasets", "sst3"], "planted"),
        (["correlation", "--on", "moon"], "here"),
        (["--jobs", "0"], "--jobs is '0'; allowed: a whole number from 1 up"),
        (["GPU_RUNS=abc"], "GPU_RUNS is 'abc'; allowed: a whole number from 1 up"),
    ],
)
def test_what_is_unknown_is_refused_in_one_sentence(store, capsys, monkeypatch, given, expected):
    monkeypatch.setenv("GPU_RUNS", given[0].partition("GPU_RUNS=")[2])
    try:
        code = main([*given, "--output", str(store)])
    except SystemExit as error:
        code = error.code
    lines = capsys.readouterr().err.splitlines()
    assert code == 2 and expected in lines[-1] and (len(lines) == 1 or lines[0].startswith("usage"))


def test_a_report_that_cannot_be_does_not_keep_others_from_the_plan(store, capsys):
    code = main(["correlation", "--datasets", "planted", "sst", "--plan", "--output", str(store)])
    out, error = capsys.readouterr()
    assert code == 1 and "to do: 1 report, and 12 trainings in " in out
    assert "correlation-sst: " in error and "set DATA_HOME" in error


def test_runs_for_a_gpu_are_planned_where_there_is_none_and_trained_nowhere_else(store, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    far, near = report("correlation", ("device", "cuda"), *SMALL), report("correlation", *SMALL)
    missing = far.runs(Corpora(None))
    assert {run.device_kind for run in missing.values()} == {"cuda"}
    with pytest.raises(ValueError, match="torch finds no GPU here; use 'cpu' or 'auto'"):
        train_all(list(missing.values()))
    devices = [{job["device"] for job in plan.plan([(one, missing)], store, 1)["jobs"].values()} for one in (far, near)]
    assert devices == [{"cuda"}, {"cpu"}]


def test_a_job_does_what_it_is_planned_for_and_says_so_where_the_plan_fits_no_more(store, monkeypatch, capsys):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    one, trained, done = report("regularization", ("seeds", "0")), [], []
    monkeypatch.setattr(jobs, "train", lambda run, *others: trained.append(run))
    monkeypatch.setattr("tools.report.run.make_report", lambda *given: done.append(given[0]))
    missing = one.runs(Corpora(None))
    made, folder = plan.plan([(one, missing)], store, 2), store / "sweep"
    plan.write(made, folder)
    for name in made["jobs"]:
        assert jobs.main(folder, name) == 0 and (folder / "done" / name).exists()
    assert set(trained) == set(missing.values()) and len(trained) == len(missing)
    assert done == [one.notebook]
    (identity, job), *_ = made["jobs"].items()
    plan.write(made | {"jobs": {identity: job | {"runs": ["gone-0123456789abcdef"]}}}, folder)
    assert jobs.main(folder, identity) == 1
    assert "data or code changed since it was planned; start again" in capsys.readouterr().err
    assert not (folder / "done" / identity).exists()
