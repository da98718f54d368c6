"""Serrano & Smith (2019)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import pandas as pd

from lib.analysis import difference, flips_sooner, summarise, versus_fewest
from lib.datasets import spec
from lib.models import ENCODERS, HIERARCHICAL
from lib.models.encoders import FLAN as OF_WORDS
from lib.papers.claim import Claim, by_model, compared, signed, verdict, with_interval
from lib.papers.paper import Paper
from lib.papers.settings import Settings, setting
from lib.quantity import declare, title_of
from lib.training import Run

KEY = "serrano2019"

# Runs

FLAN, HAN = tuple(OF_WORDS), tuple(HIERARCHICAL)
SEEDS = {"quick": 1, "paper": None}  # None: the profile's


@dataclass(frozen=True)
class Recipe:
    """How a dataset's models are trained: learning rate, dropouts and the most epochs.

    han       dropout of words, of sentences, and of what the classifier reads
    flan      dropout of words, and of what the classifier reads
    """

    learning_rate: float
    han: tuple[float, float, float]
    flan: tuple[float, float]
    epochs: int = 60


# Appendix A.1; the epochs are those of the authors' code.
PRINTED = {
    "yahoo": Recipe(4e-4, (0.4445, 0.2202, 0.3749), (0.4445, 0.4457), 15),
    "imdb10": Recipe(4e-4, (0.4445, 0.2202, 0.2457), (0.4445, 0.3457), 15),
    "amazon": Recipe(2e-4, (0.6, 0.2, 0.4), (0.6, 0.4)),
    "yelp": Recipe(1e-4, (0.7, 0.1, 0.7), (0.7, 0.7)),
}
LIKE = {"agnews4": "yahoo"}  # topics; all else that the paper does not have is trained like its smallest, imdb10
PATIENCE, WITHOUT_ENCODER = 5, {"patience": 10, "epochs": 60}
# The profile `quick`, and made-up texts: few of them, so larger steps, and random vectors, as word2vec has nothing to
# learn from.
SMALL = {"learning_rate": 1e-3, "batch_size": 32, "epochs": 12}
QUICK = {"epochs": 8}  # on dev none gets better later
MADE_UP = "planted"


@dataclass(frozen=True)
class ErasureSettings(Settings):
    """Beside those of every notebook.

    encoders                   none: all that the texts allow
    random_item                how the other item of figures 3 and 4 is drawn
    common_support             whether the boxes are about the texts that every ranking flips
    train_texts, test_texts    at most that many, drawn at random, for datasets that offer it; 0: all
    """

    encoders: tuple[str, ...] = setting(allowed=(*ENCODERS, *HIERARCHICAL))
    random_item: str = setting("paper", allowed=("paper", "authors_code"), alters=True)
    common_support: bool = setting(False, alters=True)
    train_texts: int = 0
    test_texts: int = 0

    def __post_init__(self):
        super().__post_init__()
        for name in self.of_dataset:
            if name not in spec(self.dataset).options:
                raise ValueError(f"{name} is {getattr(self, name)}, but {self.dataset!r} is read whole; leave it out")

    @property
    def of_dataset(self) -> dict[str, int]:
        """The options of the dataset that were chosen."""
        return {name: value for name in ("train_texts", "test_texts") if (value := getattr(self, name))}


def every_model(settings: Settings) -> list[Run]:
    """Six models: over words alone and over sentences, with an RNN, with convolutions, and without an encoder."""
    seeds = settings.seeds_or(SEEDS[settings.profile])
    return [model(settings, encoder, seed) for encoder in encoders_of(settings) for seed in seeds]


def encoders_of(settings: Settings) -> list[str]:
    """Those that were chosen; none: all six, or the three over words where the texts are not cut into sentences."""
    return list(settings.encoders or (*FLAN, *(HAN if spec(settings.dataset).sentences else ())))


def model(settings: Settings, encoder: str, seed: int) -> Run:
    """An encoder trained as the paper trains it on that dataset, or on the one most like it."""
    run = settings.run(encoder, "additive", seed, recipe="serrano2019")
    few = settings.profile == "quick" or settings.dataset.startswith(MADE_UP)
    options = (SMALL if few else printed(settings.dataset, encoder)) | settings.of_dataset
    options |= QUICK if settings.profile == "quick" else {}
    if run.vectors not in ("auto", "random", "word2vec"):
        options |= {"embedding_size": 300}  # a file's
    vectors = run.vectors if run.vectors != "auto" else "random" if few else "word2vec"
    return replace(run, vectors=vectors, options=tuple(options.items()))


def printed(dataset: str, encoder: str) -> dict[str, float]:
    """The options that the paper and its authors' code have for an encoder on a dataset."""
    recipe = PRINTED[LIKE.get(dataset, dataset if dataset in PRINTED else "imdb10")]
    options = {"learning_rate": recipe.learning_rate, "epochs": recipe.epochs, "patience": PATIENCE}
    dropouts = recipe.han if encoder in HAN else recipe.flan
    names = ("sentence_dropout", "document_dropout", "classifier_dropout")[-len(dropouts) :]
    options |= dict(zip(names, dropouts, strict=True))
    return options | (WITHOUT_ENCODER if encoder.endswith("noenc") else {})


# Claims

OFTEN = 1.6  # times as often: the least that the paper reports for a model with an encoder
HALF = 0.5
LESS_CONTEXT = ("flan-rnn", "flan-conv", "flan-noenc")


def claims(measured: pd.DataFrame) -> list[Claim]:
    """Each claim with its verdict.

    Args:
        measured: every model with the columns of lib.interventions.single_erasure as "top", of until_flip as "removed".
    """
    return [
        *matters_more(measured),
        *seldom_decides(measured),
        *gradient_sooner(measured),
        *not_the_fewest(measured),
        *context_delays(measured),
    ]


def matters_more(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 4.1: the item with the largest weight matters more than another."""
    claim = "Erasing the item with the largest attention changes the output more than erasing another, drawn at random"
    gap = measured["top_attention_js"] - measured["top_attention_others_js"]
    for encoder, rows in by_model(measured.assign(gap_js=gap), "encoder"):
        row = summarise(rows, [declare("gap_js", "nats")]).iloc[0]
        evidence = f"JSD larger by {signed(row, 'value')} nats, over all other items"
        yield Claim(KEY, "the top item matters most", claim, encoder, verdict(row["low"], row["high"]), evidence)


def seldom_decides(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 4.2: and yet most decisions stay without it."""
    claim = "Erasing the item with the largest attention leaves most decisions as they were"
    for encoder, rows in by_model(measured, "encoder"):
        row = summarise(rows, ["top_attention_flip"]).iloc[0]
        evidence = f"it flips {with_interval(row)} of the decisions"
        word = verdict(1 - row["high"], 1 - row["low"], HALF)
        yield Claim(KEY, "erasing it flips few decisions", claim, encoder, word, evidence)


def gradient_sooner(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 5.4: for models with an encoder the gradient finds a smaller set that flips the decision."""
    least = f"at least {OFTEN:g} times as often as the other way round"
    encoders = by_model(measured[~measured["encoder"].str.endswith("noenc")], "encoder")
    found = [(encoder, flips_sooner(rows, "gradient", "attention").iloc[0]) for encoder, rows in encoders]
    for threshold, how, short in (
        (1.0, "more often than the other way round", "gradients flip sooner"),
        (OFTEN, least, f"gradients flip sooner {OFTEN:g} times as often"),
    ):
        claim = f"With an encoder, fewer items flip the decision along the gradient than along attention {how}"
        for encoder, row in found:
            evidence = (
                f"{row['first_sooner']:.3f} of the texts against {row['second_sooner']:.3f}: {row['ratio']:.2f} "
                f"[{row['low']:.2f}, {row['high']:.2f}] times as often; sign test p {row['p']:.2g}"
            )
            yield Claim(KEY, short, claim, encoder, verdict(row["low"], row["high"], threshold), evidence)


def not_the_fewest(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 5.4: attention fails to find the fewest items that flip the decision much of the time."""
    claim = "For over half of the texts that can be flipped, attention does not find the fewest items that flip them"
    for encoder, rows in by_model(versus_fewest(measured, ["attention"]), "encoder"):
        row = summarise(rows, ["optimal_attention"]).iloc[0]
        evidence = f"it finds them for {with_interval(row)} of the texts"
        if not row["n"]:
            evidence = "the fewest are known of no text: the read-out is not affine, or nothing flips"
        word = verdict(1 - row["high"], 1 - row["low"], HALF)
        yield Claim(KEY, "attention does not find the fewest", claim, encoder, word, evidence)


def context_delays(measured: pd.DataFrame) -> Iterator[Claim]:
    """Section 5.6: the further a state reaches, the later decisions flip: FLAN rnn > conv > noenc."""
    there = set(measured["encoder"])
    for ranking, along in (("attention", "along attention"), ("fewest", "with the fewest items possible")):
        claim = f"The further a state reaches, the larger the share of the words that must go ({along})"
        quantity = f"removed_{ranking}_fraction"
        for more, less in pairwise(name for name in LESS_CONTEXT if name in there):
            word, evidence = "undecided", "no text flips"
            if all(measured.loc[measured["encoder"] == name, quantity].notna().any() for name in (more, less)):
                row = difference(measured, quantity, ({"encoder": more}, {"encoder": less}))
                word, evidence = verdict(row["low"], row["high"]), compared(row)
            pair = f"{title_of(more)} against {title_of(less)}"
            yield Claim(KEY, f"context delays flips ({along})", claim, pair, word, evidence)


def partners(rows: pd.DataFrame, of_models: pd.DataFrame) -> list[pd.DataFrame]:
    """Table 2: attention's top item against another one, drawn as their code does."""
    return [rows[rows["ranking"].eq("attention") & rows["way"].eq("authors_code") & rows["value"].notna()]]


PAPER = Paper(
    "erasure",
    KEY,
    "Serrano & Smith 2019",
    "Sofia Serrano and Noah A. Smith (2019): Is Attention Interpretable? ACL.",
    "Attention predicts overall importance noisily, and other orders of erasing flip decisions sooner",
    ErasureSettings,
    (every_model,),
    claims,
    partners=partners,
    seconds=15.0,
)
