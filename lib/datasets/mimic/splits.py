"""Which admissions are train, dev and test: as the user's lists say, else drawn with fixed seeds."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lib.datasets import files
from lib.datasets.files import DataError
from lib.datasets.mimic.tables import number

SPLITS = ("train", "dev", "test")
# Where lists are looked for; of diabetes also the top-50 split, as github.com/jamesmullenbach/caml-mimic names it.
NAMES = {
    "diabetes": ("diabetes.{}.txt", "{}_50_hadm_ids.csv"),
    "anemia": ("anemia.{}.txt",),
}
SHARES = "20% are test, 15% of the others dev"
PAPERS = {
    "diabetes": "reads fixed lists of admissions (train_50_hadm_ids.csv and so on, not found beside the tables)",
    "anemia": "draws admissions, as by='admission' does",
}


@dataclass(frozen=True)
class Division:
    """The admissions of train, dev and test, and in a sentence who divided them."""

    splits: dict[str, frozenset[int]]
    source: str


def notes(division: Division, patients: Mapping[int, int]) -> list[str]:
    """Who divided the admissions, and how many patients (admission -> patient) stand in two splits."""
    pairs = {(patients[one], split) for split, of in division.splits.items() for one in of if one in patients}
    several = sum(count > 1 for count in Counter(patient for patient, _ in pairs).values())
    return [division.source, f"{several:,} of {len(set(patients.values())):,} patients stand in more than one split."]


def listed(folder: Path, dataset: str) -> Division | None:
    """The splits of the user's lists, one HADM_ID a line; None where there are no lists.

    A first line HADM_ID and empty lines are passed over.

    Raises:
        DataError: not all three lists are there, or lists under two names; an empty list; a line that is no number; an
            admission that is listed twice.
    """
    there = {name: [split for split in SPLITS if (folder / name.format(split)).exists()] for name in NAMES[dataset]}
    found = [name for name, of in there.items() if of]
    if not found:
        return None
    if len(found) > 1:
        names = " and ".join(name.format(there[name][0]) for name in found)
        raise DataError(f"{folder} has {names}, lists under two names; take those out that are not to be read")
    paths = {split: folder / found[0].format(split) for split in SPLITS}
    missing = [path.name for split, path in paths.items() if split not in there[found[0]]]
    if missing:
        have = ", ".join(paths[split].name for split in there[found[0]])
        raise DataError(f"{folder} has {have}, but no {missing[0]}; allowed: lists of all three splits, or none")
    splits = {split: _admissions(path) for split, path in paths.items()}
    names = ", ".join(path.name for path in paths.values())
    twice = sum(map(len, splits.values())) - len(set().union(*splits.values()))
    if twice:
        raise DataError(f"{folder}: of the admissions in {names} {twice:,} are listed twice; allowed: each once")
    return Division({split: frozenset(of) for split, of in splits.items()}, f"The splits are as listed in {names}.")


def _admissions(path: Path) -> list[int]:
    lines = files.decode(files.read_bytes(path), str(path)).removeprefix("\ufeff").split("\n")
    start = 1 if lines[0].strip().strip('"').upper() == "HADM_ID" else 0
    filled = [(place, line) for place, line in enumerate(lines[start:], start + 1) if line.strip()]
    if not filled:
        raise DataError(f"{path} is empty; it needs one admission (HADM_ID) a line")
    return [number(line, f"{path}, line {place}: the admission") for place, line in filled]


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
    order, drawn = sorted(of_patient), set()
    random.Random("patients drawn").shuffle(order)
    for patient in order:
        if len(drawn) + len(of_patient[patient]) > most:
            break
        drawn.update(of_patient[patient])
    return drawn


def drawn(dataset: str, folder: Path, by: str, patients: Mapping[int, int], labels: Mapping[int, int]) -> Division:
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
        raise DataError(f"{folder}: {len(patients):,} admissions of {dataset} are too few to divide: {error}") from None
    splits = {split: frozenset(one for one in patients if patients[one] in of) for split, of in chosen.items()}
    return Division(splits, f"Differs from the paper, which {PAPERS[dataset]}: patients are drawn, {SHARES}.")


def _divided(units: Sequence[int], classes: Mapping[int, int]) -> dict[str, frozenset[int]]:
    """The units of each split, by the shares and seeds of Jain & Wallace's code for anemia."""
    from sklearn.model_selection import train_test_split  # takes a second, and only these splits need it

    rest, test = train_test_split(units, test_size=0.2, random_state=12939, stratify=[classes[one] for one in units])
    kept = set(rest)
    rest = [one for one in units if one in kept]
    train, dev = train_test_split(rest, test_size=0.15, random_state=13448, stratify=[classes[one] for one in rest])
    return {"train": frozenset(train), "dev": frozenset(dev), "test": frozenset(test)}
