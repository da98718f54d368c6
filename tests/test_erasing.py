"""What erasing says of rankings, by hand on a few texts."""

import numpy as np
import pandas as pd
import pytest
import small
import torch
from scipy.stats import binomtest

from lib.analysis import (
    add_drawn,
    add_effects,
    add_flips,
    add_late_flips,
    add_optimality,
    add_random,
    add_rationale_hits,
    common_support,
    erased_on_rationale,
    flip_tables,
    flips_sooner,
    ranking_rows,
)
from lib.analysis.erasure import CELLS, flip_cells, sign_test
from lib.datasets.corpus import Instance
from lib.importance.rankings import RANKINGS
from lib.interventions import fewest_to_flip, single_erasure, until_flip
from lib.interventions.erasure import erase_until_flip

NONE = np.nan
MEASURED = single_erasure(RANKINGS), until_flip(RANKINGS)  # whose columns the tables here have
RUN = {"dataset": "d", "encoder": "flan-rnn", "attention": "additive", "projection": "softmax", "variant": "base"}


def rows(columns: dict, seed: int = 0, **run) -> pd.DataFrame:
    frame = pd.DataFrame(columns).astype(float)
    own = RUN | {"layers": 1, "seed": seed} | run
    return frame.assign(**own, instance=range(len(frame)), prediction=0, left_out=[()] * len(frame))


def flips(seed: int = 0) -> pd.DataFrame:
    return rows(
        {
            "top_attention_flip": [1, 0, 0, 1, NONE],
            "top_attention_others_flip": [0.5, 0.25, 0, 0, NONE],
            "top_attention_paper_flip": [1, 0, 0, 0, NONE],
            "top_attention_authors_code_flip": [0, 1, 0, 0, NONE],
        },
        seed,
    )


def test_the_flip_table_by_hand_and_its_sum():
    cells = flip_cells(flips(), "attention", "expected")
    assert cells[list(CELLS)].to_numpy()[:2].tolist() == [[0.5, 0.5, 0, 0], [0, 0, 0.25, 0.75]]
    assert cells[list(CELLS)].iloc[4].isna().all()
    tables = flip_tables(pd.concat([flips(0), flips(1)]), ["attention"], ["expected", "paper", "authors_code"])
    of_ways = tables.groupby("way", sort=False)["value"].apply(list).to_dict()
    assert of_ways["expected"] == pytest.approx([0.125, 0.375, 0.0625, 0.4375])
    assert of_ways["paper"] == pytest.approx([0.25, 0.25, 0, 0.5])
    assert of_ways["authors_code"] == pytest.approx([0, 0.5, 0.25, 0.25])
    assert all(100 * sum(values) == pytest.approx(100, abs=1e-9) for values in of_ways.values())
    assert tables["n"].eq(4).all() and tables["undefined"].eq(2).all()  # the text of one item, in both seeds


def removed(seed: int = 0, **more) -> pd.DataFrame:
    return rows(
        {
            "removed_items": [4, 4, 4, 4, 1, 4],
            "removed_attention_count": [2, 3, NONE, 1, NONE, NONE],
            "removed_gradient_count": [1, 3, 4, 2, NONE, NONE],
            "removed_fewest_count": [1, 2, 4, 1, NONE, NONE],
            "removed_random_1_count": [3, NONE, 4, 1, NONE, NONE],
            "removed_random_2_count": [4, NONE, NONE, 2, NONE, NONE],
            **{
                f"removed_random_{k}_{part}": [0.5, NONE, 1, 0.25, NONE, NONE]
                for k in (1, 2)
                for part in ("fraction", "mass")
            },
        }
        | more,
        seed,
    )


def test_which_ranking_flips_sooner():
    found = flips_sooner(pd.concat([removed(0), removed(1)]), "gradient", "attention").iloc[0]
    # text 0 and 2 (attention never flips) go to the gradient, 3 to attention, 1 is a tie, 5 is left out, 4 has one item
    assert (found["first_sooner"], found["second_sooner"], found["ratio"]) == pytest.approx((0.5, 0.25, 2.5 / 1.5))
    assert (found["n"], found["left_out"], found["seeds"]) == (4, 1, 2)
    assert found["low"] < 2 < found["high"] and found["p"] == sign_test(2, 1) == 1
    assert sign_test(10, 0) == pytest.approx(2 / 2**10) and sign_test(0, 0) == 1
    many = pd.concat([removed()] * 40, ignore_index=True).assign(instance=range(240))
    clear = flips_sooner(many, "gradient", "attention").iloc[0]
    assert 1.2 < clear["low"] < 2 < clear["high"] < 3.5 and clear["p"] < 0.01
    never = flips_sooner(removed(removed_gradient_count=[NONE] * 6), "gradient", "attention").iloc[0]
    assert (never["first_sooner"], never["second_sooner"], never["ratio"]) == (0, 1, pytest.approx(0.5 / 3.5))
    assert (never["low"], never["high"]) == (0, pytest.approx(2.42, abs=0.01)), "exact: none of three texts"
    always = flips_sooner(removed(removed_attention_count=[NONE] * 6), "gradient", "attention").iloc[0]
    share = binomtest(4, 4).proportion_ci().low
    assert (always["low"], always["high"]) == (pytest.approx(share / (1 - share)), np.inf)


def test_random_orders_are_averaged_where_they_flip():
    found = add_random(removed())
    assert found["removed_random_count"].tolist()[:4] == pytest.approx([3.5, NONE, 4, 1.5], nan_ok=True)
    long = ranking_rows(found, ["random"], "count")
    assert len(long) == 12 and long["ranking"].eq("random").all()  # each order of each text, and not the mean
    assert long["removed_count"].notna().sum() == 5


def test_exclusions_and_common_support():
    found = add_flips(removed(), ["attention", "gradient"])
    assert found["flips_attention"].tolist() == pytest.approx([1, 1, 0, 1, NONE, 0], nan_ok=True)
    assert common_support(found, ["attention", "gradient"])["instance"].tolist() == [
        0,
        3,
    ]  # with all random orders
    assert add_flips(found, ["random"])["flips_random"].tolist() == pytest.approx([1, 0, 0.5, 1, NONE, 0], nan_ok=True)
    halves = add_late_flips(found, ["random"])["removed_over_half_random"].tolist()
    assert halves == pytest.approx([0, NONE, 1, 0, NONE, NONE], nan_ok=True)


def test_how_far_from_the_fewest():
    found = add_optimality(removed(), ["attention"])
    assert found["optimal_attention"].tolist() == pytest.approx([0, 0, 0, 1, NONE, NONE], nan_ok=True)
    assert found["extra_attention"].tolist() == pytest.approx([1, 1, NONE, 0, NONE, NONE], nan_ok=True)


def test_what_the_top_item_does_beyond_the_others_and_how_often_it_flips_sooner():
    drawn = {
        "top_attention_paper_delta_alpha": [0.4] * 6,
        "top_attention_paper_delta_js": [0.01, -0.1, 0.3, 0, 0, NONE],
    }
    tops = {f"top_attention_{name}": [0.5, 0, 1, 1, NONE, 0] for name in ("js", "flip")}
    others = {f"top_attention_others_{name}": [0.25, 0.5, 1, 0, NONE, 0] for name in ("js", "flip")}
    product = {"removed_product_count": [1, 4, 4, 1, NONE, NONE]}
    frame = removed(**drawn, **tops, **others, **product)
    found = add_effects(frame)
    assert found["top_gap_js"].tolist() == pytest.approx([0.25, -0.5, 0, 1, NONE, 0], nan_ok=True)
    assert found["top_gap_flip"].tolist() == pytest.approx([0.25, -0.5, 0, 1, NONE, 0], nan_ok=True)
    assert found["sooner_product_than_attention"].tolist() == pytest.approx([1, -1, 1, 0, NONE, NONE], nan_ok=True)
    # of two random orders: both later; neither flips; neither attention's nor the second does; level and later
    assert found["sooner_attention_than_random"].tolist() == pytest.approx([1, 1, -1, 0.5, NONE, NONE], nan_ok=True)
    columns = ("drawn_negative", "delta_alpha_where_negative", "delta_alpha_elsewhere", "near_zero_at_large")
    of_drawn = add_drawn(frame)[list(columns)]
    assert found[list(columns)].equals(of_drawn)
    expected = [[0, NONE, 0.4, 1], [1, 0.4, NONE, NONE], [0, NONE, 0.4, 0], [0, NONE, 0.4, NONE]]
    assert of_drawn.to_numpy()[:4] == pytest.approx(np.array(expected), nan_ok=True)


def texts() -> list[Instance]:
    return [
        Instance("a", "", tuple("abcdef"), 0, ((1, 2),), (3, 3)),
        Instance("b", "", tuple("abcd"), 0, None, (2, 2)),
        Instance("c", "", tuple("abcd"), 0, ((0, 1), (2, 3)), (2, 2)),
    ]


def test_whether_the_top_item_decides():
    of = {"top_attention_place": [1, 0, 2]}
    words, sentences = rows(of), rows(of | {"top_attention_place": [0, 0, 1]}, encoder="han-rnn")
    found = add_rationale_hits(words, ["attention"], texts())
    assert found["on_rationale_attention"].tolist() == pytest.approx([1, NONE, 1], nan_ok=True)
    assert found["on_rationale_chance"].tolist() == pytest.approx([1 / 6, NONE, 1 / 2], nan_ok=True)
    found = add_rationale_hits(sentences, ["attention"], texts())  # of the last text both sentences decide
    assert found["on_rationale_attention"].tolist() == pytest.approx([1, NONE, NONE], nan_ok=True)


# Words; sentences, of which both decide in the last text.
@pytest.mark.parametrize(("items", "decide"), [((6, 4, 4), {0: [1], 2: [0, 2]}), ((2, 2, 2), {0: [0]})])
@torch.no_grad()
def test_what_flips_the_decision_is_held_against_the_rationale(items, decide):
    tested, given = small.model("average", seed=3), small.batch(items, seed=2)
    tested.decoder.bias.zero_()
    tested.decoder.bias.fill_(-tested(given).logits[0].item() / 2)  # without any item the first text's decision flips
    output = tested(given)
    found = erased_on_rationale({"attention": RANKINGS["attention"]}, texts())(tested, given, output)
    along = erase_until_flip(tested, output, output.attention)
    assert along.flipped[0]
    for name, erasure in {"attention": along, "fewest": fewest_to_flip(tested, output)}.items():
        for row in range(3):
            erased = erasure.erased[row][given.mask[row]]
            assert erased.sum() == erasure.count[row].nan_to_num()
            share = float(erased[decide[row]].sum() / erased.sum()) if row in decide else NONE
            assert float(found[name][row]) == pytest.approx(share, nan_ok=True)
