"""Made-up texts of several sentences, one of which decides; see lib/planted.py, whose reviews they are made of.

All opinion words that count stand in one sentence, anywhere in the text; an aside stands in one sentence too, the same
or another; every other sentence is neutral and may hold an idle negator. So the right explanation is one sentence, and
in it the words of the rationale.

`python -m lib.planted_documents` prints a few texts, their rationales marked.
"""

import random

from lib.planted import CLASSES, DEFAULTS, SIZES, Dials, Record, made, marked, passage

__all__ = ["CLASSES", "DEFAULTS", "SIZES", "documents"]

FEWEST, MOST = 3, 6  # sentences
SHORTEST, LONGEST = 5, 24  # tokens of a sentence, its full stop included


def documents(split: str, **dials) -> list[Record]:
    """The texts of train, dev or test, the same ones for the same dials. No text occurs twice, in any split.

    Args:
        split: train, dev or test.
        dials: those of lib.planted; cues and distractors count in the whole text.
    Raises:
        KeyError: unknown split. TypeError: unknown dial. ValueError: a dial is out of its range.
    """
    return made("planted documents", _document, split, dials)


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
