"""The runs of Serrano & Smith (2019)."""

from dataclasses import dataclass, replace

from lib.datasets import spec
from lib.models.encoders import FLAN as OF_WORDS
from lib.models.encoders import HIERARCHICAL
from lib.programme.choice import Choice, seeds_of
from lib.training import Run

FLAN, HAN = tuple(OF_WORDS), tuple(HIERARCHICAL)
SEEDS = {"quick": 1, "paper": None}  # None: the profile's


@dataclass(frozen=True)
class Setting:
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
    "yahoo": Setting(4e-4, (0.4445, 0.2202, 0.3749), (0.4445, 0.4457), 15),
    "imdb10": Setting(4e-4, (0.4445, 0.2202, 0.2457), (0.4445, 0.3457), 15),
    "amazon": Setting(2e-4, (0.6, 0.2, 0.4), (0.6, 0.4)),
    "yelp": Setting(1e-4, (0.7, 0.1, 0.7), (0.7, 0.7)),
}
LIKE = {"agnews4": "yahoo"}  # topics; all else that the paper does not have is trained like its smallest, imdb10
PATIENCE, WITHOUT_ENCODER = 5, {"patience": 10, "epochs": 60}
# The profile `quick`, and made-up texts: few of them, so larger steps, and random vectors, as word2vec has nothing to
# learn from.
SMALL = {"learning_rate": 3e-3, "batch_size": 32, "epochs": 12}
QUICK = {"epochs": 8}  # on dev none gets better later
MADE_UP = "planted"


def erasure(choice: Choice) -> list[Run]:
    """Six models: over words alone and over sentences, with an RNN, with convolutions, and without an encoder."""
    seeds = seeds_of(choice.profile, choice.seeds or SEEDS[choice.profile])
    return [model(choice, encoder, seed) for encoder in encoders_of(choice) for seed in seeds]


def encoders_of(choice: Choice) -> list[str]:
    """Those that were chosen; none: all six, or the three over words where the texts are not cut into sentences."""
    return list(choice.encoders or (*FLAN, *(HAN if spec(choice.dataset).sentences else ())))


def model(choice: Choice, encoder: str, seed: int) -> Run:
    """An encoder trained as the paper trains it on that dataset, or on the one most like it."""
    run = choice.run(encoder, "additive", seed, recipe="serrano2019")
    few = choice.profile == "quick" or choice.dataset.startswith(MADE_UP)
    options = (SMALL if few else printed(choice.dataset, encoder)) | choice.of_dataset
    options |= QUICK if choice.profile == "quick" else {}
    if run.vectors not in ("auto", "random", "word2vec"):
        options |= {"embedding_size": 300}  # a file's
    vectors = run.vectors if run.vectors != "auto" else "random" if few else "word2vec"
    return replace(run, vectors=vectors, options=tuple(options.items()))


def printed(dataset: str, encoder: str) -> dict[str, float]:
    """The options that the paper and its authors' code have for an encoder on a dataset."""
    setting = PRINTED[LIKE.get(dataset, dataset if dataset in PRINTED else "imdb10")]
    options = {"learning_rate": setting.learning_rate, "epochs": setting.epochs, "patience": PATIENCE}
    if encoder in HAN:
        options |= dict(zip(("sentence_dropout", "document_dropout", "classifier_dropout"), setting.han, strict=True))
    else:
        options |= dict(zip(("document_dropout", "classifier_dropout"), setting.flan, strict=True))
    return options | (WITHOUT_ENCODER if encoder.endswith("noenc") else {})
