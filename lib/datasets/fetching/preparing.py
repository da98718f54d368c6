"""From the official files of a source, unpacked, to what the loaders read."""

from collections.abc import Callable
from pathlib import Path

from lib.datasets.fetching import from_questions, from_texts, from_vectors
from lib.datasets.fetching.disk import told_of_full_disk
from lib.datasets.fetching.sources import Source
from lib.datasets.fetching.writing import one

Prepare = Callable[[Path, Path, Source], None]


def as_published(*names: str) -> Prepare:
    """Only puts the files into place, as lib/datasets/official.py reads them."""

    def prepare(unpacked: Path, into: Path, source: Source) -> None:
        to = into / source.makes[0]
        to.mkdir(parents=True)
        for name in names:
            with told_of_full_disk(to / name):
                one(unpacked, name).rename(to / name)

    return prepare


PREPARE: dict[str, Prepare] = {
    "sst": from_texts.sst,
    "imdb": from_texts.imdb,
    "20news": from_texts.newsgroups,
    "agnews": from_texts.agnews,
    "eraser_movies": from_texts.eraser_movies,
    "snli": from_questions.snli,
    "babi": from_questions.babi,
    "cnn": from_questions.cnn,
    "yelp": as_published("train.csv", "test.csv"),
    "amazon": as_published("train.csv", "test.csv"),
    "yahoo": as_published("train.csv", "test.csv"),
    "imdb10": as_published("data.json"),
    "fasttext-simple": from_vectors.fasttext,
    "glove": from_vectors.glove,
}


def prepare(unpacked: Path, into: Path, source: Source) -> None:
    """Everything that the source makes, below `into`; DataError where the files are not as published."""
    PREPARE[source.name](unpacked, into, source)
