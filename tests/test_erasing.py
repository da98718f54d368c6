"""What erasing says of rankings, by hand on a few texts."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from small import batch, model

from lib.analysis import erasure
from lib.importance.rankings import RANKINGS
from lib.interventions import single_erasure, until_flip

NONE = np.nan
MEASURED = single_erasure(RANKINGS), until_flip(RANKINGS)  # whose columns the tables here have
RUN = {"dataset": "d", "encoder": "flan-rnn", "attention": "additive", "projection": "softmax", "variant": "base"}


def rows(columns: dict, seed: int = 0) -> pd.DataFrame:
    frame = pd.DataFrame(columns).astype(float)
    return frame.assign(**RUN, layers=1, seed=seed, instance=frame.index, prediction=0, left_out=[()] * len(frame))


def test_the_flip_table_by_hand_and_its_sum():
    flips = {
        "top_attention_flip": [1, 0, 0, 1, NONE],
        "top_attention_others_flip": [0.5, 0.25, 0, 0, NONE],
        "top_attention_paper_flip": [1, 0, 0, 0, NONE],
        "top_attention_authors_code_flip": [0, 1, 0, 0, NONE],
    }
    both = pd.concat([rows(flips, seed) for seed in (0, 1)])
    tables = erasure.flip_tables(both, ["attention"], ["expected", "paper", "authors_code"])
    of_ways = tables.groupby("way", sort=False)["value"].apply(list).to_dict()
    assert of_ways["expected"] == pytest.approx([0.125, 0.375, 0.0625, 0.4375])
    assert of_ways["paper"] == pytest.approx([0.25, 0.25, 0, 0.5])
    assert of_ways["authors_code"] == pytest.approx([0, 0.5, 0.25, 0.25])
    assert all(100 * sum(values) == pytest.approx(100, abs=1e-9) for values in of_ways.values())
    assert tables["n"].eq(4).all() and tables["undefined"].eq(2).all()  # the text of one item, in both seeds


def removed(seed: int = 0, **more) -> pd.DataFrame:
    columns = {
        "removed_items": [4, 4, 4, 4, 1, 4],
        "removed_attention_count": [2, 3, NONE, 1, NONE, NONE],
        "removed_attention_fraction": [0.5, 0.75, NONE, 0.25, NONE, NONE],
        "removed_gradient_count": [1, 3, 4, 2, NONE, NONE],
        "removed_gradient_fraction": [0.25, 0.75, 1, 0.5, NONE, NONE],
        "removed_fewest_count": [1, 2, 4, 1, NONE, NONE],
        "removed_random_1_count": [2, NONE, 4, 1, NONE, NONE],
        "removed_random_2_count": [2, NONE, NONE, 3, NONE, NONE],
        "removed_random_1_fraction": [0.5, NONE, 1, 0.25, NONE, NONE],
        "removed_random_2_fraction": [0.5, NONE, NONE, 0.75, NONE, NONE],
    }
    return rows(columns | more, seed)


def test_which_ranking_flips_sooner():
    signs = erasure.add_sooner(removed(), "gradient", "attention")["sooner_gradient_than_attention"].tolist()
    assert signs == pytest.approx([1, 0, 1, -1, NONE, NONE], nan_ok=True), "of text 2 attention never flips"
    pair = [("gradient", "attention")]
    found = erasure.flips_sooner(pd.concat([removed(0), removed(1)]), pair).iloc[0]
    # text 5 is left out, and 4 has one item
    assert (found["first_sooner"], found["second_sooner"], found["value"]) == pytest.approx((0.5, 0.25, 2.5 / 1.5))
    assert (found["n"], found["left_out"], found["seeds"]) == (4, 1, 2) and found["low"] < 2 < found["high"]
    many = pd.concat([removed()] * 40, ignore_index=True).assign(instance=range(240))
    clear = erasure.flips_sooner(many, pair).iloc[0]
    assert 1.2 < clear["low"] < 2 < clear["high"] < 3.5
    never = erasure.flips_sooner(removed(removed_gradient_count=[NONE] * 6), pair).iloc[0]
    assert (never["first_sooner"], never["second_sooner"], never["value"]) == (0, 1, pytest.approx(0.5 / 3.5))
    half = 1.96 * np.sqrt(1 / 0.5 + 1 / 3.5)  # of the log, as of two Poisson counts
    assert never["high"] == pytest.approx(0.5 / 3.5 * np.exp(half), rel=1e-3)


def test_random_orders_count_each_and_texts_that_do_not_flip_are_left_out():
    found = erasure.add_flips(removed(), ["attention", "random"])
    assert found["removed_random_fraction"].tolist() == pytest.approx([0.5, NONE, 1, 0.5, NONE, NONE], nan_ok=True)
    assert found["flips_attention"].tolist() == pytest.approx([1, 1, 0, 1, NONE, 0], nan_ok=True)
    assert found["flips_random"].tolist() == pytest.approx([1, 0, 0.5, 1, NONE, 0], nan_ok=True)
    assert found["removed_over_half_random"].tolist() == pytest.approx([0, NONE, 1, 0.5, NONE, NONE], nan_ok=True)
    long = erasure.ranking_rows(found, ["random", "attention"])
    assert long["ranking"].tolist() == ["random"] * 12 + ["attention"] * 6, "each order of each text, and not the mean"
    masses = erasure.ranking_rows(found.assign(removed_attention_mass=0.5), ["attention"], "mass")
    assert masses["removed_mass"].tolist() == [0.5] * 6


def test_the_top_item_beside_the_drawn_one_and_the_largest_of_its_text():
    frame = removed(
        top_attention_paper_delta_js=[0.01, -0.1, 0.3, 0.02, 0, NONE],
        top_attention_paper_delta_alpha=[0.4, 0.3, 0.5, 0.51, 0.45, NONE],
        top_attention_js=[0.02, 0.1, 0.4, 0.03, 0, NONE],
        top_attention_others_js=[0.01, 0.1, 0.1, 0.01, 0, NONE],
        top_largest_js=[0.08, 0.2, 0.4, 0.03, 0, NONE],
    )
    found = erasure.add_drawn(frame)
    assert found["drawn_negative"].tolist() == pytest.approx([0, 1, 0, 0, 0, NONE], nan_ok=True)
    assert found["drawn_near_zero"].tolist() == pytest.approx([1, NONE, 0, NONE, NONE, NONE], nan_ok=True)
    assert found["top_share_js"].tolist() == pytest.approx([0.25, 0.5, 1, NONE, NONE, NONE], nan_ok=True)
    assert found["top_others_share_js"].tolist() == pytest.approx([0.125, 0.5, 0.25, NONE, NONE, NONE], nan_ok=True)


def test_fewest_is_a_floor_of_every_curve_and_of_every_mean_on_the_same_texts():
    tested, given, names = model("average", outputs=5), batch(tuple(range(1, 13)) * 5), [*RANKINGS, "random", "fewest"]
    measured = until_flip(RANKINGS, seed=1)(tested, given, tested(given))
    frame = rows({f"removed_{name}": values.tolist() for name, values in measured.items()})
    curves = erasure.flip_curves(frame, names).pivot(index="at", columns="quantity", values="value")
    assert (curves.le(curves["flipped_fewest"], axis=0)).all(axis=None) and (curves.diff().dropna() >= 0).all(axis=None)
    apart = (curves["flipped_fewest"] - curves["flipped_random"]).max()
    assert curves.loc[0].eq(0).all() and apart > 0.1, "the property is not of curves that are equal"
    ever = frame.loc[frame["removed_items"] > 1, "removed_attention_count"].notna().mean()
    assert curves.loc[1, "flipped_attention"] == ever < 1, "texts that never flip count"
    means = erasure.on_same_texts(erasure.add_flips(frame, names), names)
    means = means[[f"removed_{name}_fraction" for name in names]]
    assert means.notna().any(axis=None) and means.isna().any(axis=1).eq(means.isna().all(axis=1)).all()
    assert (means.mean() >= means["removed_fewest_fraction"].mean()).all()


def test_in_how_many_models_the_counts_of_the_paper_hold():
    duel = {"quantity": "ratio_gradient_sooner_than_attention", "way": "", "ranking": "", "value": 1}
    of = [("a", "flan-rnn", 0.6), ("a", "flan-noenc", 0.9), ("b", "flan-rnn", 0.4), ("b", "flan-conv", 0.9)]
    values = [duel | dict(zip(("dataset", "encoder", "first_sooner"), one, strict=True)) for one in of]
    for name, both, only in (("attention", 0.1, 0.1), ("gradient", 0.0, 0.15), ("product", 0.15, 0.1)):
        row = {"dataset": "b", "encoder": "flan-rnn", "way": "expected", "ranking": name}
        values += [row | {"quantity": part, "value": x} for part, x in (("flip_both", both), ("flip_top_only", only))]
    found = erasure.counted_models(pd.DataFrame(values), pd.DataFrame([{"dataset": "b", "encoder": "flan-conv"}]))
    assert found["models"].tolist() == ["1 of 2", "1 of 1", "1 of 1"]
    limits = [binomtest(k, n).proportion_ci() for k, n in ((1, 2), (1, 1), (1, 1))]
    assert found[["low", "high"]].to_numpy() == pytest.approx(np.array(limits))
    none = erasure.counted_models(pd.DataFrame(columns=["dataset"]), pd.DataFrame(columns=["dataset", "encoder"]))
    assert none["models"].tolist() == ["0 of 0"] * 3
