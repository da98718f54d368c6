"""The data card counts what is there, and its baseline is scikit-learn's."""

import re
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score

from lib import datasets, tables
from lib.analysis import against_baseline, baseline, classification, effects_between
from lib.analysis.baseline import STRENGTHS
from lib.datasets import about, card, sizes, word_vectors
from lib.datasets.corpus import Corpus, Instance, Split, Vocabulary


def corpus_of(classes=("bad", "good"), min_df=1, **splits) -> Corpus:
    """A corpus of "label: words" by split."""
    made = {}
    for name in ("train", "dev", "test"):
        read = [line.split(": ", 1) for line in splits.get(name, ["0: a b", "1: c"])]
        made[name] = [Instance(f"{name}-{i}", text, tuple(text.split()), int(y)) for i, (y, text) in enumerate(read)]
    vocabulary = Vocabulary.of((one.tokens for one in made["train"]), min_df)
    of_splits = (Split(name, tuple(instances), vocabulary) for name, instances in made.items())
    return Corpus("tiny", "Tiny", tuple(classes), vocabulary, *of_splits, citation="none", licence="MIT")


def random_corpus(classes=2, seed=0, sizes=(120, 10, 60), longest=8) -> Corpus:
    """Texts whose words lean to their class; few words, so that pairs repeat. Case and signs are part of a token."""
    random, words, splits = np.random.default_rng(seed), np.array("a A ! the film Film don't x y z".split()), {}
    for name, size in zip(("train", "dev", "test"), sizes, strict=True):
        labels = random.integers(0, classes, size)
        lean = [np.r_[np.ones(7), np.where(np.arange(3) == label, 2.5, 1)] for label in labels]
        drawn = [random.choice(words, random.integers(2, longest + 1), p=p / p.sum()) for p in lean]
        splits[name] = [f"{label}: {' '.join(text)}" for label, text in zip(labels, drawn, strict=True)]
    return corpus_of([f"c{k}" for k in range(classes)], **splits)


def test_a_card_counts_texts_lengths_and_unknown_tokens():
    train = ["0: a b b .", "0: a . b .", "1: c . a . b . c .", "0: a d ."]
    shown = card(corpus_of(min_df=2, train=train, dev=["1: a .", "0: new . words . ."], test=["1: d ."]))
    assert shown.loc["class bad"].tolist() == [3, 1, 0] and shown.loc["class good"].tolist() == [1, 1, 1]
    lengths = shown.filter(like="of a text", axis=0)["train"].tolist()
    assert lengths == pytest.approx([4.75, pd.Series([4, 4, 8, 3]).std(), 8])
    assert shown.loc["words of the vocabulary"].tolist()[0] == 3, "., a and b stand in two texts; c and d in one"
    assert shown.loc["tokens unknown, fraction"].tolist() == [3 / 19, 2 / 7, 1 / 2]


def test_coverage_is_of_running_tokens():
    corpus = corpus_of(min_df=2, train=["0: a a b", "1: a b d"], dev=["0: a zzz"], test=["1: b b b a"])
    covered = torch.tensor([word == "a" for word in corpus.vocabulary.words])
    known = word_vectors.Vectors(torch.zeros(len(covered), 3), covered, "/home/a/a.npz", "")
    assert card(corpus, known).loc["tokens with a word vector, fraction"].tolist() == [3 / 6, 1 / 2, 1 / 4]
    assert about(corpus, known)[-1] == "Word vectors before training: 1 of 2 words (50.0%) from a.npz."
    random = word_vectors.random(corpus.vocabulary, size=3)
    assert card(corpus, random).equals(card(corpus)), "random numbers cover nothing"


def test_texts_that_stand_in_train_are_counted_as_among_all_pairs():
    corpus = random_corpus(3, sizes=(150, 40, 40), longest=2)
    train, counts = corpus.train.instances, card(corpus).loc["texts that occur in train too"]
    for split in corpus.splits:
        again = [any(y is not x and y.tokens == x.tokens for y in train) for x in split.instances]
        assert counts[split.name] == sum(again) > 0


def test_a_table_is_escaped_and_no_id_stands_twice_on_a_page():
    frame = pd.DataFrame({"<i>word": ["<b>x</b>", "&amp;"], "a_number": [1.5, -2]})
    first, second = (tables.show(frame).data for _ in range(2))
    assert "&lt;i&gt;word" in first and "&lt;b&gt;x" in first and "&amp;amp;" in first and ">−2<" in first
    assert "<b>" not in first and "<i>" not in first and ">a number<" in first
    assert len(set(re.findall(r'id="([^"]+)"', first + second))) == 2


def test_about_says_source_licence_tokens_and_what_was_left_out():
    corpus = replace(corpus_of(), notes=("Nothing was left out.",))
    source, licence, read, left_out = about(corpus, spec=datasets.spec("sst"))
    assert source == "Tiny. None. Published at https://nlp.stanford.edu/sentiment/." and licence == "Licence: MIT."
    assert read.startswith("How they are read: Neutral sentences dropped;") and left_out == "Nothing was left out."


def by_hand(corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """(predictions, probabilities) on test, of the C that is most accurate on dev."""
    weight = max(STRENGTHS, key=lambda c: np.mean(answers(corpus.train, corpus.dev, c)[0] == corpus.dev.labels))
    both = replace(corpus.train, instances=corpus.train.instances + corpus.dev.instances)
    return answers(both, corpus.test, weight)


def answers(fitted: Split, asked: Split, weight: float) -> tuple[np.ndarray, np.ndarray]:
    """TF-IDF of terms that are counted here."""
    parts = ([one.tokens for one in part.instances] for part in (fitted, asked))
    texts = ([[*tokens, *map(" ".join, pairwise(tokens))] for tokens in part] for part in parts)
    counts = TfidfVectorizer(analyzer=list, min_df=2, sublinear_tf=True)
    train, test = (weigh(terms) for weigh, terms in zip((counts.fit_transform, counts.transform), texts, strict=True))
    model = LogisticRegression(C=weight, max_iter=1000).fit(train, fitted.labels)
    return model.predict(test), model.predict_proba(test)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_baseline_is_tfidf_and_logistic_regression_of_the_corpus_own_tokens(classes):
    corpus = random_corpus(classes, sizes=(120, 40, 60))
    ours, (prediction, probability) = baseline(corpus), by_hand(corpus)
    assert ours["prediction"].tolist() == prediction.tolist() and ours["label"].tolist() == corpus.test.labels.tolist()
    expected = probability[:, 1] if classes == 2 else probability.max(axis=1)
    assert np.allclose(ours["probability"], expected, atol=1e-4), "scikit-learn's solver stops near the optimum"
    scores = classification(ours).set_index("quantity")
    average = "binary" if classes == 2 else "macro"
    assert scores.loc["f1", "value"] == pytest.approx(f1_score(corpus.test.labels, prediction, average=average))
    assert scores.loc["accuracy", "value"] == pytest.approx(accuracy_score(corpus.test.labels, prediction))
    assert (scores["low"] < scores["value"]).loc[["f1", "accuracy"]].all()


@pytest.mark.parametrize("score", ["f1", "accuracy"])
def test_models_are_held_against_the_baseline_text_by_text(score):
    answers = baseline(random_corpus(sizes=(120, 10, 200)))
    random, parts = np.random.default_rng(1), []
    for encoder, seed in product(("bilstm", "conv"), (3, 4)):  # two models that answer at random, better the first
        correct = random.random(len(answers)) < (0.95 if encoder == "bilstm" else 0.6)
        prediction = np.where(correct, answers["label"], 1 - answers["label"])
        run = {"encoder": encoder, "attention": "dot", "projection": "softmax", "variant": "base", "layers": 1}
        parts.append(answers.assign(**run, seed=seed, prediction=prediction))
    models = pd.concat(parts, ignore_index=True)
    held = against_baseline(models, answers, score)
    assert held["encoder"].tolist() == ["bilstm", "conv"]
    both = pd.concat([models, *(answers.assign(seed=seed) for seed in (3, 4))])
    assert list(held["of_seeds"].iloc[0]) == [3, 4]
    for _, row in held.iterrows():
        between = {"encoder": row["encoder"]}, {"encoder": answers["encoder"].iloc[0]}
        (other,) = effects_between(both, [score], between)
        values = row[["first", "second", "difference"]].astype(float)
        assert np.allclose(values, [other.first, other.second, other.value], atol=1e-12)
        assert np.allclose(row[["low", "high"]].astype(float), other.interval(), atol=5e-3) and row["n"] == 200
    assert tables.differences(held).data.count("<tr>") == 3
    with pytest.raises(ValueError, match=r"^tiny/bilstm/dot/softmax/base/1 and the baseline"):
        against_baseline(models.query("instance > 3"), answers)


def test_what_the_papers_count_is_counted_under_their_names():
    corpus = random_corpus()
    found, texts = sizes(corpus), card(corpus)["train"]
    assert found["test_positive"] == np.sum(corpus.test.labels == 1) == found["test_size"] - found["test_negative"]
    assert found["average_length"] == pytest.approx(texts["tokens of a text, mean"])
    assert found["vocabulary"] == texts["words of the vocabulary"] and found["train_size"] == texts["texts"]
    cut = replace(corpus.train, instances=tuple(replace(one, sentences=(1, 2)) for one in corpus.train.instances))
    assert sizes(replace(corpus, train=cut))["average_sentences"] == 2
