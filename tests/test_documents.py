"""Texts in sentences: how they are cut, what is read, and the word vectors that are learned from them."""

from collections import Counter
from itertools import pairwise

import numpy as np
import planned
import pytest
import small
import torch

from lib import datasets
from lib.datasets import files, planted, text
from lib.datasets.assembly import drawn
from lib.datasets.classification import RATINGS
from lib.datasets.corpus import SPECIALS, Vocabulary
from lib.training import Run, fitting
from lib.training.vectors import word2vec

ABOUT = {"classes": ["negative", "positive"]}
PLACES = "Rome Oslo Lima Cairo Delhi".split()


def sentences(raw: str) -> list[tuple[str, ...]]:
    tokens = text.spacy_words(raw)
    ends = np.cumsum([0, *text.sentence_lengths(tokens)])
    return [tokens[start:end] for start, end in pairwise(ends)]


def test_sentences_end_where_the_rule_says():
    raw = 'He said: "I go." Then Mr. Smith left... Really?! It costs 3.50.<br /><br />Over'
    expected = ['he said : " i go . "', "then mr. smith left ... really ? !", "it costs 3.50 .", "over"]
    assert [" ".join(tokens) for tokens in sentences(raw)] == expected
    assert sentences(" \n ") == []


def test_agnews4_has_all_four_topics_in_the_sentences_of_the_whole_pipeline(data_home):
    from spacy.lang.en import English

    corpus = datasets.load("agnews4", data_home=data_home, train_texts=400, test_texts=400)
    assert corpus.classes == ("World", "Sports", "Business", "Sci/Tech")
    rows = files.rows(files.find("agnews4", data_home), ("train", "test"))
    assert len(rows["train"]) == 51_730
    assert Counter(row.label(corpus.classes) for row in rows["test"]) == dict.fromkeys(range(4), 1_900)
    pipeline = English()
    pipeline.add_pipe("sentencizer")
    for instance in corpus.test.instances[:100]:
        document = pipeline(" ".join(instance.text.split()))
        expected = [tuple(token.text.lower() for token in sentence) for sentence in document.sents]
        assert sentences(instance.text) == expected
        assert instance.sentences == tuple(map(len, expected))


def test_drawn_texts_are_always_the_same_ones_in_their_order():
    few, more = (drawn(range(1000), "dev", {"train_texts": most}, []) for most in (10, 300))
    assert few == sorted(few) == drawn(range(1000), "test", {"test_texts": 10}, []) and set(few) < set(more)
    assert drawn(range(5), "train", {"train_texts": None}, notes := []) == [*range(5)] and not notes
    assert drawn(range(5), "train", {"train_texts": 9}, notes) == [*range(5)] and not notes, "none was left out"


def test_one_planted_sentence_decides():
    for split in planted.SIZES:
        for one in planted.records(split, documents=True):
            assert sum(one.sentences) == len(one.tokens) and 3 <= len(one.sentences) <= 6
            starts = np.cumsum([0, *one.sentences])
            assert all(one.tokens[end - 1] == "." for end in starts[1:])
            places = [place for start, end in one.rationale for place in range(start, end)]
            assert len(set(np.searchsorted(starts, places, side="right"))) == 1
    again = planted.records("train", documents=True, seed=1)
    assert again != planted.records("train", documents=True) and len({one.tokens for one in again}) == len(again)


def reviews(count: int) -> list[dict]:
    return [{"text": f"Off to {PLACES[i % 5]}. Good.", "rating": RATINGS[i % 8]} for i in range(count)]


def test_ratings_are_eight_classes(tmp_path):
    small.dataset(tmp_path, "imdb", ABOUT, train=reviews(160), test=reviews(16))
    corpus = datasets.load("imdb-ratings", data_home=tmp_path)
    assert corpus.classes == ("1", "2", "3", "4", "7", "8", "9", "10") and len(corpus.dev) == 24
    assert corpus.test.labels.tolist() == [*range(8)] * 2 and corpus.test.instances[0].sentences == (4, 2)
    few = datasets.load("imdb-ratings", data_home=tmp_path, train_texts=40, test_texts=9)
    assert (len(few.train) + len(few.dev), len(few.test)) == (40, 9) and "test_texts: 9" in " ".join(few.notes)


def test_rare_words_are_unknown():
    assert Vocabulary.of([["a", "a", "b"], ["a", "b", "c"]], min_count=3).words == (*SPECIALS, "a")
    found = Vocabulary.of([["a", "a", "b"], ["b", "c"]], min_df=2, min_count=2)
    assert found.words == (*SPECIALS, "b") and found.encode(["b", "zzz"]).tolist() == [2, 4, 1, 3]


def test_word2vec_knows_the_words_of_train_and_the_unknown_one(tmp_path, monkeypatch):
    monkeypatch.setenv("CACHE_HOME", str(tmp_path))
    small.dataset(tmp_path, "imdb", ABOUT, train=[*reviews(160), reviews(1)[0] | {"text": "Odd."}], test=reviews(16))
    corpus = datasets.load("imdb-ratings", data_home=tmp_path)
    found = word2vec(corpus, 8)
    assert found.covered.tolist() == [False] * 4 + [True] * (len(corpus.vocabulary) - 4)
    assert (found.table.any(dim=1) != found.covered).nonzero().tolist() == [[1]] and found.table.isfinite().all()
    assert word2vec(corpus, 8, seed=1).checksum != found.checksum


def test_the_rate_falls_after_each_epoch_that_is_no_better_also_when_resumed():
    scores = [0.5, 0.6, 0.6, 0.4, 0.7, 0.65]
    rates = [0.8, 0.8, 0.4, 0.2, 0.2, 0.1]
    for resumed, factor, expected in ((0, 0.5, rates), (3, 0.5, rates[3:]), (0, None, [0.8] * 6)):
        optimizer, found = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=0.8), []
        step = fitting.plateau(optimizer, factor, scores[:resumed])
        for score in scores[resumed:]:
            step(score)
            found.append(optimizer.param_groups[0]["lr"])
        assert found == expected


def test_serrano_and_smiths_recipe():
    first = planned.runs("erasure", "agnews4", "paper", train_texts=500)
    assert len(first) == 18 and {run.vectors for run in first} == {"word2vec"} and first[0].epochs == 15
    without, few = (dict(run.options) for run in (first[6], planned.runs("erasure", "20news", "paper")[0]))
    assert (without["epochs"], without["train_texts"], few["epochs"], few["learning_rate"]) == (60, 500, 60, 1e-3)
    assert [run.encoder for run in planned.runs("erasure", "sst")] == ["flan-rnn", "flan-conv", "flan-noenc"]


def test_what_does_not_fit_sentences_is_refused():
    with pytest.raises(ValueError, match="on sst: encoder is 'han-rnn'"):
        planned.runs("erasure", "sst", encoders=["han-rnn"])
    with pytest.raises(ValueError, match="variant is 'tying'; allowed: base, uniform"):
        Run("planted-documents", "han-rnn", variant="tying")
