"""NOTEEVENTS and DIAGNOSES_ICD of MIMIC-III v1.4, read row by row: memory holds what is kept, and one row.

No message shows what stands in a row: messages reach terminals, logs and executed notebooks.
"""

import csv
import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, TextIO

from lib.datasets.files import DataError, csv_fields_of, soundly_read

PAGE = "https://physionet.org/content/mimiciii/1.4/"
ACCESS = (
    f"MIMIC-III is had from PhysioNet alone ({PAGE}): a credentialed account, the training in research with human "
    "subjects that it asks for, and its data use agreement, signed; then put NOTEEVENTS.csv and DIAGNOSES_ICD.csv of "
    "version 1.4, each may be .gz, into the folder mimic/"
)
LONGEST = 2**20  # characters of a field and of a line: all that a lost quote or line break can take into memory
NOTES = ("SUBJECT_ID", "HADM_ID", "CATEGORY", "ISERROR", "DESCRIPTION", "CHARTDATE", "CHARTTIME", "ROW_ID", "TEXT")
DIAGNOSES = ("SUBJECT_ID", "HADM_ID", "ICD9_CODE")


@dataclass(frozen=True)
class Admission:
    """A stay in hospital: its patient, and those of the asked prefixes that its ICD-9 codes start with."""

    patient: int
    codes: set[str]


class Note(NamedTuple):
    """A discharge summary, or an addendum to one; notes are sorted as they are read: reports first, then by date."""

    addendum: bool
    date: str
    time: str
    row: int
    text: str


def diagnoses(folder: Path, prefixes: Sequence[str]) -> dict[int, Admission]:
    """Every admission that has a diagnosis.

    Args:
        prefixes: of codes, written without a dot as the file has them: "2852" is 285.2 and all below it.
    Raises:
        DataError: the file is missing or wrong; an admission of two patients.
    """
    path, found = located(folder, "DIAGNOSES_ICD"), {}
    for line, (patient, admission, code) in rows(path, DIAGNOSES):
        if code := code.strip().replace(".", ""):
            place = f"{path}, line {line}"
            patient, admission = number(patient, f"{place}: SUBJECT_ID"), number(admission, f"{place}: HADM_ID")
            known = found.setdefault(admission, Admission(patient, set()))
            if known.patient != patient:
                raise DataError(f"{place}: its admission is of another patient above; take the file as published")
            known.codes.update(prefix for prefix in prefixes if code.startswith(prefix))
    return found


def summaries(folder: Path, patients: Mapping[int, int]) -> dict[int, list[Note]]:
    """The discharge summaries of the admissions that `patients` (admission -> patient) names, by admission.

    Notes of other kinds, those marked as errors, and those of no admission are passed over.

    Raises:
        DataError: the file is missing or wrong; a note of another patient than its admission.
    """
    path, found = located(folder, "NOTEEVENTS"), {}
    for line, (patient, admission, category, error, *note) in rows(path, NOTES):
        if category.strip().lower() != "discharge summary" or error.strip() or not admission.strip():
            continue
        place = f"{path}, line {line}"
        admission = number(admission, f"{place}: HADM_ID")
        if admission not in patients:
            continue
        if number(patient, f"{place}: SUBJECT_ID") != patients[admission]:
            raise DataError(f"{place}: its admission is of another patient in DIAGNOSES_ICD; take both of one version")
        found.setdefault(admission, []).append(_note(place, *note))
    return found


def _note(place: str, kind: str, date: str, time: str, row: str, text: str) -> Note:
    if not re.match(r"\d{4}-\d\d-\d\d", date, re.ASCII):
        raise DataError(f"{place}: CHARTDATE is no date as 2101-12-31; take the file as published")
    if "\0" in text:
        raise DataError(f"{place}: TEXT holds a NUL character, which is no text; take the file as published")
    return Note(kind.strip().lower() != "report", date[:10], time.strip(), number(row, f"{place}: ROW_ID"), text)


def located(folder: Path, table: str) -> Path:
    """The file of a table, packed or not, whatever the case of its name; DataError with ACCESS where it is missing."""
    there = {place.name.upper(): place for place in sorted(folder.glob("*"))}
    for name in (f"{table}.CSV", f"{table}.CSV.GZ"):
        if name in there:
            return there[name]
    listed = ", ".join(place.name for place in list(there.values())[:8]) or "nothing"
    raise DataError(f"{folder} has no {table}.csv or {table}.csv.gz; it has {listed}; {ACCESS}")


def rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """(line on which it starts, its values in these columns) of every row; quoted text may have line breaks.

    Raises:
        DataError: a column is missing; no rows; not CSV in UTF-8; a damaged file.
    """
    line = 1
    try:
        with soundly_read(path), _opened(path) as file:
            reader = csv.reader(iter(partial(file.readline, LONGEST), ""), strict=True)
            header = [name.strip().upper() for name in _next_row(reader) or []]
            wanted = itemgetter(*_places(path, header, columns))
            line = reader.line_num + 1
            while (row := _next_row(reader)) is not None:
                if row and len(row) != len(header):
                    raise DataError(f"{path}, line {line}, has {len(row)} columns where the header has {len(header)}")
                if row:
                    yield line, wanted(row)
                line = reader.line_num + 1
    except csv.Error as error:
        said = str(error).partition(" - ")[0]
        raise DataError(f"{path}, line {line}, starts a row that is no CSV ({said}); copy the file again") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 in or after line {line}; take the file as published") from None


def _opened(path: Path) -> TextIO:
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    return opened(path, "rt", encoding="utf-8-sig", newline="")


def _next_row(reader: Iterator[list[str]]) -> list[str] | None:
    """The next row, None after the last. The limit of fields is global, so it is raised for this one row only."""
    with csv_fields_of(LONGEST):
        return next(reader, None)


def _places(path: Path, header: list[str], columns: Sequence[str]) -> list[int]:
    missing = [name for name in columns if name not in header]
    if missing:
        are_names = header and all(re.fullmatch(r"[A-Z]\w{0,19}", name) for name in header)  # else a row of data
        there = f"it has {', '.join(header)}" if are_names else "its first row does not name columns"
        allowed = f"allowed: the columns of MIMIC-III v1.4, among them {', '.join(columns)}"
        raise DataError(f"{path} has no column {missing[0]}: {there}; {allowed}")
    return [header.index(name) for name in columns]


def number(value: str, what: str) -> int:
    """A whole number, also written as 12345.0; DataError, which does not show the value, for anything else."""
    found = re.fullmatch(r"(\d+)(?:\.0*)?", value.strip(), re.ASCII)
    if not found:
        raise DataError(f"{what} is {'missing' if not value.strip() else 'no whole number'}; allowed: whole numbers")
    return int(found[1])
