"""Word vectors arrive as their files have them, in every form; no file runs code, and damage is named."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from gensim.models import KeyedVectors

from lib.datasets import DataError, word_vectors
from lib.datasets.corpus import Vocabulary

SIZE = 7
WORDS = ["good", "bad", "café", "naïve\u00a0x", "film", "missing"]
HAVE = ["the", *WORDS[:-1]]
VOCABULARY = Vocabulary.of([WORDS])
KEYED = KeyedVectors(SIZE)  # what gensim itself holds and writes
KEYED.add_vectors(HAVE, np.random.default_rng(0).standard_normal((len(HAVE), SIZE)).astype(np.float32))


def write(path: Path, form: str) -> Path:
    path = path / FORMS[form]
    if form == "npz":
        np.savez(path, words=np.array(HAVE), vectors=KEYED.vectors.astype(np.float16))
    else:
        KEYED.save_word2vec_format(path, write_header=form != "glove")
    if form == "fasttext":  # a space at the end of each line
        path.write_bytes(path.read_bytes().replace(b"\n", b" \n"))
    return path


FORMS = {"npz": "v.npz", "glove": "v.txt", "word2vec": "v.vec", "fasttext": "v.vec", "gz": "v.txt.gz"}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_what_gensim_holds(tmp_path, form):
    found = word_vectors.load(write(tmp_path, form), VOCABULARY)
    assert found.table.dtype == torch.float32 and found.table.shape == (len(VOCABULARY), SIZE)
    for row, word in enumerate(VOCABULARY.words):
        have = word in WORDS[:-1]
        expected = KEYED[word] if have else np.zeros(SIZE)
        np.testing.assert_allclose(found.table[row], expected, rtol=1e-3 if form == "npz" else 1e-6)
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
    path = write(tmp_path / "vectors", "npz")
    for name in ("auto", "v.npz"):
        assert str(word_vectors.load(name, VOCABULARY, tmp_path)) == f"5 of 6 words (83.3%) from {path}"
    strange = Vocabulary.of([["good", "plandery", "trolfing"]])
    found = word_vectors.load("auto", strange, tmp_path)
    assert not found.covered.any() and "(1 of 3 words (33.3%) from " in str(found) and "are too few" in str(found)


def error_of(path, vocabulary=VOCABULARY):
    with pytest.raises(DataError) as caught:
        word_vectors.load(path, vocabulary)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    return str(caught.value)


def test_other_forms_are_not_read_and_the_message_tells_how_to_convert_them(tmp_path):
    assert "/glov.txt" in (message := error_of("glov.txt")) and "allowed: random, auto, word2vec" in message
    (tmp_path / "v.pkl").write_bytes(f"cos\nsystem\n(S'touch {tmp_path}/ran'\ntR.".encode())  # a pickle that runs this
    assert "KeyedVectors.save_word2vec_format('vectors.txt') turns" in error_of(tmp_path / "v.pkl")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("form", ["npz", "glove", "word2vec"])
def test_vectors_with_no_word_in_common_are_refused(tmp_path, form):
    path = write(tmp_path, form)
    assert "none of the 2 words of the vocabulary has a vector" in error_of(path, Vocabulary.of([["nope", "neither"]]))


def test_a_bad_line_is_named(tmp_path):
    for line, message in {
        "film 1 2 3": "line 2: cannot reshape array of size 3 into shape (7,); allowed: a word and 7 numbers",
        "film 1 2 3 4 5 6 x": "line 2: could not convert string to float",
        "film 1 2 3 4 5 6 1e99": "the vector of 'film' holds NaN or infinity",
    }.items():
        (tmp_path / f"{line}.txt").write_text(f"good 1 2 3 4 5 6 7\n{line}\nbad 1 2 3 4 5 6 7\n")
        assert message in error_of(tmp_path / f"{line}.txt")


def test_words_with_spaces_are_no_other_words_and_the_first_vector_counts(tmp_path):
    lines = ("film 1 1 1 1 1 1 1", "film . 2 2 2 2 2 2 2", "good . 3 3 3 3 3 3 3", "film 4 4 4 4 4 4 4")
    (tmp_path / "v.txt").write_text("\n".join(lines))
    found = word_vectors.load(tmp_path / "v.txt", VOCABULARY)
    assert found.table[VOCABULARY.ids["film"]].tolist() == [1] * SIZE and found.covered.sum() == 1
    (tmp_path / "zeros.txt").write_text("\n".join(f"{word} 0 0 0 0 0 0 0" for word in WORDS))
    assert "none of the 6 words of the vocabulary has a vector other than 0" in error_of(tmp_path / "zeros.txt")
    for home in ("y" * 600, "~nosuchuser", "\udcff"):
        with pytest.raises(DataError, match="is no path here"):
            word_vectors.load("auto", VOCABULARY, home)


def test_damaged_files_are_named(tmp_path):
    for form in ("npz", "gz"):
        path = write(tmp_path, form)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        assert "damaged" in error_of(path)
        path.write_bytes(os.urandom(2000))
        error_of(path)
    for arrays in ({"table": KEYED.vectors}, {"vectors": KEYED.vectors[1:]}):
        np.savez(tmp_path / "v.npz", words=np.array(HAVE), **arrays)
        assert "it needs plain arrays words, of text, and vectors" in error_of(tmp_path / "v.npz")
