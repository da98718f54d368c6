"""Word vectors arrive as their files have them, in every form; no file runs code, and damage is named."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from gensim.models import KeyedVectors

from lib.datasets import DataError, load, word_vectors
from lib.datasets.corpus import Vocabulary

SIZE = 7
WORDS = ["good", "bad", "café", "naïve\u00a0x", "film", "missing"]
HAVE = ["the", *WORDS[:-1]]


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary.of([WORDS])


@pytest.fixture(scope="module")
def keyed():
    """What gensim itself holds and writes."""
    model = KeyedVectors(SIZE)
    model.add_vectors(HAVE, np.random.default_rng(0).standard_normal((len(HAVE), SIZE)).astype(np.float32))
    return model


def write(path: Path, keyed, form: str) -> Path:
    if form == "npz":
        np.savez(path := path / "v.npz", words=np.array(HAVE), vectors=keyed.vectors.astype(np.float16))
    elif form == "glove":
        keyed.save_word2vec_format(path := path / "v.txt", write_header=False)
    elif form == "word2vec":
        keyed.save_word2vec_format(path := path / "v.vec")
    elif form == "fasttext":  # a space at the end of each line
        keyed.save_word2vec_format(path := path / "v.vec")
        path.write_bytes(path.read_bytes().replace(b"\n", b" \n"))
    elif form == "gz":
        keyed.save_word2vec_format(path := path / "v.txt.gz")
    return path


FORMS = ("npz", "glove", "word2vec", "fasttext", "gz")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_what_gensim_holds(tmp_path, vocabulary, keyed, form):
    found = word_vectors.load(write(tmp_path, keyed, form), vocabulary, size=SIZE)
    assert found.table.dtype == torch.float32 and found.table.shape == (len(vocabulary), SIZE)
    for row, word in enumerate(vocabulary.words):
        have = word in WORDS[:-1]
        expected = keyed[word] if have else np.zeros(SIZE)
        np.testing.assert_allclose(found.table[row], expected, rtol=1e-3 if form == "npz" else 1e-6)
        assert bool(found.covered[row]) == have
    assert str(found).startswith("5 of 6 words (83.3%) from ") and str(tmp_path) in found.source


def test_a_file_is_found_in_the_home_of_data_too(tmp_path, vocabulary, keyed, monkeypatch):
    (tmp_path / "vectors").mkdir()
    write(tmp_path / "vectors", keyed, "npz")
    for name in ("v.npz", "vectors/v.npz"):
        assert word_vectors.load(name, vocabulary, tmp_path, size=SIZE).covered.sum() == 5
    monkeypatch.setenv("DATA_HOME", str(tmp_path))
    assert word_vectors.load("v.npz", vocabulary, size=SIZE).covered.sum() == 5


def test_random_vectors_follow_the_seed_and_leave_padding_zero(vocabulary):
    big = Vocabulary.of([[f"w{i}" for i in range(2000)]])
    found = word_vectors.load("random", big, seed=3)
    assert found.table.shape == (2004, 300) and (found.table[0] == 0).all() and not found.covered.any()
    assert float(found.table[1:].mean()) == pytest.approx(0, abs=0.01)
    assert float(found.table[1:].std()) == pytest.approx(1, abs=0.01)
    again, other = (word_vectors.load("random", big, seed=seed).checksum for seed in (3, 4))
    assert found.checksum == again != other
    assert str(found) == "random numbers, N(0, 1), seed 3, for all 2,000 words"


def test_auto_takes_a_file_that_has_half_of_the_words_and_says_which(tmp_path, vocabulary, keyed):
    (tmp_path / "vectors").mkdir()
    assert "random" in str(word_vectors.load("auto", vocabulary, tmp_path, size=SIZE))
    path = write(tmp_path / "vectors", keyed, "npz")
    assert str(word_vectors.load("auto", vocabulary, tmp_path, size=SIZE)) == f"5 of 6 words (83.3%) from {path}"
    strange = Vocabulary.of([["good", "plandery", "trolfing"]])
    found = word_vectors.load("auto", strange, tmp_path, size=SIZE)
    assert not found.covered.any() and "1 of 3 words (33.3%)" in str(found) and "are too few" in str(found)
    assert "has 7 numbers a word, and the model reads 300" in str(word_vectors.load("auto", vocabulary, tmp_path))


def test_auto_on_real_text_covers_most_words(data_home):
    found = word_vectors.load("auto", load("sst", data_home=data_home).vocabulary, data_home)
    assert str(found).startswith("13,291 of 13,822 words (96.2%) from ")


# --- what is wrong, in one sentence


def error_of(path, vocabulary, size=SIZE):
    with pytest.raises(DataError) as caught:
        word_vectors.load(path, vocabulary, size=size)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    return str(caught.value)


def test_a_missing_file_is_named_with_what_is_allowed(vocabulary):
    message = error_of("glov.txt", vocabulary)
    assert "/glov.txt" in message and "allowed: random, auto, word2vec" in message
    assert "a file of word vectors (.npz, .txt, .vec)" in message


@pytest.mark.parametrize("name", ["v.bin", "v.pkl.gz"])
def test_other_forms_are_not_read_and_the_message_tells_how_to_convert_them(tmp_path, vocabulary, name):
    mark = tmp_path / "ran"
    (tmp_path / name).write_bytes(f"cos\nsystem\n(S'touch {mark}'\ntR.".encode())  # a pickle that runs a command
    assert "KeyedVectors.save_word2vec_format('vectors.txt') turns" in error_of(tmp_path / name, vocabulary)
    assert not mark.exists()


@pytest.mark.parametrize("form", FORMS[:3])
def test_another_size_or_no_word_in_common_is_refused(tmp_path, vocabulary, keyed, form):
    path = write(tmp_path, keyed, form)
    assert "has 7 numbers a word, and the model reads 300" in error_of(path, vocabulary, 300)
    assert "none of the 2 words of the vocabulary has a vector" in error_of(path, Vocabulary.of([["nope", "neither"]]))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"film 1 2 3", "line 2: cannot reshape array of size 3 into shape (7,); allowed: a word and 7 numbers"),
        (b"film 1 2 3 4 5 6 x", "line 2: could not convert string to float"),
        (b"film 1 2 3 4 5 6 nan", "the vector of 'film' holds NaN or infinity"),
        (b"film 1 2 3 4 5 6 1e99", "the vector of 'film' holds NaN or infinity"),
    ],
)
def test_a_bad_line_is_named(tmp_path, vocabulary, line, message):
    (tmp_path / "v.txt").write_bytes(b"good 1 2 3 4 5 6 7\n" + line + b"\nbad 1 2 3 4 5 6 7\n")
    assert message in error_of(tmp_path / "v.txt", vocabulary)


def test_words_with_spaces_are_no_other_words_and_the_first_vector_counts(tmp_path, vocabulary):
    (tmp_path / "v.txt").write_bytes(
        b"film 1 1 1 1 1 1 1\nfilm . 2 2 2 2 2 2 2\ngood . 3 3 3 3 3 3 3\nfilm 4 4 4 4 4 4 4\n"
    )
    found = word_vectors.load(tmp_path / "v.txt", vocabulary, size=SIZE)
    assert found.table[vocabulary.ids["film"]].tolist() == [1] * SIZE and found.covered.sum() == 1


def test_damaged_files_are_named(tmp_path, vocabulary, keyed):
    for form in ("npz", "gz"):
        path = write(tmp_path, keyed, form)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        assert "damaged" in error_of(path, vocabulary)
    for name in ("v.txt", "v.npz", "v.txt.gz"):
        for content in (b"", os.urandom(2000)):
            (tmp_path / name).write_bytes(content)
            error_of(tmp_path / name, vocabulary)
    for arrays in ({"table": keyed.vectors}, {"vectors": keyed.vectors[1:]}):
        np.savez(tmp_path / "v.npz", words=np.array(HAVE), **arrays)
        assert "it needs plain arrays words, of text, and vectors" in error_of(tmp_path / "v.npz", vocabulary)


def test_large_text_is_read_in_good_time(tmp_path):
    """Only wanted words are turned into numbers; here one in a hundred of 20,000 words."""
    line = b" ".join([b"0.123456"] * 300)
    with gzip.open(tmp_path / "v.txt.gz", "wb", compresslevel=1) as file:
        file.writelines(b"w%d %s\n" % (i, line) for i in range(20_000))
    found = word_vectors.load(tmp_path / "v.txt.gz", Vocabulary.of([[f"w{i}" for i in range(0, 20_000, 100)]]))
    assert found.covered.sum() == 200 and float(found.table[-1, -1]) == pytest.approx(0.123456)
