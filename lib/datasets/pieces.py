"""A corpus in the pieces of words that a Hugging Face model reads.

A batch of it holds pieces as any other holds words: a text can be shortened by a piece, and start and end are the
tokenizer's classifying and separating token.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lib.datasets.assembly import checksum
from lib.datasets.corpus import SPECIALS, Corpus, Instance, Split, Vocabulary

OF = ("text", "tokens")
LONGEST = 510  # pieces, where a tokenizer does not say it: 512 with the two that go around them
ENDLESS = 1_000_000  # a tokenizer that knows no bound names a larger one


def vocabulary_of(tokenizer) -> Vocabulary:
    """Padding, unknown, start and end, then every piece that a tokenizer knows, in its order."""
    pieces = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    return Vocabulary(SPECIALS + tuple(f"<no piece {k}>" if piece is None else piece for k, piece in enumerate(pieces)))


def ids_of(tokenizer) -> list[int]:
    """The tokenizer's id of each word of `vocabulary_of`, in its order.

    Raises:
        ValueError: the tokenizer does not put one token before a text and one after it.
    """
    names = ("pad", "unk", "cls", "sep")
    special = {name: getattr(tokenizer, f"{name}_token_id", None) for name in names}
    missing = [name for name in ("pad", "cls", "sep") if special[name] is None]
    if missing:
        raise ValueError(f"the tokenizer has no {' and no '.join(missing)} token; it needs pad, cls and sep")
    around = tokenizer("a")["input_ids"]
    if (around[0], around[-1]) != (special["cls"], special["sep"]):
        pieces = " ".join(tokenizer.convert_ids_to_tokens(around))
        raise ValueError(
            f"the tokenizer makes {pieces!r} of 'a'; it needs its cls token before and its sep token after"
        )
    special["unk"] = special["pad"] if special["unk"] is None else special["unk"]  # byte-level: nothing is unknown
    return [*special.values(), *range(len(tokenizer))]


def corpus_in_pieces(corpus: Corpus, tokenizer, most: int | None = None, of: str = "text") -> Corpus:
    """The same texts and splits, cut into a tokenizer's pieces.

    Args:
        most: pieces of a text, the first ones; None: as many as the tokenizer says that its model reads.
        of: "text", the text as it was written; "tokens", the corpus' own tokens with a space between them: then it is
            known which pieces decide a label, and where a sentence ends, wherever the corpus knows it.
    Raises:
        ValueError: `of` is neither.
    """
    if of not in OF:
        raise ValueError(f"of is {of!r}; a corpus is cut into pieces of its: {', '.join(OF)}")
    if most is None:
        most = tokenizer.model_max_length - 2 if tokenizer.model_max_length < ENDLESS else LONGEST
    vocabulary, notes, splits = vocabulary_of(tokenizer), [], []
    for split in corpus.splits:
        cut = in_pieces(split.instances, tokenizer, of)
        kept = tuple(shortened(one, most) for one in cut if one.tokens)
        notes += [f"{len(cut) - len(kept):,} texts of {split.name} without a piece were left out."] * (
            len(kept) < len(cut)
        )
        longer = sum(len(one.tokens) > most for one in cut)
        notes += [f"{longer:,} texts of {split.name} were cut after {most:,} pieces."] * bool(longer)
        splits.append(Split(split.name, kept, vocabulary))
    told = f"Tokens are the pieces of a tokenizer, {type(tokenizer).__name__}, of the {OF_WORDS[of]}."
    return replace(
        corpus,
        **dict(zip(("train", "dev", "test"), splits, strict=True)),
        vocabulary=vocabulary,
        notes=(*corpus.notes, told, *notes),
        checksum=checksum(splits, vocabulary),
    )


OF_WORDS = {"text": "texts as they were written", "tokens": "corpus' own tokens"}


def in_pieces(instances: Sequence[Instance], tokenizer, of: str) -> list[Instance]:
    """The texts in pieces; where they are cut from tokens with the rationales and sentences of these."""
    if not instances:
        return []
    texts = [one.text if of == "text" else " ".join(one.tokens) for one in instances]
    cut = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=of == "tokens", verbose=False)
    found = []
    for row, one in enumerate(instances):
        tokens = tuple(tokenizer.convert_ids_to_tokens(cut["input_ids"][row]))
        made = replace(one, tokens=tokens, rationale=None, sentences=None)
        if of == "tokens":
            ends = [end for _, end in cut["offset_mapping"][row]]
            made = with_what_is_known(made, one, owners(one.tokens, ends))
        found.append(made)
    return found


def owners(tokens: Sequence[str], ends: Sequence[int]) -> np.ndarray:
    """(piece,) the number of the token that each piece is of.

    Args:
        tokens: joined by spaces. ends: of the pieces, in characters of that string.
    """
    token_ends = np.cumsum([len(token) + 1 for token in tokens]) - 1
    return np.searchsorted(token_ends, np.asarray(ends, dtype=np.int64), side="left")


def with_what_is_known(made: Instance, one: Instance, owner: np.ndarray) -> Instance:
    """Pieces with the spans and the sentence lengths of the tokens that they are of."""
    rationale, sentences = None, None
    if one.rationale is not None:
        spans = [np.searchsorted(owner, span, side="left").tolist() for span in one.rationale]
        rationale = tuple((start, end) for start, end in spans if start < end)
    if one.sentences is not None:
        bounds = np.searchsorted(owner, np.cumsum((0, *one.sentences)), side="left")
        sentences = tuple(size for size in np.diff(bounds).tolist() if size)
    return replace(made, rationale=rationale, sentences=sentences)


def shortened(one: Instance, most: int) -> Instance:
    """The first pieces of a text."""
    if len(one.tokens) <= most:
        return one
    rationale, sentences = one.rationale, one.sentences
    if rationale is not None:
        rationale = tuple((start, min(end, most)) for start, end in rationale if start < most)
    if sentences is not None:
        ends = np.minimum(np.cumsum(sentences), most)
        sentences = tuple(size for size in np.diff(ends, prepend=0).tolist() if size)
    return replace(one, tokens=one.tokens[:most], rationale=rationale, sentences=sentences)
