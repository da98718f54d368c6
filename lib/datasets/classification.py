"""Classification of single texts: what is read of each dataset, and how Jain & Wallace (2019) prepare it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lib.datasets import files, text
from lib.datasets.assembly import Draft, Spec, Splits, dev_from_train, divided, draft_of
from lib.datasets.corpus import Instance
from lib.datasets.files import DataError, Row

IMDB, ZHANG = "https://ai.stanford.edu/~amaas/data/sentiment/", "https://github.com/zhangxiangxiao/Crepe"  # pages


def read_folder(spec: Spec, folder: Path, options: dict) -> Draft:
    """The texts of train.jsonl.gz and so on, cut into tokens and divided into splits."""
    about = files.about(folder)
    rows = files.rows_of(folder, ("train", "test") if spec.divide else ("train", "dev", "test"))
    splits = {split: [_instance(spec, row, about["classes"]) for row in of] for split, of in rows.items()}
    return draft_of(spec, folder, about, about["classes"], splits, _on_rationales(splits))


def _instance(spec: Spec, row: Row, classes: Sequence[str], field: str = "text") -> Instance:
    raw = row.text(field)
    tokens = spec.tokens(raw)
    sentences = text.sentence_lengths(tokens) if spec.sentences else None
    return Instance(row.id, raw, tokens, row.label(classes), row.spans(len(tokens)), sentences)


def _on_rationales(splits: Splits) -> list[str]:
    """A note on how much people marked as the reasons for the labels, where they did."""
    if not any(one.rationale for instances in splits.values() for one in instances):
        return []
    shares = []
    for split, instances in splits.items():
        marked = sum(len({token for span in one.rationale or () for token in range(*span)}) for one in instances)
        shares.append(f"{marked / sum(len(one.tokens) for one in instances):.0%} of {split}")
    return [f"Rationales mark {', '.join(shares)} (shares of the tokens), so splits are compared each with its own."]


def read_agnews(spec: Spec, folder: Path, options: dict) -> Draft:
    """World (0) against Business (2 in the file, 1 here) of AG News: their descriptions, without the titles."""
    about, splits, notes = files.about(folder), {}, []
    if len(about["classes"]) != 4:
        raise DataError(f"{folder / 'dataset.json'} has {len(about['classes'])} classes; AG News has 4")
    for split, rows in files.rows_of(folder, ("train", "test")).items():
        of_two = [row for row in rows if row.label(about["classes"]) in (0, 2)]
        kept = [row for row in of_two if row.record.get("description") is not None]
        if left_out := len(of_two) - len(kept):
            of_all = f"{left_out:,} of {len(of_two):,} World and Business texts of {split} were left out"
            notes.append(f"{of_all}: they do not keep title and description apart.")
        instances = (_instance(spec, row, about["classes"], "description") for row in kept)
        splits[split] = [replace(one, label=one.label // 2) for one in instances]
    return draft_of(spec, folder, about, about["classes"][:3:2], splits, notes)


def divide_imdb(splits: Splits) -> Splits:
    """Texts under 400 tokens; 20% of train is dev; 20% of test is test (their code draws it by train_size)."""
    short = {split: [one for one in instances if len(one.tokens) < 400] for split, instances in splits.items()}
    train, dev = divided(short["train"], 1378, test_size=0.2)
    test, _ = divided(short["test"], 1378, train_size=0.2)
    return {"train": train, "dev": dev, "test": test}


ERASER = Spec(
    "eraser_movies",
    read_folder,
    "Tokens as they come, apart by spaces, since the rationales count them; words in at least 2 texts.",
    folder="eraser_movies",
    page="https://www.eraserbenchmark.com/",
    tokens=lambda raw: tuple(raw.split()),
    min_df=2,
)
SPECS = (
    Spec(
        "sst",
        read_folder,
        "Neutral sentences dropped; brackets and punctuation dropped, lower-case; more than 5 tokens, and fewer than "
        "the longest of the split.",
        folder="sst",
        page="https://nlp.stanford.edu/sentiment/",
        tokens=text.words,
        longer_than=5,
        drop_longest=True,
    ),
    Spec(
        "imdb",
        read_folder,
        "Lower-case words without punctuation and <br />; more than 6 tokens, under 400, and fewer than the longest of "
        "the split; 20% of train is dev, 20% of test is test (seed 1378); words in at least 10 texts.",
        folder="imdb",
        page=IMDB,
        tokens=text.keras_words,
        divide=divide_imdb,
        longer_than=6,
        drop_longest=True,
        min_df=10,
    ),
    Spec(
        "20news",
        read_folder,
        "Headers, footers and quotes removed; spaCy's English tokens, lower-case, qqq for tokens with a digit, "
        "punctuation outside tokens dropped; more than 6 and fewer than 500 tokens; words in at least 2 texts.",
        folder="20news",
        page="https://qwone.com/~jason/20Newsgroups/",
        tokens=text.generic_words,
        longer_than=6,
        shorter_than=500,
        min_df=2,
    ),
    Spec(
        "agnews",
        read_agnews,
        "World against Business, the description without the title; spaCy's English tokens, lower-case, qqq for tokens "
        "with a digit; 15% of train is dev (seed 16377); words in at least 5 texts.",
        folder="agnews4",
        page=ZHANG,
        tokens=text.generic,
        divide=dev_from_train,
        min_df=5,
    ),
    ERASER,
    replace(
        ERASER, name="eraser_movies-sentences", preprocess=f"{ERASER.preprocess} Sentences by rule.", sentences=True
    ),
)
