"""Datasets come out as the papers have them, and whatever is wrong with data gives one clear sentence."""

import re
from dataclasses import replace

import numpy as np
import pytest
from small import dataset, lines

from lib import datasets
from lib.datasets import DataError, assembly, text
from lib.datasets.corpus import Instance
from lib.datasets.files import rows
from lib.profiles import PROFILES

ABOUT = {"name": "sst", "title": "Tiny", "classes": ["negative", "positive"], "citation": "None 2024"}
TEXTS = ["one of the very best films", "a dull and pointless mess , sadly so", "it is good but far too long for me"]


def texts(size=12):
    return [{"text": f"{TEXTS[i % 3]} number {i} {'again ' * (i % 4)}", "label": i % 2} for i in range(size)]


def write(home, name="sst", **content):
    """A dataset's folder: `content` is the records of a split, or the bytes of its file before packing."""
    return dataset(home, name, ABOUT, **{split: texts() for split in ("train", "dev", "test")} | content)


def error_of(*arguments, **named):
    with pytest.raises(DataError) as caught:
        datasets.load(*arguments, **named)
    assert caught.value.__cause__ is None and "\n" not in str(caught.value)
    return str(caught.value)


def test_sst_is_exactly_that_of_the_paper(data_home):
    corpus = datasets.load("sst", data_home=data_home)
    assert [np.bincount(split.labels).tolist() for split in corpus.splits] == [[3034, 3321], [397, 424], [863, 862]]
    assert len(corpus.vocabulary) == 13_826 and corpus.classes == ("negative", "positive")
    assert any(note.startswith("565 of 6,920 texts of train were left out") for note in corpus.notes)


def test_20news_is_that_of_the_released_notebook(data_home):
    corpus = datasets.load("20news", data_home=data_home)
    assert [len(split) for split in corpus.splits] == [1145, 278, 357] and len(corpus.vocabulary) == 6517
    assert "qqq" in corpus.vocabulary.ids and not any(re.search(r"\d", word) for word in corpus.vocabulary.words)


def test_agnews_is_world_against_business_by_their_descriptions(data_home):
    spec = replace(datasets.spec("agnews"), tokens=lambda raw: tuple(raw.split()))  # spaCy's rules take longer
    corpus = assembly.assemble(spec, spec.read(spec, data_home / "agnews4", {}), PROFILES["paper"])
    assert [len(split) for split in corpus.splits] == [15_916, 2_809, 3_800]
    assert corpus.classes == ("World", "Business")
    assert np.bincount(corpus.test.labels).tolist() == [1900, 1900]
    assert any("6,561 of 25,286 World and Business texts of train" in note for note in corpus.notes)


def test_imdb_has_about_the_papers_sizes(data_home):
    """The papers' own tokens (Keras' pickle) are not to be had: their test split has 2,184 and 2,172 texts."""
    spec = datasets.spec("imdb")
    draft = spec.read(spec, data_home / "imdb", {})
    corpus, quick = (assembly.assemble(spec, draft, PROFILES[name]) for name in ("paper", "quick"))
    assert [len(split) for split in corpus.splits] == pytest.approx([17_200, 4_300, 4_356], rel=0.01)
    assert len(corpus.vocabulary) == pytest.approx(12_487, rel=0.02), "as printed by Jain & Wallace"
    assert all(6 < split.lengths.min() < split.lengths.max() < 400 for split in corpus.splits)
    assert len(quick.vocabulary) < len(corpus.vocabulary)
    assert any(re.match(r"The profile quick reads \d+ of 17,307 texts of train", note) for note in quick.notes)


def test_eraser_movies_names_its_reasons_by_the_tokens_of_the_text(data_home):
    corpus = datasets.load("eraser_movies", data_home=data_home)
    assert [len(split) for split in corpus.splits] == [1600, 200, 139]
    assert all(one.tokens == tuple(one.text.split()) for split in corpus.splits for one in split.instances)
    assert any("mark 9% of train, 7% of dev, 31% of test" in note for note in corpus.notes), "not pooled"
    first = corpus.test.instances[0]
    assert " ".join(first.tokens[slice(*first.rationale[0])]) == "i even giggled"
    assert [one.id for one in corpus.train.instances if one.rationale is None] == ["posR_161"]


def test_the_two_texts_of_a_pair_are_the_same_but_for_their_rationales(data_home):
    corpus, quick = (datasets.load("imdb_counterfactual", profile, data_home) for profile in ("paper", "quick"))
    assert [len(split) for split in corpus.splits] == [2 * 1707, 2 * 245, 2 * 488]
    texts, rest = {one.id: one for one in corpus.test.instances}, {}
    for one in texts.values():
        marked = {place for span in one.rationale or () for place in range(*span)}
        rest[one.id] = [word for place, word in enumerate(one.tokens) if place not in marked]
        assert texts[one.counterpart].counterpart == one.id and texts[one.counterpart].label == 1 - one.label
    assert all(rest[one.id] == rest[one.counterpart] for one in texts.values())
    assert corpus.test.instances[0].tokens[slice(*corpus.test.instances[0].rationale[0])] == ("terrible",)
    of_quick = {one.id: one.counterpart for one in quick.test.instances}
    assert len(of_quick) < len(texts) and set(of_quick) == set(of_quick.values())


def test_reasons_are_spans_of_the_tokens_also_in_sentences_and_one_outside_of_its_text_is_named(tmp_path):
    ours = [{"text": "a b . ! ' f", "label": i % 2, "rationale": [[2, 3], [0, 1], [2, 2]]} for i in range(6)]
    write(tmp_path, "eraser_movies", train=ours, dev=ours, test=ours)
    plain, cut = (datasets.load(f"eraser_movies{of}", data_home=tmp_path).test for of in ("", "-sentences"))
    assert all((one.rationale, one.sentences) == (((0, 1), (2, 3)), (5, 1)) for one in cut.instances)
    assert [replace(one, sentences=None) for one in cut.instances] == list(plain.instances)
    for spans in ([[0, 7]], [[-1, 2]]):
        write(tmp_path, "eraser_movies", train=ours, dev=ours, test=[*ours, ours[0] | {"rationale": spans}])
        assert "test.jsonl.gz, line 7: 'rationale' is" in error_of("eraser_movies", data_home=tmp_path)


def test_pieces_apart_are_cut_as_whole_texts_are(data_home):
    """`generic` cuts each piece between spaces once; spaCy's tokeniser on whole texts is the judge."""
    for post in (row.text() for row in rows(data_home / "20news", ["dev"])["dev"][:150]):
        whole = [token.text.lower() for token in text.english()(" ".join(post.split()))]
        assert text.generic(post) == tuple("qqq" if any(c.isdigit() for c in word) else word for word in whole)


@pytest.mark.parametrize(
    ("tokens", "given", "expected"),
    [
        (text.words, "It 's -LRB- not -RRB- GOOD , is n't it ?", "it s not good is n t it"),
        (text.keras_words, "I don't<br /><br />know -- really!", "i don't know really"),
        (text.generic, " It's 4:30  in the\nU.S., isn't it?", "it 's qqq in the u.s. , is n't it ?"),
        (text.generic_words, "He said: (don't) -- ... 3rd base!", "he said do n ' t qqq base !"),
    ],
)
def test_tokens(tokens, given, expected):
    assert " ".join(tokens(given)) == expected


def of_lengths(lengths, labels):
    return [Instance(str(i), "", ("w",) * n, y) for i, (n, y) in enumerate(zip(lengths, labels, strict=True))]


def test_a_subset_has_whole_texts_within_its_tokens_and_each_class_its_share():
    """760 texts, one in ten of them long: the shares are by text, whatever the lengths of a class."""
    random = np.random.default_rng(1)
    labels = random.random(760) < 0.45
    lengths = np.where(random.random(760) < 0.1, 4_000, random.integers(20, 200, 760)) * np.where(labels, 3, 1)
    lengths[::40] = 30_000
    texts = of_lengths(lengths, labels.astype(int))
    chosen = assembly.subset(texts, 25_000)
    assert chosen == assembly.subset(texts, 25_000) and len({one.label for one in assembly.subset(texts, 1)}) == 2
    assert assembly.subset(texts, None) == assembly.subset(texts, 10**9) == texts
    drawn = [int(one.id) for one in chosen]
    assert drawn == sorted(drawn) and len(drawn) > 40, "not the 16 before the first that does not fit"
    assert 24_000 < lengths[drawn].sum() <= 25_000 and lengths[drawn].max() <= 25_000
    assert np.mean([one.label for one in chosen]) == pytest.approx(labels.mean(), abs=0.06)
    labels = np.array([0] * 600 + [1] * 300 + [2] * 100)
    texts = of_lengths(np.array([10, 500, 2])[labels], labels)
    for most in (10, 50, 333):
        counts = np.bincount([one.label for one in assembly.subset(texts, 10**9, most)])
        assert counts.sum() == most and np.abs(counts - most * np.array([0.6, 0.3, 0.1])).max() <= 1


def test_of_test_so_many_texts_are_read_however_long_they_are():
    texts = of_lengths([900] * 400 + [90_000] * 20, [0, 1] * 210)
    draft = assembly.Draft("long", ("a", "b"), {"train": texts, "dev": texts, "test": texts})
    corpus = assembly.assemble(assembly.Spec("long", None, ""), draft, PROFILES["quick"])
    assert [len(split) for split in corpus.splits] == [80_000 // 900, 25_000 // 900, 300]
    assert corpus.test.lengths.max() == 900 and np.bincount(corpus.test.labels).tolist() == [150, 150]
    assert any("quick reads 300 of 420 texts of test" in note for note in corpus.notes)


def test_a_split_keeps_its_texts_as_they_are_and_the_checksum_covers_tokens_labels_and_order(tmp_path):
    def loaded(**content):
        write(tmp_path, **content)
        return datasets.load("sst", data_home=tmp_path)

    other_label, other_word, moved = texts(), texts(), texts()
    other_label[4]["label"] ^= 1
    other_word[4]["text"] += " \u202eright to left\u202c <b> \u2028"
    moved[1], moved[2] = moved[2], moved[1]
    found = [loaded(), *(loaded(test=test) for test in (other_label, other_word, moved))]
    assert len({corpus.checksum for corpus in found}) == 4 and loaded().checksum == found[0].checksum
    assert found[2].test.instances[4].text == other_word[4]["text"]
    more = [{"text": "longest " * 30, "label": 0}, {"text": "...", "label": 0}]
    corpus = loaded(train=[*texts(), *more], test=other_word)
    assert "longest" in corpus.vocabulary.ids, "the vocabulary is that of the unfiltered training split"
    assert "longest" not in {word for one in corpus.train.instances for word in one.tokens}
    assert "right" not in corpus.vocabulary.ids and corpus.train.instances[0].id == "train-1"
    assert "1 of 14 texts of train were left out because they have no tokens." in corpus.notes


def test_missing_data_says_where_it_looked_and_what_to_do(tmp_path, monkeypatch):
    assert str(tmp_path / "sst") in error_of("sst", data_home=tmp_path)
    monkeypatch.setenv("DATA_HOME", str(tmp_path / "elsewhere"))
    message = error_of("sst")
    assert str(tmp_path / "elsewhere" / "sst") in message and "data/raw/sst" in message and "set DATA_HOME" in message


def test_unknown_names_options_and_profiles_are_refused_with_the_known_ones():
    assert error_of("sts") == f"unknown dataset 'sts'; known: {', '.join(datasets.DATASETS)}"
    assert error_of("sst", "big") == "unknown profile 'big'; known: quick, paper"
    assert error_of("sst", cues=1) == "unknown option 'cues' of the dataset 'sst'; known: train_texts, test_texts"
    assert error_of("planted", cues=99) == "dataset 'planted': cues is 99; Input should be less than or equal to 8"


def with_line(line):
    return lines(texts()) + line + b"\n"


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (b"\n \n", "train.jsonl.gz is empty"),
        (with_line(b"[" * 100_000), "line 13 is no JSON"),
        (with_line(b"[1]"), "line 13 is a JSON list"),
        (with_line(b'{"text": 7, "label": 1}'), "line 13: 'text' is 7; allowed: a string"),
        (with_line(b'{"text": "seven", "label": 2}'), "'label' is 2; allowed: whole numbers from 0 to 1"),
        (with_line(b'{"text": "caf\xe9", "label": 1}'), "line 13 is not UTF-8"),
        (with_line(b'{"text": "a\\u0000b", "label": 1}'), "line 13: 'text' holds a NUL"),
        (with_line(b'{"text": "\\ud83d", "label": 1}'), "line 13 is no JSON ('utf-8' codec can't encode"),
        ([{**record, "label": 1} for record in texts()], "has 11 texts left, of the classes: positive; a classifier"),
    ],
)
def test_bad_records_are_named(tmp_path, train, message):
    write(tmp_path, train=train)
    assert message in error_of("sst", data_home=tmp_path)


def test_bad_files_are_named(tmp_path):
    folder = write(tmp_path)
    whole = (file := folder / "dev.jsonl.gz").read_bytes()
    for damaged in (whole[: len(whole) // 2], b"not packed", whole[:20] + b"\xff" * 30 + whole[50:]):
        file.write_bytes(damaged)
        assert "dev.jsonl.gz is damaged or cut off" in error_of("sst", data_home=tmp_path)
    file.unlink()
    assert "dev.jsonl.gz cannot be read: No such file" in error_of("sst", data_home=tmp_path)
    (folder / "dataset.json").write_text('{"classes": ["one"]}')
    message = "dataset.json has classes = ['one']; allowed: a list of at least two names"
    assert message in error_of("sst", data_home=tmp_path)
