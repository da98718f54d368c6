"""Runs against their bases: distances, paired scores, what dev chooses, and the trade-off."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import small
from scipy.spatial.distance import jensenshannon

from lib.analysis import adversaries, attention_on_rationale, attention_weights, mean_effect, measure
from lib.analysis.adversaries import error_of_pairs, measure_versus_base, points, seed_distances
from lib.datasets.batches import batches
from lib.training import Run

RUN = {"dataset": "planted", "encoder": "bilstm", "attention": "additive", "projection": "softmax", "layers": 1}


def trained(seed: int) -> SimpleNamespace:
    """What measure_versus_base needs of a trained run."""
    run, model = Run(**RUN, seed=seed), small.model(seed=seed).float()
    corpus = SimpleNamespace(test=small.split(), checksum="one", classes="ab")
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
    other.corpus.checksum = "two"
    with pytest.raises(ValueError, match="must read the same"):
        measure_versus_base([other], [base])


def test_each_seed_is_the_base_once_and_the_others_are_as_far_as_scipy_has_it():
    texts = [3, 1, 5]
    bases = rows("base", 4, 3, lambda _, random: {"attention_weights": [random.dirichlet(np.ones(n)) for n in texts]})
    keys = ["seed", "instance"]
    found = seed_distances(bases).set_index(keys)["jsd_of_seeds"]
    weights = bases.set_index(keys)["attention_weights"]
    for seed, text in weights.index:
        apart = [jensenshannon(weights[seed, text], weights[other, text]) ** 2 for other in range(4) if other != seed]
        assert found[seed, text] == pytest.approx(np.median(np.nan_to_num(apart)))
    both = seed_distances(pd.concat([bases.query("seed == 0").assign(encoder="conv"), bases]))
    assert both["jsd_of_seeds"].isna().tolist() == [True] * 3 + [False] * 12, "a model by itself"


def test_attention_on_the_rationale_by_hand():
    model, split = small.model(), small.split()
    spans = [None, ((0, 1),), (), ((1, 3), (5, 6)), ((0, 12),)]
    found = measure(model, batches(split, 3), [attention_weights])
    on, weights = attention_on_rationale(found, spans), found["attention_weights"]
    assert np.isnan(np.array(on)[[0, 2, 4]]).all(), "none, or the whole text"
    assert on[1] == pytest.approx(weights[1][0]) and on[3] == pytest.approx(weights[3][[1, 2, 5]].sum())


def test_the_error_of_a_mean_over_pairs_of_seeds_is_that_of_many_studies():
    """Beside values of seeds that share their pairs; as if these were independent, it would be half as large."""
    random, seeds, means, ours, naive = np.random.default_rng(0), 9, [], [], []
    for _ in range(4000):
        one = random.normal(size=seeds)
        of_seeds = pd.Series(np.abs(one[:, None] - one).sum(axis=1) / (seeds - 1))  # of the distance of each pair
        means.append(of_seeds.mean())
        naive.append(of_seeds.var() / seeds)
        ours.append(error_of_pairs(0.0, of_seeds) ** 2 + naive[-1])
    assert 0.9 < np.sqrt(np.mean(ours)) / np.std(means) < 1.6 and np.sqrt(np.mean(naive)) / np.std(means) < 0.8


def test_how_much_farther_other_attention_is_than_other_seeds_is_of_the_texts_and_seeds_of_both():
    bases = rows("base", 3, 40, lambda seed, random: {"jsd": 0.0, "jsd_of_seeds": random.random(40)})
    other = rows("uniform", 2, 40, lambda seed, random: {"jsd": random.random(40)})
    effect = adversaries.distance_beyond_seeds(other, bases)
    gaps = [(other["jsd"] - bases["jsd_of_seeds"][:80])[other["seed"] == seed].mean() for seed in (0, 1)]
    assert effect.value == pytest.approx(np.mean(gaps)) and effect.by_run == pytest.approx(dict(enumerate(gaps)))
    over_texts = mean_effect(other.assign(gap=other["jsd"] - bases["jsd_of_seeds"][:80]), "gap").se
    of_seeds = bases[:80].groupby("seed")["jsd_of_seeds"].mean()
    assert effect.se == pytest.approx(error_of_pairs(over_texts, of_seeds)) and effect.se > over_texts
    assert np.isfinite(adversaries.distance_beyond_seeds(other[:40], bases).se), "of one seed nothing is known of pairs"


def test_what_dev_shows_of_adversaries_is_of_each_run():
    def adversary(strength, seed, f1, jsd, converged=True):
        kept = {"dev_f1": f1, "dev_jsd": jsd, "dev_tvd": 0.1}
        options = {"lambda": strength, "trains": "all", "starts": "random"}
        run = SimpleNamespace(variant="adversary", seed=seed, base=None, option=options.get)
        base = SimpleNamespace(history=[{"dev_f1": 0.9}], chosen=1)
        return SimpleNamespace(run=run, history=[kept], chosen=1, base=base, converged=converged)

    runs = [adversary(0.0, seed, f1, 0.1) for seed, f1 in ((0, 0.89), (1, 0.9), (2, 0.7))]
    runs += [adversary(1.0, seed, 0.9, jsd) for seed, jsd in ((0, 0.3), (1, 0.6), (2, 0.6))]
    runs += [adversary(2.0, 0, 0.8, 0.5), adversary(2.0, 1, 0.8, 0.6), adversary(3.0, 0, 0.95, 0.6, converged=False)]
    runs += [adversary(0.0, 3, 0.9, 0.1, converged=False), adversary(1.0, 3, 0.9, 0.6)]
    dev = adversaries.adversaries_by_dev(runs)
    assert dev.loc[dev["chosen"], ["lambda", "seed"]].to_numpy().tolist() == [[1.0, 1], [2.0, 0]]
    assert adversaries.moved_adversaries(dev)[["lambda", "seed"]].to_numpy().tolist() == [[1.0, 1], [2.0, 0], [2.0, 1]]
    assert dev.loc[dev["moved"] & ~dev["imitates"], ["lambda", "seed"]].to_numpy().tolist() == [[1.0, 2], [1.0, 3]]
    why = ["", "", "imitation fails", "did not move", "", "imitation fails", "", "", "not converged"]
    assert dev["why"].tolist() == [*why, "not converged", "imitation fails"], "also of an imitation, which is then none"
    assert not adversaries.adversaries_by_dev(runs[3:])[["imitates", "chosen"]].any(axis=None), "no imitation is known"
    variants = ("guide_base", "guide_adversary", "guide_imitation")
    guided = pd.DataFrame([{"variant": variant, "seed": seed} for variant in variants for seed in range(4)])
    for of_adversary, seeds in ((1.0, [1]), (2.0, [0, 1]), (3.0, [])):
        guides = {"guide_adversary": of_adversary, "guide_imitation": 0}
        sound = adversaries.without_unsound(guided, dev, guides).groupby("variant")["seed"].agg(list)
        assert sound["guide_base"] == [0, 1, 2, 3] and sound["guide_imitation"] == [0, 1]
        assert sound.get("guide_adversary", []) == seeds, "what did not move, converge or imitate is no guide"
    none = adversaries.adversaries_by_dev([])
    assert set(adversaries.without_unsound(guided, none, guides)["variant"]) == {"guide_base"}
    assert adversaries.moved_adversaries(none).empty


def test_points_are_those_of_runs():
    def near(strength):
        return lambda seed, random: {"jsd": random.normal(0.2 * strength, 0.01, 50), "tvd": random.random(50)}

    runs = pd.concat([rows("adversary", 4, 50, near(at)).assign(**{"lambda": at}) for at in (1.0, 2.0, 3.0)])
    found = points({"trained": runs, "seeds": runs[runs["lambda"] == 1].assign(**{"lambda": np.nan})})
    one, trained = (found[found["series"] == name] for name in ("seeds", "trained"))
    assert len(trained) == 12 and trained["seed"].nunique() == 4 and len(one) == 4 and one["at"].isna().all()
    of_run = runs[(runs["lambda"] == 2) & (runs["seed"] == 3)]
    row = trained[(trained["at"] == 2) & (trained["seed"] == 3)].iloc[0]
    assert row["jsd"] == pytest.approx(of_run["jsd"].mean()) and row["n"] == 50
    assert ((trained["jsd_low"] < trained["jsd"]) & (trained["jsd"] < trained["jsd_high"])).all()
