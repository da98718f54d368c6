"""Classification of single texts: what is read of each dataset, and how its paper prepares it.

Jain & Wallace (2019) classify texts by two classes; Serrano & Smith (2019), Table 1, texts in sentences by several.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

from lib.datasets import files, text
from lib.datasets.assembly import Draft, Spec, Splits, dev_from_train, divided, draft_of, drawn
from lib.datasets.corpus import Instance
from lib.datasets.files import Row

IMDB_PAGE = "https://ai.stanford.edu/~amaas/data/sentiment/"
AGNEWS_PAGE = "https://github.com/zhangxiangxiao/Crepe"
RATINGS = (1, 2, 3, 4, 7, 8, 9, 10)  # of the Large Movie Review Dataset; nothing between


def read_folder(spec: Spec, folder: Path, options: dict, ratings: bool = False) -> Draft:
    """The texts of train.jsonl.gz and so on, cut into tokens and divided into splits.

    Args:
        ratings: the classes are RATINGS, by the field `rating`, in place of those of dataset.json.
    """
    about, splits, notes = files.about(folder), {}, []
    classes = [str(rating) for rating in RATINGS] if ratings else about["classes"]
    for split, rows in spec.rows(folder).items():
        kept = drawn(rows, split, options, notes)
        splits[split] = [_instance(spec, row, _rating(row) if ratings else row.label(classes)) for row in kept]
    return draft_of(spec, folder, about, classes, splits, [*notes, *_on_rationales(splits)])


def _instance(spec: Spec, row: Row, label: int, field: str = "text") -> Instance:
    """A text with the spans [start, end) of its rationale, in order, where it has any; DataError where one is wrong."""
    plain = spec.instance(row.id, row.text(field), label)
    if not row.record.get("rationale"):
        return plain
    tokens = len(plain.tokens)

    def inside(pair: object) -> bool:
        return files.is_list(pair, int) and len(pair) == 2 and 0 <= pair[0] <= pair[1] <= tokens

    allowed = f"a list of [start, end) pairs of tokens, of which this text has {tokens:,}"
    spans = row.value("rationale", allowed, lambda spans: isinstance(spans, list) and all(map(inside, spans)))
    return replace(plain, rationale=tuple(sorted((start, end) for start, end in spans if start < end)) or None)


def _rating(row: Row) -> int:
    allowed = ", ".join(map(str, RATINGS))
    return RATINGS.index(row.value("rating", allowed, lambda rating: type(rating) is int and rating in RATINGS))


def _on_rationales(splits: Splits) -> list[str]:
    """A note on how much people marked as the reasons for the labels, where they did."""
    if not any(instance.rationale for instances in splits.values() for instance in instances):
        return []
    shares = []
    for split, instances in splits.items():
        marked = sum(len({i for span in one.rationale or () for i in range(*span)}) for one in instances)
        shares.append(f"{marked / sum(len(one.tokens) for one in instances):.0%} of {split}")
    return [f"Rationales mark {', '.join(shares)} (shares of the tokens), so splits are compared each with its own."]


def read_agnews(spec: Spec, folder: Path, options: dict) -> Draft:
    """World (0) against Business (2 in the file, 1 here) of AG News: their descriptions, without the titles."""
    about, splits, notes = files.about(folder), {}, []
    classes = about["classes"]
    for split, rows in spec.rows(folder).items():
        of_two = [row for row in rows if row.label(classes) in (0, 2)]
        kept = [row for row in of_two if row.record.get("description") is not None]
        if left_out := len(of_two) - len(kept):
            of_all = f"{left_out:,} of {len(of_two):,} World and Business texts of {split} were left out"
            notes.append(f"{of_all}: they do not keep title and description apart.")
        splits[split] = [_instance(spec, row, row.label(classes) // 2, "description") for row in kept]
    return draft_of(spec, folder, about, classes[:3:2], splits, notes)


def divide_imdb(splits: Splits) -> Splits:
    """Texts under 400 tokens; 20% of train is dev; 20% of test is test (their code draws it by train_size)."""
    short = {split: [one for one in texts if len(one.tokens) < 400] for split, texts in splits.items()}
    train, dev = divided(short["train"], 1378, test_size=0.2)
    test, _ = divided(short["test"], 1378, train_size=0.2)
    return {"train": train, "dev": dev, "test": test}


AS_THEY_COME = "Tokens as they come, apart by spaces, since the rationales count them; words in at least 2 texts."
DOCUMENTS = (
    "spaCy's English tokens, lower-case, in the sentences of its rule-based splitter; words that occur at least 5 "
    "times in train (Differs from the paper: its code counts dev too); 15% of train is dev."
)

_eraser = partial(
    Spec,
    read=read_folder,
    folder="eraser_movies",
    page="https://www.eraserbenchmark.com/",
    tokens=lambda raw: tuple(raw.split()),
    min_df=2,
)
_documents = partial(
    Spec,
    tokens=text.spacy_words,
    divide=dev_from_train,
    options={"train_texts": None, "test_texts": None},
    min_count=5,
    sentences=True,
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
        page=IMDB_PAGE,
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
        page=AGNEWS_PAGE,
        tokens=text.generic,
        divide=dev_from_train,
        min_df=5,
    ),
    _eraser("eraser_movies", preprocess=AS_THEY_COME),
    _eraser("eraser_movies-sentences", preprocess=f"{AS_THEY_COME} Sentences by rule.", sentences=True),
    _documents(
        "agnews4",
        read_folder,
        f"All four topics, title and description as one text; {DOCUMENTS}",
        folder="agnews4",
        page=AGNEWS_PAGE,
    ),
    _documents(
        "imdb-ratings",
        partial(read_folder, ratings=True),
        f"The eight ratings of the Large Movie Review Dataset as classes; {DOCUMENTS}",
        folder="imdb",
        page=IMDB_PAGE,
    ),
)
