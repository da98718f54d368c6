"""Every chart is valid, small, says what it shows, and can be drawn; text from data stays text."""

import json
import re
from base64 import b64decode
from types import SimpleNamespace
from xml.etree import ElementTree

import altair as alt
import numpy as np
import pandas as pd
import pytest
import vl_convert
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook, new_output

from lib import charts
from lib.charts.distributions import box_of
from lib.charts.erasure import in_bins
from lib.charts.text import visible
from lib.charts.theme import STATIC
from lib.datasets.corpus import Instance
from lib.quantity import RUN_COLUMNS, declare, tau_name

PAIR = ("attention", "gradient_times_input")
NAME = "constructor"  # in an expression Vega takes it for what every object has, and draws nothing
CLASSES = ("<b>negative</b>", NAME)
HOSTILE = ["<script>alert('x')</script>", "\u202eevil", "\u2069", '"quoted"', "&amp;", "👩🏽\u200d🚀", "שלום", "\x00"]
HOSTILE += [" ", "</bdi>"]

declare("permuted_change_of_p", "fraction")
declare("jsd_exact", "nats")
declare("gap", "tau-b", None, (-2, 2))


def instances(n=60, encoders=("bilstm", "average", "conv"), seeds=(0, 1), classes=2) -> pd.DataFrame:
    random = np.random.default_rng(0)
    parts = []
    for encoder in encoders:
        for attention in ("additive", "dot"):
            for seed in seeds:
                run = dict(zip(RUN_COLUMNS, ("sst", encoder, attention, "softmax", "base", 1), strict=True))
                part = pd.DataFrame({"instance": range(n), "label": np.arange(n) % classes, "length": 9})
                part["prediction"], part["probability"] = random.integers(0, classes, n), random.random(n)
                part["left_out"], part["max_attention"] = [()] * n, random.random(n)
                part[tau_name(PAIR)] = random.uniform(-1, 1, n)
                part["permuted_change_of_p"] = random.beta(1, 8, n)
                part["jsd_exact"] = random.uniform(0, np.log(2), n)
                part["gap"] = part[tau_name(PAIR)] / 2
                more = random.uniform(-0.1, 0.6, (2, n))
                part["top_attention_paper_delta_alpha"], part["top_attention_paper_delta_js"] = more
                parts.append(part.assign(**run, seed=seed))
    return pd.concat(parts, ignore_index=True)


def token_curves(tokens, rationale=((1, 3),)) -> alt.TopLevelMixin:
    text = Instance("", "", tuple(tokens), 1, rationale=rationale)
    corpus = SimpleNamespace(name="sst", classes=CLASSES, test=SimpleNamespace(instances=[text]))
    rows = pd.DataFrame({"variant": ["base", "tying", "mlm"], "instance": 0, "prediction": [0, 1, 1]})
    values = [np.linspace(0, 1, len(tokens))] * 3
    return charts.token_curves(rows.assign(probability=0.7, token_probabilities=values), corpus, "One text")


def over_lambda(encoders=("bilstm", "conv"), low=0.4) -> pd.DataFrame:
    rows = {"quantity": [tau_name(PAIR), "jsd_exact"] * 2, "lambda": [0.1, 0.1, 1, 1], "value": 0.5, "high": 0.6}
    return pd.concat([pd.DataFrame(rows | {"encoder": name, "attention": "dot", "low": low}) for name in encoders])


def over_distance() -> pd.DataFrame:
    """Two adversaries of one kind, and a printed one."""
    rows = [(at, *of) for at in (0.0, 1.0) for of in (("jsd", 0.1 + at / 2), ("accuracy", 0.9 - at / 10))]
    ours = pd.DataFrame(rows, columns=["lambda", "quantity", "value"]).assign(low=0.7, high=0.95)
    theirs = ours[:2].assign(table="table5", low=np.nan, high=np.nan, **{"lambda": np.nan})
    return pd.concat([ours, theirs]).assign(encoder=NAME, attention="dot", variant="adversary_frozen")


def all_charts(frame: pd.DataFrame) -> dict[str, alt.TopLevelMixin]:
    titles = ("A title of a chart", "What to see in this chart.")
    rows = {"series": ["adversary"] * 3 + ["uniform"], "seed": 0, "at": [0, 0.1, 1, np.nan], "n": 9}
    ends = {f"{name}{end}": [0.1, 0.2, 0.4, 0.3] for name in ("jsd", "tvd") for end in ("", "_low", "_high")}
    return {
        "tau": charts.histogram_by_class(frame, tau_name(PAIR), CLASSES),
        "permuted": charts.boxes_by_max_attention(frame, "permuted_change_of_p", CLASSES, *titles),
        "adversary": charts.boxes_by_max_attention(frame, "jsd_exact", CLASSES, *titles),
        "jsd": charts.histogram_by_class(frame, "jsd_exact", CLASSES, "A title"),
        "tokens": token_curves(HOSTILE),
        "sweep": charts.sweep(over_lambda(), "lambda", *titles, scale="symlog"),
        "one seed": charts.sweep(over_lambda(low=np.nan), "lambda", *titles),
        "tradeoff": charts.tradeoff(pd.DataFrame(rows | ends), *titles),
        "price": charts.price(over_distance(), *titles),
        "three classes": charts.boxes_by_max_attention(frame, "jsd_exact", [*CLASSES, "none"], *titles),
        "boxes": charts.boxes(frame, ["permuted_change_of_p"], "projection", *titles),
        "differences": charts.jsd_differences(frame, *titles),
        "negatives": charts.negative_differences(frame, *titles),
        "plane": charts.plane(over_distance(), {"accuracy": "x", "jsd": "y"}, *titles),
    }


@pytest.fixture(autouse=True)
def theme():
    before = alt.renderers.active, alt.theme.active
    charts.enable()
    yield
    alt.renderers.enable(before[0])
    alt.theme.enable(before[1])


def test_every_chart_is_drawn_and_says_what_it_shows():
    frame = instances(encoders=("bilstm", NAME, "conv")).replace({"attention": "dot"}, NAME)
    for name, chart in all_charts(frame).items():
        spec = chart.to_dict()
        assert rf"\"{NAME}\"" not in json.dumps(vl_convert.vegalite_to_vega(spec)), f"in an expression of {name}"
        svg = vl_convert.vegalite_to_svg(spec)
        assert not any(wrong in svg for wrong in ("NaN", "undefined", "<b>")), name
        assert spec["title"]["text"] and spec["title"]["subtitle"] and len(spec["description"]) > 40, name
        assert "role-axis-title" in svg, name
        width = float(svg.split('width="')[1].split('"')[0])
        assert 300 < width <= 765, f"{name} is {width} pixels wide"


def test_no_chart_grows_with_the_number_of_instances():
    frame = instances(n=2_000, encoders=("bilstm",), seeds=(0, 1))
    frame["prediction"] = np.arange(len(frame)) % 2
    drawn = all_charts(frame)
    twelve = instances(n=1_000, encoders=tuple("abcdef"))
    drawn["twelve panels"] = charts.boxes_by_max_attention(twelve, "permuted_change_of_p", CLASSES, "A title", "See.")
    for name, chart in drawn.items():
        assert sum(map(len, chart.to_dict()["datasets"].values())) < 5_000, name


def test_a_heat_map_shows_every_value_with_its_interval_in_the_order_given():
    rows = [(NAME, "one", "random", 0.15, np.nan, np.nan, 0.0), (NAME, "one", "<b>", 0.9, 0.8, 1.0, 0.88)]
    names = ["encoder", "condition", "explanation", "value", "low", "high", "share"]
    cells = pd.DataFrame([*rows, ("conv", "two", "random", 0.2, np.nan, np.nan, 0.0)], columns=names)
    spec = charts.heat_map(cells, "condition", "encoder", "A title", "What to see.").to_dict()
    (data,) = spec["datasets"].values()
    rows = [("random", ".15", "", 0.0), ("<b>", ".90", ".80 – 1.00", 0.88), ("random", ".20", "", 0.0)]
    assert [(row["explanation"], row["value"], row["interval"], row["share"]) for row in data] == rows
    svg = vl_convert.vegalite_to_svg(spec)
    assert svg.index(">random<") < svg.index(">&lt;b&gt;<") and svg.count(">.80 – 1.00<") == 1 and "NaN" not in svg
    assert 300 < float(svg.split('width="')[1].split('"')[0]) <= 765
    assert rf"\"{NAME}\"" not in json.dumps(vl_convert.vegalite_to_vega(spec)), "in an expression"


def test_token_curves_show_each_token_as_text():
    svg = vl_convert.vegalite_to_svg(token_curves(HOSTILE).to_dict())
    assert "&lt;script&gt;alert" in svg and "<script" not in svg and "quoted" in svg
    chart = token_curves([f"w{number}" for number in range(300)], ((100, 102), (250, 251)))
    assert "tokens 91 to 150 of 300" in chart.to_dict()["description"]
    assert "Shaded" not in token_curves(HOSTILE, None).to_dict()["description"]
    svg = vl_convert.vegalite_to_svg(chart.to_dict())
    assert ">w91<" in svg and ">w150<" not in svg


def test_bins_hold_every_defined_value_once():
    frame = instances()
    frame.loc[:10, tau_name(PAIR)] = np.nan
    frame.loc[11:13, tau_name(PAIR)] = [-1, 1, 0.0]
    chart = charts.histogram_by_class(frame, tau_name(PAIR), CLASSES)
    rows = pd.DataFrame(next(iter(chart.to_dict()["datasets"].values())))
    assert rows["texts"].sum() == len(frame) - 11
    np.testing.assert_allclose(rows.groupby(["encoder", "attention", "class"])["share"].sum(), 1)
    lines = frame.groupby(["encoder", "attention", "prediction"])[tau_name(PAIR)].mean()
    assert sorted(rows["mean"].unique()) == pytest.approx(sorted(lines))
    assert "60 texts · 2 seeds pooled" in chart.to_dict()["description"]


def test_nothing_to_draw_is_one_clear_sentence():
    frame, titles = instances(), ("A title of a chart", "What to see in this chart.")
    no_items = frame.assign(top_attention_paper_delta_js=np.nan)
    undefined = charts.histogram_by_class(frame.assign(jsd_exact=np.nan), "jsd_exact", CLASSES)
    said = {
        "'jsd_exact' is undefined or left out for all 720 rows": undefined,
        "no text has a value of gap": charts.boxes(frame.assign(gap=np.nan), ["gap"], "projection", *titles),
        "nothing of which both are known": charts.plane(over_distance(), {"a": "x", "b": "y"}, *titles),
        "no text has two items or more": charts.jsd_differences(no_items, *titles),
        "no model was trained to attend elsewhere": charts.tradeoff(pd.DataFrame(), *titles),
        "nothing was scored": charts.heat_map(pd.DataFrame(), "condition", "encoder", *titles),
    }
    for reason, sentence in said.items():
        assert sentence.data.startswith("<p>Nothing to draw: ") and sentence.data.endswith(f"{reason}.</p>")
    assert "no attention" in charts.attention_text([], {}).data


def test_jupyterlab_and_the_report_draw_a_chart_and_nbconvert_shows_its_picture(monkeypatch):
    chart = charts.histogram_by_class(instances(), tau_name(PAIR), CLASSES)
    monkeypatch.setenv(STATIC, "no")
    assert set(chart._repr_mimebundle_()) == {charts.MIME, "text/plain"}
    monkeypatch.delenv(STATIC)
    shown = new_output("display_data", chart._repr_mimebundle_())
    html, _ = HTMLExporter().from_notebook_node(new_notebook(cells=[new_code_cell("chart", outputs=[shown])]))
    (picture,) = re.findall(r"src=\"data:image/svg\+xml;base64,([^\"]+)", html)
    assert b"by predicted class" in b64decode(picture)


def test_hostile_tokens_stay_tokens():
    weights = np.linspace(0, 0.2, len(HOSTILE))
    maps = {"<i>original": weights, "adversarial": weights[::-1]}
    html = charts.attention_text(HOSTILE, maps, rationale=((1, 3),), title="<h1>")
    figure = ElementTree.fromstring(html._repr_html_())  # what is not closed or not escaped is an error
    assert {part.tag for part in figure.iter()} == {"figure", "figcaption", "div", "p", "span", "bdi"}
    assert [word.text for word in figure.iter("bdi")] == [visible(token) for token in HOSTILE] * 2
    assert visible("\u202eevil") == "<U+202E>evil" and visible("👩🏽‍🚀") == "👩🏽‍🚀"
    assert not set(html.data) & set("\u202e\u2069\x00")
    assert html.data.count('title="0.2000"') == 2 and html.data.count("rgba(58, 134, 200, 0.750)") == 1
    assert html.data.count("text-decoration:underline") == 4 and "the words that decide the label" in html.data


def test_a_long_text_is_shown_around_its_highest_weight_and_says_so():
    positions, weights = np.arange(20_000), np.full(20_000, 1e-6)
    for place, first in ((5_000, 4_985), (0, 0), (19_999, 19_970)):
        html = charts.attention_text([f"w{i}" for i in range(20_000)], {"own": weights + (positions == place)}, most=30)
        words = [word.text for word in ElementTree.fromstring(html.data).iter("bdi")]
        assert words == [f"w{i}" for i in range(first, first + 30)]
        assert f"tokens {first + 1:,} to {first + 30:,} of 20,000" in html.data


def test_boxes_hold_the_middle_half_and_bins_of_two_differences_every_text_once():
    box = box_of(pd.Series([0, 10, 11, 12, 13, 14, 30.0]))
    assert box == {"lower": 10.5, "median": 12, "upper": 13.5, "least": 10, "most": 14, "n": 7}
    frame = pd.DataFrame({"attention": [0.0, 0.5, 1.0, 1.0], "jsd": [-0.1, 0.21, np.log(2), np.log(2)]})
    binned = in_bins(frame, "HAN-rnn")
    assert binned["texts"].tolist() == [1, 1, 2] and (binned["attention"] < binned["attention_end"]).all()
    assert all((binned["jsd"] >= 0) | (binned["jsd_end"] <= 0)), "what is above 0 and what is below never share a cell"
