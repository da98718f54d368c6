"""Texts with a question: which answer is right? SNLI's pairs, bAbI's stories, CNN's cloze (Jain & Wallace 2019).

Attention is over SNLI's premise, bAbI's story, CNN's article; the question is the hypothesis, the question, the
sentence with a gap.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from lib.datasets import files, text
from lib.datasets.assembly import Draft, Spec, Splits, dev_from_train, draft_of
from lib.datasets.corpus import Instance
from lib.datasets.files import DataError, Row

JOINT = "."  # between the sentences of a story, as in Jain & Wallace's code
BABI = "https://research.fb.com/downloads/babi/"


def read_inference(spec: Spec, folder: Path, options: dict) -> Draft:
    """Does the hypothesis follow from the premise?"""
    about, splits = files.description(folder), {}
    for split in ("train", "dev", "test"):
        splits[split] = [_pair(spec, row, about["classes"]) for row in files.rows(folder, split)]
    return _draft(spec, folder, about, about["classes"], splits)


def _pair(spec: Spec, row: Row, classes: Sequence[str]) -> Instance:
    premise, hypothesis = (files.text_of(row, name) for name in ("premise", "hypothesis"))
    label = files.label_of(row, classes)
    return Instance(row.id, premise, spec.tokens(premise), label, query=spec.tokens(hypothesis))


def read_stories(spec: Spec, folder: Path, options: dict) -> Draft:
    """Any word of the training stories and questions may answer, as in Jain & Wallace's code.

    The rationale of a story is its supporting facts.
    """
    rows = {split: files.rows(folder, split) for split in ("train", "test")}
    stories = {split: [_story(spec, row) for row in of] for split, of in rows.items()}
    answers = {split: [files.text_of(row, "answer").strip().lower() for row in of] for split, of in rows.items()}
    words = {*chain.from_iterable((*one.tokens, *one.query) for one in stories["train"]), *answers["train"]}
    return _answered(spec, folder, sorted(words), stories, answers)


def read_cloze(spec: Spec, folder: Path, options: dict) -> Draft:
    """Which entity of the article fills the gap? Only entities of the article are possible answers."""
    rows = {split: files.rows(folder, split) for split in ("train", "dev", "test")}
    articles = {split: [_story(spec, row) for row in of] for split, of in rows.items()}
    answers = {split: [files.text_of(row, "answer").strip() for row in of] for split, of in rows.items()}
    entities = {token for one in articles["train"] for token in one.tokens if token.startswith("@entity")}
    return _answered(spec, folder, sorted(entities), articles, answers, among="@entity")


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
    query = spec.tokens(files.text_of(row, "question"))
    return Instance(row.id, " ".join(context), tuple(tokens), -1, facts, query=query)


def _answered(
    spec: Spec, folder: Path, classes: list[str], stories: Splits, answers: dict[str, list[str]], among: str = ""
) -> Draft:
    """The draft, each text with the number of its answer; texts whose answer is no class are left out, with a note.

    Args:
        among: only classes among the text's own tokens that begin so may answer; "": every class.
    """
    number, splits, notes = {name: place for place, name in enumerate(classes)}, {}, []
    for split, instances in stories.items():
        found = []
        for one, answer in zip(instances, answers[split], strict=True):
            allowed, label = None, number.get(answer)
            if among:
                allowed = tuple(sorted({number[t] for t in one.tokens if t.startswith(among) and t in number}))
            if label is not None and (allowed is None or label in allowed):
                found.append(replace(one, label=label, answers=allowed))
        if lost := len(instances) - len(found):
            notes.append(f"{lost:,} of {len(instances):,} texts of {split} were left out: none that may answer does.")
        splits[split] = found
    return _draft(spec, folder, files.about(folder), classes, splits, notes)


def _draft(
    spec: Spec, folder: Path, about: dict, classes: Sequence[str], splits: Splits, notes: Sequence[str] = ()
) -> Draft:
    """The draft without the texts whose question has no tokens."""
    notes = list(notes)
    for split, instances in splits.items():
        splits[split] = [one for one in instances if one.query]
        if empty := len(instances) - len(splits[split]):
            notes.append(f"{empty:,} of {len(instances):,} questions of {split} were left out: they have no tokens.")
    return draft_of(spec, folder, about, classes, splits, notes)


def question_and_answer(instance: Instance, classes: Sequence[str]) -> str:
    """A text's question and right answer, to be added to a title; "" where it has no question."""
    return f", asked “{' '.join(instance.query)}” ({classes[instance.label]})" if instance.query else ""


SPECS = (
    Spec(
        "snli",
        read_inference,
        "spaCy's English tokens, lower-case, qqq for tokens with a digit; words in at least 3 premises or hypotheses.",
        folder="snli",
        page="https://nlp.stanford.edu/projects/snli/",
        tokens=text.generic,
        min_df=3,
        asks=True,
    ),
    *(
        Spec(
            f"babi{task}",
            read_stories,
            "Words, lower-case, the sentences joined by a full stop; any word may answer; 15% of train is dev (seed "
            "16377).",
            folder=f"babi{task}",
            page=BABI,
            tokens=text.generic,
            divide=dev_from_train,
            asks=True,
        )
        for task in (1, 2, 3)
    ),
    Spec(
        "cnn",
        read_cloze,
        "Tokens as they come, apart by spaces, lower-case; the article's entities may answer; words in at least 8 "
        "articles or questions.",
        folder="cnn",
        page="https://cs.nyu.edu/~kcho/DMQA/",
        tokens=lambda raw: tuple(raw.lower().split()),
        min_df=8,
        asks=True,
    ),
)
