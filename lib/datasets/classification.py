"""Classification of single texts: what is read of each dataset, and how the papers prepare it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from lib.datasets import files, planted, text
from lib.datasets.corpus import Instance
from lib.datasets.files import DataError, Row

Splits = dict[str, list[Instance]]
IMDB, ZHANG = "https://ai.stanford.edu/~amaas/data/sentiment/", "https://github.com/zhangxiangxiao/Crepe"  # pages
MADE_BY = "lib/datasets/planted.py"


@dataclass(frozen=True)
class Draft:
    """A dataset before its vocabulary is made and its lengths are filtered."""

    title: str
    classes: tuple[str, ...]
    splits: Splits
    notes: tuple[str, ...] = ()
    citation: str = ""
    licence: str = ""
    source: str = ""


@dataclass(frozen=True)
class Spec:
    """How a dataset is prepared.

    options       name -> default, of what `load` takes besides; `choices` lists the allowed values where few are
    preprocess    in words
    longer_than, shorter_than    bounds on the number of tokens, both exclusive; None: no bound
    drop_longest  Jain & Wallace's code takes a bound that is not given from the split itself: its longest texts go
    min_df        words in fewer texts of the training split are unknown
    min_count     words that occur there less often are unknown
    sentences     the texts are cut into sentences
    asks          each text comes with a question, whose answer is the label
    page          where it is published
    access        how to get the files, where a person has to ask for them
    confidential  no word of the texts is shown unless that is asked for
    """

    name: str
    read: Callable[["Spec", Path | None, dict], Draft] = field(repr=False)
    preprocess: str
    folder: str | None = None
    tokens: Callable[[str], tuple[str, ...]] | None = field(default=None, repr=False)
    divide: Callable[[Splits], Splits] | None = field(default=None, repr=False)
    options: dict[str, object] = field(default_factory=dict)
    choices: dict[str, tuple] = field(default_factory=dict)
    longer_than: int | None = None
    shorter_than: int | None = None
    drop_longest: bool = False
    min_df: int = 1
    min_count: int = 1
    sentences: bool = False
    asks: bool = False
    page: str = ""
    access: str = ""
    confidential: bool = False


def read_folder(spec: Spec, folder: Path, options: dict) -> Draft:
    """The texts of train.jsonl.gz and so on, cut into tokens and divided into splits."""
    about = files.description(folder)
    stored = ("train", "test") if spec.divide else ("train", "dev", "test")
    rows = {split: list(files.rows(folder, split)) for split in stored}
    files.refuse_duplicate_ids([row for split in stored for row in rows[split]])
    splits, notes, classes = {}, notes_of(about), tuple(about["classes"])
    for split in stored:
        splits[split] = [_instance(spec, row, about["classes"]) for row in rows[split]]
    return draft_of(spec, folder, about, classes, splits, notes)


def read_with_rationales(spec: Spec, folder: Path, options: dict) -> Draft:
    """As `read_folder`, each text with the tokens that people marked as the reason for its label.

    The spans of the file count the tokens that `text.split()` gives, so the text is cut there and nowhere else.
    """
    draft = read_folder(spec, folder, options)
    known = {row.id: row for split in draft.splits for row in files.rows(folder, split)}
    marked = {}
    for split, instances in draft.splits.items():
        spans = [files.spans_of(known[one.id], len(one.tokens)) for one in instances]
        draft.splits[split] = [replace(one, rationale=of) for one, of in zip(instances, spans, strict=True)]
        tokens = sum(len({token for span in of or () for token in range(*span)}) for of in spans)
        marked[split] = tokens / sum(len(one.tokens) for one in instances)
    shares = ", ".join(f"{share:.0%} of {split}" for split, share in marked.items())
    note = f"Rationales mark {shares} (shares of the tokens): a split is held against its own rationales alone."
    return replace(draft, notes=(*draft.notes, note))


def read_agnews(spec: Spec, folder: Path, options: dict) -> Draft:
    """World (0) against Business (2 in the file, 1 here) of AG News: their descriptions, or title and description."""
    about, splits, notes = files.description(folder), {}, []
    if len(about["classes"]) != 4:
        raise DataError(f"{folder / 'dataset.json'} has {len(about['classes'])} classes; AG News has 4")
    description, relabelled = options["text"] == "description", {0: 0, 2: 1}
    rows = {split: list(files.rows(folder, split)) for split in ("train", "test")}
    files.refuse_duplicate_ids([*rows["train"], *rows["test"]])
    for split in rows:
        of_two = [row for row in rows[split] if files.label_of(row, about["classes"]) in relabelled]
        kept = [row for row in of_two if not description or row.record.get("description") is not None]
        if len(kept) < len(of_two):
            notes.append(
                f"{len(of_two) - len(kept):,} of {len(of_two):,} World and Business texts of {split} were left out "
                "because they do not keep title and description apart; text='whole' takes them."
            )
        field_name = "description" if description else "text"
        splits[split] = [_instance(spec, row, about["classes"], field_name, relabelled) for row in kept]
    classes = (about["classes"][0], about["classes"][2])
    return draft_of(spec, folder, about, classes, splits, [*notes_of(about), *notes])


def read_planted(spec: Spec, folder: None, options: dict) -> Draft:
    """Made-up reviews whose right explanation is known."""
    return made_up(spec, "Planted reviews", lambda split: planted.records(split, **options))


def made_up(spec: Spec, title: str, records: Callable[[str], list[planted.Record]]) -> Draft:
    """The draft of planted texts: `records` makes those of a split."""
    try:
        splits = {
            split: [Instance(r.id, r.text, r.tokens, r.label, r.rationale, r.sentences) for r in records(split)]
            for split in planted.SIZES
        }
    except ValueError as error:
        raise DataError(f"dataset {spec.name!r}: {error}") from None
    return Draft(title, planted.CLASSES, splits, (), f"made by {MADE_BY}", "MIT, as the project", MADE_BY)


def _instance(spec: Spec, row: Row, classes: list[str], field_name: str = "text", relabelled: dict | None = None):
    raw, label = files.text_of(row, field_name), files.label_of(row, classes)
    return Instance(row.id, raw, spec.tokens(raw), relabelled[label] if relabelled else label)


def notes_of(about: dict) -> list[str]:
    return [f"About the files: {about['note']}."] if about.get("note") else []


def draft_of(
    spec: Spec, folder: Path, about: dict, classes: tuple[str, ...], splits: Splits, notes: list[str]
) -> Draft:
    """The draft of a folder without its empty texts, divided as the spec says; `about` is its dataset.json."""
    for split, instances in splits.items():
        splits[split] = [instance for instance in instances if instance.tokens]
        if empty := len(instances) - len(splits[split]):
            notes.append(f"{empty:,} of {len(instances):,} texts of {split} were left out because they have no tokens.")
    try:
        splits = spec.divide(splits) if spec.divide else splits
    except ValueError as error:
        sizes = ", ".join(f"{split} {len(instances):,}" for split, instances in splits.items())
        raise DataError(f"{folder} has too few texts ({sizes}) to be divided: {error}") from None
    title, citation, licence = (str(about.get(key, "")) for key in ("title", "citation", "licence"))
    return Draft(title or spec.name, classes, splits, tuple(notes), citation, licence, str(folder))


def divided(instances: list[Instance], share: float, seed: int) -> tuple[list[Instance], list[Instance]]:
    """(the others, a random `share` of the texts), both in their first order."""
    rest, chosen = _drawn(len(instances), seed, test_size=share)
    return [instances[i] for i in sorted(rest)], [instances[i] for i in sorted(chosen)]


def _drawn(number: int, seed: int, **share: float) -> list[list[int]]:
    """Positions of train and test as scikit-learn draws them, imported here: it takes longer than most datasets."""
    from sklearn.model_selection import train_test_split

    return train_test_split(range(number), random_state=seed, **share)


def divide_agnews(splits: Splits) -> Splits:
    """15% of train is dev."""
    train, dev = divided(splits["train"], 0.15, seed=16377)
    return {"train": train, "dev": dev, "test": splits["test"]}


def divide_imdb(splits: Splits) -> Splits:
    """Texts under 400 tokens; 20% of train is dev; 20% of test is test (their code draws it by train_size)."""
    short = {split: [x for x in instances if len(x.tokens) < 400] for split, instances in splits.items()}
    train, dev = divided(short["train"], 0.2, seed=1378)
    test, _ = _drawn(len(short["test"]), 1378, train_size=0.2)
    return {"train": train, "dev": dev, "test": [short["test"][i] for i in sorted(test)]}


SPECS = (
    Spec(
        "planted",
        read_planted,
        f"Made-up reviews in the frequencies and lengths of SST, their right explanation known; see {MADE_BY}.",
        options=dict(planted.DEFAULTS),
    ),
    Spec(
        "sst",
        read_folder,
        "Neutral sentences dropped; brackets and punctuation dropped, lower-case; more than 5 tokens, and fewer than "
        "the longest of the split.",
        folder="sst",
        page="https://nlp.stanford.edu/sentiment/",
        tokens=text.words,
        longer_than=5,
        drop_longest=True,
    ),
    Spec(
        "imdb",
        read_folder,
        "Lower-case words without punctuation and <br />; more than 6 tokens, under 400, and fewer than the longest of "
        "the split; 20% of train is dev, 20% of test is test (seed 1378); words in at least 10 texts.",
        folder="imdb",
        page=IMDB,
        tokens=text.keras_words,
        divide=divide_imdb,
        longer_than=6,
        drop_longest=True,
        min_df=10,
    ),
    Spec(
        "20news",
        read_folder,
        "Headers, footers and quotes removed; spaCy's English tokens, lower-case, qqq for tokens with a digit, "
        "punctuation outside tokens dropped; more than 6 and fewer than 500 tokens; words in at least 2 texts.",
        folder="20news",
        page="https://qwone.com/~jason/20Newsgroups/",
        tokens=text.generic_words,
        longer_than=6,
        shorter_than=500,
        min_df=2,
    ),
    Spec(
        "agnews",
        read_agnews,
        "World against Business, the description without the title; spaCy's English tokens, lower-case, qqq for tokens "
        "with a digit; 15% of train is dev (seed 16377); words in at least 5 texts.",
        folder="agnews4",
        page=ZHANG,
        tokens=text.generic,
        divide=divide_agnews,
        options={"text": "description"},
        choices={"text": ("description", "whole")},
        min_df=5,
    ),
    Spec(
        "eraser_movies",
        read_with_rationales,
        "Tokens as they come, apart by spaces, since the rationales count them; words in at least 2 texts.",
        folder="eraser_movies",
        page="https://www.eraserbenchmark.com/",
        tokens=lambda raw: tuple(raw.split()),
        min_df=2,
    ),
)
