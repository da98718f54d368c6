"""Sentiment and topics: SST's trees, IMDB's and 20 Newsgroups' folders of files, AG News' rows, ERASER's documents."""

import csv
import re
from collections.abc import Iterator
from itertools import accumulate, chain, pairwise
from pathlib import Path

import numpy as np
from sklearn.datasets import load_files
from sklearn.datasets._twenty_newsgroups import (
    strip_newsgroup_footer,
    strip_newsgroup_header,
    strip_newsgroup_quoting,
)
from sklearn.model_selection import train_test_split

from lib.datasets.fetching.sources import Source
from lib.datasets.fetching.writing import folder, lines_of, objects_of, one, text_of, write_dataset
from lib.datasets.files import DataError

LEAF = re.compile(r"\([0-4] ([^() ]+)\)")  # a leaf may hold another kind of space
INNER = re.compile(r"(\([0-4]|[ )])+")
WRITTEN = {"-LRB-": "(", "-RRB-": ")", r"\/": "/", r"\*": "*"}
NAME = re.compile(r"[A-Za-z0-9_.-]+")
RATED = re.compile(r"(\d+)_(\d+)\.txt")
SPLITS = ("train", "dev", "test")


def sst(unpacked: Path, into: Path, source: Source) -> None:
    r"""Trees in Penn Treebank's brackets: the leaves are the text, the root's number the sentiment, without neutral.

    Brackets and slashes are written as themselves (-LRB-, \/), all else as in the treebank.
    """
    paths = {split: one(unpacked, f"{split}.txt") for split in SPLITS}
    write_dataset(into / "sst", source, {split: _trees(path) for split, path in paths.items()})


def _trees(path: Path) -> Iterator[dict]:
    for where, line in lines_of(path):
        leaves = LEAF.findall(line)
        if not leaves or not INNER.fullmatch(LEAF.sub("", line)):
            raise DataError(f"{where} is no tree of the Stanford Sentiment Treebank: {line[:40]!r}")
        root = int(line[1])
        words = []
        for leaf in leaves:
            for sign, written in WRITTEN.items():
                leaf = leaf.replace(sign, written)
            words.append(leaf)
        if root != 2:
            yield {"text": " ".join(words), "label": int(root > 2), "label5": root}


def imdb(unpacked: Path, into: Path, source: Source) -> None:
    """One file a review, `<number>_<rating>.txt` in the folders pos and neg; text as it is, with its `<br />`."""
    root = folder(unpacked, "train/pos").parents[1]
    write_dataset(into / "imdb", source, {split: _reviews(root / split, split) for split in ("train", "test")})


def _reviews(part: Path, split: str) -> Iterator[dict]:
    for label, side in ((1, "pos"), (0, "neg")):
        for (number, rating), path in sorted((_named(path), path) for path in (part / side).glob("*.txt")):
            record = {"text": text_of(path), "label": label, "rating": rating}
            yield {"id": f"{split}/{side}/{number}_{rating}", **record}


def _named(path: Path) -> tuple[int, int]:
    """(number, rating) of a review's file."""
    found = RATED.fullmatch(path.name)
    if not found or not 1 <= int(found[2]) <= 10:
        raise DataError(
            f"{path.parent.name}/{path.name} is not named <number>_<rating>.txt, with a rating from 1 to 10"
        )
    return int(found[1]), int(found[2])


def newsgroups(unpacked: Path, into: Path, source: Source) -> None:
    """Baseball against hockey, split as in the notebook 20News that Jain & Wallace released.

    Both splits by date are put together in scikit-learn's shuffled order; posts of which nothing is left without
    header, footer and quotes are dropped; a fifth is test, a fifth of the rest dev, by class and the notebook's seed.
    The posts are read as Latin-1, in which every byte is a letter, as scikit-learn does.
    """
    parts = [folder(unpacked, f"20news-bydate-{split}") for split in ("train", "test")]
    paths = [Path(path) for part in parts for path in load_files(part, load_content=False).filenames]
    paths = [paths[place] for place in np.random.RandomState(42).permutation(len(paths))]
    groups = [f"rec.sport.{sport}" for sport in source.classes]
    records = [_post(path, label) for label, group in enumerate(groups) for path in paths if path.parent.name == group]
    records = [record for record in records if record["text"].strip()]
    rest, test = _fifth(records)
    train, dev = _fifth(rest)
    write_dataset(into / "20news", source, {"train": train, "dev": dev, "test": test})


def _post(path: Path, label: int) -> dict:
    text = path.read_bytes().decode("latin-1")
    text = strip_newsgroup_quoting(strip_newsgroup_footer(strip_newsgroup_header(text)))
    split = path.parts[-3].removeprefix("20news-bydate-")
    return {"id": "/".join(path.parts[-3:]), "text": text, "label": label, "bydate_split": split}


def _fifth(records: list[dict]) -> tuple[list[dict], list[dict]]:
    """(four fifths, one fifth), both shuffled, with equal shares of the classes."""
    labels = [record["label"] for record in records]
    try:
        rest, chosen = train_test_split(records, test_size=0.2, stratify=labels, random_state=13478)
    except ValueError as error:
        raise DataError(f"the archive has {len(records):,} posts on baseball and hockey, too few: {error}") from None
    return rest, chosen


def agnews(unpacked: Path, into: Path, source: Source) -> None:
    """Rows of class 1..4, title and description; all are kept as they are, and `text` joins the two by a space."""
    paths = {split: one(unpacked, f"{split}.csv") for split in ("train", "test")}
    write_dataset(into / "agnews4", source, {split: _rows(path, source.classes) for split, path in paths.items()})


def _rows(path: Path, classes: tuple[str, ...]) -> Iterator[dict]:
    rows = csv.reader((line + "\n" for _, line in lines_of(path)), strict=True)
    try:
        for row in rows:
            if len(row) != 3 or row[0] not in map(str, range(1, len(classes) + 1)):
                allowed = f"allowed: a class from 1 to {len(classes)}, a title and a description"
                raise DataError(f"{path.name}, line {rows.line_num}, is {str(row)[:60]}; {allowed}")
            label, title, description = int(row[0]) - 1, row[1], row[2]
            texts = {"text": f"{title} {description}", "title": title, "description": description}
            yield {**texts, "label": label, "label_name": classes[label]}
    except csv.Error as error:
        raise DataError(f"{path.name}, line {rows.line_num}, is no CSV ({error})") from None


def eraser_movies(unpacked: Path, into: Path, source: Source) -> None:
    """Documents of a sentence a line, tokens apart by spaces; evidences are [start, end) spans of those tokens."""
    root = one(unpacked, "movies/train.jsonl", "train.jsonl").parent
    names = {"train": "train", "dev": "val", "test": "test"}
    splits = {split: _documents(root, root / f"{name}.jsonl") for split, name in names.items()}
    write_dataset(into / "eraser_movies", source, splits)


def _documents(root: Path, path: Path) -> Iterator[dict]:
    if not path.is_file():
        raise DataError(f"the archive has no {path.name}")
    for where, found in objects_of(path):
        name, side = found.get("annotation_id"), found.get("classification")
        if not isinstance(name, str) or not NAME.fullmatch(name) or side not in ("NEG", "POS"):
            raise DataError(f"{where} has annotation_id {str(name)[:40]!r} and classification {str(side)[:20]!r}")
        if not (root / "docs" / name).is_file():
            raise DataError(f"{where} names the document {name}, which the archive does not have")
        sentences = [line.split() for _, line in lines_of(root / "docs" / name)]
        ends = [0, *accumulate(map(len, sentences))]
        yield {
            "id": name,
            "text": " ".join(chain.from_iterable(sentences)),
            "sentences": [list(pair) for pair in pairwise(ends)],
            "label": int(side == "POS"),
            "rationale": _spans(found, where, name, ends[-1]),
            "n_tokens": ends[-1],
        }


def _spans(found: dict, where: str, name: str, tokens: int) -> list[list[int]]:
    """The evidences' spans in order, each once."""
    try:
        spans = [(one["docid"], one["start_token"], one["end_token"]) for group in found["evidences"] for one in group]
        sound = all(doc == name and 0 <= start <= end <= tokens for doc, start, end in spans)
    except (KeyError, TypeError):
        sound = False
    if not sound:
        raise DataError(f"{where} has evidences that are no spans of the {tokens:,} tokens of {name}")
    return [list(span) for span in sorted({(start, end) for _, start, end in spans})]
