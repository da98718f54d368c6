"""From the official files of each source, unpacked, to what the loaders read."""

import csv
import gzip
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path

import numpy as np
from sklearn.datasets import _twenty_newsgroups as theirs
from sklearn.datasets import load_files
from sklearn.model_selection import train_test_split
from spacy.strings import StringStore
from spacy.vectors import Vectors as SpacyVectors
from tqdm import tqdm

from lib.datasets.files import SUFFIX, DataError, decode, record_of
from lib.training.cache import file_digest
from tools.fetch.sources import Source

Splits = dict[str, Iterable[dict]]
LEAF = re.compile(r"\([0-4] ([^() ]+)\)")  # a leaf may hold another kind of space
INNER = re.compile(r"(\([0-4]|[ )])+")
UNESCAPED = {"-LRB-": "(", "-RRB-": ")", r"\/": "/", r"\*": "*"}
LONGEST = 64  # characters of a word: each word of the file takes the space of the longest


def sst(unpacked: Path, source: Source) -> Splits:
    r"""Trees in Penn Treebank's brackets: the leaves are the text, the root's number the sentiment, without neutral.

    Brackets and slashes are unescaped (-LRB-, \/); everything else is as in the treebank.
    """
    return {split: _trees(one_file(unpacked, f"{split}.txt")) for split in ("train", "dev", "test")}


def _trees(path: Path) -> Iterator[dict]:
    for where, line in lines_of(path):
        leaves = LEAF.findall(line)
        if not leaves or not INNER.fullmatch(LEAF.sub("", line)):
            raise ValueError(f"{where} is no tree: {line[:40]!r}")
        root, text = int(line[1]), " ".join(leaves)
        for escaped, sign in UNESCAPED.items():
            text = text.replace(escaped, sign)
        if root != 2:
            yield {"text": text, "label": int(root > 2)}


def imdb(unpacked: Path, source: Source) -> Splits:
    """One file for each review, `<number>_<rating>.txt` in the folders pos and neg; the text keeps its `<br />`."""
    root = one_file(unpacked, "train/pos").parents[1]
    return {split: _reviews(root / split) for split in ("train", "test")}


def _reviews(split: Path) -> Iterator[dict]:
    for label, side in ((1, "pos"), (0, "neg")):
        names = (path.stem.split("_") for path in (split / side).glob("*.txt"))
        for number, rating in sorted((int(number), int(rating)) for number, rating in names):
            name = f"{split.name}/{side}/{number}_{rating}"
            text = decode((split.parent / f"{name}.txt").read_bytes(), name)
            yield {"id": name, "text": text, "label": label, "rating": rating}


def newsgroups(unpacked: Path, source: Source) -> Splits:
    """Baseball against hockey, split as in the notebook 20News that Jain & Wallace released.

    Both splits by date are joined in scikit-learn's shuffled order; posts that are empty without header, footer and
    quotes are dropped; a fifth is test, a fifth of the rest dev, by class and the notebook's seed. As in scikit-learn,
    the posts are read as Latin-1, in which every byte is a letter.
    """
    parts = [one_file(unpacked, f"20news-bydate-{split}") for split in ("train", "test")]
    paths = [Path(path) for part in parts for path in load_files(part, load_content=False).filenames]
    paths = [paths[place] for place in np.random.RandomState(42).permutation(len(paths))]
    groups = [f"rec.sport.{sport}" for sport in source.classes]
    posts = [(path, without_newsgroup_marks(path.read_bytes().decode("latin-1"))) for path in paths]
    named = [{"id": "/".join(path.parts[-3:]), "text": text} for path, text in posts if text.strip()]
    records = [
        one | {"label": label} for label, group in enumerate(groups) for one in named if f"/{group}/" in one["id"]
    ]
    rest, test = _four_fifths(records)
    train, dev = _four_fifths(rest)
    return {"train": train, "dev": dev, "test": test}


def without_newsgroup_marks(post: str) -> str:
    """A post without header, signature and quotes, as scikit-learn's fetch_20newsgroups(remove=...) leaves it."""
    return theirs.strip_newsgroup_quoting(theirs.strip_newsgroup_footer(theirs.strip_newsgroup_header(post)))


def _four_fifths(records: list[dict]) -> tuple[list[dict], list[dict]]:
    """(four fifths, one fifth), both shuffled, with equal shares of the classes."""
    return train_test_split(records, test_size=0.2, stratify=[one["label"] for one in records], random_state=13478)


def agnews(unpacked: Path, source: Source) -> Splits:
    """Rows of class 1..4, title and description, which `text` joins by a space."""
    splits = {}
    for split in ("train", "test"):
        read = rows_of(one_file(unpacked, f"{split}.csv"))
        rows = [(int(number) - 1, title, words) for number, title, words in read]
        splits[split] = [{"text": f"{title} {words}", "description": words, "label": n} for n, title, words in rows]
    return splits


def movies(unpacked: Path, source: Source) -> Splits:
    """Documents of one sentence a line, tokens separated by spaces; evidences are [start, end) spans of tokens."""
    root = one_file(unpacked, "train.jsonl").parent
    names = {"train": "train", "dev": "val", "test": "test"}
    return {split: _documents(root, root / f"{name}.jsonl") for split, name in names.items()}


def _documents(root: Path, path: Path) -> Iterator[dict]:
    for review in objects_of(path):
        name = review["annotation_id"]
        tokens = list(chain.from_iterable(line.split() for _, line in lines_of(root / "docs" / Path(name).name)))
        evidences = chain.from_iterable(review["evidences"])
        about = {"id": name, "text": " ".join(tokens), "label": ("NEG", "POS").index(review["classification"])}
        yield about | {"rationale": sorted({(one["start_token"], one["end_token"]) for one in evidences})}


def snli(unpacked: Path, source: Source) -> Splits:
    """Pairs of sentences with the label on which most annotators agree; those without one ("-") are left out."""
    names = {split: f"snli_1.0_{split}.jsonl" for split in ("train", "dev", "test")}
    return {split: _pairs(one_file(unpacked, name), source.classes) for split, name in names.items()}


def _pairs(path: Path, classes: tuple[str, ...]) -> Iterator[dict]:
    for pair in objects_of(path):
        if (gold := pair["gold_label"]) != "-":
            texts = {"premise": pair["sentence1"], "hypothesis": pair["sentence2"]}
            yield texts | {"label": classes.index(gold)}


def revised(unpacked: Path, source: Source) -> Splits:
    """Rows of sentiment, text and number of the pair: first the review as it was, then as people edited it."""
    splits, names = {}, ("original", "original_label", "revised", "revised_label")
    for split in ("train", "dev", "test"):
        pairs = {}
        for sentiment, text, number in islice(rows_of(one_file(unpacked, f"{split}_paired.tsv"), "\t"), 1, None):
            pairs.setdefault(int(number), []).append((text, source.classes.index(sentiment.lower())))
        splits[split] = [{"pair": n} | dict(zip(names, (*a, *b), strict=True)) for n, (a, b) in pairs.items()]
    return splits


def babi(unpacked: Path, source: Source, task: int) -> Splits:
    """Stories of numbered lines; a line with tabs is a question, its answer, and the lines that support it.

    The context of a question is its story so far, without the earlier questions; of the version of 10,000 questions.
    """
    files = {split: f"en-10k/qa{task}_*_{split}.txt" for split in ("train", "test")}
    return {split: _questions(one_file(unpacked, pattern)) for split, pattern in files.items()}


def _questions(path: Path) -> Iterator[dict]:
    context = {}
    for _, line in lines_of(path):
        number, _, text = line.partition(" ")
        sentence, *answered = text.split("\t")
        if number == "1":
            context = {}
        if not answered:
            context[int(number)] = sentence.strip()
            continue
        answer, supporting = answered
        asked = {"context": list(context.values()), "question": sentence.strip(), "answer": answer.strip()}
        yield asked | {"supporting": [list(context).index(int(number)) for number in supporting.split()]}


SPLITS = {"sst": sst, "imdb": imdb, "20news": newsgroups, "agnews": agnews, "eraser_movies": movies, "snli": snli}
SPLITS |= {"imdb_counterfactual": revised}
VECTORS = {"glove": (100, "<f2"), "spacy": (300, "<f2")}  # size, and how it is kept


def prepare(unpacked: Path, into: Path, source: Source) -> None:
    """Everything that a source makes, below the new folder `into`; DataError where the files are not as published."""
    first = into / source.makes[0]
    try:
        if source.name in VECTORS:
            write_vectors(unpacked, first, source)
        elif source.name == "minilm":
            copy_model(one_file(unpacked, source.file), first, source)
        elif source.name == "babi":
            for task, name in enumerate(source.makes, start=1):
                write_dataset(into / name, source, babi(unpacked, source, task), f"bAbI task {task}")
        else:
            write_dataset(first, source, SPLITS[source.name](unpacked, source))
    except (FileNotFoundError, LookupError, TypeError, ValueError, csv.Error) as error:
        seen = f"{type(error).__name__}: {str(error)[:120]}"
        raise DataError(f"the official files of {source.name} are not as published ({seen})") from None


def copy_model(weights: Path, to: Path, source: Source) -> None:
    """Copies a pretrained model with its tokenizer; ValueError where the weights are not the published ones."""
    if f"sha256:{file_digest(weights)}" != source.digest:
        raise ValueError(f"{weights.name} has other weights than published")
    to.mkdir(parents=True)
    for name in (weights.name, *source.beside):
        shutil.copy(weights.parent / name, to / name)


def one_file(unpacked: Path, pattern: str) -> Path:
    """The only file or folder below `unpacked` that matches; ValueError for none, or more than one."""
    paths = sorted(unpacked.rglob(pattern))
    if len(paths) != 1:
        raise ValueError(f"the archive has {len(paths)} of {pattern!r}, where one is expected")
    return paths[0]


def lines_of(path: Path) -> Iterator[tuple[str, str]]:
    """(where it is, the line without its end) of each line that is not blank, strictly UTF-8."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                where = f"{path.parent.name}/{path.name}, line {number},"
                yield where, decode(line, where).rstrip("\r\n")


def rows_of(path: Path, delimiter: str = ",") -> Iterator[list[str]]:
    """The rows of a file of comma or tab separated values."""
    return csv.reader((line + "\n" for _, line in lines_of(path)), delimiter=delimiter, strict=True)


def objects_of(path: Path) -> Iterator[dict]:
    """The object of each line of a JSON-lines file."""
    for where, line in lines_of(path):
        yield record_of(line, where, "the archive is not the published one")


def write_dataset(to: Path, source: Source, splits: Splits, title: str = "") -> None:
    """Writes a folder of splits, and its dataset.json."""
    to.mkdir(parents=True)
    for split, records in splits.items():
        lines = [json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records]
        if not lines:
            raise ValueError(f"{split} would be empty: no text was found")
        (to / f"{split}{SUFFIX}").write_bytes(gzip.compress(b"".join(lines), mtime=0))
    about = {"title": title or source.title, "classes": list(source.classes)}
    about |= {"citation": source.citation, "licence": source.licence, "note": source.note}
    text = json.dumps({key: value for key, value in about.items() if value}, indent=1, ensure_ascii=False)
    (to / "dataset.json").write_text(text + "\n", encoding="utf-8", newline="\n")


def of_text(text: Path, size: int) -> Iterator[tuple[str, np.ndarray]]:
    """The words and numbers of word vectors in text form."""
    with text.open("rb") as file:
        for number, line in enumerate(file, start=1):
            word, *numbers = line.rstrip().rsplit(b" ", size)  # from the right: a word may have spaces in it
            if len(numbers) != size:
                raise ValueError(f"line {number} has {len(numbers)} numbers after {word[:30]!r}")
            yield word.decode("utf-8", "replace"), np.array(numbers, dtype="S").astype(np.float64)


def of_spacy(vocab: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Those of a spaCy model's folder vocab, by row: words that share one lie together, and are packed well."""
    vectors = SpacyVectors(strings=StringStore().from_disk(vocab / "strings.json")).from_disk(vocab)
    for word, row in sorted(vectors.key2row.items(), key=itemgetter(1)):
        yield vectors.strings[word], vectors.data[row]


def write_vectors(unpacked: Path, to: Path, source: Source) -> None:
    """Writes an .npz of `words` and `vectors`, which loads many times faster; ValueError for another number of words.

    Words that are not UTF-8, not in lower case or longer than 64 characters are left out; no vocabulary has them.
    """
    words, vectors, (size, kind) = [], [], VECTORS[source.name]
    path = one_file(unpacked, source.members.removesuffix("/*"))
    entries = of_spacy(path) if path.is_dir() else of_text(path, size)
    bar = tqdm(entries, "reading word vectors", source.words, file=sys.stdout)
    for word, numbers in bar:
        if "\ufffd" not in word and len(word) <= LONGEST and not word.endswith("\0") and word == word.lower():
            words.append(word)
            vectors.append(numbers.astype(kind))
    if source.words not in (None, bar.n):
        raise ValueError(f"{bar.n:,} words; {source.words:,} are published")
    if not np.isfinite(vectors).all():
        raise ValueError("they hold NaN, infinity or too large a number")
    to.parent.mkdir(parents=True)
    np.savez_compressed(to, words=np.array(words), vectors=np.array(vectors))
