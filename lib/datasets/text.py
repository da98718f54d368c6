"""From a text to its tokens, as the papers' preprocessing does it."""

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import chain, pairwise

PAIR = " \u241e "  # between two texts that are read as a pair
# The punctuation that Keras' text_to_word_sequence drops; the apostrophe stays.
KERAS_FILTER = str.maketrans(dict.fromkeys('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n', " "))


def words(text: str) -> tuple[str, ...]:
    """Lower-case runs of letters, digits and underscores: SST.

    Differs from the paper: Jain & Wallace's code then runs spaCy's English rules, which split one text of train and
    one of dev otherwise and give the same vocabulary.
    """
    return tuple(re.sub(r"\W", " ", text.replace("-LRB-", " ").replace("-RRB-", " ")).lower().split())


def pieces(text: str) -> tuple[str, ...]:
    """Tokens as they come, apart by spaces."""
    return tuple(text.split())


def keras_words(text: str) -> tuple[str, ...]:
    """Lower-case words without punctuation and without line breaks `<br />`, as in Keras' IMDB: "don't" is one word."""
    return tuple(text.replace("<br />", " ").lower().translate(KERAS_FILTER).split())


@cache
def english() -> Callable:
    """spaCy's English tokeniser: rules only, no model to download."""
    import spacy  # takes a second, and only some datasets need it

    return spacy.blank("en").tokenizer


LONGEST = 1_000  # signs of a chunk that spaCy reads at once: its time grows with their square


@lru_cache(maxsize=2**18)
def _lowered(chunk: str) -> tuple[str, ...]:
    """Tokens of a chunk of text without spaces. spaCy's rules never look beyond one, so each is cut only once."""
    if len(chunk) > LONGEST:
        parts = (chunk[start : start + LONGEST] for start in range(0, len(chunk), LONGEST))
        return tuple(chain.from_iterable(map(_lowered, parts)))
    return tuple(token.text.lower() for token in english()(chunk))


@lru_cache(maxsize=2**18)
def _cleaned(chunk: str) -> tuple[str, ...]:
    return tuple("qqq" if any(map(str.isdigit, token)) else token for token in _lowered(chunk))


def spacy_words(text: str) -> tuple[str, ...]:
    """spaCy's English tokens, lower-case; line breaks `<br />` are spaces."""
    return tuple(chain.from_iterable(map(_lowered, text.replace("<br />", " ").split())))


def generic(text: str) -> tuple[str, ...]:
    """Jain & Wallace's cleaner: spaCy's English tokens, lower-case, `qqq` for every token with a digit."""
    return tuple(chain.from_iterable(map(_cleaned, text.split())))


def generic_words(text: str) -> tuple[str, ...]:
    r"""The generic cleaner, then every run of non-word characters becomes its last one: 20 Newsgroups.

    As in Jain & Wallace's notebook, `re.sub(r"(\W)+", r" \1 ", text)`: since tokens are already apart, the last
    character of a run is a space and punctuation goes; it stays inside tokens ("n't" becomes "n ' t") and at the end.
    """
    return tuple(re.sub(r"(\W)+", r" \1 ", " ".join(generic(text))).split())


def sentence_lengths(tokens: Sequence[str]) -> tuple[int, ...]:
    """How many tokens each sentence of a text has, by spaCy's rule: they end in . ? or !, and what closes after it.

    Differs from the paper: Serrano & Smith's code takes the sentences of a parser, which needs a model.
    """
    from spacy.pipeline import Sentencizer
    from spacy.tokens import Doc

    if not tokens:
        return ()
    [starts] = Sentencizer().predict([Doc(english().vocab, words=list(tokens))])
    cuts = [*(place for place, starting in enumerate(starts) if starting), len(tokens)]
    return tuple(end - start for start, end in pairwise(cuts))
