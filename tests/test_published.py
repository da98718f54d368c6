"""The published values, and every case of putting ours beside them."""

import pandas as pd
import pytest
from scipy import stats

import papers
from lib import tables
from lib.quantity import RUN_COLUMNS, tau_name, title_of, unit_of
from papers import published

TAU = "kendall_tau_attention_vs_gradient_times_input"


def ours(**changes) -> pd.DataFrame:
    row = dict(zip(RUN_COLUMNS, ("sst", "bilstm", "additive", "softmax", "base", 1), strict=True))
    row |= {"quantity": TAU, "value": 0.36, "unit": "tau-b", "low": 0.35, "high": 0.37, "seeds": 3, "n": 1725}
    return pd.DataFrame([row | changes])


def test_the_table_is_whole_and_unique():
    frame = published.table()
    assert len(frame) == 1140 and set(frame["paper"]) == set(papers.TITLES) - {"ours2026"}
    assert not frame.duplicated(["paper", "table", *published.KEYS]).any()
    assert frame["value"].notna().all() and (frame.drop(columns="sd").notna()).all(axis=None)
    assert set(published.table("jain2019", "sst")["paper"]) == {"jain2019"}
    assert published.table(dataset="planted").empty


def test_the_table_that_one_caller_changes_is_not_the_next_ones():
    mine = published.table()
    mine.loc[:, "value"] = 0
    assert published.table()["value"].abs().max() > 0


def test_the_units_of_what_we_measure_are_those_of_the_papers():
    frame = published.table()
    measured = frame[
        frame["quantity"].str.contains("^kendall_tau_attention|^accuracy|^f1|^jsd|^tvd|entropy_of_input_to")
    ]
    for name in measured.loc[measured["quantity"].str.contains("_vs_"), "quantity"]:
        tau_name(name.removeprefix("kendall_tau_").removesuffix("_significant").split("_vs_"))
    assert [unit_of(name) for name in measured["quantity"]] == measured["unit"].tolist()


def test_a_value_finds_its_partner_whatever_type_the_layers_have():
    for layers in (1, 1.0, "1"):
        row = published.beside(ours(layers=layers), published.table("jain2019", "sst")).iloc[0]
        assert row["theirs"] == 0.3512 and row["difference"] == pytest.approx(0.36 - 0.3512)
        assert row["answer"] == "same" and row["paper"] == "jain2019" and row["layers"] == "1"


@pytest.mark.parametrize(
    ("quantity", "unit", "value", "allowed"),
    [
        ("accuracy", "fraction", 0.9, 0.02),
        ("f1", "fraction", 0.8, 0.02),
        ("auc", "fraction", 0.8, 0.02),
        (TAU, "tau-b", 0.01, 0.06),
        ("jsd", "nats", 0.6, 0.06),
        ("f1_drop_permuted", "fraction", -0.8, 0.2),
        ("f1_drop_uniform", "fraction", -0.012, 0.01),
        ("tvd", "fraction", 0.036, 0.01),
        ("tvd", "fraction", 0.4, 0.1),
        ("flip_both", "fraction", 0.005, 0.01),
        ("flip_top_only", "fraction", 0.12, 0.03),
        (f"{TAU}_significant", "fraction", 0.9, 0.06),
        ("token_probability_mean", "fraction", 0.8, 0.06),
        ("mutual_information_random_sample", "nats", 4.0, 0.4),
    ],
)
def test_the_tolerance_by_kind_of_quantity(quantity, unit, value, allowed):
    assert published.tolerance(quantity, unit, value) == pytest.approx(allowed)


def of_three(value: float, half: float, sd: float, theirs: float, **more) -> pd.Series:
    """The row of F1 on SST, of three seeds, beside a paper's."""
    row = ours(quantity="f1", unit="fraction", value=value, low=value - half, high=value + half, sd_seeds=sd, **more)
    printed = (
        published.table("jain2019", "sst").query("quantity == 'f1'").assign(value=theirs, dataset=row["dataset"][0])
    )
    return published.beside(row, printed).query("ours == ours").iloc[0]


@pytest.mark.parametrize(
    ("value", "half", "sd", "answer", "reason"),
    [
        (0.82, 0.02, 0.01, "same", ""),
        (0.82, 0.021, 0.01, "open", "ours too imprecise"),
        (0.8201, 0.001, 0.001, "different", ""),
        (0.85, 0.001, 0.01, "different", ""),  # the prediction interval: 4.303 x .01 x sqrt(4 / 3) = .0497
        (0.8496, 0.001, 0.01, "open", "seeds could make the difference"),
        (0.9, 0.5, 0.0001, "different", ""),
    ],
)
def test_same_different_and_open(value, half, sd, answer, reason):
    found = of_three(value, half, sd, 0.8)
    assert (found["answer"], found["reason"]) == (answer, reason)
    assert of_three(0.8 - (value - 0.8), half, sd, 0.8)["answer"] == answer, "whichever is larger"


def test_fewer_than_three_seeds_are_never_different():
    for seeds, sd, reason in ((1, float("nan"), "one run"), (2, 0.0001, "two runs")):
        assert of_three(0.99, 0.001, sd, 0.5, seeds=seeds)[["answer", "reason"]].tolist() == ["open", reason]
    assert of_three(0.81, 0.001, float("nan"), 0.8, seeds=1)[["answer", "reason"]].tolist() == ["same", "one run"]
    for sd, answer in ((0.0141, "same"), (0.0143, "open")):  # .80 and .82, .7999 and .8201
        assert of_three(0.81, 0.001, sd, 0.8, seeds=2)[["answer", "reason"]].tolist() == [answer, "two runs"]
    unknown = of_three(0.99, 0.001, float("nan"), 0.5)
    assert unknown["answer"] == "open" and unknown["reason"] == "its spread over seeds is not known"


SPREAD = {"sd_seeds": 0.02, "seeds": 4, "low_texts": 0.7, "high_texts": 0.8, "low": 0.6, "high": 0.9}
ONE_MORE, MEAN_OF_FIVE = (stats.t.ppf(0.975, 3) * 0.02 * (1 / 4 + 1 / m) ** 0.5 for m in (1, 5))


@pytest.mark.parametrize(
    ("paper", "dataset", "n", "expected"),
    [
        ("jain2019", "sst", 1725, ONE_MORE),
        ("wiegreffe2019", "sst", 1725, ONE_MORE),
        ("tutek2020", "sst", 1725, MEAN_OF_FIVE),
        ("tutek2020", "sst", 345, (MEAN_OF_FIVE**2 + 0.05**2 * 0.8) ** 0.5),  # a fifth of their texts
        ("tutek2020", "20news", 357, (MEAN_OF_FIVE**2 + 0.05**2 + 0.05**2) ** 0.5),  # other texts on both sides
    ],
)
def test_chance_is_a_prediction_interval_for_a_mean_of_their_runs(paper, dataset, n, expected):
    row = pd.Series(SPREAD | {"paper": paper, "dataset": dataset, "n": n})
    assert published.chance(row) == pytest.approx(expected)


def test_without_an_interval_over_texts_the_whole_one_stands_in():
    row = pd.Series(SPREAD | {"paper": "tutek2020", "dataset": "20news", "n": 357, "low_texts": float("nan")})
    assert published.chance(row) == pytest.approx((MEAN_OF_FIVE**2 + 0.15**2 + 0.15**2) ** 0.5)


def test_each_published_value_counts_once():
    assert len(published.once(published.table())) == 1086
    twice = published.table("tutek2020", "sst").query("table in ('table1', 'table6') and quantity == 'f1'")
    assert published.once(twice)["table"].value_counts().to_dict() == {"table1": 8, "table6": 8}


def test_what_is_out_of_reach_is_no_result_of_a_run():
    frame = published.table()
    never = frame[published.out_of_reach(frame)]
    assert len(never) == 82 and never.query("dataset == 'all'")["quantity"].nunique() == 2
    assert not never["quantity"].str.contains("kendall|accuracy|^f1|jsd|tvd|flip").any()


def test_every_cause_on_record_is_of_a_published_value_and_says_what_was_tried():
    causes, frame = published.differences(), published.table()
    assert len(causes) == len(causes.merge(frame, on=published.PLACE, validate="1:1"))
    assert causes[["cause", "experiment", "gave"]].ne("").all(axis=None)
    assert causes["gave"].str.contains(r"\d").all(), "in numbers"


def test_a_cause_stands_beside_what_is_different_alone(monkeypatch):
    theirs = published.table("jain2019", "sst").query(f"quantity == '{TAU}' and encoder == 'bilstm'").iloc[:1]
    known = theirs[published.PLACE].assign(cause="shorter vectors; x .3: tau .35")
    monkeypatch.setattr(published, "differences", lambda: known)
    far = ours(value=0.9, low=0.89, high=0.91, sd_seeds=0.001)
    both = [published.beside(one, theirs) for one in (far, ours(sd_seeds=0.001), far.assign(seeds=1))]
    assert [one["cause"].iloc[0] for one in both] == ["shorter vectors; x .3: tau .35", "", ""]
    everything = published.unlike(
        pd.concat([both[2], both[1].assign(table="b"), both[0].assign(table="c", encoder="a")])
    )
    assert everything["answer"].tolist() == ["different", "open"], "the different first, nothing that is the same"
    assert (
        "shorter vectors; x .3" in tables.beside(everything).data and "open: one run" in tables.beside(everything).data
    )


def test_what_has_no_partner_is_kept_on_either_side():
    theirs = published.table("jain2019", "sst")
    both = published.beside(ours(encoder="transformer"), theirs)
    assert len(both) == len(theirs) + 1
    first, rest = both.iloc[0], both.iloc[1:]
    assert first["ours"] == 0.36 and pd.isna(first["theirs"]) and first["answer"] == "" and first["paper"] == ""
    assert rest["ours"].isna().all() and rest["answer"].eq("").all() and rest["unit"].ne("").all()
    assert published.beside(ours(dataset="planted"), published.table(dataset="planted"))["theirs"].isna().all()


def test_a_value_that_stands_in_two_papers_has_a_row_for_each():
    f1 = ours(quantity="f1", unit="fraction", value=0.82)
    both = published.beside(f1, published.table(dataset="sst")).query("ours == ours")
    assert set(both["paper"]) == {"jain2019", "wiegreffe2019", "tutek2020"} and len(both) >= 4
    assert both["theirs"].notna().all()


def test_other_units_and_unsummarised_tables_are_refused():
    theirs = published.table("jain2019", "sst")
    with pytest.raises(ValueError, match=r"bilstm additive softmax base 1 kendall.* in fraction here and in tau-b"):
        published.beside(ours(unit="fraction"), theirs)
    with pytest.raises(ValueError, match="more than once"):
        published.beside(pd.concat([ours(), ours()]), theirs)
    without = published.beside(ours().drop(columns=["low", "high"]), theirs).iloc[0]
    assert without["answer"] == "open" and without["ours"] == 0.36
    assert published.beside(ours().iloc[:0], theirs.iloc[:0]).empty


def test_counts_are_the_data_tables():
    sst = published.counts("sst").set_index(["paper", "quantity"])["value"]
    assert sst["wiegreffe2019", "train_negative"] == 3034 and sst["meister2021", "test_size"] == 1725
    assert published.counts("planted").empty


def test_the_shown_table_reads_well_and_escapes_what_comes_from_data():
    f1 = ours(quantity="f1", unit="fraction", value=0.821, low=0.8, high=0.84, dataset="<script>alert(1)</script>")
    html = tables.beside(published.beside(f1, published.table(dataset="planted")), percent=True).data
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert "82.1" in html and "80.0 to 84.0" in html and "F1 (%)" in html
    html = tables.beside(published.beside(ours(), published.table("jain2019", "sst")).iloc[:1]).data
    assert "Jain &amp; Wallace 2019, released results" in html and "+0.009" in html and "dataset sst" in html
    assert title_of(TAU) == "attention / gradient × input"
