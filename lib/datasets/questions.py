"""Texts with a question: which answer is right? SNLI's pairs, bAbI's stories, CNN's cloze (Jain & Wallace 2019).

Attention is over SNLI's premise, bAbI's story, CNN's article; the question is the hypothesis, the question, the
sentence with a gap.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from lib.datasets import files, text
from lib.datasets.assembly import Draft, Spec, dev_from_train, draft_of
from lib.datasets.corpus import Instance
from lib.datasets.files import DataError, Row

JOINT = "."  # between the sentences of a story, as in Jain & Wallace's code
BABI = "https://research.fb.com/downloads/babi/"


def read_inference(spec: Spec, folder: Path, options: dict) -> Draft:
    """Does the hypothesis follow from the premise?"""
    about, splits = files.about(folder), {}
    for split in ("train", "dev", "test"):
        splits[split] = []
        for row in files.rows(folder, split):
            premise, query = (row.text(name) for name in ("premise", "hypothesis"))
            label = row.label(about["classes"])
            splits[split].append(Instance(row.id, premise, spec.tokens(premise), label, query=spec.tokens(query)))
    return draft_of(spec, folder, about, about["classes"], splits)


def read_stories(spec: Spec, folder: Path, options: dict, among: str = "") -> Draft:
    """Stories or articles, each text with the number of its answer; texts whose answer is no class are left out.

    Args:
        among: "": any word of the training stories and questions may answer, as in Jain & Wallace's code; else the
            words of the training stories that begin so are the classes, and those in the text itself may answer.
    """
    parts = ("train", "test") if spec.divide else ("train", "dev", "test")
    rows, splits, notes = {split: files.rows(folder, split) for split in parts}, {}, []
    stories = {split: [_story(spec, row) for row in of] for split, of in rows.items()}
    answers = {split: [row.text("answer").strip().lower() for row in of] for split, of in rows.items()}
    words = {token for one in stories["train"] for token in one.tokens if token.startswith(among)}
    words |= set() if among else {*chain.from_iterable(one.query for one in stories["train"]), *answers["train"]}
    number = {name: place for place, name in enumerate(sorted(words))}
    for split, instances in stories.items():
        splits[split] = []
        for one, answer in zip(instances, answers[split], strict=True):
            allowed = tuple(sorted({number[token] for token in one.tokens if token in number})) if among else None
            if answer in number and (allowed is None or number[answer] in allowed):
                splits[split].append(replace(one, label=number[answer], answers=allowed))
        if lost := len(instances) - len(splits[split]):
            notes.append(f"{lost:,} of {len(instances):,} texts of {split} were left out: none that may answer does.")
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
        partial(read_stories, among="@entity"),
        "Tokens as they come, apart by spaces, lower-case; the article's entities may answer; words in at least 8 "
        "articles or questions.",
        folder="cnn",
        page="https://cs.nyu.edu/~kcho/DMQA/",
        tokens=lambda raw: tuple(raw.lower().split()),
        min_df=8,
        asks=True,
    ),
)
