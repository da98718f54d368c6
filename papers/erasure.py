"""Serrano & Smith (2019)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import nan
from typing import ClassVar

import numpy as np
import pandas as pd
from pydantic import PositiveInt
from pydantic.dataclasses import dataclass

from lib.analysis import add_effects, add_entropies, flips_sooner
from lib.analysis.statistics import Effect
from lib.datasets import spec
from lib.datasets.corpus import Corpus
from lib.models import ENCODERS, HIERARCHICAL
from lib.models.encoders import FLAN as OF_WORDS
from lib.quantity import declare
from lib.training import Run
from papers import published
from papers.effects import model_name, split_models
from papers.paper import Paper
from papers.settings import Dataset, Distinct, OwnModel, Settings, one_of, setting

KEY = "serrano2019"
MADE_UP = "planted"  # how the names of made-up texts begin


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
}
LIKE = {"agnews4": "yahoo"}  # topics; all else is trained like the smallest of the paper, imdb10
PATIENCE, WITHOUT_ENCODER = 5, {"patience": 10, "epochs": 60}
# The profile `quick`, and made-up texts: few of them, so larger steps, and random vectors, as word2vec has nothing to
# learn from.
SMALL = {"learning_rate": 1e-3, "batch_size": 32, "epochs": 12}
QUICK = {"epochs": 8}  # on dev none gets better later


@dataclass(frozen=True)
class ErasureSettings(Settings):
    """Beside those of every notebook: which texts and models, and what the figures are about."""

    altering: ClassVar[tuple[str, ...]] = ("projection", "random_item", "common_support")

    dataset: Dataset = "planted-documents"
    model: OwnModel = None
    encoders: Distinct[one_of((*ENCODERS, *HIERARCHICAL))] | None = setting(None, "None: all that the texts allow")
    random_item: one_of(("paper", "authors_code")) = setting(
        "paper", "how the other item of figures 3 and 4 is drawn: paper or authors_code"
    )
    common_support: bool = setting(
        False, "boxes over texts that every ranking flips; in the paper they differ by ranking"
    )
    train_texts: PositiveInt | None = setting(
        None, "the most texts of train and dev, drawn at random; None: all; quick reads fewer"
    )
    test_texts: PositiveInt | None = setting(None, "the most texts of test, drawn at random; None: all")
    vectors: str = setting(
        "auto", "auto (word2vec of the texts, in quick random), random, word2vec, or a file of 300-d ones"
    )

    def __post_init__(self):
        super().__post_init__()
        for name, value in self.of_dataset.items():
            if name not in spec(self.dataset).options:
                raise ValueError(f"{name} is {value}, but {self.dataset!r} is read whole; leave it out")

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
    recipe = PRINTED[LIKE.get(dataset, "imdb10")]
    options = {"learning_rate": recipe.learning_rate, "epochs": recipe.epochs, "patience": PATIENCE}
    dropouts = recipe.han if encoder in HAN else recipe.flan
    names = ("sentence_dropout", "document_dropout", "classifier_dropout")[-len(dropouts) :]
    options |= dict(zip(names, dropouts, strict=True))
    return options | (WITHOUT_ENCODER if encoder.endswith("noenc") else {})


TABLE1 = {
    "average_length": "words, average",
    "sd_length": "words, sd",
    "average_sentences": "sentences, average",
    "sd_sentences": "sentences, sd",
    "train_and_dev_size": "texts of train and dev",
    "test_size": "texts of test",
    "classes": "classes",
}


def table1(corpus: Corpus) -> pd.DataFrame:
    """The paper's table 1 with a first row of ours: words and sentences of a text, over all splits, and counts."""
    texts = [one for split in corpus.splits for one in split.instances]
    words, sentences = [len(one.tokens) for one in texts], [len(one.sentences) for one in texts if one.sentences]
    values = (f(of) for of in (words, sentences or [np.nan] * 2) for f in (np.mean, lambda x: np.std(x, ddof=1)))
    sizes = len(corpus.train) + len(corpus.dev), len(corpus.test), len(corpus.classes)
    ours = dict(zip(TABLE1, (*values, *sizes), strict=True))
    rows = published.table(KEY)
    theirs = rows[rows["table"] == "table1"].pivot(index="dataset", columns="quantity", values="value")
    both = pd.concat([pd.DataFrame(ours, index=[f"{corpus.name}, here"]), theirs])[list(TABLE1)]
    return both.rename(columns=TABLE1).reset_index(names="texts")


def partners(rows: pd.DataFrame, of_models: pd.DataFrame) -> list[pd.DataFrame]:
    """Table 2: attention's top item against another one, drawn as their code does."""
    return [rows[rows["ranking"].eq("attention") & rows["way"].eq("authors_code") & rows["value"].notna()]]


# What its findings read

FEWEST_SENTENCES = 4  # of a text that counts for a model over sentences: of fewer any order is nearly the best


def tables(measured: pd.DataFrame, shuffled: pd.DataFrame, way: str = "paper") -> dict[str, pd.DataFrame]:
    """What the findings read: the effects of erasing in each text, beside those of shuffled weights.

    Args:
        measured: every model with the columns of lib.interventions.single_erasure as "top", of until_flip as "removed",
            and attention_weights. shuffled: the same rows with "top" and "removed" of `placed_by_chance`.
        way: how the other item of figures 3 and 4 was drawn.
    """
    own, chance = (add_effects(of_long_texts(one), way) for one in (measured, shuffled))
    keys, column = ["encoder", "seed", "instance"], "top_gap_js"
    both = own.merge(chance[[*keys, column]], on=keys, suffixes=("", "_shuffled"))
    declare(f"{column}_shuffled", "nats")
    return {"measured": add_entropies(both, ["attention"])}


def of_long_texts(measured: pd.DataFrame) -> pd.DataFrame:
    """The rows without what was measured of texts of fewer than FEWEST_SENTENCES where sentences are erased."""
    short = measured["encoder"].isin(list(HIERARCHICAL)) & (measured["removed_items"] < FEWEST_SENTENCES)
    columns = [name for name in measured if name.startswith(("top_", "removed_"))]
    kept = measured.copy()
    kept.loc[short, columns] = nan
    return kept


def gradient_sooner_to_later(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """S3: log of how many times as often the gradient flips the decision sooner than attention, as later."""
    for key, rows in split_models(tables["measured"], ["encoder"]):
        row = flips_sooner(rows, "gradient", "attention").iloc[0]
        effect = Effect("log_ratio", float(np.log(row["ratio"])), row["of_seeds"], row["se"], row["n"])
        yield {"model": model_name(key.values())}, [rows], effect


PAPER = Paper(
    "erasure",
    KEY,
    ErasureSettings,
    (every_model,),
    partners=partners,
)
