"""Discharge summaries of MIMIC-III v1.4, from a user's own NOTEEVENTS and DIAGNOSES_ICD: `diabetes` and `anemia`.

Jain & Wallace (2019), section 3.2. Nothing is written: the tables are read in chunks, and memory holds what is kept. No
message shows the content of a row: messages reach terminals, logs and executed notebooks.
"""

import random
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
    label     (admission x prefix, True where one of its codes starts so) -> the class of each admission of the task
    lists     name of a file with the admissions of a split; of diabetes as in github.com/jamesmullenbach/caml-mimic
    paper     how the paper divides the admissions
    most      admissions that are read where there are no lists; None: all
    """

    title: str
    classes: tuple[str, str]
    prefixes: tuple[str, ...]
    label: Callable[[pd.DataFrame], pd.Series]
    lists: str
    paper: str
    most: int | None = None


def diabetes(found: pd.DataFrame) -> pd.Series:
    """1 with a code that starts 250.00, diabetes without complication; else 0."""
    return found["25000"].astype(int)


def anemia(found: pd.DataFrame) -> pd.Series:
    """1 with 285.1 and without 285.2, 0 with 285.2 and without 285.1; with both or neither an admission is left out.

    Differs from the papers' text, which calls chronic anemia the positive class: their code, and the counts that they
    print, have the acute one (285.1) as here.
    """
    return found["2851"][found["2851"] != found["2852"]].astype(int)


TASKS = {
    "diabetes": Task(
        "MIMIC-III, diabetes",
        ("no diabetes", "diabetes"),
        ("25000",),
        diabetes,
        "{}_50_hadm_ids.csv",
        "reads fixed lists of admissions (train_50_hadm_ids.csv and so on, not found beside the tables)",
        ADMISSIONS,
    ),
    "anemia": Task(
        "MIMIC-III, anemia",
        ("chronic anemia", "acute anemia"),
        ("2851", "2852"),
        anemia,
        "anemia.{}.txt",
        "draws admissions, so that a patient may be in several splits",
    ),
}


def read(spec: Spec, folder: Path, options: dict) -> Draft:
    """The admissions of a task, each with its discharge summaries as one text, in the splits of the user's lists.

    Without lists patients are drawn.

    Raises:
        DataError: a file is missing or wrong; too few admissions.
    """
    task = TASKS[spec.name]
    state = tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(folder.glob("*.*")))
    splits, notes = _read(spec.name, folder, state)
    return draft_of(spec, folder, ABOUT | {"title": task.title}, task.classes, dict(splits), [*notes, HIDDEN])


@lru_cache(maxsize=1)
def _read(name: str, folder: Path, state: tuple) -> tuple[dict[str, tuple[Instance, ...]], list[str]]:
    """Instances by split, and notes: read once as long as the `state` of the folder's files does not change."""
    task = TASKS[name]
    found = diagnoses(folder, task.prefixes)
    labels = task.label(found)
    patients = found["patient"][labels.index]
    lists = listed(folder, task)
    wanted = set().union(*lists[0].values()) if lists else of_patients(patients, task.most)
    texts = summaries_of(folder, patients[patients.index.isin(wanted)].to_dict())
    if not texts:
        raise DataError(f"{folder} has no discharge summary of the {len(wanted):,} admissions that {name!r} needs")
    kept = pd.DataFrame({"patient": patients, "label": labels}).loc[list(texts)].sort_values(["patient", "HADM_ID"])
    splits, source = lists or drawn(task, folder, kept)
    kept["split"] = pd.Series({admission: split for split, of in splits.items() for admission in of})
    several = (kept.groupby("patient")["split"].nunique() > 1).sum()
    notes = [source, f"{several:,} of {kept['patient'].nunique():,} patients are in more than one split."]
    if not lists and len(wanted) < len(labels):
        notes.append(f"{len(wanted):,} of {len(labels):,} admissions were drawn, by patient.")
    if left_out := len(wanted) - len(kept):
        why = "they have no discharge summary, or no diagnosis that decides their class"
        notes.append(f"{left_out:,} of {len(wanted):,} admissions were left out: {why}.")
    instances = _instances(texts, kept["label"])
    return {split: tuple(instances[key] for key in kept.index[kept["split"] == split]) for split in splits}, notes


def _instances(texts: dict[int, str], labels: pd.Series) -> dict[int, Instance]:
    found, words = {}, {}
    for admission, label in labels.items():
        tokens = text.clinical(texts[admission])
        tokens = tuple(words.setdefault(token, token) for token in tokens)  # one string for equal tokens
        found[admission] = Instance(str(admission), texts[admission], tokens, label)
    return found


# --- the tables


def diagnoses(folder: Path, prefixes: Sequence[str]) -> pd.DataFrame:
    """Every admission that has a diagnosis (index HADM_ID): its patient, and whether any of its codes starts so.

    Args:
        prefixes: of codes, written without a dot as the file has them: "2852" is 285.2 and all below it.
    Raises:
        DataError: the file is missing or wrong; an admission of two patients.
    """
    path, parts = _located(folder, "DIAGNOSES_ICD"), []
    for chunk in _chunks(path, DIAGNOSES):
        codes = chunk["ICD9_CODE"].str.strip().str.replace(".", "")
        ids = {"patient": _numbers(path, chunk["SUBJECT_ID"]), "HADM_ID": _numbers(path, chunk["HADM_ID"])}
        part = pd.DataFrame(ids | {prefix: codes.str.startswith(prefix).astype(bool) for prefix in prefixes})
        parts.append(part[codes != ""])
    rows = pd.concat(parts)
    other = rows["patient"] != rows.groupby("HADM_ID")["patient"].transform("first")
    _refuse(path, other, "its admission is of another patient above", TAKE)
    return rows.groupby("HADM_ID").max()


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
    if path := files.packed_or_not(folder, f"{table}.csv"):
        return path
    raise DataError(f"{folder} has no {table}.csv or {table}.csv.gz; it has {files.listing(folder)}; {ACCESS}")


def _chunks(path: Path, columns: list[str]) -> Iterator[pd.DataFrame]:
    """These columns of a table, some rows at a time, as text; the index is the row, that of the header being 1.

    Raises:
        DataError: a column is missing; no rows; no CSV; a damaged file.
    """
    header = None
    for chunk in files.csv_chunks(path, CHUNK):
        if header is None:
            header, chunk = chunk.iloc[0].str.strip().str.upper(), chunk.iloc[1:]
            if missing := [name for name in columns if name not in set(header)]:
                allowed = f"allowed: the columns of MIMIC-III v1.4, among them {', '.join(columns)}"
                raise DataError(f"{path} has no column {missing[0]}; {allowed}")
        yield chunk.set_axis(header, axis=1)[columns]


def _numbers(path: Path, values: pd.Series) -> pd.Series:
    """Whole numbers, also written as 12345.0; DataError, which does not show the value, for anything else."""
    found = values.str.strip().str.extract(r"^([0-9]+)(?:\.0*)?$", expand=False)
    _refuse(path, found.isna(), f"{values.name} is missing or no whole number", "allowed: whole numbers")
    return found.astype("int64")


def _refuse(path: Path, wrong: pd.Series, what: str, advice: str) -> None:
    """Raises DataError with the first row that is wrong, if any is."""
    if wrong.any():
        raise DataError(f"{path}, row {wrong.idxmax()}: {what}; {advice}")


# --- the splits


def listed(folder: Path, task: Task) -> tuple[dict[str, list[int]], str] | None:
    """The splits of the user's lists, one HADM_ID a line, and who divides so; None where there are no lists.

    A first line HADM_ID and empty lines are left out.

    Raises:
        DataError: a list is missing; a line that is no number; an admission that is listed twice.
    """
    paths = {split: folder / task.lists.format(split) for split in ("train", "dev", "test")}
    if not any(path.exists() for path in paths.values()):
        return None
    splits = {split: _admissions(path) for split, path in paths.items()}
    names = ", ".join(path.name for path in paths.values())
    if twice := sum(map(len, splits.values())) - len(set().union(*splits.values())):
        raise DataError(f"{folder}: of the admissions in {names} {twice:,} are listed twice; allowed: each once")
    return splits, f"The splits are as listed in {names}."


def _admissions(path: Path) -> list[int]:
    content = files.decode(files.read_bytes(path), str(path)).removeprefix("\ufeff")
    lines = pd.Series(content.split("\n"), dtype=object, name="the admission").str.strip()
    lines.index += 1
    lines = lines[(lines != "") & ~((lines.index == 1) & (lines.str.strip('"').str.upper() == "HADM_ID"))]
    return _numbers(path, lines).tolist()


def of_patients(patients: pd.Series, most: int | None) -> list[int]:
    """Admissions of patients drawn at random, always the same ones, together at most `most`; None: all.

    Args:
        patients: of each admission. Of a patient all admissions are taken, or none.
    """
    if most is None:
        return patients.index.tolist()
    order = sorted(set(patients.tolist()))
    random.Random("patients drawn").shuffle(order)
    sizes = patients.value_counts()[order].cumsum()
    return patients.index[patients.isin(sizes.index[sizes <= most])].tolist()


def drawn(task: Task, folder: Path, admissions: pd.DataFrame) -> tuple[dict[str, list[int]], str]:
    """Splits drawn with fixed seeds, each class in its share, and how the paper divides instead.

    No patient is in two splits, and a patient's class is 1 where that of one of the admissions is. Shares and seeds are
    those of Jain & Wallace's code for anemia.

    Args:
        admissions: patient and label of each.
    Raises:
        DataError: too few admissions.
    """
    try:
        classes = admissions.groupby("patient")["label"].max()
        rest, test = divided(classes.index.tolist(), 12939, test_size=0.2, stratify=classes.tolist())
        train, dev = divided(rest, 13448, test_size=0.15, stratify=classes[rest].tolist())
    except ValueError as error:
        few = f"{len(admissions):,} admissions are too few to divide ({task.title})"
        raise DataError(f"{folder}: {few}: {error}") from None
    chosen = {"train": train, "dev": dev, "test": test}
    splits = {split: admissions.index[admissions["patient"].isin(of)].tolist() for split, of in chosen.items()}
    return splits, f"Differs from the paper, which {task.paper}: patients are drawn, {SHARES}."


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
        longer_than=6,
    ),
    _spec(
        "anemia",
        preprocess=f"MIMIC-III, acute (285.1) against chronic (285.2) anemia: {PREPARED}; fewer than 4000 tokens; 20% "
        "test, 15% of the others dev, by patient. Differs from the paper: its code also drops the shortest text of "
        "each split.",
    ),
)
