"""Discharge summaries of MIMIC-III v1.4, from a user's own NOTEEVENTS and DIAGNOSES_ICD: `diabetes` and `anemia`.

Jain & Wallace (2019), section 3.2. Nothing is written: the tables are read in chunks, and memory holds what is kept. No
message shows the content of a row: messages reach terminals, logs and executed notebooks.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import pandas as pd

from lib.datasets import files, text
from lib.datasets.assembly import Draft, Spec, divided, draft_of
from lib.datasets.corpus import Instance
from lib.datasets.files import DataError

PAGE = "https://physionet.org/content/mimiciii/1.4/"
ACCESS = (
    f"MIMIC-III comes from PhysioNet alone ({PAGE}) and needs a credentialed account, its training in research with "
    "human subjects, and its data use agreement, signed; then put NOTEEVENTS.csv and DIAGNOSES_ICD.csv of version 1.4, "
    "each may be .gz, into the folder mimic/"
)
ABOUT = {
    "citation": "Johnson et al. 2016, MIMIC-III, a freely accessible critical care database",
    "licence": "PhysioNet Credentialed Health Data License and data use agreement: never pass a text on",
}
HIDDEN = "The texts are confidential: this report shows their words only where show_text is yes, else their places."
NOTES = ["SUBJECT_ID", "HADM_ID", "CATEGORY", "ISERROR", "DESCRIPTION", "CHARTDATE", "CHARTTIME", "ROW_ID", "TEXT"]
DIAGNOSES = ["SUBJECT_ID", "HADM_ID", "ICD9_CODE"]
CHUNK = 5_000  # rows of a table in memory: some 20 MB of notes
ADMISSIONS = 11_000  # of diabetes without lists: about as many as the paper's lists name; all are five times as many
SHARES = "20% are test, 15% of the others dev"
TAKE = "take the file as published"


@dataclass(frozen=True)
class Task:
    """A class for an admission by its ICD-9 codes.

    prefixes  of the codes that decide, without a dot
    label     (those of the prefixes that the admission's codes start with) -> its class; None: not of this task
    lists     names of files with the admissions of each split, the second as github.com/jamesmullenbach/caml-mimic
    paper     how the paper divides the admissions
    """

    title: str
    classes: tuple[str, str]
    prefixes: tuple[str, ...]
    label: Callable[[set[str]], int | None]
    lists: tuple[str, ...]
    paper: str


@dataclass(frozen=True)
class Admission:
    """A stay in hospital: its patient, and the task's prefixes that its ICD-9 codes start with."""

    patient: int
    codes: set[str]


@dataclass(frozen=True)
class Division:
    """The admissions of train, dev and test, and in a sentence who divided them."""

    splits: dict[str, frozenset[int]]
    source: str


def diabetes(codes: set[str]) -> int:
    """1 with a code that starts 250.00, diabetes without complication; else 0."""
    return int("25000" in codes)


def anemia(codes: set[str]) -> int | None:
    """1 with 285.1 and without 285.2, 0 the other way round; None with both or none.

    Differs from the papers' text, which calls chronic anemia the positive class: their code, and the counts that they
    print, have the acute one (285.1) as here.
    """
    return None if ("2851" in codes) == ("2852" in codes) else int("2851" in codes)


TASKS = {
    "diabetes": Task(
        "MIMIC-III, diabetes",
        ("no diabetes", "diabetes"),
        ("25000",),
        diabetes,
        ("diabetes.{}.txt", "{}_50_hadm_ids.csv"),
        "reads fixed lists of admissions (train_50_hadm_ids.csv and so on, not found beside the tables)",
    ),
    "anemia": Task(
        "MIMIC-III, anemia",
        ("chronic anemia", "acute anemia"),
        ("2851", "2852"),
        anemia,
        ("anemia.{}.txt",),
        "draws admissions, as by='admission' does",
    ),
}


def read(spec: Spec, folder: Path, options: dict) -> Draft:
    """The admissions of a task, each with its discharge summaries as one text, in the splits of the user's lists.

    Without lists the option `by` decides; of `diabetes`, which has no such option, patients are drawn.

    Raises:
        DataError: a file is missing or wrong; too few admissions; `admissions` is no number from 1 up and not None.
    """
    most, task = options.get("admissions"), TASKS[spec.name]
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise DataError(f"admissions is {most!r}; allowed: a whole number from 1 up, or none for all")
    state = tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(folder.glob("*.*")))
    splits, notes = _read(spec.name, folder, options.get("by", "patient"), most, state)
    return draft_of(spec, folder, ABOUT | {"title": task.title}, task.classes, dict(splits), [*notes, HIDDEN])


@lru_cache(maxsize=1)
def _read(
    name: str, folder: Path, by: str, most: int | None, state: tuple
) -> tuple[dict[str, tuple[Instance, ...]], list[str]]:
    """Instances by split, and notes: read once as long as the `state` of the folder's files does not change."""
    task, admissions = TASKS[name], diagnoses(folder, TASKS[name].prefixes)
    labels = {key: label for key, one in admissions.items() if (label := task.label(one.codes)) is not None}
    patients = {key: admissions[key].patient for key in labels}
    lists = listed(folder, task)
    wanted = set().union(*lists.splits.values()) if lists else of_patients(patients, most)
    summaries = summaries_of(folder, {key: patients[key] for key in wanted if key in patients})
    if not summaries:
        raise DataError(f"{folder} has no discharge summary of the {len(wanted):,} admissions that {name!r} needs")
    patients = {key: patients[key] for key in sorted(summaries, key=lambda key: (patients[key], key))}
    chosen = lists or drawn(task, folder, by, patients, labels)
    notes = [chosen.source, _in_two_splits(chosen, patients)]
    if not lists and len(labels) > len(wanted):
        notes.append(
            f"{len(wanted):,} of {len(labels):,} admissions were drawn, by patient; admissions=None takes all."
        )
    if left_out := len(wanted) - len(patients):
        why = "they have no discharge summary, or no diagnosis that decides their class"
        notes.append(f"{left_out:,} of {len(wanted):,} admissions were left out: {why}.")
    instances = _instances(summaries, patients, labels)
    return {split: tuple(instances[key] for key in patients if key in of) for split, of in chosen.splits.items()}, notes


def _instances(
    summaries: dict[int, str], patients: Mapping[int, int], labels: Mapping[int, int]
) -> dict[int, Instance]:
    found, words = {}, {}
    for admission in patients:
        raw = summaries[admission]
        tokens = tuple(words.setdefault(token, token) for token in text.clinical(raw))  # one string for equal tokens
        found[admission] = Instance(str(admission), raw, tokens, labels[admission])
    return found


# --- the tables


def diagnoses(folder: Path, prefixes: Sequence[str]) -> dict[int, Admission]:
    """Every admission that has a diagnosis.

    Args:
        prefixes: of codes, written without a dot as the file has them: "2852" is 285.2 and all below it.
    Raises:
        DataError: the file is missing or wrong; an admission of two patients.
    """
    path, found = _located(folder, "DIAGNOSES_ICD"), {}
    for chunk in _chunks(path, DIAGNOSES):
        patients, admissions = _numbers(path, chunk["SUBJECT_ID"]), _numbers(path, chunk["HADM_ID"])
        codes = chunk["ICD9_CODE"].str.strip().str.replace(".", "")
        for row, patient, admission, code in zip(chunk.index, patients, admissions, codes, strict=True):
            if code:
                known = found.setdefault(admission, Admission(patient, set()))
                if known.patient != patient:
                    raise DataError(f"{path}, row {row}: its admission is of another patient above; {TAKE}")
                known.codes.update(prefix for prefix in prefixes if code.startswith(prefix))
    return found


def summaries_of(folder: Path, patients: Mapping[int, int]) -> dict[int, str]:
    """Admission -> its discharge summaries as one text, reports before addenda, then by date.

    Notes of other kinds, those marked as errors, and those of other admissions are left out.

    Args:
        patients: admission -> patient, of the admissions to read.
    Raises:
        DataError: the file is missing or wrong; a note of another patient than its admission.
    """
    path = _located(folder, "NOTEEVENTS")
    notes = pd.concat([_summaries(path, chunk, patients) for chunk in _chunks(path, NOTES)])
    notes = notes.sort_values(["HADM_ID", "addendum", "CHARTDATE", "CHARTTIME", "ROW_ID"])
    return {admission: " ".join(texts).strip() for admission, texts in notes.groupby("HADM_ID")["TEXT"]}


def _summaries(path: Path, chunk: pd.DataFrame, patients: Mapping[int, int]) -> pd.DataFrame:
    """The discharge summaries among some rows."""
    category = chunk["CATEGORY"].str.strip().str.lower()
    _refuse(path, category == "", "CATEGORY is missing", f"allowed: all columns in every row; {TAKE}")
    kept = chunk[(category == "discharge summary") & (chunk["ISERROR"].str.strip() == "")]
    kept = kept[kept["HADM_ID"].str.strip() != ""]
    kept = kept.assign(HADM_ID=_numbers(path, kept["HADM_ID"]))
    kept = kept[kept["HADM_ID"].isin(patients.keys())]
    kept = kept.assign(
        ROW_ID=_numbers(path, kept["ROW_ID"]),
        CHARTTIME=kept["CHARTTIME"].str.strip(),
        addendum=kept["DESCRIPTION"].str.strip().str.lower() != "report",
    )
    other = _numbers(path, kept["SUBJECT_ID"]) != kept["HADM_ID"].map(patients)
    _refuse(path, other, "its admission is of another patient in DIAGNOSES_ICD", "take both of one version")
    no_date = ~kept["CHARTDATE"].str.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").astype(bool)
    _refuse(path, no_date, "CHARTDATE is no date as 2101-12-31", TAKE)
    _refuse(path, kept["TEXT"] == "", "TEXT is missing", TAKE)
    for row, note in kept["TEXT"].items():
        files.sound(note, f"{path}, row {row}: TEXT")
    return kept.assign(CHARTDATE=kept["CHARTDATE"].str[:10])


def _located(folder: Path, table: str) -> Path:
    """The file of a table, packed or not, whatever the case of its name; DataError with ACCESS where it is missing."""
    there = {place.name.upper(): place for place in sorted(folder.glob("*"))}
    for name in (f"{table}.CSV", f"{table}.CSV.GZ"):
        if name in there:
            return there[name]
    raise DataError(f"{folder} has no {table}.csv or {table}.csv.gz; it has {files.listing(folder)}; {ACCESS}")


def _chunks(path: Path, columns: list[str]) -> Iterator[pd.DataFrame]:
    """These columns of a table, some rows at a time, as text; the index is the row, that of the header being 1.

    Raises:
        DataError: a column is missing; no rows; no CSV; a damaged file.
    """
    header = None
    with files.soundly_read(path), pd.read_csv(path, chunksize=CHUNK, **files.CSV) as chunks:
        for chunk in chunks:
            chunk.index += 1
            if header is None:
                header, chunk = chunk.iloc[0].str.strip().str.upper(), chunk.iloc[1:]
                _refuse_other_columns(path, header, columns)
            chunk = chunk.set_axis(header, axis=1)[columns]
            yield chunk[(chunk != "").any(axis=1)]


def _refuse_other_columns(path: Path, header: pd.Series, columns: list[str]) -> None:
    if missing := [name for name in columns if name not in set(header)]:
        are_names = header.str.fullmatch(r"[A-Z][A-Z0-9_]{0,19}").all()  # else a row of data, which is not shown
        there = f"it has {', '.join(header)}" if are_names else "its first row does not name columns"
        allowed = f"allowed: the columns of MIMIC-III v1.4, among them {', '.join(columns)}"
        raise DataError(f"{path} has no column {missing[0]}: {there}; {allowed}")


def _numbers(path: Path, values: pd.Series) -> pd.Series:
    """Whole numbers, also written as 12345.0; DataError, which does not show the value, for anything else."""
    found = values.str.strip().str.extract(r"^([0-9]+)(?:\.0*)?$", expand=False)
    allowed = "allowed: whole numbers"
    _refuse(path, values.str.strip() == "", f"{values.name} is missing", allowed)
    _refuse(path, found.isna(), f"{values.name} is no whole number", allowed)
    return found.astype("int64")


def _refuse(path: Path, wrong: pd.Series, what: str, advice: str) -> None:
    """Raises DataError with the first row that is wrong, if any is."""
    if wrong.any():
        raise DataError(f"{path}, row {wrong.idxmax()}: {what}; {advice}")


# --- the splits


def _in_two_splits(division: Division, patients: Mapping[int, int]) -> str:
    pairs = {(patients[one], split) for split, of in division.splits.items() for one in of if one in patients}
    several = sum(count > 1 for count in Counter(patient for patient, _ in pairs).values())
    return f"{several:,} of {len(set(patients.values())):,} patients stand in more than one split."


def listed(folder: Path, task: Task) -> Division | None:
    """The splits of the user's lists, one HADM_ID a line; None where there are no lists.

    A first line HADM_ID and empty lines are left out.

    Raises:
        DataError: not all three lists are there, or lists under two names; an empty list; a line that is no number; an
            admission that is listed twice.
    """
    named = [{split: folder / name.format(split) for split in ("train", "dev", "test")} for name in task.lists]
    found = [paths for paths in named if any(path.exists() for path in paths.values())]
    if not found:
        return None
    have = [[path.name for path in paths.values() if path.exists()] for paths in found]
    if len(found) > 1:
        names = " and ".join(names[0] for names in have)
        raise DataError(f"{folder} has {names}, lists under two names; take those out that are not to be read")
    missing = [path.name for path in found[0].values() if not path.exists()]
    if missing:
        there = ", ".join(have[0])
        raise DataError(f"{folder} has {there}, but no {missing[0]}; allowed: lists of all three splits, or none")
    splits, names = {split: _admissions(path) for split, path in found[0].items()}, ", ".join(have[0])
    if twice := sum(map(len, splits.values())) - len(set().union(*splits.values())):
        raise DataError(f"{folder}: of the admissions in {names} {twice:,} are listed twice; allowed: each once")
    return Division({split: frozenset(of) for split, of in splits.items()}, f"The splits are as listed in {names}.")


def _admissions(path: Path) -> list[int]:
    content = files.decode(files.read_bytes(path), str(path)).removeprefix("\ufeff")
    lines = pd.Series(content.split("\n"), dtype=object, name="the admission").str.strip()
    lines.index += 1
    lines = lines[(lines != "") & ~((lines.index == 1) & (lines.str.strip('"').str.upper() == "HADM_ID"))]
    if lines.empty:
        raise DataError(f"{path} is empty; it needs one admission (HADM_ID) a line")
    return _numbers(path, lines).tolist()


def of_patients(patients: Mapping[int, int], most: int | None) -> set[int]:
    """Admissions of patients drawn at random, always the same ones, together at most `most`; None: all.

    Args:
        patients: admission -> patient. Of a patient all admissions are taken, or none.
    """
    if most is None:
        return set(patients)
    of_patient: dict[int, list[int]] = {}
    for admission, patient in patients.items():
        of_patient.setdefault(patient, []).append(admission)
    order, chosen = sorted(of_patient), set()
    random.Random("patients drawn").shuffle(order)
    for patient in order:
        if len(chosen) + len(of_patient[patient]) > most:
            break
        chosen.update(of_patient[patient])
    return chosen


def drawn(task: Task, folder: Path, by: str, patients: Mapping[int, int], labels: Mapping[int, int]) -> Division:
    """Splits drawn with fixed seeds, each class in its share.

    By "patient" none stands in two splits, and a patient's class is 1 where one of the admissions is. By "admission" it
    is done as in Jain & Wallace's code: negatives first, each by patient and number, since the order decides the draw.

    Args:
        patients: admission -> patient. labels: admission -> class.
    Raises:
        DataError: too few admissions.
    """
    try:
        if by == "admission":
            order = sorted(patients, key=lambda one: (labels[one], patients[one], one))
            return Division(_divided(order, labels), f"Admissions are drawn as in the paper's code: {SHARES}.")
        classes: dict[int, int] = {}
        for admission, patient in patients.items():
            classes[patient] = max(classes.get(patient, 0), labels[admission])
        chosen = _divided(sorted(classes), classes)
    except ValueError as error:
        raise DataError(
            f"{folder}: {len(patients):,} admissions are too few to divide ({task.title}): {error}"
        ) from None
    splits = {split: frozenset(one for one in patients if patients[one] in of) for split, of in chosen.items()}
    return Division(splits, f"Differs from the paper, which {task.paper}: patients are drawn, {SHARES}.")


def _divided(units: list[int], classes: Mapping[int, int]) -> dict[str, frozenset[int]]:
    """The units of each split, by the shares and seeds of Jain & Wallace's code for anemia."""
    rest, test = divided(units, 12939, test_size=0.2, stratify=[classes[one] for one in units])
    train, dev = divided(rest, 13448, test_size=0.15, stratify=[classes[one] for one in rest])
    return {"train": frozenset(train), "dev": frozenset(dev), "test": frozenset(test)}


PREPARED = (
    "the discharge summaries of an admission, reports before addenda, as one text; spaCy's English tokens, "
    "lower-case, <DE> for what was taken out for privacy, runs of one character collapsed, qqq for tokens with a "
    "digit; words in at least 5 texts"
)
_spec = partial(
    Spec, read=read, folder="mimic", page=PAGE, shorter_than=4000, min_df=5, access=ACCESS, confidential=True
)
SPECS = (
    _spec(
        "diabetes",
        preprocess=f"MIMIC-III, positive with a code 250.00: {PREPARED}; more than 6 and fewer than 4000 tokens; "
        "splits of the user's lists of admissions, else by patient.",
        options={"admissions": ADMISSIONS},
        longer_than=6,
    ),
    _spec(
        "anemia",
        preprocess=f"MIMIC-III, acute (285.1) against chronic (285.2) anemia: {PREPARED}; fewer than 4000 tokens; 20% "
        "test, 15% of the others dev, by patient. Differs from the paper: its code also drops the shortest text of "
        "each split.",
        options={"by": "patient"},
        choices={"by": ("patient", "admission")},
    ),
)
