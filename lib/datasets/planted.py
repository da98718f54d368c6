"""Made-up texts whose right explanation is known: the datasets that need no download.

Reviews (`records`) follow this rule, word by word:

1. *Opinion words* are the words of PRAISE and of BLAME. All other words are neutral.
2. A *negator* ("not", "never", ...) flips the next opinion word when that comes within REACH = 3 words after it:
   "not good" and "never the least good" are blame. A negator with no opinion word in reach flips nothing.
3. An *aside*, from an opener ("although", ...) to its closer ("still", ...), does not count: in "although awful still a
   gripping story" only "gripping" counts. The opinion words in an aside are the *distractors*.
4. The label is the polarity of the opinion words outside asides: 1 praise, 0 blame. They all agree: with `cues` of
   them, each alone would do.

So the right explanation of a text, its `rationale`, is its opinion words outside asides, each with the negator that
flips it. The polarity of a distractor is drawn at random, so a text without its rationale holds no information on its
label. A model that reads the order of the words can know all labels; one that does not lets the opinion words vote.

In documents all opinion words that count are in one sentence, anywhere in the text; an aside is in one
sentence too, the same or another; every other sentence is neutral and may hold an idle negator.

Lengths of reviews follow the Stanford Sentiment Treebank. `Options` follow the name, `planted:negation=0,noise=0.1`.
"""

import random
from collections.abc import Callable
from dataclasses import asdict
from functools import cache, partial
from itertools import accumulate, product

from pydantic import Field
from pydantic.dataclasses import dataclass

from lib.datasets.assembly import Draft, Spec
from lib.datasets.corpus import Instance

MADE_BY = "lib/datasets/planted.py"
SIZES = {"train": 2000, "dev": 400, "test": 400}
CLASSES = ("blame", "praise")
REACH = 3
SHORTEST, LONGEST = 6, 50  # tokens of a review

PRAISE = "good funny great best entertaining moving fascinating engaging charming compelling powerful smart".split()
BLAME = "bad dull boring silly worst predictable flat awful tired mess tedious shallow".split()
NEGATORS = ("not", "never", "hardly")
OPENERS = ("although", "though")
CLOSERS = ("still", "yet")

# In order of frequency; some are phrases, so that texts can nearly be read.
LINKS = """the, a, and, of, to, of the, is a, it s, that, in a, as, and the, an, with, this, for, but, its,
you, is, in the, on, to be, by, one of the, are, at, than, like, all, more, about, has, i, have, from, his, or, who,
so, out of, up, too, just, if, most, what, there s, does, into, even, when, will, her, your, through, they, we, can,
how, only, their, been, because, no, any, some, us, him, then, over, much, where, while, between""".split(",")
COMMON = """film movie story characters time comedy way make drama director little work plot life see script humor feel
action cast big people new performances made world picture thriller look heart audience ending screenplay moments love
minutes scenes years actors kind family music romance style real documentary american get young old screen camera tale
long end man woman hour kids john watch fans role show premise""".split()
# Made-up words are onset + vowel + coda + ending ("plandery", "trolfing"), chosen so that no rude word comes out.
ONSETS = "b d f g h k l m n p r s t v w bl br cl cr dr fl gr pl pr sk sp st th tr".split()
VOWELS = "a e i o u ea".split()
CODAS = "ll r nd st lt lm rv nt ld rl ft lf".split()
ENDINGS = "- s ed ing er ly y al ous ment ness ion".split()
TYPES = 400


@dataclass(frozen=True)
class Options:
    """How hard the texts are. ValueError where an option is out of its range."""

    cues: int = Field(2, ge=1, le=8)  # opinion words that count, in each text; 1: no redundancy
    negation: float = Field(0.2, ge=0, le=1)  # fraction of opinion words that are flipped by a negator
    distractors: int = Field(1, ge=0, le=8)  # opinion words that do not count, in each text
    noise: float = Field(0.0, ge=0, le=0.5)  # fraction of texts with the wrong label
    seed: int = Field(0, ge=0)  # of the random numbers


def records(split: str, documents: bool = False, **options) -> list[Instance]:
    """The reviews, or documents, of train, dev or test, the same for the same options; no text twice, in any split.

    Of documents `cues` and `distractors` count in the whole text.
    """
    made = ("planted documents", _document) if documents else ("planted", _review)
    return list(_all_splits(*made, Options(**options))[split])


def read(records: Callable[..., list[Instance]], title: str, spec: Spec, folder: None, options: dict) -> Draft:
    """The draft of made-up texts: `records` makes those of a split."""
    made = {split: records(split, **options) for split in SIZES}
    note = f"The order of the words decides: whoever reads it can be right in {1 - options['noise']:.0%} of the texts. "
    note += "A model without it (average, no encoder, TF-IDF) cannot know which opinion words count, and a Transformer "
    note += "learns little of it from so few texts."
    return Draft(title, CLASSES, made, (note,), f"made by {MADE_BY}", "MIT, as the project", MADE_BY)


@cache
def _all_splits(name: str, make: Callable, options: Options) -> dict[str, list[Instance]]:
    """The texts of all splits, none twice, seeded by `name` and the option `seed`.

    make: (rng, options, label) -> tokens and rationale, of a document also sentences.
    """
    rng, seen, splits = random.Random(f"{name} {options.seed}"), set(), {}
    for split, size in SIZES.items():
        labels = [index % 2 for index in range(size)]
        rng.shuffle(labels)
        splits[split] = []
        for index, label in enumerate(labels):
            tokens, *parts = make(rng, options, label)
            while tokens in seen:
                tokens, *parts = make(rng, options, label)
            seen.add(tokens)
            wrong = rng.random() < options.noise
            splits[split].append(Instance(f"{split}-{index + 1}", " ".join(tokens), tokens, label ^ wrong, *parts))
    return splits


def _review(rng: random.Random, options: Options, label: int) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    length = min(LONGEST, SHORTEST + int(rng.gammavariate(2.2, 6.0)))
    return _passage(rng, options, label, options.cues, options.distractors, length)


def _document(rng: random.Random, options: Options, label: int) -> tuple:
    """Tokens, rationale and sentences of one text, of which one sentence decides."""
    count = rng.randint(3, 6)
    deciding, aside = rng.randrange(count), rng.randrange(count)
    tokens, rationale, sentences = [], [], []
    for number in range(count):
        length = min(24, 5 + int(rng.gammavariate(1.5, 4.0))) - 1  # without the full stop
        cues, distractors = options.cues * (number == deciding), options.distractors * (number == aside)
        words, spans = _passage(rng, options, label, cues, distractors, length)
        rationale += [(start + len(tokens), end + len(tokens)) for start, end in spans]
        tokens += [*words, "."]
        sentences.append(len(words) + 1)
    return tuple(tokens), tuple(rationale), tuple(sentences)


def _passage(
    rng: random.Random, options: Options, label: int, cues: int, distractors: int, length: int
) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    """Tokens and rationale of a passage: opinions, an aside, perhaps an idle negator, neutral words around them.

    `cues` and `distractors` are in place of those of the options; `length` is in tokens, unless the opinions need more.
    """
    units = [(_opinion(rng, options, label), True) for _ in range(cues)]
    if distractors:
        units.append((_aside(rng, options, distractors), False))
    if rng.random() < options.negation:
        units.append(([rng.choice(NEGATORS), *_neutral(rng, REACH)], False))
    rng.shuffle(units)
    spare = max(0, length - sum(len(words) for words, _ in units))
    cuts = [0, *sorted(rng.randint(0, spare) for _ in units)]
    tokens, rationale = [], []
    for (words, counts), start, end in zip(units, cuts[:-1], cuts[1:], strict=True):
        tokens += _neutral(rng, end - start)
        first, last = len(tokens), len(tokens) + len(words) - 1  # the negator, where there is one, and the cue
        if counts:
            rationale += [(first, last + 1)] if last - first < 2 else [(first, first + 1), (last, last + 1)]
        tokens += words
    tokens += _neutral(rng, spare - cuts[-1])
    return tuple(tokens), tuple(rationale)


def _opinion(rng: random.Random, options: Options, polarity: int) -> list[str]:
    """An opinion word, or a negator, up to two neutral words and an opinion word of the other polarity."""
    negated = rng.random() < options.negation
    words = PRAISE if polarity ^ negated else BLAME
    opinion = rng.choices(words, cum_weights=_zipf(len(words), 2.0))
    return [rng.choice(NEGATORS), *_neutral(rng, rng.randint(0, REACH - 1)), *opinion] if negated else opinion


def _aside(rng: random.Random, options: Options, opinions: int) -> list[str]:
    """Opinions that do not count, between an opener and a closer."""
    words = [rng.choice(OPENERS)]
    for _ in range(opinions):
        words += [*_neutral(rng, rng.randint(0, 2)), *_opinion(rng, options, rng.randint(0, 1))]
    return [*words, *_neutral(rng, rng.randint(0, 1)), rng.choice(CLOSERS)]


def _neutral(rng: random.Random, size: int) -> list[str]:
    """`size` neutral words: links and content words by turns."""
    words = []
    while len(words) < size:
        words += rng.choices(LINKS, cum_weights=_zipf(len(LINKS), 2.0))[0].split()
        words += rng.choices(content_words(), cum_weights=_zipf(TYPES, 300.0), k=rng.choice((1, 2, 2, 3)))
    return words[:size]


@cache
def _zipf(size: int, offset: float) -> list[float]:
    """Cumulative weights 1 / (rank + offset)."""
    return list(accumulate(1 / (rank + offset) for rank in range(size)))


@cache
def content_words() -> list[str]:
    """TYPES neutral words, the most frequent first: common ones of film reviews, then made-up ones."""
    taken = {*PRAISE, *BLAME, *NEGATORS, *OPENERS, *CLOSERS, *COMMON, *" ".join(LINKS).split()}
    made_up = {"".join(part).replace("-", "") for part in product(ONSETS, VOWELS, CODAS, ENDINGS)} - taken
    return COMMON + random.Random("planted words").sample(sorted(made_up), TYPES - len(COMMON))


REVIEWS = f"Made-up reviews of the lengths of SST in few words, their right explanation known; see {MADE_BY}."
DOCUMENTS = f"Made-up texts of several sentences, one of which decides; see {MADE_BY}."
_spec = partial(Spec, options=asdict(Options()), dials=Options)
_documents = partial(read, partial(records, documents=True), "Planted documents")
SPECS = (
    _spec("planted", partial(read, records, "Planted reviews"), REVIEWS),
    _spec("planted-documents", _documents, DOCUMENTS, sentences=True),
)
