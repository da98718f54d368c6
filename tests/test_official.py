"""The published files of four sets of texts come out as they are written, and what is wrong with one is said."""

import gzip
import json
import re
import tracemalloc
from itertools import islice, pairwise

import pytest

from lib.datasets import documents
from lib.datasets.documents import Raw
from lib.datasets.files import DataError

REVIEW = {"review_id": "r1", "user_id": "u", "stars": 4.0, "text": "Fine.", "date": "2017-01-01", "useful": 0}
SS = "u1/\t\ttt01\t\t10\t\tgood , really . <sssss> see it !\n"


def write(folder, **contents):
    """Files of bytes, text or a list of records; train__csv is the file train.csv, and ..._gz is packed."""
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        if isinstance(content, list):
            content = "".join(json.dumps(record) + "\n" for record in content)
        content = content.encode() if isinstance(content, str) else content
        path = folder / name.replace("__", ".")
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return folder


def reviews(size):
    return [{"review_id": f"r{i}", "text": f"number {i}", "stars": i % 5 + 1} for i in range(size)]


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
    assert read(documents.yahoo(tmp_path)) == {
        "train": [
            Raw("train-1", 'why, oh why? or "even" so? An LED\nand a camera.', 4),
            Raw("train-2", 'Wer war’s — 誰? it\r\nwas, "me"', 9),
            Raw("train-3", "plain answer", 0),
        ],
        "test": [Raw("test-1", "", 1)],
    }
    assert documents.CLASSES["yahoo"][4] == "Computers & Internet" and len(set(documents.CLASSES["yahoo"])) == 10


def test_amazon_and_yelp_have_their_columns(tmp_path):
    write(tmp_path / "amazon", train__csv='"3","more like funchuck","a ""gag"" gift"\n', test__csv='"1","","bad"\n')
    assert read(documents.amazon(tmp_path / "amazon")) == {
        "train": [Raw("train-1", 'more like funchuck a "gag" gift', 2)],
        "test": [Raw("test-1", "bad", 0)],
    }
    write(tmp_path / "yelp", train__csv__gz='"5","one\\n\\ntwo"\n', test__csv='"1","no \\"\n')
    assert read(documents.yelp(tmp_path / "yelp")) == {
        "train": [Raw("train-1", "one\n\ntwo", 4)],
        "test": [Raw("test-1", "no \\", 0)],
    }
    assert documents.CLASSES["amazon"] == documents.CLASSES["yelp"] == ("1 star", *(f"{n} stars" for n in range(2, 6)))


@pytest.mark.parametrize("name", ["review__json", "yelp_academic_dataset_review__json__gz"])
def test_yelps_json_is_divided_by_seed(tmp_path, name):
    write(tmp_path, **{name: [*reviews(39), REVIEW | {"review_id": "é\u2028\n"}]})
    drawn = [read(documents.yelp(tmp_path, test=10, seed=seed)) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2], "the seed is honoured"
    for splits in drawn:
        assert [len(splits[split]) for split in ("train", "test")] == [30, 10]
        assert {one.id for rows in splits.values() for one in rows} == {*(f"r{i}" for i in range(39)), "é\u2028\n"}
    rows = {one.id: one for one in drawn[0]["train"] + drawn[0]["test"]}
    assert rows["r7"] == Raw("r7", "number 7", 2) and rows["é\u2028\n"] == Raw("é\u2028\n", "Fine.", 3)
    order = [int(one.id[1:]) for one in drawn[0]["train"] if one.id[0] == "r"]
    assert all(first < second for first, second in pairwise(order)), "in the order of the file"


def test_every_review_of_yelp_is_as_likely_to_be_drawn(tmp_path):
    write(tmp_path, review__json=reviews(5))
    counts = dict.fromkeys(range(5), 0)
    for seed in range(500):
        for one in documents.yelp(tmp_path, test=2, seed=seed)["test"]:
            counts[int(one.id[1:])] += 1
    assert sum(counts.values()) == 1000
    assert all(abs(count - 200) < 45 for count in counts.values()), "4 standard deviations of a binomial of 500 and 2/5"


def test_imdb10_keeps_the_sentences(tmp_path):
    files = {f"imdb-{split}__txt__ss": SS for split in ("train", "dev", "test")}
    files["imdb-dev__txt__ss"] = 'u\t\tp\t\t1\t\t<sssss> a "b\tc\x85d <sssss>  \r\n\nu\t\tp\t\t2\t\t\n'
    files["imdb-test__txt__ss__gz"] = files.pop("imdb-test__txt__ss")
    first = Raw("train-1", "good , really . see it !", 9, ("good , really .", "see it !"))
    assert read(documents.imdb10(write(tmp_path, **files))) == {
        "train": [first],
        "dev": [Raw("dev-1", 'a "b\tc\x85d', 0, ('a "b\tc\x85d',)), Raw("dev-2", "", 1, ())],
        "test": [Raw("test-1", first.text, 9, first.sentences)],
    }
    assert documents.CLASSES["imdb10"][9] == "10"


# --- row by row


def test_a_row_is_read_when_it_is_asked_for(tmp_path):
    write(tmp_path, train__csv='"1","a","b"\n"2","c","d"\n"9","e","f"\n', test__csv=b"\xff")
    rows = documents.amazon(tmp_path)["train"]
    assert [one.text for one in islice(rows, 2)] == ["a b", "c d"]
    assert "train.csv, row 3: the label is '9'" in error_of(lambda: next(rows))
    write(tmp_path / "json", review__json="\n".join([json.dumps(REVIEW)] * 2 + ["{"]))
    rows = documents.yelp(tmp_path / "json", test=1, seed=3)
    assert next(rows["test"]).id == next(rows["train"]).id == "r1"


def test_memory_holds_a_chunk_not_the_file(tmp_path):
    write(tmp_path, train__csv__gz='"1","t","' + "word " * 100 + '"\n', test__csv="")
    (tmp_path / "train.csv.gz").write_bytes((tmp_path / "train.csv.gz").read_bytes() * 20_000)  # 10 MB unpacked
    tracemalloc.start()
    assert sum(1 for _ in documents.amazon(tmp_path)["train"]) == 20_000
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
    splits = documents.amazon(write(tmp_path, train__csv=content, test__csv=GOOD))
    assert re.search(said, error_of(lambda: list(splits["train"])))


BAD_REVIEWS = [
    ("{", "line 1, is no JSON .*; each line must be one object"),
    ("[" * 100_000, "line 1, is no JSON"),
    ("9" * 5_000, "line 1, is no JSON"),
    ("[1]", "line 1, is a JSON list"),
    ([{"text": "a", "stars": 1}], "line 1: 'review_id' is missing"),
    ([{"review_id": "r", "stars": 1}], "line 1: 'text' is missing"),
    ([REVIEW | {"text": 3}], "line 1: 'text' is of type int"),
    ([REVIEW | {"text": "\ud83d"}], "half a surrogate pair"),
    ([REVIEW | {"text": "a\0"}], "holds a NUL character"),
    ([{"review_id": "r", "text": "a"}], "line 1: the label is missing; allowed: whole numbers from 1 to 5"),
    *(([REVIEW | {"stars": stars}], "line 1: the label is") for stars in (0, 6, 3.5, True, [3], float("nan"), 10**400)),
]


@pytest.mark.parametrize(("content", "said"), BAD_REVIEWS)
def test_a_bad_review_is_named(tmp_path, content, said):
    content = content if isinstance(content, str) else json.dumps(content[0])
    write(tmp_path, review__json=f"{content}\n" + "\n".join([json.dumps(REVIEW)] * 3))
    assert re.search(said, error_of(lambda: read(documents.yelp(tmp_path, test=1))))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("u\t\tp\t\t3\n", r"line 2, has 3 columns; allowed: 4 \(user, product, rating, text\); .* emnlp-2015-data.7z"),
        ("u\tp\t3\ttext\n", "line 2, has 1 columns"),
        ("u\t\tp\t\t11\t\ttext\n", "line 2: the label is '11'; allowed: whole numbers from 1 to 10"),
    ],
)
def test_a_bad_line_of_imdb_is_named(tmp_path, line, said):
    write(tmp_path, **{f"imdb-{split}__txt__ss": SS + line for split in ("train", "dev", "test")})
    assert re.search(said, error_of(lambda: list(documents.imdb10(tmp_path)["dev"])))


def test_a_damaged_archive_is_named(tmp_path):
    packed = gzip.compress(GOOD.encode() * 100)
    write(tmp_path, test__csv=GOOD)
    for content, said in [
        (packed[:-20], "ends too early: the file is cut off"),
        (b"no gzip", "is damaged"),
        (packed[:30] + b"\xff" * 9 + packed[39:], "is damaged"),
    ]:
        (tmp_path / "train.csv.gz").write_bytes(content)
        assert said in error_of(lambda: list(documents.amazon(tmp_path)["train"]))


def test_a_missing_file_is_named_at_once(tmp_path):
    write(tmp_path, train__csv=GOOD, classes__txt="")
    message = error_of(lambda: documents.yahoo(tmp_path))
    assert "has no test.csv or test.csv.gz; it has classes.txt, train.csv; give the folder that holds yahoo_" in message
    assert "no imdb-train.txt.ss or" in error_of(lambda: documents.imdb10(tmp_path))
    assert "no review.json or" in error_of(lambda: documents.yelp(tmp_path / "none"))
    (tmp_path / "test.csv").mkdir()
    assert "test.csv cannot be read: Is a directory" in error_of(lambda: list(documents.amazon(tmp_path)["test"]))


def test_what_yelp_cannot_draw_is_refused(tmp_path):
    write(tmp_path, review__json=reviews(3))
    assert "has 3 reviews, too few to draw test = 3" in error_of(lambda: read(documents.yelp(tmp_path, test=3)))
