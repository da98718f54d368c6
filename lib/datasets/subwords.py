"""A corpus in the subwords that a Hugging Face model reads.

Its batches hold subwords as those of any other corpus hold words: a text can be shortened by one, and start and end are
the tokenizer's cls and sep tokens.
"""

from collections.abc import Sequence
from dataclasses import replace

from lib.datasets.corpus import SPECIALS, Corpus, Instance, Split, Vocabulary, checksum


def vocabulary_of(tokenizer) -> Vocabulary:
    """Padding, unknown, start and end, then every subword of the tokenizer, in its order."""
    subwords = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    return Vocabulary(SPECIALS + tuple(f"<unused {k}>" if one is None else one for k, one in enumerate(subwords)))


def ids_of(tokenizer) -> list[int]:
    """The tokenizer's id of each word of `vocabulary_of`, in its order.

    Raises:
        ValueError: the tokenizer does not put its cls token before a text and its sep token after it.
    """
    special = {name: getattr(tokenizer, f"{name}_token_id", None) for name in ("pad", "unk", "cls", "sep")}
    missing = [name for name in ("pad", "cls", "sep") if special[name] is None]
    if missing:
        raise ValueError(f"the tokenizer has no {' and no '.join(missing)} token; it needs pad, cls and sep")
    around = tokenizer("a")["input_ids"]
    if (around[0], around[-1]) != (special["cls"], special["sep"]):
        seen = " ".join(tokenizer.convert_ids_to_tokens(around))
        raise ValueError(f"the tokenizer makes {seen!r} of 'a'; it needs its cls token before and its sep token after")
    special["unk"] = special["pad"] if special["unk"] is None else special["unk"]  # byte-level: nothing is unknown
    return [*special.values(), *range(len(tokenizer))]


def corpus_in_subwords(corpus: Corpus, tokenizer, most: int) -> Corpus:
    """The same texts and splits as they were written, in a tokenizer's subwords, the first `most` of each text."""
    vocabulary, notes, splits = vocabulary_of(tokenizer), [], []
    for split in corpus.splits:
        cut, longer = _in_subwords(split.instances, tokenizer, most)
        kept = tuple(one for one in cut if one.tokens)
        if len(kept) < len(cut):
            notes.append(f"{len(cut) - len(kept):,} texts of {split.name} without a subword were left out.")
        if longer:
            notes.append(f"{longer:,} texts of {split.name} were cut after {most:,} subwords.")
        splits.append(Split(split.name, kept, vocabulary))
    tokens = f"Tokens are the subwords of a tokenizer, {type(tokenizer).__name__}, of the texts as they were written."
    return replace(
        corpus,
        **dict(zip(("train", "dev", "test"), splits, strict=True)),
        vocabulary=vocabulary,
        notes=(*corpus.notes, tokens, *notes),
        checksum=checksum(splits, vocabulary),
    )


def _in_subwords(instances: Sequence[Instance], tokenizer, most: int) -> tuple[list[Instance], int]:
    """The texts in their first `most` subwords, and how many have more."""
    if not instances:
        return [], 0
    cut = tokenizer([one.text for one in instances], add_special_tokens=False, verbose=False)["input_ids"]
    tokens = [tuple(tokenizer.convert_ids_to_tokens(ids[:most])) for ids in cut]
    found = [
        replace(one, tokens=own, rationale=None, sentences=None) for one, own in zip(instances, tokens, strict=True)
    ]
    return found, sum(len(ids) > most for ids in cut)
