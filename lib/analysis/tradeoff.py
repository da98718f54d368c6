"""Trained runs beside their bases: how far attention moved, and what that cost in the prediction."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from scipy.special import rel_entr
from torch import Tensor, nn

from lib.analysis.histories import still_leaving
from lib.analysis.measuring import BATCH, attention_weights, max_attention, measure
from lib.analysis.statistics import weighted_f1
from lib.analysis.summaries import difference
from lib.datasets.batches import Batch
from lib.metrics import jensen_shannon, probabilities, total_variation
from lib.models.interface import ModelOutput
from lib.progress import Progress
from lib.quantity import JSD_BOUNDS, Quantity, declare
from lib.training import Run, Trained
from lib.training.tasks import BaseOutputs

AXES = ("jsd", "tvd")


def measure_versus_base(
    trained: Sequence[Trained], bases: Sequence[Trained], quantities: Sequence[Quantity] = ()
) -> pd.DataFrame:
    """`measure` of each run on test beside the base in the same place, one below the other.

    Besides the quantities: attention_weights, max_attention; tvd, between the predictions, a fraction of probability
    (of both classes: |change of p|), and tvd_half, half of it, as Wiegreffe & Pinter (2019) count it; jsd, between the
    attentions, in nats; base_prediction; by what adversaries differ, lambda and `trains`
    (`kind_trained`); and whether they converged: their loss, and the distance (`still_leaving`). seed is the base's of
    an adversary, whatever its own.

    Raises:
        ValueError: not as many bases as runs, or a run and its base read other data.
    """
    frames, outputs = [], {}
    with Progress("measuring against the base", total=len(trained)) as progress:
        for one, base in zip(trained, bases, strict=True):
            if one.corpus.checksum != base.corpus.checksum:
                raise ValueError(f"{one.run} and its base {base.run} read other data; they must read the same")
            if base.run not in outputs:
                outputs[base.run] = BaseOutputs.of(base.model, base.corpus.test, base.batches("test", BATCH))
            wanted = [*distances(outputs[base.run]), *quantities]
            frame = measure(one.model, one.batches("test", BATCH), wanted, one.run, progress)
            strength = one.run.option("lambda") if one.run.variant == "adversary" else np.nan
            settings = {"lambda": strength, "trains": kind_trained(one.run)}
            left = strength > 0 and still_leaving(one.history)
            settings["converged"] = one.run.variant != "adversary" or (one.converged and not left)
            settings["seed"] = (one.run.base or one.run).seed
            frames.append(frame.assign(**settings, tvd_half=frame["tvd"] / 2))
    return pd.concat(frames, ignore_index=True)


def kind_trained(run: Run) -> str:
    """What of an adversary is trained, "all" or "attention", and whether from the base's weights; "" for another."""
    if run.variant != "adversary":
        return ""
    return run.option("trains") + (" from the base" if run.option("starts") == "base" else "")


def changes_of_score(measured: pd.DataFrame) -> pd.DataFrame:
    """What adversaries lose of accuracy against their bases: a row for each encoder, projection, `trains` and lambda.

    Args:
        measured: rows of `measure_versus_base`, of adversaries and of the bases themselves.
    Returns:
        encoder, projection, trains, lambda; `difference` of the adversary (first) less its base (second), in
        pairs of one seed; jsd, the mean of the attentions' (nats).
    """
    bases, rows = measured[measured["variant"] == "base"], []
    adversaries = measured[measured["variant"] == "adversary"]
    names = ["encoder", "projection", "trains", "lambda"]
    for key, some in adversaries.groupby(names, sort=False):
        base = bases[(bases["encoder"] == key[0]) & (bases["projection"] == key[1])]
        table = difference(pd.concat([some, base]), ["accuracy"], ({"variant": "adversary"}, {"variant": "base"}))
        rows.append(table.assign(**dict(zip(names, key, strict=True)), jsd=some["jsd"].mean()))
    return pd.concat(rows, ignore_index=True)


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
    ]


def across_seeds(bases: pd.DataFrame, reduce: str = "median") -> pd.DataFrame:
    """The rows of bases with how far other seeds move the attention of each text: `jsd_of_seeds`, nats.

    Wiegreffe & Pinter (2019), figure 3 a-d: the median, or as its caption has it the maximum, of the JSD to the same
    model under every other seed. Differs from the paper: each seed is the base once, not one alone.

    Args:
        bases: rows of one configuration with `attention_weights`, of the same texts in at least two seeds.
    """
    weights = bases.pivot(index="instance", columns="seed", values="attention_weights")
    starts = np.cumsum([0, *weights.iloc[:, 0].map(len)])[:-1]
    of_seeds = {seed: np.concatenate(column.tolist()).astype(np.float64) for seed, column in weights.items()}
    over = np.median if reduce == "median" else np.max
    found = {
        seed: over([text_jsd(own, other, starts) for place, other in of_seeds.items() if place != seed], axis=0)
        for seed, own in of_seeds.items()
    }
    declare("jsd_of_seeds", "nats", bounds=JSD_BOUNDS)
    table = pd.DataFrame(found, index=weights.index)
    pairs = zip(bases["instance"], bases["seed"], strict=True)
    return bases.assign(jsd_of_seeds=[table.at[pair] for pair in pairs])


def text_jsd(p: np.ndarray, q: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The JSD in nats of each text's attention, one text after the other: (token,), (token,), (text,) -> (text,)."""
    middle = (p + q) / 2
    return np.add.reduceat(rel_entr(p, middle) + rel_entr(q, middle), starts) / 2


def as_adversaries(measured: pd.DataFrame, method: str) -> pd.DataFrame:
    """Bases measured with `lib.interventions.adversary` as rows of `measure_versus_base`: jsd and tvd are its."""
    found = {axis: measured[f"adversary_{method}_{axis}"] for axis in AXES}
    return measured.assign(variant="instance_adversary", base_prediction=measured["prediction"], **found)


def single_runs(bases: pd.DataFrame, adversaries: pd.DataFrame) -> pd.DataFrame:
    """Each trained adversary by itself: trains, lambda, seed, f1, base_f1, tvd_half, tvd, jsd (means over texts).

    Args:
        bases: rows of the bases. adversaries: rows of `measure_versus_base`.
    """
    of_bases, rows = {seed: f1_of(some) for seed, some in bases.groupby("seed")}, []
    for (trains, strength, seed), some in adversaries.groupby(["trains", "lambda", "seed"]):
        scores = {"f1": f1_of(some), "base_f1": of_bases[seed]}
        means = {"tvd_half": some["tvd"].mean() / 2, "tvd": some["tvd"].mean(), "jsd": some["jsd"].mean()}
        rows.append({"trains": trains, "lambda": strength, "seed": seed} | scores | means)
    return pd.DataFrame(rows)


def of_runs(rows: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Those of `rows`, a text each, that are of one of `runs`: the same trains, lambda and seed."""
    keys = ["trains", "lambda", "seed"]
    return rows.merge(runs[keys].drop_duplicates(), on=keys)


def f1_of(rows: pd.DataFrame) -> float:
    """The F1 of one run: of the positive class, of several classes their mean."""
    label, prediction = (rows[name].to_numpy(int) for name in ("label", "prediction"))
    return float(weighted_f1(np.ones((1, len(rows))), label, prediction, max(2, label.max() + 1))[0])


@torch.no_grad()
def adversary_method(trained: Sequence[Trained]) -> str:
    """ "exact" where every model has one output with an affine read-out, else "gradient", the search."""
    for one in trained:
        output = one.model(next(one.batches("test", 1)))
        if output.logits.shape[1] != 1 or one.model.token_logits(output) is None:
            return "gradient"
    return "exact"
