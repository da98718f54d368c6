"""The summary: verdicts by claim and dataset, published values with ours, which study counts, and its page."""

import csv
import json
import re
from collections import Counter
from dataclasses import replace
from html import unescape
from io import StringIO
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest
from IPython.core.formatters import DisplayFormatter
from nbformat.v4 import new_code_cell, new_notebook, new_output
from pages import visit

import notebooks
from lib.notebook import Kept
from lib.provenance import PROJECT
from lib.quantity import RUN_COLUMNS
from papers import PAPERS, Claim, published, results
from papers.claims import CONTRAST, EVIDENCE, QUESTIONS, anchor, by_their_numbers
from tools.report.__main__ import main
from tools.report.execute import Failed
from tools.report.page import kept, page
from tools.summary import studies as summary
from tools.summary.__main__ import RENDERED, markdown, picture, readme
from tools.summary.answers import Tables, answer, sentence, sides, that_count
from tools.summary.claims import CELL, by_verdict, cells, controlled, in_words, totals, typical, verdicts
from tools.summary.page import FILES, found_in, studies_of, write_summary
from tools.summary.values import INCOMPLETE, counts, unexplained, values

KEY = ("bilstm", "additive", "softmax", "base", 1)
NAN = float("nan")
TAU = "kendall_tau_attention_vs_gradient_times_input"


def row(quantity: str = TAU, value: float = 0.36, unit: str = "tau-b", dataset: str = "sst", key=KEY, **more) -> dict:
    named = dict(zip(RUN_COLUMNS, (dataset, *key), strict=True))
    named |= {"quantity": quantity, "value": value, "unit": unit}
    return named | {"low": value - 0.02, "high": value + 0.02} | more


RISING = (0.2, 0.21, 0.19, 0.22, 0.18)  # so many seeds that their spread is not pooled over models
VALUES = {"supported": RISING, "contradicted": tuple(-value for value in RISING), "open": (0.3, -0.2, 0.2, 0.3, -0.1)}


def claim(short: str, paper: str = "jain2019") -> Claim:
    stated = ("section 4", "direction", 0.05, "of the texts", "BiLSTM", "chance gives 0", "it falls")
    return Claim(paper, short, f"That {short}", *stated)


CLAIMS = {short: claim(short) for short in ("a", "b", "easily moved", "a|b <b>", 'a, "b"\n', notebooks.HOSTILE)}


@pytest.fixture(autouse=True)
def claims_of_the_tests(monkeypatch):
    for name, paper in (("correlation", "jain2019"), ("regularization", "tutek2020")):
        claims = {short: claim(short, paper) for short in CLAIMS}
        monkeypatch.setitem(PAPERS, name, replace(PAPERS[name], claims=claims))


def flat(by_question) -> list[str]:
    """The texts of the rows of `Asked`; each test on a line of its own."""
    return [
        text for one in by_question for text in (one.question.asked, one.short, *(f"\n{test}" for test in one.tests))
    ]


def effect(short: str, word: str, model: str = "BiLSTM", paper: str = "jain2019", **more) -> pd.DataFrame:
    """The evidence of five seeds whose answer is `word`."""
    more = {"se": 0.001, "n": 400} | more
    return claim(short, paper).evidence(model, dict(enumerate(VALUES[word])), **more)


def csv_text(table: pd.DataFrame, seeds: str) -> str:
    made = {"commit": "abc", "run_seeds": seeds, "code": results.training_code(results.CODE)}
    for name, value in made.items():
        table = table.assign(**{name: table[name].fillna(value) if name in table else value})
    return table.to_csv(index=False)


def texts_of(rows, evidence, seeds: str) -> list[str]:
    evidence = pd.concat(evidence) if len(evidence) else pd.DataFrame(columns=EVIDENCE)
    return [csv_text(pd.DataFrame(list(rows) or None), seeds), csv_text(evidence, seeds)]


def study(rows=(), evidence=(), notebook="correlation", dataset="sst", seeds="0 1", profile="paper", **about):
    return summary.study(notebook, dataset, *texts_of(rows, evidence, seeds), profile, **about)


def ran_notebook(rows, evidence, dataset: str, seeds: str = "0 1"):
    """A notebook that ran, whose last cell's line is what `papers.results.keep` returns."""
    texts = dict(zip(("values", "evidence"), texts_of(rows, evidence, seeds), strict=True))
    shown, _ = DisplayFormatter().format(Kept("not kept", {"dataset": dataset} | texts))
    return new_notebook(cells=[new_code_cell("keep", outputs=[new_output("execute_result", data=shown)])])


def report(folder: Path, name: str, rows, claims, dataset="planted", notebook="correlation", **parameters) -> Path:
    """A finished report's page."""
    about = {
        "file": f"{name}.html", "notebook": notebook, "title": name, "fingerprint": "f", "dataset": dataset,
        "parameters": {"profile": "quick"} | parameters, "changed": list(parameters), "findings": [], "commit": "abc",
        "versions": "", "made": "2026-01-01 00:00 UTC", "seconds": 1.0,
    }  # fmt: skip
    path = folder / f"{name}.html"
    path.write_text(page(ran_notebook(rows, claims, dataset), about, []), encoding="utf-8")
    return path


@pytest.fixture
def nowhere(tmp_path) -> Path:
    """A folder of kept tables without any."""
    (tmp_path / "kept").mkdir()
    return tmp_path / "kept"


# claims


def test_a_cell_counts_the_models_with_each_verdict():
    rows = pd.DataFrame({"verdict": ["open", "supported", "open", "contradicted"], "witness": "good", "reason": ""})
    assert in_words(rows.assign(witness=["weak", "good", "good", "good"])).endswith("2 open (1 by a weak witness)")
    none = rows.assign(witness=["good", "weak", "good", "good"], verdict=["open", "no verdict", "open", "open"])
    assert in_words(none) == "3 of 4 open, 1 no verdict", "a weak witness without a verdict counts as no verdict"
    assert in_words(rows) == "1 of 4 supported, 1 contradicted, 2 open"
    assert in_words(rows[rows["verdict"] == "open"]) == "open for both"
    assert in_words(rows.iloc[1:2]) == "supported"
    beside = rows.assign(verdict=["contrast", "supported", "contrast", "supported"])
    assert in_words(beside) == "supported for both; 2 as contrast"
    assert in_words(beside.iloc[::2]) == "2 as contrast"
    assert by_verdict(rows) == dict(Counter(rows["verdict"]))


def test_paper_goes_before_quick_then_more_seeds_then_the_newest_and_altered_last():
    wanted = [
        study([row()], seeds="0 1 2"),
        study([row()], seeds="0"),
        study([row()], profile="quick", seeds="0 1 2 3"),
        study([row()], profile="quick", page="new.html", made="2026-02-01"),
        study([row()], profile="quick", page="old.html", made="2026-01-01"),
        study([row()], profile="quick", made="2026-03-01"),
        study([row()], seeds="0 1 2 3 4 5", altered=("projection",)),
    ]
    assert summary.preferred(reversed(wanted)) == wanted


def test_each_model_of_a_claim_is_decided_by_the_best_study_that_has_it():
    few = study([row()], [effect("a", "supported", "one"), effect("a", "supported", "two")])
    many = study([row()], [effect("a", "contradicted", "two"), effect("a", "open", "three")], "correlation", "sst",
                 "0 1 2", "quick")  # fmt: skip
    other = study([row()], [effect("b", "open", paper="tutek2020")], "regularization", "20news")
    found = verdicts([many, other, few]).set_index(["short", "dataset", "model"])["verdict"]
    assert found.to_dict() == {
        ("a", "sst", "one"): "supported",
        ("a", "sst", "two"): "supported",
        ("a", "sst", "three"): "supported",  # of these models: only texts vary in profile quick
        ("b", "20news", "BiLSTM"): "open",
    }
    assert verdicts([]).empty


def test_false_discoveries_are_controlled_over_all_verdicts_open_ones_too():
    """Benjamini & Yekutieli (2001) by hand: p(i) m (1 + 1/2 + ... + 1/m) / i, and no more than that of a larger p."""
    words = ["supported", "contradicted", "open", "negligible", "open", CONTRAST, "no verdict", "open"]
    ps, seeds = [0.0005, 0.02, 0.4, 0.004, NAN, 1e-9, NAN, 0.25], [5, 5, 5, 5, 5, 5, 5, 2]
    table = {"verdict": words, "p": ps, "seeds": seeds, "reason": "", "witness": "good", "stale": ""}
    found = controlled(pd.DataFrame(table))
    factor = 4 * (1 + 1 / 2 + 1 / 3 + 1 / 4)  # the open ones without a p, or of two runs, are no tests
    wanted = [0.0005 * factor, 0.02 * factor / 3, 0.4 * factor / 4, 0.004 * factor / 2, NAN, NAN, NAN, NAN]
    assert found["adjusted"].tolist() == pytest.approx(wanted, nan_ok=True)
    assert found["passes"].tolist() == [True, False, False, True, False, False, False, False]
    assert {one["word"]: one["fails"] for one in totals(found)} == {
        "supported": 0, "contradicted": 1, "negligible": 0, "open": 0, "contrast": 0, "no verdict": 0
    }  # fmt: skip
    assert controlled(found.iloc[-3:])["adjusted"].isna().all()


def test_runs_that_models_share_are_not_added():
    first = pd.Series({"kind": "most runs"})
    for effects, seeds, shown in (
        ((1.0, 2 / 3), (3, 3), "2 to 3 of 3"),
        ((2 / 3, 2 / 3), (3, 3), "2 of 3"),
        ((1.0, 0.6), (3, 5), "3 of 3, 3 of 5"),
    ):
        assert typical(pd.DataFrame({"effect": effects, "seeds": seeds}), first) == shown


def test_a_verdict_passes_or_not_by_how_many_others_there_are():
    values = (0.2, 0.12, 0.28, 0.15, 0.25)  # p of about .001
    one = claim("a").evidence("one", dict(enumerate(values)), se=0.001, n=400)
    alone = verdicts([study(evidence=[one])]).iloc[0]
    assert alone["verdict"] == "supported" and alone["passes"] and alone["adjusted"] == pytest.approx(alone["p"])
    others = [effect("b", "open", f"open {number}") for number in range(40)]
    among = verdicts([study(evidence=[one, *others])]).set_index("model").loc["one"]
    assert among["verdict"] == "supported" and not among["passes"] and among["p"] == pytest.approx(alone["p"])


def test_rows_of_other_training_code_are_stale_and_present_ones_are_preferred():
    old, new = effect("a", "supported").assign(code="000000000000"), effect("a", "supported", "two")
    found = verdicts([study([row()], [old, new])]).set_index("model")["stale"]
    assert found.to_dict() == {"BiLSTM": "stale", "two": ""}
    stale, present = study([row() | {"code": "0"}], seeds="0 1 2"), study([row()])
    assert stale.stale and not present.stale and summary.preferred([stale, present]) == [present, stale]


def test_evidence_on_what_is_no_claim_any_more_is_left_out():
    gone = effect("a", "supported").assign(short="was claimed")
    assert verdicts([study(evidence=[gone, effect("b", "supported")])])["short"].tolist() == ["b"]
    assert verdicts([study(evidence=[gone])]).empty


@pytest.mark.parametrize(
    ("kind", "printed", "word"),
    [("direction", -0.2, "against it"), ("little", 0.04, "for it"), ("little", -0.06, "against it"),
     ("at least", 0.04, "against it"), ("trend", 0.01, "for it"), ("direction", 0.0, "neither"),
     ("little", 0.891 - 0.941, "neither")],
)  # fmt: skip
def test_by_their_own_numbers_it_is_the_sign_alone(kind, printed, word):
    assert by_their_numbers(kind, 0.05, printed) == f"{word} ({printed:+.3g})"
    assert by_their_numbers(kind, 0.05, NAN) == ""


# values


def test_what_is_different_is_counted_and_named_until_a_cause_is_on_record(monkeypatch):
    far = study([row(value=0.9, sd_seeds=0.001, seeds=3)], seeds="0 1 2")
    found = values([far])
    numbers = counts(found, "paper", "dataset").set_index(["paper", "dataset"]).loc[("jain2019", "sst")]
    assert numbers[["ours", *published.OUTCOMES, "explained"]].tolist() == [1, 0, 1, 0, 0]
    named = {
        "Jain & Wallace 2019, sst": ["BiLSTM · additive · softmax: attention / gradient × input 0.351, ours 0.900"]
    }
    assert unexplained(found) == named and named["Jain & Wallace 2019, sst"][0] in markdown(Tables.of([far]))
    known = found[found["ours"].notna()][published.PLACE].assign(cause="a cause")
    monkeypatch.setattr(published, "differences", lambda: known)
    found = values([far])
    assert counts(found, "paper")["explained"].sum() == 1 and unexplained(found) == {}
    tried = known.assign(cause="Not explained. Tried: other words; it gave the same")
    monkeypatch.setattr(published, "differences", lambda: tried)
    found = values([far])
    assert counts(found, "paper")["explained"].sum() == 0 and unexplained(found) == named


def test_every_published_value_is_counted_whether_there_is_one_of_ours_or_not():
    """Counted a second way: by the csv module, what stands in two tables once, and for one value by hand."""
    with published.SOURCE.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    found = values([study([row()], profile="quick")])
    numbers = counts(found, "paper", "dataset").set_index(["paper", "dataset"])
    unique = {tuple(line[name] for name in ("paper", *published.KEYS)) for line in lines}
    assert numbers["published"].to_dict() == dict(Counter(key[:2] for key in unique))
    assert found[["paper", "table", "quantity"]].values.tolist() == [
        [line["paper"], line["table"], line["quantity"]] for line in lines
    ]
    assert numbers["ours"].sum() == 1 and numbers.loc[("jain2019", "sst"), ["same", "quick"]].tolist() == [1, 1]
    nothing = counts(values([]).assign(all=""), "all").iloc[0]
    assert nothing["published"] == len(unique) == 1086 and nothing["ours"] == nothing["open"] == 0
    assert len(lines) == 1140 and nothing["out_of_reach"] == 82


def test_a_papers_values_come_from_its_own_notebook_and_its_best_study():
    f1 = row("f1", 0.8, "fraction")
    ours = [
        study([f1, row(value=0.1)], profile="quick", seeds="0 1 2", page="quick.html"),
        study([f1 | {"value": 0.9}]),
        study([f1 | {"value": 0.7}], notebook="regularization"),
    ]
    found = values(ours).dropna(subset="ours").query("dataset == 'sst'")
    assert found[found["paper"] == "jain2019"].set_index("quantity")["ours"].to_dict() == {"f1": 0.9, TAU: 0.1}
    assert found[found["quantity"] == TAU]["report"].tolist() == ["quick.html"]
    assert set(found[found["paper"] == "tutek2020"]["ours"]) == {0.7} and "wiegreffe2019" not in set(found["paper"])


def test_what_the_papers_name_otherwise_finds_its_partner():
    """Each rule of the papers' partners against the cells of the notebooks that say the same."""
    key, of_lambda = (*KEY[:3], "adversary", 1), {"trains": "all", "lambda": 1}
    rows = [row("tvd_half", 0.01, "fraction", key=key, **of_lambda)]
    rows += [
        row(name, value, "fraction", key=key, trains="chosen") for name, value in (("tvd_half", 0.02), ("tvd", 0.9))
    ]
    rows += [row("f1", 0.6, "fraction", key=("average", "additive", "softmax", "guide_uniform", 1))]
    found = values([study(rows, notebook="adversary")]).dropna(subset="ours")
    assert found.set_index(["table", "quantity"])["ours"].to_dict() == {("table4", "tvd"): 0.02, ("table3", "f1"): 0.6}
    frozen = {"trains": "attention", "key": (*KEY[:3], "adversary_frozen", 1)}
    rows = [row("jsd", number, "nats", **frozen, **{"lambda": number}) for number in (0.2, 0.6)]
    slope = row("entropy_of_gradient_of_input", NAN, "fraction", key=("bilstm", "additive", "sparsegen", "base", 1))
    rows += [slope | {"tau": -0.5, "tau_low": -1, "tau_high": 0}, row("accuracy", 0.8, "fraction", rate="fast")]
    found = values([study(rows, notebook="sparsity")]).dropna(subset="ours")
    assert found.set_index("table")["ours"].to_dict() == {"table5": 0.6, "table2": -0.5}
    flips = [row("flip_both", share, "fraction", "yelp", ("han-rnn", *KEY[1:]), ranking="attention", way=way)
             for share, way in ((0.1, "paper"), (0.2, "authors_code"))]  # fmt: skip
    found = values([study(flips, notebook="erasure", dataset="yelp")]).dropna(subset="ours")
    assert found["ours"].tolist() == [0.2]


def test_the_kept_tables_have_the_partners_that_their_notebooks_found():
    """All that is published of SST and within reach has ours beside it, and no more than that."""
    kept = counts(values(summary.kept(summary.FOLDER)), "paper", "dataset")
    assert kept.set_index(["paper", "dataset"]).loc[("jain2019", "sst"), "ours"] == 48
    ours, sizes = (kept[kept["dataset"] == "sst"].set_index("paper")[name] for name in ("ours", "out_of_reach"))
    published_of = kept[kept["dataset"] == "sst"].set_index("paper")["published"]
    assert (ours == published_of - sizes).all()


def test_the_readme_answers_from_the_verdicts_and_marks_what_is_weak_stale_or_could_be_chance():
    place = "<!-- answer -->old<!-- end --> and <!-- papers -->old<!-- end --> more"
    assert "Not run yet." in readme(place, Tables.of([])) and "old" not in readme(place, Tables.of([]))
    found = [effect("a", "supported", "one"), effect("a", "supported", "two"), effect("b", "open", "two", within=False)]
    found += [effect("b", "contradicted", "one", witness="weak").assign(code="0")]
    text = readme(place, Tables.of([study([row()], found)]))
    assert text.startswith("<!-- answer -->\n\n") and text.endswith("\n\n<!-- end --> more")
    assert "So far, 1 test of the papers' own claims (sst): 1 supported, 0 contradicted." in text
    assert "Not settled: no test is conclusive.\n\n" in text
    assert "1 older result needs rerunning. Of " in text
    tests = "1 supported, 0 undecided, 0 contradicted"
    assert f"| “That a” is supported on sst: +0.20 of the texts in each of 2 models. | {tests} |" in text
    old = readme(place, Tables.of([study([row()], found[-1:])]))
    assert (
        "Not settled: training has changed" in old
        and "By the older runs, 1 test of the papers' own claims (sst)" in old
    )
    assert "“That b” is contradicted on sst for one (weak witness, stale): -0.20 [-0.22, -0.18] of the texts." in old
    close = claim("a").evidence("one", dict(enumerate((0.2, 0.12, 0.28, 0.15, 0.25))), se=0.001, n=400)
    others = [effect("b", "open", f"open {number}") for number in range(40)]
    assert "“That a” is supported on sst for one (could be chance): +0.20 [+0.12, +0.28] of the texts." in readme(
        place, Tables.of([study([], [close, *others])])
    )
    text = readme(place, Tables.of([study([row()], [effect("a", "supported", excluded="uniform")])]))
    assert "No verdict yet. Of " in text
    assert "within reach, we measured 1: 1 are the same, 0 different, 0 open. | – | [correlation]" in text
    own = readme(place, Tables.of([study([row(dataset="own:mine")], [effect("a", "supported")], dataset="own:mine")]))
    assert "Nothing has been run yet." in own and "On own:mine" not in own


def test_a_paper_is_told_by_its_first_claim_on_real_texts_with_both_sides_where_there_is_room(monkeypatch):
    monkeypatch.undo()
    one = {name: "" for name in CELL} | {"paper": "jain2019", "marks": [], "ours": False, "size": "+1", "share": 1.0}
    rows = [
        one | {"short": "permuting it changes little", "claim": "It is", "answer": "supported", "dataset": "sst"},
        one | {"short": "attention correlates weakly", "claim": "It is so", "answer": "mixed", "dataset": "sst"},
        one | {"short": "attention correlates weakly", "claim": "It is so", "answer": "open", "dataset": "20news"},
    ]
    rows[1] |= {"words": "1 of 2 supported, 1 open; 2 as contrast"}
    written = [sentence(pd.DataFrame(rows[start:]), pd.DataFrame(), "jain2019") for start in range(3)]
    assert written[0] == written[1] == "On sst, “It is so” is mixed: 1 of 2 supported, 1 open; +1.", (
        "the first claim that has one"
    )
    assert written[2] == "“It is so” is open on 20news: +1."
    main = rows[2] | {"answer": "contradicted", "levels": "x 2, y 1"}
    planted = rows[0] | {"dataset": "planted"}
    assert sentence(pd.DataFrame([planted, rows[0], main]), pd.DataFrame(), "jain2019").startswith("“It is so”")
    assert sentence(pd.DataFrame([planted, main]), pd.DataFrame(), "jain2019").endswith("20news: x 2, y 1; +1.")
    assert that_count(pd.DataFrame(rows), "jain2019") == "1 supported, 2 undecided, 0 contradicted"
    against = "1 supported, 0 undecided, 1 contradicted: attention correlates weakly (20news)"
    assert that_count(pd.DataFrame([rows[0], main]), "jain2019") == against
    assert that_count(pd.DataFrame(rows[1:]), "jain2019") == "0 supported, 2 undecided, 0 contradicted"
    assert sentence(pd.DataFrame(rows[:1]), pd.DataFrame(), "jain2019") == "“It is” is supported on sst: +1."
    long = rows[1] | {"claim": " ".join(["so"] * 22)}
    assert sentence(pd.DataFrame([long]), pd.DataFrame(), "jain2019").endswith("so”: 1 of 2 supported, 1 open.")
    long = main | {"claim": long["claim"]}
    assert sentence(pd.DataFrame([long]), pd.DataFrame(), "jain2019").endswith("on 20news: +1.")


def test_the_answer_follows_from_the_answers_to_the_questions(monkeypatch):
    monkeypatch.undo()
    whose = {short: paper.key for paper in PAPERS.values() for short in paper.claims}
    of = {short: claim for paper in PAPERS.values() for short, claim in paper.claims.items()}
    claims = [claim for name, paper in PAPERS.items() if name != "ground_truth" for claim in paper.claims.values()]
    of_pro, of_con = ([claim.short for claim in claims if claim.speaks == side] for side in ("for", "against"))
    assert (len(of_pro), len(of_con)) == (8, 11)
    with pytest.raises(ValueError, match="speaks 'of it'; allowed: for, against"):
        replace(claims[0], speaks="of it")
    with pytest.raises(ValueError, match="the question ''; allowed: one of matters, needed, alone, ranks, words"):
        replace(claims[0], question="")
    with pytest.raises(ValueError, match="the question 'ranks'; allowed: none"):
        replace(claims[0], speaks="")
    with pytest.raises(ValueError, match="proves little, and can't speak against"):
        replace(claims[0], proves_little=True)
    opposite = {"for": "against", "against": "for"}
    for claim in claims:
        speaks = claim.speaks
        assert claim.side("supported", 0.1) == speaks and claim.side("contradicted", -0.1) == opposite.get(speaks, "")
        assert claim.side("negligible", -0.01) == (opposite[speaks] if claim.refuted_by_none else "")
        assert claim.side("negligible", 0.01) == "", "small, and yet as claimed: it says neither"
        assert claim.side("open", 0.0) == claim.side("no verdict", 0.0) == claim.side(CONTRAST, 0.1) == ""

    def answered(*datasets: str, **words) -> str:
        rows = [
            {"paper": whose[short], "short": short, "dataset": dataset, "claim": short, "size": "+1", "marks": marks}
            | {"seeds": 5, "answer": word, "ours": False, "side": of[short].side(word, 0.0), "levels": "", "model": ""}
            | {"question": of[short].question, "idle": False, "shown": "+1", "unit": "F1"}
            for short, (word, *marks) in words.items()
            for dataset in datasets or ("sst", "imdb", "20news")
        ]
        lead, by_question, counting = sides(pd.DataFrame(rows))
        return " ".join([lead, *flat(by_question), counting])

    pro, con = ({short: ["supported"] for short in some} for some in (of_pro, of_con))
    reverse = {short: ["contradicted"] for short in of_con}
    assert answered(**pro, **reverse).startswith("It is. On real texts what gets the most attention matters more to ")
    assert answered(**con, **{short: ["contradicted"] for short in of_pro}).startswith("It is not. On real texts what ")
    assert answered(**pro, **con).startswith("It depends on what is asked. On real texts the prediction needs its ")
    one = {short: ["supported"] for short in of_con if of[short].question == "ranks"}
    left = "The other 4 questions are undecided: an answer takes 3 tests on real texts, of 2 claims or more. "
    ranks = "On real texts attention over an encoder's states does not rank words as gradients and leave-one-out do."
    assert answered(**one).startswith(f"Not settled. {ranks} {left}")
    few = dict(list(one.items())[:2])
    assert answered("sst", **few).startswith("Not settled. 5 questions are undecided: an answer takes 3 tests on real ")
    text = answered(**pro, **{of_con[0]: ["supported", "could be chance"], of_con[1]: ["open"]})
    assert "\nNo: “" not in text and f"Of {3 * len(of_pro)} tests, {3 * len(of_pro)} are on real texts" in text
    text = answered(**pro, **con)
    order = [text.index(question.asked) for question in QUESTIONS.values()]
    assert order == sorted(order)
    for word, side, number in (
        ("Yes", "for", 4),
        ("No", "against", 4),
    ):  # none is for ranks, or against needed
        quoted = re.findall(rf"\n{word}: “([^”]+)”", text)
        assert len({of[short].question for short in quoted}) == len(quoted) == number
        assert {of[short].speaks for short in quoted} == {side}


def test_the_answer_quotes_real_texts_first_and_says_what_others_gave():
    rows = {"planted": "supported", "sst": "supported", "20news": "open", "imdb": "mixed"}
    common = {"paper": "jain2019", "short": "a", "claim": "It is so", "marks": [], "ours": False}
    common |= {"question": "ranks", "model": "BiLSTM", "seeds": 5, "idle": False, "shown": "+1", "unit": "F1"}
    table = [
        common | {"dataset": at, "answer": word, "size": f"+1 {at}", "levels": "x 2, y 1"}
        | {"side": "for" if word == "supported" else ""}
        for at, word in rows.items()
    ]  # fmt: skip
    lead, ((question, word, short, tests),), counting = sides(pd.DataFrame(table))
    takes = "an answer takes 3 tests on real texts, of 2 claims or more."
    assert lead == f"Not settled. 5 questions are undecided: {takes}"
    assert "Of 2 tests, 1 is on real texts, 2 rest on one kind of model, and 0 are of claims" in counting
    assert question == QUESTIONS["ranks"] and word == "Undecided, leaning to yes"
    place = "Jain & Wallace 2019; BiLSTM, sst: x 2, y 1; +1 sst; open on 20news; mixed on imdb"
    brief = "“It is so”: +1 F1 on sst, +1 on planted; open on 20news; mixed on imdb."
    assert short == f"{word}. {brief} (2 tests say yes, 1 on real texts; none says no; all are of one claim.)"
    assert tests == [f"Yes: “It is so” (supported; {place})."]
    doubtful = table[1] | {"dataset": "agnews", "marks": ["could be chance"]}
    assert "supported, in doubt, on agnews" in sides(pd.DataFrame([*table, doubtful]))[1][0].short
    twice = pd.DataFrame([table[1], table[1] | {"short": "b"}])
    assert sides(twice)[1][0].word == "Undecided", "two claims on one dataset make no lean"
    assert (
        "+1 F1 on sst; open on 20news; mixed on imdb. (1 test says yes, on"
        in sides(pd.DataFrame(table[1:]))[1][0].short
    )
    many = [one | {"dataset": f"sst{number}", "answer": "supported", "side": "for"} for number, one in enumerate(table)]
    alone = "(4 tests say yes, on real texts; none says no; all are of one claim.)"
    assert sides(pd.DataFrame(many))[1][0].short.endswith(alone), (
        "four tests of one claim are that claim, not the question"
    )
    many[0] |= {"short": "b"}
    no = [one | {"side": "against", "dataset": f"{one['dataset']}b"} for one in many]
    for number, words in ((0, "Yes. “"), (1, "Mostly yes. “"), (3, "Yes and no. “")):
        assert sides(pd.DataFrame(many + no[:number]))[1][0].short.startswith(words)
    assert sides(pd.DataFrame(many[:1] + no[:3]))[1][0].short.startswith("Mostly no. “")
    undecided = common | {"dataset": "20news", "answer": "open", "size": "+0", "levels": "", "short": "b", "side": ""}
    assert "Not decided: “It is so” (open; Jain" in flat(sides(pd.DataFrame([*table[:2], undecided]))[1])[-1]
    assert "Not decided" not in flat(sides(pd.DataFrame([*many, undecided]))[1])[-1]
    elsewhere = undecided | {"short": "a"}
    assert "Not decided" not in flat(sides(pd.DataFrame([*table[:2], elsewhere]))[1])[-1], "it decides elsewhere"
    other = [one | {"answer": "contradicted"} for one in table[:1]]
    _, ((_, _, _, (text,)),), _ = sides(pd.DataFrame(other))
    assert "Yes. We find the opposite of “It is so” (contradicted; Jain" in text
    ours = [one | {"ours": one["dataset"] == "sst"} for one in table[:2]]
    _, ((_, _, _, (text,)),), _ = sides(pd.DataFrame(ours))
    assert "(supported; section 4 of Jain" in text, "real texts go before the papers' own claims"
    ours = [one | {"dataset": f"sst{number}", "ours": number == 0} for number, one in enumerate(ours)]
    _, ((_, _, _, (text,)),), _ = sides(pd.DataFrame(ours))
    assert "(supported; Jain" in text


def test_the_shares_of_incomplete_datasets_are_those_that_the_kept_runs_read():
    of_agnews = published.counts("agnews").query("quantity.str.startswith('train')")["value"].sum()
    whole = {"agnews": of_agnews, "snli": 549_367, "babi3": 10_000}  # the last two by the datasets' own pages
    for name, share in INCOMPLETE.items():
        row = pd.read_csv(results.FOLDER / f"correlation-{name}.csv").iloc[0]
        read = row["train_texts"] + (0 if name == "snli" else row["dev_texts"])  # SNLI has a dev split of its own
        assert round(read / whole[name], 2) == share


def test_an_answer_without_any_test_that_counts_is_not_settled():
    table = Tables.of([study([row()], [effect("a", "supported", witness="weak")])])
    lead, by_question, counting, rest = answer(table.cells, table.values)
    assert (
        lead == "Not settled: no test is conclusive."
        and counting.startswith("A test is one claim on one dataset.")
        and by_question == []
    )
    doubted = "1 decided only by weak witnesses or possibly by chance."
    assert f"0 supported, 0 contradicted, {doubted}" in rest


def test_the_number_of_a_cell_is_that_of_its_models_without_a_mark():
    weak = claim("a").evidence("two", dict.fromkeys(range(5), 0.6), se=0.001, n=900, witness="weak")
    (found,) = Tables.of([study([row()], [effect("a", "supported", "one"), weak])]).cells.to_dict("records")
    assert found["size"].startswith("+0.20 [") and (found["n"], found["answer"]) == (400, "supported")
    (found,) = Tables.of([study([row()], [weak])]).cells.to_dict("records")
    assert found["size"].startswith("+0.60 [") and found["marks"][0] == "weak witness"
    (found,) = Tables.of([study([row()], [effect("a", "open", "one"), weak])]).cells.to_dict("records")
    assert (found["answer"], found["marks"]) == ("mixed", []) and " to +0.60 " in found["size"], "of all that differ"
    held = replace(claim("a"), sides=("ours", "theirs"))
    both = held.evidence("one", dict.fromkeys(range(5), 0.2), 0.5, 0.3, se=0.001, n=400)
    PAPERS["correlation"].claims["a"] = held
    (found,) = Tables.of([study([row()], [both])]).cells.to_dict("records")
    assert found["levels"] == "ours 0.500, theirs 0.300"


def test_the_readme_fits_a_screen_and_its_links_lead_somewhere():
    page = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 120
    after = page.partition("claims.svg)")[2].split()[:150]
    assert {"reports", "test"} <= {after[place + 1] for place, word in enumerate(after[:-1]) if word == "make"}
    table = page.partition("<!-- papers -->")[2].partition("<!-- end -->")[0].splitlines()
    table = [line for line in table if line.startswith("| ")][2:]
    assert [line.split(" | ")[-1] for line in table] == [f"[{name}](notebooks/{name}.ipynb) |" for name in PAPERS]
    assert all(len(line.split(" | ")[2].split()) <= 30 for line in table)
    for path in [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *PROJECT.glob("docs/*.md")]:
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
            assert "://" in link or (path.parent / unquote(link)).exists(), f"{path.name} links to {link}"


@pytest.mark.parametrize("path", sorted(RENDERED.glob("*.html")), ids=lambda path: path.stem)
def test_a_page_in_the_repository_opens_offline_and_has_the_numbers_of_the_kept_tables(path, chromium):
    assert path.stat().st_size < 6e6
    with visit(chromium, path) as seen:
        assert not seen.wrong
    about, left = kept(path, "summary", "tables")
    for name, ending in results.ENDINGS.items() if left else ():
        text = (results.FOLDER / f"{about['notebook']}-{about['dataset']}{ending}.csv").read_text()
        tables = [pd.read_csv(StringIO(one), dtype=str, keep_default_na=False) for one in (text, left[name])]
        columns = [one for one in (*results.KEYS[name], "value") if one in tables[1]]
        tables[1] = tables[1][tables[1]["seed"] != results.NO_SEED]  # an earlier run may have had a value
        of_kept, of_page = (
            set(one[columns].replace(r"\.0$", "", regex=True).itertuples(index=False, name=None)) for one in tables
        )
        assert of_page and of_page <= of_kept


def test_all_that_is_made_from_the_kept_tables_is_up_to_date(monkeypatch, tmp_path):
    """The README, its picture, the summary as Markdown and as a page."""
    monkeypatch.undo()
    found, text = found_in(RENDERED, results.FOLDER), (PROJECT / "README.md").read_text(encoding="utf-8")
    for place in ("<!-- answer -->", "<!-- papers -->", "(reports/results/claims.svg)", "(reports/results/summary.md)"):
        assert place in text
    again = "run python -m tools.summary"
    assert readme(text, found) == text, again
    assert (results.FOLDER / "summary.md").read_text(encoding="utf-8") == markdown(found), again
    lead, by_question, counting, rest = answer(found.cells, found.values)
    shown = unescape((RENDERED / "summary.html").read_text(encoding="utf-8"))
    written = lead, *(part.strip() for part in flat(by_question)), counting, rest
    assert not [one for one in written if one not in shown], again
    words = re.compile(r"<text[^>]*>([^<]*)</text>|(?:fill|stroke)=.(#\w{6})")  # places depend on a machine's fonts
    paths = results.FOLDER / "claims.svg", picture(found, tmp_path)
    drawn, made = (words.findall(path.read_text(encoding="utf-8")) for path in paths)
    assert drawn == made, again
    assert ("Is attention explanation? What the tests say, by question and dataset", "") in made


def test_no_text_ends_a_cell_of_the_markdown_table():
    text = markdown(Tables.of([study([row()], [effect("a|b <b>", "supported")])]))
    assert r"*a\|b &lt;b&gt;*" in text and "<b>" not in text


# the page


def test_without_any_report_it_is_one_sentence(tmp_path, nowhere):
    text = write_summary(tmp_path / "new", found_in(tmp_path / "new", nowhere)).read_text()
    assert "There is nothing to sum up yet" in text and text.count("Not run yet.") == len(PAPERS)
    assert pd.read_csv(tmp_path / "new" / FILES[0]).empty and len(pd.read_csv(tmp_path / "new" / FILES[1])) == 1140


def test_a_report_enters_and_leaves_with_its_page(tmp_path, nowhere):
    here = report(tmp_path, "correlation-planted", [row(dataset="planted")], [effect("a", "supported")])
    report(tmp_path, "unknown-planted", [row()], [effect("b", "supported")], notebook="unknown")
    (tmp_path / "half.html").write_text(here.read_text()[:-20])
    assert [one.page for one in studies_of(tmp_path)] == ["correlation-planted.html"]
    assert 'href="correlation-planted.html#claim-a"' in write_summary(tmp_path, found_in(tmp_path, nowhere)).read_text()
    here.rename(tmp_path / "earlier")  # as a report that fails is put away
    assert "correlation-planted" not in write_summary(tmp_path, found_in(tmp_path, nowhere)).read_text()
    assert pd.read_csv(tmp_path / FILES[0]).empty


def test_what_a_parameter_turned_into_another_experiment_is_known(tmp_path):
    report(tmp_path, "a", [row()], [effect("a", "supported")], projection="sparsemax", seeds=[0])
    assert studies_of(tmp_path)[0].altered == ("projection",)


def test_the_tables_read_back_as_what_was_summed_up(tmp_path, nowhere):
    report(tmp_path, "correlation-sst", [row(dataset="sst")], [effect('a, "b"\n', "supported")], dataset="sst")
    write_summary(tmp_path, found_in(tmp_path, nowhere))
    studies = studies_of(tmp_path)
    matrix = cells(verdicts(studies))
    assert matrix[["short", "dataset", "answer"]].to_numpy().tolist() == [['a, "b"\n', "sst", "supported"]]
    matrix["marks"] = matrix["marks"].map("; ".join)
    for name, table in zip(FILES, (verdicts(studies), values(studies), matrix), strict=True):
        read = pd.read_csv(tmp_path / name, keep_default_na=False, dtype=str)
        shown = table.astype(object).where(table.notna(), "")
        assert read.columns.tolist() == list(table) and len(read) == len(table)
        for column in table:
            numbers = pd.api.types.is_float_dtype(table[column])
            back = pd.to_numeric(read[column]).fillna(-9) if numbers else read[column]
            assert back.tolist() == (table[column].fillna(-9) if numbers else shown[column].map(str)).tolist(), column


def test_a_report_that_fails_takes_its_tables_away(tmp_path, monkeypatch):
    """The whole command but for the kernel, which answers with a notebook that ran, and then fails."""
    monkeypatch.setenv("RESULTS_HOME", str(tmp_path / "none"))
    notebooks.save(tmp_path / "correlation.ipynb", "1")
    arguments = ["correlation", "--force", "--notebooks", str(tmp_path), "--output", str(tmp_path / "out")]
    ran = ran_notebook([row(dataset="planted")], [effect("a", "supported")], "planted")
    monkeypatch.setattr("tools.report.run.run_notebook", lambda *_: ran)
    text = (tmp_path / "out" / "summary.html").read_text if main(arguments) == 0 else None
    assert "✓</span> supported" in text() and 'href="correlation-planted.html#claim-a"' in text()
    assert "not kept" in (tmp_path / "out" / "correlation-planted.html").read_text()

    def fails(*_):
        raise Failed("it did")

    monkeypatch.setattr("tools.report.run.run_notebook", fails)
    assert main(arguments) == 1
    assert "There is nothing to sum up yet" in text()


def test_hostile_names_are_shown_and_never_run(chromium, tmp_path, nowhere):
    """In a browser, on a phone and dark: nothing runs, nothing is asked for, and words stand out."""
    evil = notebooks.HOSTILE
    found = [effect(evil, "supported", evil, note=evil, printed=-0.2), effect(evil, "open", "two")]
    found += [effect(evil, "supported", "three", witness="weak").assign(code="of other code")]
    report(tmp_path, "correlation-a b#", [row(dataset=evil)], found, dataset=evil, profile="paper")
    page_of_all = write_summary(tmp_path, found_in(tmp_path, nowhere))
    with visit(chromium, page_of_all, "dark", width=375, linked=tmp_path / "correlation-a b#.html") as seen:
        sheet = seen.page
        sheet.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert sheet.evaluate("document.documentElement.scrollWidth") <= 375
        assert sheet.locator("main img, main script").count() == 0
        for place in (".claims thead th", ".claims tbody th", ".claims li"):
            assert evil in "".join(sheet.locator(place).all_text_contents()), place
        assert "2 of 3 supported, 1 open (1 by a weak witness)" in sheet.locator(".verdict.mixed").first.inner_text()
        colours = sheet.eval_on_selector_all(".verdict", "all => all.map(one => getComputedStyle(one).color)")
        assert len(set(colours)) == 4  # mixed, supported, open, a weak witness
        strong, _, weak = sheet.locator(".claims td li").all_inner_texts()
        assert "the paper's own numbers: against it (-0.2)" in strong and "single seeds: 0.2 0.21" in strong
        assert "weak witness; stale" in weak and "stale" not in strong
        assert "Bound: 0.05 of the texts" in sheet.locator(".claims tbody th").first.inner_text()
        assert "supported: 2, 1 of them by weak witnesses, 1 of them stale" in sheet.locator("ul.totals").inner_text()
        assert sheet.locator("details.values tbody tr").count() == 1086
        assert "+0.20" in sheet.locator(".claims .size").first.inner_text()
        assert "400 texts, 5 seeds, stale" in sheet.locator(".claims td").first.inner_text()
        assert "By the older runs" in sheet.locator(".answer").inner_text()
        sheet.get_by_role("link", name="report", exact=True).first.click()
        sheet.wait_for_selector("#tables", state="attached")
        assert unquote(sheet.url).endswith(f"/correlation-a b#.html#{anchor(evil)}")
        assert evil in json.loads(sheet.locator("#tables").inner_text())["dataset"]
        assert seen.wrong == []
