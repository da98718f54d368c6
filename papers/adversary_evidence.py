"""What the claims of Wiegreffe & Pinter (2019) are judged by: each run by itself, differences in pairs of one seed."""

from collections.abc import Iterable, Iterator
from math import nan

import numpy as np
import pandas as pd

from lib.analysis import (
    advantage,
    difference,
    effect_of,
    excluded_by,
    mean_effect,
    of_runs,
    score_difference,
    single_runs,
    witness_of,
)
from lib.analysis.curves import curvature
from lib.analysis.histories import FAR, ON_PAR
from lib.analysis.statistics import weighted_mean
from lib.analysis.summarising import by_seed
from lib.analysis.token_values import with_entropies
from lib.quantity import JSD_BOUNDS, declare
from papers.adversary_claims import CLAIMS, KEY, NEWS
from papers.claims import counted, uniform_attention
from papers.published import printed_effect, table

GUIDING = 1e-3  # lambda of the adversary that guides the MLP, in table 3


def evidence(
    models: pd.DataFrame,
    of_seeds: pd.DataFrame,
    guided: pd.DataFrame,
    adversaries: pd.DataFrame,
    dev: pd.DataFrame,
    per_instance: pd.DataFrame,
    known: pd.DataFrame,
) -> pd.DataFrame:
    """What each claim is judged by: rows of papers.claims.EVIDENCE.

    Args:
        models: `measure_versus_base` of base and uniform models. of_seeds: `across_seeds` of the bases.
        guided: the MLPs; `imitation_guides` have the variant guide_imitation.
        adversaries: `measure_versus_base` of both sweeps. dev: `adversaries_by_dev` of them.
        per_instance: the search per instance: seed, instance, epsilon, jsd, tvd.
        known: `witnesses` of the base.
    """
    of_base = models[(models["variant"] == "base") & (models["encoder"] == "bilstm")]
    first = of_base.iloc[0]
    theirs = first["attention"] == "additive" and first["projection"] == "softmax" and models["label"].max() <= 1
    entropies = with_entropies(of_seeds, ["attention"])
    about = {"within": bool(theirs)} | witness_of(known, of_base, reasons=[uniform_attention(entropies)])
    printed, whole = table(KEY, first["dataset"]), adversaries[adversaries["trains"] == "all"]
    parts = [
        *of_scores(models, guided, about, printed),
        *of_distances(models, of_seeds, per_instance, about, first["dataset"]),
        misguided(guided, dev, guiding(set(whole["lambda"])), about, printed),
        on_par(of_base, whole, dev, about, printed),
        *of_curves(models, adversaries, dev, per_instance, about, first["dataset"]),
        leaves_the_reason(whole, dev, about),
    ]
    found = pd.concat([part for part in parts if len(part)], ignore_index=True)
    if first["dataset"] in NEWS:
        found["within"] &= found["short"] == "attention is needed"
    return found


def of_scores(models: pd.DataFrame, guided: pd.DataFrame, about: dict, printed: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Sections 3.2 and 3.4: is one kind of attention better than another, in F1?"""
    both, lstm = pd.concat([models, guided]), {"encoder": "bilstm"}
    mlp = {"encoder": "average"}
    base, guide = lstm | {"variant": "base"}, mlp | {"variant": "guide_base"}
    equal, own = lstm | {"variant": "uniform"}, mlp | {"variant": "base"}
    pairs = {
        "attention is needed": (base, equal, {"table": "table2, reproduced"}, {"table": "table2"}),
        "its attention guides": (guide, mlp | {"variant": "uniform"}, *named("guide_base", "guide_uniform")),
        "better than learned": (guide, own, *named("guide_base", "guide_learned")),
        "an MLP's own attention beats equal weights": (
            own,
            mlp | {"variant": "uniform"},
            *named("guide_learned", "guide_uniform"),
        ),
        "attention matters more than the encoder": (guide, equal, *named("guide_base", "uniform")),
        "adversaries per instance misguide": (guide, mlp | {"variant": "guide_instance_adversary"}),
    }
    for short, (one, other, *names) in pairs.items():
        theirs = printed_effect(printed, "f1", *names) if names else nan
        model = "BiLSTM" if one is base else "MLP"
        row = score_difference(both, "f1", (one, other), test=False)
        yield CLAIMS[short].compared(model, row, printed=theirs, **about)


def named(*variants: str) -> list[dict[str, str]]:
    """The rows of published.csv with these variants."""
    return [{"variant": variant} for variant in variants]


def of_distances(
    models: pd.DataFrame, of_seeds: pd.DataFrame, per_instance: pd.DataFrame, about: dict, dataset: str
) -> Iterator[pd.DataFrame]:
    """Section 3.3: how far other seeds move the attention, beside a search, equal weights, and by class."""
    seeds = of_seeds[["seed", "instance", "jsd_of_seeds"]]
    searched = per_instance[per_instance["epsilon"] == per_instance["epsilon"].min()]
    uniform = models[(models["variant"] == "uniform") & (models["encoder"] == "bilstm")]
    for short, other, of in (
        ("seeds move attention less", searched, about),
        ("attention is robust to the seed", uniform, limited(about, dataset, "sst")),
    ):
        both = other[["seed", "instance", "jsd"]].merge(seeds, on=["seed", "instance"]).dropna()
        gap = declare("jsd_gap", "nats", bounds=(-JSD_BOUNDS[1], JSD_BOUNDS[1]))
        row = mean_effect(both.assign(**{gap: both["jsd"] - both["jsd_of_seeds"]}), gap)
        row["first"], row["second"] = both["jsd"].mean(), both["jsd_of_seeds"].mean()
        row["se"] = with_pairs(row["se"], both.groupby("seed")["jsd_of_seeds"].mean())
        yield CLAIMS[short].compared("BiLSTM", row, **of)
    if of_seeds["label"].max() <= 1:
        of = limited(about, dataset, "diabetes")
        yield CLAIMS["robustness differs by class"].compared("BiLSTM", between_classes(of_seeds), **of)


def limited(about: dict, dataset: str, *datasets: str) -> dict:
    """The same where the paper claims something of these datasets alone: elsewhere it is shown as contrast."""
    return about | {"within": about["within"] and dataset in datasets}


def between_classes(of_seeds: pd.DataFrame) -> pd.Series:
    """`jsd_of_seeds` of negative texts less that of positive ones, in each seed."""
    values, labels = (by_seed(of_seeds, name) for name in ("jsd_of_seeds", "label"))
    sides = [values.where(labels == kind).to_numpy() for kind in (0, 1)]

    def each(weights: np.ndarray) -> np.ndarray:
        return weighted_mean(weights, sides[0]) - weighted_mean(weights, sides[1])

    name = declare("jsd_of_seeds_by_class", "nats", bounds=(-JSD_BOUNDS[1], JSD_BOUNDS[1]))
    row = effect_of(name, values.columns, each, len(values))
    row["first"], row["second"] = (float(np.nanmean(side)) for side in sides)
    row["se"] = with_pairs(row["se"], pd.Series(row["of_seeds"]))
    return row


def with_pairs(se: float, of_seeds: pd.Series) -> float:
    """The standard error over texts, with what the spread over seeds lacks where each value is of pairs of seeds.

    Each pair is in the values of both of its seeds, so that the variance of their mean is four times that of
    independent ones (the jackknife of a mean over pairs); the spread of the values accounts for one of the four.
    """
    return float(np.sqrt(se**2 + 3 * of_seeds.var() / len(of_seeds))) if len(of_seeds) > 1 else se


def judged(runs: pd.DataFrame, moved: bool = False) -> tuple[pd.DataFrame, dict[str, str]]:
    """The runs that are evidence, and what is to be known of the others; where none is, all of them and why not.

    Args:
        runs: rows of `adversaries_by_dev`. moved: those that stayed near the base are none.
    """
    why = runs["why"]
    if moved:
        why = why.mask(why.eq("") & ~runs["moved"], f"attention stays within {FAR} nats of the base's")
    counts = why[why != ""].value_counts()
    reasons = "; ".join(f"{count} of {counted(len(runs), 'run')}: {reason}" for reason, count in counts.items())
    if (why != "").all():
        return runs, {"excluded": reasons or "not measured of a run with a lambda above 0"}
    return runs[why == ""], {"note": f"left out, {reasons}" if reasons else ""}


def judged_guides(dev: pd.DataFrame, strength: float) -> tuple[pd.DataFrame, dict[str, str]]:
    """`judged` of the adversaries of one lambda that moved; with lambda 0 there is none, as these only imitate."""
    return judged(dev[(dev["lambda"] == strength) & (dev["lambda"] > 0) & (dev["trains"] == "all")], moved=True)


def with_reasons(about: dict, more: dict[str, str]) -> dict:
    """What is known of the base, and of the runs: reasons and notes of both."""
    return about | more | {"excluded": excluded_by(about["excluded"], more.get("excluded", ""))}


def misguided(
    guided: pd.DataFrame, dev: pd.DataFrame, strength: float, about: dict, printed: pd.DataFrame
) -> pd.DataFrame:
    """Table 3: is the base's attention a better guide than that of an adversary, of those that moved?"""
    one = CLAIMS["adversaries misguide"]
    runs, why = judged_guides(dev, strength)
    theirs = printed_effect(printed, "f1", *named("guide_base", "guide_adversary"))

    def against(variant: str) -> pd.Series:
        rows = guided[guided["seed"].isin(runs["seed"])]
        return score_difference(rows, "f1", ({"variant": "guide_base"}, {"variant": variant}), test=False)

    of = with_reasons(about, why)
    row = one.compared("MLP", against("guide_adversary"), printed=theirs, **of) if len(runs) else None
    parts = [one.evidence("MLP", {}, **of) if row is None else row]
    if len(runs) and guided["variant"].eq("guide_imitation").any():
        control = about | {"within": False, "note": "control: trained anew, with lambda 0"}
        parts.append(one.compared("MLP (imitation in the adversary's place)", against("guide_imitation"), **control))
    return pd.concat(parts)


def on_par(
    of_base: pd.DataFrame, adversaries: pd.DataFrame, dev: pd.DataFrame, about: dict, printed: pd.DataFrame
) -> pd.DataFrame:
    """Table 4: how many runs get FAR away and classify as well as their base, by lambda and as dev chooses."""
    one, runs = CLAIMS["a trained adversary is on par"], dev[(dev["trains"] == "all") & (dev["lambda"] > 0)]
    found = runs.merge(runs_on_test(of_base, adversaries)[["lambda", "seed", "holds", "words"]], on=["lambda", "seed"])
    models, parts = [("BiLSTM (lambda chosen on dev)", best_of_seeds(found), True)], []
    for strength, some in found.groupby("lambda"):
        models.append((f"BiLSTM (lambda {strength:g})", some, strength == printed_effect(printed, "lambda", {})))
    for model, some, within in models:
        some, why = judged(some)
        holds = some.set_index("seed")["holds"].astype(float)
        parts.append(one.evidence(model, holds, n=len(some), **with_reasons(about, why)))
        parts[-1]["within"] &= within
        parts[-1]["note"] = "; ".join([*some["words"], *filter(None, [why.get("note", "")])])
    return pd.concat(parts)


def best_of_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """Of each seed the run that dev chose; where it chose none, one that is evidence, or any."""
    order = runs.assign(able=runs["why"].eq("")).sort_values(["chosen", "able", "dev_jsd"], ascending=False)
    return order.groupby("seed", sort=True).head(1).sort_values("seed")


def runs_on_test(of_base: pd.DataFrame, adversaries: pd.DataFrame) -> pd.DataFrame:
    """`single_runs`, and whether each is FAR away, farther than imitation, and on par with its base; that in words."""
    runs = single_runs(of_base, adversaries)
    near = runs["seed"].map(runs[runs["lambda"] == 0].set_index("seed")["jsd"]).fillna(0.0)
    far = (runs["jsd"] >= FAR) & (runs["jsd"] > near)
    words = "seed {seed}, lambda {lambda:g}: {jsd:.3f} nats, F1 {f1:.3f} of {base_f1:.3f}"
    in_words = [words.format(**row) for row in runs.to_dict("records")]
    return runs.assign(holds=far & (runs["f1"] >= runs["base_f1"] - ON_PAR), words=in_words)


def of_curves(
    models: pd.DataFrame,
    adversaries: pd.DataFrame,
    dev: pd.DataFrame,
    per_instance: pd.DataFrame,
    about: dict,
    dataset: str,
) -> Iterator[pd.DataFrame]:
    """Figure 5: the shape of each seed's curve, and what lies below it."""
    for trains, model in (("all", "BiLSTM"), ("attention", "BiLSTM (frozen encoder, ours)")):
        runs = dev[dev["trains"] == trains]
        reaches = runs["seed"].isin(runs.loc[runs["moved"], "seed"])
        some, why = judged_curve(runs.assign(moved=reaches), moved=True)
        row = curvature(of_runs(adversaries, some)) if len(some) else None
        if row is not None:
            of = with_reasons(about, why) | ({} if trains == "all" else {"within": False})
            yield CLAIMS["attention is easily moved"].compared(model, row, **of)
    some, why = judged_curve(dev[dev["trains"] == "all"])
    curve = of_runs(adversaries, some)
    for epsilon, rows in per_instance.groupby("epsilon"):
        row = advantage(rows, beyond_imitation(curve), "tvd")
        of = with_reasons(about, why if reached(row) or "excluded" in why else beyond("TVD", rows["tvd"].mean()))
        yield CLAIMS["a search per text goes further than one model"].compared(
            f"BiLSTM (epsilon {epsilon:g})", row, **of
        )
    uniform = models[(models["variant"] == "uniform") & (models["encoder"] == "bilstm")]
    row = advantage(uniform, curve, "jsd")
    why = why if reached(row) or "excluded" in why else beyond("JSD", uniform["jsd"].mean())
    of = with_reasons(limited(about, dataset, "sst"), why)
    row["first"], row["second"] = row["second"], row["first"]
    yield CLAIMS["uniform lies under the curve"].compared("BiLSTM", row, **of)


def judged_curve(runs: pd.DataFrame, moved: bool = False) -> tuple[pd.DataFrame, dict[str, str]]:
    """`judged` of a sweep, which imitation alone starts; without it no curve is evidence."""
    some, why = judged(runs[runs["lambda"] > 0], moved)
    starts = runs[(runs["lambda"] == 0) & runs["seed"].isin(some["seed"])]
    return pd.concat([starts, some]), why


def beyond_imitation(curve: pd.DataFrame) -> pd.DataFrame:
    """The rows with TVD less the mean TVD of the imitation (lambda 0) of the same seed: what other attention costs."""
    floors = curve[curve["lambda"] == 0].groupby("seed")["tvd"].mean()
    return curve.assign(tvd=curve["tvd"] - curve["seed"].map(floors))


def reached(row: pd.Series) -> bool:
    """Whether any seed has an effect."""
    return any(value == value for value in row["of_seeds"].values())


def beyond(axis: str, value: float) -> dict[str, str]:
    """Why a point has no effect."""
    return {"excluded": f"the trained adversaries' curve does not reach its {axis}, {value:.3f}, and is not extended"}


def leaves_the_reason(whole: pd.DataFrame, dev: pd.DataFrame, about: dict) -> pd.DataFrame:
    """Beyond the paper: does an adversary that moved attend less to the rationale than imitation alone does?"""
    name, strength = "attention_on_rationale", guiding(set(whole["lambda"]))
    if name not in whole or whole[name].isna().all():
        return pd.DataFrame()
    runs, why = judged_guides(dev, strength)
    if runs.empty or not whole["lambda"].eq(0).any():
        return CLAIMS["an adversary leaves the reason"].evidence("BiLSTM", {}, **with_reasons(about, why))
    pair = whole[(whole["lambda"] == 0) & whole["seed"].isin(runs["seed"])], of_runs(whole, runs)
    both = pd.concat([pair[0].assign(variant="imitation"), pair[1]])
    row = difference(both, name, ({"variant": "imitation"}, {"variant": "adversary"}), paired=True)
    return CLAIMS["an adversary leaves the reason"].compared("BiLSTM", row, **with_reasons(about, why))


def guiding(lambdas: Iterable[float]) -> float:
    """The lambda of the adversary that guides the MLP: that of table 3, or where there is none the largest."""
    return GUIDING if GUIDING in lambdas else max(lambdas)
