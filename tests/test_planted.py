"""Planted texts and shortcuts follow their rules, and their rationales decide their labels."""

import hashlib
import re
from collections import Counter

import numpy as np
import pytest
from planned import runs

from lib import datasets
from lib.analysis.baseline import regression
from lib.datasets import DataError, altered, planted, word_vectors
from tools.report.parameters import find_notebook, report_name


def by_the_rule(tokens):
    """(label, deciding positions) of a text, from the rule in the docstring of lib.datasets.planted alone."""
    votes, positions, aside, negator = [], set(), False, None
    for position, word in enumerate(tokens):
        if word in planted.OPENERS or word in planted.CLOSERS:
            aside = word in planted.OPENERS
        elif word in planted.NEGATORS:
            negator = position
        elif word in planted.PRAISE or word in planted.BLAME:
            flips = negator is not None and position - negator <= planted.REACH
            if not aside:
                votes.append((word in planted.PRAISE) ^ flips)
                positions |= {position, negator} if flips else {position}
            negator = None  # it flips the next opinion word only
    assert len(set(votes)) == 1, f"the opinions that count disagree: {' '.join(tokens)}"
    return int(votes[0]), positions


def positions_of(record):
    return {position for start, end in record.rationale for position in range(start, end)}


def right_by_words(name, without_rationale=False):
    """The fraction of dev in profile quick that TF-IDF with logistic regression knows, the baseline of the reports."""
    corpus = datasets.load(name, "quick")

    def text(one):
        hidden = positions_of(one) if without_rationale else ()
        return tuple(word for place, word in enumerate(one.tokens) if place not in hidden)

    train, dev = ([text(one) for one in split.instances] for split in (corpus.train, corpus.dev))
    return regression().fit(train, corpus.train.labels).score(dev, corpus.dev.labels)


@pytest.mark.parametrize("options", [{}, {"cues": 1, "negation": 0.6, "seed": 1}, {"cues": 4, "distractors": 0}])
@pytest.mark.parametrize("split", ["train", "test"])
def test_labels_and_rationales_are_those_of_the_rule(split, options):
    for record in planted.records(split, **options):
        assert (record.label, positions_of(record)) == by_the_rule(record.tokens)


@pytest.mark.parametrize("name", ["planted", "planted-documents"])
def test_who_reads_the_order_is_right_and_a_bag_of_words_in_most_texts_only(name):
    """Dev of quick: the baseline of the reports is .70 to .83 over five sets of texts, a vote of opinion words .80."""
    dev = datasets.load(name, "quick").dev.instances
    assert all(by_the_rule(one.tokens) == (one.label, positions_of(one)) for one in dev)
    assert 0.68 <= right_by_words(name) <= 0.84 and right_by_words(f"{name}:negation=0,distractors=0") >= 0.95
    assert right_by_words(name, without_rationale=True) <= 0.6


def test_each_option_changes_what_it_names():
    def opinions(record):
        return sum(word in planted.PRAISE or word in planted.BLAME for word in record.tokens)

    for cues, distractors in ((1, 0), (1, 3), (3, 1)):
        records = planted.records("dev", cues=cues, distractors=distractors, negation=0)
        assert {opinions(record) for record in records} == {cues + distractors}
        assert {len(positions_of(record)) for record in records} == {cues}
    flipped = [len(positions_of(record)) - 1 for record in planted.records("train", cues=1, negation=0.4)]
    assert np.mean(flipped) == pytest.approx(0.4, abs=0.04)
    mislabelled = [by_the_rule(one.tokens)[0] != one.label for one in planted.records("train", noise=0.1)]
    assert np.mean(mislabelled) == pytest.approx(0.1, abs=0.03)


def test_the_same_options_give_the_same_texts_for_ever_and_none_twice():
    splits = [planted.records(split) for split in planted.SIZES]
    assert list(map(len, splits)) == [2000, 400, 400] and len({one.text for split in splits for one in split}) == 2800
    text = "\n".join(f"{one.label} {one.text} {one.rationale}" for one in planted.records("train"))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "589068bc4ccf3b86"
    assert planted.records("dev", seed=1) != planted.records("dev", seed=2)


def test_dials_follow_the_name_wherever_a_dataset_is_named():
    name = "planted:negation=0,noise=0.1"
    corpus = datasets.load(name, "quick")
    assert corpus.name == datasets.spec(name).name == name
    assert corpus.checksum == datasets.load("planted", "quick", negation=0, noise=0.1).checksum
    assert corpus.checksum != datasets.load("planted", "quick").checksum
    assert datasets.load(name, "quick", noise=0.0).checksum == datasets.load("planted:negation=0", "quick").checksum
    assert not any(word in planted.NEGATORS for one in corpus.train.instances for word in one.tokens)
    assert runs("erasure", "planted-documents:cues=3")[-1].encoder == "han-noenc"
    file = report_name(find_notebook("correlation"), {"dataset": name})
    assert re.fullmatch(r"correlation-planted_negation=0_noise=0\.1-[0-9a-f]{6}", file)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("planted:clues=3", "unknown option 'clues' of the dataset 'planted'; known: cues, negation, distractors"),
        ("planted:cues", "cues is ''; Input should be a valid integer"),
        ("planted:noise=nan", "noise is 'nan'; Input should be less than or equal to 0.5"),
        ("sst:cues=3", "the dataset 'sst' has no dials, but cues follows its name"),
        ("planted:shortcut=both", "allowed: "),
        ("planted-documents:shortcut=pair", "allowed: "),
    ],
)
def test_a_dial_that_is_none_is_refused_by_every_notebook(name, message):
    with pytest.raises(DataError, match=message):
        datasets.load(name)
    with pytest.raises(ValueError, match=message):
        runs("correlation", name)


@pytest.mark.parametrize("kind", ["single", "pair"])
def test_a_shortcut_decides_the_label_of_half_of_train_and_of_copies_of_test(kind):
    plain, corpus = datasets.load("planted"), datasets.load(f"planted:shortcut={kind}")
    decides = {("onea",): 1, ("zeroa",): 0} if kind == "single" else {("onea", "zeroa"): 1, ("zeroa", "onea"): 0}
    for split, whole in zip(corpus.splits, plain.splits, strict=True):
        own = {one.id: one for one in whole.instances}
        with_it = [one for one in split.instances if one.rationale]
        for one in split.instances:
            before = own[one.counterpart or one.id]
            assert [word for word in one.tokens if word not in altered.SHORTCUT_WORDS] == list(before.tokens)
            deciding = tuple(word for start, end in one.rationale or () for word in one.tokens[start:end])
            assert one.label == (decides[deciding] if one.rationale else before.label)
        against = np.mean([one.label != own[one.counterpart or one.id].label for one in with_it])
        assert against == pytest.approx(0.5, abs=0.01), "the text's own words say nothing about it"
        assert len(with_it) == pytest.approx(len(whole) * (1 if split.name == "test" else 0.5), abs=2)
        assert Counter(one.label for one in with_it)[1] == pytest.approx(len(with_it) / 2, abs=len(with_it) * 0.06)
    assert [one.tokens for one in corpus.test.instances[:400]] == [one.tokens for one in plain.test.instances]
    assert set(altered.SHORTCUT_WORDS) <= set(corpus.vocabulary.words)


def test_inserted_words_have_random_vectors_of_the_usual_length(tmp_path):
    corpus = datasets.load("planted:shortcut=single")
    words = [word for word in corpus.vocabulary.words[4:] if word not in altered.SHORTCUT_WORDS]
    numbers = np.random.default_rng(0).normal(0, 3, (len(words), 20))
    np.savez(tmp_path / "some.npz", words=words, vectors=numbers)
    table = word_vectors.load(tmp_path / "some.npz", corpus.vocabulary, size=20).table
    found = table[[corpus.vocabulary.ids[word] for word in altered.SHORTCUT_WORDS]]
    assert float(found.std()) == pytest.approx(3, rel=0.4) and not np.allclose(*found)
