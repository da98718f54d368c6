"""The summary: sentences with numbers that hold or fall, README from the kept results, and its page in a browser."""

import re
from urllib.parse import unquote

import pandas as pd
import pytest
from pages import visit
from test_findings import effect_rows
from test_results import keep

from lib.provenance import PROJECT
from notebooks import HOSTILE as EVIL
from papers import PAPERS, published, results, show
from papers.effects import FINDINGS
from papers.judge import judge
from tools.summary import __main__ as command
from tools.summary import page as summary
from tools.summary.answer import Answer, Missing


@pytest.fixture
def small() -> Answer:
    """An answer of a few findings on SST and IMDb."""
    rows = [
        effect_rows("J1", [0.30, 0.31, 0.32], chance=0.05),
        effect_rows("J1", [0.61, 0.60, 0.62], chance=0.5, model="average + additive", encoder="average"),
        effect_rows("J1", [0.36, 0.37, 0.38], chance=0.07, dataset="imdb"),
        effect_rows("J6", [0.50, 0.52, 0.51], chance=0.1),
        effect_rows("J6", [0.10, 0.90, 0.50], chance=0.1, dataset="imdb"),
        effect_rows("J6", [0.60, 0.60, 0.60], chance=0.1, dataset="agnews", left_out="attention is uniform"),
        effect_rows("W1", [0.004], model="BiLSTM", attention="additive"),
        effect_rows("M3", [-0.2, -0.9, 0.5], se=0.0, model="BiLSTM"),
        effect_rows("S3", [0.8, 0.9, 0.85], model="FLAN-rnn", encoder="flan-rnn"),
    ]
    f1 = {"encoder": "bilstm", "attention": "additive", "projection": "softmax", "variant": "base", "layers": 1}
    f1 |= {"dataset": "sst", "quantity": "f1", "unit": "fraction", "value": 0.8012, "low": 0.79, "high": 0.812}
    values = published.compare(pd.DataFrame([f1]), published.table("jain2019", "sst"))
    return Answer(judge(pd.concat(rows)), values[values["theirs"].notna()])


def test_numbers_are_looked_up_by_the_ids_of_findings(small):
    assert small.interval("J1 sst") == ".31 [.29, .33]" and small.row("J1 sst")["runs"] == 3
    assert small.interval("W1 sst") == "+.004 (1 run)" and small.interval("S3 sst FLAN-rnn").startswith("2.34 [2.07, ")
    assert small.paper("J1 sst") == ".35" and small.paper("J1 sst average + additive") == ".61"
    assert small.ends("J6", "sst", percent=True) == "51" and small.row("J6 sst")["word"] == "yes"
    sides = [show.side(FINDINGS[name], "agnews") for name in ("W1", "S2", "J5c", "J1", "J7")]
    shown = [*sides, show.number(10.25, FINDINGS["S3"])]
    assert shown == ["within ±.01", "below .25", "above chance", "", "above −.05", "10.25"]
    assert small.ends("J1", "sst imdb") == ".31 to .37" and small.ends("J1", "sst imdb", "paper") == ".35 to .44"
    assert small.ends("J6", "sst imdb", percent=True) == "50 to 51" and small.ends("J1", "sst sst") == ".31"
    assert small.value("theirs", "sst", "f1", encoder="bilstm", attention="additive") == ".78"
    assert small.value("ours", "sst", "f1", encoder="bilstm", attention="additive") == ".80 [.79, .81]"
    for wrong in ("J2 sst", "J1 snli", "J1 sst conv"):
        with pytest.raises(Missing, match=wrong):
            small.row(wrong)
    with pytest.raises(Missing, match="f1"):
        small.value("ours", "imdb", "f1")


def test_a_sentence_stands_while_its_findings_have_their_words(small):
    sentence = "The most attended word is evidence."
    assert small.leans("J6 sst = yes, J6 imdb = can't tell", lambda: sentence) == sentence and small.failed == []
    assert small.leans("J6 sst = yes, J6 imdb = yes", lambda: f" {sentence} ") == ""
    assert small.failed == [f"J6 imdb: {sentence}"]
    assert small.leans("J6 agnews = yes", lambda: sentence) == "", "its model is left out"
    assert small.row("J6 agnews")["word"] == "" and len(small.failed) == 2
    assert small.leans("J6 snli = yes", lambda: sentence) == "" and "J6 snli" in small.failed[2]


@pytest.fixture(scope="module")
def kept() -> Answer:
    """The answer from the repository's kept results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RESULTS_HOME", str(results.FOLDER))
        return summary.answer()


def test_the_readme_is_what_the_kept_results_give_and_every_sentence_holds(kept, monkeypatch, capsys):
    """As make readme checks it."""
    monkeypatch.setattr(command, "answer", lambda: kept)
    assert command.main(["--check"]) == 0, capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(command, "RENDERED", PROJECT)
        assert command.main(["--check"]) == 1, "stale, though every sentence holds"
    turned = kept.found["word"].mask(kept.found["finding"].eq("J6") & kept.found["dataset"].eq("sst"), "no")
    monkeypatch.setattr(command, "answer", lambda: Answer(kept.found.assign(word=turned), kept.values))
    assert command.main(["--check"]) == 1
    out, wrong = capsys.readouterr()
    assert "README.md is not what the kept results give" in out and "J6 sst" in wrong


def test_the_readme_answers_in_120_words_of_which_each_paper_has_a_row(kept):
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    answer = re.split(r"\n!\[|\n\*[^*]", text.partition("\n")[2])[0]
    assert 40 < len(answer.split()) <= 120 and len(re.findall(r"\d", answer)) > 10
    rows = [line for line in text.partition("## The papers")[2].partition("##")[0].splitlines() if line.startswith("|")]
    assert all(f"(notebooks/{name}.ipynb)" in "".join(rows) for name in PAPERS)
    assert {line.count(" | ") for line in rows} == {4} and "nan" not in text and len(text.splitlines()) <= 120
    for path in [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *PROJECT.glob("docs/*.md")]:
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
            assert "://" in link or (path.parent / unquote(link)).exists(), f"{path.name} links to {link}"


def hostile(of: Answer) -> Answer:
    """With a dataset that would run where its name is not escaped."""
    rows = [effect_rows(name, [0.4, 0.5, 0.6], chance=0.1, dataset=EVIL) for name in ("J1", "J6", "S2", "T1")]
    evil = of.values[of.values["ours"].notna()].iloc[:3].assign(dataset=EVIL, quantity=EVIL, source=EVIL)
    return Answer(pd.concat([judge(pd.concat(rows)), of.found], ignore_index=True), pd.concat([of.values, evil]))


def test_the_markdown_has_every_finding_that_is_measured_and_names_the_others(kept):
    text = summary.markdown(kept)
    assert (results.FOLDER / "summary.md").read_text(encoding="utf-8") == text, "run python -m tools.summary"
    tables = re.findall(r"^\| \*\*(\w+)\*\*", text, re.MULTILINE)
    missing = re.findall(r"Not measured yet: (.*)\.", text)
    assert {*tables, *(missing[0].split(", ") if missing else ())} == set(FINDINGS) and len(tables) == len(set(tables))
    assert all(f"## {paper.title}" in text for paper in PAPERS.values())
    row = kept.row("J2 sst")
    assert f"{row['effect']:+.2f}".replace("0.", ".") in re.search(r"^\| \*\*J2.*", text, re.MULTILINE)[0]


def test_hostile_names_are_shown_on_the_page_and_never_run(kept, chromium, tmp_path):
    """In a browser without network, on a phone and dark: nothing runs or is asked for, both pictures are drawn."""
    path = tmp_path / "summary.html"
    path.write_text(summary.page(hostile(kept)), encoding="utf-8")
    assert "<script>" not in summary.markdown(hostile(kept))
    with visit(chromium, path, "dark", width=375) as seen:
        sheet = seen.page
        assert seen.wrong == [] and sheet.locator("svg.marks").count() == 2
        assert sheet.locator("main img, main script:not([type])").count() == 0
        assert sheet.evaluate("document.documentElement.scrollWidth") <= 375
        text = sheet.locator("main").inner_text()
        assert text.count(EVIL) >= 2 and kept.interval("J1 sst") in text
        assert all(sheet.get_by_role("heading", name=paper.title).count() == 1 for paper in PAPERS.values())
        assert "Partly: the top word often matters, the ranking says little." in sheet.locator(".answer").inner_text()
    with visit(chromium, summary.RENDERED / "summary.html") as seen:
        assert seen.wrong == [] and seen.page.locator("svg.marks").count() == 2, "that of the repository"


def test_it_is_a_sentence_without_results_else_of_the_main_runs_and_of_the_tables_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("RESULTS_HOME", str(tmp_path))
    text = summary.write_summary(tmp_path / "none").read_text(encoding="utf-8")
    assert "No results are kept yet" in text and "nan" not in text.partition("<main>")[2].partition("</main>")[0]
    assert len(pd.read_csv(tmp_path / "none" / "summary-values.csv")) == 1190
    made, pages = [], tmp_path / "reports"
    page = '<meta name="fingerprint" content="{}"></html>'
    monkeypatch.setattr(summary, "page", lambda of, mark: made.append(of) or page.format(mark))
    for runs in (1, 3):
        keep(dict.fromkeys(range(runs), 0.1), source=f"{runs}.npz")
        for _ in range(2):
            summary.write_summary(pages)
    assert [of.found["runs"].tolist() for of in made] == [[1], [3]]
