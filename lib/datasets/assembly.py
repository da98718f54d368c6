"""From texts to a corpus: how a dataset is prepared, its splits, length filter, the subset of a profile, vocabulary."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from pathlib import Path
from random import Random

import numpy as np

from lib.datasets.corpus import Corpus, Instance, Split, Vocabulary, checksum
from lib.datasets.files import DataError, Row, rows
from lib.datasets.text import sentence_lengths
from lib.profiles import Profile

SIZES = {"train_texts": None, "test_texts": None}  # options of a dataset: how many texts of it are `drawn`
SUBSET_SEED = 20190226  # any fixed number: a profile's subset must not depend on the seed of a run
Splits = dict[str, list[Instance]]


@dataclass(frozen=True)
class Draft:
    """A dataset before its vocabulary is made and its lengths are filtered."""

    title: str
    classes: tuple[str, ...]
    splits: Splits
    notes: tuple[str, ...] = ()
    citation: str = ""
    licence: str = ""
    source: str = ""


@dataclass(frozen=True)
class Spec:
    """How a dataset is prepared."""

    name: str
    read: Callable[["Spec", Path | None, dict], Draft] = field(repr=False)  # (spec, folder, options) -> its draft
    preprocess: str  # in words
    folder: str | None = None  # in a home of data; None: it needs none
    tokens: Callable[[str], tuple[str, ...]] | None = field(default=None, repr=False)  # cuts a text
    divide: Callable[[Splits], Splits] | None = field(default=None, repr=False)  # makes dev, and test where it must
    options: dict[str, object] = field(default_factory=dict)  # name -> default, of what `load` takes besides
    dials: Callable[..., object] | None = field(default=None, repr=False)  # checks options, which may follow the name
    longer_than: int = 0  # tokens
    shorter_than: float = float("inf")  # tokens
    drop_longest: bool = False  # a bound that is not given is the split's longest text (Jain & Wallace's code)
    min_df: int = 1  # words in fewer texts of the training split are unknown
    min_count: int = 1  # words that occur there less often are unknown
    sentences: bool = False  # the texts are cut into sentences
    most_tokens: int | None = None  # longer texts are cut there; None: none is
    subwords: str = ""  # the pretrained model whose tokenizer cuts the texts, once they are chosen
    asks: bool = False  # each text comes with a question; the label is its answer
    page: str = ""  # where it is published

    def rows(self, folder: Path, options: dict, notes: list[str]) -> dict[str, list[Row]]:
        """The records `drawn` from its files, by split: train and test where dev is made from train."""
        found = rows(folder, ("train", "test") if self.divide else ("train", "dev", "test"))
        return {split: drawn(records, split, options, notes) for split, records in found.items()}

    def instance(self, id: str, text: str, label: int) -> Instance:
        """A text in its tokens, and in its sentences where it has them."""
        tokens = self.tokens(text)[: self.most_tokens]
        return Instance(id, text, tokens, label, sentences=sentence_lengths(tokens) if self.sentences else None)


def draft_of(
    spec: Spec, folder: Path, about: dict, classes: Sequence[str], splits: Splits, notes: Iterable[str] = ()
) -> Draft:
    """The draft of a folder without empty texts and questions, divided by the spec; `about` is its dataset.json."""
    notes = [*([f"About the files: {about['note']}."] if about.get("note") else []), *notes]
    for split, instances in splits.items():
        splits[split] = [instance for instance in instances if instance.tokens and instance.query != ()]
        if empty := len(instances) - len(splits[split]):
            notes.append(f"{empty:,} of {len(instances):,} texts of {split} were left out because they have no tokens.")
    splits = spec.divide(splits) if spec.divide else splits
    title, citation, licence = (str(about.get(key, "")) for key in ("title", "citation", "licence"))
    return Draft(title or spec.name, tuple(classes), splits, tuple(notes), citation, licence, str(folder))


def divided(instances: list, seed: int, **share: float) -> tuple[list, list]:
    """Two parts as scikit-learn's train_test_split draws them by test_size or train_size, both in their first order."""
    from sklearn.model_selection import train_test_split  # takes longer to import than most datasets to read

    parts = train_test_split(range(len(instances)), random_state=seed, **share)
    first, second = ([instances[place] for place in sorted(part)] for part in parts)
    return first, second


def drawn(records: Sequence, split: str, options: dict, notes: list[str]) -> list:
    """As many records of a split as the option train_texts, of test test_texts, asks for, in their order; None: all."""
    name = f"{'test' if split == 'test' else 'train'}_texts"
    if options.get(name) is None or options[name] >= len(records):
        return list(records)
    random = Random("texts drawn")
    keys = [random.random() for _ in records]
    places = sorted(nlargest(options[name], range(len(records)), key=keys.__getitem__))
    notes.append(f"{name}: {len(places):,} of the texts of {split} were drawn at random.")
    return [records[place] for place in places]


def dev_from_train(splits: Splits) -> Splits:
    """15% of train is dev (Jain & Wallace's code for AG News)."""
    train, dev = divided(splits["train"], 16377, test_size=0.15)
    return {"train": train, "dev": dev, "test": splits["test"]}


def assemble(spec: Spec, draft: Draft, profile: Profile) -> Corpus:
    """The corpus of a draft, by the spec and the profile; DataError: a split is left without texts of two classes.

    The vocabulary is that of the training split before its length filter (Jain & Wallace's code), or of the subset
    where the profile reads only a part of it.
    """
    notes, kept, train = list(draft.notes), {}, draft.splits["train"]
    limits = {"train": (profile.train_tokens, profile.train_texts), "dev": (profile.test_tokens, profile.test_texts)}
    limits["test"] = (*limits["dev"], profile.test_texts or 0)
    for name, instances in draft.splits.items():
        filtered = _within_bounds(spec, name, instances, notes)
        tokens, most, *least = limits[name]
        kept[name] = subset(filtered, tokens, None if spec.asks else most, *least)
        if others := {one.counterpart for one in kept[name] if name == "test"} - {None}:
            others |= {one.id for one in kept[name]}
            kept[name] = [one for one in filtered if one.id in others]
        if len(kept[name]) < len(filtered):
            train = kept[name] if name == "train" else train
            part = f"{len(kept[name]):,} of {len(filtered):,} texts of {name}"
            notes.append(f"The profile {profile.name} reads {part}, drawn at random with the classes in their shares.")
        classes = {draft.classes[instance.label] for instance in kept[name]}
        if len(classes) < 2:
            left = f"has {len(kept[name]):,} texts left, of the classes: {', '.join(classes) or 'none'}"
            raise DataError(f"{name} of {draft.source} {left}; a classifier needs at least two")
    texts = [tokens for instance in train for tokens in (instance.tokens, instance.query) if tokens is not None]
    vocabulary = Vocabulary.of(texts, spec.min_df, spec.min_count)
    splits = [Split(name, tuple(kept[name]), vocabulary) for name in ("train", "dev", "test")]
    about = (profile.name, draft.citation, draft.licence, tuple(notes), checksum(splits, vocabulary))
    return Corpus(spec.name, draft.title, draft.classes, vocabulary, *splits, *about)


def _within_bounds(spec: Spec, split: str, instances: list[Instance], notes: list[str]) -> list[Instance]:
    """The texts within the bounds of length, with a note on the others."""
    longest = max((len(instance.tokens) for instance in instances), default=0)
    low, high = spec.longer_than, longest if spec.drop_longest else spec.shorter_than
    kept = [instance for instance in instances if low < len(instance.tokens) < high]
    if dropped := len(instances) - len(kept):
        left_out = f"{dropped:,} of {len(instances):,} texts of {split} were left out"
        bounds = f"more than {low} tokens and fewer than {high}" + ", the split's longest" * spec.drop_longest
        notes.append(f"{left_out}: the papers keep those with {bounds}.")
    return kept


def subset(instances: Sequence[Instance], limit: int | None, most: int | None = None, least: int = 0) -> list[Instance]:
    """Texts of together at most `limit` tokens, each class in its share of the texts, in the order of the split.

    They are drawn at random, always the same; one that no longer fits is passed over.

    Args:
        limit: in tokens; None: all texts. A text that is longer by itself is taken only if all of its class are.
        most: how many texts at most; None: as many as fit.
        least: so many texts, and one of each class, are taken however long they are together.
    """
    lengths = np.array([len(instance.tokens) for instance in instances], dtype=np.int64)
    most = len(instances) if most is None else most
    if limit is None or (lengths.sum() <= limit and len(instances) <= most):
        return list(instances)
    labels, random = np.array([instance.label for instance in instances]), np.random.default_rng(SUBSET_SEED)
    turns = np.empty(len(instances))  # in their order the classes take turns, by their shares
    for label in np.unique(labels):
        of_label = random.permutation(np.flatnonzero(labels == label))
        of_label = of_label[np.argsort(lengths[of_label] > limit, kind="stable")]
        turns[of_label] = (np.arange(len(of_label)) + 0.5) / len(of_label)
    chosen, used, seen = [], 0, set()
    for place in np.argsort(turns, kind="stable"):
        length, label = lengths[place], labels[place]
        fits = len(chosen) < most and used + length <= limit
        if label not in seen or fits or (len(chosen) < least and length <= limit):
            chosen.append(place)
            seen.add(label)
            used += length
    return [instances[place] for place in sorted(chosen)]
