"""Word vectors arrive as their file has them; no file runs code, and damage is named."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from lib.datasets import DataError, word_vectors
from lib.datasets.corpus import Vocabulary

SIZE = 7
WORDS = ["good", "bad", "café", "naïve\u00a0x", "film", "missing"]
HAVE = ["the", *WORDS[:-1]]
VOCABULARY = Vocabulary.of([WORDS])
NUMBERS = np.random.default_rng(0).standard_normal((len(HAVE), SIZE))


def write(path: Path, words=HAVE, vectors=NUMBERS) -> Path:
    np.savez(path, words=np.array(words), vectors=vectors.astype(np.float16))
    return path


def test_a_file_gives_the_words_that_it_has(tmp_path):
    found = word_vectors.load(write(tmp_path / "v.npz"), VOCABULARY)
    assert found.table.dtype == torch.float32 and found.table.shape == (len(VOCABULARY), SIZE)
    for row, word in enumerate(VOCABULARY.words):
        have = word in WORDS[:-1]
        np.testing.assert_allclose(found.table[row], NUMBERS[HAVE.index(word)] if have else np.zeros(SIZE), rtol=1e-3)
        assert bool(found.covered[row]) == have
    assert str(found).startswith("5 of 6 words (83.3%) from ") and str(tmp_path) in found.source


def test_random_vectors_follow_the_seed_and_leave_padding_zero():
    big = Vocabulary.of([[f"w{i}" for i in range(2000)]])
    found = word_vectors.load("random", big, seed=3)
    assert found.table.shape == (2004, 300) and (found.table[0] == 0).all() and not found.covered.any()
    assert (found.table[1:].mean().item(), found.table[1:].std().item()) == pytest.approx((0, 1), abs=0.01)
    again, other = (word_vectors.load("random", big, seed=seed).checksum for seed in (3, 4))
    assert found.checksum == again != other
    assert str(found) == "random numbers, N(0, 1), seed 3, for all 2,000 words"


def test_auto_takes_a_file_that_has_half_of_the_words_and_says_which(tmp_path):
    (tmp_path / "vectors").mkdir()
    assert "random" in str(word_vectors.load("auto", VOCABULARY, tmp_path))
    path = write(tmp_path / "vectors" / "v.npz")
    for name in ("auto", "v.npz"):
        assert str(word_vectors.load(name, VOCABULARY, tmp_path)) == f"5 of 6 words (83.3%) from {path}"
    found = word_vectors.load("auto", Vocabulary.of([["good", "plandery", "trolfing"]]), tmp_path)
    assert not found.covered.any() and "(1 of 3 words (33.3%) from " in str(found) and "are too few" in str(found)


def error_of(path, vocabulary=VOCABULARY):
    with pytest.raises(DataError) as caught:
        word_vectors.load(path, vocabulary)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    return str(caught.value)


def test_other_forms_are_not_read_and_the_message_tells_how_to_convert_them(tmp_path):
    assert "/glov.npz" in (message := error_of("glov.npz")) and "allowed: random, auto, word2vec" in message
    (tmp_path / "v.pkl").write_bytes(f"cos\nsystem\n(S'touch {tmp_path}/ran'\ntR.".encode())  # a pickle that runs this
    assert "numpy.savez(file, words=one.index_to_key, vectors=one.vectors) makes one" in error_of(tmp_path / "v.pkl")
    assert not (tmp_path / "ran").exists()
    for home in ("y" * 600, "~nosuchuser", "\udcff"):
        with pytest.raises(DataError, match="is no path here"):
            word_vectors.load("auto", VOCABULARY, home)


def test_the_first_vector_of_a_word_counts_and_one_of_zeros_is_none(tmp_path):
    twice = write(tmp_path / "twice.npz", ["film", "good", "film"], np.outer([1, 0, 4], np.ones(SIZE)))
    found = word_vectors.load(twice, VOCABULARY)
    assert found.table[VOCABULARY.ids["film"]].tolist() == [1] * SIZE and found.covered.sum() == 1
    none = "none of the 6 words of the vocabulary has a vector other than 0"
    assert none in error_of(write(tmp_path / "zeros.npz", WORDS, np.zeros((6, SIZE))))
    assert "none of the 2 words" in error_of(write(tmp_path / "v.npz"), Vocabulary.of([["nope", "neither"]]))


def test_damaged_files_are_named(tmp_path):
    path = write(tmp_path / "v.npz")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "damaged" in error_of(path)
    path.write_bytes(os.urandom(2000))
    error_of(path)
    for arrays in ({"table": np.ones((6, SIZE))}, {"vectors": np.ones((5, SIZE))}):
        np.savez(path, words=np.array(HAVE), **arrays)
        assert "it needs plain arrays words, of text, and vectors" in error_of(path)
    infinite = np.where(np.arange(len(HAVE))[:, None] == HAVE.index("film"), np.inf, NUMBERS)
    assert "the vector of 'film' holds NaN or infinity" in error_of(write(path, HAVE, infinite))
