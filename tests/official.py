"""Tiny archives in the true form of the official ones, made by hand."""

import json
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from spacy.strings import StringStore
from spacy.vectors import Vectors

from tests.web import tarred, zipped

TREES = """(4 (3 (2 It) (2 's)) (3 (2 -LRB-) (4 (3 8\xa01\\/2) (2 -RRB-))))
(2 (2 neither) (2 nor))
(1 (2 1\\/2) (0 (1 bad) (2 acting)))
""" + "".join(f"({3 * (n % 2)} {' '.join('(2 word)' for _ in range(n))})\n" for n in range(6, 12))
STORY = """1 Mary moved to the bathroom.
2 John went to the hallway.
3 Where is Mary? \tbathroom\t1
4 Daniel went back to the hallway.
5 Where is Daniel? \thallway\t4
1 Sandra went to the garden.
2 Where is Sandra? \tgarden\t1
"""
PAIRS = "".join(
    json.dumps({"gold_label": gold, "sentence1": "A man sleeps.", "sentence2": text, "pairID": "1"}) + "\n"
    for gold, text in (("contradiction", "He runs."), ("-", "He dreams."), ("neutral", "He dreams of a dog."))
)
DOCUMENT = "a dull film .\n\nit 's not worth it , sadly .\n"
VECTORS = ("the", "new york", "x" * 70, "THE")


def review(name: str, side: str, start: int, end: int) -> str:
    evidence = {"docid": name, "start_token": start, "end_token": end, "text": "", "start_sentence": 0}
    about = {"annotation_id": name, "classification": side, "evidences": [[evidence]], "query": "?", "docids": None}
    return json.dumps(about) + "\n"


def numbers(value: float, size: int = 300) -> str:
    return " ".join([str(value)] * size)


def vectors(size: int = 300) -> bytes:
    lines = [f"{word} {numbers(value, size)} \n".encode() for value, word in enumerate(VECTORS, start=1)]
    return b"".join(lines) + b"\xff " + numbers(9, size).encode() + b"\n"


def model() -> bytes:
    """A wheel of a spaCy model, as spaCy writes it: two words share a row, which is not the first."""
    strings = StringStore(VECTORS)
    vectors = Vectors(strings=strings, data=np.repeat([[2.0], [1.0]], 300, axis=1).astype(np.float32))
    for word, row in zip(VECTORS, (1, 0, 0, 1), strict=True):
        vectors.add(word, row=row)
    with TemporaryDirectory() as folder:
        strings.to_disk(Path(folder) / "strings.json")
        vectors.to_disk(Path(folder))
        files = {f"md/md-3.8.0/vocab/{path.name}": path.read_bytes() for path in Path(folder).iterdir()}
    return zipped(files | {"md/__init__.py": "", "md/md-3.8.0/ner/model": b"weights"})


def post(group: str, number: int) -> str:
    text = f"The {group} game {number} was good, and all of us saw it." if number else ""
    return f"From: a@b.c\nSubject: {group}\n\nOn 1 April A wrote:\n> quoted\n{text}\n\n--\nsigned\n"


def review_of(number: int, side: str) -> str:
    return f"Review {number} <br />, quite {side} and é, {'again ' * (number % 3)}and so on. "


GROUPS = ("alt.atheism", "rec.sport.baseball", "rec.sport.hockey")
ARTICLES = '"3","A title","Some ""text"" \\\\and more."\n"1","World","News."\n"2","Sports","Goal."\n"4","Sci","Tech."\n'
REVISED = 'Sentiment\tText\tbatch_id\nNegative\t"A ""dull"" film, and I saw all of it."\t4\n'
REVISED += "Positive\tA fine film, and I saw all of it.\t4\n"
OF_MODEL = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
MODEL = {name: name.encode() for name in OF_MODEL}
ARCHIVES = {
    "minilm": MODEL["model.safetensors"],
    "sst": zipped({f"trees/{split}.txt": TREES for split in ("train", "dev", "test")}),
    "imdb": tarred(
        {
            f"aclImdb/{split}/{side}/{number}_{rating}.txt": review_of(number, side)
            for split, (side, rating) in product(("train", "test"), (("pos", 9), ("neg", 2)))
            for number in reversed(range(40))
        }
        | {"aclImdb/README": "about", "aclImdb/train/unsup/0_0.txt": "left out"}
    ),
    "20news": tarred(
        {
            f"20news-bydate-{split}/{group}/{1000 + number}": post(group, number).encode() + b"\xe9"
            for split, group, number in product(("train", "test"), GROUPS, range(12))
        }
    ),
    "agnews": tarred({"ag_news_csv/train.csv": ARTICLES * 8, "ag_news_csv/test.csv": ARTICLES}),
    "imdb_counterfactual": zipped({f"x-1/paired/{split}_paired.tsv": REVISED for split in ("train", "dev", "test")}),
    "snli": zipped({f"snli_1.0/snli_1.0_{split}.jsonl": PAIRS for split in ("train", "dev", "test")}),
    "babi": tarred(
        {
            f"tasks_1-20_v1-2/{version}/qa{task}_{name}_{split}.txt": STORY
            for version, split in product(("en", "en-10k", "hn"), ("train", "test"))
            for task, name in ((1, "single-supporting-fact"), (2, "two"), (3, "three"), (11, "basic-coreference"))
        }
    ),
    "eraser_movies": tarred(
        {f"movies/docs/{side}_{split}.txt": DOCUMENT for side in ("negR", "posR") for split in ("train", "val", "test")}
        | {
            f"movies/{split}.jsonl": review(f"negR_{split}.txt", "NEG", 6, 8) + review(f"posR_{split}.txt", "POS", 1, 3)
            for split in ("train", "val", "test")
        }
    ),
    "glove": zipped({"glove.6B.100d.txt": vectors(100), "glove.6B.50d.txt": vectors(50)}),
    "spacy": model(),
}
