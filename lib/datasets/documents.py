"""Texts in sentences, of several classes: the datasets of Serrano & Smith (2019), Table 1, or what stands in."""

from collections.abc import Iterable
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
PUBLISHED = {"yahoo": ZHANG, "amazon": ZHANG, "yelp": ZHANG, "imdb10": "https://github.com/nihalb/JMARS"}


class Raw(NamedTuple):
    """One text as published: its id, the text, and its place in the classes, from 0."""

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
            read_folder,
            f"The texts as published, see tools/fetch/prepare.py; {WORDS}; 15% of train is dev. Differs from the "
            "paper: of Yahoo its authors drew from Yahoo's own corpus, with 50,000 test texts; of Yelp and IMDB they "
            "leave open which texts were theirs.",
            folder=name,
            page=page,
        )
        for name, page in PUBLISHED.items()
    ),
)
