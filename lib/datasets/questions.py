"""Texts with a question: which answer is right? SNLI's pairs, bAbI's stories, CNN's cloze (Jain & Wallace 2019).

The text that is attended to is SNLI's premise, bAbI's story, CNN's article; the question is the hypothesis, the
question, the sentence with a gap.
"""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from lib.datasets import files, text
from lib.datasets.classification import Draft, Spec, Splits, divide_agnews, draft_of, notes_of
from lib.datasets.corpus import Instance
from lib.datasets.files import DataError, Row

JOINT = "."  # stands between the sentences of a story, as in Jain & Wallace's code


def read_inference(spec: Spec, folder: Path, options: dict) -> Draft:
    """Does the hypothesis follow from the premise?"""
    about = files.description(folder)
    classes, splits = about["classes"], {}
    for split in ("train", "dev", "test"):
        splits[split] = [_pair(spec, row, classes) for row in files.rows(folder, split)]
    return _draft(spec, folder, about, tuple(classes), splits)


def _pair(spec: Spec, row: Row, classes: list[str]) -> Instance:
    premise, hypothesis = (files.text_of(row, name) for name in ("premise", "hypothesis"))
    label = files.label_of(row, classes)
    return Instance(row.id, premise, spec.tokens(premise), label, query=spec.tokens(hypothesis))


def read_stories(spec: Spec, folder: Path, options: dict) -> Draft:
    """Any word of the training stories and questions may answer, as in Jain & Wallace's code.

    The rationale of a story is its supporting facts.
    """
    about = files.about(folder)
    rows = {split: list(files.rows(folder, split)) for split in ("train", "test")}
    drafts = {split: [_story(spec, row) for row in rows[split]] for split in rows}
    answers = {split: [_string(row, "answer").lower() for row in rows[split]] for split in rows}
    words = {*chain.from_iterable((*one.tokens, *one.query) for one in drafts["train"]), *answers["train"]}
    return _answered(spec, folder, about, sorted(words), drafts, answers)


def _story(spec: Spec, row: Row) -> Instance:
    """A story without its answer: label -1."""
    context = row.record.get("context")
    if not isinstance(context, list) or not all(isinstance(sentence, str) for sentence in context):
        raise DataError(f"{row.place}: 'context' is {str(context)[:60]!r}; allowed: a list of sentences")
    supporting = row.record.get("supporting", [])
    if not isinstance(supporting, list) or not all(type(at) is int and 0 <= at < len(context) for at in supporting):
        raise DataError(
            f"{row.place}: 'supporting' is {str(supporting)[:60]!r}; allowed: a list of places in a context of "
            f"{len(context):,} sentences"
        )
    sentences = [spec.tokens(sentence.strip().removesuffix(".")) for sentence in context]
    tokens, spans = _joined(sentences)
    question = files.text_of(row, "question")
    return Instance(
        row.id,
        " ".join(context),
        tokens,
        -1,
        tuple(spans[at] for at in sorted(set(supporting))) or None,
        query=spec.tokens(question),
    )


def _joined(sentences: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], list[tuple[int, int]]]:
    """The tokens of all sentences with JOINT between them, and the span [start, end) of each sentence."""
    tokens, spans = [], []
    for sentence in sentences:
        tokens += [JOINT] if tokens else []
        spans.append((len(tokens), len(tokens) + len(sentence)))
        tokens += sentence
    return tuple(tokens), spans


def read_cloze(spec: Spec, folder: Path, options: dict) -> Draft:
    """Which entity of the article stands in the gap? The entities of the article may answer, no others."""
    about = files.about(folder)
    rows = {split: list(files.rows(folder, split)) for split in ("train", "dev", "test")}
    drafts = {split: [_story(spec, row) for row in rows[split]] for split in rows}
    answers = {split: [_string(row, "answer") for row in rows[split]] for split in rows}
    entities = {token for one in drafts["train"] for token in one.tokens if token.startswith("@entity")}
    return _answered(spec, folder, about, sorted(entities), drafts, answers, among="@entity")


def _answered(
    spec: Spec, folder: Path, about: dict, classes: list[str], drafts: Splits, answers: dict, among: str = ""
) -> Draft:
    """The draft, each text with the number of its answer; those that no class answers are left out, and a note says so.

    Args:
        among: only classes among the text's own tokens that begin so may answer; "": every class.
    """
    number, splits, notes = {name: place for place, name in enumerate(classes)}, {}, []
    for split, instances in drafts.items():
        found = []
        for one, answer in zip(instances, answers[split], strict=True):
            own = sorted({number[t] for t in one.tokens if t.startswith(among) and t in number}) if among else None
            label = number.get(answer)
            if label is not None and (own is None or label in own):
                allowed = None if own is None else tuple(own)
                found.append(Instance(one.id, one.text, one.tokens, label, one.rationale, None, one.query, allowed))
        if lost := len(instances) - len(found):
            notes.append(f"{lost:,} of {len(instances):,} texts of {split} were left out: none that may answer does.")
        splits[split] = found
    return _draft(spec, folder, about, tuple(classes), splits, notes)


def _draft(
    spec: Spec, folder: Path, about: dict, classes: tuple[str, ...], splits: Splits, notes: Sequence[str] = ()
) -> Draft:
    """The draft without the texts whose question has no tokens."""
    notes = [*notes_of(about), *notes]
    for split, instances in splits.items():
        splits[split] = [one for one in instances if one.query]
        if empty := len(instances) - len(splits[split]):
            notes.append(f"{empty:,} of {len(instances):,} questions of {split} were left out: they have no tokens.")
    return draft_of(spec, folder, about, classes, splits, notes)


def _string(row: Row, name: str) -> str:
    return files.text_of(row, name).strip()


def asked(instance: Instance, classes: Sequence[str]) -> str:
    """What a text is asked, and its right answer, to be added to a title; "" where it is asked nothing."""
    return f", asked “{' '.join(instance.query)}” ({classes[instance.label]})" if instance.query else ""


STORIES = (
    "Words, lower-case, the sentences joined by a full stop; any word may answer; 15% of train is dev (seed 16377)."
)
BABI = "https://research.fb.com/downloads/babi/"
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
        Spec(f"babi{k}", read_stories, STORIES, f"babi{k}", text.generic, divide_agnews, asks=True, page=BABI)
        for k in (1, 2, 3)
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
