"""Texts that stand in train again, token for token."""

from collections import Counter, defaultdict

import pandas as pd

from lib.datasets.corpus import Corpus


def duplicates(corpus: Corpus) -> pd.DataFrame:
    """One row per split: how many of its texts have the very tokens of another text of train.

    A text of train is not its own other; of two that are the same both count. What is nearly the same does not count,
    nor a text that is asked another question.

    Returns:
        split, texts, again (texts that stand in train, those of train once more), other_label (those of them that have
        another label there, at least once).
    """
    of_train = defaultdict(Counter)  # text and question -> how many texts of train of each label
    for one in corpus.train.instances:
        of_train[one.tokens, one.query][one.label] += 1
    rows = []
    for split in corpus.splits:
        itself = int(split is corpus.train)
        found = [(of_train.get((one.tokens, one.query), {}), one.label) for one in split.instances]
        again = sum(sum(labels.values()) > itself for labels, _ in found)
        other = sum(bool(labels.keys() - {label}) for labels, label in found)
        rows.append({"split": split.name, "texts": len(split), "again": again, "other_label": other})
    return pd.DataFrame(rows)
