"""The published files of four sets of texts come out as they are written, and what is wrong with one is said."""

import gzip
import json
import re
import tracemalloc
from itertools import islice

import pytest

from lib.datasets import documents
from lib.datasets.documents import Raw
from lib.datasets.files import DataError


def write(folder, **contents):
    """Files of bytes or text; train__csv is the file train.csv, and ..._gz is packed."""
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        content = content.encode() if isinstance(content, str) else content
        path = folder / name.replace("__", ".")
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return folder


def read(splits):
    return {split: list(rows) for split, rows in splits.items()}


def error_of(read_all):
    with pytest.raises(DataError) as caught:
        read_all()
    assert caught.value.__cause__ is None and "\n" not in str(caught.value)
    return str(caught.value)


# --- as they are written


def test_yahoo_joins_the_fields_that_are_there(tmp_path):
    train = (
        '"5","why, oh why?","or ""even"" so?","An LED\\nand a camera."\n'
        '\n"10","Wer war’s — 誰?","","it\r\nwas, ""me"""\r\n'
        '1,plain," ",answer'
    )
    write(tmp_path, train__csv=train, test__csv__gz='"2","","",""\n')
    assert read(documents.of_csv("yahoo", tmp_path)) == {
        "train": [
            Raw("train-1", 'why, oh why? or "even" so? An LED\nand a camera.', 4),
            Raw("train-2", 'Wer war’s — 誰? it\r\nwas, "me"', 9),
            Raw("train-3", "plain answer", 0),
        ],
        "test": [Raw("test-1", "", 1)],
    }
    assert documents.OFFICIAL["yahoo"].classes[4] == "Computers & Internet"
    assert len(set(documents.OFFICIAL["yahoo"].classes)) == 10


def test_amazon_and_yelp_have_their_columns(tmp_path):
    write(tmp_path / "amazon", train__csv='"3","more like funchuck","a ""gag"" gift"\n', test__csv='"1","","bad"\n')
    assert read(documents.of_csv("amazon", tmp_path / "amazon")) == {
        "train": [Raw("train-1", 'more like funchuck a "gag" gift', 2)],
        "test": [Raw("test-1", "bad", 0)],
    }
    write(tmp_path / "yelp", train__csv__gz='"5","one\\n\\ntwo"\n', test__csv='"1","no \\"\n')
    assert read(documents.of_csv("yelp", tmp_path / "yelp")) == {
        "train": [Raw("train-1", "one\n\ntwo", 4)],
        "test": [Raw("test-1", "no \\", 0)],
    }
    stars = ("1 star", *(f"{n} stars" for n in range(2, 6)))
    assert documents.OFFICIAL["amazon"].classes == documents.OFFICIAL["yelp"].classes == stars


def test_imdb10_is_an_array_of_which_a_tenth_is_test(tmp_path):
    reviews = [{"rating": i % 10 + 1, "review": f"é {i}", "user": "u"} for i in range(300)]
    splits = documents.imdb10(write(tmp_path, data__json__gz=json.dumps([{"rating": None, "review": "no"}, *reviews])))
    assert 10 < len(splits["test"]) < 60 and splits == documents.imdb10(tmp_path)
    rows = {one.id: one for split in splits.values() for one in split}
    assert len(rows) == 300 and rows["2"] == Raw("2", "é 0", 0) and rows["301"] == Raw("301", "é 299", 9)
    assert documents.OFFICIAL["imdb10"].classes[9] == "10"


# --- row by row


def test_a_row_is_read_when_it_is_asked_for(tmp_path):
    write(tmp_path, train__csv='"1","a","b"\n"2","c","d"\n"9","e","f"\n', test__csv=b"\xff")
    rows = documents.of_csv("amazon", tmp_path)["train"]
    assert [one.text for one in islice(rows, 2)] == ["a b", "c d"]
    assert "train.csv, row 3: the label is '9'" in error_of(lambda: next(rows))


def test_memory_holds_a_chunk_not_the_file(tmp_path):
    write(tmp_path, train__csv__gz='"1","t","' + "word " * 100 + '"\n', test__csv="")
    (tmp_path / "train.csv.gz").write_bytes((tmp_path / "train.csv.gz").read_bytes() * 20_000)  # 10 MB unpacked
    tracemalloc.start()
    assert sum(1 for _ in documents.of_csv("amazon", tmp_path)["train"]) == 20_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6


# --- what is wrong is said

GOOD = '"1","a","b"\n'
BAD_ROWS = [
    ("", "train.csv is empty"),
    ('"1","a"\n', r"row 1, has 2 columns; allowed: 3 \(stars, title, text\); take the file as published"),
    (GOOD + '"1","a","b","c"\n', "train.csv is no CSV .*Expected 3 fields in line 2, saw 4"),
    (GOOD + '"0","a","b"\n', "row 2: the label is '0'; allowed: whole numbers from 1 to 5"),
    ('"6","a","b"\n', "row 1: the label is '6'"),
    ("stars,title,text\n", "row 1: the label is 'stars'; allowed: .*, without a header line"),
    ('"²","a","b"\n', "the label is '²'"),
    ('"1","a\0","b"\n', "row 1 holds a NUL character"),
    (GOOD.encode() + b'"1","caf\xe9","b"\n', r"row 2 is not UTF-8"),
    (GOOD + '"1","a","b\n' + GOOD, "train.csv is no CSV .*Expected 3 fields in line 2, saw 5"),
    (GOOD + '"1","a","b\nc\n', "train.csv is no CSV .*EOF inside string starting at row 1"),
]


@pytest.mark.parametrize(("content", "said"), BAD_ROWS)
def test_a_bad_csv_is_named(tmp_path, content, said):
    splits = documents.of_csv("amazon", write(tmp_path, train__csv=content, test__csv=GOOD))
    assert re.search(said, error_of(lambda: list(splits["train"])))


REVIEW = {"rating": 4, "review": "Fine."}
BAD_REVIEWS = [
    ("[" * 100_000, "data.json is no JSON"),
    ("9" * 5_000, "data.json is no JSON"),
    ({}, "JSON dict; it must be one array of objects"),
    ([3], "one array of objects"),
    ([{"rating": 1}], "review 1: 'review' is missing"),
    ([REVIEW | {"review": 3}], "review 1: 'review' is of type int"),
    ([REVIEW | {"review": "\ud83d"}], "half a surrogate pair"),
    ([REVIEW | {"review": "a\0"}], "holds a NUL character"),
    *(
        ([REVIEW, REVIEW | {"rating": wrong}], "review 2: the label is .*; allowed: whole numbers from 1 to 10")
        for wrong in (0, 11, 3.5, True, [3], float("nan"), 10**400)
    ),
]


@pytest.mark.parametrize(("content", "said"), BAD_REVIEWS)
def test_a_bad_review_is_named(tmp_path, content, said):
    write(tmp_path, data__json=content if isinstance(content, str) else json.dumps(content))
    assert re.search(said, error_of(lambda: documents.imdb10(tmp_path)))


def test_a_damaged_archive_is_named(tmp_path):
    packed = gzip.compress(GOOD.encode() * 100)
    write(tmp_path, test__csv=GOOD)
    for content, said in [
        (packed[:-20], "ends too early: the file is cut off"),
        (b"no gzip", "is damaged"),
        (packed[:30] + b"\xff" * 9 + packed[39:], "is damaged"),
    ]:
        (tmp_path / "train.csv.gz").write_bytes(content)
        assert said in error_of(lambda: list(documents.of_csv("amazon", tmp_path)["train"]))


def test_a_missing_file_is_named_at_once(tmp_path):
    write(tmp_path, train__csv=GOOD, classes__txt="")
    message = error_of(lambda: documents.of_csv("yahoo", tmp_path))
    assert "has no test.csv or test.csv.gz; it has classes.txt, train.csv; give the folder that holds yahoo_" in message
    assert "no data.json or" in error_of(lambda: documents.imdb10(tmp_path))
    assert "no train.csv or" in error_of(lambda: documents.of_csv("yelp", tmp_path / "none"))
    (tmp_path / "test.csv").mkdir()
    assert "test.csv cannot be read: Is a directory" in error_of(
        lambda: list(documents.of_csv("amazon", tmp_path)["test"])
    )
