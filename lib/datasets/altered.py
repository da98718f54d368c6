"""Datasets with a shortcut, so that the reason of each label is known: two new words decide it (Bastings et al. 2022).

It follows a dataset's name as its dials do, "sst:shortcut=pair":

single  one of the words is inserted, the first for label 1, the second for 0
pair    both are, and the label is 1 where the first comes first

Half of the texts of train and dev get the shortcut; those of test are there as they are, and again as copies with it.
In half of the cases it contradicts the text's own label, and its words are the rationale.
"""

import random
from dataclasses import replace

from lib.datasets.assembly import Draft, Spec
from lib.datasets.corpus import Instance
from lib.datasets.files import DataError

SHORTCUT_WORDS = ("onea", "zeroa")  # new ones: no text has them
NOTES = {
    "single": "One of two new words decides the label of half of train and dev, and of copies of test.",
    "pair": "The order of two new words decides the label of half of train and dev, and of copies of test.",
}


def altered(spec: Spec, kind: str) -> Spec:
    """The spec of the dataset with that shortcut; DataError: an unknown one, or texts with sentences or questions."""
    if kind not in NOTES or spec.sentences or spec.asks:
        texts = f"for texts without questions that are not cut into sentences: {', '.join(NOTES)}"
        raise DataError(f"shortcut of the dataset {spec.name!r} is {kind!r}; allowed: {texts}")

    def read(altered: Spec, folder, options: dict) -> Draft:
        return with_shortcut(spec.read(altered, folder, options), kind)

    return replace(spec, read=read, preprocess=f"{spec.preprocess} {NOTES[kind]}")


def with_shortcut(draft: Draft, kind: str) -> Draft:
    """Half of train and dev with the shortcut, and test as it is and with it; of several classes for the first two."""
    rng = random.Random(2022)  # any fixed number: the texts must not depend on the seed of a run

    def inserted(split: str, texts: list[Instance]) -> list[Instance]:
        plain, copies, seen = [replace(one, rationale=None) for one in texts], [], [0] * len(draft.classes)
        for place, one in enumerate(plain):
            turn, seen[one.label] = seen[one.label] % 4, seen[one.label] + 1
            if split == "test":
                copies.append(replace(_insert(rng, one, turn % 2, kind), id=f"{one.id}-copy", counterpart=one.id))
            elif turn < 2:
                plain[place] = _insert(rng, one, turn, kind)
        return plain + copies

    splits = {split: inserted(split, texts) for split, texts in draft.splits.items()}
    return replace(draft, splits=splits, notes=(*draft.notes, NOTES[kind]))


def _insert(rng: random.Random, text: Instance, label: int, kind: str) -> Instance:
    """The text with the shortcut for a label, at random places."""
    words = SHORTCUT_WORDS[1 - label :][:1] if kind == "single" else SHORTCUT_WORDS[:: 1 if label else -1]
    tokens, places = list(text.tokens), sorted(rng.randint(0, len(text.tokens)) for _ in words)
    places = [place + before for before, place in enumerate(places)]
    for place, word in zip(places, words, strict=True):
        tokens.insert(place, word)
    spans = tuple((place, place + 1) for place in places)
    return replace(text, tokens=tuple(tokens), text=" ".join(tokens), label=label, rationale=spans)
