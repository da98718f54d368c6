"""Inference and question answering: SNLI's pairs, bAbI's stories, CNN's cloze questions."""

from collections.abc import Iterator
from pathlib import Path

from lib.datasets.fetching.sources import Source
from lib.datasets.fetching.writing import lines_of, objects_of, one, write_dataset
from lib.datasets.files import DataError

TASKS = (1, 2, 3)


def snli(unpacked: Path, into: Path, source: Source) -> None:
    """Pairs of sentences with the label on which most annotators agree; those without one ("-") are left out."""
    splits = {split: _pairs(one(unpacked, f"snli_1.0_{split}.jsonl"), source) for split in ("train", "dev", "test")}
    write_dataset(into / "snli", source, splits)


def _pairs(path: Path, source: Source) -> Iterator[dict]:
    for where, found in objects_of(path):
        premise, hypothesis, gold = (found.get(key) for key in ("sentence1", "sentence2", "gold_label"))
        if gold == "-":
            continue
        if not isinstance(premise, str) or not isinstance(hypothesis, str) or gold not in source.classes:
            allowed = f"allowed: sentence1, sentence2, and a gold_label of {', '.join(source.classes)} or -"
            raise DataError(f"{where} has the gold_label {str(gold)[:20]!r}; {allowed}")
        texts = {"premise": premise, "hypothesis": hypothesis}
        yield {**texts, "label": source.classes.index(gold), "label_name": gold}


def babi(unpacked: Path, into: Path, source: Source) -> None:
    """Stories of numbered lines; a line with tabs is a question, its answer, and the lines that support it.

    A question's context is all of its story that went before, without the earlier questions. `train` is the version of
    10,000 questions, `train_1k` that of 1,000.
    """
    for task in TASKS:
        splits = {
            "train": _questions(one(unpacked, f"en-10k/qa{task}_*_train.txt")),
            "train_1k": _questions(one(unpacked, f"en/qa{task}_*_train.txt")),
            "test": _questions(one(unpacked, f"en-10k/qa{task}_*_test.txt")),
        }
        write_dataset(into / f"babi{task}", source, splits, f"bAbI task {task}")


def _questions(path: Path) -> Iterator[dict]:
    story, context = 0, {}
    for where, line in lines_of(path):
        number, _, text = line.partition(" ")
        question, *told = text.split("\t")
        if not number.isascii() or not number.isdigit() or len(told) not in (0, 2):
            raise DataError(
                f"{where} is {line[:60]!r}; allowed: a number and a sentence, or a question of three columns"
            )
        if number == "1":
            story, context = story + 1, {}
        if not told:
            context[int(number)] = question.strip()
            continue
        places, lines = list(context), told[1].split()
        if not all(one.isdigit() and int(one) in context for one in lines):
            raise DataError(f"{where} names the supporting lines {told[1][:40]!r}, which its story does not have")
        supporting = [int(one) for one in lines]
        yield {
            "story": story,
            "context": list(context.values()),
            "question": question.strip(),
            "answer": told[0].strip(),
            "supporting": [places.index(one) for one in supporting],
            "supporting_line_ids": supporting,
            "context_line_ids": places,
        }


def cnn(unpacked: Path, into: Path, source: Source) -> None:
    """Articles with a sentence of which one entity, `@placeholder`, is to be found; entities are @entity0, @entity1...

    Either DeepMind's folders of one file a question, in the order of their names, or Chen, Bolton & Manning's three
    files of them all, which Jain & Wallace read. The context is one text, its tokens apart by spaces.
    """
    folders = {"train": "training", "dev": "validation", "test": "test"}
    root = next((path.parent for path in sorted(unpacked.rglob("training")) if path.is_dir()), None)
    if root:
        splits = {split: _of_folder(root / name) for split, name in folders.items()}
    else:
        splits = {split: _of_file(one(unpacked, f"{split}.txt"), split) for split in folders}
    write_dataset(into / "cnn", source, splits)


def _of_folder(folder: Path) -> Iterator[dict]:
    for path in sorted(folder.glob("*.question")):
        lines = [line for _, line in lines_of(path)]
        if len(lines) < 4:
            raise DataError(
                f"{folder.name}/{path.name} has {len(lines)} parts; allowed: address, article, question, answer"
            )
        yield _cloze(path.stem, lines[1], lines[2], lines[3], f"{folder.name}/{path.name}")


def _of_file(path: Path, split: str) -> Iterator[dict]:
    lines = lines_of(path)
    for number, (where, question) in enumerate(lines, start=1):
        (_, answer), (_, article) = next(lines, ("", "")), next(lines, ("", ""))
        yield _cloze(f"{split}-{number}", article, question, answer, where)


def _cloze(id: str, article: str, question: str, answer: str, where: str) -> dict:
    article, question, answer = article.strip(), question.strip(), answer.strip()
    if "@placeholder" not in question or not answer.startswith("@entity") or not article:
        raise DataError(
            f"{where} has the answer {answer[:30]!r}; allowed: an @entity, for a question with @placeholder"
        )
    return {"id": id, "context": [article], "question": question, "answer": answer}
