"""Progress and provenance: what a reader sees while it runs, and afterwards."""

import subprocess
import time
from types import SimpleNamespace

from lib import progress, provenance
from lib.progress import Progress, counted, spoken
from lib.provenance import commit


def test_a_bar_is_text_on_standard_output_and_says_how_far_it_is(capsys, monkeypatch):
    with Progress("training", total=2) as steps:
        steps.advance("bilstm")
        steps.note("too soon")
        monkeypatch.setattr(progress, "EVERY", 0)
        steps.note("conv, 512 texts")
        progress.note("step 3 of 500")
        steps.advance("conv")
    progress.note("no bar is open")
    written = capsys.readouterr()
    assert not written.err
    states = [state for state in written.out.replace("\n", "\r").split("\r") if "2 [" in state]
    assert "1/2" in states[2] and "conv, 512 texts" in states[2] and "too soon" not in written.out
    assert "training:  50%" in states[1] and "1/2" in states[1] and "bilstm" in states[1]
    assert "2/2" in states[-1] and "conv" in states[-1] and "step 3 of" in states[3] and "no bar" not in written.out


def test_seconds_and_counts_in_words():
    assert [spoken(seconds) for seconds in (0.4, 59.6, 200, 7500)] == ["0 s", "1 min 0 s", "3 min 20 s", "2 h 5 min"]
    assert [counted(number, "seed") for number in (0, 1, 2)] == ["0 seeds", "1 seed", "2 seeds"]


def test_provenance_says_what_made_a_result():
    base, other = (SimpleNamespace(seed=seed, device_kind="cpu", base=None) for seed in (1, 0))
    runs = base, other, SimpleNamespace(seed=100, device_kind="cpu", base=base)
    started = provenance.start()._replace(seconds=time.time() - 5)
    table = provenance.provenance([SimpleNamespace(run=run) for run in runs], started)
    values = table.set_index("what")["value"]
    assert {"commit", "Python", "torch", "peak memory", "date"} <= set(values.index)
    assert values["seeds"] == "0, 1" and values["device"] == "cpu"
    assert 5 <= float(values["run time"].split()[0]) < 60


def test_the_commit_says_when_files_were_modified(tmp_path, monkeypatch):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "file").write_text("one")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "kept.csv").write_text("one")
    git("add", "file", "reports")
    git("commit", "-m", "one")
    assert len(clean := commit(tmp_path)) == 12
    (tmp_path / "reports" / "kept.csv").write_text("two")
    assert commit(tmp_path) == clean, "what a report before it kept does not alter this one's code"
    (tmp_path / "file").write_text("two")
    assert commit(tmp_path) == f"{clean}, modified"
    (tmp_path / "inner").mkdir()
    assert commit(tmp_path / "inner") == commit(tmp_path.parent) == "unknown", "a checkout around it is not its own"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit(tmp_path) == "unknown", "without git"
