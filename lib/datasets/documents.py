"""Texts in sentences, of several classes: the datasets of Serrano & Smith (2019), Table 1, and their substitutes here.

The officially published files of four sets (Yahoo! Answers, Amazon, Yelp, IMDB) are read row by row. Every reader is
`folder -> {split: iterator of Raw}`: it looks at once for the files, which may be packed (.gz), and opens one at the
first step of its iterator. Memory holds a chunk of rows at a time. Nothing is cut, lower-cased or filtered, and empty
texts stay. Ids may occur twice. All raise DataError: at once for a missing file, while iterating for one that is empty,
damaged or of another form.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from heapq import nlargest
from itertools import chain
from pathlib import Path
from random import Random
from typing import NamedTuple

from lib.datasets import files, text
from lib.datasets.assembly import Draft, Spec, counted, dev_from_train, draft_of
from lib.datasets.classification import IMDB, ZHANG
from lib.datasets.corpus import Instance
from lib.datasets.files import DataError, Row

RATINGS = (1, 2, 3, 4, 7, 8, 9, 10)  # of the Large Movie Review Dataset; nothing between
OFFICIAL = {
    "yahoo": {"title": "Yahoo! Answers, ten topics", "citation": "Zhang, Zhao & LeCun 2015"},
    "amazon": {"title": "Amazon reviews, one to five stars", "citation": "Zhang, Zhao & LeCun 2015"},
    "yelp": {"title": "Yelp reviews, one to five stars", "citation": "Yelp dataset challenge"},
    "imdb10": {"title": "IMDB reviews, one to ten stars", "citation": "Diao et al. 2014"},
}
OPTIONS = {"train_texts": None, "test_texts": None}
WORDS = (
    "spaCy's English tokens, lower-case, in the sentences of its rule-based splitter; words that occur at least 5 "
    "times in train (Differs from the paper: its code counts dev too)"
)
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
OF_ZHANG = f"of Zhang, Zhao & LeCun (2015), see {ZHANG}"
SOURCES = {
    "yahoo": f"yahoo_answers_csv.tar.gz {OF_ZHANG}",
    "amazon": f"amazon_review_full_csv.tar.gz {OF_ZHANG}",
    "yelp": f"the reviews of https://www.yelp.com/dataset, or yelp_review_full_csv.tar.gz {OF_ZHANG}",
    "imdb10": "emnlp-2015-data.7z of Tang et al. (2015), see http://ir.hit.edu.cn/~dytang, or JMARS' data.json",
}
REVIEWS = ("review.json", "yelp_academic_dataset_review.json")
CHUNK = 1000  # rows of a CSV file in memory


class Raw(NamedTuple):
    """One text as published.

    id         "<split>-<row number from 1>", or the file's own
    label      place in CLASSES, from 0, where the files count from 1
    sentences  each with its tokens apart by spaces; None where the file does not mark sentences
    """

    id: str
    text: str
    label: int
    sentences: tuple[str, ...] | None = None


Published = dict[str, Iterator[Raw]]


def drawn(records: Iterable, most: int | None) -> list:
    """At most `most` of the records, drawn at random with a fixed seed, in their order; None: all."""
    if most is None:
        return list(records)
    random = Random("texts drawn")
    keyed = ((random.random(), place, record) for place, record in enumerate(records))
    return [record for _, _, record in sorted(nlargest(most, keyed), key=lambda one: one[1])]


def documents(records: Iterable[Raw], options: dict, split: str, notes: list[str]) -> list[Instance]:
    """The texts in sentences and tokens; a note has their number if not all are read."""
    name = f"{'test' if split == 'test' else 'train'}_texts"
    chosen = drawn(records, counted(options, name))
    if options[name] is not None:
        notes.append(f"{name}: {len(chosen):,} of the texts of {split} were drawn at random.")
    return [document(one) for one in chosen]


def document(raw: Raw) -> Instance:
    """A text cut into sentences, by rule or as they are given, and these into tokens."""
    cut = text.in_sentences(raw.text)
    if raw.sentences is not None:
        cut = [tuple(chain.from_iterable(text.in_sentences(one))) for one in raw.sentences]
    lengths = tuple(len(tokens) for tokens in cut if tokens)
    return Instance(raw.id, raw.text, tuple(chain.from_iterable(cut)), raw.label, sentences=lengths)


def read_folder(spec: Spec, folder: Path, options: dict, ratings: bool = False) -> Draft:
    """All texts of train.jsonl.gz and test.jsonl.gz; 15% of train is dev.

    Args:
        ratings: the classes are RATINGS, by the field `rating`, in place of those of dataset.json.
    """
    about, splits, notes = files.about(folder), {}, []
    classes = [str(one) for one in RATINGS] if ratings else about["classes"]
    for split, rows in files.rows_of(folder, ("train", "test")).items():
        labels = [_rating(row) if ratings else row.label(classes) for row in rows]
        records = [Raw(row.id, row.text(), label) for row, label in zip(rows, labels, strict=True)]
        splits[split] = documents(records, options, split, notes)
    return draft_of(spec, folder, about, classes, splits, notes)


def _rating(row: Row) -> int:
    rating = row.record.get("rating")
    if isinstance(rating, bool) or rating not in RATINGS:
        raise DataError(f"{row.place}: the rating is {str(rating)[:40]!r}; allowed: {', '.join(map(str, RATINGS))}")
    return RATINGS.index(rating)


def read_official(spec: Spec, folder: Path, options: dict) -> Draft:
    """The officially published files of a set of texts; without a dev file 15% of train is dev."""
    published, notes = READERS[spec.folder](folder), []
    splits = {split: documents(raws, options, split, notes) for split, raws in published.items()}
    return draft_of(spec, folder, OFFICIAL[spec.folder], CLASSES[spec.folder], splits, notes)


# --- the published files


def yahoo(folder: Path) -> Published:
    r"""Yahoo! Answers topics: train.csv and test.csv of yahoo_answers_csv, 1,400,000 and 60,000 questions.

    Rows are "class 1..10","question title","question content","best answer", without a header; quotes inside are
    doubled, and `\n` (two characters) becomes a line break. The text joins by a space the fields
    that are not blank.

    Differs from the paper: its authors drew from Yahoo's own corpus (Webscope L6), with 50,000 test texts.
    """
    return _csv_splits("yahoo", folder)


def amazon(folder: Path) -> Published:
    """Amazon reviews, full: train.csv and test.csv of amazon_review_full_csv, 3,000,000 and 650,000 reviews.

    Rows are "stars 1..5","title","text", written as those of `yahoo`. The text joins title and text by a space.
    """
    return _csv_splits("amazon", folder)


def yelp(folder: Path, test: int = 50_000, seed: int = 0) -> Published:
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


def imdb10(folder: Path) -> Published:
    """IMDB reviews of Diao et al. (2014), as cut by Tang et al. (2015): imdb-train.txt.ss, -dev and -test.

    Lines are user, product, rating 1..10 and text, apart by two tabs; tokens are apart by spaces, sentences by
    <sssss>, which is taken out. The text joins the sentences by a space.

    Or data.json, all reviews as github.com/nihalb/JMARS has them: a JSON array of objects, of which rating (1 to 10)
    and review are read; those without a rating are passed over. It has no splits: a tenth, drawn at random, is test.
    Memory then holds the whole file.

    Differs from the paper, which read data.json too and leaves open which tenth was its test split.
    """
    if path := files.packed_or_not(folder, "data.json"):
        advice = "it must be one array of objects"
        records = files.json_of(files.decode(files.read_bytes(path), str(path)), str(path), advice)
        if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
            raise DataError(f"{path} is a JSON {type(records).__name__}; {advice}")
        return {split: _of_array(path, records, split) for split in ("train", "test")}
    paths = {split: _found("imdb10", folder, f"imdb-{split}.txt.ss") for split in ("train", "dev", "test")}
    return {split: _sentences(path, split) for split, path in paths.items()}


def _found(name: str, folder: Path, *names: str) -> Path:
    if path := files.packed_or_not(folder, *names):
        return path
    looked = " or ".join(f"{one} or {one}.gz" for one in names)
    there = f"it has {files.listing(folder)}; give the folder that holds {SOURCES[name]}, unpacked"
    raise DataError(f"{folder} has no {looked}; {there}")


def _csv_splits(name: str, folder: Path) -> Published:
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
    left, wanted, draw = sum(1 for _ in _filled(path)), test, Random(seed)
    if test >= left:
        raise DataError(f"{path} has {left:,} reviews, too few to draw test = {test:,}; give a smaller test, from 1")
    for where, line in _filled(path):
        # Of the reviews left, each is as likely as any other: exactly `test` are drawn, and none is remembered.
        chosen = draw.random() * left < wanted
        left, wanted = left - 1, wanted - chosen
        if chosen == (split == "test"):
            record = files.record_of(files.decode(line, f"{where},"), f"{where},")
            id, text = (Row(record, "", where).text(field) for field in ("review_id", "text"))
            yield Raw(id, text, _label("yelp", record.get("stars"), where))


def _sentences(path: Path, split: str) -> Iterator[Raw]:
    for number, (where, line) in enumerate(_filled(path), start=1):
        _, _, rating, text = _of_columns("imdb10", where, files.decode(line, f"{where},").split("\t\t"))
        sentences = tuple(cut.strip() for cut in text.split("<sssss>") if cut.strip())
        yield Raw(f"{split}-{number}", " ".join(sentences), _label("imdb10", rating, where), sentences)


def _of_array(path: Path, records: list[dict], split: str) -> Iterator[Raw]:
    draw = Random("a tenth is test")
    for number, record in enumerate(records, start=1):
        where = f"{path}, review {number}"
        if (draw.random() < 0.1) == (split == "test") and record.get("rating") is not None:
            text = Row(record, "", where).text("review")
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
    with files.unpacked(path) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                filled = True
                yield f"{path}, line {number}", line
    if not filled:
        raise DataError(f"{path} is empty: found no row; copy or download it again")


READERS = {"yahoo": yahoo, "amazon": amazon, "yelp": yelp, "imdb10": imdb10}
_spec = partial(Spec, divide=dev_from_train, options=OPTIONS, min_count=5, sentences=True)
SPECS = (
    _spec(
        "agnews4",
        read_folder,
        f"All four topics, title and description as one text; {WORDS}; 15% of train is dev.",
        folder="agnews4",
        page=ZHANG,
    ),
    _spec(
        "imdb-ratings",
        partial(read_folder, ratings=True),
        f"The eight ratings of the Large Movie Review Dataset as classes; {WORDS}; 15% of train is dev.",
        folder="imdb",
        page=IMDB,
    ),
    *(
        _spec(
            name,
            read_official,
            f"The files as published, see lib/datasets/documents.py; {WORDS}; 15% of train is dev where there is none.",
            folder=name,
            page="https://github.com/nihalb/JMARS" if name == "imdb10" else ZHANG,
        )
        for name in OFFICIAL
    ),
)
