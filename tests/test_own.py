"""One's own text: every form is read as it is meant; whatever is wrong gives one sentence and leaves nothing."""

import codecs
import csv
import gzip
import importlib
import io
import json
import os
import pickle
import random
import resource
import tempfile
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from planned import runs

import notebooks
from lib import datasets
from lib.datasets import DataError, own, own_text
from lib.datasets.own import looks_like_labels, looks_like_texts
from lib.training import Run, cache, train, train_all
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
    "tabs.csv": separated(ROWS, delimiter="\t"),
    "my.tsv": separated(ROWS, delimiter="\t"),
    "old.csv": separated(ROWS).replace("\r\n", "\r"),
    "blank.csv": separated(ROWS).replace("\r\n", "\n\n , \n", 1),
    "index.csv": TABLE.to_csv(),
    "late.csv": "\n \r\n" + separated(ROWS),
    "my.csv.gz": gzip.compress(separated(ROWS).encode()),
    "my.jsonl": json_lines(ROWS),
    "my.ndjson": "\n" + json_lines(ROWS),
    "my.json": json_lines(ROWS),
    "bom.csv": codecs.BOM_UTF8 + separated(ROWS).encode(),
    "bom.jsonl": codecs.BOM_UTF8 + json_lines(ROWS).encode(),
    "wide.csv": separated(ROWS, delimiter="\t").encode("utf-16"),
    "big-endian.csv": codecs.BOM_UTF16_BE + separated(ROWS).encode("utf-16-be"),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_texts_and_classes(tmp_path, name):
    corpus = datasets.load(own_text(put(tmp_path, FORMS[name], name)))
    assert labels_of(corpus) == dict(ROWS) and corpus.classes == ("bad", "good", "so-so")
    assert [len(split) for split in corpus.splits] == [42, 9, 9]
    assert [np.bincount(split.labels).tolist() for split in corpus.splits] == [[14] * 3, [3] * 3, [3] * 3]
    assert not any("UTF-8" in note for note in corpus.notes), "nothing was guessed"


def test_parquet_is_read_by_what_pandas_has(tmp_path, monkeypatch):
    monkeypatch.setattr(pd, "read_parquet", lambda file: TABLE if file.read() == b"PAR1" else None)
    assert labels_of(datasets.load(own_text(put(tmp_path, b"PAR1", "my.parquet")))) == dict(ROWS)


def test_parquet_itself(tmp_path):
    TABLE.to_parquet(tmp_path / "my.parquet")
    assert labels_of(datasets.load(own_text(str(tmp_path / "my.parquet")))) == dict(ROWS)


LANGUAGES = {
    "es": "cp1252",
    "pt": "cp1252",
    "de": "cp1252",
    "pl": "cp1250",
    "ru": "cp1251",
    "el": "cp1253",
    "tr": "cp1254",
}
LANGUAGES |= {"ar": "cp1256", "zh": "gb18030", "ja": "cp932", "ko": "cp949"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_another_encoding_is_guessed_and_the_guess_is_shown(tmp_path, language):
    sentences = importlib.import_module(f"spacy.lang.{language}.examples").sentences
    encoding, lasting = LANGUAGES[language], [f"{text} ({i})" for i, text in enumerate(sentences * 6)]
    known = [text.encode(encoding, "ignore").decode(encoding) for text in lasting]
    records = [(text, i % 2) for i, text in enumerate(known)]
    corpus = datasets.load(own_text(put(tmp_path, separated(records).encode(encoding))))
    assert labels_of(corpus) == {text: str(label) for text, label in records}
    [note] = [note for note in corpus.notes if "is not UTF-8" in note]
    assert (
        ", a guess from its bytes, with words such as " in note and "if that is wrong, save the file as UTF-8" in note
    )
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
        ([True, False], ("False", "True")),
        (["class 10", "class 9", "Class 1"], ("Class 1", "class 9", "class 10")),
        (["none", "nano", "n"], ("n", "nano", "none")),
        ([" yes", "no "], ("no", "yes")),
        (["split", "texts", "encoder"], ("encoder", "split", "texts")),
        ([HOSTILE, "é", "😀"], (HOSTILE, "é", "😀")),
    ],
)
def test_classes_are_named_and_in_their_natural_order(tmp_path, labels, classes):
    records = [(text, labels[i % len(labels)]) for i, (text, _) in enumerate(rows(80))]
    corpus = datasets.load(own_text(put(tmp_path, json_lines(records), "my.jsonl")))
    assert corpus.classes == classes
    card = datasets.card(corpus)
    counted = card[[f"class {name}" for name in classes]]
    assert counted.sum(axis=1).tolist() == card["texts"].tolist() == [len(split) for split in corpus.splits]


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
    given = own_text(str(tmp_path / "my.csv"), "review", "stars")
    assert given == own_text(str(tmp_path / "my.csv")), "however it is found, it is the same dataset"


def test_what_looks_like_texts_and_what_like_labels():
    texts, labels = zip(*rows(), strict=True)
    assert looks_like_texts(texts) and not looks_like_labels(texts)
    assert looks_like_labels(labels) and not looks_like_texts(labels)
    assert looks_like_texts(["这部电影非常好看,强烈推荐给所有人" + str(i) for i in range(9)]), "without spaces"
    assert not looks_like_labels(["one"] * 9) and not looks_like_labels([str(i) for i in range(9)])
    assert not looks_like_labels([["a"], ["b"]] * 5) and not looks_like_texts([None] * 5) and not looks_like_texts([])


# --- splits


def test_splits_that_are_drawn_keep_the_shares_of_the_classes(tmp_path):
    records = [(text, "rare" if i % 20 == 0 else label) for i, (text, label) in enumerate(rows(200))]
    corpus = datasets.load(own_text(put(tmp_path, separated(records))))
    corpus_labels = np.concatenate([split.labels for split in corpus.splits])
    shares = np.array([np.bincount(split.labels) / np.bincount(corpus_labels) for split in corpus.splits])
    assert np.abs(shares - np.array([[0.7], [0.15], [0.15]])).max() < 0.06
    again = datasets.load(own_text(str(tmp_path / "my.csv")))
    assert again.checksum == corpus.checksum
    assert any("of each class 70% are train, 15% dev and 15% test" in note for note in corpus.notes)


@pytest.mark.parametrize("dev", ["dev", "VAL", "valid", "validation ", "development"])
def test_splits_are_those_of_a_column(tmp_path, dev):
    splits = ["train", "Train", "training", dev, "test"]
    records = [(text, label, splits[i // 2 % 5]) for i, (text, label) in enumerate(rows(50))]
    corpus = datasets.load(own_text(put(tmp_path, separated(records, ("text", "label", "fold"))), split_column="fold"))
    assert [len(split) for split in corpus.splits] == [30, 10, 10]
    assert {one.text for one in corpus.test.instances} == {text for text, _, split in records if split == "test"}
    assert "The splits are those of the column 'fold'." in corpus.notes
    called = own_text(put(tmp_path, separated(records, ("text", "label", "Split"))))
    assert called.columns.split == "Split" and datasets.load(called).checksum == corpus.checksum


def test_a_dev_that_is_missing_is_drawn_from_train(tmp_path):
    records = [(text, label, "test" if i < 10 else "train") for i, (text, label) in enumerate(rows(50))]
    corpus = datasets.load(own_text(put(tmp_path, separated(records, ("text", "label", "split")))))
    assert [len(split) for split in corpus.splits] == [34, 6, 10]
    assert "15% of train, of each class, are dev." in corpus.notes


@pytest.mark.parametrize(
    ("names", "data", "sizes"),
    [
        (("my.train.csv", "my.dev.csv", "my.test.csv"), "my.csv", [40, 20, 10]),
        (("my.train.csv", "my.val.csv", "my.test.csv"), "my.train.csv", [40, 20, 10]),
        (("my-train.csv", "my-test.csv"), "my-test.csv", [34, 6, 10]),
        (("train.csv", "valid.csv", "test.csv"), "train.csv", [40, 20, 10]),
        (("train.csv",), "train.csv", [28, 6, 6]),
    ],
)
def test_splits_are_those_of_files(tmp_path, names, data, sizes):
    for place, name in enumerate(names):
        number = 40 if "train" in name else 10 if "test" in name else 20
        put(tmp_path, separated(rows(number, start=1000 * place)), name)
    name = own_text(str(tmp_path / data))
    assert [len(split) for split in datasets.load(name).splits] == sizes
    assert name.startswith(("own:my-", "own:text-", "own:train-"))


def test_texts_of_train_that_come_again_in_test_are_counted(tmp_path):
    records = [(text, label, "test" if i < 10 else "train") for i, (text, label) in enumerate(rows(50))]
    records += [(f" {text}", label, "test") for text, label, _ in records[10:14]]
    corpus = datasets.load(own_text(put(tmp_path, separated(records, ("text", "label", "split")))))
    seen = {one.text.strip() for one in corpus.train.instances}
    again = datasets.duplicates(corpus).set_index("split")["again"]
    assert again["test"] == sum(one.text.strip() in seen for one in corpus.test.instances) > 0


def test_empty_texts_are_left_out_and_counted(tmp_path):
    corpus = datasets.load(own_text(put(tmp_path, separated([*rows(), *[("  ", "bad")] * 20]))))
    assert sum(len(split) for split in corpus.splits) == 60
    assert any("were left out because they have no tokens" in note for note in corpus.notes)


# --- the name: one's own text is a dataset like any other


def test_the_name_depends_on_the_content_and_tells_no_folder(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    first = own_text(put(here, separated(rows()), "my reviews.csv"))
    moved = own_text(put(there, separated(rows()), "my reviews.csv"))
    assert first == moved and hash(first) == hash(moved) and first.startswith("own:my_reviews-")
    assert {first, own_text(put(there, separated(rows(62)), "my reviews.csv"))} == {
        first,
        own_text(str(there / "my reviews.csv")),
    }
    assert own_text(put(there, separated(rows()), f"{'é' * 60}<x>.csv")).startswith("own:x-")
    for copied in (pickle.loads(pickle.dumps(first)), deepcopy(first)):  # made above: nothing foreign is read
        assert copied == first and datasets.load(copied).checksum == datasets.load(first).checksum
    with pytest.raises(DataError, match="unknown dataset 'own:my_reviews-"):
        datasets.load(str(first))


def test_a_file_that_changes_between_two_readings_is_noticed(tmp_path):
    name = own_text(put(tmp_path, separated(rows())))
    put(tmp_path, separated(rows(58)))
    with pytest.raises(DataError, match=r"my\.csv has changed since it was first read; start again"):
        datasets.load(name)


def test_files_are_looked_for_here_in_the_project_and_in_the_homes_of_data(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "home").mkdir()
    put(tmp_path / "home", separated(rows()), "elsewhere.csv")
    put(tmp_path / "here", separated(rows()), "near.csv")
    monkeypatch.chdir(tmp_path / "here")
    assert own_text("near.csv").files[""] == tmp_path / "here" / "near.csv"
    assert own_text("elsewhere.csv", data_home=tmp_path / "home").files[""] == tmp_path / "home" / "elsewhere.csv"


def test_every_paper_takes_it_and_models_over_sentences_too(tmp_path):
    name = own_text(put(tmp_path, separated(rows())))
    for notebook in ("correlation", "adversary", "regularization", "sparsity"):
        assert {run.dataset for run in runs(notebook, name)} == {name}
    assert {run.encoder for run in runs("erasure", name, train_texts=9)} >= {"han-rnn", "flan-noenc"}


def test_a_model_is_trained_in_a_process_of_its_own_as_in_this_one_and_kept_by_the_files_name(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.setenv("CACHE_HOME", str(tmp_path / "cache"))
    name = own_text(put(tmp_path, separated(ROWS), "secret plans.csv"))
    run = Run(name, "average", vectors="random")
    [trained] = train_all([run], processes=2)  # not in this one
    assert "epoch 1/4" in "".join(capfd.readouterr())
    assert trained.history[-1]["dev_auc"] > 0.5 and trained.corpus.classes == ("bad", "good", "so-so")
    kept = [path for path in cache.home().iterdir() if not path.name.startswith(".")]
    assert len(kept) == 1 and all(path.name.startswith("own_secret_plans_") for path in kept)
    assert not [path for folder in kept for path in folder.glob("*.json") if str(tmp_path) in path.read_text()]
    settings = PAPERS["correlation"].settings(dataset=name, profile="paper")
    assert "the text is your own" in keep(
        "correlation", settings, [_of_paper(trained)], TABLE, TABLE, tmp_path / "results"
    )
    assert not (tmp_path / "results").exists()
    monkeypatch.setenv("CACHE_HOME", str(tmp_path / "other"))
    here = train(run, say=lambda line: None).model.state_dict()
    assert all(torch.equal(value, here[key]) for key, value in trained.model.state_dict().items())


def _of_paper(trained):
    return replace(trained, run=replace(trained.run, profile="paper"))


# --- what is wrong, in one sentence


def changed(place, record, number=60):
    """CSV rows, one of them another."""
    found = list(rows(number))
    found[place] = record
    return separated(found)


def with_line(line, names=("text", "label")):
    return json_lines(rows(), names) + line + "\n"


def with_splits(*splits, number=60):
    return separated(
        [(*row, splits[i // 2 % len(splits)]) for i, row in enumerate(rows(number))], ("text", "label", "fold")
    )


PARTS = {"my.train.csv": separated(rows(20)), "my.test.csv": separated(rows(20, start=50))}
TWO = [(f"{text} and more", text, label) for text, label in rows()]
BROKEN = gzip.compress(separated(rows()).encode())


def bad(content, expected, name="my.csv", **columns):
    """A file's content, or {name: content} of several, or a function that makes it; the error; the parameters."""
    return content, expected, name, columns


BAD = {
    # encodings
    "UTF-16 cut off": bad(separated(rows()).encode("utf-16")[:-1], "is not UTF-8, nor in any other encoding"),
    "UTF-16 without its mark": bad(separated(rows()).encode("utf-16-le"), "line 1, holds a NUL character"),
    "NUL": bad(changed(1, ("a\0b", "good")), "my.csv, line 3, holds a NUL character, which is no text"),
    "a picture": bad(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xd8", "is not UTF-8, nor in any other encoding"),
    "NUL in JSON": bad(
        with_line('{"text": "a\\u0000b", "label": "bad"}'), "line 61: 'text' holds a NUL", name="my.jsonl"
    ),
    "half a character": bad(
        with_line('{"text": "\\ud83d", "label": "bad"}'),
        "'text' is not UTF-8, or holds half a surrogate",
        name="my.jsonl",
    ),
    "NUL in a label": bad(
        with_line('{"text": "a b c", "label": "b\\u0000"}'), "('label') holds a NUL", name="my.jsonl"
    ),
    # forms
    "nothing": bad(b"", "my.csv is empty; it needs one record for each text, with its label"),
    "nothing in JSON lines": bad("\n \n", "my.jsonl is empty", name="my.jsonl"),
    "blank lines": bad(" \n\r\n\t\n", "my.csv is empty"),
    "a byte order mark alone": bad(codecs.BOM_UTF8, "my.csv is empty"),
    "names of columns alone": bad("text,label\n", "has no record, only names of columns"),
    "a field too many": bad(
        changed(3, ("one", "bad", "more")),
        "is no CSV (Error tokenizing data. C error: Expected 2 fields in line 5, saw 3)",
    ),
    "a field too few": bad(changed(3, ("one",)), "row 5: the label ('label') is missing"),
    "a quotation mark never closed": bad(
        'text,label\nfine,1\n"open,0\nmore,1\n', "EOF inside string starting at row 2"
    ),
    "JSON cut off": bad(with_line('{"text": "cut'), "my.jsonl, line 61, is no JSON", name="my.jsonl"),
    "a list in JSON lines": bad(
        with_line("[1]"), "line 61, is a JSON list; each line must be one object", name="my.jsonl"
    ),
    "JSON without end": bad(with_line("[" * 100_000), "line 61, is no JSON", name="my.jsonl"),
    "one JSON array": bad(
        json.dumps([{"text": "a", "label": 1}]), "line 1, is a JSON list; each line must be one object", name="my.json"
    ),
    "a text that is a number": bad(
        with_line('{"text": 7, "label": "bad"}'), "line 61: 'text' is of type int", name="my.jsonl"
    ),
    "a text that is missing": bad(with_line('{"label": "bad"}'), "line 61: 'text' is missing", name="my.jsonl"),
    "no gzip": bad(separated(rows()), "is damaged", name="my.csv.gz"),
    "gzip cut off": bad(BROKEN[: len(BROKEN) // 2], "the file is cut off", name="my.csv.gz"),
    "gzip of nothing": bad(gzip.compress(b""), "my.csv.gz is empty", name="my.csv.gz"),
    # columns
    "a name twice": bad(separated(TWO, ("text", "text", "label")), "has 2 columns 'text'; names must differ"),
    "one column": bad(
        "text\n" + "a fine film\n" * 9,
        "which column is the label? no column looks like it; name it by label_column; its columns: 'text'",
    ),
    "one class in a column of another name": bad(
        separated([(text, "good") for text, _ in rows()], ("text", "stars")),
        "no column looks like it ('stars': one value in all rows, and two classes or more are needed); name it by",
    ),
    "no first row": bad(
        "\n".join(f"{text.replace(',', '')},{label}" for text, label in rows()),
        "the first row must name the columns, but 'bad'",
    ),
    "another text_column": bad(
        separated(rows()), "has no column 'review'; its columns: 'text', 'label'", text_column="review"
    ),
    "another label_column": bad(separated(rows()), "has no column 'Label'", label_column="Label"),
    "another split_column": bad(separated(rows()), "has no column 'fold'", split_column="fold"),
    "one column for two": bad(
        separated(rows()), "are text, text; allowed: different ones", text_column="text", label_column="text"
    ),
    "two texts": bad(
        separated(TWO, ("title", "body", "label")),
        "which column is the text? 2 columns look like it; name it by text_column",
    ),
    "two labels": bad(
        separated([(*row, i % 3) for i, row in enumerate(rows())], ("text", "a", "b")),
        "which column is the label? 2 columns look like it",
    ),
    "no text": bad(
        separated([(i, i % 2) for i in range(60)], ("n", "label")), "which column is the text? no column looks like it"
    ),
    "a text of numbers": bad(separated([(i, i % 2) for i in range(60)]), "the column 'text' holds no words"),
    "many columns": bad(
        separated([[*"abcdefghijklmnop"]] * 3, [f"column {i}" for i in range(16)]), "'column 11' and 4 more"
    ),
    # labels
    "a label that is missing": bad(changed(4, ("a film", " ")), "my.csv, row 6: the label ('label') is missing"),
    "below lines that are blank and a text of two lines": bad(
        "\n\n" + changed(3, ("a\nb", "bad")) + "\r\nlast,\r\n", "my.csv, row 65: the label ('label') is missing"
    ),
    "no label in JSON": bad(
        with_line('{"text": "a film", "label": null}'), "line 61: the label ('label') is missing", name="my.jsonl"
    ),
    "NaN for a label": bad(
        with_line('{"text": "a film", "label": NaN}'), "line 61: the label ('label') is missing", name="my.jsonl"
    ),
    **{
        f"{name} for a label": bad(
            changed(4, ("a film", name)),
            f"my.csv, row 6: the label ('label') is {name!r}, as programs write a missing value; leave such records",
        )
        for name in ("nan", "NaN", "None", "NA", "null")
    },
    "nan as a text in JSON": bad(
        with_line('{"text": "a film", "label": "nan"}'), "line 61: the label ('label') is 'nan'", name="my.jsonl"
    ),
    "a list for a label": bad(
        with_line('{"text": "a film", "label": ["bad"]}'),
        "is of type list; allowed: a text or a number",
        name="my.jsonl",
    ),
    "a text for a label": bad(
        changed(4, ("a film", "bad " * 60)), "has 239 characters; allowed: at most 200; is it the column of texts?"
    ),
    "one class": bad(
        separated(rows(labels=["bad"])), "all 60 records have the label 'bad'; a classifier needs at least two classes"
    ),
    "a class of two texts": bad(
        separated([*rows(), *rows(2, ["odd"])]), "every class needs at least 3 texts; 'odd' has 2"
    ),
    "a number for each text": bad(
        separated([(text, i / 7) for i, (text, _) in enumerate(rows())]),
        "'0.0' has 1, and 59 of the other 59 classes too few as well",
    ),
    # splits
    "an unknown split": bad(
        with_splits("train", "test", "fold 3"),
        "row 6: the split ('fold') is 'fold 3'; allowed: train, training, dev",
        split_column="fold",
    ),
    "an unknown split in a column called split": bad(
        "text,label,Split\n"
        + "".join(f"{word} film {i},{word},{'train' if i else 'tset'}\n" for i in range(9) for word in "ab"),
        "row 2: the split ('Split') is 'tset'; allowed: train, training, dev",
    ),
    "a split that is missing": bad(
        with_splits("train", "", "test"), "row 4: the split ('fold') is missing", split_column="fold"
    ),
    "no test": bad(
        with_splits("train", "dev"),
        "my.csv: the records are of train, dev; allowed: train and test, and dev",
        split_column="fold",
    ),
    "no train": bad(with_splits("dev", "test"), "the records are of dev, test; allowed: train", split_column="fold"),
    "a class of test alone": bad(
        separated(
            [(*row, "train") for row in rows()] + [(*row, "test") for row in rows(9, ["new", "bad"])],
            ("text", "label", "split"),
        ),
        "every class needs at least 2 texts; 'new' has 0",
    ),
    "no dev for a class": bad(
        separated(
            [(*row, "train" if i else "test") for i, row in enumerate([*rows(), *rows(1, ["odd"])])],
            ("text", "label", "split"),
        ),
        "to draw dev from train, every class needs at least 2 texts; 'odd' has 1",
    ),
    "a test of one class": bad(
        separated(
            [(*row, "train") for row in rows()] + [(*row, "test") for row in rows(9, ["bad"], 99)],
            ("text", "label", "split"),
        ),
        "all 9 texts of test in",
    ),
    "a test without words": bad(
        separated(
            [(*row, "train") for row in rows()] + [("", label, "test") for _, label in rows()],
            ("text", "label", "split"),
        ),
        "no text of test is left",
    ),
    "files without test": bad(
        {"my.train.csv": PARTS["my.train.csv"], "my.dev.csv": PARTS["my.test.csv"]},
        "of the files of splits there is my.train.csv, my.dev.csv; allowed: at least one of train and one of test",
    ),
    "two files of dev": bad(
        PARTS | {"my.dev.csv": separated(rows()), "my.val.csv": separated(rows())},
        "my.dev.csv and my.val.csv are both of dev",
    ),
    "files and a split_column": bad(
        PARTS, "split_column is 'label', but the splits are files: my.train.csv, my.test.csv", split_column="label"
    ),
    "files of other columns": bad(
        {**PARTS, "my.test.csv": separated(rows(), ("text", "stars"))},
        "my.test.csv has no column 'label'; its columns: 'text', 'stars'",
    ),
    # files
    "no file": bad({"other.csv": "", "\n.csv": ""}, " has \\n.csv, other.csv"),
    "a folder": bad(Path.mkdir, "my.csv cannot be read: Is a directory"),
    "a workbook": bad(
        b"PK\x03\x04",
        "my.xlsx ends in .xlsx; allowed: .csv, .tsv, .txt, .jsonl, .ndjson, .json, .parquet",
        name="my.xlsx",
    ),
    "no ending": bad(b"text", "my ends in nothing; allowed: .csv", name="my"),
    "a name of many letters": bad({}, "cannot be read: File name too long", name=f"{'a' * 300}.csv"),
    "a name that is no text": bad(
        lambda path: put(path.parent, separated(rows()), os.fsdecode(b"m\xff.csv")),
        "m\\udcff.csv' has characters that cannot be shown",
        name=os.fsdecode(b"m\xff.csv"),
    ),
    "a name of two lines": bad(separated(rows()), "m\\ny.csv' has characters that cannot be shown", name="m\ny.csv"),
    "NUL in a name": bad({}, "m\\x00y.csv' has characters that cannot be shown", name="m\0y.csv"),
    "an address": bad({}, "is an address; allowed: a file, so download it first", name="https://example.org/my.csv"),
    "a column and no file": bad(
        {}, "text_column is 'text', but there is no file; name it by data", name="", text_column="text"
    ),
}


@pytest.mark.parametrize("wrong", BAD)
def test_bad_input_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch, wrong):
    content, expected, name, columns = BAD[wrong]
    monkeypatch.setenv("CACHE_HOME", str(tmp_path / "cache"))
    if callable(content):
        content(tmp_path / name)
    else:
        for file, inside in (content if isinstance(content, dict) else {name: content}).items():
            put(tmp_path, inside, file)
    before = sorted(tmp_path.rglob("*"))
    data = name if not name or name.startswith("https:") else str(tmp_path / name)
    with pytest.raises(DataError) as caught:
        datasets.load(own_text(data, **columns), "quick")
    message = str(caught.value)
    assert expected in message and "\n" not in message and len(message) < 600 and caught.value.__cause__ is None
    assert sorted(tmp_path.rglob("*")) == before
    assert csv.field_size_limit() == 131_072, "as it was"


def test_there_are_enough_of_them():
    assert len(BAD) >= 40 and len({expected for _, expected, *_ in BAD.values()}) >= 40


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            ValueError("Parquet magic bytes not found\nin footer"),
            "is no sound Parquet file (Parquet magic bytes not found)",
        ),
    ],
)
def test_parquet_that_cannot_be_read(tmp_path, monkeypatch, error, expected):
    def fails(file):
        raise error

    monkeypatch.setattr(pd, "read_parquet", fails)
    with pytest.raises(DataError) as caught:
        own_text(put(tmp_path, b"no parquet", "my.parquet"))
    assert expected in str(caught.value) and "\n" not in str(caught.value) and caught.value.__cause__ is None


def read_by_another_user(data: str) -> str:
    """What `own_text` says to nobody: in a forked process, since root may read everything."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        try:
            if not os.getuid():
                os.setgid(65534)
                os.setuid(65534)
            own_text(data)
            outcome = "read"
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}"
        os.write(writing, outcome.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        outcome = pipe.read()
    os.waitpid(child, 0)
    return outcome


def test_a_file_without_permission_is_one_sentence():
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        data, parts = put(folder, separated(rows())), folder / "closed"
        if (outcome := read_by_another_user(data)).startswith("OSError"):
            pytest.skip(f"root may not become another user here: {outcome}")
        assert outcome == "read"
        Path(data).chmod(0o000)
        assert read_by_another_user(data) == f"DataError: {data} cannot be read: Permission denied"
        parts.mkdir()
        inside = put(parts, separated(rows()))
        parts.chmod(0o000)
        assert read_by_another_user(inside) == f"DataError: {inside} cannot be read: Permission denied"
        parts.chmod(0o755)


@pytest.fixture
def small_disk():
    """No file may grow beyond so many bytes: what a full disk is to a program."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_no_model_that_looks_finished(tmp_path, monkeypatch, small_disk):
    monkeypatch.setenv("CACHE_HOME", str(tmp_path / "cache"))
    run = Run(own_text(put(tmp_path, separated(rows()))), "average", vectors="random", options=(("epochs", 1),))
    small_disk(10_000)
    with pytest.raises(Exception, match="File too large"):
        train(run, say=lambda line: None)
    assert not list(cache.home().glob("own_*"))
    small_disk(resource.RLIM_INFINITY if resource.getrlimit(resource.RLIMIT_FSIZE)[1] < 0 else 10**9)
    assert train(run, say=lambda line: None).history and len(list(cache.home().glob("own_*"))) == 1


# --- reports


def test_the_command_refuses_before_anything_runs(tmp_path, capsys):
    good, alone = put(tmp_path, separated(rows())), put(tmp_path, separated(rows(labels=["bad"])), "alone.csv")
    for given, expected in [
        (["data", alone], "all 60 records have the label 'bad'"),
        (["data", str(tmp_path / "none.csv")], "there is no file"),
        (
            ["data", good, "label_column", "stars"],
            "has no column 'stars'; its columns: 'text', 'label'",
        ),
        (["data", good, "dataset", "sst"], "dataset is 'sst' and data is"),
        (["text_column", "text"], "text_column is 'text', but there is no file"),
    ]:
        pairs = [word for name, value in zip(given[::2], given[1::2], strict=True) for word in ("-p", name, value)]
        assert main(["correlation", *pairs, "--output", str(tmp_path / "out")]) == 2
        printed = capsys.readouterr().err
        assert expected in printed and len(printed.strip().splitlines()) == 1 and "Traceback" not in printed
    assert not (tmp_path / "out").exists()


def test_a_report_is_named_after_the_file_and_not_after_its_folder(tmp_path):
    study = notebooks.save(
        tmp_path / "small.ipynb", "1", parameters=f'data = ""\nlabel_column = ""\n{notebooks.PARAMETERS}'
    )
    names = {report_name(study, {"data": data}) for data in ("/secret/a/my.csv", "/secret/b/my.csv", "my.csv")}
    assert len(names) == 3 and all(name.startswith("small-own-my-") and "secret" not in name for name in names)
    assert report_name(study, {"data": f"/secret/{HOSTILE}.csv", "label_column": "a/b"}).count("/") == 0
    assert report_name(study, {}) == "small-planted"


def test_a_report_is_made_again_when_the_file_has_changed(tmp_path):
    study = notebooks.save(tmp_path / "small.ipynb", "1", parameters=f'data = ""\n{notebooks.PARAMETERS}')
    asked = {"data": put(tmp_path, separated(rows()))}
    first = fingerprint(study, asked)
    assert fingerprint(study, asked) == first
    put(tmp_path, separated(rows(62)))
    assert fingerprint(study, asked) != first


def test_a_full_disk_ends_a_report_in_one_sentence(tmp_path, monkeypatch, capsys, small_disk, forked_kernels):
    monkeypatch.setenv("RESULTS_HOME", str(tmp_path / "results"))
    notebooks.save(tmp_path / "small.ipynb", "1")
    small_disk(100)
    code = main(["small", "--notebooks", str(tmp_path), "--output", str(tmp_path / "out")])
    small_disk(10**9)
    line = capsys.readouterr().err
    assert code == 1 and "nothing could be written" in line and "File too large" in line and "Traceback" not in line
    assert not list((tmp_path / "out").glob("*.html"))


def test_a_notebook_from_a_file_to_a_page(tmp_path, monkeypatch, forked_kernels):
    """By its name in the caller's folder, with hostile words for texts, columns and classes."""
    monkeypatch.setenv("CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RESULTS_HOME", str(tmp_path / "results"))
    monkeypatch.chdir(tmp_path)
    records = [(f"{text} {HOSTILE}", HOSTILE if label == "good" else label) for text, label in ROWS]
    put(tmp_path, separated(records, (HOSTILE, "stars")).encode("utf-16"), "my reviews.csv")
    chosen = {"data": "my reviews.csv", "label_column": "stars", "encoders": "flan-noenc", "seeds": "0"}
    arguments = [word for name, value in chosen.items() for word in ("-p", name, value)]
    assert main(["erasure", *arguments, "--output", "out"]) == 0
    [page] = (tmp_path / "out").glob("erasure-own-my_reviews-*.html")
    text = page.read_text()
    assert "my reviews.csv" in text and "own:my_reviews-" in text and "drawn at random, always the same" in text
    assert HOSTILE not in text and "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert not (tmp_path / "results").exists() and sorted(path.name for path in tmp_path.iterdir()) == [
        "cache",
        "my reviews.csv",
        "out",
    ]
