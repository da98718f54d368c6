"""Discharge summaries of MIMIC-III v1.4, from a user's own NOTEEVENTS and DIAGNOSES_ICD: `diabetes` and `anemia`.

Jain & Wallace (2019), section 3.2. Nothing is written: the tables are read in chunks, and memory holds what is kept. No
message shows the content of a row: messages reach terminals, logs and executed notebooks.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path

import pandas as pd

from lib.datasets import files, text
from lib.datasets.assembly import Draft, Spec, Splits, divided, draft_of
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
CODES = {"SUBJECT_ID": "int64", "HADM_ID": "int64", "ICD9_CODE": "str"}  # columns, and what is in them
NOTES = {"ROW_ID": "int64", "HADM_ID": "Int64", "CHARTDATE": "str", "CHARTTIME": "str"}  # some are of no admission
NOTES |= {"CATEGORY": "str", "DESCRIPTION": "str", "ISERROR": "str", "TEXT": "str"}
CHUNK = 5_000  # rows in memory: some 20 MB of notes
MOST_ADMISSIONS = 11_000  # about as many as the paper's lists for diabetes name; of anemia there are fewer


def read(spec: Spec, folder: Path, options: dict, classes: tuple[str, str]) -> Draft:
    """The admissions of a task, each with its discharge summaries as one text; DataError: files not as published."""
    splits, notes = _read(spec.name, folder)
    return draft_of(spec, folder, ABOUT | {"title": f"MIMIC-III, {spec.name}"}, classes, dict(splits), [*notes, HIDDEN])


@lru_cache(maxsize=1)  # some minutes
def _read(task: str, folder: Path) -> tuple[Splits, list[str]]:
    """Instances by split, and notes."""
    admissions = labels(folder, task)
    drawn = draw_admissions(admissions["patient"])
    texts = summaries(folder, drawn)
    kept = admissions.loc[texts.index].sort_values(["patient", "HADM_ID"])
    kept["split"] = draw_splits(kept)
    splits, words = {split: [] for split in ("train", "dev", "test")}, {}  # words: one string for equal tokens
    for admission, label, split in kept[["label", "split"]].itertuples():
        tokens = tuple(words.setdefault(token, token) for token in text.clinical(texts[admission]))
        splits[split].append(Instance(str(admission), texts[admission], tokens, label))
    return splits, [
        "Differs from the paper: its lists of admissions are not public, so patients are drawn, none into two splits: "
        "20% are test, 15% of the others dev.",
        f"{len(drawn):,} of {len(admissions):,} admissions were drawn, by patient; {len(drawn) - len(kept):,} of them "
        "were left out: they have no discharge summary.",
    ]


def labels(folder: Path, task: str) -> pd.DataFrame:
    """Patient and label of each admission of a task (index HADM_ID), by its codes.

    diabetes  1 with a code that starts 250.00, diabetes without complication; else 0
    anemia    1 with 285.1 and without 285.2, 0 with 285.2 and without 285.1; left out with both or neither.
              Differs from the papers' text, which calls chronic anemia the positive class: their code, and the counts
              that they print, have the acute one (285.1) as here.
    """
    codes = pd.concat(_chunks(folder, "DIAGNOSES_ICD", CODES))
    codes = codes[codes["ICD9_CODE"] != ""]
    starts = {prefix: codes["ICD9_CODE"].str.startswith(prefix).astype(int) for prefix in ("25000", "2851", "2852")}
    admissions = codes.assign(patient=codes["SUBJECT_ID"], **starts).groupby("HADM_ID").max()
    if task == "anemia":
        admissions = admissions[admissions["2851"] != admissions["2852"]]
    return admissions.assign(label=admissions["2851" if task == "anemia" else "25000"])[["patient", "label"]]


def summaries(folder: Path, admissions: Sequence[int]) -> pd.Series:
    """HADM_ID -> the discharge summaries of the admission as one text, reports before addenda, then by date.

    Notes of other kinds and those marked as errors are left out, as are admissions without a summary.
    """
    is_summary = "CATEGORY == 'Discharge summary' and ISERROR == '' and TEXT.notna()"
    chunks = (chunk.query(is_summary) for chunk in _chunks(folder, "NOTEEVENTS", NOTES))
    notes = pd.concat([chunk[chunk["HADM_ID"].isin(admissions)] for chunk in chunks])
    notes["addendum"] = notes["DESCRIPTION"] != "Report"
    notes = notes.sort_values(["HADM_ID", "addendum", "CHARTDATE", "CHARTTIME", "ROW_ID"])
    return notes.groupby("HADM_ID")["TEXT"].agg(lambda texts: " ".join(texts).strip())


def _chunks(folder: Path, table: str, columns: dict[str, str]) -> Iterator[pd.DataFrame]:
    """These columns of a table, some rows at a time; DataError without what pandas says, which may show a row."""
    paths = [path for path in (folder / f"{table}.csv", folder / f"{table}.csv.gz") if path.exists()]
    if not paths:
        raise DataError(f"{folder} has no {table}.csv or {table}.csv.gz; {ACCESS}")
    options = {"usecols": list(columns), "dtype": columns, "keep_default_na": False, "na_values": {"HADM_ID": [""]}}
    try:
        with files.soundly_read(paths[0]), pd.read_csv(paths[0], chunksize=CHUNK, **options) as chunks:
            yield from chunks
    except DataError:
        raise
    except ValueError:
        wrong = f"it is no CSV in UTF-8, a whole number is missing, or it lacks one of {', '.join(columns)}"
        raise DataError(f"{paths[0]} is not as published: {wrong}") from None


def draw_admissions(patients: pd.Series) -> pd.Index:
    """Admissions of patients drawn at random, always the same ones, at most MOST_ADMISSIONS: all of a patient, or none.

    `patients` has the patient of each admission.
    """
    order = patients.drop_duplicates().sort_values().sample(frac=1, random_state=2019)
    sizes = patients.value_counts()[order].cumsum()
    return patients.index[patients.isin(sizes.index[sizes <= MOST_ADMISSIONS])]


def draw_splits(admissions: pd.DataFrame) -> pd.Series:
    """Admission -> split, drawn with the shares and seeds of Jain & Wallace's code for anemia, no patient in two.

    A patient's class is 1 where that of one of the admissions is, and each class has its share.
    """
    classes = admissions.groupby("patient")["label"].max()
    rest, test = divided(classes.index.tolist(), 12939, test_size=0.2, stratify=classes.tolist())
    train, dev = divided(rest, 13448, test_size=0.15, stratify=classes[rest].tolist())
    splits = dict.fromkeys(train, "train") | dict.fromkeys(dev, "dev") | dict.fromkeys(test, "test")
    return admissions["patient"].map(splits)


PREPARED = (
    "the discharge summaries of an admission, reports before addenda, as one text; spaCy's English tokens, "
    "lower-case, <DE> for what was taken out for privacy, runs of one character collapsed, qqq for tokens with a "
    "digit; words in at least 5 texts; fewer than 4000 tokens"
)
DIABETES = f"MIMIC-III, positive with a code 250.00: {PREPARED}, and more than 6; splits by patient."
ANEMIA = (
    f"MIMIC-III, acute (285.1) against chronic (285.2) anemia: {PREPARED}; splits by patient. Differs from the paper: "
    "its code also drops the shortest text of each split."
)
_spec = partial(Spec, folder="mimic", page=PAGE, shorter_than=4000, min_df=5, access=ACCESS, confidential=True)
SPECS = (
    _spec("diabetes", partial(read, classes=("no diabetes", "diabetes")), DIABETES, longer_than=6),
    _spec("anemia", partial(read, classes=("chronic anemia", "acute anemia")), ANEMIA),
)
