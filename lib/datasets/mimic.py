"""Discharge summaries of MIMIC-III v1.4, from a user's own NOTEEVENTS and DIAGNOSES_ICD: `diabetes` and `anemia`.

Jain & Wallace (2019), section 3.2. Nothing is written: the tables are read in chunks, and memory holds what is kept. No
message shows the content of a row: messages reach terminals, logs and executed notebooks.
"""

import random
from collections.abc import Iterator, Mapping
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
PREFIXES = ("25000", "2851", "2852")  # of the ICD-9 codes that decide: 285.2 and all below it are "2852"
CHUNK = 5_000  # rows of a table in memory: some 20 MB of notes
SPLITS, SHARES = ("train", "dev", "test"), "20% are test, 15% of the others dev"


def read(
    spec: Spec, folder: Path, options: dict, classes: tuple[str, str], lists: str, most: int | None = None
) -> Draft:
    """The admissions of a task, each with its discharge summaries as one text, in the splits of the user's lists.

    Without lists patients are drawn.

    Args:
        lists: name of a file with the admissions of a split.
        most: admissions that are read where there are no lists; None: all.
    Raises:
        DataError: a file is missing or wrong; too few admissions.
    """
    state = tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(folder.glob("*.*")))
    splits, notes = _read(spec.name, folder, lists, most, state)
    return draft_of(spec, folder, ABOUT | {"title": f"MIMIC-III, {spec.name}"}, classes, dict(splits), [*notes, HIDDEN])


@lru_cache(maxsize=1)
def _read(
    task: str, folder: Path, lists: str, most: int | None, state: tuple
) -> tuple[dict[str, list[Instance]], list[str]]:
    """Instances by split, and notes: read once as long as the `state` of the folder's files does not change."""
    admissions, of_lists = labels(folder, task), listed(folder, lists)
    if of_lists is None:
        wanted = draw_admissions(admissions["patient"], most)
        notes = [f"Differs from the paper: {lists.format('train')} is not there, so patients are drawn, {SHARES}."]
        notes.append(f"{len(wanted):,} of {len(admissions):,} admissions were drawn, by patient.")
    else:
        wanted = of_lists.index
        notes = [f"The splits are as listed in {', '.join(map(lists.format, SPLITS))}."]
    texts = summaries(folder, admissions.loc[admissions.index.isin(wanted), "patient"].to_dict())
    if not texts:
        raise DataError(f"{folder} has no discharge summary of the {len(wanted):,} admissions that {task!r} needs")
    kept = admissions.loc[list(texts)].sort_values(["patient", "HADM_ID"])
    kept["split"] = draw_splits(kept, folder) if of_lists is None else of_lists
    several = (kept.groupby("patient")["split"].nunique() > 1).sum()
    notes.append(f"{several:,} of {kept['patient'].nunique():,} patients are in more than one split.")
    if left_out := len(wanted) - len(kept):
        why = "they have no discharge summary, or no diagnosis that decides their class"
        notes.append(f"{left_out:,} of {len(wanted):,} admissions were left out: {why}.")
    splits, words = {split: [] for split in SPLITS}, {}  # words: one string for equal tokens
    for admission, label, split in kept[["label", "split"]].itertuples():
        tokens = tuple(words.setdefault(token, token) for token in text.clinical(texts[admission]))
        splits[split].append(Instance(str(admission), texts[admission], tokens, label))
    return splits, notes


# --- the tables


def labels(folder: Path, task: str) -> pd.DataFrame:
    """Patient and label of each admission of a task (index HADM_ID), by its codes.

    diabetes  1 with a code that starts 250.00, diabetes without complication; else 0
    anemia    1 with 285.1 and without 285.2, 0 with 285.2 and without 285.1; left out with both or neither.
              Differs from the papers' text, which calls chronic anemia the positive class: their code, and the counts
              that they print, have the acute one (285.1) as here.

    Raises:
        DataError: the file is missing or wrong; an admission of two patients.
    """
    path, parts = _located(folder, "DIAGNOSES_ICD"), []
    for chunk in _chunks(path, ["SUBJECT_ID", "HADM_ID", "ICD9_CODE"]):
        codes = chunk["ICD9_CODE"].str.replace(".", "")
        ids = {"patient": _numbers(path, chunk["SUBJECT_ID"]), "HADM_ID": _numbers(path, chunk["HADM_ID"])}
        part = pd.DataFrame(ids | {prefix: codes.str.startswith(prefix).astype(int) for prefix in PREFIXES})
        parts.append(part[codes != ""])
    rows = pd.concat(parts)
    other = rows["patient"] != rows.groupby("HADM_ID")["patient"].transform("first")
    _refuse(path, other, "its admission is of another patient above")
    admissions = rows.groupby("HADM_ID").max()
    if task == "anemia":
        admissions = admissions[admissions["2851"] != admissions["2852"]]
    return admissions.assign(label=admissions["2851" if task == "anemia" else "25000"])[["patient", "label"]]


def summaries(folder: Path, patients: Mapping[int, int]) -> dict[int, str]:
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
    _refuse(path, chunk["CATEGORY"] == "", "CATEGORY is missing; allowed: all columns in every row")
    discharge = chunk["CATEGORY"].str.lower() == "discharge summary"
    kept = chunk[discharge & (chunk["ISERROR"] == "") & (chunk["HADM_ID"] != "")]
    kept = kept.assign(HADM_ID=_numbers(path, kept["HADM_ID"]))
    kept = kept[kept["HADM_ID"].isin(patients.keys())]
    kept = kept.assign(ROW_ID=_numbers(path, kept["ROW_ID"]), addendum=kept["DESCRIPTION"].str.lower() != "report")
    other = _numbers(path, kept["SUBJECT_ID"]) != kept["HADM_ID"].map(patients)
    _refuse(path, other, "its admission is of another patient in DIAGNOSES_ICD")
    no_date = ~kept["CHARTDATE"].str.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").astype(bool)
    _refuse(path, no_date, "CHARTDATE is no date as 2101-12-31")
    _refuse(path, kept["TEXT"] == "", "TEXT is missing")
    for row, note in kept["TEXT"].items():
        files.sound(note, f"{path}, row {row}: TEXT")
    return kept.assign(CHARTDATE=kept["CHARTDATE"].str[:10])


def _located(folder: Path, table: str) -> Path:
    """The file of a table, whatever the case of its name."""
    for path in sorted(folder.glob("*")):
        if path.name.lower() in (f"{table.lower()}.csv", f"{table.lower()}.csv.gz"):
            return path
    raise DataError(f"{folder} has no {table}.csv or {table}.csv.gz; it has {files.listing(folder)}; {ACCESS}")


def _chunks(path: Path, columns: list[str]) -> Iterator[pd.DataFrame]:
    """These columns of a table, some rows at a time, as text without spaces around it, but of notes as it is.

    The index is the row, that of the header being 1; blank rows are left out.

    Raises:
        DataError: a column is missing; no rows; no CSV; a damaged file.
    """
    header = None
    with files.soundly_read(path), pd.read_csv(path, chunksize=CHUNK, **files.CSV) as chunks:
        for chunk in chunks:
            chunk.index += 1
            if header is None:
                header, chunk = chunk.iloc[0].str.strip().str.upper(), chunk.iloc[1:]
                if missing := [name for name in columns if name not in set(header)]:
                    allowed = f"allowed: the columns of MIMIC-III v1.4, among them {', '.join(columns)}"
                    raise DataError(f"{path} has no column {missing[0]}; {allowed}")
            filled = chunk[(chunk != "").any(axis=1)].set_axis(header, axis=1)[columns]
            yield filled.apply(lambda column: column if column.name == "TEXT" else column.str.strip())


def _numbers(path: Path, values: pd.Series) -> pd.Series:
    """Whole numbers, also written as 12345.0; DataError, which does not show the value, for anything else."""
    whole = values.str.extract(r"^([0-9]+)(?:\.0*)?$", expand=False)
    _refuse(path, whole.isna(), f"{values.name} is missing or no whole number")
    return whole.astype("int64")


def _refuse(path: Path, wrong: pd.Series, what: str) -> None:
    """Raises DataError with the first row that is wrong, if any is."""
    if wrong.any():
        raise DataError(f"{path}, row {wrong.idxmax()}: {what}; take the file as published")


# --- the splits


def listed(folder: Path, lists: str) -> pd.Series | None:
    """Admission -> split by the user's lists, one HADM_ID a line; None where there are no lists.

    A first line HADM_ID and empty lines are left out.

    Raises:
        DataError: a list is missing; a line that is no number; an admission that is listed twice.
    """
    paths = {split: folder / lists.format(split) for split in SPLITS}
    if not any(path.exists() for path in paths.values()):
        return None
    splits = pd.concat([pd.Series(split, index=_admissions(path), dtype=object) for split, path in paths.items()])
    if twice := splits.index.duplicated().sum():
        names = ", ".join(path.name for path in paths.values())
        raise DataError(f"{folder}: of the admissions in {names} {twice:,} are listed twice; allowed: each once")
    return splits


def _admissions(path: Path) -> list[int]:
    content = files.decode(files.read_bytes(path), str(path)).removeprefix("\ufeff")
    lines = pd.Series(content.split("\n"), dtype=object, name="the admission").str.strip()
    lines.index += 1
    header = (lines.index == 1) & (lines.str.strip('"').str.upper() == "HADM_ID")
    return _numbers(path, lines[(lines != "") & ~header]).tolist()


def draw_admissions(patients: pd.Series, most: int | None) -> pd.Index:
    """Admissions of patients drawn at random, always the same ones, together at most `most`; None: all.

    Args:
        patients: of each admission. Of a patient all admissions are taken, or none.
    """
    if most is None:
        return patients.index
    order = sorted(set(patients.tolist()))
    random.Random("patients drawn").shuffle(order)
    sizes = patients.value_counts()[order].cumsum()
    return patients.index[patients.isin(sizes.index[sizes <= most])]


def draw_splits(admissions: pd.DataFrame, folder: Path) -> pd.Series:
    """Admission -> split, drawn with fixed seeds: no patient is in two splits.

    A patient's class is 1 where that of one of the admissions is, and each class has its share. Shares and seeds are
    those of Jain & Wallace's code for anemia.

    Args:
        admissions: patient and label of each.
    Raises:
        DataError: too few admissions.
    """
    classes = admissions.groupby("patient")["label"].max()
    try:
        rest, test = divided(classes.index.tolist(), 12939, test_size=0.2, stratify=classes.tolist())
        train, dev = divided(rest, 13448, test_size=0.15, stratify=classes[rest].tolist())
    except ValueError as error:
        raise DataError(f"{folder}: {len(admissions):,} admissions are too few to divide: {error}") from None
    splits = dict.fromkeys(train, "train") | dict.fromkeys(dev, "dev") | dict.fromkeys(test, "test")
    return admissions["patient"].map(splits)


PREPARED = (
    "the discharge summaries of an admission, reports before addenda, as one text; spaCy's English tokens, "
    "lower-case, <DE> for what was taken out for privacy, runs of one character collapsed, qqq for tokens with a "
    "digit; words in at least 5 texts; fewer than 4000 tokens"
)
_spec = partial(Spec, folder="mimic", page=PAGE, shorter_than=4000, min_df=5, access=ACCESS, confidential=True)
SPECS = (
    _spec(
        "diabetes",  # lists as in github.com/jamesmullenbach/caml-mimic; without them about as many as they name
        partial(read, classes=("no diabetes", "diabetes"), lists="{}_50_hadm_ids.csv", most=11_000),
        f"MIMIC-III, positive with a code 250.00: {PREPARED}, and more than 6; splits of the user's lists of "
        "admissions, else by patient.",
        longer_than=6,
    ),
    _spec(
        "anemia",
        partial(read, classes=("chronic anemia", "acute anemia"), lists="anemia.{}.txt"),
        f"MIMIC-III, acute (285.1) against chronic (285.2) anemia: {PREPARED}; splits of the user's lists, else by "
        "patient. Differs from the paper: its code also drops the shortest text of each split.",
    ),
)
