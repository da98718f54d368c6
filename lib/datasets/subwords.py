"""A corpus in the subwords of a pretrained model's tokenizer, so that the model can read it."""

from bisect import bisect_left, bisect_right
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path

from lib.datasets import pretrained
from lib.datasets.corpus import SPECIALS, Corpus, Instance, Split, Vocabulary, checksum
from lib.datasets.files import DataError
from lib.datasets.text import PAIR

Spans = list[tuple[int, int]]


def in_subwords_of(corpus: Corpus, name: str, data_home: str | Path | None = None) -> Corpus:
    """The corpus in the subwords of the pretrained model of that name, as many of each text as it reads."""
    folder = pretrained.folder_of(name, data_home)
    most = pretrained.most_words(folder) - 2  # start and end
    return replace(corpus_in_subwords(corpus, pretrained.tokenizer_of(folder), most), subwords=folder)


def vocabulary_of(tokenizer) -> Vocabulary:
    """Padding, unknown, start and end, then every subword of the tokenizer, in its order."""
    subwords = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    return Vocabulary(SPECIALS + tuple(f"<unused {k}>" if word is None else word for k, word in enumerate(subwords)))


def ids_of(tokenizer) -> list[int]:
    """The tokenizer's id of each word of `vocabulary_of`; DataError where it puts no cls and sep around a text."""
    pad, unk, cls, sep = (getattr(tokenizer, f"{name}_token_id", None) for name in ("pad", "unk", "cls", "sep"))
    around = tokenizer("a")["input_ids"]
    if pad is None or (around[0], around[-1]) != (cls, sep):
        seen = " ".join(tokenizer.convert_ids_to_tokens(around))
        raise DataError(f"the tokenizer makes {seen!r} of 'a'; it needs a pad token, cls before a text and sep after")
    unk = pad if unk is None else unk  # byte-level: nothing is unknown
    return [pad, unk, cls, sep, *range(len(tokenizer))]


def corpus_in_subwords(corpus: Corpus, tokenizer, most: int) -> Corpus:
    """The same texts as they were written, in a tokenizer's subwords, the first `most` of each text.

    Rationales and sentences become spans of subwords by where their words stand in the text.
    """
    kind, vocabulary, splits = type(tokenizer).__name__, vocabulary_of(tokenizer), {}
    notes = [f"Tokens are the subwords of a tokenizer, {kind}, of the texts as they were written."]
    for split in corpus.splits:
        first, between, second = map(list, zip(*(one.text.partition(PAIR) for one in split.instances), strict=True))
        second, room = (second, most + 2) if any(between) else (None, None)  # pairs are cut as the tokenizer cuts them
        how = {"truncation": bool(room), "max_length": room, "return_offsets_mapping": True, "verbose": False}
        read = tokenizer(first, second, **how)
        pieces = [tokenizer.convert_ids_to_tokens(ids[1:-1]) for ids in read["input_ids"]]
        made = list(map(in_pieces, split.instances, pieces, [offsets[1:-1] for offsets in read["offset_mapping"]]))
        kept = tuple(cut(one, most) for one in made if one.tokens)
        if len(kept) < len(made):
            notes.append(f"{len(made) - len(kept):,} texts of {split.name} without a subword were left out.")
        notes += ["The separators between two texts count as words."] * (split.name == "test" and all(between))
        if longer := sum(len(one.ids) > most + 2 or bool(one.overflowing) for one in read.encodings):
            notes.append(f"{longer:,} texts of {split.name} were cut after {most:,} subwords.")
        known = [sum(one.rationale is not None for one in of) for of in (split.instances, made)]
        if lost := known[0] - known[1]:
            notes.append(f"The reasons of {lost:,} texts of {split.name} could not be found in their subwords.")
        splits[split.name] = Split(split.name, kept, vocabulary)
    made = {"vocabulary": vocabulary, "checksum": checksum(splits.values(), vocabulary)}
    return replace(corpus, **splits, **made, notes=(*corpus.notes, *notes))


def in_pieces(text: Instance, pieces: list[str], offsets: Spans) -> Instance:
    """A text in pieces that have those offsets in its characters; what is of words is None if these are not found."""
    rationale = sentences = None
    if (text.rationale or text.sentences) and PAIR not in text.text and (words := places_of(text)):
        starts, ends = zip(*offsets, strict=True) if offsets else ((), ())

        def piece(first: int, end: int) -> tuple[int, int]:  # [first, end) of words -> of pieces
            return bisect_right(ends, words[first][0]), bisect_left(starts, words[end - 1][1])

        rationale = tuple(piece(*span) for span in text.rationale or ()) or None
        if text.sentences:
            begins = [bisect_left(starts, words[first][0]) for first in accumulate(text.sentences[:-1])]
            sizes = [end - start for start, end in pairwise([0, *begins, len(pieces)])]
            sentences = tuple(filter(None, sizes))
    return replace(text, tokens=tuple(pieces), rationale=rationale, sentences=sentences)


def places_of(text: Instance) -> Spans:
    """[start, end) of each word in the characters of its text, whatever the case; empty where one is not found."""
    places, at, lower = [], 0, text.text.lower()
    for word in text.tokens:
        start = lower.find(word.lower(), at)
        if start < 0 or len(lower) != len(text.text):
            return []
        places.append((start, at := start + len(word)))
    return places


def cut(text: Instance, most: int) -> Instance:
    """The first `most` tokens of a text, and what is said of these."""
    if len(text.tokens) <= most:
        return text
    spans = tuple((start, min(end, most)) for start, end in text.rationale or () if start < most) or None
    sentences, left = [], most
    for size in text.sentences or ():
        sentences += [min(size, left)] if left > 0 else []
        left -= size
    return replace(text, tokens=text.tokens[:most], rationale=spans, sentences=tuple(sentences) or None)
