"""Jain & Wallace (2019)."""

from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
import pandas as pd

from lib.datasets import spec
from lib.models.attention import QUERY_INITS
from lib.training import Run
from papers import published
from papers.correlation_claims import CLAIMS, KEY, evidence
from papers.paper import Paper
from papers.settings import Settings, setting

# Runs

ENCODERS = ("bilstm", "average", "conv")
VECTOR_SCALES = {"quick": (0.1,), "paper": (0.3, 0.1)}  # beside 1, the vectors as they are
# Of tasks with a question, by how their name begins: the batch and the sizes of their code (a BiLSTM's are those of its
# two directions together), and the epochs: theirs, and enough for the part that `quick` reads. The words of bAbI's
# stories stand for nothing else, so their vectors are random.
BATCH = {"snli": 128, "cnn": 90, "babi": 50}
EPOCHS = {"paper": {"snli": 25, "cnn": 25, "babi": 100}, "quick": {"snli": 6, "cnn": 4, "babi": 25}}
SMALL = {"bilstm": 64, "average": 32, "conv": 32}
SMALL_VECTORS = 50


@dataclass(frozen=True)
class CorrelationSettings(Settings):
    """The parameters of `correlation`, the notebook that also reads texts with a question.

    vector_scales  what the word vectors are multiplied by in section 7, beside 1; none: the profile's
    query_init     how the query of dot attention starts: default, as torch initialises it, with which attention often
                   stays uniform, or normal, from N(0, 1) (Tutek & Šnajder 2020, appendix C)
    """

    answers_questions: ClassVar[bool] = True

    vector_scales: tuple[float, ...] = ()
    query_init: str = setting("default", allowed=QUERY_INITS)


def every_model(settings: Settings) -> list[Run]:
    """Every encoder with every attention, several seeds."""
    chosen = product(settings.encoders or ENCODERS, settings.attentions, settings.seeds_or())
    asks = spec(settings.dataset).asks
    runs = [answering(settings, *model) if asks else settings.run(*model) for model in chosen]
    start = (("query_init", settings.query_init),) if settings.query_init != "default" else ()
    return [replace(run, options=run.options + start * (run.attention == "dot")) for run in runs]


def answering(settings: Settings, encoder: str, attention: str, seed: int) -> Run:
    """A model that answers questions, trained as their code trains it."""
    task = settings.dataset.rstrip("123")
    options = {"batch_size": BATCH[task], "epochs": EPOCHS[settings.profile][task]}
    run = settings.run(encoder, attention, seed, recipe="jain2019-questions")
    if task == "babi":
        options["hidden_size"] = SMALL.get(encoder)
        if run.vectors in ("auto", "random"):  # not a file's that a reader chose
            options["embedding_size"] = SMALL_VECTORS
            run = replace(run, vectors="random")
    return replace(run, options=tuple(options.items()))


def values_by_start(settings: CorrelationSettings, summary: pd.DataFrame) -> pd.DataFrame:
    """The values to keep: those of dot attention whose query starts from N(0, 1) are no partners of the paper's."""
    if settings.query_init == "default":
        return summary
    return summary.assign(start=summary["attention"].eq("dot").map({True: settings.query_init}))


def evidence_by_start(settings: CorrelationSettings, evidence: pd.DataFrame) -> pd.DataFrame:
    """The evidence: models with dot attention whose query starts from N(0, 1) are others than the paper's."""
    if settings.query_init == "default":
        return evidence
    return evidence.assign(model=evidence["model"].str.replace(r"\bdot$", "dot, query from N(0, 1)", regex=True))


def vector_scales(settings: Settings) -> list[Run]:
    """Every run again with shorter word vectors; in `quick` the first alone: do they explain other taus?

    None where `vector_scales` is 1: the vectors as they are, which the runs of every model have.
    """
    if settings.profile == "quick":
        first = {"encoders": (settings.encoders or ENCODERS)[:1], "attentions": settings.attentions[:1]}
        settings = replace(settings, **first, seeds=tuple(settings.seeds_or()[:1]))
    scales = settings.vector_scales or VECTOR_SCALES[settings.profile]
    chosen = product([scale for scale in scales if scale != 1], every_model(settings))
    return [replace(run, options=(*run.options, ("vector_scale", scale))) for scale, run in chosen]


# Published values that ours miss


def explained_by_norm(scales: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Each published tau or share with ours at every norm of the word vectors: does it explain what ours miss?

    Args:
        scales: of `lib.analysis.taus_by_option` with vector_scale.
    Returns:
        encoder, attention, quantity, theirs, "ours at NUMBER" of each norm, and `norm`: "the same" where ours agree
        with the vectors as they are, "explains it" where they agree with shorter ones or theirs lie between ours at two
        norms, "explains a part" where shorter ones are nearer by half or more, else "does not explain it".
    """
    keys = ["encoder", "attention", "quantity"]
    wide = scales.pivot(index=keys, columns="vector_scale", values="value").sort_index(axis=1, ascending=False)
    both = theirs[[*keys, "unit", "value"]].merge(wide.reset_index(), on=keys)
    allowed = np.array([published.tolerance(*row) for row in both[["quantity", "unit", "value"]].to_numpy()])
    apart = both[list(wide)].sub(both["value"], axis=0)
    usual, least = apart[1.0].abs(), apart.abs().min(axis=1)
    between = apart.min(axis=1) * apart.max(axis=1) < 0
    words = np.select(
        [usual <= allowed, between | (least <= allowed), least <= usual / 2],
        ["the same", "explains it", "explains a part"],
        "does not explain it",
    )
    named = {norm: f"ours at {norm:g}" for norm in wide}
    both = both.drop(columns="unit")
    return both.rename(columns={"value": "theirs", **named}).assign(norm=words)


PAPER = Paper(
    "correlation",
    KEY,
    "Jain & Wallace 2019",
    "Attention agrees only weakly with gradients and leave-one-out, and other attention gives the same prediction",
    CorrelationSettings,
    (every_model,),
    CLAIMS,
    evidence,
    beside=(vector_scales,),
    seconds=65.0,
)
