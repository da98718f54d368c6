"""The officially published files of four sets of texts, read row by row: Yahoo! Answers, Amazon, Yelp and IMDB.

They are those of Serrano & Smith (2019), Table 1. Every reader is `folder -> {split: iterator of Raw}`: it looks at
once for the files, which may be packed (.gz), and opens one at the first step of its iterator. Memory holds a chunk of
rows at a time. Nothing is cut, lower-cased or filtered, and empty texts stay. Ids may occur twice.
All raise DataError: at once for a missing file, while iterating for one that is empty, damaged or of another form.
"""

import gzip
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lib.datasets import files
from lib.datasets.files import DataError, Row

Splits = dict[str, Iterator["Raw"]]
TOPICS = """Society & Culture, Science & Mathematics, Health, Education & Reference, Computers & Internet, Sports,
Business & Finance, Entertainment & Music, Family & Relationships, Politics & Government"""
STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
CLASSES: dict[str, tuple[str, ...]] = {
    "yahoo": tuple(topic.strip() for topic in TOPICS.split(",")),
    "amazon": STARS,
    "yelp": STARS,
    "imdb10": tuple(str(rating) for rating in range(1, 11)),
}
COLUMNS = {
    "yahoo": ("class", "question title", "question content", "best answer"),
    "amazon": ("stars", "title", "text"),
    "yelp": ("stars", "text"),
    "imdb10": ("user", "product", "rating", "text"),
}
ZHANG = "of Zhang, Zhao & LeCun (2015), see https://github.com/zhangxiangxiao/Crepe"
SOURCES = {
    "yahoo": f"yahoo_answers_csv.tar.gz {ZHANG}",
    "amazon": f"amazon_review_full_csv.tar.gz {ZHANG}",
    "yelp": f"the reviews of https://www.yelp.com/dataset, or yelp_review_full_csv.tar.gz {ZHANG}",
    "imdb10": "emnlp-2015-data.7z of Tang et al. (2015), see http://ir.hit.edu.cn/~dytang, or JMARS' data.json",
}
REVIEWS = ("review.json", "yelp_academic_dataset_review.json")
CHUNK = 1000  # rows of a CSV file in memory


@dataclass(frozen=True)
class Raw:
    """One text as published.

    id         "<split>-<row number from 1>", or the file's own
    label      place in CLASSES, from 0, where the files count from 1
    sentences  each with its tokens apart by spaces; None where the file does not mark sentences
    """

    id: str
    text: str
    label: int
    sentences: tuple[str, ...] | None = None


def yahoo(folder: Path) -> Splits:
    r"""Yahoo! Answers topics: train.csv and test.csv of yahoo_answers_csv, 1,400,000 and 60,000 questions.

    Rows are "class 1..10","question title","question content","best answer", without a header; quotes inside are
    doubled, and `\n` (two characters) becomes a line break. The text joins by a space the fields
    that are not blank.

    Differs from the paper: its authors drew from Yahoo's own corpus (Webscope L6), with 50,000 test texts.
    """
    return _csv_splits("yahoo", folder)


def amazon(folder: Path) -> Splits:
    """Amazon reviews, full: train.csv and test.csv of amazon_review_full_csv, 3,000,000 and 650,000 reviews.

    Rows are "stars 1..5","title","text", written as those of `yahoo`. The text joins title and text by a space.
    """
    return _csv_splits("amazon", folder)


def yelp(folder: Path, test: int = 50_000, seed: int = 0) -> Splits:
    """Yelp reviews, from the dataset challenge's JSON or from Zhang et al.'s yelp_review_full_csv.

    JSON: review.json or yelp_academic_dataset_review.json, one object a line, of which review_id, text and stars
    (1 to 5, such as 4 or 4.0) are read. It has no splits: `test` reviews, drawn by `seed` uniformly without
    replacement, are test and the others train; the file is read once more to count its lines.
    CSV: train.csv and test.csv, 650,000 and 50,000 rows "stars 1..5","text", written as those of `yahoo`; `test` and
    `seed` change nothing.

    Differs from the paper, which leaves open how its 700,000 texts were drawn from the challenge's millions.
    """
    path = _found("yelp", folder, *REVIEWS, "train.csv")
    if path.name.startswith("train.csv"):
        return _csv_splits("yelp", folder)
    return {split: _reviews(path, split, test, seed) for split in ("train", "test")}


def imdb10(folder: Path) -> Splits:
    """IMDB reviews of Diao et al. (2014), as cut by Tang et al. (2015): imdb-train.txt.ss, -dev and -test.

    Lines are user, product, rating 1..10 and text, apart by two tabs; tokens are apart by spaces, sentences by
    <sssss>, which is taken out. The text joins the sentences by a space.

    Or data.json, all reviews as github.com/nihalb/JMARS has them: a JSON array of objects, of which rating (1 to 10)
    and review are read; those without a rating are passed over. It has no splits: a tenth, drawn at random, is test.
    Memory then holds the whole file.

    Differs from the paper, which read data.json too and leaves open which tenth was its test split.
    """
    if path := _first(folder, "data.json"):
        records = _array(path)
        return {split: _of_array(path, records, split) for split in ("train", "test")}
    paths = {split: _found("imdb10", folder, f"imdb-{split}.txt.ss") for split in ("train", "dev", "test")}
    return {split: _sentences(path, split) for split, path in paths.items()}


def _first(folder: Path, *names: str) -> Path | None:
    there = {place.name: place for place in Path(folder).glob("*")}
    return next((there[file] for name in names for file in (name, f"{name}.gz") if file in there), None)


def _found(name: str, folder: Path, *names: str) -> Path:
    if path := _first(folder, *names):
        return path
    looked, there = " or ".join(f"{one} or {one}.gz" for one in names), files.listing(Path(folder))
    raise DataError(f"{folder} has no {looked}; it has {there}; give the folder that holds {SOURCES[name]}, unpacked")


def _csv_splits(name: str, folder: Path) -> Splits:
    paths = {split: _found(name, folder, f"{split}.csv") for split in ("train", "test")}
    return {split: _csv_texts(name, path, split) for split, path in paths.items()}


def _csv_texts(name: str, path: Path, split: str) -> Iterator[Raw]:
    number = 0
    for chunk in files.csv_chunks(path, CHUNK):
        for row, *columns in chunk.itertuples(name=None):
            number, where = number + 1, f"{path}, row {row}"
            label, *fields = _of_columns(name, where, columns)
            text = " ".join(filter(str.strip, (field.replace("\\n", "\n") for field in fields)))
            yield Raw(f"{split}-{number}", files.sound(text, where), _label(name, label, where))
    if not number:
        raise DataError(f"{path} is empty: found no row; copy or download it again")


def _reviews(path: Path, split: str, test: int, seed: int) -> Iterator[Raw]:
    left, wanted, draw = sum(1 for _ in _filled(path)), test, random.Random(seed)
    if test >= left:
        raise DataError(f"{path} has {left:,} reviews, too few to draw test = {test:,}; give a smaller test, from 1")
    for where, line in _filled(path):
        # Of the reviews left, each is as likely as any other: exactly `test` are drawn, and none is remembered.
        chosen = draw.random() * left < wanted
        left, wanted = left - 1, wanted - chosen
        if chosen == (split == "test"):
            record = files.record_of(files.decode(line, f"{where},"), f"{where},")
            id, text = (files.text_of(Row(record, "", where), field) for field in ("review_id", "text"))
            yield Raw(id, text, _label("yelp", record.get("stars"), where))


def _sentences(path: Path, split: str) -> Iterator[Raw]:
    for number, (where, line) in enumerate(_filled(path), start=1):
        _, _, rating, text = _of_columns("imdb10", where, files.decode(line, f"{where},").split("\t\t"))
        sentences = tuple(cut.strip() for cut in text.split("<sssss>") if cut.strip())
        yield Raw(f"{split}-{number}", " ".join(sentences), _label("imdb10", rating, where), sentences)


def _array(path: Path) -> list[dict]:
    advice = "it must be one array of objects"
    found = files.json_of(files.decode(files.read_bytes(path), str(path)), str(path), advice)
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise DataError(f"{path} is a JSON {type(found).__name__}; {advice}")
    return found


def _of_array(path: Path, records: list[dict], split: str) -> Iterator[Raw]:
    draw = random.Random("a tenth is test")
    for number, record in enumerate(records, start=1):
        where = f"{path}, review {number}"
        if (draw.random() < 0.1) == (split == "test") and record.get("rating") is not None:
            text = files.text_of(Row(record, "", where), "review")
            yield Raw(f"{number}", text, _label("imdb10", record["rating"], where))


def _of_columns(name: str, where: str, fields: list[str]) -> list[str]:
    columns = COLUMNS[name]
    if len(fields) != len(columns):
        allowed = f"allowed: {len(columns)} ({', '.join(columns)}); take the file as published: {SOURCES[name]}"
        raise DataError(f"{where}, has {len(fields)} columns; {allowed}")
    return fields


def _label(name: str, found: object, where: str) -> int:
    numbers = range(1, len(CLASSES[name]) + 1)
    if found not in (numbers if type(found) in (int, float) else map(str, numbers)):
        seen = "missing" if found is None else repr(str(found)[:40])
        allowed = f"allowed: whole numbers from 1 to {numbers[-1]}, without a header line"
        raise DataError(f"{where}: the label is {seen}; {allowed}; take the file as published: {SOURCES[name]}")
    return int(found) - 1


def _filled(path: Path) -> Iterator[tuple[str, bytes]]:
    """(its place, the line) of every line of a file that has any text."""
    filled = False
    with files.soundly_read(path), gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                filled = True
                yield f"{path}, line {number}", line
    if not filled:
        raise DataError(f"{path} is empty: found no row; copy or download it again")
