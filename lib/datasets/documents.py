"""Texts in sentences, of several classes: the datasets of Serrano & Smith (2019), and their substitutes here."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from heapq import nlargest
from itertools import chain
from pathlib import Path
from random import Random

from lib.datasets import files, official, planted, text
from lib.datasets.assembly import Draft, Spec, counted, dev_from_train, draft_of
from lib.datasets.classification import IMDB, MADE_BY, ZHANG, made_up
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


def drawn(records: Iterable, most: int | None) -> list:
    """At most `most` of the records, drawn at random with a fixed seed, in their order; None: all."""
    if most is None:
        return list(records)
    random = Random("texts drawn")
    keyed = ((random.random(), place, record) for place, record in enumerate(records))
    return [record for _, _, record in sorted(nlargest(most, keyed), key=lambda one: one[1])]


def document(id: str, raw: str, label: int, sentences: Iterable[str] | None = None) -> Instance:
    """A text cut into sentences, by rule or as they are given, and these into tokens."""
    if sentences is None:
        cut = text.in_sentences(raw)
    else:
        cut = [tuple(chain.from_iterable(text.in_sentences(one))) for one in sentences]
    cut = [tokens for tokens in cut if tokens]
    return Instance(id, raw, tuple(chain.from_iterable(cut)), label, sentences=tuple(map(len, cut)))


def documents(records: Iterable, options: dict, split: str, notes: list[str]) -> list[Instance]:
    """Texts of (id, text, label) or (id, text, label, sentences); a note has their number if not all are read."""
    name = f"{'test' if split == 'test' else 'train'}_texts"
    chosen = drawn(records, counted(options, name))
    if options[name] is not None:
        notes.append(f"{name}: {len(chosen):,} of the texts of {split} were drawn at random.")
    return [document(*record) for record in chosen]


def read_folder(spec: Spec, folder: Path, options: dict) -> Draft:
    """All texts of train.jsonl.gz and test.jsonl.gz with the classes of dataset.json; 15% of train is dev."""
    classes = files.description(folder)["classes"]
    return _prepared(spec, folder, options, classes, lambda row: files.label_of(row, classes))


def read_ratings(spec: Spec, folder: Path, options: dict) -> Draft:
    """The same with the field `rating` for the class: 1 to 4 and 7 to 10."""

    def label(row: Row) -> int:
        rating = row.record.get("rating")
        if isinstance(rating, bool) or rating not in RATINGS:
            allowed = ", ".join(map(str, RATINGS))
            raise DataError(f"{row.place}: the rating is {str(rating)[:40]!r}; allowed: {allowed}")
        return RATINGS.index(rating)

    return _prepared(spec, folder, options, tuple(map(str, RATINGS)), label)


def _prepared(spec: Spec, folder: Path, options: dict, classes: Sequence[str], label: Callable[[Row], int]) -> Draft:
    about, splits, notes = files.description(folder), {}, []
    for split, rows in files.rows_of(folder, ("train", "test")).items():
        records = [(row.id, files.text_of(row), label(row)) for row in rows]
        splits[split] = documents(records, options, split, notes)
    return draft_of(spec, folder, about, classes, splits, notes)


def read_official(spec: Spec, folder: Path, options: dict) -> Draft:
    """The officially published files of a set of texts; without a dev file 15% of train is dev."""
    notes, splits = [], {}
    for split, raws in getattr(official, spec.folder)(folder).items():
        records = ((raw.id, raw.text, raw.label, raw.sentences) for raw in raws)
        splits[split] = documents(records, options, split, notes)
    return draft_of(spec, folder, OFFICIAL[spec.folder], official.CLASSES[spec.folder], splits, notes)


def read_planted(spec: Spec, folder: None, options: dict) -> Draft:
    """Made-up texts of several sentences, one of which decides."""
    return made_up(spec, "Planted documents", planted.documents, options)


_spec = partial(Spec, divide=dev_from_train, options=OPTIONS, min_count=5, sentences=True)
SPECS = (
    Spec(
        "planted-documents",
        read_planted,
        f"Made-up texts of several sentences, one of which decides; see {MADE_BY}.",
        options=dict(planted.DEFAULTS),
        dials=planted.Options,
        sentences=True,
    ),
    _spec(
        "agnews4",
        read_folder,
        f"All four topics, title and description as one text; {WORDS}; 15% of train is dev.",
        folder="agnews4",
        page=ZHANG,
    ),
    _spec(
        "imdb-ratings",
        read_ratings,
        f"The eight ratings of the Large Movie Review Dataset as classes; {WORDS}; 15% of train is dev.",
        folder="imdb",
        page=IMDB,
    ),
    *(
        _spec(
            name,
            read_official,
            f"The files as published, see lib/datasets/official.py; {WORDS}; 15% of train is dev where there is none.",
            folder=name,
            page="https://github.com/nihalb/JMARS" if name == "imdb10" else ZHANG,
        )
        for name in OFFICIAL
    ),
)
