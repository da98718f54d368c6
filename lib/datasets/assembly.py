"""From texts to a corpus: vocabulary, length filter, the subset of a profile, notes."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from lib.datasets.classification import Draft, Spec
from lib.datasets.corpus import Corpus, Instance, Split, Vocabulary, checksum
from lib.datasets.files import DataError
from lib.profiles import Profile

SUBSET_SEED = 20190226  # any fixed number: a profile's subset must not depend on the seed of a run


def assemble(spec: Spec, draft: Draft, profile: Profile) -> Corpus:
    """The corpus of a draft, as the spec and the profile ask for it.

    The vocabulary is that of the training split before its length filter (Jain & Wallace's code), or of the subset
    where the profile reads only a part of it.

    Raises:
        DataError: a split is left without texts of two classes.
    """
    notes, kept, whole = list(draft.notes), {}, {}
    for name, instances in draft.splits.items():
        filtered = _within_bounds(spec, instances)
        if dropped := len(instances) - len(filtered):
            notes.append(
                f"{dropped:,} of {len(instances):,} texts of {name} were left out: {_bounds(spec, instances)}."
            )
        kept[name] = subset(filtered, _most_tokens(spec, profile, name, filtered))
        whole[name] = len(kept[name]) == len(filtered)
        if not whole[name]:
            notes.append(
                f"The profile {profile.name} reads {len(kept[name]):,} of {len(filtered):,} texts of {name}, "
                "drawn at random with the classes in their shares."
            )
        refuse_one_class(kept[name], name, draft)
    of_words = (draft.splits if whole["train"] else kept)["train"]
    texts = chain((x.tokens for x in of_words), (x.query for x in of_words if x.query is not None))
    vocabulary = Vocabulary.of(texts, spec.min_df, spec.min_count)
    train, dev, test = (
        Split(name, tuple(kept[name]), vocabulary, len(draft.classes)) for name in ("train", "dev", "test")
    )
    return Corpus(
        spec.name,
        draft.title,
        draft.classes,
        vocabulary,
        train,
        dev,
        test,
        profile.name,
        draft.citation,
        draft.licence,
        draft.source,
        tuple(notes),
        checksum((train, dev, test), vocabulary),
    )


def _most_tokens(spec: Spec, profile: Profile, split: str, instances: list[Instance]) -> int | None:
    """How many tokens of a split the profile reads: its own bound, or that of so many texts of average length."""
    sizes = (profile.train_tokens, profile.train_texts), (profile.test_tokens, profile.test_texts)
    tokens, texts = sizes[split != "train"]
    if tokens is None or texts is None or spec.asks:
        return tokens
    return min(tokens, texts * sum(len(x.tokens) for x in instances) // max(len(instances), 1))


def _within_bounds(spec: Spec, instances: list[Instance]) -> list[Instance]:
    low, high = _exclusive(spec, instances)
    return [x for x in instances if (low is None or len(x.tokens) > low) and (high is None or len(x.tokens) < high)]


def _exclusive(spec: Spec, instances: list[Instance]) -> tuple[int | None, int | None]:
    longest = max((len(x.tokens) for x in instances), default=0)
    return spec.longer_than, longest if spec.drop_longest else spec.shorter_than


def _bounds(spec: Spec, instances: list[Instance]) -> str:
    low, high = _exclusive(spec, instances)
    lower = "" if low is None else f"more than {low} tokens and "
    upper = f"fewer than {high}" + (", the split's longest" if spec.drop_longest else "")
    return f"the papers keep those with {lower}{upper}" + (" tokens" if low is None else "")


def subset(instances: Sequence[Instance], limit: int | None) -> list[Instance]:
    """Whole texts of together at most about `limit` tokens, each class in its share of the tokens; None: all texts.

    At least one text of each class stays, in the order of the split.
    """
    lengths = np.array([len(x.tokens) for x in instances], dtype=np.int64)
    if limit is None or lengths.sum() <= limit:
        return list(instances)
    labels, random = np.array([x.label for x in instances]), np.random.default_rng(SUBSET_SEED)
    chosen = []
    for label in np.unique(labels):
        of_label = random.permutation(np.flatnonzero(labels == label))
        used = lengths[of_label].cumsum()
        chosen.append(of_label[: max(1, np.searchsorted(used, limit * used[-1] / lengths.sum(), side="right"))])
    return [instances[i] for i in np.sort(np.concatenate(chosen))]


def refuse_one_class(instances: Sequence[Instance], split: str, draft: Draft) -> None:
    """Raises DataError if a split has no texts, or only of one class."""
    if not instances:
        raise DataError(f"no text of {split} is left in {draft.source}; allowed: texts of at least two classes")
    found = {x.label for x in instances}
    if len(found) < 2:
        raise DataError(
            f"all {len(instances):,} texts of {split} in {draft.source} are of the class "
            f"{draft.classes[found.pop()]!r}; a classifier needs texts of at least two classes"
        )
