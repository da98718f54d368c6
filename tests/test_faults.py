"""What a sweep withstands: killed masters and jobs, full disks, closed caches."""

import os
import random
import resource
import shutil
import signal
import time
from pathlib import Path

import pytest
from faults import FORK, Sweep, finished, traces, wait_for_orphans, weights
from planned import report

from lib.atomic_write import alone
from lib.training import cache, train_all
from lib.training.trained import Corpora
from tools.sweep import plan
from tools.sweep.__main__ import main

KILLS = int(os.environ.get("KILLS", 0)) or 2  # make faults: 20
JOB = "tools.sweep.jobs"
# Three trainings that take seconds, in two jobs.
CHOSEN = {"encoders": "average", "attentions": "additive", "seeds": "0,1,2"}
GRID = ["correlation", "--trainings", "--jobs", "2"]
GRID += [word for pair in CHOSEN.items() for word in ("-p", *pair)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    """The cache of the grid, of the runs that the paper lists, trained in this process, as a notebook does it."""
    own = tmp_path_factory.getbasetemp()  # which processes that test side by side share
    home = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "undisturbed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CACHE_HOME", str(home))
        train_all(list(report("correlation", *CHOSEN.items()).runs(Corpora(None)).values()), processes=1)
    return home


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A folder with an empty cache in it, cache/."""
    monkeypatch.setenv("CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RESULTS_HOME", str(tmp_path / "results"))
    return tmp_path


@pytest.fixture
def trained(place, undisturbed) -> Path:
    """The same with a cache where everything is trained."""
    shutil.copytree(undisturbed, place / "cache")
    return place


def grid(place: Path, **more) -> Sweep:
    return Sweep([*GRID, "--output", str(place / "reports")], place / "output", **more)


def test_a_grid_killed_at_many_moments_ends_as_if_it_never_was(place, undisturbed):
    """Its master and a job of its in turn, once jobs are at work."""
    draw, expected = random.Random(2026), weights(undisturbed)
    for number in range(KILLS):
        if weights(place / "cache") == expected:
            wait_for_orphans(str(place))
            shutil.rmtree(place / "cache")
        before = traces(place / "cache")
        sweep = grid(place)
        sweep.wait_for(JOB)
        sweep.process.join(draw.uniform(0, 3))
        sweep.kill(draw, JOB, share=number % 2)
        sweep.ended()
        after = traces(place / "cache")
        assert before.items() <= after.items(), "what was finished was trained again"
    last = grid(place)
    assert last.ended() == 0, last.output
    assert weights(place / "cache") == expected and after.items() <= traces(place / "cache").items()
    assert not list((place / "cache" / ".working").glob("*/weights.safetensors"))


def test_an_interrupted_grid_ends_at_once_with_its_jobs_and_the_next_goes_on(place, undisturbed, monkeypatch):
    """Also where a shell would run what stands in the names of folders."""
    odd = place / "it's $(touch PWNED) \\x {a}"
    odd.mkdir()
    monkeypatch.setattr(plan, "PROJECT", odd / "project")
    plan.PROJECT.symlink_to(cache.PROJECT)
    for send, number in ((os.killpg, signal.SIGINT), (os.kill, signal.SIGTERM)):
        sweep = grid(odd)
        sweep.wait_for(JOB)
        send(sweep.process.pid, number)
        assert sweep.ended(60) == 130
        assert sweep.output.endswith("interrupted; what was finished is kept, and trainings go on from there\n")
        wait_for_orphans(str(place), 1)
    last = grid(odd)
    assert last.ended() == 0, last.output
    assert weights(place / "cache") == weights(undisturbed)
    assert not list(place.rglob("PWNED")) and not (cache.PROJECT / "PWNED").exists()


def test_a_full_disk_is_reported_and_leaves_nothing_that_looks_finished(place):
    def full():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))  # weights do not fit

    few = [*GRID, "-p", "seeds", "0", "--output", str(place / "reports")]
    sweep = Sweep(few, place / "output", full)
    assert sweep.ended() == 1
    assert "File too large" in sweep.output and "Traceback" not in sweep.output
    assert list(finished(place / "cache")) == []


def test_of_two_masters_the_second_ends_with_a_sentence_and_a_dead_ones_lock_is_free(trained, capsys):
    folder, ready = trained / "reports" / "work" / "sweep", FORK.Event()

    def hold():
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder / "master.lock"):
            ready.set()
            time.sleep(600)

    first = FORK.Process(target=hold)
    first.start()
    assert ready.wait(30)
    assert main([*GRID, "--output", str(trained / "reports")]) == 2
    out, error = capsys.readouterr()
    assert error.startswith("another sweep is at work in ") and len(error.splitlines()) == 1 and out == ""
    assert main([*GRID, "--plan", "--output", str(trained / "reports")]) == 0  # it does nothing, and need not wait
    assert capsys.readouterr().out.startswith("to do: 0 reports, and 0 trainings in 0 jobs")
    first.kill()
    first.join()
    assert main([*GRID, "--output", str(trained / "reports")]) == 0
    assert "0 trainings in 0 jobs" in capsys.readouterr().out
