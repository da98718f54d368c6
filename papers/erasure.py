"""Serrano & Smith (2019)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import nan

import pandas as pd
from pydantic.dataclasses import dataclass

from lib.analysis import add_entropies
from lib.analysis.erasure import add_drawn, add_sooner, counted_models, sooner_ratio, sooner_signs
from lib.datasets import spec
from lib.datasets.pretrained import is_pretrained
from lib.models import HIERARCHICAL
from lib.models.encoders import FLAN
from lib.training import Run
from papers import results
from papers.effects import model_name, split_models
from papers.paper import Paper
from papers.settings import Dataset, Encoders, OwnModel, Settings, setting

FEWEST_SENTENCES = 4  # of a text that counts for a model over sentences: of fewer any order is nearly the best
# Appendix A.1, of IMDB, the smallest of theirs; the epochs are those of the authors' code.
PRINTED = {"learning_rate": 4e-4, "epochs": 15, "patience": 5}
OF_HAN = {"sentence_dropout": 0.4445, "document_dropout": 0.2202, "classifier_dropout": 0.2457}
OF_FLAN = {"document_dropout": 0.4445, "classifier_dropout": 0.3457}
OF_TOPICS = {"han": 0.3749, "flan": 0.4457}  # classifier_dropout of Yahoo, for topics
WITHOUT_ENCODER = {"patience": 10, "epochs": 60}
FEW = ("20news", "eraser_movies-sentences")  # from so few texts networks learn nothing at the printed rate; dev chose
OF_FEW = {"learning_rate": 1e-3, "epochs": 60, "patience": 10}
# Of made-up texts and of profile quick, which are few: larger steps, random vectors, as word2vec learns little.
SMALL = {"learning_rate": 1e-3, "batch_size": 32, "epochs": 12}


@dataclass(frozen=True)
class ErasureSettings(Settings):
    """Beside those of every notebook: which texts and models."""

    dataset: Dataset = "planted-documents"
    model: OwnModel = None
    encoders: Encoders | None = setting(None, "None: all that the texts allow")
    vectors: str = setting("auto", "auto (word2vec of the texts; quick, made-up: random), random, word2vec, or a file")


def every_model(settings: Settings) -> list[Run]:
    """Six models: over words alone and over sentences, with an RNN, with convolutions, and without an encoder."""
    encoders = settings.encoders or (*FLAN, *(HIERARCHICAL if spec(settings.dataset).sentences else ()))
    seeds = settings.seeds_or(1 if settings.profile == "quick" else None)
    return [model(settings, *part) for part in product(encoders, seeds)]


def model(settings: Settings, encoder: str, seed: int) -> Run:
    """An encoder trained as the paper trains it on that dataset, or on the one most like it."""
    run = settings.run(encoder, "additive", seed, recipe="serrano2019")
    few = settings.profile == "quick" or settings.dataset.startswith("planted")
    if is_pretrained(encoder):  # trained as such models are
        return run
    options = (SMALL if few else printed(settings.dataset, encoder)) | dict(run.options)
    options |= {"epochs": 8} if settings.profile == "quick" else {}  # on dev none gets better later
    vectors = run.vectors if run.vectors != "auto" else "random" if few else "word2vec"
    return replace(run, vectors=vectors, options=tuple(options.items()))


def printed(dataset: str, encoder: str) -> dict[str, float]:
    """The options that the paper and its authors' code have for an encoder on IMDB; for topics on Yahoo."""
    kind = "han" if encoder in HIERARCHICAL else "flan"
    options = PRINTED | {"han": OF_HAN, "flan": OF_FLAN}[kind]
    options |= {"classifier_dropout": OF_TOPICS[kind]} if dataset == "agnews4" else {}
    return options | (WITHOUT_ENCODER if encoder.endswith("noenc") else {}) | (OF_FEW if dataset in FEW else {})


def tables(measured: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """What the findings read: every model's effects of erasing.

    Nothing is read of texts of fewer than FEWEST_SENTENCES where sentences are erased. `measured` has single_erasure as
    "top" and until_flip as "removed".
    """
    rows = add_drawn(measured)
    short = rows["encoder"].isin(list(HIERARCHICAL)) & (rows["removed_items"] < FEWEST_SENTENCES)
    rows.loc[short, [name for name in rows if name.startswith(("top_", "removed_"))]] = nan
    return {"measured": add_entropies(add_sooner(rows, "product", "attention"), ["attention"])}


def gradient_sooner_to_later(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """S3: log of how many times as often the gradient flips the decision sooner than attention, as later."""
    for key, rows in split_models(tables["measured"], ["encoder"]):
        effect = sooner_ratio(sooner_signs(rows, "gradient", "attention"))
        yield {"model": model_name(key.values())}, [rows], effect


def counted() -> pd.DataFrame:
    """`counted_models` of all kept models on real texts, but those that are no evidence, beside the paper's counts."""
    values, found = (results.main_runs(results.kept(kind, "erasure"), kind) for kind in ("values", "findings"))
    real = values[~values["dataset"].str.startswith("planted")]
    counts = counted_models(real, found[found["finding"].eq("S2") & found["left_out"].ne("")])
    return counts.assign(paper=["10 of 16", "14 of 24", "24 of 24"])


PAPER = Paper("erasure", "serrano2019", ErasureSettings, (every_model,))
