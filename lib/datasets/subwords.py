"""A corpus in the subwords that a Hugging Face model reads.

Its batches hold subwords as those of any other corpus hold words: a text can be shortened by one, and start and end are
the tokenizer's cls and sep tokens.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lib.datasets.corpus import SPECIALS, Corpus, Instance, Split, Vocabulary, checksum

OF = {"text": "texts as they were written", "tokens": "corpus' own tokens"}
LONGEST = 510  # subwords of a text where the tokenizer sets no bound: 512 with cls and sep
ENDLESS = 1_000_000  # a tokenizer without a bound has a larger model_max_length than this


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


def corpus_in_subwords(corpus: Corpus, tokenizer, most: int | None = None, of: str = "text") -> Corpus:
    """The same texts and splits, cut into a tokenizer's subwords.

    Args:
        most: subwords of a text, the first ones; None: as many as the tokenizer's `model_max_length` allows.
        of: "text", the text as it was written; "tokens", the corpus' own tokens with a space between them: then
            rationales and sentences of the corpus are kept, in subwords.
    Raises:
        ValueError: `of` is neither.
    """
    if of not in OF:
        raise ValueError(f"of is {of!r}; a corpus is cut into subwords of its: {', '.join(OF)}")
    if most is None:
        most = tokenizer.model_max_length - 2 if tokenizer.model_max_length < ENDLESS else LONGEST
    vocabulary, notes, splits = vocabulary_of(tokenizer), [], []
    for split in corpus.splits:
        cut, longer = _in_subwords(split.instances, tokenizer, of, most)
        kept = tuple(one for one in cut if one.tokens)
        if len(kept) < len(cut):
            notes.append(f"{len(cut) - len(kept):,} texts of {split.name} without a subword were left out.")
        if longer:
            notes.append(f"{longer:,} texts of {split.name} were cut after {most:,} subwords.")
        splits.append(Split(split.name, kept, vocabulary))
    tokens = f"Tokens are the subwords of a tokenizer, {type(tokenizer).__name__}, of the {OF[of]}."
    return replace(
        corpus,
        **dict(zip(("train", "dev", "test"), splits, strict=True)),
        vocabulary=vocabulary,
        notes=(*corpus.notes, tokens, *notes),
        checksum=checksum(splits, vocabulary),
    )


def _in_subwords(instances: Sequence[Instance], tokenizer, of: str, most: int) -> tuple[list[Instance], int]:
    """The texts in their first `most` subwords, and how many have more; cut from tokens with what is known of these."""
    if not instances:
        return [], 0
    texts = [one.text if of == "text" else " ".join(one.tokens) for one in instances]
    cut = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=of == "tokens", verbose=False)
    found = []
    for row, one in enumerate(instances):
        tokens = tuple(tokenizer.convert_ids_to_tokens(cut["input_ids"][row][:most]))
        one = replace(one, tokens=tokens, rationale=None, sentences=None)
        found.append(_mapped(instances[row], one, cut["offset_mapping"][row]) if of == "tokens" else one)
    return found, sum(len(ids) > most for ids in cut["input_ids"])


def _mapped(one: Instance, subwords: Instance, offsets: list[tuple[int, int]]) -> Instance:
    """A text in subwords with the rationale and the sentence lengths of the text in tokens."""
    token_ends = np.cumsum([len(token) + 1 for token in one.tokens]) - 1
    # (subword,) the position of the token that each is part of: the first that ends where it ends, or later
    token_of = np.searchsorted(token_ends, [end for _, end in offsets[: len(subwords.tokens)]])
    rationale, sentences = one.rationale, one.sentences
    if rationale is not None:
        spans = (np.searchsorted(token_of, span).tolist() for span in rationale)
        rationale = tuple((start, end) for start, end in spans if start < end)
    if sentences is not None:
        bounds = np.searchsorted(token_of, np.cumsum((0, *sentences)))
        sentences = tuple(size for size in np.diff(bounds).tolist() if size)
    return replace(subwords, rationale=rationale, sentences=sentences)
