"""What erasing says of rankings, by hand on a few texts."""

import numpy as np
import pandas as pd
import pytest
import torch
from small import batch, model

from lib.analysis import (
    add_drawn,
    add_flips,
    add_optimality,
    add_rationale_hits,
    add_sooner,
    box_medians,
    common_support,
    compare_top_gaps,
    erasure_steps,
    flip_tables,
    flips_sooner,
    item_names,
    ranking_rows,
    weights_on_words,
)
from lib.analysis.erasure import CELLS, flip_cells
from lib.datasets.corpus import Instance
from lib.importance.rankings import RANKINGS
from lib.interventions import erase_until_flip, single_erasure, until_flip

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
            "removed_attention_fraction": [0.5, 0.75, NONE, 0.25, NONE, NONE],
            "removed_gradient_count": [1, 3, 4, 2, NONE, NONE],
            "removed_gradient_fraction": [0.25, 0.75, 1, 0.5, NONE, NONE],
            "removed_fewest_count": [1, 2, 4, 1, NONE, NONE],
            "removed_random_1_count": [2, NONE, 4, 1, NONE, NONE],
            "removed_random_2_count": [2, NONE, NONE, 3, NONE, NONE],
            "removed_random_1_fraction": [0.5, NONE, 1, 0.25, NONE, NONE],
            "removed_random_2_fraction": [0.5, NONE, NONE, 0.75, NONE, NONE],
        }
        | more,
        seed,
    )


def test_which_ranking_flips_sooner():
    signs = add_sooner(removed(), "gradient", "attention")["sooner_gradient_than_attention"].tolist()
    assert signs == pytest.approx([1, 0, 1, -1, NONE, NONE], nan_ok=True), "of text 2 attention never flips"
    pair = [("gradient", "attention")]
    found = flips_sooner(pd.concat([removed(0), removed(1)]), pair).iloc[0]
    # text 5 is left out, and 4 has one item
    assert (found["first_sooner"], found["second_sooner"], found["value"]) == pytest.approx((0.5, 0.25, 2.5 / 1.5))
    assert (found["n"], found["left_out"], found["seeds"]) == (4, 1, 2) and found["low"] < 2 < found["high"]
    many = pd.concat([removed()] * 40, ignore_index=True).assign(instance=range(240))
    clear = flips_sooner(many, pair).iloc[0]
    assert 1.2 < clear["low"] < 2 < clear["high"] < 3.5
    never = flips_sooner(removed(removed_gradient_count=[NONE] * 6), pair).iloc[0]
    assert (never["first_sooner"], never["second_sooner"], never["value"]) == (0, 1, pytest.approx(0.5 / 3.5))
    half = 1.96 * np.sqrt(1 / 0.5 + 1 / 3.5)  # of the log, as of two Poisson counts
    assert never["high"] == pytest.approx(0.5 / 3.5 * np.exp(half), rel=1e-3)


def test_random_orders_count_each_and_texts_that_do_not_flip_are_left_out():
    found = add_flips(removed(), ["attention", "random"])
    assert found["removed_random_fraction"].tolist() == pytest.approx([0.5, NONE, 1, 0.5, NONE, NONE], nan_ok=True)
    assert found["flips_attention"].tolist() == pytest.approx([1, 1, 0, 1, NONE, 0], nan_ok=True)
    assert found["flips_random"].tolist() == pytest.approx([1, 0, 0.5, 1, NONE, 0], nan_ok=True)
    assert found["removed_over_half_random"].tolist() == pytest.approx([0, NONE, 1, 0.5, NONE, NONE], nan_ok=True)
    assert found["removed_all_random"].tolist() == pytest.approx([0, NONE, 1, 0, NONE, NONE], nan_ok=True)
    assert common_support(found, ["attention", "gradient"])["instance"].tolist() == [0, 3]  # with all random orders
    long = ranking_rows(found, ["random", "attention"])
    assert long["ranking"].tolist() == ["random"] * 12 + ["attention"] * 6, "each order of each text, and not the mean"
    medians = box_medians(long).set_index("quantity")
    assert medians.loc["removed_random_fraction_median", ["value", "n", "seeds"]].tolist() == [0.5, 3, 1]
    assert medians.loc["removed_attention_fraction_median", "value"] == 0.5 and box_medians(long[:0]).empty


def test_how_far_from_the_fewest():
    optimal = add_optimality(removed(), ["attention"])["optimal_attention"].tolist()
    assert optimal == pytest.approx([0, 0, 0, 1, NONE, NONE], nan_ok=True)


def test_what_the_top_item_does_beyond_a_drawn_one_and_all_others():
    drawn = {"delta_alpha": [0.4] * 6, "delta_js": [0.01, -0.1, 0.3, 0, 0, NONE]}
    frame = removed(**{f"top_attention_paper_{name}": values for name, values in drawn.items()})
    columns = ["drawn_negative", "delta_alpha_where_negative", "delta_alpha_elsewhere", "near_zero_at_large"]
    expected = [[0, NONE, 0.4, 1], [1, 0.4, NONE, NONE], [0, NONE, 0.4, 0], [0, NONE, 0.4, NONE]]
    assert add_drawn(frame)[columns].to_numpy()[:4] == pytest.approx(np.array(expected), nan_ok=True)
    own, shuffled = (
        rows({"top_attention_js": [0.5, 0, NONE], "top_attention_others_js": [less, 0.5, NONE]}) for less in (0.25, 0.5)
    )
    gaps = compare_top_gaps(own, shuffled)
    assert gaps["weights"].tolist() == ["own", "shuffled"] and gaps["value"].tolist() == [-0.125, -0.25]


def test_one_text_is_erased_step_by_step():
    tested, given = model("average", outputs=3, seed=3), batch((5,), seed=2)
    with torch.no_grad():
        least = tested(given).logits.argmin()
        tested.decoder.bias.copy_(1e-3 * torch.eye(3)[least])  # so that the decision flips, at the latest with all gone
    output, words = tested(given), list("abcde")
    assert item_names(words, output) == words and item_names(words * 2, output)[-1] == "sentence 5"
    steps = erasure_steps(tested, output, {"attention": RANKINGS["attention"]}, words)
    weights = output.attention[0][output.mask[0]].detach()
    largest = f"{words[int(weights.argmax())]}, "
    assert steps["erased"].tolist() == [0, 1, 2, 3, 4, 5] and steps["Attention"].iloc[1].startswith(largest)
    assert steps["Attention"].iloc[0] == f"{output.logits.softmax(dim=-1).max():.3f}"
    flipped = erase_until_flip(tested, output, output.attention).count
    assert steps["Attention"].str.endswith("flipped").idxmax() == int(flipped)
    both = pd.concat([rows({"instance": [0]}), rows({"instance": [0]}, encoder="han-rnn")])
    both["attention_weights"] = [weights.numpy(), np.ones(2)]
    assert list(weights_on_words(both, 0, words)) == ["FLAN-rnn"]


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
