"""A corpus in the subwords of a pretrained model's tokenizer, so that the model can read it."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, pairwise, starmap
from pathlib import Path

from lib.datasets import pretrained
from lib.datasets.corpus import SPECIALS, Corpus, Instance, Split, Vocabulary, checksum
from lib.datasets.files import DataError
from lib.datasets.text import PAIR

LONGEST = 16  # subwords of a word: what a batch holds for each word is as wide as its longest


def in_subwords_of(corpus: Corpus, name: str, data_home: str | Path | None = None) -> Corpus:
    """The corpus in the subwords of the pretrained model of that name, as many of each text as it reads."""
    folder = pretrained.folder_of(name, data_home)
    most = pretrained.most_words(folder) - 2  # start and end
    return replace(corpus_in_subwords(corpus, pretrained.tokenizer_of(folder), most), subwords=folder)


def vocabulary_of(tokenizer, words: Mapping[str, tuple[int, ...]] | None = None) -> Vocabulary:
    """Padding, unknown, start and end, then words with the ids of their subwords; None: every subword by itself."""
    ids = ids_of(tokenizer)
    if words is None:
        subwords = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        words = {f"<unused {k}>" if word is None else word: (k,) for k, word in enumerate(subwords)}
    pieces = ((), *((k,) for k in ids[1 : len(SPECIALS)]), *words.values())
    return Vocabulary(SPECIALS + tuple(words), pieces)


def ids_of(tokenizer) -> list[int]:
    """The ids of padding, unknown, start, end and every subword; DataError: no cls and sep are put around a text."""
    pad, unk, cls, sep = (getattr(tokenizer, f"{name}_token_id", None) for name in ("pad", "unk", "cls", "sep"))
    if not tokenizer.is_fast:
        raise DataError(f"a {type(tokenizer).__name__} does not say where subwords stand; allowed: a tokenizer.json")
    around = tokenizer("a")["input_ids"]
    if pad is None or (around[0], around[-1]) != (cls, sep):
        seen = " ".join(tokenizer.convert_ids_to_tokens(around))
        raise DataError(f"the tokenizer makes {seen!r} of 'a'; it needs a pad token, cls before a text and sep after")
    unk = pad if unk is None else unk  # byte-level: nothing is unknown
    return [pad, unk, cls, sep, *range(len(tokenizer))]


def corpus_in_subwords(corpus: Corpus, tokenizer, most: float, whole: bool = False) -> Corpus:
    """The same texts as they were written, in at most `most` of a tokenizer's subwords, cut as it cuts them.

    With `whole` its words are the tokens, each of one to LONGEST subwords; not where it cuts no words. Rationales and
    sentences become spans of tokens by where their words stand in the text.
    """
    kind, splits, room = type(tokenizer).__name__, {}, int(min(most + 2, 2**31 - 1))
    known = {} if whole and len({*tokenizer("a a").word_ids()[1:-1]}) > 1 else None
    of = "subwords" if known is None else f"words, each of 1 to {LONGEST} subwords,"
    notes = [f"Tokens are the {of} of a tokenizer, {kind}, of the texts as they were written."]
    for split in corpus.splits:
        first, between, second = map(list, zip(*(one.text.partition(PAIR) for one in split.instances), strict=True))
        read = tokenizer(first, second if any(between) else None, truncation=True, max_length=room, verbose=False)
        made = [in_tokens(*both, known) for both in zip(split.instances, read.encodings, strict=True)]
        kept = tuple(one for one in made if one.tokens)
        if len(kept) < len(made):
            notes.append(f"{len(made) - len(kept):,} texts of {split.name} without a subword were left out.")
        notes += ["The separators between two texts count as words."] * (split.name == "test" and all(between))
        if longer := sum(bool(one.overflowing) for one in read.encodings):
            notes.append(f"{longer:,} texts of {split.name} were cut to {room - 2:,} subwords.")
        before, now = (sum(one.rationale is not None for one in of) for of in (split.instances, made))
        if before > now:
            notes.append(f"The reasons of {before - now:,} texts of {split.name} are not found in what is read.")
        splits[split.name] = kept
    vocabulary = vocabulary_of(tokenizer, known)
    splits = {name: Split(name, kept, vocabulary) for name, kept in splits.items()}
    made = {"vocabulary": vocabulary, "checksum": checksum(splits.values(), vocabulary)}
    return replace(corpus, **splits, **made, notes=(*corpus.notes, *notes))


def in_tokens(text: Instance, read, known: dict[str, tuple[int, ...]] | None = None) -> Instance:
    """A text in its subwords, as an Encoding of tokenizers has it; or in its words, which are put into `known`.

    What is of its words is None if these are not found in its characters.
    """
    pieces, ids, offsets, of_pair = (every[1:-1] for every in (read.tokens, read.ids, read.offsets, read.sequence_ids))
    texts, of = text.text.partition(PAIR)[::2], [None] * len(ids) if known is None else read.word_ids[1:-1]
    begins, tokens = [], []
    for place, word in enumerate(of):
        if word is None or place == 0 or word != of[place - 1] or place - begins[-1] == LONGEST:
            begins.append(place)
    spans = list(pairwise([*begins, len(ids)]))
    for begin, end in spans:
        written = of[begin] is not None and texts[of_pair[begin]][offsets[begin][0] : offsets[end - 1][1]].strip()
        name, own = written or pieces[begin], tuple(ids[begin:end])
        if known is not None and written and own == (read.ids[-1],):  # a separator in a text, which joins no two
            name += " "
        while known is not None and known.setdefault(name, own) != own:
            name += " "  # the same letters in other subwords, as behind a blank and without one
        tokens.append(name)
    rationale = sentences = None
    if (text.rationale or text.sentences) and PAIR not in text.text and (places := places_of(text)):
        starts, ends = [offsets[begin][0] for begin, _ in spans], [offsets[end - 1][1] for _, end in spans]

        def token(first: int, end: int) -> tuple[int, int]:  # [first, end) of its words -> of tokens
            return bisect_right(ends, places[first][0]), bisect_left(starts, places[end - 1][1])

        rationale = tuple((first, end) for first, end in starmap(token, text.rationale or ()) if first < end) or None
        if text.sentences:
            firsts = [bisect_right(ends, places[first][0]) for first in accumulate(text.sentences[:-1])]
            sizes = [end - start for start, end in pairwise([0, *firsts, len(tokens)])]
            sentences = tuple(filter(None, sizes))
    return replace(text, tokens=tuple(tokens), rationale=rationale, sentences=sentences)


def places_of(text: Instance) -> list[tuple[int, int]]:
    """[start, end) of each word in the characters of its text, whatever the case; empty where one is not found."""
    places, at, lower = [], 0, text.text.lower()
    for word in text.tokens:
        start = lower.find(word.lower(), at)
        if start < 0 or len(lower) != len(text.text):
            return []
        places.append((start, at := start + len(word)))
    return places
