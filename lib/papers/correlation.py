"""Jain & Wallace (2019)."""

from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
import pandas as pd

from lib import models
from lib.analysis import difference, summarise
from lib.datasets import spec
from lib.papers.claim import Claim, adversary_of, by_model, verdict
from lib.papers.paper import Paper
from lib.papers.settings import Settings
from lib.quantity import declare, tau_name, title_of
from lib.training import Run

KEY = "jain2019"

# Runs

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


@dataclass(frozen=True)
class CorrelationSettings(Settings):
    """The parameters of `correlation`, the notebook that also reads texts with a question."""

    answers_questions: ClassVar[bool] = True


def every_model(settings: Settings) -> list[Run]:
    """Every encoder with every attention, several seeds."""
    chosen = product(settings.encoders or ENCODERS, settings.attentions, settings.seeds_or())
    asks = spec(settings.dataset).asks
    return [answering(settings, *model) if asks else settings.run(*model) for model in chosen]


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


def vector_scales(settings: Settings) -> list[Run]:
    """The first encoder and attention, its word vectors as they are and shorter: why taus differ."""
    seeds = settings.seeds_or()[: SCALE_SEEDS[settings.profile]]
    first = {"encoders": (settings.encoders or ENCODERS)[:1], "attentions": settings.attentions[:1], "seeds": seeds}
    first = every_model(replace(settings, **first))
    scales = [() if scale == 1 else (("vector_scale", scale),) for scale in VECTOR_SCALES[settings.profile]]
    return [replace(run, options=(*run.options, *options)) for options in scales for run in first]


# Claims

GRADIENT = ("attention", "gradient_times_input")
EACH_OTHER = ("gradient_times_input", "leave_one_out_of_input")
SMALL_CHANGE = 0.05  # of the probability: the bound within which Jain & Wallace's adversary counts as unchanged
FAR = np.log(2) / 2  # nats: half of the largest possible Jensen-Shannon divergence


def claims(instances: pd.DataFrame) -> list[Claim]:
    """Each claim with its verdict, for every model that it is about.

    Needs the taus of attention, gradient x input and leave-one-out, `permutation` and the adversary (`adversary_of`).
    """
    claims = []
    for model, group in by_model(instances, "encoder", "attention"):
        encoder = group["encoder"].iloc[0]
        if encoder == "bilstm" or encoder not in models.ENCODERS:  # or your own model
            claims.append(weakly_correlated(model, group))
        claims += [permutation_changes_little(model, group), adversary_exists(model, group)]
    if {"average", "bilstm"} <= set(instances["encoder"]):
        for attention, rows in instances.groupby("attention", sort=False):
            claims.append(simple_encoder_correlates_more(rows, attention))
    order = ["correlates", "simple", "permut", "adversar"]
    return sorted(claims, key=lambda claim: next(i for i, word in enumerate(order) if word in claim.claim.lower()))


def weakly_correlated(model: str, group: pd.DataFrame) -> Claim:
    """Attention agrees less with the gradient than the gradient agrees with leave-one-out (section 4.1)."""
    gap = group[tau_name(EACH_OTHER)] - group[tau_name(GRADIENT)]
    row = summarise(group.assign(gap_of_taus=gap), [declare("gap_of_taus", "tau-b", bounds=(-2, 2))]).iloc[0]
    ours = summarise(group, [tau_name(GRADIENT), tau_name(EACH_OTHER)])["value"]
    evidence = (
        f"attention / gradient {ours[0]:.2f}, gradient / leave-one-out {ours[1]:.2f} tau-b: "
        f"{row['value']:.2f} more [{row['low']:.2f}, {row['high']:.2f}]"
    )
    claim = "Attention correlates less with the gradient than the gradient does with leave-one-out"
    return Claim(KEY, "attention correlates weakly", claim, model, verdict(row["low"], row["high"]), evidence)


def simple_encoder_correlates_more(rows: pd.DataFrame, attention: str) -> Claim:
    """In the average encoder attention agrees more with the gradient than in the BiLSTM (section 4.1)."""
    row = difference(rows, tau_name(GRADIENT), ({"encoder": "average"}, {"encoder": "bilstm"}))
    evidence = (
        f"attention / gradient: average {row['first']:.2f}, BiLSTM {row['second']:.2f} tau-b; "
        f"difference {row['difference']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]"
    )
    claim = "The simple encoder's attention agrees more with the gradient than the BiLSTM's"
    model = f"average against BiLSTM, {title_of(attention)}"
    short = "a simple encoder's attention correlates more"
    return Claim(KEY, short, claim, model, verdict(row["low"], row["high"]), evidence)


def of_most_texts(group: pd.DataFrame, values: pd.Series, holds: pd.Series, what: str) -> tuple[str, str]:
    """(verdict, evidence): does it hold for more than half of the texts of which the value is defined?"""
    shares = group.assign(share=holds.astype(float).where(values.notna()))
    row = summarise(shares, [declare("share", "fraction")]).iloc[0]
    evidence = f"{what} in {row['value']:.0%} of the texts [{row['low']:.0%}, {row['high']:.0%}]"
    return verdict(row["low"], row["high"], 0.5), evidence


def permutation_changes_little(model: str, group: pd.DataFrame) -> Claim:
    """The median change of p under permuted attention is small for most texts (section 4.2.1)."""
    moved = group["permutation"]
    found = of_most_texts(group, moved, moved <= SMALL_CHANGE, f"median change of p at most {SMALL_CHANGE}")
    claim = "Permuting the attention hardly changes the prediction of most texts"
    return Claim(KEY, "permuting it changes little", claim, model, *found)


def adversary_exists(model: str, group: pd.DataFrame) -> Claim:
    """For most texts a quite different attention gives the same prediction (section 4.2.2)."""
    jsd = group[adversary_of(group)]
    found = of_most_texts(group, jsd, jsd >= FAR, f"JSD of at least {FAR:.2f} nats (half of the maximum) is reached")
    claim = "An adversarial attention, far from the model's own, gives the same prediction for most texts"
    return Claim(KEY, "an adversary exists", claim, model, *found)


PAPER = Paper(
    "correlation",
    KEY,
    "Jain & Wallace 2019",
    "Sarthak Jain and Byron C. Wallace (2019): Attention is not Explanation. NAACL.",
    "Attention agrees only weakly with gradients and leave-one-out, and other attention gives the same prediction",
    CorrelationSettings,
    (every_model,),
    claims,
    beside=(vector_scales,),
    seconds=55.0,
)
