"""The runs of Jain & Wallace (2019)."""

from dataclasses import replace
from itertools import product

from lib.datasets import spec
from lib.programme.choice import Choice, seeds_of
from lib.training import Run

ENCODERS = ("bilstm", "average", "conv")
VECTOR_SCALES = {"quick": (1.0, 0.1), "paper": (1.0, 0.3, 0.1)}
SCALE_SEEDS = {"quick": 1, "paper": None}  # None: all
# Of tasks with a question, by how their name begins: the batch and the sizes of their code (a BiLSTM's are those of its
# two directions together), and the epochs: theirs, and enough for the part that `quick` reads. The words of bAbI's
# stories stand for nothing else, so their vectors are random.
BATCH = {"snli": 128, "cnn": 90, "babi": 50}
EPOCHS = {"paper": {"snli": 25, "cnn": 25, "babi": 100}, "quick": {"snli": 6, "cnn": 4, "babi": 25}}
SMALL = {"bilstm": 64, "average": 32, "conv": 32}
SMALL_VECTORS = 50


def correlation(choice: Choice) -> list[Run]:
    """Every encoder with every attention, several seeds."""
    seeds = seeds_of(choice.profile, choice.seeds)
    models = product(choice.encoders or ENCODERS, choice.attentions, seeds)
    asks = spec(choice.dataset).asks
    return [answering(choice, *model) if asks else choice.run(*model) for model in models]


def answering(choice: Choice, encoder: str, attention: str, seed: int) -> Run:
    """A model that answers questions, trained as their code trains it."""
    task = choice.dataset.rstrip("123")
    options = {"batch_size": BATCH[task], "epochs": EPOCHS[choice.profile][task]}
    run = choice.run(encoder, attention, seed, recipe="jain2019-questions")
    if task == "babi":
        options |= {"hidden_size": SMALL.get(encoder)} | ({"embedding_size": SMALL_VECTORS} if made_up(run) else {})
        run = replace(run, vectors="random") if made_up(run) else run
    return replace(run, options=tuple(options.items()))


def made_up(run: Run) -> bool:
    """Whether a run's vectors are not a file's that a reader chose."""
    return run.vectors in ("auto", "random")


def vector_scales(choice: Choice) -> list[Run]:
    """The first encoder and attention, its word vectors as they are and shorter: why taus differ."""
    seeds = seeds_of(choice.profile, choice.seeds)[: SCALE_SEEDS[choice.profile]]
    first = {"encoders": (choice.encoders or ENCODERS)[:1], "attentions": choice.attentions[:1], "seeds": seeds}
    first = correlation(replace(choice, **first))
    scales = [() if scale == 1 else (("vector_scale", scale),) for scale in VECTOR_SCALES[choice.profile]]
    return [replace(run, options=(*run.options, *options)) for options in scales for run in first]
