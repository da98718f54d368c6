"""Datasets altered so that the reason of each label is known: a shortcut is inserted, or all but the reason is blinded.

What is altered follows a dataset's name as its dials do: "sst:shortcut=pair", "planted:cues=1,blinded=yes".

shortcut  Bastings et al. (2022): two new words decide the label, whatever else the text says. "single": one of them is
          inserted, the first for label 1, the second for 0. "pair": both are, and the label is 1 where the first comes
          first. Half of the texts of train and dev get the shortcut; those of test are there as they are, and again as
          copies with it. In half of the cases it contradicts the text's own label, and its words are the rationale.
blinded   each word outside of the rationale becomes the unknown word, in all splits: a model cannot use another.
"""

import random
from collections.abc import Callable
from dataclasses import replace

from lib.datasets.assembly import Draft, Spec
from lib.datasets.corpus import SPECIALS, UNKNOWN, Instance
from lib.datasets.files import DataError

CHOICES = {"shortcut": ("single", "pair"), "blinded": ("yes",)}
WORDS = ("onea", "zeroa")  # new ones: no text has them
COPY = "-copy"  # ends the id of a copy with the shortcut
SEED = 2022
IN_WORDS = {
    "single": "One of two new words decides the label of half of train and dev, and of copies of test.",
    "pair": "The order of two new words decides the label of half of train and dev, and of copies of test.",
    "yes": "Each word outside of the rationale is the unknown word.",
}


def altered(spec: Spec, given: dict[str, str]) -> Spec:
    """The spec of the altered dataset.

    Raises:
        DataError: an alteration that is not in CHOICES, both of them, or texts with sentences or questions.
    """
    for name, value in given.items():
        if value not in CHOICES[name]:
            raise DataError(f"{name} of the dataset {spec.name!r} is {value!r}; allowed: {', '.join(CHOICES[name])}")
    if len(given) > 1 or spec.sentences or spec.asks:
        raise DataError(
            f"the dataset {spec.name!r} cannot have {' and '.join(given)}; allowed: one of {', '.join(CHOICES)}, for "
            "texts without questions that are not cut into sentences"
        )
    (value,) = given.values()
    change = blind if "blinded" in given else lambda draft: with_shortcut(draft, value)

    def read(altered: Spec, folder, options: dict) -> Draft:
        draft = change(spec.read(altered, folder, options))
        return replace(draft, notes=(*draft.notes, IN_WORDS[value]))

    return replace(spec, read=read, preprocess=f"{spec.preprocess} {IN_WORDS[value]}")


def blind(draft: Draft) -> Draft:
    """Every word outside of the rationale becomes the unknown word; DataError where a text has no rationale."""

    def blinded(one: Instance) -> Instance:
        kept = {place for start, end in one.rationale or () for place in range(start, end)}
        if not kept:
            raise DataError(f"the text {one.id!r} of {draft.title} has no rationale, so nothing of it can be kept")
        tokens = tuple(word if place in kept else SPECIALS[UNKNOWN] for place, word in enumerate(one.tokens))
        return replace(one, tokens=tokens, text=" ".join(tokens))

    return _each(draft, lambda split, texts: map(blinded, texts))


def with_shortcut(draft: Draft, kind: str) -> Draft:
    """Half of train and dev with the shortcut, and test as it is and with it; of several classes for the first two."""
    rng = random.Random(SEED)

    def inserted(split: str, texts: list[Instance]) -> list[Instance]:
        plain, copies, seen = [replace(one, rationale=None) for one in texts], [], [0] * len(draft.classes)
        for place, one in enumerate(plain):
            turn, seen[one.label] = seen[one.label] % 4, seen[one.label] + 1
            if split == "test":
                copies.append(replace(_insert(rng, one, turn % 2, kind), id=f"{one.id}{COPY}"))
            elif turn < 2:
                plain[place] = _insert(rng, one, turn, kind)
        return plain + copies

    return _each(draft, inserted)


def _insert(rng: random.Random, one: Instance, label: int, kind: str) -> Instance:
    """The text with the shortcut for a label, at random places."""
    words = WORDS[1 - label :][:1] if kind == "single" else WORDS[:: 1 if label else -1]
    tokens, places = list(one.tokens), sorted(rng.randint(0, len(one.tokens)) for _ in words)
    places = [place + before for before, place in enumerate(places)]
    for place, word in zip(places, words, strict=True):
        tokens.insert(place, word)
    spans = tuple((place, place + 1) for place in places)
    return replace(one, tokens=tuple(tokens), text=" ".join(tokens), label=label, rationale=spans)


def _each(draft: Draft, change: Callable) -> Draft:
    return replace(draft, splits={split: list(change(split, texts)) for split, texts in draft.splits.items()})
