"""Reports: what is refused, what a failure leaves, what a page is made of. In a browser: test_report_page.py."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from forked import Forked, kernel
from planned import runs

import notebooks
from lib.datasets import files
from lib.models import ENCODERS
from tools.console import start_command
from tools.report.__main__ import main
from tools.report.cells import Cells, figure, formula, json_for_html, log
from tools.report.page import kept_summary, write_index
from tools.report.parameters import Refused, find_notebook, given_parameters, report_name
from tools.report.run import fingerprint

FOUND = """from lib.notebook import HEADLINE
display({HEADLINE: {'lines': ['One.'], 'table': '', 'chart': None, 'own': False, 'shown': []}}, raw=True)"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("studies")
    notebooks.save(made / "small.ipynb", "print('counted')", FOUND)
    notebooks.save(made / "failing.ipynb", "## The hard part", "x = 0", "1 / x")
    notebooks.save(made / "killed.ipynb", "print('so far')", "## The hungry part", "import os\nos.kill(os.getpid(), 9)")
    notebooks.save(made / "leaving.ipynb", "## The end", "raise SystemExit(0)", "1")
    notebooks.save(made / "slow.ipynb", "## The slow part", "import time\ntime.sleep(600)")
    notebooks.save(made / "dataless.ipynb", "from lib.datasets import load\nload('sst', data_home='nowhere')")
    return made


@pytest.fixture(autouse=True)
def no_kept_tables(monkeypatch, tmp_path):
    """The summary is of what these tests make."""
    monkeypatch.setenv("RESULTS_HOME", str(tmp_path / "none"))


def report(folder: Path, *arguments: str) -> int:
    return main([*arguments, "--notebooks", str(folder), "--output", str(folder / "out")])


# what is refused


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["nothing"], "unknown notebook 'nothing'; known: dataless, failing, killed, leaving"),
        (["../small"], "unknown notebook '../small'; known: dataless"),
        (["small", "-p", "sead", "1"], "unknown parameter 'sead' of small; known: dataset, profile, seeds, encoders"),
        (["small", "-p", "model", "a.py"], "'model' of small (but of correlation, erasure, ground_truth); known: "),
        (["small", "-p", "profile", "huge"], "parameter 'profile' is 'huge'; allowed: quick, paper"),
        (["small", "-p", "seeds", "1,1"], "parameter 'seeds' is '1,1'; 1 is there 2 times; allowed: each"),
        (["small", "-p", "dataset", "<script>"], "unknown dataset '<script>'; known: "),
    ],
)
def test_what_is_unknown_is_refused_in_one_sentence(folder, capsys, arguments, expected):
    assert report(folder, *arguments) == 2
    error = capsys.readouterr().err
    assert expected in error and len(error.strip().splitlines()) == 1 and "Traceback" not in error


def test_without_a_name_the_known_ones_are_named_and_the_list_has_every_parameter(folder, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["--notebooks", str(folder)])
    assert "known: dataless, failing, killed, leaving" in capsys.readouterr().err
    notebooks.save(tmp_path / "small.ipynb")
    assert report(tmp_path, "--list") == 0
    assert "-p note 'plain'    any words" in capsys.readouterr().out


def test_values_are_read_by_the_settings_and_others_as_python_has_them(folder):
    given = [("seeds", "2"), ("epsilon", "5.5"), ("keep", "False"), ("note", "a word"), ("encoders", "[conv, gru]")]
    read = given_parameters(folder / "small.ipynb", given)
    assert read == {"seeds": [0, 1], "epsilon": 5.5, "keep": False, "note": "a word", "encoders": "[conv, gru]"}


def test_what_a_registry_knows_is_allowed_and_what_a_list_may_hold_stands_in_one_place(monkeypatch):
    """An encoder that is registered is a value of every notebook that lists encoders."""
    notebook = find_notebook("correlation")
    with pytest.raises(Refused, match="parameter 'encoders' has 'gru'; allowed: bilstm"):
        given_parameters(notebook, [("encoders", "gru")])
    monkeypatch.setitem(ENCODERS, "gru", ENCODERS["bilstm"])
    assert given_parameters(notebook, [("encoders", "gru")]) == {"encoders": ["gru"]}
    assert {run.encoder for run in runs("correlation", encoders="gru,conv")} == {"gru", "conv"}


def test_a_reports_name_shows_what_is_special_and_no_value_leaves_the_folder_or_meets_another(folder):
    study = folder / "small.ipynb"
    assert report_name(study, {"dataset": "sst", "profile": "paper", "draws": 100}) == "small-sst-paper"
    assert report_name(study, {"seeds": [0, 1], "data_home": "/a/b"}) == "small-planted-seeds=0+1"
    hostile = ["../../etc", "a/b", "a b", "a_b", "<script>", "", "é" * 300, "a" * 300, "a" * 301]
    names = [report_name(study, {"note": value}) for value in hostile]
    assert len(set(names)) == len(hostile)
    assert all(len(name) < 120 and not set(name) & set("/\\<> é") and ".." not in name for name in names)


# failures


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("failing", "cell 5 (The hard part) failed: ZeroDivisionError: division by zero"),
        ("killed", "cell 5 (The hungry part) failed: its kernel ended: out of memory, killed, or by os._exit"),
        ("leaving", "cell 4 (The end) failed: it ended the notebook, as sys.exit does"),
        ("dataless", "no folder 'sst' of data: looked for nowhere"),
    ],
)
def test_a_failing_notebook_is_named_and_its_old_page_stays(folder, capsys, monkeypatch, forked_kernels, name, reason):
    monkeypatch.delenv("DATA_HOME", raising=False)
    finished, log = folder / "out" / f"{name}-planted.html", folder / "out" / "work" / f"{name}-planted" / "run.log"
    finished.parent.mkdir(exist_ok=True)
    finished.write_text("<html>a report made earlier</html>")
    assert report(folder, name) == 1
    error = capsys.readouterr().err
    assert reason in error and "Traceback" not in error and "DataError" not in error
    assert str(log) in error and (name == "dataless" or log.read_text())
    assert finished.read_text() == "<html>a report made earlier</html>"


def test_a_kernel_that_dies_at_its_start_is_started_anew(folder, monkeypatch, forked_kernels):
    """As where another process took one of its ports meanwhile; "this" is a module that ends at once."""
    modules = iter(["this", "ipykernel_launcher"])
    start = lambda command, env, **_: kernel([*command[:2], next(modules), *command[3:]], env)  # noqa: E731
    monkeypatch.setattr("jupyter_client.provisioning.local_provisioner.launch_kernel", start)
    assert report(folder, "small", "-p", "note", "again") == 0 and not [*modules]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_in_one_line(folder, tmp_path, number):
    log = tmp_path / "log"
    process = Forked(command, ["slow", "--notebooks", str(folder), "--output", str(tmp_path)], log=log)
    while "· The slow part" not in log.read_text() and process.poll() is None:
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(number)
    assert process.wait() == 130
    lines = [line for line in log.read_text().splitlines() if line.strip()]
    assert lines[-1] == "interrupted; finished training runs are kept" and len(lines) <= 4, lines


def command(arguments: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    start_command()
    sys.stderr = sys.stdout
    raise SystemExit(main(arguments))


# a finished report


def test_a_report_is_made_once_and_again_when_something_changed(folder, capsys, forked_kernels):
    page = folder / "out" / "small-planted.html"
    assert report(folder, "small") == 0
    assert "counted" in capsys.readouterr().out
    first = page.stat().st_mtime_ns
    assert report(folder, "small") == 0
    assert "up to date" in capsys.readouterr().out and page.stat().st_mtime_ns == first
    notebooks.save(folder / "small.ipynb", "print('changed')")
    assert report(folder, "small") == 0
    assert page.stat().st_mtime_ns > first
    itself = folder / "small.ipynb"
    notebooks.save(itself, f"from pathlib import Path; Path({str(itself)!r}).open('a').write(' ')")
    assert report(folder, "small") == report(folder, "small") == 0
    assert "up to date" not in capsys.readouterr().out, "it read another file than it began with"
    assert not list((folder / "out").glob("*.part"))
    (folder / "half.html").write_text(page.read_text().partition("</body>")[0])
    assert kept_summary(folder / "half.html") is None and kept_summary(page)["notebook"] == "small"
    assert "small-planted.html" in (folder / "out" / "index.html").read_text()


def test_what_a_report_reads_counts_wherever_it_lies(folder, tmp_path, monkeypatch):
    """The kernel falls back from $DATA_HOME to data/raw, and runs in the project's folder."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    texts, words = project / "data" / "raw" / "sst" / "train.jsonl.gz", tmp_path / "words.npz"
    texts.parent.mkdir(parents=True)
    elsewhere.mkdir()
    monkeypatch.setenv("DATA_HOME", str(elsewhere))
    monkeypatch.setattr(files, "PROJECT", project)
    monkeypatch.chdir(tmp_path)
    chosen = {"dataset": "sst", "vectors": str(words)}
    marks = []
    for text, word in [("one", "a 1"), ("two", "a 1"), ("two", "a 2"), ("two", "a 2")]:
        texts.write_text(text)
        words.write_text(word)
        marks.append(fingerprint(folder / "small.ipynb", chosen))
    assert len(set(marks[:3])) == 3 and marks[2] == marks[3]
    chosen["vectors"] = "random"
    before = fingerprint(folder / "small.ipynb", chosen)
    words.write_text("a 3")
    assert fingerprint(folder / "small.ipynb", chosen) == before


def test_a_report_is_made_where_nobody_can_read_in_a_folder_of_any_name_and_names_no_folder(tmp_path, monkeypatch):
    folder = tmp_path / "{x}"
    folder.mkdir()
    notebooks.save(folder / "small.ipynb", FOUND)
    monkeypatch.setenv("RESULTS_HOME", "none")
    monkeypatch.chdir(folder)
    arguments = ["small", "-p", "vectors", str(folder / "mine.npz"), "--notebooks", ".", "--output", "out"]
    assert Forked(command, arguments, log="/dev/full").wait() == 0
    (page,) = folder.glob("out/small-*.html")
    assert "mine.npz" in (text := page.read_text()) and str(tmp_path) not in text


def test_whatever_else_lies_among_the_reports_is_left_out_and_what_a_foreign_one_says_is_text(tmp_path):
    kept = dict.fromkeys(("title", "dataset", "made"), notebooks.HOSTILE) | {"findings": [notebooks.HOSTILE, {}]}
    kept |= {"parameters": {"note": notebooks.HOSTILE}, "changed": ["note", "other", []]}
    sound = json.dumps(kept).replace("<", "\\u003c")
    for number, text in enumerate(["", "[]", "{", "1", f"<<<<<<< HEAD\n{sound}", '{"title": 1}', "[" * 10**5, sound]):
        page = f'<script type="application/json" id="summary">{text}</script></html>'
        (tmp_path / f"{number}.html").write_text(page)
    (tmp_path / "binary.html").write_bytes(bytes(range(256)))
    (tmp_path / "saved.html").mkdir()
    os.mkfifo(tmp_path / "pipe.html")
    index = write_index(tmp_path).read_text()
    assert index.count("<article") == 1 and 'href="7.html"' in index and "<script" not in index and "<img" not in index


# parts of a page


def test_json_cannot_end_its_element_and_formulas_become_mathml_and_let_nothing_through():
    text = json_for_html({"a": "</script><!--\u2028", "b": float("nan")})
    assert "<" not in text and "\u2028" not in text and "NaN" not in text
    assert "<mfrac>" in formula(r"\frac{a}{b}", "block")
    assert "<mtable" in Cells().markdown("\\begin{align}a &= b \\\\ c &= d\\end{align}")
    for evil in (notebooks.HOSTILE, rf"\text{{{notebooks.HOSTILE}}}", "\\broken{" + notebooks.HOSTILE):
        assert "<script" not in formula(evil, "inline") and "<img" not in formula(evil, "inline")


def test_markdown_keeps_raw_html_only_of_the_notebook_itself_and_headings_get_anchors_of_their_own():
    cells = Cells()
    assert "<details>" in cells.markdown("<details>more</details>")
    assert "<details>" not in cells.markdown("<details>more</details>", trusted=False)
    cells.markdown("## Same\n\n## Same\n\n## שלום")
    assert len({anchor for _, anchor, _ in cells.headings}) == 3


def test_a_log_is_folded_and_keeps_the_last_of_an_overwritten_line():
    assert '<pre class="log">a\n100%</pre></details>' in log("a\n10%\r20%\r100%\n")
    assert "\x1b" not in log("\x1b[31mred\x1b[0m") and log(" \n") == ""


SINGLE = [{"mark": "bar"}, {"layer": []}]
WIDE = [{"mark": "bar", "width": {"step": 9}}, {"hconcat": []}, {"mark": "bar", "encoding": {"column": {}}}]


@pytest.mark.parametrize("spec", [*SINGLE, *WIDE])
def test_a_chart_has_its_title_as_a_caption_and_a_single_view_is_as_wide_as_the_page(spec):
    html = figure(spec | {"title": {"text": ["two", "<lines>"], "subtitle": "sub"}}, 3)
    assert "<b>two &lt;lines&gt;.</b> <span>sub</span>" in html and "title" not in html.partition("json")[2]
    assert ('"width":"container"' in html) == (spec in SINGLE) and ("drawing wide" in html) == (spec in WIDE)
