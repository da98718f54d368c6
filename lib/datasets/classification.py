"""Classification of single texts: what is read of each dataset, and how its paper prepares it.

Jain & Wallace (2019) classify texts by two classes; Serrano & Smith (2019), Table 1, texts in sentences by several.
"""

from collections.abc import Callable
from dataclasses import replace
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path

from lib.datasets import files, text
from lib.datasets.assembly import SIZES, Draft, Spec, Splits, dev_from_train, divided, draft_of
from lib.datasets.corpus import Instance
from lib.datasets.files import DataError, Row

RATINGS = (1, 2, 3, 4, 7, 8, 9, 10)  # of the Large Movie Review Dataset; nothing between


def read_folder(spec: Spec, folder: Path, options: dict, ratings: bool = False) -> Draft:
    """The texts of train.jsonl.gz and so on, in tokens; with `ratings` the classes are RATINGS, by the field rating."""
    about, splits, notes = files.about(folder), {}, []
    classes = [str(rating) for rating in RATINGS] if ratings else about["classes"]
    for split, rows in spec.rows(folder, options, notes).items():
        labels = [RATINGS.index(row.record["rating"]) if ratings else row.label(classes) for row in rows]
        splits[split] = [_instance(spec, row, label) for row, label in zip(rows, labels, strict=True)]
    if any(one.rationale for texts in splits.values() for one in texts):
        shares = ", ".join(f"{_marked(texts):.0%} of {split}" for split, texts in splits.items())
        notes.append(f"Rationales mark {shares} (shares of the tokens), so splits are compared each with its own.")
    return draft_of(spec, folder, about, classes, splits, notes)


def _instance(spec: Spec, row: Row, label: int) -> Instance:
    """A text with the spans [start, end) of its rationale, in order, where it has any."""
    plain = spec.instance(row.id, row.text(), label)
    spans = sorted((start, end) for start, end in row.record.get("rationale") or () if start < end)
    if not all(0 <= start < end <= len(plain.tokens) for start, end in spans):
        raise DataError(f"{row.place}: 'rationale' is {spans}; allowed: spans of {len(plain.tokens):,} tokens")
    return replace(plain, rationale=tuple(spans) or None)


def _marked(texts: list[Instance]) -> float:
    """The fraction of the tokens that people marked as reasons for the labels."""
    marked = sum(len({i for span in one.rationale or () for i in range(*span)}) for one in texts)
    return marked / sum(len(one.tokens) for one in texts)


def read_pairs(spec: Spec, folder: Path, options: dict) -> Draft:
    """Reviews, each with a version that people edited until its label was the other one (Kaushik et al. 2020).

    Of test, where a diff finds them, the rationale of both are the words that the other does not have; none: None.
    """
    about, splits, notes = files.about(folder), {}, []
    for split, rows in spec.rows(folder, options, notes).items():
        splits[split] = []
        for row in rows:
            pair = []
            for side in ("original", "revised"):
                label = replace(row, record={"label": row.record.get(f"{side}_label")}).label(about["classes"])
                pair.append(spec.instance(f"{row.id}-{side}", row.text(side), label))
            tokens = [one.tokens for one in pair] if split == "test" else [(), ()]
            edits = SequenceMatcher(None, *tokens, autojunk=False).get_opcodes()
            for one, other, at in zip(pair, pair[::-1], (1, 3), strict=True):
                spans = tuple(edit[at : at + 2] for edit in edits if edit[0] != "equal" and edit[at] < edit[at + 1])
                splits[split].append(replace(one, rationale=spans or None, counterpart=other.id))
    notes.append(f"The words in which a pair differs are {_marked(splits['test']):.0%} of the words of test.")
    return draft_of(spec, folder, about, about["classes"], splits, notes)


def read_agnews(spec: Spec, folder: Path, options: dict) -> Draft:
    """World (0) against Business (2 in the file, 1 here) of AG News: their descriptions, without the titles."""
    about, splits, notes = files.about(folder), {}, []
    for split, rows in spec.rows(folder, options, notes).items():
        of_two = [row for row in rows if row.label(about["classes"]) in (0, 2)]
        kept = [row for row in of_two if row.record.get("description") is not None]
        if left_out := len(of_two) - len(kept):
            of_all = f"{left_out:,} of {len(of_two):,} World and Business texts of {split} were left out"
            notes.append(f"{of_all}: they do not keep title and description apart.")
        splits[split] = [spec.instance(row.id, row.text("description"), row.record["label"] // 2) for row in kept]
    return draft_of(spec, folder, about, about["classes"][:3:2], splits, notes)


def divide_imdb(splits: Splits) -> Splits:
    """Texts under 400 tokens; 20% of train is dev; 20% of test is test (their code draws it by train_size)."""
    short = {split: [one for one in texts if len(one.tokens) < 400] for split, texts in splits.items()}
    train, dev = divided(short["train"], 1378, test_size=0.2)
    test, _ = divided(short["test"], 1378, train_size=0.2)
    return {"train": train, "dev": dev, "test": test}


SPACY = "spaCy's English tokens, lower-case"
RATIONALES = "Tokens as they come, apart by spaces, since the rationales count them; words in at least 2 texts."
DOCUMENTS = (
    f"{SPACY}, in the sentences of its rule-based splitter; words that occur at least 5 times in train (Differs from "
    "the paper: its code counts dev too); 15% of train is dev."
)
PREPARED = {
    "sst": "Neutral sentences dropped; brackets and punctuation dropped, lower-case; more than 5 tokens, and fewer "
    "than the longest of the split.",
    "imdb": "Lower-case words without punctuation and <br />; more than 6 tokens, under 400, and fewer than the "
    "longest of the split; 20% of train is dev, 20% of test is test (seed 1378); words in at least 10 texts.",
    "20news": f"Headers, footers and quotes removed; {SPACY}, qqq for tokens with a digit, punctuation outside tokens "
    "dropped; more than 6 and fewer than 500 tokens; words in at least 2 texts.",
    "agnews": f"World against Business, the description without the title; {SPACY}, qqq for tokens with a digit; 15% "
    "of train is dev (seed 16377); words in at least 5 texts.",
    "imdb_counterfactual": "Words as of imdb, those in at least 2 texts; in test, those that the other text of a "
    "pair does not have are the rationale.",
    "eraser_movies": RATIONALES,
    "eraser_movies-sentences": f"{RATIONALES} Sentences by rule.",
    "agnews4": f"All four topics, title and description as one text; {DOCUMENTS}",
    "imdb-ratings": f"The eight ratings of the Large Movie Review Dataset as classes; {DOCUMENTS}",
}
PAGES = {
    "sst": "https://nlp.stanford.edu/sentiment/",
    "imdb": "https://ai.stanford.edu/~amaas/data/sentiment/",
    "20news": "https://qwone.com/~jason/20Newsgroups/",
    "agnews4": "https://github.com/zhangxiangxiao/Crepe",
    "imdb_counterfactual": "https://github.com/acmi-lab/counterfactually-augmented-data",
    "eraser_movies": "https://www.eraserbenchmark.com/",
}


def _spec(name: str, tokens: Callable[[str], tuple[str, ...]], folder: str = "", read=read_folder, **more) -> Spec:
    folder = folder or name
    return Spec(name, read, PREPARED[name], folder, tokens, page=PAGES[folder], **{"options": SIZES} | more)


_documents = partial(_spec, tokens=text.spacy_words, divide=dev_from_train, min_count=5, sentences=True)
SPECS = (
    _spec("sst", text.words, longer_than=5, drop_longest=True),
    _spec("imdb", text.keras_words, divide=divide_imdb, longer_than=6, drop_longest=True, min_df=10),
    _spec("20news", text.generic_words, longer_than=6, shorter_than=500, min_df=2),
    _spec("agnews", text.generic, "agnews4", read_agnews, divide=dev_from_train, min_df=5),
    _spec("imdb_counterfactual", text.keras_words, read=read_pairs, min_df=2, options={}),
    _spec("eraser_movies", text.pieces, min_df=2),
    _spec("eraser_movies-sentences", text.pieces, "eraser_movies", min_df=2, sentences=True),
    _documents("agnews4"),
    _documents("imdb-ratings", folder="imdb", read=partial(read_folder, ratings=True)),
)
