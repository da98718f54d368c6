"""Altered datasets: a shortcut decides the label whatever else a text says."""

from collections import Counter

import numpy as np
import pytest

from lib import datasets
from lib.datasets import DataError, altered, word_vectors


def marked(one) -> list[str]:
    return [word for start, end in one.rationale or () for word in one.tokens[start:end]]


@pytest.mark.parametrize("kind", ["single", "pair"])
def test_a_shortcut_decides_the_label_of_half_of_train_and_of_copies_of_test(kind):
    plain, corpus = datasets.load("planted"), datasets.load(f"planted:shortcut={kind}")
    decides = {("onea",): 1, ("zeroa",): 0} if kind == "single" else {("onea", "zeroa"): 1, ("zeroa", "onea"): 0}
    for split, whole in zip(corpus.splits, plain.splits, strict=True):
        own = {one.id: one for one in whole.instances}
        with_it = [one for one in split.instances if one.rationale]
        for one in split.instances:
            before = own[one.id.removesuffix(altered.COPY)]
            assert [word for word in one.tokens if word not in altered.SHORTCUT_WORDS] == list(before.tokens)
            assert one.label == (decides[tuple(marked(one))] if one.rationale else before.label)
        against = np.mean([one.label != own[one.id.removesuffix(altered.COPY)].label for one in with_it])
        assert against == pytest.approx(0.5, abs=0.01), "the text's own words say nothing about it"
        assert len(with_it) == pytest.approx(len(whole) * (1 if split.name == "test" else 0.5), abs=2)
        assert Counter(one.label for one in with_it)[1] == pytest.approx(len(with_it) / 2, abs=len(with_it) * 0.06)
    whole = [one.tokens for one in plain.test.instances]
    assert [one.tokens for one in corpus.test.instances[: len(whole)]] == whole
    assert set(altered.SHORTCUT_WORDS) <= set(corpus.vocabulary.words)


def test_what_cannot_be_altered_is_refused():
    for name in ("planted:shortcut=both", "planted:shortcut=", "planted-documents:shortcut=pair"):
        with pytest.raises(DataError, match="allowed: "):
            datasets.spec(name)
    with pytest.raises(DataError, match="unknown option 'nois'"):
        datasets.spec("planted:shortcut=pair,nois")


def test_inserted_words_have_random_vectors_of_the_usual_length(tmp_path):
    corpus = datasets.load("planted:shortcut=single")
    words = [word for word in corpus.vocabulary.words[4:] if word not in altered.SHORTCUT_WORDS]
    numbers = np.random.default_rng(0).normal(0, 3, (len(words), 20))
    lines = [" ".join([word, *map(str, row)]) for word, row in zip(words, numbers, strict=True)]
    (tmp_path / "some.txt").write_text("\n".join(lines))
    table = word_vectors.load(tmp_path / "some.txt", corpus.vocabulary, size=20).table
    found = table[[corpus.vocabulary.ids[word] for word in altered.SHORTCUT_WORDS]]
    assert float(found.std()) == pytest.approx(3, rel=0.4) and not np.allclose(*found)
