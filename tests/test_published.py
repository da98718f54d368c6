"""The published values, and every case of putting ours beside them."""

import pandas as pd
import pytest

from lib import papers, published, tables
from lib.quantity import RUN_COLUMNS, tau_name, title_of, unit_of

TAU = "kendall_tau_attention_vs_gradient_times_input"


def ours(**changes) -> pd.DataFrame:
    row = dict(zip(RUN_COLUMNS, ("sst", "bilstm", "additive", "softmax", "base", 1), strict=True))
    row |= {"quantity": TAU, "value": 0.36, "unit": "tau-b", "low": 0.35, "high": 0.37, "seeds": 3}
    return pd.DataFrame([row | changes])


def test_the_table_is_whole_and_unique():
    frame = published.table()
    assert len(frame) == 1140 and set(frame["paper"]) == set(papers.TITLES)
    assert not frame.duplicated(["paper", "table", *published.KEYS]).any()
    assert frame["value"].notna().all() and (frame.drop(columns="sd").notna()).all(axis=None)
    assert set(published.table("jain2019", "sst")["paper"]) == {"jain2019"}
    assert published.table(dataset="planted").empty
    with pytest.raises(KeyError, match="known: jain2019"):
        published.table("jain2020")


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
        assert row["inside"] and row["paper"] == "jain2019" and row["layers"] == "1"
    assert not published.beside(ours(low=0.355), published.table("jain2019", "sst")).iloc[0]["inside"]


def test_what_has_no_partner_is_kept_on_either_side():
    theirs = published.table("jain2019", "sst")
    both = published.beside(ours(encoder="transformer"), theirs)
    assert len(both) == len(theirs) + 1
    first, rest = both.iloc[0], both.iloc[1:]
    assert first["ours"] == 0.36 and pd.isna(first["theirs"]) and pd.isna(first["inside"]) and first["paper"] == ""
    assert rest["ours"].isna().all() and rest["inside"].isna().all() and rest["unit"].ne("").all()
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
    with pytest.raises(ValueError, match="needs the columns value"):
        published.beside(ours().drop(columns="value"), theirs)
    assert pd.isna(published.beside(ours().drop(columns=["low", "high"]), theirs).iloc[0]["inside"])


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


def test_settings_that_differ_are_a_table():
    shown = tables.departures((("vectors", "fastText", "word2vec < 1M", "tau +.2"), ("epochs", "8", "5", ""))).data
    assert shown.count("<tr") == 3 and "fastText" in shown and "word2vec &lt; 1M" in shown
    assert tables.departures(()).data == "<p>No setting differs.</p>"
