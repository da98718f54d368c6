"""One's own text: every form is read as it is meant; whatever is wrong gives one sentence and leaves nothing."""

import codecs
import csv
import gzip
import io
import json
import pickle
import random
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import notebooks
from lib import datasets
from lib.datasets import DataError, own, own_text
from tools.report.__main__ import main
from tools.report.parameters import report_name
from tools.report.run import fingerprint

HOSTILE = "<script>alert(1)</script>"
WORDS = {"good": "fine warm bright lovely".split(), "bad": "dull cold grey dreadful".split(), "so-so": ["plain"] * 4}


def rows(number=60, labels=("bad", "good"), start=0):
    """(text, label), the labels in turn; every text is another."""
    draw, found = random.Random(start), []
    for i in range(start, start + number):
        label = labels[i % len(labels)]
        words = draw.choices(WORDS.get(label, ["word"]), k=3) + draw.choices("the a film was it of".split(), k=4)
        found.append((f"Number {i}: {' '.join(words)}. It ends, so.", label))
    return found


def separated(records, header=("text", "label"), delimiter=","):
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows([header, *records])
    return file.getvalue()


def json_lines(records, more=""):
    return "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in records) + more


def changed(place, record):
    """CSV rows, one of them another."""
    return separated([*ROWS[:place], record, *ROWS[place + 1 :]])


def with_splits(records, *splits):
    """CSV rows with a column of splits, two of each in turn."""
    named = [(*row, splits[i // 2 % len(splits)]) for i, row in enumerate(records)]
    return separated(named, ("text", "label", "split"))


def put(folder: Path, content: str | bytes, name="my.csv") -> str:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(folder / name)


def labels_of(corpus):
    """{text: the name of its class} of all splits."""
    return {one.text: corpus.classes[one.label] for split in corpus.splits for one in split.instances}


ROWS = rows(60, ("bad", "good", "so-so"))
TABLE = pd.DataFrame(ROWS, columns=["text", "label"])
FORMS = {
    "my.csv": separated(ROWS),
    "bars.txt": separated(ROWS, delimiter="|"),
    "my.tsv": separated(ROWS, delimiter="\t"),
    "old.csv": separated(ROWS).replace("\r\n", "\r"),
    "blank.csv": "\n \r\n" + separated(ROWS).replace("\r\n", "\n\n , \n", 1),
    "index.csv.gz": gzip.compress(TABLE.to_csv().encode()),
    "my.ndjson": "\n" + json_lines(ROWS),
    "bom.csv": codecs.BOM_UTF8 + separated(ROWS).encode(),
    "wide.csv": separated(ROWS, delimiter="\t").encode("utf-16"),
    "big-endian.csv": codecs.BOM_UTF16_BE + separated(ROWS).encode("utf-16-be"),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_texts_and_classes(tmp_path, name):
    corpus = datasets.load(own_text(put(tmp_path, FORMS[name], name)))
    assert labels_of(corpus) == dict(ROWS) and corpus.classes == ("bad", "good", "so-so")
    assert [len(split) for split in corpus.splits] == [42, 9, 9]
    assert [np.bincount(split.labels).tolist() for split in corpus.splits] == [[14] * 3, [3] * 3, [3] * 3]


def test_what_was_guessed_left_out_or_cut_is_noted(tmp_path):
    incomplete = [*ROWS, ("no label", ""), ("", "bad")]
    notes = datasets.load(own_text(put(tmp_path, separated(incomplete)), skip_incomplete=True)).notes
    assert notes[0] == "In my.csv 'text' is the text, 'label' is the label." and "2 of 62 records" in notes[1]
    long = [(text * (200 if i < 3 else 1), label) for i, (text, label) in enumerate(rows())]
    cut = datasets.load(own_text(put(tmp_path, separated(long)), most_tokens=50))
    assert "3 of 60 texts were cut to their first 50 tokens (most_tokens)." in cut.notes
    assert max(split.lengths.max() for split in cut.splits) == 50
    assert sum(cut.train.instances[0].sentences) == len(cut.train.instances[0].tokens)


def test_quotation_marks_delimiters_and_line_breaks_stay_in_a_text(tmp_path):
    hostile = ('He said "no", twice; so\nit ends', f"{HOSTILE} \u202eשלום\u202c 😀, &amp;", "a | b \u2028 \t c, d ; e")
    records = [(f"{text} {i}", i % 2) for i in range(12) for text in hostile]
    for delimiter in ",;\t|":
        name = own_text(put(tmp_path, separated(records, delimiter=delimiter)))
        assert labels_of(datasets.load(name)) == {text: str(label) for text, label in records}


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["1.0", "-2", "1", 10.0, "0"], ("-2", "0", "1.0", "10")),  # 1.0 and 1 are one class, as first written
        (["250.10", "250.1", "1", "01", "1E5", "100000"], ("01", "1", "250.1", "250.10", "100000", "1E5")),  # codes
        (["9007199254740993", "9007199254740992", "1"], ("1", "9007199254740992", "9007199254740993")),
        (["caf\u00e9", "cafe\u0301", "\ufeffcaf\u00e9\u200b", "New\u00a0York ", "New York"], ("New York", "caf\u00e9")),
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
    assert len(one.sentences) == 2 and "film" in corpus.vocabulary.words and "0" not in corpus.vocabulary.words
    limited = datasets.load(own_text(str(tmp_path / "my.csv")), train_texts=10, test_texts=4)
    assert [len(split) for split in limited.splits] == [10, 10, 4]


def test_columns_are_found_by_their_names(tmp_path):
    records = [(i, f"Dr {i}", text, text[::-1], label, 2000 + i % 3) for i, (text, label) in enumerate(rows())]
    header = ("number", "author", "Text", "backwards", "LABEL", "year")
    assert own_text(put(tmp_path, separated(records, header))).reading == own.Reading("Text", "LABEL")


def test_splits_that_are_drawn_keep_the_shares_of_the_classes(tmp_path):
    records = [(text, "rare" if i % 20 == 0 else label) for i, (text, label) in enumerate(rows(200))]
    corpus = datasets.load(own_text(put(tmp_path, separated(records))))
    assert [np.bincount(split.labels).tolist() for split in corpus.splits] == [[63, 70, 7], [13, 15, 1], [14, 15, 2]]
    assert datasets.load(own_text(str(tmp_path / "my.csv"))).checksum == corpus.checksum
    assert any("of each class 70% are train, 15% dev and 15% test" in note for note in corpus.notes)


def test_splits_are_those_of_a_column_and_a_dev_that_is_missing_is_drawn_from_train(tmp_path):
    content = with_splits(rows(50), "train", "Train", "training", "VAL ", "test")
    found = own_text(put(tmp_path, content.replace("split", "Split", 1)))
    named = own_text(put(tmp_path, content.replace("split", "fold", 1), "fold.csv"), split_column="fold")
    corpus = datasets.load(found)
    assert found.reading.split == "Split" and datasets.load(named).checksum == corpus.checksum
    assert [len(split) for split in corpus.splits] == [30, 10, 10]
    assert {one.text for one in corpus.test.instances} == {text for i, (text, _) in enumerate(rows(50)) if i % 10 > 7}
    assert "The splits are those of the column 'Split'." in corpus.notes
    corpus = datasets.load(own_text(put(tmp_path, with_splits(rows(50), "test", "train", "train", "train", "train"))))
    assert [len(split) for split in corpus.splits] == [34, 6, 10]
    assert "15% of train, of each class, are dev." in corpus.notes


def test_the_name_depends_on_the_content_and_tells_no_folder(tmp_path):
    (tmp_path / "here").mkdir()
    put(tmp_path / "here", separated(rows()), "my reviews.csv")
    first = own_text("my reviews.csv", data_home=tmp_path / "here")
    moved = own_text(put(tmp_path, separated(rows()), "my reviews.csv"))
    assert first.path == tmp_path / "here" / "my reviews.csv" and first == moved
    assert hash(first) == hash(moved) and first.startswith("own:my_reviews-")
    for copied in (pickle.loads(pickle.dumps(first)), deepcopy(first)):  # made above: nothing foreign is read
        assert copied == first and datasets.load(copied).checksum == datasets.load(first).checksum
    with pytest.raises(DataError, match="unknown dataset 'own:my_reviews-"):
        datasets.load(str(first))
    assert own_text(put(tmp_path, separated(rows(58)), "my reviews.csv")) != moved
    with pytest.raises(DataError, match=r"my reviews\.csv has changed since it was first read; start again"):
        datasets.load(moved)


JSON = {"name": "my.jsonl"}
TWO = [(f"{text} and more", text, label) for text, label in rows()]
BAD = [  # a file's content, what the message says, and the file's name and the parameters if they are others
    (separated(rows()).encode("utf-16")[:-1], "my.csv is not UTF-8; save it as UTF-8", {}),
    ("text,label\nMichał,1\n".encode("cp1250"), "my.csv is not UTF-8; save it as UTF-8 (in Excel: CSV UTF-8)", {}),
    (separated(rows()).encode("utf-16-le"), "my.csv holds a NUL character", {}),  # without its mark
    (json_lines(rows(), '{"\\ud83d": "a", "label": "bad"}'), "line 61, is no JSON ('utf-8' codec can't encode", JSON),
    (json_lines(rows(), '{"text": "a", "label": "b\\u0000"}'), "row 61: 'text' or 'label' holds a NUL character", JSON),
    (b"", "my.csv is empty", {}),
    ("text,label\n", "is empty; it needs one record for each text, with its label", {}),
    (changed(3, ("one", "bad", "more")), "is no CSV (Error tokenizing data. C error: Expected 2 fields in line 5", {}),
    (json_lines(rows(), '{"text": "cut'), "my.jsonl, line 61, is no JSON", JSON),
    (json_lines(rows(), '{"text": 7, "label": "bad"}'), "1 of 61 records cannot be used (row 61: 7, 'bad')", JSON),
    (b"PK\x03\x04", "my.xlsx is not read; allowed: .csv, .tsv, .txt, .jsonl", {"name": "my.xlsx"}),
    (separated(TWO, ("text", "text", "label")), "has two columns 'text'; names must differ", {}),
    ("text\n" + "a fine film\n" * 9, "which column is the label? Name it by label_column; its columns: 'text'", {}),
    (separated(rows()[1:], rows()[0]), "which column is the text? Name it by text_column; its columns: 'Number", {}),
    (separated([*rows(), ("text", "label")]), "must name the columns, but 'text' there is a text below too", {}),
    (separated(rows()), "the column 'label' can be one of", {"text_column": "label", "label_column": "label"}),
    (separated(rows()), "has no column 'review'; its columns: 'text', 'label'", {"text_column": "review"}),
    (separated(TWO, ("title", "body", "label")), "is the text? Name it by text_column; its columns: 'title',", {}),
    (separated(TWO, ("a", "b", "label")), "has no column 'bb'; its columns: 'a'", {"text_column": "a, bb"}),
    (separated(TWO, ("a", "b", "label")), "has no column 'a,b,label'; its", {"text_column": "a,b,label"}),
    (separated(TWO, ("a", "b", "label")), "the column 'label' can be one of", {"text_column": "a,label"}),
    (separated([*TWO, ("x", " ", "bad")], ("a", "b", "label")), "1 of", {"text_column": "a,b"}),
    (None, "how to read one is given: text 'a', most_tokens 5", {"name": "", "text_column": "a", "most_tokens": 5}),
    (changed(3, ("a\nb", "bad")) + "\r\nlast,\r\n", "my.csv: 1 of 61 records cannot be used (row 63: 'last', '')", {}),
    (changed(3, (" ", "bad")), "(row 5: ' ', 'bad'); each needs a text in 'text' and a name or number in 'label'", {}),
    (separated([("", "bad")] * 9), "9 of 9 records cannot be used", {"text_column": "text", "skip_incomplete": True}),
    (changed(4, ("a film", "NA")), "(row 6: 'a film', 'NA'); each needs", {}),
    (json_lines(rows(), '{"text": "a film", "label": ["bad"]}'), "(row 61: 'a film', ['bad']); each", JSON),
    (separated(rows(labels=["bad"])), "all 60 records have the label 'bad'; a classifier needs at least two", {}),
    (separated([*rows(), *rows(2, ["odd"])]), "1 of 3 classes have too few texts in train: 'odd' has 2; 3", {}),
    (separated((t, i / 7) for i, (t, _) in enumerate(rows())), "(are they measured numbers, and no classes?)", {}),
    (with_splits(rows(), "train", "test", "fold 3"), "row 6: 'split' is 'fold 3'; allowed: train, training", {}),
    (with_splits(rows(), "train", "dev"), "my.csv: the records are of train, dev; allowed: train and test", {}),
    (with_splits(rows(9, ["bad", "bad", "new", "new"]), "train", "test"), "'new' has 0; 2 are", {}),
    (gzip.compress(bytes(2**20)) * 513, "has more than 512 MB; take a part of it", {"name": "my.csv.gz"}),
    (None, "'~nosuchuser/my.csv' is no path here: it is too", {"name": "~nosuchuser/my.csv"}),
    (None, "is no path here: it is too long, not UTF-8, or ~ of nobody", {"name": "x" * 5000}),
    (None, "/proc/version is empty", {"name": "/proc/version"}),
    (None, "/dev/zero is a folder, a pipe or a device", {"name": "/dev/zero"}),
]


@pytest.mark.parametrize(("content", "expected", "given"), BAD, ids=[expected[:40] for _, expected, _ in BAD])
def test_bad_input_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch, content, expected, given):
    name, columns = given.get("name", "my.csv"), {key: value for key, value in given.items() if key != "name"}
    monkeypatch.setenv("CACHE_HOME", str(tmp_path / "cache"))
    if content is not None:
        put(tmp_path, content, name)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError) as caught:
        datasets.load(own_text(name if content is None else str(tmp_path / name), **columns), "quick")
    message = str(caught.value)
    assert expected in message and "\n" not in message and len(message) < 600 and caught.value.__cause__ is None
    assert sorted(tmp_path.rglob("*")) == before


def test_the_command_refuses_before_anything_runs(tmp_path, capsys):
    asked = ["correlation", "-p", "data", put(tmp_path, separated(rows())), "--output", str(tmp_path / "out"), "-p"]
    assert main([*asked, "label_column", "stars"]) == main([*asked, "dataset", "sst"]) == 2
    no_column, two_datasets = capsys.readouterr().err.strip().splitlines()
    assert "has no column 'stars'; its columns: 'text', 'label'" in no_column
    assert "dataset is 'sst' and data is" in two_datasets and not (tmp_path / "out").exists()


def test_a_report_is_named_after_the_file_alone_and_made_again_when_it_has_changed(tmp_path):
    study = notebooks.save(tmp_path / "small.ipynb", "1", parameters=PARAMETERS)
    names = {report_name(study, {"data": data}) for data in ("/secret/a/my.csv", "/secret/b/my.csv", "my.csv")}
    assert len(names) == 3 and all(name.startswith("small-own-my-") and "secret" not in name for name in names)
    assert report_name(study, {"data": f"/secret/{HOSTILE}.csv", "label_column": "a/b"}).count("/") == 0
    asked = {"data": put(tmp_path, separated(rows()))}
    first = fingerprint(study, asked)
    assert fingerprint(study, asked) == first
    put(tmp_path, separated(rows(62)))
    assert fingerprint(study, asked) != first


PARAMETERS = f'data = ""\ntext_column = ""\nlabel_column = ""\n{notebooks.PARAMETERS}'
CARD = """
from lib import datasets, tables
corpus = datasets.load(datasets.own_text(data, text_column, label_column), profile)
tables.sentences(*datasets.about(corpus, spec=datasets.spec(corpus.name)))
tables.show(datasets.card(corpus), index="what")
"""


def test_a_notebook_from_a_file_to_a_page(tmp_path, monkeypatch, forked_kernels):
    """By its name in the caller's folder, with hostile words for texts, columns and classes."""
    monkeypatch.setenv("RESULTS_HOME", str(tmp_path / "results"))
    monkeypatch.chdir(tmp_path)
    notebooks.save(tmp_path / "small.ipynb", *CARD.strip().split("\n"), parameters=PARAMETERS)
    records = [(f"{text} {HOSTILE}", HOSTILE if label == "good" else label) for text, label in ROWS]
    put(tmp_path, separated(records, (HOSTILE, "stars")).encode("utf-16"), "my reviews.csv")
    given = ["-p", "text_column", HOSTILE, "-p", "label_column", "stars", "-p", "data", "my reviews.csv"]
    assert main([*"small --notebooks . --output out".split(), *given]) == 0
    [page] = (tmp_path / "out").glob("small-own-my_reviews-*.html")
    text = page.read_text()
    assert "my reviews.csv" in text and "drawn at random, always the same" in text
    assert HOSTILE not in text and "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert not (tmp_path / "results").exists()
