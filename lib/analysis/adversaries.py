"""Trained models beside their bases: how far attention moved, what that cost, and which adversaries are evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from scipy.special import rel_entr
from torch import Tensor

from lib.analysis.measuring import attention_weights, batches_of, max_attention, measure
from lib.analysis.statistics import Effect
from lib.analysis.summaries import classification, mean_effect, per_group, summarise
from lib.datasets.batches import Batch
from lib.interventions import adversary, adversary_by_chance, largest_jsd
from lib.metrics import jensen_shannon, probabilities, total_variation
from lib.models.interface import ModelOutput
from lib.progress import Progress
from lib.quantity import CHANGE_BOUNDS, JSD_BOUNDS, RUN_COLUMNS, Quantity, declare
from lib.training import Trained
from lib.training.tasks import PATIENCE, BaseOutputs

AXES = ("jsd", "tvd")
IDENTITY = ("instance", "lambda", "trains", "divergence", "converged", "seed")
DISTANCES = ("tvd", "tvd_half", "jsd")
FAR = 0.4  # nats: an attention that is nearer to the base's has not moved (Wiegreffe & Pinter 2019, table 4)
ON_PAR = 0.02  # of F1: less than the papers' own spread between two reports of one model
AT_REST = 1e-6  # nats: an adversary that starts from its base, where nothing but rounding moves it, and stays there


# --- on test


def measure_versus_base(trained: Sequence[Trained], bases: Sequence[Trained] | None = None) -> pd.DataFrame:
    """`measure` of each run on test beside its base, one below the other.

    attention_weights, max_attention; tvd, between the predictions (of two classes |change of p|), and tvd_half, half
    of it, as Wiegreffe & Pinter (2019) count it; jsd, between the attentions, in nats; base_prediction; the columns of
    `adversary_columns`. By default a run's base is what it was trained against, or itself; ValueError: not as many
    bases as runs, or a run and its base read other data.
    """
    frames, outputs = [], {}
    bases = [one.base or one for one in trained] if bases is None else bases
    with Progress("measuring against the base", total=len(trained)) as progress:
        for model, base in zip(trained, bases, strict=True):
            if model.corpus.checksum != base.corpus.checksum:
                raise ValueError(f"{model.run} and its base {base.run} read other data; they must read the same")
            if base.run not in outputs:
                outputs[base.run] = BaseOutputs.compute(base.model, base.corpus.test, batches_of(base))
            frame = measure(model.model, batches_of(model), distances(outputs[base.run]), model.run, progress)
            frames.append(frame.assign(**adversary_columns(model), tvd_half=frame["tvd"] / 2))
    return pd.concat(frames or [pd.DataFrame(columns=[*RUN_COLUMNS, *IDENTITY, *DISTANCES])], ignore_index=True)


def adversary_columns(trained: Trained) -> dict[str, object]:
    """lambda, trains, divergence, converged, and its base's seed: NaN, "", "" and True for a run that is no adversary.

    trains is "all" or "attention", with " from the base" where it starts there. An adversary has not converged if its
    loss still falls, or, as a small lambda hardly shows in it, its distance on dev grew by a tenth in PATIENCE epochs.
    """
    run, seed = trained.run, (trained.run.base or trained.run).seed
    if run.variant != "adversary":
        return {"lambda": np.nan, "trains": "", "divergence": "", "converged": True, "seed": seed}
    trains = run.option("trains") + (" from the base" if run.option("starts") == "base" else "")
    away, strength = [record["dev_jsd"] for record in trained.history], run.option("lambda")
    moves = len(away) > PATIENCE and away[-1] >= AT_REST and away[-1] - away[-1 - PATIENCE] >= away[-1] / 10
    converged = trained.converged and not (moves and strength > 0)
    of = {"lambda": strength, "trains": trains, "divergence": run.option("divergence")}
    return of | {"converged": converged, "seed": seed}


def distances(base: BaseOutputs) -> list[Quantity]:
    """The quantities of `measure_versus_base`."""

    def tvd(_, batch: Batch, output: ModelOutput) -> Tensor:
        return total_variation(probabilities(output.logits.double()), base.prediction[batch.instance].double())

    def jsd(_, batch: Batch, output: ModelOutput) -> Tensor:
        return jensen_shannon(output.attention.double(), base.attention.look_up(batch).double())

    return [
        attention_weights,
        max_attention,
        Quantity("tvd", tvd, "fraction"),
        Quantity("jsd", jsd, "nats", JSD_BOUNDS),
        Quantity("base_prediction", lambda model, batch, _: base.prediction[batch.instance].argmax(dim=1), "class"),
    ]


def scores_and_distances(rows: pd.DataFrame, score: str = "f1", distances: Sequence[str] = DISTANCES) -> pd.DataFrame:
    """A score, and mean distances to the base, of rows of `measure_versus_base`: in the columns of `summarise`."""
    return pd.concat([classification(rows, [score]), summarise(rows, distances)], ignore_index=True)


def summarise_adversaries(measured: pd.DataFrame) -> pd.DataFrame:
    """Accuracy, JSD and TVD of the adversaries of each `kind`, which is then their variant, and lambda."""
    adversaries = measured[measured["variant"] == "adversary"]
    by = ["kind", "trains", "divergence", "lambda"]
    means = per_group(adversaries, by, lambda rows: scores_and_distances(rows, "accuracy", AXES))
    return means.assign(variant=means["kind"]).drop(columns="kind")


def with_kinds(versus: pd.DataFrame, searched: pd.DataFrame, kinds: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    """Rows of `measure_versus_base` with their `kind`, by (trains, divergence), and those of `instance_adversaries`.

    Of the latter trains is "each text". An adversary with lambda 0 has no divergence: a frozen one is there for both.
    """
    both = versus["trains"].eq("attention") & versus["lambda"].eq(0) & versus["divergence"].eq("kl").any()
    searched = searched.assign(variant="adversary", trains="each text", divergence="jsd", converged=True)
    rows = pd.concat([versus, versus[both].assign(divergence="kl"), searched], ignore_index=True)
    return rows.assign(kind=[kinds.get(pair, "") for pair in zip(rows["trains"], rows["divergence"], strict=True)])


def at_one_distance(measured: pd.DataFrame, kinds: Sequence[str]) -> pd.DataFrame:
    """Adversaries of several kinds, of the column `kind`, equally far away: at the largest mean JSD that all reach.

    In each seed by itself, and text by text, on the line between the two runs of a kind whose mean JSD is next to it
    (where all are farther, at the nearest):
    their jsd, accuracy (1 where the prediction is right), and accuracy_lost, that of the kind's run with lambda 0 less
    it. Adversaries that have not converged are left out. So are seeds in which that distance, `reached`, is below FAR,
    or a kind's run with lambda 0 is missing. `measured`: rows of `measure_versus_base` of one model.
    """
    lost = declare("accuracy_lost", "fraction", None, CHANGE_BOUNDS)
    rows = measured[measured["kind"].isin(kinds) & measured["converged"]]
    rows = rows.assign(accuracy=rows["label"].eq(rows["prediction"]).astype(float))
    found = [rows[:0].assign(reached=0.0, **{lost: 0.0})]
    for _, of_seed in rows.groupby("seed"):
        away = of_seed.groupby(["kind", "lambda"])["jsd"].mean().sort_values()
        reached = away.groupby("kind").max().min()
        able = set(of_seed.loc[of_seed["lambda"].eq(0), "kind"])
        for kind, own in of_seed.groupby("kind") if able == set(kinds) else ():
            runs = {strength: run.set_index("instance") for strength, run in own.groupby("lambda")}
            place, order = np.interp(reached, away[kind], range(len(runs))), [runs[at] for at in away[kind].index]
            low, high = order[int(np.floor(place))], order[int(np.ceil(place))]
            both = {axis: low[axis] + place % 1 * (high[axis] - low[axis]) for axis in ("jsd", "accuracy")}
            both |= {"reached": reached, lost: runs[0]["accuracy"] - both["accuracy"]}
            found.append(low.assign(**both).reset_index())
    return pd.concat(found, ignore_index=True).query("reached >= @FAR")


def seed_distances(instances: pd.DataFrame) -> pd.DataFrame:
    """The rows with how far other seeds move the attention of each text: `jsd_of_seeds`, nats; of one seed without it.

    Wiegreffe & Pinter (2019), figure 3 a-d: the median (as its caption has it the maximum) of the JSD to the same model
    under every other seed. Differs from the paper: each seed is the base once, not one alone. The rows have
    `attention_weights`; all seeds of a configuration have the same texts.
    """
    declare("jsd_of_seeds", "nats", bounds=JSD_BOUNDS)
    return per_group(instances, RUN_COLUMNS, from_other_seeds)


def from_other_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """`seed_distances` of one configuration."""
    weights = rows.pivot(index="instance", columns="seed", values="attention_weights")
    if len(weights.columns) == 1:
        return rows
    starts = np.cumsum([0, *weights.iloc[:, 0].map(len)])[:-1]
    flat = {seed: np.concatenate(weights[seed].tolist()).astype(np.float64) for seed in weights}

    def apart(first: int, second: int) -> np.ndarray:  # (text,) JSD
        p, q = flat[first], flat[second]
        middle = (p + q) / 2
        return np.add.reduceat(rel_entr(p, middle) + rel_entr(q, middle), starts) / 2

    moved = {own: np.median([apart(own, other) for other in flat if other != own], axis=0) for own in flat}
    table = pd.DataFrame(moved, index=weights.index)
    pairs = zip(rows["instance"], rows["seed"], strict=True)
    return rows.assign(jsd_of_seeds=[table.at[pair] for pair in pairs])


def distance_beyond_seeds(other: pd.DataFrame, bases: pd.DataFrame) -> Effect:
    """How much farther other attention (`jsd`) is from the base's than other seeds' (`seed_distances`): nats."""
    keys, gap = ["seed", "instance"], declare("jsd_gap", "nats", bounds=(-JSD_BOUNDS[1], JSD_BOUNDS[1]))
    both = bases.drop(columns="jsd", errors="ignore").merge(other[[*keys, "jsd"]], on=keys).dropna(subset="jsd")
    effect = mean_effect(both.assign(**{gap: both["jsd"] - both["jsd_of_seeds"]}), gap)
    of_seeds = both.groupby("seed")["jsd_of_seeds"].mean()
    return replace(effect, se=error_of_pairs(effect.se, of_seeds)) if len(of_seeds) > 1 else effect


def error_of_pairs(se: float, of_seeds: pd.Series) -> float:
    """The standard error over texts, with what the spread over seeds lacks where each value is of pairs of seeds.

    Each pair is in the values of both seeds, so the variance of their mean is four times that of independent ones (the
    jackknife of a mean over pairs), of which their spread has one.
    """
    return float(np.sqrt(se**2 + 3 * of_seeds.var() / len(of_seeds)))


def searches(trained: Sequence[Trained]) -> list[Quantity]:
    """The search for adversaries of single texts (Jain & Wallace 2019, section 4.2.2); where known, the optimum."""
    search = adversary(method="gradient", with_attention=True)
    return [search, adversary(with_attention=True)] if all(map(has_optimum, trained)) else [search]


@torch.no_grad()
def has_optimum(trained: Trained) -> bool:
    """Whether the exact adversary is known: the model has two classes and an affine read-out."""
    output = trained.model(next(trained.batches("test", 1)))
    return output.logits.shape[1] <= 2 and trained.model.token_logits(output) is not None


def adversaries_of_texts(trained: Sequence[Trained]) -> list[Quantity]:
    """`searches`, the largest JSD that there is, and by chance the optimum, or else the search, of one order a text."""
    measured = searches(trained)
    options = {} if len(measured) > 1 else {"method": "gradient", "draws": 1}
    return [*measured, largest_jsd(), adversary_by_chance(**options)]


def instance_adversaries(measured: pd.DataFrame, method: str) -> pd.DataFrame:
    """Rows of `searches` as of `measure_versus_base`, with the adversary's jsd and tvd; none if not measured."""
    rows = measured if f"adversary_{method}_jsd" in measured else measured[:0]
    return rows.assign(**{axis: rows.get(f"adversary_{method}_{axis}") for axis in AXES}, **{"lambda": np.nan})


def points(series: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The runs of each series, rows of `measure_versus_base`, as points (Wiegreffe & Pinter 2019, figure 5).

    Returns quantity ("point"), series, at (lambda, or NaN), seed, n, jsd (the mean, nats), jsd_low, jsd_high (95% over
    texts), tvd (fraction), tvd_low, tvd_high.
    """
    rows = []
    for name, instances in series.items():
        for (strength, seed), run in instances.groupby(["lambda", "seed"], dropna=False):
            point = {"quantity": "point", "series": name, "at": strength, "seed": seed}
            for mean in summarise(run, AXES).itertuples():
                axis = mean.quantity
                point |= {"n": mean.n, axis: mean.value, f"{axis}_low": mean.low, f"{axis}_high": mean.high}
            rows.append(point)
    return pd.DataFrame(rows)


# --- on dev


def adversaries_by_dev(trained: Sequence[Trained]) -> pd.DataFrame:
    """What dev shows of each trained adversary at the epoch that it keeps: a row each, none averaged.

    Wiegreffe & Pinter (2019), table 4: the highest F1 among those whose mean JSD is at least FAR. Differs from the
    paper: each seed chooses among its own runs, as runs of one lambda may move or stay; and on dev, not on test.

    Returns the columns of `adversary_columns`, epochs, dev_f1, dev_tvd, dev_jsd, base_f1 (on dev), moved (by FAR),
    imitates (the seed's adversary of lambda 0 has converged and reaches its base's F1), why (one is no evidence; ""
    where it is, and of lambda 0 where it imitates), chosen (the best of a seed and `trains`).
    """
    if not trained:
        return pd.DataFrame(columns=["lambda", "trains", "seed", "why", "chosen"]).astype({"chosen": bool})
    rows = []
    for one in trained:
        own, of_base = (model.history[model.chosen - 1] for model in (one, one.base))
        scores = {name: own[name] for name in ("dev_f1", "dev_tvd", "dev_jsd")} | {"base_f1": of_base["dev_f1"]}
        rows.append(adversary_columns(one) | {"epochs": len(one.history)} | scores)
    frame = pd.DataFrame(rows)
    on_par = frame[(frame["lambda"] == 0) & frame["converged"] & (frame["dev_f1"] >= frame["base_f1"] - ON_PAR)]
    able = set(zip(on_par["seed"], on_par["trains"], strict=True))
    imitates = [pair in able for pair in zip(frame["seed"], frame["trains"], strict=True)]
    frame = frame.assign(moved=frame["dev_jsd"] >= FAR, imitates=imitates)
    reasons = {"not converged": ~frame["converged"], "imitation fails": ~frame["imitates"]}
    reasons["did not move"] = ~frame["moved"] & (frame["lambda"] > 0)
    frame["why"] = np.select([*reasons.values()], [*reasons], default="")
    best = moved_adversaries(frame).groupby(["seed", "trains"])["dev_f1"].idxmax()
    return frame.assign(chosen=frame.index.isin(best))


def moved_adversaries(dev: pd.DataFrame) -> pd.DataFrame:
    """The rows of `adversaries_by_dev` that are evidence: converged, able to imitate, moved, with a lambda above 0."""
    return dev[dev["why"].eq("") & (dev["lambda"] > 0)] if len(dev) else dev


def without_unsound(guided: pd.DataFrame, dev: pd.DataFrame, guides: Mapping[str, float]) -> pd.DataFrame:
    """The rows of guided models, but for those whose guide is no evidence (`adversaries_by_dev`): it did not move, say.

    guides: the variants that adversaries guide, each with the lambda of its adversary.
    """
    sound, keep = dev[dev["why"].eq("")], ~guided["variant"].isin(guides)
    for name, strength in guides.items():
        seeds = sound.loc[sound["lambda"].eq(strength), "seed"]
        keep |= guided["variant"].eq(name) & guided["seed"].isin(seeds)
    return guided[keep]


def select_runs(rows: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Those of `rows`, a text each, that are of one of `runs`: the same trains, lambda and seed."""
    keys = ["trains", "lambda", "seed"]
    return rows.merge(runs[keys].drop_duplicates(), on=keys)
