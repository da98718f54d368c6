"""The published values, and every case of putting ours beside them."""

import re
from math import nan

import pandas as pd
import pytest
from scipy import stats

from lib.quantity import RUN_COLUMNS, tau_name, title_of, unit_of
from papers import PAPERS, published, results, show
from tools.summary.answer import counts_by_paper

TAU = "kendall_tau_attention_vs_gradient_times_input"


def ours(**changes) -> pd.DataFrame:
    row = dict(zip(RUN_COLUMNS, ("sst", "bilstm", "additive", "softmax", "base", 1), strict=True))
    row |= {"quantity": TAU, "value": 0.36, "unit": "tau-b", "low": 0.35, "high": 0.37, "seeds": 3, "n": 1725}
    return pd.DataFrame([row | changes])


def test_the_table_is_whole_and_unique():
    frame = published.table()
    assert len(frame) == 1190 and set(frame["paper"]) == set(published.TITLES) - {"ours2026"}
    assert not frame.duplicated(["paper", "table", *published.KEYS]).any()
    assert frame["value"].notna().all() and (frame.drop(columns="sd").notna()).all(axis=None)
    assert set(published.table("jain2019", "sst")["paper"]) == {"jain2019"}
    assert published.table(dataset="planted").empty and published.counts("planted").empty
    sst = published.counts("sst").set_index(["paper", "quantity"])["value"]
    counting = frame[frame["counted"]]  # each result once, and none of a training set of which we read a part
    assert len(counting) == 844 and not counting.duplicated(["paper", *published.KEYS]).any()
    assert not counting["dataset"].isin(["agnews", "snli", "babi3"]).any()
    assert not counting["unit"].isin(published.COUNTED).any() and counting["quantity"].ne("lambda").all()
    measured = frame[frame["quantity"].str.contains("^kendall_tau_attention|^accuracy|^f1|^jsd|^tvd")]
    measured = measured[~measured["quantity"].str.contains("_class_")]
    for name in measured.loc[measured["quantity"].str.contains("_vs_"), "quantity"]:
        tau_name(name.removeprefix("kendall_tau_").removesuffix("_significant").split("_vs_"))
    assert [unit_of(name) for name in measured["quantity"]] == measured["unit"].tolist(), "in our units"
    frame.loc[:, "value"] = 0.0  # what one caller changes is not the next one's
    assert published.table()["value"].abs().max() > 0
    assert sst["wiegreffe2019", "train_negative"] == 3034 and sst["meister2021", "test_size"] == 1725


def test_the_tolerance_by_kind_of_quantity():
    cases = [  # quantity, unit, printed, what may lie between
        ("f1", "fraction", 0.8, 0.02),
        (TAU, "tau-b", 0.01, 0.06), (f"{TAU}_significant", "fraction", 0.9, 0.06), ("jsd", "nats", 0.6, 0.06),
        ("f1_drop_permuted", "fraction", -0.8, 0.2), ("f1_drop_uniform", "fraction", -0.012, 0.01),
        ("tvd", "fraction", 0.036, 0.01), ("tvd", "fraction", 0.4, 0.1), ("flip_both", "fraction", 0.005, 0.01),
        ("flip_top_only", "fraction", 0.12, 0.03), ("token_probability_mean", "fraction", 0.8, 0.06),
        ("mutual_information_random_sample", "nats", 4.0, 0.4),
    ]  # fmt: skip
    found = [published.tolerance(quantity, unit, value) for quantity, unit, value, _ in cases]
    assert found == pytest.approx([allowed for *_, allowed in cases])


def of_three(value: float, half: float, sd: float, theirs: float, **more) -> pd.Series:
    """The row of F1 on SST, of three seeds, beside a paper's."""
    row = ours(quantity="f1", unit="fraction", value=value, low=value - half, high=value + half, sd_seeds=sd, **more)
    printed = published.table("jain2019", "sst").query("quantity == 'f1'").assign(value=theirs)
    return published.compare(row, printed).query("ours == ours").iloc[0]


def test_same_within_a_seed_and_different_at_their_borders():
    cases = [
        (0.82, 0.001, 0.0, "same"),  # the tolerance of F1
        (0.8201, 0.001, 0.001, "different"),
        (0.9, 0.1, 0.0, "same"),  # inside our interval, however wide
        (0.9, 0.0999, 0.0001, "different"),
        (0.8496, 0.001, 0.01, "within a seed"),  # one more run: 4.303 x .01 x sqrt(4 / 3) = .0497
        (0.8498, 0.001, 0.01, "different"),
    ]
    for value, half, sd, answer in cases:
        for given in (value, 1.6 - value):  # whichever is larger
            assert of_three(given, half, sd, 0.8)["answer"] == answer


def test_the_spread_of_one_run_is_borrowed_from_like_quantities():
    encoders = {"bilstm": (1, nan), "average": (3, 0.09), "conv": (3, 0.01), "transformer": (4, 0.02), "mlp": (2, 0.5)}
    rows = [ours(quantity="f1", unit="fraction", value=0.9, low=nan, high=nan, encoder=name, seeds=seeds, sd_seeds=sd)
            for name, (seeds, sd) in encoders.items()]  # fmt: skip
    printed = published.table("jain2019", "sst").query("quantity == 'f1' and encoder == 'bilstm'")
    half = stats.norm.ppf(0.975) * 0.02 * 2**0.5  # the median sd of those with three runs or more
    for apart, answer in ((half - 1e-6, "within a seed"), (half + 1e-6, "different")):
        both = published.compare(pd.concat(rows), printed.assign(value=0.9 - apart))
        assert both.loc[both["ours"].notna() & both["theirs"].notna(), "answer"].tolist() == [answer]
    alone = published.compare(rows[0], printed.assign(value=0.87))
    assert alone.loc[alone["ours"].notna(), "answer"].tolist()[:1] == ["different"], "nothing to borrow"


def test_within_reach_is_a_prediction_interval_for_a_mean_of_their_runs():
    base = {"sd_seeds": 0.02, "spread": 0.02, "seeds": 4, "low_texts": 0.7, "high_texts": 0.8, "low": 0.6, "high": 0.9}
    one_more, mean_of_five = (stats.t.ppf(0.975, 3) * 0.02 * (1 / 4 + 1 / m) ** 0.5 for m in (1, 5))
    cases = [  # paper, dataset, texts of ours, what else is seen; how far by chance
        ("jain2019", "sst", 1725, {}, one_more), ("tutek2020", "sst", 1725, {}, mean_of_five),
        ("tutek2020", "sst", 345, {}, (mean_of_five**2 + 0.05**2 * 0.8) ** 0.5),  # a fifth of their texts
        ("tutek2020", "20news", 357, {}, (mean_of_five**2 + 2 * 0.05**2) ** 0.5),  # other texts on both sides
        ("tutek2020", "20news", 357, {"low_texts": nan}, (mean_of_five**2 + 2 * 0.15**2) ** 0.5),  # the whole stands in
        ("jain2019", "sst", 1725, {"seeds": 2}, stats.norm.ppf(0.975) * 0.02 * (1 / 2 + 1) ** 0.5),  # no t of so few
    ]  # fmt: skip
    for paper, dataset, n, more, expected in cases:
        row = base | {"paper": paper, "dataset": dataset, "n": n} | more
        assert published.reach(row) == pytest.approx(expected)


def test_every_cause_on_record_is_of_a_value_that_differs_and_says_what_was_tried_in_numbers():
    causes = pd.read_csv(published.SOURCE.with_name("differences.csv"), keep_default_na=False, dtype=str)
    kept = {name: results.main_runs(results.kept("values", name), "values") for name in PAPERS}
    compared = [PAPERS[name].compare(PAPERS[name].ours(rows)) for name, rows in kept.items() if len(rows)]
    compared = pd.concat(compared).astype({name: str for name in published.PLACE})
    different = compared[compared["answer"].eq("different")]
    recorded, every = (set(map(tuple, rows[published.PLACE].to_numpy())) for rows in (causes, different))
    assert recorded <= every
    assert set(map(tuple, different.loc[different["counted"], published.PLACE].to_numpy())) <= recorded
    assert len(causes) == len(causes.merge(published.table(), on=published.PLACE, validate="1:1"))
    assert causes[["cause", "experiment"]].ne("").all(axis=None) and causes["gave"].str.contains(r"\d").all()


def test_what_has_no_partner_is_kept_on_either_side_and_what_has_several_for_each():
    theirs = published.table("jain2019", "sst")
    for layers in (1, 1.0, "1"):
        row = published.compare(ours(layers=layers), theirs).iloc[0]
        assert row["theirs"] == 0.3512 and row["difference"] == pytest.approx(0.36 - 0.3512)
        assert row["answer"] == "same" and row["paper"] == "jain2019" and row["layers"] == "1"
    both = published.compare(ours(encoder="transformer"), theirs)
    assert len(both) == len(theirs) + 1
    first, rest = both.iloc[0], both.iloc[1:]
    assert first["ours"] == 0.36 and pd.isna(first["theirs"]) and first["answer"] == "" and first["paper"] == ""
    assert rest["ours"].isna().all() and rest["answer"].eq("").all() and rest["unit"].ne("").all()
    assert published.compare(ours(dataset="planted"), published.table(dataset="planted"))["theirs"].isna().all()
    f1 = ours(quantity="f1", unit="fraction", value=0.82)
    both = published.compare(f1, published.table(dataset="sst")).query("ours == ours")
    assert set(both["paper"]) == {"jain2019", "wiegreffe2019", "tutek2020"} and both["theirs"].notna().all()


def test_other_units_and_unsummarised_tables_are_refused():
    theirs = published.table("jain2019", "sst")
    with pytest.raises(ValueError, match=r"bilstm additive softmax base 1 kendall.* in fraction here and in tau-b"):
        published.compare(ours(unit="fraction"), theirs)
    with pytest.raises(ValueError, match="more than once"):
        published.compare(pd.concat([ours(), ours()]), theirs)
    without = published.compare(ours().drop(columns=["low", "high"]), theirs).iloc[0]
    assert without["answer"] == "same" and without["ours"] == 0.36
    assert published.compare(ours().iloc[:0], theirs.iloc[:0]).empty


def test_the_papers_table_has_theirs_above_ours_and_escapes_what_comes_from_data():
    f1 = ours(quantity="f1", unit="fraction", value=0.821, low=0.8, high=0.84, dataset="<script>alert(1)</script>")
    html = show.compare(published.compare(f1, published.table(dataset="planted")), percent=True).data
    assert "<script>" not in html and "&lt;script&gt;" in html and "82.1 [80.0, 84.0]" in html
    both = published.compare(ours(), published.table("jain2019", "sst")).iloc[:1]
    sd = f"{both['sd'].item():.3f}"
    for counted, kind in ((True, "same"), (False, "uncounted")):
        html = show.compare(both.assign(counted=counted)).data
        cell = rf"<span class='{kind}'[^>]*>0.360 \[0.350, 0.370\]</span>"
        assert re.search(rf"<td class='number'>0.351 ± {sd}<br>{cell}</td>", html)
    assert "Jain &amp; Wallace 2019, released results" in html and f"<th scope='col'>{title_of(TAU)}</th>" in html


def test_the_counts_of_a_paper_are_of_values_that_count_and_have_ours():
    rows = {"paper": "jain2019", "theirs": [0.1, 0.2, 0.4, 0.5, 0.9], "ours": [0.1, 0.3, 0.4, nan, 0.1]}
    rows |= {"counted": [True] * 4 + [False], "answer": ["same", "different", "within a seed", "", "different"]}
    values = pd.DataFrame(rows).assign(difference=lambda rows: rows["ours"] - rows["theirs"])
    (row,) = counts_by_paper(values).to_dict("records")
    assert [row[name] for name in ("counted", "ours", *published.ANSWERS)] == [4, 3, 1, 1, 1]
    assert row["r"] == pytest.approx(stats.pearsonr([0.1, 0.2, 0.4], [0.1, 0.3, 0.4])[0]) and row["distance"] == 0.0
