"""One's own text: every form is read as it is meant; whatever is wrong gives one sentence and leaves nothing."""

import codecs
import csv
import gzip
import importlib
import io
import json
import pickle
import random
import resource
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import notebooks
from lib import datasets
from lib.datasets import DataError, own, own_text
from lib.datasets.own import looks_like_labels, looks_like_texts
from lib.training import Run, cache, train_all
from papers import PAPERS
from papers.results import keep
from tools.report.__main__ import main
from tools.report.parameters import report_name
from tools.report.run import fingerprint

HOSTILE = "<script>alert(1)</script>"
WORDS = {"good": "fine warm bright lovely".split(), "bad": "dull cold grey dreadful".split(), "so-so": ["plain"] * 4}


def rows(number=60, labels=("bad", "good"), start=0):
    """(text, label), the labels in turn; every text is another."""
    draw = random.Random(start)
    texts = range(start, start + number)
    found = []
    for i in texts:
        label = labels[i % len(labels)]
        words = draw.choices(WORDS.get(label, ["word"]), k=3) + draw.choices("the a film was it of".split(), k=4)
        found.append((f"Number {i}: {' '.join(words)}. It ends, so.", label))
    return found


def separated(records, header=("text", "label"), delimiter=","):
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows([header, *records])
    return file.getvalue()


def json_lines(records, names=("text", "label")):
    return "".join(json.dumps(dict(zip(names, record, strict=True))) + "\n" for record in records)


def put(folder: Path, content: str | bytes, name="my.csv") -> str:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(folder / name)


def labels_of(corpus):
    """{text: the name of its class} of all splits."""
    return {one.text: corpus.classes[one.label] for split in corpus.splits for one in split.instances}


# --- read as it is meant


ROWS = rows(60, ("bad", "good", "so-so"))
TABLE = pd.DataFrame(ROWS, columns=["text", "label"])
FORMS = {
    "my.csv": separated(ROWS),
    "semicolons.csv": separated(ROWS, delimiter=";"),
    "bars.txt": separated(ROWS, delimiter="|"),
    "my.tsv": separated(ROWS, delimiter="\t"),
    "old.csv": separated(ROWS).replace("\r\n", "\r"),
    "blank.csv": "\n \r\n" + separated(ROWS).replace("\r\n", "\n\n , \n", 1),
    "index.csv.gz": gzip.compress(TABLE.to_csv().encode()),
    "my.ndjson": "\n" + json_lines(ROWS),
    "bom.csv": codecs.BOM_UTF8 + separated(ROWS).encode(),
    "bom.json": codecs.BOM_UTF8 + json_lines(ROWS).encode(),
    "wide.csv": separated(ROWS, delimiter="\t").encode("utf-16"),
    "big-endian.csv": codecs.BOM_UTF16_BE + separated(ROWS).encode("utf-16-be"),
    "my.parquet": TABLE.to_parquet(),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_texts_and_classes(tmp_path, name):
    corpus = datasets.load(own_text(put(tmp_path, FORMS[name], name)))
    assert labels_of(corpus) == dict(ROWS) and corpus.classes == ("bad", "good", "so-so")
    assert [len(split) for split in corpus.splits] == [42, 9, 9]
    assert [np.bincount(split.labels).tolist() for split in corpus.splits] == [[14] * 3, [3] * 3, [3] * 3]
    assert not any("UTF-8" in note for note in corpus.notes), "nothing was guessed"


LANGUAGES = {"es": "cp1252", "pl": "cp1250", "ru": "cp1251", "el": "cp1253", "zh": "gb18030", "ja": "cp932"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_another_encoding_is_guessed_and_the_guess_is_shown(tmp_path, language):
    sentences = importlib.import_module(f"spacy.lang.{language}.examples").sentences
    encoding, lasting = LANGUAGES[language], [f"{text} ({i})" for i, text in enumerate(sentences * 6)]
    known = [text.encode(encoding, "ignore").decode(encoding) for text in lasting]
    records = [(text, i % 2) for i, text in enumerate(known)]
    corpus = datasets.load(own_text(put(tmp_path, separated(records).encode(encoding))))
    assert labels_of(corpus) == {text: str(label) for text, label in records}
    [note] = [note for note in corpus.notes if "is not UTF-8" in note]
    assert "if that is wrong, save the file as UTF-8" in note
    assert any(word.strip('",;|.')[:30] in note for word in " ".join(known).split() if not word.isascii())


def test_quotation_marks_delimiters_and_line_breaks_stay_in_a_text(tmp_path):
    hostile = [
        'He said "no", twice; so\nit ends',
        f"{HOSTILE} \u202eשלום\u202c 😀, &amp; `$x$`",
        "a | b \u2028 c \t d, e ; f",
    ]
    records = [(f"{text} {i}", i % 2) for i in range(12) for text in hostile]
    for delimiter in ",;\t|":
        name = own_text(put(tmp_path, separated(records, delimiter=delimiter)))
        assert labels_of(datasets.load(name)) == {text: str(label) for text, label in records}


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["10", "9", "1"], ("1", "9", "10")),
        (["1.0", "-2", "1", "0.5"], ("-2", "0.5", "1.0")),  # 1.0 and 1 are one class, as first written
        ([10, 2.0, 3.5], ("2", "3.5", "10")),
        ([" none", "b", "B "], ("B", "b", "none")),
        ([HOSTILE, "é", "😀"], (HOSTILE, "é", "😀")),
    ],
)
def test_classes_are_named_and_in_their_natural_order(tmp_path, labels, classes):
    records = [(text, labels[i % len(labels)]) for i, (text, _) in enumerate(rows(80))]
    corpus = datasets.load(own_text(put(tmp_path, json_lines(records), "my.jsonl")))
    assert corpus.classes == classes


def test_texts_are_cut_into_sentences_of_lower_case_tokens(tmp_path):
    corpus = datasets.load(own_text(put(tmp_path, separated(rows()))))
    one = corpus.train.instances[0]
    assert one.tokens[:2] == ("number", one.text.split()[1].rstrip(":")) and one.tokens[-4:] == ("ends", ",", "so", ".")
    assert len(one.sentences) == 2 and sum(one.sentences) == len(one.tokens)
    assert {"film", "ends"} < set(corpus.vocabulary.words) and "0" not in corpus.vocabulary.words, "in one text alone"
    limited = datasets.load(own_text(str(tmp_path / "my.csv")), train_texts=10, test_texts=4)
    assert [len(split) for split in limited.splits] == [10, 10, 4]


# --- columns


def test_columns_are_found_by_their_names_or_by_their_looks(tmp_path):
    records = [(i, f"Dr {i}", text, text[::-1], label, 2000 + i % 3) for i, (text, label) in enumerate(rows())]
    header = ("number", "author", "Text", "backwards", "LABEL", "year")
    chosen = own_text(put(tmp_path, separated(records, header))).columns
    assert chosen == own.Columns("Text", "LABEL")
    looks = [(text, label, i) for i, (text, label) in enumerate(rows())]
    assert own_text(put(tmp_path, separated(looks, ("review", "stars", "n")))).columns == own.Columns("review", "stars")
    assert own_text(str(tmp_path / "my.csv"), "review", "stars") == own_text(str(tmp_path / "my.csv"))


def test_what_looks_like_texts_and_what_like_labels():
    texts, labels = zip(*rows(), strict=True)
    assert looks_like_texts(texts) and not looks_like_labels(texts)
    assert looks_like_labels(labels) and not looks_like_texts(labels)
    assert looks_like_texts(["这部电影非常好看,强烈推荐给所有人" + str(i) for i in range(9)]), "without spaces"
    assert not looks_like_labels(["one"] * 9) and not looks_like_labels([str(i) for i in range(9)])
    assert not looks_like_labels([["a"], ["b"]] * 5) and not looks_like_texts([None] * 5)


# --- splits


def test_splits_that_are_drawn_keep_the_shares_of_the_classes(tmp_path):
    records = [(text, "rare" if i % 20 == 0 else label) for i, (text, label) in enumerate(rows(200))]
    corpus = datasets.load(own_text(put(tmp_path, separated(records))))
    corpus_labels = np.concatenate([split.labels for split in corpus.splits])
    shares = np.array([np.bincount(split.labels) / np.bincount(corpus_labels) for split in corpus.splits])
    assert np.abs(shares - np.array([[0.7], [0.15], [0.15]])).max() < 0.06
    assert datasets.load(own_text(str(tmp_path / "my.csv"))).checksum == corpus.checksum
    assert any("of each class 70% are train, 15% dev and 15% test" in note for note in corpus.notes)


def test_splits_are_those_of_a_column_and_a_dev_that_is_missing_is_drawn_from_train(tmp_path):
    splits = ["train", "Train", "training", "VAL ", "test"]
    records = [(text, label, splits[i // 2 % 5]) for i, (text, label) in enumerate(rows(50))]
    corpus = datasets.load(own_text(put(tmp_path, separated(records, ("text", "label", "fold"))), split_column="fold"))
    assert [len(split) for split in corpus.splits] == [30, 10, 10]
    assert {one.text for one in corpus.test.instances} == {text for text, _, split in records if split == "test"}
    assert "The splits are those of the column 'fold'." in corpus.notes
    called = own_text(put(tmp_path, separated(records, ("text", "label", "Split"))))
    assert called.columns.split == "Split" and datasets.load(called).checksum == corpus.checksum
    records = [(text, label, "test" if i < 10 else "train") for i, (text, label) in enumerate(rows(50))]
    corpus = datasets.load(own_text(put(tmp_path, separated(records, ("text", "label", "split")))))
    assert [len(split) for split in corpus.splits] == [34, 6, 10]
    assert "15% of train, of each class, are dev." in corpus.notes


# --- the name: one's own text is a dataset like any other


def test_the_name_depends_on_the_content_and_tells_no_folder(tmp_path):
    (tmp_path / "here").mkdir()
    first = own_text(put(tmp_path / "here", separated(rows()), "my reviews.csv"))
    moved = own_text(put(tmp_path, separated(rows()), "my reviews.csv"))
    assert first == moved and hash(first) == hash(moved) and first.startswith("own:my_reviews-")
    assert own_text(put(tmp_path, separated(rows()), f"{'é' * 60}<x>.csv")).startswith("own:x-")
    for copied in (pickle.loads(pickle.dumps(first)), deepcopy(first)):  # made above: nothing foreign is read
        assert copied == first and datasets.load(copied).checksum == datasets.load(first).checksum
    with pytest.raises(DataError, match="unknown dataset 'own:my_reviews-"):
        datasets.load(str(first))
    assert own_text(put(tmp_path, separated(rows(58)), "my reviews.csv")) != moved
    with pytest.raises(DataError, match=r"my reviews\.csv has changed since it was first read; start again"):
        datasets.load(moved)


def test_files_are_looked_for_here_and_in_the_homes_of_data(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    put(tmp_path / "home", separated(rows()), "elsewhere.csv")
    put(tmp_path, separated(rows()), "near.csv")
    monkeypatch.chdir(tmp_path)
    assert own_text("near.csv").path == tmp_path / "near.csv"
    assert own_text("elsewhere.csv", data_home=tmp_path / "home").path == tmp_path / "home" / "elsewhere.csv"


def test_a_model_is_trained_in_another_process_and_kept_by_the_files_name(tmp_path, monkeypatch):
    monkeypatch.setenv("CACHE_HOME", str(tmp_path / "cache"))
    name = own_text(put(tmp_path, separated(ROWS), "secret plans.csv"))
    run = Run(name, "average", vectors="random", options=(("epochs", 1),))
    [trained] = train_all([run], processes=2)
    [kept] = [path for path in cache.home().iterdir() if not path.name.startswith(".")]
    assert kept.name.startswith("own_secret_plans_") and trained.corpus.classes == ("bad", "good", "so-so")
    assert not [path for path in kept.glob("*.json") if str(tmp_path) in path.read_text()]
    settings = PAPERS["correlation"].settings(dataset=name, profile="paper")
    of_paper = replace(trained, run=replace(run, profile="paper"))
    not_kept = keep("correlation", settings, [of_paper], TABLE, TABLE, tmp_path / "results")
    assert "the text is your own" in not_kept.sentence and not (tmp_path / "results").exists()


# --- what is wrong, in one sentence


def changed(place, record, number=60):
    """CSV rows, one of them another."""
    found = list(rows(number))
    found[place] = record
    return separated(found)


def with_line(line, names=("text", "label")):
    return json_lines(rows(), names) + line + "\n"


JSON = {"name": "my.jsonl"}
PLAIN = [(text.replace(",", ""), label) for text, label in rows()]
TWO = [(f"{text} and more", text, label) for text, label in rows()]
BROKEN = gzip.compress(separated(rows()).encode())


def with_splits(*splits):
    records = [(*row, splits[i // 2 % len(splits)]) for i, row in enumerate(rows(60))]
    return separated(records, ("text", "label", "split"))


def of_splits(train, test):
    records = [*((*row, "train") for row in train), *((*row, "test") for row in test)]
    return separated(records, ("text", "label", "split"))


BAD = [  # a file's content, what the message says, and the file's name and the parameters if they are others
    # encodings
    (separated(rows()).encode("utf-16")[:-1], "is not UTF-8, nor in any encoding", {}),
    (separated(rows()).encode("utf-16-le"), "my.csv holds a NUL character", {}),  # without its mark
    (with_line('{"text": "a\\u0000b", "label": "bad"}'), "row 61: 'text' holds a NUL", JSON),
    (with_line('{"text": "\\ud83d", "label": "bad"}'), "'text' is not UTF-8, or holds half a surrogate", JSON),
    # forms
    (b"", "my.csv is no CSV (No columns to parse", {}),
    ("text,label\n", "is empty; it needs one record for each text, with its label", {}),
    (changed(3, ("one", "bad", "more")), "is no CSV (Error tokenizing data. C error: Expected 2 fields in line 5", {}),
    (changed(3, ("one",)), "row 5: 'label' is missing", {}),
    ('text,label\nfine,1\n"open,0\nmore,1\n', "EOF inside string starting at row 2", {}),
    (with_line('{"text": "cut'), "my.jsonl, line 61, is no JSON", JSON),
    (with_line('{"text": 7, "label": "bad"}'), "row 61: 'text' is '7'; allowed: a string in every", JSON),
    (BROKEN[: len(BROKEN) // 2], "is damaged or cut off", {"name": "my.csv.gz"}),
    (None, "there is no file", {}),
    (b"PK\x03\x04", "my.xlsx is not read; allowed: .csv, .tsv, .txt, .jsonl", {"name": "my.xlsx"}),
    # columns
    (separated(TWO, ("text", "text", "label")), "has two columns 'text'; names must differ", {}),
    ("text\n" + "a fine film\n" * 9, "is the label? 0 columns look like it; ", {}),
    ("\n".join(f"{text},{label}" for text, label in PLAIN), "the first row must name the columns", {}),
    (separated(rows()), "has no column 'review'; its columns: 'text', 'label'", {"text_column": "review"}),
    (separated(TWO, ("title", "body", "label")), "which column is the text? 2 columns look like it; ", {}),
    (None, "text names a column, but no file is named by data", {"name": "", "text_column": "text"}),
    # labels and splits
    (changed(3, ("a\nb", "bad")) + "\r\nlast,\r\n", "my.csv, row 63: 'label' is missing", {}),
    (with_line('{"text": "a film", "label": NaN}'), "row 61: 'label' is missing", JSON),
    (changed(4, ("a film", "NA")), "row 6: 'label' is 'NA'; allowed: a name or number, not what programs write", {}),
    (with_line('{"text": "a film", "label": ["bad"]}'), "is \"['bad']\"; allowed: a name or number", JSON),
    (separated(rows(labels=["bad"])), "all 60 records have the label 'bad'; a classifier needs at least two", {}),
    (separated([*rows(), *rows(2, ["odd"])]), "class 'odd' has 2 texts in train; 3 are needed to learn it", {}),
    (with_splits("train", "test", "fold 3"), "row 6: 'split' is 'fold 3'; allowed: train, training", {}),
    (with_splits("train", "dev"), "my.csv: the records are of train, dev; allowed: train and test, and dev", {}),
    (of_splits(rows(), rows(9, ["new", "bad"])), "'new' has 0 texts in train; 2 are needed", {}),
    (of_splits(rows(), rows(9, ["bad"], 99)), "has 9 texts left, of the classes: bad; a classifier needs", {}),
]


@pytest.mark.parametrize(("content", "expected", "given"), BAD, ids=[expected[:40] for _, expected, _ in BAD])
def test_bad_input_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch, content, expected, given):
    name, columns = given.get("name", "my.csv"), {key: value for key, value in given.items() if key != "name"}
    monkeypatch.setenv("CACHE_HOME", str(tmp_path / "cache"))
    if content is not None:
        put(tmp_path, content, name)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError) as caught:
        datasets.load(own_text(name and str(tmp_path / name), **columns), "quick")
    message = str(caught.value)
    assert expected in message and "\n" not in message and len(message) < 600 and caught.value.__cause__ is None
    assert sorted(tmp_path.rglob("*")) == before


# --- reports


def test_the_command_refuses_before_anything_runs(tmp_path, capsys):
    good, alone = put(tmp_path, separated(rows())), put(tmp_path, separated(rows(labels=["bad"])), "alone.csv")
    for given, expected in [
        (["data", alone], "all 60 records have the label 'bad'"),
        (["data", good, "label_column", "stars"], "has no column 'stars'; its columns: 'text', 'label'"),
        (["data", good, "dataset", "sst"], "dataset is 'sst' and data is"),
        (["text_column", "text"], "text names a column, but no file is named by data"),
    ]:
        pairs = [word for name, value in zip(given[::2], given[1::2], strict=True) for word in ("-p", name, value)]
        assert main(["correlation", *pairs, "--output", str(tmp_path / "out")]) == 2
        printed = capsys.readouterr().err
        assert expected in printed and len(printed.strip().splitlines()) == 1 and "Traceback" not in printed
    assert not (tmp_path / "out").exists()


def test_a_report_is_named_after_the_file_alone_and_made_again_when_it_has_changed(tmp_path):
    parameters = f'data = ""\nlabel_column = ""\n{notebooks.PARAMETERS}'
    study = notebooks.save(tmp_path / "small.ipynb", "1", parameters=parameters)
    names = {report_name(study, {"data": data}) for data in ("/secret/a/my.csv", "/secret/b/my.csv", "my.csv")}
    assert len(names) == 3 and all(name.startswith("small-own-my-") and "secret" not in name for name in names)
    assert report_name(study, {"data": f"/secret/{HOSTILE}.csv", "label_column": "a/b"}).count("/") == 0
    assert report_name(study, {}) == "small-planted"
    asked = {"data": put(tmp_path, separated(rows()))}
    first = fingerprint(study, asked)
    assert fingerprint(study, asked) == first
    put(tmp_path, separated(rows(62)))
    assert fingerprint(study, asked) != first


def test_a_full_disk_ends_a_report_in_one_sentence(tmp_path, monkeypatch, capsys, forked_kernels):
    monkeypatch.setenv("RESULTS_HOME", str(tmp_path / "results"))
    notebooks.save(tmp_path / "small.ipynb", "1")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # what a full disk is to a program
    code = main(["small", "--notebooks", str(tmp_path), "--output", str(tmp_path / "out")])
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    line = capsys.readouterr().err
    assert code == 1 and "nothing could be written" in line and "File too large" in line and "Traceback" not in line
    assert not list((tmp_path / "out").glob("*.html"))


CARD = """
from lib import datasets, tables
corpus = datasets.load(datasets.own_text(data, label_column=label_column), profile)
tables.sentences(*datasets.about(corpus, spec=datasets.spec(corpus.name)))
tables.show(datasets.card(corpus), index="what")
"""


def test_a_notebook_from_a_file_to_a_page(tmp_path, monkeypatch, forked_kernels):
    """By its name in the caller's folder, with hostile words for texts, columns and classes."""
    monkeypatch.setenv("RESULTS_HOME", str(tmp_path / "results"))
    monkeypatch.chdir(tmp_path)
    parameters = f'data = ""\nlabel_column = ""\n{notebooks.PARAMETERS}'
    notebooks.save(tmp_path / "small.ipynb", *CARD.strip().split("\n"), parameters=parameters)
    records = [(f"{text} {HOSTILE}", HOSTILE if label == "good" else label) for text, label in ROWS]
    put(tmp_path, separated(records, (HOSTILE, "stars")).encode("utf-16"), "my reviews.csv")
    chosen = "small -p data my_reviews.csv -p label_column stars --notebooks . --output out"
    assert main([word.replace("my_reviews", "my reviews") for word in chosen.split()]) == 0
    [page] = (tmp_path / "out").glob("small-own-my_reviews-*.html")
    text = page.read_text()
    assert "my reviews.csv" in text and "drawn at random, always the same" in text
    assert HOSTILE not in text and "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert not (tmp_path / "results").exists()
