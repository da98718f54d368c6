"""Official downloads end whole and checked, or not at all, whatever the server, the archive or the disk does."""

import errno
import gzip
import json
import shutil
import tarfile
import threading
from dataclasses import replace
from hashlib import sha256
from types import SimpleNamespace

import numpy as np
import pytest

from lib import datasets
from lib.datasets import DataError, word_vectors
from lib.datasets.corpus import SPECIALS, Vocabulary
from tests.official import ARCHIVES, MODEL, review_of
from tests.web import BREAK_OFF, served, tarred, zipped
from tools.fetch import install
from tools.fetch.__main__ import main
from tools.fetch.install import fetch, unpack
from tools.fetch.prepare import SPLITS, VECTORS, copy_model, prepare
from tools.fetch.sources import sources

SST = ARCHIVES["sst"]


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """No proxy; what it would have waited between two tries."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    waited = []
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=waited.append))
    return waited


def refused(call, *arguments, **named):
    """The one sentence of an error."""
    with pytest.raises(DataError) as caught:
        call(*arguments, **named)
    assert caught.value.__cause__ is None and "\n" not in str(caught.value)
    return str(caught.value)


def source(address, name="sst", **changes):
    """A source whose file is served here, with its digest."""
    digest = f"sha256:{sha256(ARCHIVES[name]).hexdigest()}"
    url, words = f"{address}/{sources()[name].file}", {"glove": 5, "spacy": 4}.get(name)
    return replace(sources()[name], **{"url": url, "digest": digest, "words": words} | changes)


def test_what_breaks_off_or_may_pass_is_tried_again_and_what_is_there_is_not_replaced(tmp_path, waits):
    with served((500, b""), (200, SST[:200] + BREAK_OFF), (200, b"wrong"), (200, SST)) as (address, asked):
        assert fetch(source(address), tmp_path)
        assert waits == [1, 2, 3] and len(asked) == 4 and not (tmp_path / ".downloads" / "sst").exists()
        assert not fetch(source(address), tmp_path) and len(asked) == 4


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (404, b"", "answers 404 Not Found. By hand: download it with a browser"),
        (200, b"<html>", "gave other bytes than published"),
        (200, SST + BREAK_OFF, "cannot be reached"),
    ],
)
def test_a_server_that_lies_is_refused_and_a_persons_own_download_is_taken(tmp_path, status, body, message):
    with served((status, body)) as (address, _):
        given = source(address)
        refusal = refused(fetch, given, tmp_path)
    own = tmp_path / ".downloads" / "sst" / given.file
    assert message in refusal and str(own) in refusal
    assert not (tmp_path / "sst").exists() and not list(own.parent.iterdir())
    own.write_bytes(SST)
    assert fetch(given, tmp_path)


def test_a_full_disk_is_reported_and_the_archive_kept(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with served((200, SST)) as (address, asked):
        with monkeypatch.context() as patch:
            patch.setattr(install, "unpack", full)
            assert "No space left on device; make space" in refused(fetch, source(address), tmp_path)
        assert fetch(source(address), tmp_path) and len(asked) == 1


def test_what_a_killed_process_left_is_cleared_and_two_at_once_download_once(tmp_path, monkeypatch):
    for folder in ("unpacked", "made"):
        (tmp_path / ".downloads" / "sst" / folder / "sst").mkdir(parents=True)
    begun, go_on, done = threading.Event(), threading.Event(), []
    monkeypatch.setattr(install, "unpack", lambda *given: (begun.set(), go_on.wait(10), unpack(*given)))
    with served((200, SST)) as (address, asked):
        threads = [threading.Thread(target=lambda: done.append(fetch(source(address), tmp_path))) for _ in range(2)]
        threads[0].start()
        begun.wait(10)
        threads[1].start()
        go_on.set()
        for thread in threads:
            thread.join()
    assert sorted(done) == [False, True] and len(asked) == 1


def link(kind):
    info = tarfile.TarInfo("link")
    info.type, info.linkname = kind, "/etc/passwd"
    return tarred({"x": info})


HOSTILE = {
    "tar, up": tarred({"a/../../x": "x"}),
    "tar, symlink": link(tarfile.SYMTYPE),
    "tar, hard link": link(tarfile.LNKTYPE),
    "tar, cut off": ARCHIVES["babi"][:-200],
    "zip, damaged": SST[:50] + bytes(20) + SST[70:],
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_is_refused(tmp_path, case):
    (tmp_path / "archive").write_bytes(HOSTILE[case])
    assert "is damaged" in refused(unpack, tmp_path / "archive", tmp_path / "in" / "to")
    (tmp_path / "zip").write_bytes(zipped({"../x": "x", f"{tmp_path}/x": "x"}))
    unpack(tmp_path / "zip", tmp_path / "in" / "zip")
    outside = {path.name for path in tmp_path.rglob("*") if path.is_file() and not {"to", "zip"} & {*path.parts[:-1]}}
    assert outside == {"archive", "zip"}


@pytest.mark.parametrize(
    ("name", "member", "content"),
    [
        ("sst", "trees/train.txt", "(3 (2 It) is)"),
        ("imdb", "aclImdb/train/pos/one.txt", "x"),
        ("agnews", "ag_news_csv/train.csv", '"1","A","B'),
        ("eraser_movies", "movies/train.jsonl", '{"annotation_id": "../train.jsonl", "evidences": []}'),
        ("snli", "snli_1.0/snli_1.0_train.jsonl", '{"gold_label": "maybe", "sentence1": "a", "sentence2": "b"}'),
        ("babi", "tasks_1-20_v1-2/en-10k/qa1_single-supporting-fact_train.txt", "1 Where is Mary?\tbathroom\t7"),
        ("20news", "20news-bydate-train", None),
        ("glove", "glove.6B.100d.txt", f"the{' nan' * 100}"),
    ],
)
def test_official_files_of_another_form_are_refused_in_one_sentence(tmp_path, name, member, content):
    (tmp_path / "archive").write_bytes(ARCHIVES[name])
    unpack(tmp_path / "archive", tmp_path / "unpacked")
    if content is None:
        shutil.rmtree(tmp_path / "unpacked" / member)
    else:
        (tmp_path / "unpacked" / member).write_bytes(content if isinstance(content, bytes) else content.encode())
    message = refused(prepare, tmp_path / "unpacked", tmp_path / "made", sources()[name])
    assert message.startswith(f"the official files of {name} are not as published (") and len(message) < 300


def records(folder, split):
    return [json.loads(line) for line in gzip.open(folder / f"{split}.jsonl.gz")]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with all of them."""
    home = tmp_path_factory.mktemp("home")
    for name in sources():
        more = [(200, MODEL[file]) for file in sources()[name].beside]
        with served((200, ARCHIVES[name]), *more) as (address, _):
            assert fetch(source(address, name), home)
    return home


def test_a_pretrained_model_is_copied_if_its_weights_are_the_published_ones(prepared, tmp_path):
    assert {path.name: path.read_bytes() for path in (prepared / "minilm").iterdir()} == MODEL
    with pytest.raises(ValueError, match="model.safetensors has other weights than published"):
        copy_model(write(tmp_path / "model.safetensors", b"other"), tmp_path / "made", sources()["minilm"])


def test_every_source_has_an_archive_here_and_a_way_to_prepare_it_and_cards_name_its_page():
    assert set(sources()) == set(ARCHIVES) == {*SPLITS, *VECTORS, "babi", "minilm"}
    assert all(one.url.startswith("https://") for one in sources().values())
    pages = {folder: source.page for source in sources().values() for folder in source.makes}
    assert [spec.name for spec in datasets.DATASETS.values() if spec.page != pages.get(spec.folder, spec.page)] == []


def test_records_say_what_the_official_files_say(prepared):
    sst = records(prepared / "sst", "dev")[:2]
    assert sst == [{"text": "It 's ( 8\xa01/2 )", "label": 1}, {"text": "1/2 bad acting", "label": 0}]
    reviews = records(prepared / "imdb", "train")
    assert [one["id"] for one in reviews][38:41] == ["train/pos/38_9", "train/pos/39_9", "train/neg/0_2"]
    assert reviews[0] == {"id": "train/pos/0_9", "label": 1, "rating": 9} | {"text": review_of(0, "pos")}
    text = 'Some "text" \\\\and more.'
    assert records(prepared / "agnews4", "test")[0] == {"text": f"A title {text}", "description": text, "label": 2}
    assert [one["label"] for one in records(prepared / "snli", "dev")] == [2, 1]
    first, second, third = records(prepared / "babi1", "train")
    facts = ["Mary moved to the bathroom.", "John went to the hallway."]
    assert (first["context"], first["supporting"]) == (facts, [0])
    answered = {"question": "Where is Daniel?", "answer": "hallway", "supporting": [2]}
    assert second == {"context": [*facts, "Daniel went back to the hallway."], **answered}
    assert third["context"] == ["Sandra went to the garden."]
    film = records(prepared / "eraser_movies", "dev")[0]
    assert film["text"].split()[6:8] == ["not", "worth"] and film["label"] == 0 and film["rationale"] == [[6, 8]]
    texts = {"original": 'A "dull" film, and I saw all of it.', "revised": "A fine film, and I saw all of it."}
    pair = texts | {"pair": 4, "original_label": 0, "revised_label": 1}
    assert records(prepared / "imdb_counterfactual", "test") == [pair]
    posts = [one for split in ("train", "dev", "test") for one in records(prepared / "20news", split)]
    assert len(posts) == 44
    assert "The rec.sport.hockey game 3 was good, and all of us saw it.\n" in {one["text"] for one in posts}


def test_the_loaders_read_what_was_prepared(prepared):
    fetched = {folder for source in sources().values() for folder in source.makes}
    for spec in datasets.DATASETS.values():
        if spec.folder in fetched:  # of questions too few here for two classes in each split
            splits = spec.read(spec, prepared / spec.folder, dict(spec.options)).splits.values()
            assert all(len(split) > 0 and all(bool(one.query) == spec.asks for one in split) for split in splits)


def test_word_vectors_are_read_by_auto_those_first_that_the_recipe_names(prepared):
    sizes = {"wiki_glove6b_100d.npz": 100, "wiki_spacy_md_300d.npz": 300}
    for name, size in sizes.items():
        with np.load(prepared / "vectors" / name, allow_pickle=False) as arrays:
            of = dict(zip(arrays["words"].tolist(), arrays["vectors"], strict=True))
            assert set(of) == {"the", "new york"} and of["the"].shape == (size,)
            assert (of["the"] == 1).all() and (of["new york"] == 2).all() and of["the"].dtype == np.float16
    assert [path.name for path in word_vectors.files_of("auto", prepared)][:2] == [*sizes]
    vocabulary = Vocabulary((*SPECIALS, "the", "unknown"))
    assert str(word_vectors.load("auto", vocabulary, prepared)).startswith("1 of 2 words (50.0%) from")
    first = word_vectors.load("auto", vocabulary, prepared, first="wiki_spacy_md_300d")
    assert "wiki_spacy_md_300d" in first.source and first.table.shape[1] == 300


def test_an_installed_model_is_read_in_place_of_a_download_and_one_of_another_version_refused(tmp_path, monkeypatch):
    unpack(write(tmp_path / "wheel", ARCHIVES["spacy"]), tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    with served((404, b"")) as (address, asked):
        given = source(address, "spacy", packages=("md",))
        assert fetch(given, tmp_path) and not asked and (tmp_path / "site" / "md").exists()
        (tmp_path / given.makes[0]).unlink()
        assert "4 words; 5 are published" in refused(fetch, replace(given, words=5), tmp_path)
        assert "answers 404" in refused(fetch, replace(given, packages=("no_such_package",)), tmp_path)


def write(path, content):
    path.write_bytes(content)
    return path


def test_the_command_prints_licence_and_citation(tmp_path, monkeypatch, capsys):
    with served((200, SST), (404, b"")) as (address, _):
        monkeypatch.setitem(sources(), "sst", source(address))
        monkeypatch.setitem(sources(), "imdb", source(address, "imdb"))
        assert main(["sst", "imdb", "--into", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "licence: none stated" in printed.out and "please cite: Socher" in printed.out and "made:" in printed.out
    assert "404" in printed.err
