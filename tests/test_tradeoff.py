"""Runs against their bases: distances, paired scores, the trade-off and its curvature."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import small
from scipy.spatial.distance import jensenshannon
from scipy.stats import permutation_test
from sklearn.metrics import f1_score

from lib import charts, papers
from lib.analysis import (
    across_seeds,
    attention_on_rationale,
    curvatures,
    lambda_by_dev,
    measure,
    measure_versus_base,
    per_group,
    points,
    score_difference,
    summarise,
)
from lib.analysis.contrast import swapped_p
from lib.analysis.histories import last_gain
from lib.analysis.tradeoff import area, curvature
from lib.datasets.batches import batches

RUN = {"dataset": "planted", "encoder": "bilstm", "attention": "additive", "projection": "softmax", "layers": 1}


class Named(SimpleNamespace):
    """A run, as good a key as any."""

    __hash__ = object.__hash__


def trained(seed: int, variant: str = "base", **options) -> SimpleNamespace:
    """What measure_versus_base needs of a trained run."""
    run = Named(**RUN, variant=variant, seed=seed, option=options.get)
    corpus = SimpleNamespace(test=small.split(), checksum="one")
    model = small.model(seed=seed).float()
    return SimpleNamespace(run=run, model=model, corpus=corpus, batches=lambda split, size: batches(corpus.test, size))


def rows(variant: str, seeds: int, texts: int, quantities, **more) -> pd.DataFrame:
    """Measured texts; `quantities(seed, random)` gives the columns."""
    frames = []
    for seed in range(seeds):
        random = np.random.default_rng([seed, len(variant)])
        frame = pd.DataFrame({"instance": range(texts), "seed": seed, **RUN, "variant": variant} | more)
        frame["label"] = np.arange(texts) % 2
        frames.append(frame.assign(left_out=[()] * texts, **quantities(seed, random)))
    return pd.concat(frames, ignore_index=True)


def test_distances_to_the_base_are_scipys_whatever_the_batches():
    base, other = trained(0), trained(1)
    measured = measure_versus_base([base, other], [base, base])
    assert measured.loc[measured["seed"] == 0, ["tvd", "jsd"]].to_numpy().max() < 1e-7
    own = small.quantities(a=lambda model, batch, output: output.attention)
    alone = [measure(one.model, batches(one.corpus.test, 1), own) for one in (base, other)]
    for place, row in measured[measured["seed"] == 1].reset_index(drop=True).iterrows():
        p, q = (frame["a"][place] for frame in alone)
        assert row["jsd"] == pytest.approx(jensenshannon(p, q) ** 2, abs=1e-6)
        moved = abs(alone[0]["probability"][place] - alone[1]["probability"][place])
        assert row["tvd"] == pytest.approx(moved, abs=1e-6) and row["tvd_half"] == row["tvd"] / 2
        assert row["base_prediction"] == alone[0]["prediction"][place]
        assert row["base_max_attention"] == pytest.approx(p.max(), abs=1e-6)


def test_a_base_of_other_data_is_refused():
    base, other = trained(0), trained(1)
    other.corpus.checksum = "two"
    with pytest.raises(ValueError, match="must read the same"):
        measure_versus_base([other], [base])
    with pytest.raises(ValueError, match="1 runs and 0 bases"):
        measure_versus_base([other], [])


def test_over_seeds_the_median_or_the_largest():
    others = rows("base", 3, 2, lambda seed, random: {"jsd": [0.1 * seed, 0.5 - 0.1 * seed]})
    base = others[others["seed"] == 0]
    assert across_seeds(others, base, "jsd")["jsd_of_seeds"].tolist() == pytest.approx([0.1, 0.4])
    assert across_seeds(others, base, "jsd", "max")["jsd_of_seeds"].tolist() == pytest.approx([0.2, 0.5])
    with pytest.raises(ValueError, match="known: median, max"):
        across_seeds(others, base, "jsd", "mean")


def test_attention_on_the_rationale_by_hand():
    model, split = small.model(), small.split()
    spans = [None, ((0, 1),), (), ((1, 3), (5, 6)), ((0, 12),)]
    weights = small.quantities(a=lambda model, batch, output: output.attention)
    found = measure(model, batches(split, 3), [attention_on_rationale(spans, "on"), *weights])
    assert np.isnan(found["on"][[0, 2]]).all()
    assert found["on"][1] == pytest.approx(found["a"][1][0])
    assert found["on"][3] == pytest.approx(found["a"][3][[1, 2, 5]].sum()) and found["on"][4] == pytest.approx(1)


def test_the_area_is_that_of_the_polygon():
    assert area(np.array([[3.0, 1.0], [4.0, 1.0], [5.0, 3.0]])) == pytest.approx(1.0)  # below the chord: convex
    assert area(np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 2.0]])) == pytest.approx(-1.0)
    assert area(np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])) == pytest.approx(0) and area(np.eye(2)) == 0
    x, y = np.random.default_rng(0).uniform(size=(2, 6)).cumsum(axis=1)
    under_the_chord, under_the_curve = (x[-1] - x[0]) * (y[-1] + y[0]) / 2, np.trapezoid(y, x)
    assert area(np.stack([x, y], axis=1)) == pytest.approx(under_the_chord - under_the_curve)


def sweep(curve, seeds=4, texts=50, noise=0.01) -> pd.DataFrame:
    """A sweep whose mean (JSD, TVD) at the strength 1, 2, 3 is `curve(strength)`."""

    def at(strength):
        def quantities(seed, random):
            jsd, tvd = curve(strength)
            found = {"jsd": jsd + random.normal(0, noise, texts), "tvd": tvd + random.normal(0, noise, texts)}
            return found | {"prediction": np.arange(texts) % 2, "base_prediction": float(seed % 2 == 0), "length": 9}

        return rows("adversary", seeds, texts, quantities, **{"lambda": float(strength), "trains": "all"})

    return pd.concat([at(strength) for strength in (1, 2, 3)], ignore_index=True)


def test_convex_and_concave_curves_are_told_apart_and_noise_is_neither():
    assert curvature(sweep(lambda s: (0.2 * s, 0.01 * s**2)))["word"] == "convex"
    assert curvature(sweep(lambda s: (0.2 * s, 0.1 * s**0.5)))["word"] == "concave"
    straight = curvature(sweep(lambda s: (0.2 * s, 0.05 * s), noise=0.1))
    assert straight["word"] == "open" and straight["low"] < 0 < straight["high"]
    floor = sweep(lambda s: (0.2 * s, 0.1 + 0.01 * s**2))  # what imitation costs anyway is no price of distance
    assert curvature(floor)["word"] == "convex" and curvature(floor, from_base=True)["word"] == "concave"
    two = curvature(floor[floor["lambda"] < 3])
    assert np.isnan(two["area"]) and two["word"] == "open" and two["points"] == 2
    one_seed = curvature(sweep(lambda s: (0.2 * s, 0.01 * s**2), seeds=1))
    assert one_seed["word"] == "convex" and one_seed["seeds"] == 1
    part = sweep(lambda s: (0.2 * s, 0.01 * s**2))
    with pytest.raises(ValueError, match="not every seed has every lambda"):
        curvature(part[(part["seed"] > 0) | (part["lambda"] < 3)])


def test_points_are_the_means_and_classes_those_that_the_base_predicts():
    instances = sweep(lambda s: (0.2 * s, 0.05 * s))
    found = points(instances, "trained", "lambda", ("no", "yes"))
    assert found["texts"].tolist() == ["all texts"] * 3 + ["no"] * 3 + ["yes"] * 3
    second = instances[(instances["lambda"] == 2) & (instances["base_prediction"] == 1)]
    assert found.iloc[7]["jsd"] == pytest.approx(second["jsd"].mean())
    assert ((found["jsd_low"] < found["jsd"]) & (found["jsd"] < found["jsd_high"])).all()
    assert curvatures({"trained": instances}, ("no", "yes"))["texts"].tolist() == ["all texts", "no", "yes"]
    one = points(instances[instances["lambda"] == 1], "seeds")
    chart = charts.tradeoff(pd.concat([found, one]), "A title", "What to see.").to_dict()
    drawn = pd.DataFrame(next(iter(chart["datasets"].values())))
    assert len(drawn) == 10 and drawn["at"].isna().sum() == 1


def test_lambda_is_chosen_by_dev_among_those_far_enough():
    def history(f1, jsd):
        return ({"epoch": 1, "dev_f1": 0.99, "dev_jsd": 0.6, "dev_tvd": 0.1, "train_loss": 1.0},
                {"epoch": 2, "dev_f1": f1, "dev_jsd": jsd, "dev_tvd": 0.1, "train_loss": 0.5})  # fmt: skip

    histories = {(1.0, 0): history(0.9, 0.1), (1.0, 1): history(0.9, 0.6), (2.0, 0): history(0.8, 0.5),
                 (2.0, 1): history(0.8, 0.4), (3.0, 0): history(0.7, 0.6), (3.0, 1): history(0.7, 0.6)}  # fmt: skip
    found = lambda_by_dev(histories)
    assert found.loc[found["chosen"], "lambda"].tolist() == [2.0] and found["seeds"].tolist() == [2, 2, 2]
    assert found["last_gain"].isna().all()  # two epochs say nothing of the last ten
    assert last_gain([{"train_loss": loss} for loss in (3.0, 2.0, *[1.5] * 10)]) == pytest.approx(0.25)
    near = {key: value for key, value in histories.items() if key[0] == 1.0}
    assert not lambda_by_dev(near)["chosen"].any()


def models(better: float, texts: int = 300, seeds: int = 3) -> pd.DataFrame:
    """A base that is right `better` more often than the uniform model."""

    def right(share):
        def quantities(seed, random):
            label = np.arange(texts) % 2
            prediction = np.where(random.random(texts) < share, label, 1 - label)
            return {"prediction": prediction, "probability": prediction.astype(float), "length": 9,
                    "jsd": 0.0, "tvd": 0.0}  # fmt: skip

        return quantities

    return pd.concat([rows("base", seeds, texts, right(0.7 + better)), rows("uniform", seeds, texts, right(0.7))])


def test_scores_are_compared_as_scikit_learn_computes_them():
    instances = models(0.15)
    found = score_difference(instances, "f1", ({"variant": "base"}, {"variant": "uniform"}), draws=500)
    runs = instances.groupby(["variant", "seed"])[["label", "prediction"]]
    each_run = runs.apply(lambda one: f1_score(one["label"], one["prediction"]))
    by_hand = [each_run["base"].mean(), each_run["uniform"].mean()]
    assert [found["first"], found["second"]] == pytest.approx(by_hand)
    assert found["low"] < by_hand[0] - by_hand[1] < found["high"] and found["p"] < 0.05
    same = score_difference(models(0.0), "f1", ({"variant": "base"}, {"variant": "uniform"}), draws=500)
    assert same["p"] > 0.05 and same["word"] == "open"
    with pytest.raises(KeyError, match="known: accuracy, f1, auc"):
        score_difference(instances, "recall", ({"variant": "base"}, {"variant": "uniform"}))
    fewer = instances[(instances["variant"] == "base") | (instances["instance"] > 5)]
    with pytest.raises(ValueError, match="on other texts"):
        score_difference(fewer, "f1", ({"variant": "base"}, {"variant": "uniform"}))


def test_the_randomisation_p_is_scipys():
    random = np.random.default_rng(3)
    one, other = random.normal(0.25, 1, (2, 30, 1))

    def mean(weights, table):
        return weights @ table[:, 0] / weights.sum(axis=1)

    ours = swapped_p(mean, [one + 0.4, other], 20_000, 0)
    scipys = permutation_test((one[:, 0] + 0.4, other[:, 0]), lambda a, b: a.mean() - b.mean(),
                              permutation_type="samples", n_resamples=20_000, rng=0)  # fmt: skip
    assert ours == pytest.approx(scipys.pvalue, abs=0.02)


def test_each_group_keeps_what_tells_it_apart():
    instances = pd.concat([sweep(lambda s: (0.2 * s, 0.05 * s)), models(0.1)])
    found = per_group(instances, ["trains", "lambda"], lambda some: summarise(some, ["jsd"]))
    assert len(found) == 3 + 2 and found["lambda"].isna().sum() == 2
    assert per_group(instances.iloc[:0], ["lambda"], lambda some: some).empty


@pytest.mark.parametrize(("better", "convex"), [(True, True), (True, False), (False, True), (False, False)])
def test_the_claims_follow_the_numbers(better, convex):
    of_models = models(0.2 if better else -0.2, texts=400)
    adversaries = sweep(lambda s: (0.2 * s, 0.01 * s**2) if convex else (0.2 * s, 0.1 * s**0.5))
    adversaries["probability"] = adversaries["prediction"].astype(float)
    guided = pd.concat(
        [of_models.assign(encoder="average")]
        + [of_models[of_models["variant"] == source].assign(encoder="average", variant=f"guide_{name}")
           for name, source in (("base", "base"), ("adversary", "uniform"), ("instance_adversary", "uniform"))]
    )  # fmt: skip
    first = of_models[(of_models["variant"] == "base") & (of_models["seed"] == 0)]
    of_seeds = first.assign(jsd_of_seeds=0.1, adversary_exact_jsd=0.6 if better else 0.05)
    price = rows("instance_adversary", 4, 50, lambda seed, random: {"jsd": 0.69, "tvd": 0.01})
    found = papers.PAPERS["adversary"].claims(
        of_models, of_seeds, guided, adversaries, None, price, curvatures({"trained": adversaries})
    )
    said = {claim.short: claim.verdict for claim in found}
    decided = "supported" if better else "contradicted"
    for short in ("attention is needed", "its attention guides", "adversaries misguide", "seeds move attention less"):
        assert said[short] == decided, short
    assert said["better than learned"] == "undecided" and said["a trained adversary is on par"] == "undecided"
    assert said["per instance exaggerates"] == "supported"
    assert said["attention is easily moved"] == ("supported" if convex else "contradicted")
    assert "an adversary leaves the reason" not in said
