"""Trained runs held against their bases: how far predictions and attention are apart, text by text."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from torch import Tensor, nn

from lib.analysis.contrast import score_difference
from lib.analysis.measuring import BATCH, attention_weights, max_attention, measure
from lib.datasets.batches import Batch
from lib.metrics import jensen_shannon, probabilities, total_variation
from lib.models.interface import ModelOutput
from lib.progress import Progress
from lib.quantity import JSD_BOUNDS, Quantity, declare, declared
from lib.training import Trained
from lib.training.tasks import BaseOutputs

SETTINGS = ("lambda", "trains")


def measure_versus_base(
    trained: Sequence[Trained],
    bases: Sequence[Trained],
    quantities: Sequence[Quantity] = (),
    split: str = "test",
) -> pd.DataFrame:
    """`measure` of each run beside the base in the same place, one below the other.

    Besides the quantities: attention_weights, max_attention; tvd, between the predictions, a fraction of probability
    (of both classes: |change of p|), and tvd_half, half of it, as Wiegreffe & Pinter (2019) count it; jsd, between the
    attentions, in nats; base_prediction, base_max_attention; and the columns of SETTINGS, which tell adversaries apart.

    Raises:
        ValueError: not as many bases as runs, or a run and its base read other data.
    """
    if len(trained) != len(bases):
        raise ValueError(f"{len(trained)} runs and {len(bases)} bases; each run needs its own, the same one or not")
    frames, outputs = [], {}
    with Progress("measuring against the base", total=len(trained)) as progress:
        for one, base in zip(trained, bases, strict=True):
            if one.corpus.checksum != base.corpus.checksum:
                raise ValueError(f"{one.run} and its base {base.run} read other data; they must read the same")
            if base.run not in outputs:
                outputs[base.run] = BaseOutputs.of(base.model, getattr(base.corpus, split), base.batches(split, BATCH))
            wanted = [*distances(outputs[base.run]), *quantities]
            frame = measure(one.model, one.batches(split, BATCH), wanted, one.run, progress)
            frames.append(frame.assign(**settings(one), tvd_half=frame["tvd"] / 2))
    return pd.concat(frames, ignore_index=True)


def changes_of_score(measured: pd.DataFrame, score: str = "accuracy") -> pd.DataFrame:
    """What adversaries lose against their bases: a row for each encoder, projection, `trains` and lambda.

    Args:
        measured: rows of `measure_versus_base`, of adversaries and of the bases themselves.
    Returns:
        encoder, projection, trains, lambda; `score_difference` of the adversary (first) less its base (second), in
        pairs of one seed; jsd, the mean of the attentions' (nats).
    """
    bases, rows = measured[measured["variant"] == "base"], []
    adversaries = measured[measured["variant"] == "adversary"]
    names = ["encoder", "projection", "trains", "lambda"]
    for key, some in adversaries.groupby(names, sort=False):
        base = bases[(bases["encoder"] == key[0]) & (bases["projection"] == key[1])]
        found = score_difference(pd.concat([some, base]), score, ({"variant": "adversary"}, {"variant": "base"}))
        rows.append(dict(zip(names, key, strict=True)) | found.to_dict() | {"jsd": some["jsd"].mean()})
    return pd.DataFrame(rows)


def settings(trained: Trained) -> dict[str, object]:
    """What tells two adversaries of one seed apart."""
    if trained.run.variant != "adversary":
        return {"lambda": np.nan, "trains": ""}
    return {name: trained.run.option(name) for name in SETTINGS}


def distances(base: BaseOutputs) -> list[Quantity]:
    """The quantities of `measure_versus_base`."""

    def tvd(model: nn.Module, batch: Batch, output: ModelOutput) -> Tensor:
        return total_variation(probabilities(output.logits.double()), base.prediction[batch.instance].double())

    def jsd(model: nn.Module, batch: Batch, output: ModelOutput) -> Tensor:
        return jensen_shannon(output.attention.double(), base.attention.at(batch).double())

    return [
        attention_weights,
        max_attention,
        Quantity("tvd", tvd, "fraction"),
        Quantity("jsd", jsd, "nats", JSD_BOUNDS),
        Quantity("base_prediction", lambda model, batch, _: base.prediction[batch.instance].argmax(dim=1), "class"),
        Quantity("base_max_attention", lambda model, batch, _: base.attention.at(batch).amax(dim=1), "fraction"),
    ]


def across_seeds(measured: pd.DataFrame, base: pd.DataFrame, column: str, reduce: str = "median") -> pd.DataFrame:
    """The base's rows with what other seeds give for each text: `<column>_of_seeds`, their median or largest value.

    Wiegreffe & Pinter (2019), figure 3 a-d, whose caption says the maximum.

    Args:
        measured: rows of `measure_versus_base`, of the other seeds against one base. base: the rows of that base.
    """
    if reduce not in ("median", "max"):
        raise ValueError(f"unknown way {reduce!r} over seeds; known: median, max")
    if base["seed"].nunique() != 1:
        raise ValueError(f"the base has {base['seed'].nunique()} seeds; it must have one")
    over = measured.groupby("instance")[column].agg(reduce)
    known = declared(column)
    name = declare(f"{column}_of_seeds", known.unit, bounds=known.bounds)
    return base.assign(**{name: base["instance"].map(over)})
