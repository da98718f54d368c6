"""Jain & Wallace (2019)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import ClassVar

import numpy as np
import pandas as pd
from pydantic.dataclasses import dataclass

from lib.analysis import mean_effect
from lib.analysis.correlation import two_classes
from lib.analysis.statistics import Effect
from lib.datasets import spec
from lib.models.attention import QUERY_INITS
from lib.quantity import CHANGE_BOUNDS, declare, tau_name, title_of, unit_of
from lib.training import Run
from papers.effects import model_name, split_models
from papers.paper import Paper
from papers.settings import Attentions, Encoders, OwnModel, Settings, one_of, setting

# Of tasks with a question: the batch and the sizes of their code (a BiLSTM's are those of its two directions together),
# and the epochs: theirs, and enough for the part that `quick` reads. Vectors of bAbI's words, mere names, are random.
BATCH = {"snli": 128, "babi": 50}
EPOCHS = {"paper": {"snli": 25, "babi": 100}, "quick": {"snli": 6, "babi": 25}}
SMALL = {"bilstm": 64, "average": 32, "conv": 32}


@dataclass(frozen=True)
class CorrelationSettings(Settings):
    """Beside those of every notebook: which models, one's own or ours; here texts with a question are read too."""

    answers_questions: ClassVar[bool] = True

    model: OwnModel = None
    encoders: Encoders = setting(("bilstm", "average", "conv"), "of lib.models.ENCODERS")
    attentions: Attentions = setting(("additive", "dot"), "of lib.models.ATTENTIONS")
    query_init: one_of(QUERY_INITS) = setting("default", "start of dot attention's query: torch's, or normal, N(0, 1)")


def every_model(settings: Settings) -> list[Run]:
    """Every encoder with every attention, several seeds."""
    chosen = product(settings.encoders, settings.attentions, settings.seeds_or())
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
            options["embedding_size"] = 50
            run = replace(run, vectors="random")
    return replace(run, options=(*run.options, *options.items()))


GRADIENT = tau_name(("attention", "gradient_times_input"))
LEAVE_ONE_OUT = tau_name(("attention", "leave_one_out_of_input"))
GRADIENT_LEAVE_ONE_OUT = tau_name(("gradient_times_input", "leave_one_out_of_input"))
NORM_LEAVE_ONE_OUT = tau_name(("gradient_of_input", "leave_one_out_of_input"))
TAUS = (GRADIENT, LEAVE_ONE_OUT, GRADIENT_LEAVE_ONE_OUT)
DIFFERENCES = {  # of two columns: how much less attention agrees than another measure, or how much more than by chance
    "gap_to_gradient": (GRADIENT_LEAVE_ONE_OUT, GRADIENT, "gradient / LOO less attention / gradient"),
    "gap_known": (f"{GRADIENT_LEAVE_ONE_OUT}_known", f"{GRADIENT}_known", "the same gap, known words"),
    "gap_to_leave_one_out": (GRADIENT_LEAVE_ONE_OUT, LEAVE_ONE_OUT, "gradient / LOO less attention / LOO"),
    "gap_to_norm": (NORM_LEAVE_ONE_OUT, LEAVE_ONE_OUT, "norm of the gradient, less attention / leave-one-out"),
    "agreement_beyond_chance": (GRADIENT, "agreement_by_chance", "attention / gradient × input, beyond chance"),
    "violation_gap": ("violation_random", "violation_attention", "random less most attended token against"),
    "violation_beyond_chance": ("violation_gap", "violation_by_chance", "the same, beyond chance"),
}


def add_differences(instances: pd.DataFrame) -> pd.DataFrame:
    """The instances with those of DIFFERENCES that are of measured columns."""
    for name, (more, less, title) in DIFFERENCES.items():
        if {more, less} <= set(instances):
            bounds = (-2, 2) if unit_of(more) == "tau-b" else CHANGE_BOUNDS
            difference = instances[more] - instances[less]
            instances = instances.assign(**{declare(name, unit_of(more), title, bounds): difference})
    return instances


def add_classes(instances: pd.DataFrame) -> pd.DataFrame:
    """With what table 2 prints by predicted class, of two: a column for each, NaN in texts of the other."""
    taus = [GRADIENT, LEAVE_ONE_OUT, f"{GRADIENT}_significant", f"{LEAVE_ONE_OUT}_significant"]
    columns = {}
    for name, kind in product(taus, two_classes(instances)):
        of_class = declare(f"{name}_class_{kind}", unit_of(name), f"{title_of(name)}, class {kind}")
        columns[of_class] = instances[name].where(instances["prediction"] == kind)
    return instances.assign(**columns)


def attention_against_the_best_gradient(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """J7: tau of attention with leave-one-out, less that of the gradient that agrees with it best in the same run."""
    for key, rows in split_models(tables["measured"], ["encoder", "attention"]):
        gaps = [mean_effect(rows, name) for name in ("gap_to_leave_one_out", "gap_to_norm")]
        best = {seed: -max(gap.by_run[seed] for gap in gaps) for seed in gaps[0].by_run}
        widest = max(gaps, key=lambda gap: gap.value)
        effect = Effect("gap_to_best_gradient", float(np.mean([*best.values()])), best, widest.se, widest.n)
        yield {"model": model_name(key.values())}, [rows], effect


PAPER = Paper("correlation", "jain2019", CorrelationSettings, (every_model,))
