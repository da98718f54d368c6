"""Kept results: the key of a row is its whole run, damage is never written over, and several may keep at once."""

import multiprocessing
import os
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import planned
import pytest
from test_findings import J1, PLACE, effect_rows, texts

from lib.analysis import classification, summarise
from lib.analysis.summaries import join_seeds, split_seeds
from papers import PAPERS, results
from papers.effects import FINDINGS
from tools.summary import page as summary
from tools.summary.__main__ import main as summary_command

FORK = multiprocessing.get_context("fork")  # torch is imported once
FILES = ("correlation-planted.csv", "correlation-planted-findings.csv")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("RESULTS_HOME", str(tmp_path / "kept"))
    return tmp_path / "kept"


def trained(part: str, texts="0123456789abcdef", train=9, test=60, source="/home/me/v.npz", **chosen) -> list:
    """What a notebook trained, without models; texts: their digest, train: how many, source: of the word vectors."""
    corpus = SimpleNamespace(train=range(train), dev=range(2), test=range(test), checksum=texts)
    runs = planned.runs(part, profile="paper", device="cpu", **chosen)
    return [SimpleNamespace(run=run, vectors=SimpleNamespace(source=source), corpus=corpus) for run in runs]


def keep(values: dict[int, float], part="correlation", commit="first", settings=None, model="one", of=None, **run):
    """Keeps an F1, and an effect with columns `of`, for each seed of a part; run: of what was trained."""
    notebook, about = part.partition("/")[0], {"name": "J2"} | PLACE | {"dataset": "planted", "layers": 1} | (of or {})
    name = about.pop("name")
    row = about | {"quantity": "f1", "value": np.mean([*values.values()]), "unit": "fraction", "se_texts": 0.01}
    rows = effect_rows(name, list(values.values()), model=model, **about).assign(seed=list(values))
    made = run.pop("made", None) or trained(part, seeds=[*values], **run)
    chosen = {key: value for key, value in run.items() if key not in ("texts", "train", "test", "source")}
    given = {"profile": "paper", "device": "cpu", "seeds": [*values]} | chosen | (settings or {})
    row = pd.DataFrame([row | {"of_seeds": values, "n": 60}])
    return results.keep(notebook, PAPERS[notebook].settings(**given), made, row, rows, commit)


TYING = {"part": "regularization/variants", "of": {"name": "T2", "variant": "tying"}}


def kept(kind: str = "findings") -> list[tuple[int, float]]:
    rows = results.kept(kind)
    return sorted(zip(rows["seed"], rows["value"], strict=True))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"source": "/home/me/v.npz"}, {"source": "/home/me/w.npz"}),
        ({"delta": [0.01], **TYING}, {"delta": [0.1], **TYING}),
        ({"train": 9}, {"train": 8}),
        ({"texts": "0123456789abcdef"}, {"texts": "fedcba9876543210"}),  # as many texts, of other tokens
        ({"of": {"guide": "bilstm"}}, {"of": {"guide": "minilm"}, "model": "two"}),
    ],
    ids=["vectors", "recipe", "sizes", "tokenization", "guide"],
)
def test_other_runs_stand_beside_each_other_and_the_same_one_replaces_itself(first, second):
    keep({0: 0.1, 1: 0.2}, **first)
    keep({1: 0.4, 2: 0.5}, **second)
    keep({1: 0.3}, commit="second", **first)
    for kind in results.KEYS:
        rows = results.kept(kind)
        assert kept(kind) == [(0, 0.1), (1, 0.3), (1, 0.4), (2, 0.5)]
        assert rows.loc[rows["value"].eq(0.3), "commit"].tolist() == ["second"]


def test_kept_again_a_run_changes_nothing_and_numbers_have_six_digits(home):
    keep({0: 1 / 3, 1: 2 / 3})
    before = {path.name: path.read_text() for path in home.glob("*.csv")}
    again = keep({0: 1 / 3, 1: 2 / 3})
    assert again.sentence.startswith("kept in correlation-planted.csv and correlation-planted-findings.csv;")
    assert before == {path.name: path.read_text() for path in home.glob("*.csv")} and sorted(before) == sorted(FILES)
    assert kept() == kept("values") == [(0, 0.333333), (1, 0.666667)]
    both = keep({1: 0.5, 2: 0.3})  # a notebook gets its own rows with those that are kept of the same experiment
    assert not both.own and not both.these_models
    for rows in (both.values, both.effects):
        assert sorted(zip(rows["seed"], rows["value"], strict=True)) == [(0, 0.333333), (1, 0.5), (2, 0.3)]


def test_a_row_says_what_it_was_made_from():
    source = "word2vec, learned from train, seed 3 (9 words of /home/me/v.npz are too few)"
    keep({0: 0.1, 4: 0.2}, commit="abc", delta=[0.03], source=source, **TYING)
    recipe = "tutek2020 delta=0.03 embeddings=frozen epochs=100 patience=10"
    wanted = {"texts": "0123456789ab", "train_texts": 9, "dev_texts": 2, "test_texts": 60, "recipe": recipe}
    wanted |= {"vectors": "word2vec, learned from train", "version": str(results.WEIGHTS), "runs": "0 4"}
    wanted |= {"commit": "abc", "profile": "paper", "device": "cpu"}
    for kind in results.KEYS:
        assert set(wanted) == set(results.ABOUT) and results.kept(kind).iloc[0][list(wanted)].to_dict() == wanted
    runs = [one.run for delta in (0.01, 0.1) for one in trained(TYING["part"], delta=[delta], seeds=[0])]
    assert results.recipe_text({"variant": "tying"}, runs) == recipe.replace(" delta=0.03", ""), "what all runs share"
    runs = planned.runs("sparsity/spectrum", profile="paper", encoders=["bilstm"])
    assert "learning_rate=0.0001" in results.recipe_text({"projection": "sparsegen"}, runs), "of all strengths"


def test_the_main_runs_are_of_the_most_texts_and_runs_and_one_recipe_for_each_model(monkeypatch):
    keep({0: 0.1, 1: 0.2}, train=12_000, source="few.npz")
    keep({0: 0.3, 1: 0.4, 2: 0.5}, train=12_000, source="more.npz")
    keep(dict.fromkeys(range(5), 0.9), train=300)
    keep(dict.fromkeys(range(5), 0.9), train=12_000, source="a.npz", test=9)
    keep({0: 0.1}, delta=[0.01], model="both", **TYING)
    keep({0: 0.2, 1: 0.3}, delta=[0.1], model="both", **TYING)
    keep({0: 0.4}, delta=[0.01], model="first alone", **TYING)
    _ = [keep({0: delta}, delta=[delta], model="last", **TYING) for delta in (0.2, 0.4, 0.3)]
    main = results.main_runs(results.kept("findings"), "findings").groupby("model")["value"].agg(list)
    expected = {"one": [0.3, 0.4, 0.5], "both": [0.2, 0.3], "first alone": [0.4], "last": [0.3]}
    assert main.map(sorted).to_dict() == expected
    values = results.main_runs(results.kept("values"), "values").groupby("notebook")["value"].agg(list)
    assert values.map(sorted).to_dict() == {"correlation": [0.3, 0.4, 0.5], "regularization": [0.2, 0.3]}
    keep({0: 0.6}, train=12_000, source="wiki_spacy_md_300d.npz")  # the vectors that its recipe names, of fewer seeds
    keep({0: 0.7}, model="both", source="wiki_spacy_md_300d.npz", **TYING)  # not those of Tutek & Snajder's
    keep({0: 0.8}, model="both", source="indomain_word2vec_300d.npz", **TYING)
    rows = results.kept("findings")
    more = rows[rows["vectors"].eq("more.npz")].assign(finding="M3")  # that the run from the main vectors has not
    main = results.main_runs(pd.concat([rows, more]), "findings").groupby(["finding", "model"])["value"].agg(list)
    expected = {"one": [0.6], "both": [0.8], "first alone": [0.4], "last": [0.3]}
    assert main.drop("M3").droplevel(0).to_dict() == expected and sorted(main["M3", "one"]) == [0.3, 0.4, 0.5]
    keep({5: 0.9}, train=12_000, source="indomain_word2vec_300d.npz")  # named second: beside the main ones
    for page, second in (("wiki_spacy_md_300d", [0.9]), ("indomain_word2vec_300d", [0.3, 0.4, 0.5])):
        shown = keep({0: 0.6} if second == [0.9] else {5: 0.9}, train=12_000, source=f"{page}.npz").effects
        assert set(shown.loc[~shown["second"], "vectors"]) == {f"{page}.npz"}
        assert sorted(shown.loc[shown["second"], "value"]) == second
    monkeypatch.setattr(results, "WEIGHTS", results.WEIGHTS + 1)  # another version of training is not pooled with it
    keep(dict.fromkeys(range(4), 0.7), train=12_000, source="wiki_spacy_md_300d.npz")
    main = results.main_runs(results.kept("findings"), "findings")
    assert main.loc[main["model"].eq("one"), "value"].tolist() == [0.7] * 4


def test_printed_values_stand_beside_those_of_every_set_of_word_vectors_of_three_seeds():
    of = {"encoder": "bilstm", "attention": "additive", "projection": "softmax", "variant": "base"}
    for name, first in (("indomain.npz", 0.7), ("wiki.npz", 0.8)):
        values = {seed: first + seed / 100 for seed in (0, 2, 5)}
        keep(values, source=name, of=of | {"dataset": "sst"}, settings={"dataset": "sst"})
    (row,) = summary.by_vectors(results.kept("values")).to_dict("records")
    assert (row["table"], row["quantity"], row["theirs"]) == ("released results", "f1", 0.7835)
    assert (row["indomain.npz"], row["wiki.npz"]) == (pytest.approx(0.71), pytest.approx(0.81)), "not of seed 5"


DAMAGE = {  # of the text of a table: what is left of it, or what there is in its place
    "conflict markers": lambda text: text.replace("\n", "\n<<<<<<< HEAD\n", 1) + "=======\n>>>>>>> other\n",
    "half a row": lambda text: text[:-40] + "\n",
    "cut in quotation marks": lambda text: text.rpartition('one""')[0],
    "cut in the last cell": lambda text: text[:-3],
    "zeros at its end": lambda text: text + "\0" * 9,
    "no text": lambda text: text.replace("first", "fir\udcff"),
    "blank": lambda text: "",
    "another head": lambda text: text.replace("test_texts", "of_test", 1),
    "a row twice": lambda text: text + text.splitlines(True)[-1],
    "no number": lambda text: text.replace(",0.3,", ",0.3x,"),
    "a folder": lambda text: Path.mkdir,
    "a pipe, from which reading would wait for ever": lambda text: os.mkfifo,
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_table_is_refused_before_training_and_never_written_over(home, file, damage, capsys):
    keep({0: 0.1, 1: 0.2, 2: 0.3}, model='"one", quoted', source='/home/me/"one", quoted.npz')
    made, other = trained("correlation", seeds=[0]), home / next(name for name in FILES if name != file)
    left = DAMAGE[damage]((home / file).read_text())
    (home / file).unlink()
    (home / file).write_bytes(left.encode(errors="surrogateescape")) if isinstance(left, str) else left(home / file)
    before = (home / file).is_file() and (home / file).read_bytes(), other.read_bytes()
    answer = keep({0: 0.4}, made=made)
    assert re.search(f"^not kept: .*{file} is damaged: line \\d+ .*; mend it or move it away$", answer.sentence)
    assert before == ((home / file).is_file() and (home / file).read_bytes(), other.read_bytes())
    assert planned.runs("correlation", profile="quick", device="cpu"), "which keeps nothing"
    with pytest.raises(results.Damaged, match=file):
        trained("correlation")
    assert not summary.write_summary(home.parent) and file in capsys.readouterr().err and summary_command([]) == 1


def test_where_nothing_can_be_written_both_tables_stay_as_they_were(home, monkeypatch):
    keep({0: 0.1})
    (home / FILES[0]).write_bytes(b"\xef\xbb\xbf" + (home / FILES[0]).read_bytes().replace(b"\n", b"\r\n"))
    keep({1: 0.2})
    assert kept("values") == kept() == [(0, 0.1), (1, 0.2)], "what a spreadsheet saved is read"
    before = {name: (home / name).read_bytes() for name in FILES}
    monkeypatch.setattr(results, "write_file", lambda path, text: Path("/dev/full").write_text(text))
    assert "not kept: [Errno 28] No space left on device" in keep({0: 0.4}).sentence
    assert before == {name: (home / name).read_bytes() for name in FILES}


def keep_when_all_are_there(barrier, seed: int) -> None:
    barrier.wait()
    for model in range(3):
        keep({seed: seed / 10 + 0.1}, model=f"model {model}")


def test_four_processes_that_keep_four_seeds_at_once_keep_them_all():
    keep({9: 0.9})
    barrier = FORK.Barrier(4)
    processes = [FORK.Process(target=keep_when_all_are_there, args=(barrier, seed)) for seed in range(4)]
    for one in processes:
        one.start()
    for one in processes:
        one.join(60)
    assert kept("values") == [(0, 0.1), (1, 0.2), (2, 0.3), (3, 0.4), (9, 0.9)]
    assert kept() == [*((seed, value) for seed, value in kept("values")[:4] for _ in range(3)), (9, 0.9)]


def test_what_is_no_result_of_the_papers_is_left_to_the_report_alone(home, tmp_path):
    table = pd.DataFrame({"text": [f"some words of text {place % 7}" for place in range(60)], "label": [0, 1] * 30})
    table.to_csv(tmp_path / "mine.csv", index=False)
    for given, why, own, these in (
        ({"profile": "quick"}, "the profile is 'quick'", False, True),
        ({"projection": "sparsemax"}, "projection made it another experiment", False, False),
        ({"data": str(tmp_path / "mine.csv")}, "the text is your own", True, True),
    ):
        answer = keep({0: 0.1, 1: 0.2}, settings=given)
        assert answer.sentence.startswith("not kept: ") and why in answer.sentence and not home.exists()
        assert (answer.own, answer.these_models) == (own, these)
        assert answer.effects["value"].tolist() == [0.1, 0.2]
    own = [SimpleNamespace(run=SimpleNamespace(profile="paper"), corpus=None)]
    values = pd.DataFrame([{"quantity": "f1", "value": 0.15, "of_seeds": {0: 0.1, 1: 0.2}}])
    settings = PAPERS["correlation"].settings(profile="paper")
    answer = results.keep("correlation", settings, own, values, effect_rows("J2", [0.1]))
    assert answer.sentence.startswith("not kept: the model is your own") and not home.exists()
    assert answer.own and answer.these_models and answer.values["value"].tolist() == [0.1, 0.2]


def test_the_rows_of_single_seeds_put_together_are_what_was_summarised():
    frame = texts(np.random.default_rng(0), seeds=4, count=60, **{J1: 0.3})
    rows = pd.concat([classification(frame), summarise(frame, [J1])], ignore_index=True)
    other = pd.DataFrame([{"quantity": "a difference", "difference": 0.1, "of_seeds": {0: 0.1}}])
    single = split_seeds(pd.concat([rows, other], ignore_index=True))
    assert len(single) == 4 * len(rows) + 1 and single["per"].eq("seed").sum() == 4 * len(rows)
    back, keys = join_seeds(single, [*PLACE]), ["quantity", "unit", *PLACE]
    assert back.iloc[-1]["difference"] == 0.1 and back.iloc[:-1][keys].equals(rows[keys])
    numbers = ["value", "low", "high", "sd_seeds", "n", "seeds", "se_texts"]
    np.testing.assert_allclose(back.iloc[:-1][numbers].astype(float), rows[numbers].astype(float), rtol=1e-12)


def test_every_kept_table_of_the_repository_can_be_read_and_says_what_it_is_of(monkeypatch):
    monkeypatch.setenv("RESULTS_HOME", str(results.FOLDER))
    files = {path.stem.removesuffix("-findings") for path in results.FOLDER.glob("*-*.csv")}
    findings, values = results.kept("findings"), results.kept("values")
    for rows in (findings, values):
        of = rows["dataset"].str.replace(r":(?!subwords=).*|,.*", "", regex=True).str.replace(":", "@")
        assert set(rows["notebook"] + "-" + of) == files
        about = rows[list(results.ABOUT)].astype(str)
        assert about.ne("").all(axis=None) and about["profile"].eq("paper").all()
    assert findings["value"].notna().all() and findings["n"].gt(0).all() and findings["se"].ge(0).all()
    assert findings["seed"].mod(1).eq(0).all() and values["quantity"].ne("").all()
    names = findings[["finding", "notebook"]].drop_duplicates().to_numpy()
    assert all(FINDINGS[name].notebook == notebook for name, notebook in names)
    assert not findings.duplicated(["notebook", *results.KEYS["findings"], *results.RUN]).any(), "each row once"
