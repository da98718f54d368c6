"""Discharge summaries are read from files made here in the form of MIMIC-III's, and their words stay where they are."""

import ast
import csv
import io
import json
import random
import re
from dataclasses import replace
from pathlib import Path

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
TASKS = {"diabetes": ("25000", "4019"), "anemia": ("2851", "28521")}  # a code of each, positive and negative


def note(row, patient, admission, body, date="2101-05-03", category="Discharge summary", kind="Report", error=""):
    return [row, patient, admission, date, "", "", category, kind, "", error, body]


def table(columns, rows) -> str:
    out = io.StringIO()
    csv.writer(out).writerows([columns, *rows])
    return out.getvalue()


def folder(home: Path, notes, codes) -> Path:
    """The folder mimic/ of a home of data."""
    place = home / "mimic"
    place.mkdir(exist_ok=True, parents=True)
    (place / "NOTEEVENTS.csv").write_text(table(NOTES, notes), newline="")
    rows = [[row, patient, admission, 1, code] for row, (patient, admission, code) in enumerate(codes)]
    (place / "DIAGNOSES_ICD.csv").write_text(table(CODES, rows), newline="")
    return place


def hospital(name: str, patients: int = 60) -> tuple[list, list]:
    """Notes and codes of patients with one to three admissions each, of both classes, in no order."""
    draw, notes, codes = random.Random(1), [], []
    for patient in range(1, patients + 1):
        for admission in range(1000 + 10 * patient, 1000 + 10 * patient + draw.randint(1, 3)):
            words = " ".join(draw.choices(("cough", "oedema", "biopsy", "ward", "rash"), k=draw.randint(2, 9)))
            notes.append(note(admission, patient, admission, f"{SECRET} {words}\n\n{FILLER}"))
            codes += [(patient, admission, draw.choice(TASKS[name])), (patient, admission, "V5867")]
    draw.shuffle(notes)
    return notes, codes


def error_of(call) -> str:
    with pytest.raises(DataError) as caught:
        call()
    assert "\n" not in str(caught.value) and SECRET not in str(caught.value)
    return str(caught.value)


PUBLISHED = """"ROW_ID","SUBJECT_ID","HADM_ID","CHARTDATE","CHARTTIME","STORETIME","CATEGORY","DESCRIPTION","CGID",\
"ISERROR","TEXT"
9,7,100,"2101-05-09",,,"Discharge summary","Addendum",,,"late
addendum"
8,7,100,"2101-05-08",,,"Discharge summary","Addendum",,,"addendum"
7,7,100,"2101-05-07",,,"Discharge summary","Report",,,"second, with ""quotes"",

and an empty line"
6,7,100,"2101-05-03",,,"Discharge summary","Report",,,"first b"
5,7,100,"2101-05-03",,,"Discharge summary","Report",,,"first a"
4,7,100,"2101-05-01",,,"Discharge summary","Report",,1,"an error"
3,7,100,"2101-05-01","2101-05-01 10:00:00","2101-05-01 10:09:00","Nursing","Report",1,,"of a nurse"
2,7,,"2101-05-01",,,"Discharge summary","Report",,,"of no admission"
1,8,101,"2101-05-01",,,"Discharge summary","Report",,,"of an admission that is not asked for"
"""


def test_the_notes_of_an_admission_are_one_text(tmp_path, monkeypatch):
    monkeypatch.setattr(mimic, "CHUNK", 2)
    (tmp_path / "NOTEEVENTS.csv").write_text(PUBLISHED)
    expected = 'first a first b second, with "quotes",\n\nand an empty line addendum late\naddendum'
    assert mimic.summaries(tmp_path, [100, 102]).to_dict() == {100: expected}


def test_codes_are_compared_from_their_start(tmp_path):
    given = {1: "25000", 2: "25001 4019", 3: "2500", 5: "E2851", 6: "2851", 7: "28521", 8: "28529 2851", 10: "2852"}
    codes = [(one, 100 + one, code) for one, codes in given.items() for code in (*codes.split(), "")]
    place = folder(tmp_path, [], codes)
    of_diabetes, of_anemia = (mimic.labels(place, task) for task in TASKS)
    assert (of_diabetes.index - 100 == of_diabetes["patient"]).all() and set(of_diabetes["patient"]) == set(given)
    assert set(of_diabetes.query("label == 1")["patient"]) == {1}
    assert of_anemia["label"].to_dict() == {106: 1, 107: 0, 110: 0}


def test_tokens_are_those_of_the_papers_cleaner():
    raw = "Name:  [**Name 1**]\n....\n\n----\nTemp 38.5, pt's BP 120/80 [** 2 **]; don't [**a**][**b**] - - [**c"
    expected = "name : <DE> . - temp qqq , pt 's bp qqq <DE> ; do n't <DE> <DE> - [ * c"
    assert " ".join(text.clinical(raw)) == expected


def test_no_patient_stands_in_two_splits_and_the_tables_are_read_once(tmp_path, monkeypatch):
    notes, codes = hospital("anemia")
    folder(tmp_path, notes, codes)
    corpus = datasets.load("anemia", data_home=tmp_path)
    positive = {admission for _, admission, code in codes if code == "2851"}
    patient = {admission: patient for patient, admission, _ in codes}
    ids = {split.name: {int(one.id) for one in split.instances} for split in corpus.splits}
    assert set().union(*ids.values()) == set(patient) and sum(map(len, ids.values())) == len(patient)
    patients = {split: {patient[one] for one in of} for split, of in ids.items()}
    assert {split: len(of) for split, of in patients.items()} == {"train": 40, "dev": 8, "test": 12}  # 20%; 15% of 48
    for one in (one for split in corpus.splits for one in split.instances):
        assert bool(one.label) == (int(one.id) in positive) and one.tokens.count("<DE>") == 2
    assert "Differs from the paper: its lists of admissions are not public" in corpus.notes[0]
    assert corpus.classes == ("chronic anemia", "acute anemia") and "PhysioNet" in corpus.licence
    monkeypatch.delattr(mimic, "summaries")
    assert datasets.load("anemia", data_home=tmp_path).checksum == corpus.checksum


def test_patients_are_drawn_whole(tmp_path, monkeypatch):
    folder(tmp_path, *hospital("diabetes", 90))
    patients = mimic.labels(tmp_path / "mimic", "diabetes")["patient"]
    assert set(mimic.draw_admissions(patients)) == set(patients.index)
    monkeypatch.setattr(mimic, "MOST_ADMISSIONS", 80)
    drawn = mimic.draw_admissions(patients)
    assert 77 < len(drawn) <= 80 and list(drawn) == list(mimic.draw_admissions(patients))
    assert patients.isin(patients[drawn]).sum() == len(drawn), "all admissions of a patient, or none"
    corpus = datasets.load("diabetes", data_home=tmp_path)
    assert f"{len(drawn)} of {len(patients)} admissions were drawn, by patient; 0 of them" in corpus.notes[1]


ROW = table(NOTES, [note(1, 1, 1010, SECRET)])
BAD_NOTES = ["", ROW.replace("ISERROR", "ERROR"), ROW + f'"{SECRET}', ROW.replace(SECRET, "caf\xe9")]
BAD_NOTES += [ROW.replace("1010", SECRET), ROW.replace("1,1,1010", ",1,1010")]


@pytest.mark.parametrize("content", BAD_NOTES)
def test_a_bad_table_of_notes_is_named(tmp_path, content):
    place = folder(tmp_path, [], hospital("anemia", 4)[1])
    (place / "NOTEEVENTS.csv").write_text(content, encoding="latin-1")
    message = error_of(lambda: datasets.load("anemia", data_home=tmp_path))
    assert re.search(r"NOTEEVENTS.csv is not as published: .* lacks one of ROW_ID, HADM_ID, ", message)


def test_without_the_files_it_is_said_how_access_is_had(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(datasets.files, "PROJECT", tmp_path / "project")
    messages = [error_of(lambda: datasets.load("anemia", data_home=tmp_path))]
    assert main(["mimic", "--into", str(tmp_path)]) == 1 and not (tmp_path / "mimic").exists()
    (tmp_path / "mimic").mkdir()
    messages += [capsys.readouterr().err, error_of(lambda: datasets.load("anemia", data_home=tmp_path))]
    assert all("https://physionet.org/" in one and "data use agreement" in one for one in messages)
    assert main(["mimic", "--into", str(tmp_path)]) == 0 and "already there" in capsys.readouterr().out


def test_nothing_of_a_note_is_written(tmp_path, monkeypatch):
    home, cache = tmp_path / "home", tmp_path / "cache"
    place = folder(home, *hospital("anemia", 30))
    before = {path: path.read_bytes() for path in place.iterdir()}
    monkeypatch.setenv("CACHE_HOME", str(cache))
    corpus = datasets.load("anemia", "quick", home)
    train(Run("anemia", "average", vectors="random", options=(("epochs", 1),)), home, corpus, say=lambda message: None)
    word2vec(corpus, size=4)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
    written = {path.name: path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    assert {"weights.safetensors", "run.json", "vectors.safetensors"} <= written.keys()
    words = [word for word in corpus.vocabulary.words if len(word) > 4 and word.isalpha()]
    assert not [word for word in (SECRET, *words) for content in written.values() if word.encode() in content]


def test_words_are_shown_only_when_that_is_asked_for(tmp_path):
    folder(tmp_path, *hospital("anemia", 30))
    corpus = datasets.load("anemia", data_home=tmp_path)
    one = corpus.test.instances[0]
    assert datasets.tokens_shown(corpus, one) == tuple(f"[{place + 1}]" for place in range(len(one.tokens)))
    assert datasets.tokens_shown(corpus, one, "yes") == one.tokens
    open_to_all = replace(corpus, name="planted")
    assert datasets.tokens_shown(open_to_all, one) == one.tokens
    assert datasets.tokens_shown(open_to_all, one, "no") == datasets.tokens_shown(corpus, one)
    assert "allowed: auto, yes, no" in error_of(lambda: datasets.tokens_shown(corpus, one, "never"))
    assert SECRET not in " ".join(datasets.about(corpus)) + datasets.card(corpus).to_csv() + repr(corpus)
    assert {name for name, spec in datasets.DATASETS.items() if spec.confidential} == set(TASKS)


@pytest.mark.parametrize("path", sorted((PROJECT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_notebook_asks_before_it_shows_words(path):
    code = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    nodes = [node for cell in code for node in ast.walk(ast.parse("".join(cell["source"])))]
    reached = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert not reached & {"tokens", "text", "words", "vocabulary", "encoded"}, "words reach a cell past tokens_shown"
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    asking = [call for call in calls if any(ast.unparse(argument) == "show_text" for argument in call.args)]
    shown = [call for call in calls if ast.unparse(call.func) == "datasets.tokens_shown"]
    assert asking and all(call in asking for call in shown)
