"""Discharge summaries are read from files made here in the form of MIMIC-III's, and their words stay where they are."""

import ast
import csv
import gzip
import io
import json
import random
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest

from lib import datasets
from lib.datasets import mimic, text
from lib.datasets.files import PROJECT, DataError
from lib.training import Run, train
from lib.training.vectors import word2vec
from tools.fetch.__main__ import main

SECRET = "haematochezia"  # in every text, and nowhere else
NOTES = "ROW_ID SUBJECT_ID HADM_ID CHARTDATE CHARTTIME STORETIME CATEGORY DESCRIPTION CGID ISERROR TEXT".split()
CODES = "ROW_ID SUBJECT_ID HADM_ID SEQ_NUM ICD9_CODE".split()
FILLER = "was seen for pain, mildly. No fever; given 2 mg on [**2101-5-3**] by Dr. [**Last Name (STitle) 12**]."
SETS = {"diabetes": ("25000", "4019"), "anemia": ("2851", "28521")}  # a code of each, positive and negative


def note(row, patient, admission, body, date="2101-05-03", category="Discharge summary", kind="Report", error=""):
    return [row, patient, admission, date, "", "", category, kind, "", error, body]


def table(columns, rows) -> str:
    out = io.StringIO()
    csv.writer(out).writerows([columns, *rows])
    return out.getvalue()


def folder(home: Path, notes, codes, **lists) -> Path:
    """The folder mimic/ of a home of data; lists: train_50_hadm_ids__csv=[...]."""
    place = home / "mimic"
    place.mkdir(exist_ok=True)
    (place / "NOTEEVENTS.csv").write_text(notes if isinstance(notes, str) else table(NOTES, notes), newline="")
    rows = [[row, patient, admission, 1, code] for row, (patient, admission, code) in enumerate(codes)]
    (place / "DIAGNOSES_ICD.csv").write_text(table(CODES, rows), newline="")
    for name, admissions in lists.items():
        (place / name.replace("__", ".")).write_text("".join(f"{one}\n" for one in admissions))
    return place


def hospital(name: str, patients: int = 60) -> tuple[list, list]:
    """Notes and codes of patients with one to three admissions each, of both classes, in no order."""
    draw, notes, codes = random.Random(1), [], []
    for patient in range(1, patients + 1):
        for admission in range(1000 + 10 * patient, 1000 + 10 * patient + draw.randint(1, 3)):
            words = " ".join(draw.choices(("cough", "oedema", "biopsy", "ward", "rash"), k=draw.randint(2, 9)))
            notes.append(note(admission, patient, admission, f"{SECRET} {words}\n\n{FILLER}"))
            codes += [(patient, admission, draw.choice(SETS[name])), (patient, admission, "V5867")]
    draw.shuffle(notes)
    return notes, codes


def error_of(call) -> str:
    with pytest.raises(DataError) as caught:
        call()
    assert "\n" not in str(caught.value) and SECRET not in str(caught.value)
    return str(caught.value)


def ids(corpus) -> dict[str, set[int]]:
    return {split.name: {int(one.id) for one in split.instances} for split in corpus.splits}


# --- the tables

PUBLISHED = """"ROW_ID","SUBJECT_ID","HADM_ID","CHARTDATE","CHARTTIME","STORETIME","CATEGORY","DESCRIPTION","CGID",\
"ISERROR","TEXT"
9,7,100,"2101-05-09",,,"Discharge summary","Addendum",,,"late
addendum"
8,7,100,"2101-05-08",,,"Discharge summary","Addendum",,,"addendum"
7,7,100,"2101-05-07",,,"Discharge summary","Report",,,"second, with ""quotes"",

and an empty line"
6,7,100,"2101-05-03",,,"Discharge summary","Report",,,"first b"
5,7,100.0,"2101-05-03",,,"Discharge summary","Report",,,"first a"
4,7,100,"2101-05-01",,,"Discharge summary","Report",,1,"an error"
3,7,100,"2101-05-01","2101-05-01 10:00:00","2101-05-01 10:09:00","Nursing","Report",1,,"of a nurse"
2,7,,"2101-05-01",,,"Discharge summary","Report",,,"of no admission"

1,8,101,"2101-05-01",,,"Discharge summary","Report",,,"of an admission that is not asked for"
"""
READ = 'first a first b second, with "quotes",\n\nand an empty line addendum late\naddendum'


def lowered(published: str) -> str:
    header, rest = published.split("\n", 1)
    return f"\ufeff{header.lower()}\n{rest}"


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("NOTEEVENTS.csv", lowered),
        ("NOTEEVENTS.csv.gz", str),
        ("noteevents.CSV", lambda one: one.replace("\n", "\r\n")),
    ],
)
def test_the_notes_of_an_admission_are_one_text(tmp_path, form, name):
    content = form(PUBLISHED).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    found = mimic.summaries(tmp_path, {100: 7, 102: 9})
    assert list(found) == [100]
    assert found[100].replace("\r\n", "\n") == READ


def test_codes_are_compared_from_their_start(tmp_path):
    given = {1: ["25000"], 2: ["25001", "4019"], 3: ["2500"], 4: ["250.00"], 5: ["E2851"], 6: ["2851"], 7: ["28521"]}
    given |= {8: ["28529", "2851"], 9: ["285", "2859"], 10: ["2852"]}
    folder(tmp_path, "", [(one, 100 + one, code) for one, codes in given.items() for code in (*codes, "")])
    of_diabetes, of_anemia = (mimic.labels(tmp_path / "mimic", task) for task in SETS)
    assert (of_diabetes.index - 100 == of_diabetes["patient"]).all() and set(of_diabetes["patient"]) == set(given)
    assert set(of_diabetes.query("label == 1")["patient"]) == {1, 4}
    assert of_anemia["label"].to_dict() == {106: 1, 107: 0, 110: 0}


def test_tokens_are_those_of_the_papers_cleaner():
    raw = f"Name:  [**Known lastname 1**]\nwith {SECRET}....\n\n----\nTemp 38.5, pt's BP 120/80 [** 2 **]; don't.\n"
    by_spacy = " ".join(token.text.lower() for token in text.english()(re.sub(r"\s+", " ", raw.strip())))
    marked = re.sub(r"\[\s*\*\s*\*(.*?)\*\s*\*\s*\]", " <DE> ", by_spacy)
    once = re.sub(r"\s+", " ", re.sub(r"([^a-zA-Z0-9])(\s*\1\s*)+", r"\1 ", marked).strip())
    expected = ["qqq" if any(map(str.isdigit, word)) else word for word in once.split(" ")]
    assert list(text.clinical(raw)) == expected and expected.count("<DE>") == 2 and "qqq" in expected
    assert text.clinical("[**a**][**b**] - - [**unclosed") == ("<DE>", "<DE>", "-", "[", "*", "unclosed")


def test_memory_holds_a_chunk_of_rows_and_what_is_kept(tmp_path, monkeypatch):
    kept = table(NOTES, [note(1, 7, 100, "kept")]).encode()
    other = table(NOTES, [note(2, 8, 101, "word " * 1000), note(3, 8, 102, "a word\n\n" * 300, category="Nursing")])
    packed = gzip.compress(kept) + gzip.compress(other.split("\n", 1)[1].encode()) * 40_000  # 300 MB
    (tmp_path / "NOTEEVENTS.csv.gz").write_bytes(packed)
    memory, chosen, before = [], mimic._summaries, psutil.Process().memory_info().rss
    record = lambda *given: memory.append(psutil.Process().memory_info().rss) or chosen(*given)  # noqa: E731
    monkeypatch.setattr(mimic, "_summaries", record)
    assert mimic.summaries(tmp_path, {100: 7}) == {100: "kept"}
    assert len(memory) == 17 and max(memory) - before < 150e6


# --- the splits


def test_no_patient_stands_in_two_splits(tmp_path):
    notes, codes = hospital("anemia")
    folder(tmp_path, notes, codes)
    corpus = datasets.load("anemia", data_home=tmp_path)
    positive = {admission for _, admission, code in codes if code == "2851"}
    patient = {admission: patient for patient, admission, _ in codes}
    found = ids(corpus)
    assert set().union(*found.values()) == set(patient) and sum(map(len, found.values())) == len(patient)
    patients = {split: {patient[one] for one in of} for split, of in found.items()}
    assert {split: len(of) for split, of in patients.items()} == {"train": 40, "dev": 8, "test": 12}  # 20%; 15% of 48
    for split in corpus.splits:
        assert [bool(one.label) for one in split.instances] == [int(one.id) in positive for one in split.instances]
        assert all(SECRET in one.tokens and one.tokens.count("<DE>") == 2 for one in split.instances)
    assert "Differs from the paper" in corpus.notes[0] and "0 of 60 patients are in more" in corpus.notes[2]
    assert corpus.classes == ("chronic anemia", "acute anemia") and "PhysioNet" in corpus.licence


LISTS = {"train": [1010, 1020, 1030, 1040], "dev": [1050, 1060], "test": [1070, 1080]}


def test_diabetes_is_divided_as_listed(tmp_path):
    _, codes = hospital("diabetes", 8)
    codes = [(patient, admission, SETS["diabetes"][patient % 2]) for patient, admission, _ in codes]
    notes = [note(1, patient, admission, f"{SECRET} {FILLER}") for patient, admission, _ in dict.fromkeys(codes)]
    lists = {f"{split}_50_hadm_ids__csv": of for split, of in LISTS.items()}
    lists["train_50_hadm_ids__csv"] = ["HADM_ID", "1010.0", " 1020", "", *LISTS["train"][2:], 999_999]  # one unknown
    folder(tmp_path, notes, codes, **lists)
    corpus = datasets.load("diabetes", data_home=tmp_path)
    assert ids(corpus) == {split: set(of) for split, of in LISTS.items()}
    assert corpus.test.labels.tolist() == [0, 1]  # patients 7 and 8: odd ones have a code 401.9 alone
    assert corpus.notes[0].startswith("The splits are as listed in ") and "0 of 8 patients" in corpus.notes[1]
    assert "1 of 9 admissions were left out: they have no discharge summary" in corpus.notes[2]


def test_anemia_is_divided_as_listed_and_by_length(tmp_path):
    notes, codes = hospital("anemia", 12)
    codes = [(patient, admission, SETS["anemia"][patient % 2]) for patient, admission, _ in codes]
    codes += [(3, 1030, "2851")]  # and 285.21: of neither class
    notes = [[*row[:-1], "word " * length] for row, length in zip(sorted(notes), (3999, 4000, *[5] * 99), strict=False)]
    lists = {"train": [1010, 1020, 1030, 1040, 1050, 1060], "dev": [1070, 1080], "test": [1090, 1100]}
    folder(tmp_path, notes, codes, **{f"anemia.{split}__txt": of for split, of in lists.items()})
    corpus, (first, second) = datasets.load("anemia", data_home=tmp_path), (int(row[2]) for row in sorted(notes)[:2])
    assert (first, len(corpus.train.instances[0].tokens)) == (1010, 3999)
    assert ids(corpus) == {"train": {*lists["train"]} - {1030, second}, "dev": {1070, 1080}, "test": {1090, 1100}}
    assert "anemia.train.txt" in corpus.notes[0] and "1 of 10 admissions were left out" in corpus.notes[2]
    notes = [one for one in corpus.notes if "of train were left out" in one]
    assert notes == ["1 of 5 texts of train were left out: the papers keep those with fewer than 4000 tokens."]


BAD_LISTS = [
    ({"dev_50_hadm_ids__csv": None}, r"dev_50_hadm_ids.csv is missing; its folder has "),
    ({"dev_50_hadm_ids__csv": []}, r"no text of dev is left"),
    ({"dev_50_hadm_ids__csv": [1050, SECRET]}, r"dev_50_hadm_ids.csv, row 2: the admission is missing or no "),
    ({"dev_50_hadm_ids__csv": [1050, 1010]}, r"of the admissions in .* 1 are listed twice; allowed: each once"),
]


@pytest.mark.parametrize(("change", "message"), BAD_LISTS)
def test_bad_lists_are_named(tmp_path, change, message):
    lists = {f"{split}_50_hadm_ids__csv": of for split, of in LISTS.items()} | change
    folder(tmp_path, *hospital("diabetes", 8), **{name: of for name, of in lists.items() if of is not None})
    assert re.search(message, error_of(lambda: datasets.load("diabetes", data_home=tmp_path)))


def test_without_lists_patients_of_diabetes_are_drawn_whole(tmp_path, monkeypatch):
    notes, codes = hospital("diabetes", 90)
    folder(tmp_path, notes, codes)

    def load(most):
        spec = datasets.DATASETS["diabetes"]
        mimic._read.cache_clear()
        monkeypatch.setitem(datasets.DATASETS, "diabetes", replace(spec, read=partial(spec.read, most=most)))
        return datasets.load("diabetes", data_home=tmp_path)

    few, whole, again = map(load, (80, None, 80))
    read, all_of = (set().union(*ids(corpus).values()) for corpus in (few, whole))
    assert 77 < len(read) <= 80 and ids(few) == ids(again) and all_of == {int(row[2]) for row in notes}
    patients = {one // 10 for one in read}
    assert {one for one in all_of if one // 10 in patients} == read, "all admissions of a patient, or none"
    assert "train_50_hadm_ids.csv is not there" in few.notes[0]
    assert f"{len(read)} of {len(all_of)} admissions were drawn, by patient" in few.notes[1]


def test_the_tables_are_read_once_until_they_change(tmp_path, monkeypatch):
    notes, codes = hospital("anemia", 30)
    place, reads, summaries = folder(tmp_path, notes, codes), [], mimic.summaries
    monkeypatch.setattr(mimic, "summaries", lambda *given: reads.append(1) or summaries(*given))
    first, again = (datasets.load("anemia", data_home=tmp_path) for _ in range(2))
    assert len(reads) == 1 and again.checksum == first.checksum
    (place / "NOTEEVENTS.csv").write_text(table(NOTES, [[*row[:-1], row[-1] + " more"] for row in notes]))
    assert datasets.load("anemia", data_home=tmp_path).checksum != first.checksum and len(reads) == 2


# --- errors say what is wrong, and show no word of a note

ROW = table(NOTES, [note(1, 1, 1010, SECRET)])
BARE = ROW.split("\r\n", 1)[1]
BAD_NOTES = [
    ("", r"NOTEEVENTS.csv is empty; copy or download it again"),
    (BARE, r"has no column SUBJECT_ID; allowed: the columns of MIMIC-III v1.4"),
    (ROW.replace("ISERROR", "ERROR"), r"has no column ISERROR; allowed: "),
    (ROW + f"1,2,{SECRET}\n", r"row 3: CATEGORY is missing; allowed: all columns in every row"),
    (ROW + BARE.replace(SECRET, f'"{SECRET}'), r"is no CSV .*EOF inside string starting at row 2"),
    (ROW + BARE.replace("\r\n", ",more\r\n"), r"is no CSV .*Expected 11 fields in line 3, saw 12"),
    (ROW.replace(SECRET, "").encode(), r"row 2: TEXT is missing"),
    (ROW.encode().replace(SECRET.encode(), b"caf\xe9"), r"row 2: TEXT is not UTF-8"),
    (ROW.replace("1010", SECRET), r"row 2: HADM_ID is missing or no whole number; take the file as published"),
    (ROW.replace("1,1,1010", "1,x,1010"), r"row 2: SUBJECT_ID is missing or no whole number"),
    (ROW.replace("1,1,1010", ",1,1010"), r"row 2: ROW_ID is missing or no whole number"),
    (ROW.replace("1,1,1010", "1,2,1010"), r"row 2: its admission is of another patient in DIAGNOSES_ICD"),
    (ROW.replace("2101-05-03", "5/3/2101"), r"row 2: CHARTDATE is no date as 2101-12-31"),
    (ROW.replace(SECRET, f"{SECRET}\0"), r"row 2: TEXT holds a NUL character"),
    (ROW.replace("summary", "letter"), r"has no discharge summary of the \d+ admissions that 'anemia' needs"),
    (ROW, r"mimic: 1 admissions are too few to divide"),
]


@pytest.mark.parametrize(("content", "message"), BAD_NOTES)
def test_a_bad_table_of_notes_is_named(tmp_path, content, message):
    place = folder(tmp_path, "", hospital("anemia", 4)[1])
    (place / "NOTEEVENTS.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert re.search(message, error_of(lambda: datasets.load("anemia", data_home=tmp_path)))


def test_rows_are_counted_through_all_chunks_as_a_spreadsheet_counts_them(tmp_path, monkeypatch):
    monkeypatch.setattr(mimic, "CHUNK", 2)
    rows = [note(i, 1, 1010, f"{SECRET}\n\n{i}") for i in range(5)]
    good = folder(tmp_path, rows, [(1, 1010, "2851")])
    assert mimic.summaries(good, {1010: 1}) == {1010: " ".join(f"{SECRET}\n\n{i}" for i in range(5))}
    for content, message in (
        (table(NOTES, [*rows, [], note("x", 1, 1010, SECRET)]), "row 8: ROW_ID is missing or no whole number"),
        (table(NOTES, [*rows, [*rows[0], "more"]]), "Expected 11 fields in line 7, saw 12"),
    ):
        (good / "NOTEEVENTS.csv").write_text(content, newline="")
        assert message in error_of(lambda: mimic.summaries(good, {1010: 1}))


def test_a_damaged_archive_is_named(tmp_path):
    folder(tmp_path, "", hospital("anemia", 4)[1])
    (tmp_path / "mimic" / "NOTEEVENTS.csv").unlink()
    packed = gzip.compress(ROW.encode() * 100)
    for content, message in ((packed[:-20], "ends too early"), (b"no gzip", "is damaged")):
        (tmp_path / "mimic" / "NOTEEVENTS.csv.gz").write_bytes(content)
        assert message in error_of(lambda: datasets.load("anemia", data_home=tmp_path))


def test_an_admission_of_two_patients_is_refused(tmp_path):
    folder(tmp_path, "", [(1, 100, "2851"), (2, 100, "2851")])
    message = error_of(lambda: datasets.load("anemia", data_home=tmp_path))
    assert "DIAGNOSES_ICD.csv, row 3: its admission is of another patient above" in message


@pytest.mark.parametrize("name", SETS)
def test_without_the_files_it_is_said_how_access_is_had(tmp_path, monkeypatch, capsys, name):
    monkeypatch.setattr(datasets.files, "PROJECT", tmp_path / "project")
    messages = [error_of(lambda: datasets.load(name, data_home=tmp_path))]
    assert main(["mimic", "--into", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert "licence: PhysioNet" in printed.out and "cite: Johnson" in printed.out and not (tmp_path / "mimic").exists()
    messages.append(printed.err)
    (tmp_path / "mimic").mkdir()
    messages.append(error_of(lambda: datasets.load(name, data_home=tmp_path)))
    assert "has no DIAGNOSES_ICD.csv or DIAGNOSES_ICD.csv.gz; it has nothing" in messages[-1]
    for one in messages:
        assert "https://physionet.org/" in one and "training" in one and "data use agreement" in one
        assert "NOTEEVENTS.csv and DIAGNOSES_ICD.csv" in one and "mimic" in one
    assert main(["list", "--into", str(tmp_path)]) == 0 and "by hand]" in capsys.readouterr().out
    assert main(["mimic", "--into", str(tmp_path)]) == 0 and "already there" in capsys.readouterr().out


# --- what leaves the folder


def test_nothing_of_a_note_is_written(tmp_path, monkeypatch):
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir()
    place = folder(home, *hospital("anemia", 30))
    before = {path: path.read_bytes() for path in place.iterdir()}
    monkeypatch.setenv("CACHE_HOME", str(cache))
    corpus = datasets.load("anemia", "quick", home)
    run = Run("anemia", "average", vectors="random", options=(("epochs", 1),))
    train(run, home, corpus, say=lambda message: None)
    word2vec(corpus, size=4)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
    written = [path for path in cache.rglob("*") if path.is_file()]
    assert {"weights.safetensors", "run.json", "vectors.safetensors"} <= {path.name for path in written}
    words = [word for word in corpus.vocabulary.words if len(word) > 4 and word.isalpha()]
    for path in written:
        found = path.read_bytes()
        assert not [word for word in (SECRET, *words) if word.encode() in found], path.name


def test_words_are_shown_only_when_that_is_asked_for(tmp_path):
    folder(tmp_path, *hospital("anemia", 30))
    corpus = datasets.load("anemia", data_home=tmp_path)
    one = corpus.test.instances[0]
    assert datasets.tokens_shown(corpus, one) == tuple(f"[{place + 1}]" for place in range(len(one.tokens)))
    assert datasets.tokens_shown(corpus, one, "yes") == one.tokens
    assert datasets.tokens_shown(replace(corpus, name="planted"), one) == one.tokens
    for wrong in ("no", True, ""):
        assert "allowed: auto, yes" in error_of(lambda: datasets.tokens_shown(corpus, one, wrong))  # noqa: B023
    assert SECRET not in " ".join(datasets.about(corpus)) + datasets.card(corpus).to_csv() + repr(corpus)
    assert {name for name, spec in datasets.DATASETS.items() if spec.confidential} == set(SETS)


@pytest.mark.parametrize("path", sorted((PROJECT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_notebook_asks_before_it_shows_words(path):
    code = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    [given] = ["".join(cell["source"]) for cell in code if "parameters" in cell["metadata"].get("tags", [])]
    assert 'show_text: str = "auto"  # auto: words are shown, but not of confidential texts' in given
    nodes = [node for cell in code for node in ast.walk(ast.parse("".join(cell["source"])))]
    reached = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert not reached & {"tokens", "text", "words", "vocabulary", "encoded"}, "words reach a cell past tokens_shown"
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    shown = [ast.unparse(call) for call in calls if ast.unparse(call.func) == "datasets.tokens_shown"]
    assert shown and all(re.fullmatch(r"datasets\.tokens_shown\(corpus, .+, show_text\)", call) for call in shown)
