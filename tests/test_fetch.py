"""Official downloads end whole and checked, or not at all, whatever the server, the archive or the disk does."""

import errno
import gzip
import io
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from dataclasses import replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from lib import datasets
from lib.datasets import DataError, word_vectors
from lib.datasets.corpus import SPECIALS, Vocabulary
from tests import web as webs
from tests.official import ARCHIVES, review
from tests.web import broken_off, says, tarred, whole, zipped
from tools.fetch import archive, install
from tools.fetch.__main__ import known, main
from tools.fetch.archive import unpack
from tools.fetch.install import download, fetch
from tools.fetch.prepare import SPLITS, VECTORS, objects_of, prepare, without_newsgroup_marks
from tools.fetch.sources import Address, sources

BODY = bytes(range(256)) * 400
DIGEST = f"sha256:{sha256(BODY).hexdigest()}"


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """No proxy; what it would have waited between two tries."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    waited = []
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=waited.append))
    monkeypatch.setattr(install, "TIMEOUT", (2, 0.3))
    return waited


@pytest.fixture
def web():
    with webs.running() as server:
        yield server


def refused(call, *arguments, error=DataError, **named):
    """The one sentence of an error."""
    with pytest.raises(error) as caught:
        call(*arguments, **named)
    assert caught.value.__cause__ is None and "\n" not in str(caught.value)
    return str(caught.value)


def source(web, name="sst", *answers, **changes):
    url = web.serve(sources()[name].addresses[0].file, *(answers or [whole(ARCHIVES[name])]))
    return replace(sources()[name], addresses=(Address(url),), **changes)


# --- one file


@pytest.mark.parametrize("digest", (DIGEST, None))
def test_what_breaks_off_or_may_pass_is_tried_again(web, tmp_path, waits, digest):
    wrong = [whole(BODY[::-1])] if digest else []
    answers = says(500), says(429), broken_off(BODY, 5000), broken_off(BODY, 5000, stall=True), *wrong, whole(BODY)
    path = download(Address(web.serve("file", *answers), digest, len(BODY)), tmp_path)
    assert path.read_bytes() == BODY and waits == list(range(1, len(answers)))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("answer", "known", "message"),
    (
        (says(404), {}, "answers 404 Not Found"),
        (says(403), {}, "answers 403 Forbidden: it wants a login"),
        (says(500), {}, "answers 500 Internal Server Error (HTTPError); given up after 6 tries"),
        (says(200, b"<html>", Content_Type="text/html; charset=utf-8"), {}, "sends a web page in place of the file"),
        (whole(BODY[::-1]), {"digest": DIGEST}, "gave other bytes than published"),
        (whole(BODY), {"digest": "md5:" + "0" * 32}, "published, md5:0000"),
        (whole(BODY), {"size": 7}, "announces 102,400 bytes; the published file has 7"),
        (says(200, BODY, len(BODY) + 9), {}, "given up after 6 tries"),  # announces more than it sends
        (says(200, BODY, 10), {"digest": DIGEST}, "gave other bytes than published"),  # announces less
        (says(302, Location="/file"), {}, "Exceeded 30 redirects"),
        (says(302, Location="file:///etc/passwd"), {}, "InvalidSchema"),
    ),
)
def test_a_server_that_lies_is_refused_in_one_sentence(web, tmp_path, answer, known, message):
    url = web.serve("file", answer)
    assert message in refused(download, Address(url, **known), tmp_path, error=install.Refused)
    assert not list(tmp_path.iterdir())


def test_without_a_network_it_is_one_sentence(tmp_path):
    gone = Address("http://127.0.0.1:9/file")
    assert "no connection (ConnectionError)" in refused(download, gone, tmp_path, error=install.Refused)


def test_only_encrypted_addresses_are_asked(web, tmp_path):
    url = web.serve("file", says(302, Location=web.address.replace("127.0.0.1", "localhost") + "/plain"))
    web.serve("plain", whole(BODY))
    assert "by https alone: it leads to http://localhost" in refused(
        download, Address(url), tmp_path, error=install.Refused
    )
    assert all(one.url.startswith("https://") for source in sources().values() for one in source.addresses)


def test_a_full_disk_is_reported(web, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(install, "unpack", full)
        assert "is full; free some space" in refused(fetch, source(web), tmp_path)
    assert fetch(source(web), tmp_path) and len(web.asked) == 1, "the archive is kept"


# --- archives


def link(kind, name="link", to="/etc/passwd"):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    return info


def zip_link():
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def zip_of(*members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
    return packed.getvalue()


def latin_tar():
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", encoding="latin-1", format=tarfile.GNU_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("caf\xe9"), io.BytesIO())
    return packed.getvalue()


HOSTILE = {
    "tar, absolute": (tarred({"/var/x": "x"}), "leads out of its folder"),
    "tar, up": (tarred({"a/../../x": "x"}), "leads out of its folder"),
    "tar, drive": (tarred({"C:\\x": "x"}), "leads out of its folder"),
    "tar, symlink": (tarred({"x": link(tarfile.SYMTYPE)}), "a link or device"),
    "tar, hard link": (tarred({"x": link(tarfile.LNKTYPE)}), "a link or device"),
    "tar, device": (tarred({"x": link(tarfile.CHRTYPE)}), "a link or device"),
    "tar, fifo": (tarred({"x": link(tarfile.FIFOTYPE)}), "a link or device"),
    "tar, name": (latin_tar(), "cannot be a name"),
    "tar, cut off": (ARCHIVES["babi"][:-200], "is damaged"),
    "tar, bomb": (tarred({"x": b"\0" * 30_000_000}), "unpacks to far more"),
    "zip, absolute": (zip_of(("/var/x", "x")), "leads out of its folder"),
    "zip, up": (zip_of(("../x", "x")), "leads out of its folder"),
    "zip, symlink": (zip_of((zip_link(), "/etc/passwd")), "a link or device"),
    "zip, bomb": (zipped({"x": b"\0" * 30_000_000}), "unpacks to far more"),
    "zip, cut off": (ARCHIVES["sst"][:-30], "is damaged"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_is_refused(tmp_path, case):
    content, message = HOSTILE[case]
    (tmp_path / "archive").write_bytes(content)
    assert message in refused(unpack, tmp_path / "archive", tmp_path / "in" / "to")
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and "to" not in path.parts]
    assert [path.name for path in outside] == ["archive"]


def test_an_archive_of_too_many_or_equal_members_is_refused(tmp_path, monkeypatch):
    (tmp_path / "many").write_bytes(tarred({f"{n}": "" for n in range(50)}))
    with monkeypatch.context() as patch:
        patch.setattr(archive, "SLACK", 0)
        assert "unpacks to far more" in refused(unpack, tmp_path / "many", tmp_path / "1")
    with pytest.warns(UserWarning, match="Duplicate"):
        (tmp_path / "twice").write_bytes(zip_of(("a/b", "x"), ("a/./b", "y"), ("a/b", "z")))
    assert "twice" in refused(unpack, tmp_path / "twice", tmp_path / "2")


# --- whole sources


def test_a_hostile_or_wrong_archive_leaves_nothing_in_its_place(web, tmp_path):
    for number, content in enumerate((HOSTILE["tar, symlink"][0], tarred({"other/file": "x"}), b"no archive")):
        refused(fetch, source(web, "sst", whole(content)), tmp_path / str(number))
        assert not (tmp_path / str(number) / "sst").exists()


@pytest.mark.parametrize(
    ("name", "member", "content"),
    (
        ("sst", "trees/train.txt", "(3 (2 It) is)"),
        ("imdb", "aclImdb/train/pos/one.txt", "x"),
        ("agnews", "ag_news_csv/train.csv", '"5","A","B"'),
        ("agnews", "ag_news_csv/train.csv", '"1","A"'),
        ("amazon", "amazon_review_full_csv/train.csv", '"6","A","B"'),
        ("amazon", "amazon_review_full_csv/train.csv", "stars,title,text"),
        ("amazon", "amazon_review_full_csv/train.csv", '"1","A","B'),
        ("imdb10", "data.json", "{}"),
        ("imdb10", "data.json", '[{"rating": 11, "review": "Fine."}]'),
        ("eraser_movies", "movies/train.jsonl", '{"annotation_id": "../train.jsonl", "evidences": []}'),
        ("eraser_movies", "movies/train.jsonl", review("negR_train.txt", "NEG", 6, 99)),
        ("eraser_movies", "movies/train.jsonl", review("negR_other.txt", "NEG", 6, 8)),
        ("snli", "snli_1.0/snli_1.0_train.jsonl", '{"gold_label": "maybe", "sentence1": "a", "sentence2": "b"}'),
        ("babi", "tasks_1-20_v1-2/en-10k/qa1_single-supporting-fact_train.txt", "1 Where is Mary?\tbathroom\t7"),
        ("cnn", "cnn/questions/training/a.question", "http://x\n\narticle"),
        ("20news", "20news-bydate-train", None),
        ("fasttext-simple", "wiki.simple.vec", "the 1 2 3"),
    ),
)
def test_official_files_of_another_form_are_refused_in_one_sentence(tmp_path, name, member, content):
    archive, unpacked, source = tmp_path / "wiki.simple.vec", tmp_path / "unpacked", sources()[name]
    archive.write_bytes(ARCHIVES[name])
    unpack(archive, unpacked)
    if content:
        (unpacked / member).write_text(content)
    else:
        shutil.rmtree(unpacked / member)
    assert len(refused(prepare, unpacked, tmp_path / "made", source)) < 300


def test_mirrors_are_asked_in_turn_and_a_persons_own_download_is_taken(web, tmp_path):
    content = ARCHIVES["sst"]
    good = f"sha256:{sha256(content).hexdigest()}"
    urls = web.serve("gone.zip", says(404)), web.serve("wrong.zip", whole(BODY)), web.serve("good.zip", whole(content))
    one = replace(sources()["sst"], addresses=tuple(Address(url, good) for url in urls))
    assert fetch(one, tmp_path / "a")
    record = json.loads((tmp_path / "a" / "sst" / "fetched.json").read_text())
    assert record["address"] == urls[2] and record["archive"] == good
    one = replace(one, addresses=one.addresses[:2])
    message = refused(fetch, one, tmp_path / "b")
    assert (
        "404" in message
        and "other bytes" in message
        and str(tmp_path / "b" / ".downloads" / "sst" / "gone.zip") in message
    )
    (tmp_path / "b" / ".downloads" / "sst" / "gone.zip").write_bytes(content)
    assert fetch(one, tmp_path / "b")


def test_it_is_fetched_again_only_where_that_is_asked_for_and_a_wrong_one_replaces_nothing(web, tmp_path):
    one = source(web, "sst", whole(ARCHIVES["sst"]), whole(ARCHIVES["sst"]), whole(zipped({"trees/train.txt": "x"})))
    assert fetch(one, tmp_path)
    assert not fetch(one, tmp_path) and len(web.asked) == 1
    assert fetch(one, tmp_path, again=True)
    before = (tmp_path / "sst" / "train.jsonl.gz").read_bytes()
    refused(fetch, one, tmp_path, again=True)
    assert (tmp_path / "sst" / "train.jsonl.gz").read_bytes() == before


def test_ones_own_folder_is_never_replaced(web, tmp_path):
    (tmp_path / "sst").mkdir()
    assert not fetch(source(web), tmp_path)
    assert "was not fetched by this program" in refused(fetch, source(web), tmp_path, again=True)
    assert not list((tmp_path / "sst").iterdir())


KILLED = """
import sys
from dataclasses import replace
from pathlib import Path
from tools.fetch.sources import Address, sources
from tools.fetch.install import fetch
one = replace(sources()["sst"], addresses=(Address(*sys.argv[2:]),))
print(fetch(one, Path(sys.argv[1])), flush=True)
"""


def process(home, *address):
    command = [sys.executable, "-c", KILLED, str(home), *address]
    return subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_killed_process_leaves_nothing_finished_and_a_second_one_ends_it(web, tmp_path):
    content = ARCHIVES["sst"]
    url = web.serve("sst.zip", broken_off(content, 200, stall=True), whole(content))
    address = url, f"sha256:{sha256(content).hexdigest()}"
    work = tmp_path / ".downloads" / "sst"
    with process(tmp_path, *address) as first:
        until(lambda: any(work.glob("tmp*")) and web.asked)
        os.kill(first.pid, signal.SIGKILL)
    assert not (tmp_path / "sst").exists() and first.returncode == -signal.SIGKILL
    assert fetch(replace(sources()["sst"], addresses=(Address(*address),)), tmp_path) and not work.exists()
    assert json.loads((tmp_path / "sst" / "fetched.json").read_text())["source"] == "sst"


def test_two_at_once_download_once(web, tmp_path, capsys):
    content, begun = ARCHIVES["sst"], threading.Event()

    def slow(handler, web):
        begun.set()
        time.sleep(0.2)
        whole(content)(handler, web)

    one = source(web, "sst", slow)
    done = []
    first = threading.Thread(target=lambda: done.append(fetch(one, tmp_path)))
    first.start()
    begun.wait(10)
    assert not fetch(one, tmp_path)
    first.join()
    assert done == [True] and len(web.asked) == 1
    assert capsys.readouterr().out == "sst: waiting for another process\n"


@pytest.mark.parametrize(("line", "seen"), [('{"text": "cut', "is no JSON"), ("[1]", "is a JSON list")])
def test_a_line_of_an_archive_that_is_no_object_is_the_archives_fault(tmp_path, line, seen):
    (tmp_path / "data.jsonl").write_text('{"text": "a"}\n\n' + line)
    with pytest.raises(DataError, match=rf"data.jsonl, line 3, {seen}.*; the archive is not the published one$"):
        list(objects_of(tmp_path / "data.jsonl"))


def contents(home):
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


MADE_OR_LOCKED = ("planted", "planted-documents", "diabetes", "anemia")


# --- every family, from an archive in its official form to what the loaders read


def records(folder, split):
    return [json.loads(line) for line in gzip.open(folder / f"{split}.jsonl.gz")]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """All of them, made twice."""
    homes = [tmp_path_factory.mktemp("home") for _ in range(2)]
    with webs.running() as server:
        for home in homes:
            for name in sources():
                one = source(server, name)
                assert fetch(replace(one, texts={}), home)
    return homes


def test_every_source_has_an_archive_here_and_a_way_to_prepare_it():
    assert set(sources()) == set(ARCHIVES) == {*SPLITS, *VECTORS, "babi"}


def test_the_pages_that_data_cards_name_are_those_of_the_sources():
    pages = {folder: source.page for source in known().values() for folder in source.makes}
    specs = [spec for spec in datasets.DATASETS.values() if spec.folder in pages]
    assert len(specs) >= 15 and [spec.name for spec in specs if spec.page != pages[spec.folder]] == []


def test_prepared_bytes_are_the_same_every_time(prepared):
    first, second = (
        {name: content for name, content in contents(home / ".").items() if not name.startswith(".downloads")}
        for home in prepared
    )
    assert set(first) == set(second)
    assert [name for name in first if first[name] != second[name] and "fetched.json" not in name] == []
    assert first["sst/train.jsonl.gz"][:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"


def test_records_say_what_the_official_files_say(prepared):
    home = prepared[0]
    assert records(home / "sst", "dev")[:2] == [
        {"text": "It 's ( 8\xa01/2 )", "label": 1},
        {"text": "1/2 bad acting", "label": 0},
    ]
    reviews = records(home / "imdb", "train")
    assert [one["id"] for one in reviews][38:41] == ["train/pos/38_9", "train/pos/39_9", "train/neg/0_2"]
    text = "Review 0 <br />, quite pos and é, and so on. "
    assert reviews[0] == {"id": "train/pos/0_9", "text": text, "label": 1, "rating": 9}
    [title, *_] = records(home / "agnews4", "test")
    text = 'Some "text" \\\\and more.'
    assert title == {"text": f"A title {text}", "description": text, "label": 2}
    assert [one["label"] for one in records(home / "snli", "dev")] == [2, 1]
    first, second, third = records(home / "babi1", "train")
    assert (first["context"], first["supporting"]) == (
        ["Mary moved to the bathroom.", "John went to the hallway."],
        [0],
    )
    assert second == {
        "context": [*first["context"], "Daniel went back to the hallway."],
        "question": "Where is Daniel?",
        "answer": "hallway",
        "supporting": [2],
    }
    assert third["context"] == ["Sandra went to the garden."]
    question = {"question": "@placeholder met him", "answer": "@entity1"}
    assert records(home / "cnn", "dev")[1] == {"id": "d", "context": ["@entity1 met @entity2 ."], **question}
    film = records(home / "eraser_movies", "dev")[0]
    assert film["text"].split()[6:8] == ["not", "worth"]
    assert (film["rationale"], len(film["text"].split()), film["label"]) == ([[6, 8]], 12, 0)
    assert [records(home / name, "test")[0]["label"] for name in ("yahoo", "amazon", "yelp")] == [9, 2, 2]
    assert records(home / "yelp", "test")[0]["text"] == 'He said "no". \n Or did he?'
    films = [one for split in ("train", "test") for one in records(home / "imdb10", split)]
    assert sorted((int(one["id"]), one["label"]) for one in films) == [(n + 1, n % 10) for n in range(40)]
    posts = [one for split in ("train", "dev", "test") for one in records(home / "20news", split)]
    assert len(posts) == 44 and {one["text"] for one in posts} >= {
        "The rec.sport.hockey game 3 was good, and all of us saw it.\n"
    }


POSTS = (
    "From: a\n\nplain text\nof two lines",
    "From: a\n\nOn 1 May B wrote:\n> quoted\n| too\nand this\n\n--\nsigned",
    "From: a\n\ntext\n---\nmiddle\n  \nlast\n",
    "no header",
    "From: a\n\n--\nonly a signature",
    "From: a\n\n",
)


@pytest.mark.parametrize("post", POSTS)
def test_newsgroup_posts_are_cut_as_scikit_learn_cuts_them(post):
    theirs = import_module("sklearn.datasets._twenty_newsgroups")
    text = theirs.strip_newsgroup_footer(theirs.strip_newsgroup_header(post))
    assert without_newsgroup_marks(post) == theirs.strip_newsgroup_quoting(text)


def test_the_loaders_read_what_was_prepared(prepared):
    home = prepared[0]
    asking = {name: spec for name, spec in datasets.DATASETS.items() if spec.asks}
    others = [name for name in datasets.DATASETS if name not in (*MADE_OR_LOCKED, *asking)]
    corpora = {name: datasets.load(name, data_home=home) for name in others}
    assert all(len(split) > 0 for corpus in corpora.values() for split in corpus.splits)
    assert corpora["eraser_movies"].train.instances[0].rationale == ((6, 8),)
    for name, spec in asking.items():  # too few questions here for two classes in each split
        splits = spec.read(spec, home / name, dict(spec.options)).splits
        assert all(len(split) > 0 and all(one.query for one in split) for split in splits.values()), name


def test_word_vectors_are_read_by_auto(prepared):
    home = prepared[0]
    for name in ("fasttext.simple.300d.npz", "glove.840B.300d.npz"):
        with np.load(home / "vectors" / name, allow_pickle=False) as found:
            assert found["words"].tolist() == ["the", "New York"]
            assert found["vectors"].shape == (2, 300) and found["vectors"][1, 7] == 2
    assert [path.name for path in word_vectors.files_of("auto", home)][:2] == [
        "fasttext.simple.300d.npz",
        "glove.840B.300d.npz",
    ]
    vocabulary = Vocabulary((*SPECIALS, "the", "unknown"))
    assert str(word_vectors.load("auto", vocabulary, home)).startswith("1 of 2 words (50.0%) from")


@pytest.mark.parametrize(
    "name", ("sst", "imdb", "20news", "agnews4", "snli", "babi1", "babi2", "babi3", "eraser_movies")
)
def test_fields_are_those_of_the_real_prepared_sets(prepared, data_home, name):
    for path in sorted((prepared[0] / name).glob("*.jsonl.gz")):
        split = path.name.removesuffix(".jsonl.gz")
        if not (data_home / name / path.name).exists():
            continue
        ours, real = (next(iter(records(home / name, split))) for home in (prepared[0], data_home))
        assert {key: type(ours[key]) for key in ours} == {key: type(real.get(key)) for key in ours}
    ours, real = (json.loads((home / name / "dataset.json").read_text()) for home in (prepared[0], data_home))
    assert (ours["title"], ours.get("classes")) == (real["title"], real.get("classes"))


def test_what_is_missing_of_a_set_is_told(web, tmp_path):
    fetch(source(web), tmp_path)
    about = json.loads((tmp_path / "sst" / "dataset.json").read_text())
    assert "train has 8 texts of 6,920" in about["note"]


# --- the command


def test_the_command_prints_licence_and_citation(web, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sources(), "sst", source(web))
    monkeypatch.setitem(sources(), "imdb", source(web, "imdb", says(404)))
    assert main(["sst", "imdb", "--into", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "licence: none stated" in printed.out and "please cite: Socher" in printed.out and "made:" in printed.out
    assert "404" in printed.err and "not fetched: imdb" in printed.err
    assert main(["list", "--into", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert listed.count("by hand]") == 1 and listed.count(" there ") == 1
    assert main(["mnist"]) == 1 and "known: all, sst" in capsys.readouterr().err


def test_a_stop_by_hand_is_one_line(web, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(install, "unpack", lambda *arguments: signal.raise_signal(signal.SIGINT))
    monkeypatch.setitem(sources(), "sst", source(web))
    assert main(["sst", "--into", str(tmp_path)]) == 130
    assert "stopped; run it again" in capsys.readouterr().err and not (tmp_path / "sst").exists()


def test_where_datasets_go(tmp_path, monkeypatch):
    monkeypatch.setenv("DATA_HOME", str(tmp_path))
    assert install.data_folder() == tmp_path and install.data_folder(tmp_path / "x") == tmp_path / "x"
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    assert install.data_folder() == datasets.files.PROJECT / "data" / "raw"
