"""Texts in sentences, of several classes: the datasets of Serrano & Smith (2019), Table 1, and their substitutes here.

Of four sets (Yahoo! Answers, Amazon, Yelp, IMDB) the officially published files are read, which may be packed (.gz): a
CSV file row by row, so that memory holds a chunk of rows at a time. DataError: at once for a missing file, while rows
are read for one that is empty, damaged or of another form.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from heapq import nlargest
from itertools import chain
from pathlib import Path
from random import Random
from typing import NamedTuple

from lib.datasets import files, text
from lib.datasets.assembly import Draft, Spec, dev_from_train, draft_of
from lib.datasets.classification import IMDB, ZHANG
from lib.datasets.corpus import Instance
from lib.datasets.files import DataError, Row

RATINGS = (1, 2, 3, 4, 7, 8, 9, 10)  # of the Large Movie Review Dataset; nothing between
OPTIONS = {"train_texts": None, "test_texts": None}
WORDS = (
    "spaCy's English tokens, lower-case, in the sentences of its rule-based splitter; words that occur at least 5 "
    "times in train (Differs from the paper: its code counts dev too)"
)
CHUNK = 1000  # rows of a CSV file in memory


@dataclass(frozen=True)
class Official:
    """A set of texts as it is published: its classes, the columns of its rows, the archive, and where it is."""

    title: str
    citation: str
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    archive: str
    page: str = ZHANG

    def __str__(self) -> str:
        return f"{self.archive} of {self.page}"


STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")
TOPICS = """Society & Culture, Science & Mathematics, Health, Education & Reference, Computers & Internet, Sports,
Business & Finance, Entertainment & Music, Family & Relationships, Politics & Government"""
OFFICIAL = {
    "yahoo": Official(
        "Yahoo! Answers, ten topics",
        "Zhang, Zhao & LeCun 2015",
        tuple(topic.strip() for topic in TOPICS.split(",")),
        ("class", "question title", "question content", "best answer"),
        "yahoo_answers_csv.tar.gz",
    ),
    "amazon": Official(
        "Amazon reviews, one to five stars",
        "Zhang, Zhao & LeCun 2015",
        STARS,
        ("stars", "title", "text"),
        "amazon_review_full_csv.tar.gz",
    ),
    "yelp": Official(
        "Yelp reviews, one to five stars",
        "Yelp dataset challenge",
        STARS,
        ("stars", "text"),
        "yelp_review_full_csv.tar.gz",
    ),
    "imdb10": Official(
        "IMDB reviews, one to ten stars",
        "Diao et al. 2014",
        tuple(str(rating) for rating in range(1, 11)),
        ("rating", "review"),
        "data.json",
        "https://github.com/nihalb/JMARS",
    ),
}


class Raw(NamedTuple):
    """One text as published.

    id     "<split>-<row number from 1>", or the number alone where the file has no splits
    label  place in the classes, from 0, where the files count from 1
    """

    id: str
    text: str
    label: int


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
    chosen = drawn(records, options[name])
    if options[name] is not None:
        notes.append(f"{name}: {len(chosen):,} of the texts of {split} were drawn at random.")
    return [document(one) for one in chosen]


def document(raw: Raw) -> Instance:
    """A text cut into sentences by rule, and these into tokens."""
    cut = text.in_sentences(raw.text)
    return Instance(raw.id, raw.text, tuple(chain.from_iterable(cut)), raw.label, sentences=tuple(map(len, cut)))


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
    """The officially published files of a set of texts; 15% of train is dev."""
    official, notes = OFFICIAL[spec.folder], []
    published = imdb10(folder) if spec.folder == "imdb10" else of_csv(spec.folder, folder)
    splits = {split: documents(raws, options, split, notes) for split, raws in published.items()}
    about = {"title": official.title, "citation": official.citation}
    return draft_of(spec, folder, about, official.classes, splits, notes)


# --- the published files


def of_csv(name: str, folder: Path) -> dict[str, Iterator[Raw]]:
    r"""Yahoo! Answers topics, Amazon or Yelp reviews: train.csv and test.csv of Zhang, Zhao & LeCun (2015).

    Rows are "class from 1" and one to three fields of text, without a header; quotes inside are doubled, and `\n` (two
    characters) becomes a line break. The text joins by a space the fields that are not blank.

    Differs from the paper: for Yahoo its authors drew from Yahoo's own corpus (Webscope L6), with 50,000 test texts;
    for Yelp they leave open how their 700,000 texts were drawn from the dataset challenge.
    """
    paths = {split: _found(name, folder, f"{split}.csv") for split in ("train", "test")}
    return {split: _csv_texts(name, path, split) for split, path in paths.items()}


def imdb10(folder: Path) -> dict[str, list[Raw]]:
    """IMDB reviews of Diao et al. (2014): data.json, all reviews as github.com/nihalb/JMARS has them.

    It is a JSON array of objects, of which rating (1 to 10) and review are read; those without a rating are passed
    over. It has no splits: a tenth, drawn at random, is test.

    Differs from the paper, which leaves open which tenth was its test split.
    """
    path = _found("imdb10", folder, "data.json")
    advice = "it must be one array of objects"
    records = files.json_of(files.decode(files.read_bytes(path), str(path)), str(path), advice)
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise DataError(f"{path} is a JSON {type(records).__name__}; {advice}")
    splits, draw = {"train": [], "test": []}, Random("a tenth is test")
    for number, record in enumerate(records, start=1):
        where, split = f"{path}, review {number}", "test" if draw.random() < 0.1 else "train"
        if record.get("rating") is not None:
            text = Row(record, "", where).text("review")
            splits[split].append(Raw(f"{number}", text, _label("imdb10", record["rating"], where)))
    return splits


def _found(name: str, folder: Path, file: str) -> Path:
    if path := files.packed_or_not(folder, file):
        return path
    there = f"it has {files.listing(folder)}; give the folder that holds {OFFICIAL[name]}, unpacked"
    raise DataError(f"{folder} has no {file} or {file}.gz; {there}")


def _csv_texts(name: str, path: Path, split: str) -> Iterator[Raw]:
    number, official = 0, OFFICIAL[name]
    for chunk in files.csv_chunks(path, CHUNK):
        for row, *columns in chunk.itertuples(name=None):
            number, where = number + 1, f"{path}, row {row}"
            if len(columns) != len(official.columns):
                allowed = f"allowed: {len(official.columns)} ({', '.join(official.columns)})"
                as_published = f"take the file as published: {official}"
                raise DataError(f"{where}, has {len(columns)} columns; {allowed}; {as_published}")
            label, *fields = columns
            text = " ".join(filter(str.strip, (field.replace("\\n", "\n") for field in fields)))
            yield Raw(f"{split}-{number}", files.sound(text, where), _label(name, label, where))
    if not number:
        raise DataError(f"{path} is empty: found no row; copy or download it again")


def _label(name: str, found: object, where: str) -> int:
    numbers = range(1, len(OFFICIAL[name].classes) + 1)
    if found not in (numbers if type(found) in (int, float) else map(str, numbers)):
        seen = "missing" if found is None else repr(str(found)[:40])
        allowed = f"allowed: whole numbers from 1 to {numbers[-1]}, without a header line"
        raise DataError(f"{where}: the label is {seen}; {allowed}; take the file as published: {OFFICIAL[name]}")
    return int(found) - 1


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
            f"The files as published, see lib/datasets/documents.py; {WORDS}; 15% of train is dev.",
            folder=name,
            page=official.page,
        )
        for name, official in OFFICIAL.items()
    ),
)
