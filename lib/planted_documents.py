"""Made-up texts of several sentences, one of which decides; see lib/planted.py, whose reviews they are made of.

All opinion words that count stand in one sentence, anywhere in the text; an aside stands in one sentence too, the same
or another; every other sentence is neutral and may hold an idle negator. So the right explanation is one sentence, and
in it the words of the rationale.

`python -m lib.planted_documents` prints a few texts, their rationales marked.
"""

import random
from dataclasses import dataclass
from functools import cache

from lib.planted import CLASSES, DEFAULTS, SIZES, Dials, Record, marked, passage

__all__ = ["CLASSES", "DEFAULTS", "SIZES", "Document", "documents"]

FEWEST, MOST = 3, 6  # sentences
SHORTEST, LONGEST = 5, 24  # tokens of a sentence, its full stop included


@dataclass(frozen=True)
class Document(Record):
    """One text. `sentences` holds the number of tokens of each; `deciding` which of them says the label, from 0."""

    sentences: tuple[int, ...] = ()
    deciding: int = 0


def documents(split: str, **dials) -> list[Document]:
    """The texts of train, dev or test, the same ones for the same dials. No text occurs twice, in any split.

    Args:
        split: train, dev or test.
        dials: those of lib.planted; cues and distractors count in the whole text.
    Raises:
        KeyError: unknown split. TypeError: unknown dial. ValueError: a dial is out of its range.
    """
    if split not in SIZES:
        raise KeyError(f"unknown split {split!r}; known: {', '.join(SIZES)}")
    return list(_all_documents(Dials(**dials))[split])


@cache
def _all_documents(dials: Dials) -> dict[str, tuple[Document, ...]]:
    rng, seen, splits = random.Random(f"planted documents {dials.seed}"), set(), {}
    for split, size in SIZES.items():
        labels = [index % 2 for index in range(size)]
        rng.shuffle(labels)
        made = []
        for index, label in enumerate(labels):
            found = _document(rng, dials, label)
            while found[0] in seen:
                found = _document(rng, dials, label)
            seen.add(found[0])
            wrong = rng.random() < dials.noise
            made.append(Document(f"{split}-{index + 1}", found[0], label ^ wrong, found[1], wrong, *found[2:]))
        splits[split] = tuple(made)
    return splits


def _document(rng: random.Random, dials: Dials, label: int) -> tuple:
    """Tokens, rationale, sentences and the deciding sentence of one text."""
    count = rng.randint(FEWEST, MOST)
    deciding, aside = rng.randrange(count), rng.randrange(count)
    tokens, rationale, sentences = [], [], []
    for number in range(count):
        length = min(LONGEST, SHORTEST + int(rng.gammavariate(1.5, 4.0))) - 1
        cues, distractors = dials.cues * (number == deciding), dials.distractors * (number == aside)
        words, spans = passage(rng, dials, label, cues, distractors, length)
        rationale += [(start + len(tokens), end + len(tokens)) for start, end in spans]
        tokens += [*words, "."]
        sentences.append(len(words) + 1)
    return tuple(tokens), tuple(rationale), tuple(sentences), deciding


if __name__ == "__main__":
    for example in documents("train")[:8]:
        print(f"{CLASSES[example.label]:>6}  {marked(example)}")
