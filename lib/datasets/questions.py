"""Texts with a question: which answer is right? SNLI's pairs, bAbI's stories, CNN's cloze (Jain & Wallace 2019).

Attention is over SNLI's premise, bAbI's story, CNN's article; the question is the hypothesis, the question, the
sentence with a gap.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from lib.datasets import files, text
from lib.datasets.assembly import Draft, Spec, dev_from_train, draft_of
from lib.datasets.corpus import Instance
from lib.datasets.files import DataError, Row

JOINT = "."  # between the sentences of a story, as in Jain & Wallace's code


def read_inference(spec: Spec, folder: Path, options: dict) -> Draft:
    """Does the hypothesis follow from the premise?"""
    about, splits = files.about(folder), {}
    for split, rows in spec.rows(folder).items():
        splits[split] = [_pair(spec, row, row.label(about["classes"])) for row in rows]
    return draft_of(spec, folder, about, about["classes"], splits)


def _pair(spec: Spec, row: Row, label: int) -> Instance:
    return replace(spec.instance(row.id, row.text("premise"), label), query=spec.tokens(row.text("hypothesis")))


def read_stories(spec: Spec, folder: Path, options: dict, among: str = "") -> Draft:
    """Stories or articles, each text with the number of its answer; texts whose answer is no class are left out.

    Args:
        among: "": any word of the training stories and questions may answer, as in Jain & Wallace's code; else the
            words of the training stories that begin so are the classes, and those in the text itself may answer.
    """
    splits, notes = {}, []
    stories = {
        split: [(_story(spec, row), row.text("answer").strip().lower()) for row in rows]
        for split, rows in spec.rows(folder).items()
    }
    words = {token for story, _ in stories["train"] for token in story.tokens if token.startswith(among)}
    if not among:
        words = words.union(*((*story.query, answer) for story, answer in stories["train"]))
    number = {name: place for place, name in enumerate(sorted(words))}
    for split, pairs in stories.items():
        splits[split] = []
        for story, answer in pairs:
            allowed = tuple(sorted({number[token] for token in story.tokens if token in number})) if among else None
            if answer in number and (allowed is None or number[answer] in allowed):
                splits[split].append(replace(story, label=number[answer], answers=allowed))
        if lost := len(pairs) - len(splits[split]):
            notes.append(f"{lost:,} of {len(pairs):,} texts of {split} were left out: none that may answer does.")
    return draft_of(spec, folder, files.about(folder, with_classes=False), list(number), splits, notes)


def _story(spec: Spec, row: Row) -> Instance:
    """A story without its answer: label -1."""
    context, supporting = row.record.get("context"), row.record.get("supporting", [])
    if not isinstance(context, list) or not all(isinstance(sentence, str) for sentence in context):
        raise DataError(f"{row.place}: 'context' is {str(context)[:60]!r}; allowed: a list of sentences")
    if not all(type(at) is int and 0 <= at < len(context) for at in supporting):
        allowed = f"a list of places in a context of {len(context):,} sentences"
        raise DataError(f"{row.place}: 'supporting' is {str(supporting)[:60]!r}; allowed: {allowed}")
    tokens, spans = [], []
    for sentence in context:
        tokens += [JOINT] if tokens else []
        start = len(tokens)
        tokens += spec.tokens(sentence.strip().removesuffix("."))
        spans.append((start, len(tokens)))
    facts = tuple(spans[at] for at in sorted(set(supporting))) or None
    query = spec.tokens(row.text("question"))
    return Instance(row.id, " ".join(context), tuple(tokens), -1, facts, query=query)


def question_and_answer(instance: Instance, classes: Sequence[str]) -> str:
    """A text's question and right answer, to be added to a title; "" where it has no question."""
    return f", asked “{' '.join(instance.query)}” ({classes[instance.label]})" if instance.query else ""


_spec = partial(Spec, asks=True)
SPECS = (
    _spec(
        "snli",
        read_inference,
        "spaCy's English tokens, lower-case, qqq for tokens with a digit; words in at least 3 premises or hypotheses.",
        folder="snli",
        page="https://nlp.stanford.edu/projects/snli/",
        tokens=text.generic,
        min_df=3,
    ),
    *(
        _spec(
            name,
            read_stories,
            "Words, lower-case, the sentences joined by a full stop; any word may answer; 15% of train is dev (seed "
            "16377).",
            folder=name,
            page="https://research.fb.com/downloads/babi/",
            tokens=text.generic,
            divide=dev_from_train,
        )
        for name in ("babi1", "babi2", "babi3")
    ),
    _spec(
        "cnn",
        partial(read_stories, among="@entity"),
        "Tokens as they come, apart by spaces, lower-case; the article's entities may answer; words in at least 8 "
        "articles or questions.",
        folder="cnn",
        page="https://cs.nyu.edu/~kcho/DMQA/",
        tokens=lambda raw: tuple(raw.lower().split()),
        min_df=8,
    ),
)
