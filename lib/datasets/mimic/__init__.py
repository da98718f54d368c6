"""Discharge summaries of MIMIC-III, from a user's own NOTEEVENTS and DIAGNOSES_ICD: `diabetes` and `anemia`.

Jain & Wallace (2019), section 3.2. Nothing is written: what is read stays in memory.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lib.datasets import text
from lib.datasets.classification import Draft, Spec, draft_of
from lib.datasets.corpus import Instance
from lib.datasets.files import DataError
from lib.datasets.mimic import splits as splitting
from lib.datasets.mimic import tables
from lib.datasets.mimic.tables import ACCESS, PAGE, Note

ADMISSIONS = 11_000  # of diabetes without lists: about as many as the paper's lists name; all are five times as many
ABOUT = {
    "citation": "Johnson et al. 2016, MIMIC-III, a freely accessible critical care database",
    "licence": "PhysioNet Credentialed Health Data License and data use agreement: never pass a text on",
}
HIDDEN = "The texts are confidential: this report shows their words only where show_text is yes, else their places."
Divided = tuple[dict[str, tuple[Instance, ...]], tuple[str, ...]]  # instances of each split, notes


@dataclass(frozen=True)
class Task:
    """What the ICD-9 codes of an admission tell about it.

    prefixes  of the codes that decide, without a dot
    label     (those of the prefixes that the admission's codes start with) -> its class; None: not of this task
    """

    title: str
    classes: tuple[str, str]
    prefixes: tuple[str, ...]
    label: Callable[[set[str]], int | None]


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
    "diabetes": Task("MIMIC-III, diabetes", ("no diabetes", "diabetes"), ("25000",), diabetes),
    "anemia": Task("MIMIC-III, anemia", ("chronic anemia", "acute anemia"), ("2851", "2852"), anemia),
}


def read(spec: Spec, folder: Path, options: dict) -> Draft:
    """The admissions of a task, each with its discharge summaries as one text, in the splits of the user's lists.

    Without lists, as the option `by` says; of `diabetes`, which has no such option, by patient.

    Raises:
        DataError: a file is missing or wrong; too few admissions; `admissions` is no number from 1 up and not None.
    """
    most = options.get("admissions")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise DataError(f"admissions is {most!r}; allowed: a whole number from 1 up, or none for all")
    files = sorted(path for path in folder.glob("*") if path.is_file())
    state = tuple((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in files)
    splits, notes = _read(spec.name, folder, options.get("by", "patient"), most, state)
    task = TASKS[spec.name]
    return draft_of(spec, folder, ABOUT | {"title": task.title}, task.classes, dict(splits), [*notes, HIDDEN])


@lru_cache(maxsize=1)
def _read(name: str, folder: Path, by: str, most: int | None, state: tuple) -> Divided:
    """Read once as long as the `state` of the folder's files does not change: it takes minutes."""
    admissions, label = tables.diagnoses(folder, TASKS[name].prefixes), TASKS[name].label
    labels = {key: found for key, one in admissions.items() if (found := label(one.codes)) is not None}
    patients = {key: admissions[key].patient for key in labels}
    lists = splitting.listed(folder, name)
    asked = set().union(*lists.splits.values()) if lists else splitting.of_patients(patients, most)
    patients = {key: patients[key] for key in asked if key in patients}
    summaries = tables.summaries(folder, patients)
    if not summaries:
        raise DataError(f"{folder} has no discharge summary of the {len(asked):,} admissions that {name!r} asks for")
    patients = {key: patients[key] for key in sorted(summaries, key=lambda key: (patients[key], key))}
    chosen = lists or splitting.drawn(name, folder, by, patients, labels)
    notes = [*splitting.notes(chosen, patients), *_left_out(len(patients), len(asked), 0 if lists else len(labels))]
    instances = _instances(summaries, patients, labels)
    splits = {split: tuple(instances[key] for key in patients if key in of) for split, of in chosen.splits.items()}
    return splits, tuple(notes)


def _left_out(kept: int, asked: int, of: int) -> list[str]:
    notes = [f"{asked:,} of {of:,} admissions were drawn, by patient; admissions=None takes all."] if of > asked else []
    if kept < asked:
        why = "they have no discharge summary, or no diagnosis that tells their class"
        notes.append(f"{asked - kept:,} of {asked:,} admissions were left out: {why}.")
    return notes


def _instances(
    summaries: dict[int, list[Note]], patients: Mapping[int, int], labels: Mapping[int, int]
) -> dict[int, Instance]:
    """Of each admission its notes as one text; `summaries` is emptied, so that no text is held twice."""
    found, words = {}, {}
    for admission in patients:
        raw = " ".join(note.text for note in sorted(summaries.pop(admission))).strip()
        tokens = tuple(words.setdefault(token, token) for token in text.clinical(raw))  # one string for equal tokens
        found[admission] = Instance(str(admission), raw, tokens, labels[admission])
    return found


PREPARED = (
    "the discharge summaries of an admission, reports before addenda, as one text; spaCy's English tokens, "
    "lower-case, <DE> for what was taken out for privacy, runs of one character collapsed, qqq for tokens with a "
    "digit; words in at least 5 texts"
)
SPECS = (
    Spec(
        "diabetes",
        read,
        f"MIMIC-III, positive with a code 250.00: {PREPARED}; more than 6 and fewer than 4000 tokens; splits of the "
        "user's lists of admissions, else by patient.",
        folder="mimic",
        page=PAGE,
        options={"admissions": ADMISSIONS},
        longer_than=6,
        shorter_than=4000,
        min_df=5,
        access=ACCESS,
        confidential=True,
    ),
    Spec(
        "anemia",
        read,
        f"MIMIC-III, acute (285.1) against chronic (285.2) anemia: {PREPARED}; fewer than 4000 tokens; 20% test, 15% "
        "of the others dev, by patient. Differs from the paper: its code also drops the shortest text of each split.",
        folder="mimic",
        page=PAGE,
        options={"by": "patient"},
        choices={"by": ("patient", "admission")},
        shorter_than=4000,
        min_df=5,
        access=ACCESS,
        confidential=True,
    ),
)
