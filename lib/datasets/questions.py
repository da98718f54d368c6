"""Texts with a question (Jain & Wallace 2019): attention is over SNLI's premise, asked its hypothesis; bAbI's story."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from lib.datasets import files, text
from lib.datasets.assembly import SIZES, Draft, Spec, dev_from_train, draft_of
from lib.datasets.corpus import Instance
from lib.datasets.files import Row

JOINT = "."  # between the sentences of a story, as in Jain & Wallace's code


def read_inference(spec: Spec, folder: Path, options: dict) -> Draft:
    """Does the hypothesis follow from the premise?"""
    about, splits, notes = files.about(folder), {}, []
    for split, rows in spec.rows(folder, options, notes).items():
        premises = [spec.instance(row.id, row.text("premise"), row.label(about["classes"])) for row in rows]
        queries = [spec.tokens(row.text("hypothesis")) for row in rows]
        splits[split] = [replace(one, query=query) for one, query in zip(premises, queries, strict=True)]
    return draft_of(spec, folder, about, about["classes"], splits, notes)


def read_stories(spec: Spec, folder: Path, options: dict) -> Draft:
    """Stories, each text with the number of its answer: any word of the training stories and questions may answer.

    That is so in Jain & Wallace's code. Texts whose answer is another word are left out.
    """
    splits, notes, stories = {}, [], {}
    for split, rows in spec.rows(folder, options, notes).items():
        stories[split] = [(_story(spec, row), row.text("answer").strip().lower()) for row in rows]
    words = {word for story, answer in stories["train"] for word in (*story.tokens, *story.query, answer)}
    number = {word: place for place, word in enumerate(sorted(words))}
    for split, pairs in stories.items():
        splits[split] = [replace(story, label=number[answer]) for story, answer in pairs if answer in number]
        if lost := len(pairs) - len(splits[split]):
            notes.append(f"{lost:,} of {len(pairs):,} texts of {split} were left out: none that may answer does.")
    return draft_of(spec, folder, files.about(folder, with_classes=False), list(number), splits, notes)


def _story(spec: Spec, row: Row) -> Instance:
    """A story without its answer: label -1."""
    tokens, spans = [], []
    for sentence in row.record["context"]:
        tokens += [JOINT] if tokens else []
        start = len(tokens)
        tokens += spec.tokens(sentence.strip().removesuffix("."))
        spans.append((start, len(tokens)))
    rationale = tuple(spans[place] for place in sorted(set(row.record["supporting"]))) or None
    query = spec.tokens(row.text("question"))
    return Instance(row.id, " ".join(row.record["context"]), tuple(tokens), -1, rationale, query=query)


def question_and_answer(instance: Instance, classes: Sequence[str]) -> str:
    """A text's question and right answer, to be added to a title; "" where it has no question."""
    return f", asked “{' '.join(instance.query)}” ({classes[instance.label]})" if instance.query else ""


PAIRS = "spaCy's English tokens, lower-case, qqq for tokens with a digit; words in at least 3 premises or hypotheses."
STORIES = "Words, lower-case, full stops between sentences; any word may answer; 15% of train is dev (seed 16377)."
_snli = partial(Spec, page="https://nlp.stanford.edu/projects/snli/", asks=True, options=SIZES)
_babi = partial(Spec, page="https://research.fb.com/downloads/babi/", asks=True, options=SIZES)
SPECS = (
    _snli("snli", read_inference, PAIRS, "snli", text.generic, min_df=3),
    *(_babi(f"babi{task}", read_stories, STORIES, f"babi{task}", text.generic, dev_from_train) for task in (1, 2, 3)),
)
