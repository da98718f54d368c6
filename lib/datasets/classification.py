"""Classification of single texts: what is read of each dataset, and how Jain & Wallace (2019) prepare it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from lib.datasets import files, planted, text
from lib.datasets.assembly import Draft, Spec, Splits, dev_from_train, divided, draft_of
from lib.datasets.corpus import Instance
from lib.datasets.files import DataError, Row

IMDB, ZHANG = "https://ai.stanford.edu/~amaas/data/sentiment/", "https://github.com/zhangxiangxiao/Crepe"  # pages
MADE_BY = "lib/datasets/planted.py"


def read_folder(spec: Spec, folder: Path, options: dict) -> Draft:
    """The texts of train.jsonl.gz and so on, cut into tokens and divided into splits."""
    about = files.description(folder)
    rows = files.rows_of(folder, ("train", "test") if spec.divide else ("train", "dev", "test"))
    splits = {split: [_instance(spec, row, about["classes"]) for row in of] for split, of in rows.items()}
    return draft_of(spec, folder, about, about["classes"], splits)


def _instance(spec: Spec, row: Row, classes: Sequence[str], field: str = "text") -> Instance:
    raw = files.text_of(row, field)
    return Instance(row.id, raw, spec.tokens(raw), files.label_of(row, classes))


def read_with_rationales(spec: Spec, folder: Path, options: dict) -> Draft:
    """As `read_folder`, each text with the tokens that people marked as the reason for its label.

    The spans of the file count the tokens that `text.split()` gives, so the text is cut there and nowhere else.
    """
    draft = read_folder(spec, folder, options)
    known, shares = {row.id: row for split in draft.splits for row in files.rows(folder, split)}, []
    for split, instances in draft.splits.items():
        spans = [files.spans_of(known[one.id], len(one.tokens)) for one in instances]
        draft.splits[split] = [replace(one, rationale=of) for one, of in zip(instances, spans, strict=True)]
        marked = sum(len({token for span in of or () for token in range(*span)}) for of in spans)
        shares.append(f"{marked / sum(len(one.tokens) for one in instances):.0%} of {split}")
    note = f"Rationales mark {', '.join(shares)} (shares of the tokens), so splits are compared each with its own."
    return replace(draft, notes=(*draft.notes, note))


def read_agnews(spec: Spec, folder: Path, options: dict) -> Draft:
    """World (0) against Business (2 in the file, 1 here) of AG News: their descriptions, or title and description."""
    about, splits, notes = files.description(folder), {}, []
    if len(about["classes"]) != 4:
        raise DataError(f"{folder / 'dataset.json'} has {len(about['classes'])} classes; AG News has 4")
    field = "description" if options["text"] == "description" else "text"
    for split, rows in files.rows_of(folder, ("train", "test")).items():
        of_two = [row for row in rows if files.label_of(row, about["classes"]) in (0, 2)]
        kept = [row for row in of_two if field == "text" or row.record.get(field) is not None]
        if len(kept) < len(of_two):
            notes.append(
                f"{len(of_two) - len(kept):,} of {len(of_two):,} World and Business texts of {split} were left out "
                "because they do not keep title and description apart; text='whole' takes them."
            )
        instances = (_instance(spec, row, about["classes"], field) for row in kept)
        splits[split] = [replace(one, label=one.label // 2) for one in instances]
    return draft_of(spec, folder, about, about["classes"][:3:2], splits, notes)


def read_planted(spec: Spec, folder: None, options: dict) -> Draft:
    """Made-up reviews whose right explanation is known."""
    return made_up(spec, "Planted reviews", planted.records, options)


def made_up(spec: Spec, title: str, records: Callable[..., list[planted.Record]], options: dict) -> Draft:
    """The draft of planted texts: `records` makes those of a split."""
    try:
        splits = {
            split: [
                Instance(one.id, one.text, one.tokens, one.label, one.rationale, one.sentences)
                for one in records(split, **options)
            ]
            for split in planted.SIZES
        }
    except ValueError as error:
        raise DataError(f"dataset {spec.name!r}: {error}") from None
    chosen = planted.Options(**options)
    note = (
        f"The order of the words decides: whoever reads it can be right in {1 - chosen.noise:.0%} of the texts, a vote "
        f"of the opinion words in {planted.right_by_vote(chosen):.0%}. A model that does not read it (an average "
        "encoder, one without an encoder, TF-IDF) cannot do much better, and a Transformer learns little of it from so "
        "few texts; beside them the others show what the order adds."
    )
    return Draft(title, planted.CLASSES, splits, (note,), f"made by {MADE_BY}", "MIT, as the project", MADE_BY)


def divide_imdb(splits: Splits) -> Splits:
    """Texts under 400 tokens; 20% of train is dev; 20% of test is test (their code draws it by train_size)."""
    short = {split: [one for one in instances if len(one.tokens) < 400] for split, instances in splits.items()}
    train, dev = divided(short["train"], 1378, test_size=0.2)
    test, _ = divided(short["test"], 1378, train_size=0.2)
    return {"train": train, "dev": dev, "test": test}


SPECS = (
    Spec(
        "planted",
        read_planted,
        f"Made-up reviews of the lengths of SST in few words, their right explanation known; see {MADE_BY}.",
        options=dict(planted.DEFAULTS),
        dials=planted.Options,
    ),
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
        options={"text": "description"},
        choices={"text": ("description", "whole")},
        min_df=5,
    ),
    Spec(
        "eraser_movies",
        read_with_rationales,
        "Tokens as they come, apart by spaces, since the rationales count them; words in at least 2 texts.",
        folder="eraser_movies",
        page="https://www.eraserbenchmark.com/",
        tokens=lambda raw: tuple(raw.split()),
        min_df=2,
    ),
)
