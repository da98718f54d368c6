"""measure, correlate, summarise, classification and contrasts against brute force, SciPy and scikit-learn."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn import metrics as judge

from lib import analysis, tables
from lib.analysis import classification, correlate, effects_between, joined, left_out, mean_effect, measure, summarise
from lib.analysis import statistics as ours
from lib.analysis.measuring import batches_of
from lib.analysis.statistics import bootstrap, estimate, interval, t_interval, weighted_mean
from lib.datasets.batches import batches, collate
from lib.importance import gradient, quantity
from lib.quantity import Quantity, bounds_of, declare, tau_name, title_of, unit_of
from tests import small

LENGTHS = (12, 1, 3, 7, 2, 30, 5)
PLACE = {"dataset": "sst", "encoder": "bilstm", "attention": "additive", "projection": "softmax", "variant": "base"}
RUN = SimpleNamespace(**PLACE, layers=1, seed=3)


def two(model, batch, output):
    return {"low": output.attention.amin(dim=-1), "word_ids": batch.tokens}


def short_only(model, batch, output):
    return {"sum": batch.tokens.sum(dim=1), "weights": output.attention}


declare("tau", "tau-b")


def measured(size=3, **options):
    few = Quantity("few", short_only, {"sum": "1", "weights": "fraction"}, max_tokens=5)
    quantities = [analysis.attention_weights, analysis.max_attention, Quantity("two", two, "1"), few]
    return measure(small.model(**options), batches(small.split(LENGTHS), size), quantities, RUN)


def table(n=400, seeds=(0, 1, 2), encoder="bilstm", shift=0.0, seed=0) -> pd.DataFrame:
    """Instances with a tau-like column whose mean, texts' sd and seeds' sd are known."""
    random = np.random.default_rng(seed)
    per_text, label = random.normal(0.3 + shift, 0.2, n), random.integers(0, 2, n)
    parts = []
    for s in seeds:
        score = random.normal(0, 1, n).round(1) + label
        part = pd.DataFrame({"instance": range(n), "length": 9, "label": label, "prediction": (score > 0.5) * 1})
        part["probability"], part["left_out"] = 1 / (1 + np.exp(-score)), [()] * n
        part["tau"] = per_text + random.normal(0, 0.05, n)
        parts.append(part.assign(**vars(RUN) | {"seed": s, "encoder": encoder}))
    return pd.concat(parts, ignore_index=True)


def test_every_column_is_what_the_model_says_of_each_text_alone():
    frame, split, model = measured(), small.split(LENGTHS), small.model()
    assert frame["instance"].tolist() == list(range(len(LENGTHS)))
    assert frame["length"].tolist() == list(LENGTHS) and frame["label"].tolist() == split.labels.tolist()
    assert frame[["encoder", "layers", "seed"]].drop_duplicates().values.tolist() == [["bilstm", 1, 3]]
    for position, row in frame.iterrows():
        batch = collate(split, np.array([position]))
        output = model(batch)
        p = torch.sigmoid(output.logits[0, 0]).item()
        assert row["probability"] == pytest.approx(p, abs=1e-12) and row["prediction"] == int(p > 0.5)
        weights = output.attention[0][batch.mask[0]].detach().numpy()
        np.testing.assert_allclose(row["attention_weights"], weights, atol=1e-12)
        assert row["max_attention"] == pytest.approx(weights.max(), abs=1e-12)
        np.testing.assert_array_equal(row["two_word_ids"], batch.tokens[0, 1:-1])
    p = small.model(outputs=3)(collate(split, np.arange(len(LENGTHS)))).logits.softmax(dim=1)
    frame = measured(outputs=3)  # of several classes it is the probability of the predicted one
    np.testing.assert_allclose(frame["probability"], p.amax(dim=1).detach(), atol=1e-12)
    np.testing.assert_array_equal(frame["prediction"], p.argmax(dim=1))


def test_a_bounded_quantity_leaves_long_texts_out_and_says_so():
    frame = measured(size=4)
    long = np.array(LENGTHS) > 5
    np.testing.assert_array_equal(frame["few_sum"].isna(), long)
    assert [value is None for value in frame["few_weights"]] == long.tolist()
    kept = [len(value) for value in frame["few_weights"] if value is not None]
    assert kept == [length for length in LENGTHS if length <= 5]
    assert frame["probability"].notna().all()
    missing = left_out(frame).set_index("quantity")
    assert missing.loc["few_sum"].tolist() == [long.sum(), len(LENGTHS), "longer than 5 tokens"]
    row = summarise(frame, ["few_sum"]).iloc[0]
    assert (row["n"], row["undefined"], row["left_out"]) == (len(LENGTHS) - long.sum(), 0, long.sum())
    none = Quantity("none", short_only, {"a": "1", "b": "1"}, max_tokens=0)  # no text is short enough
    frame = measure(small.model(), batches(small.split(LENGTHS), 3), [none])
    assert frame[["none_a", "none_b"]].isna().all(axis=None) and "none" not in frame


@pytest.mark.parametrize("enabled", [True, False])
def test_the_model_and_the_mode_of_gradients_are_left_as_they_were(enabled):
    model, norms = small.model(), quantity("norms", gradient)
    model.train()
    model.encoder.eval()
    with torch.set_grad_enabled(enabled):
        measure(model, batches(small.split(LENGTHS), 3), [norms])
        with pytest.raises(ZeroDivisionError):
            measure(model, batches(small.split(LENGTHS), 3), small.quantities(fails=lambda *given: 1 / 0))
        assert torch.is_grad_enabled() is enabled and model.training and not model.encoder.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_batches_change_nothing_and_get_smaller_with_the_number_of_classes():
    pd.testing.assert_frame_equal(measured(size=1), measured(size=100), atol=1e-12)
    sizes = []
    for number in (2, 32, 300, 10**6):
        corpus = SimpleNamespace(classes=range(number))
        batches_of(SimpleNamespace(corpus=corpus, batches=lambda split, size: sizes.append(size)))
    assert sizes == [512, 512, 55, 1]


def test_a_wrong_quantity_and_a_diverged_model_are_clear_errors():
    model, given = small.model(), [*batches(small.split(LENGTHS), 3)]
    for error, message, *quantities in (
        (ValueError, "attention_weights", Quantity("attention", two, "1")),
        (ValueError, "called 'max_attention'", analysis.max_attention, analysis.max_attention),
        (ValueError, "allowed here", Quantity("hidden", lambda model, batch, output: output.hidden, "1")),
        (KeyError, "the part 'word_ids' of the quantity 'some'", Quantity("some", two, {"low": "fraction"})),
    ):
        with pytest.raises(error, match=message):
            measure(model, given, quantities)
    torch.nn.init.constant_(model.decoder.bias, torch.nan)
    with pytest.raises(ValueError, match=r"not finite for 3 of 3 texts .* instance 1"):
        measure(model, given, [])


def test_taus_are_scipys_and_undefined_ones_are_counted():
    random = np.random.default_rng(0)
    lengths = [1, 2, 5, 40, 5, 17, 3]
    frame = table(len(lengths), seeds=(0,))
    frame["attention_weights"] = [random.random(n) for n in lengths]
    frame["gradient_times_input"] = [random.integers(0, 4, n).astype(float) for n in lengths]
    frame.at[2, "gradient_times_input"] = np.ones(5)
    frame.at[6, "gradient_times_input"] = None
    frame.at[6, "left_out"] = (("gradient_times_input", "longer than 2 tokens"),)
    done = correlate(frame, [("attention", "gradient_times_input")])
    name = "kendall_tau_attention_vs_gradient_times_input"
    for _, row in done.iloc[1:6].iterrows():
        expected = stats.kendalltau(row["attention_weights"], row["gradient_times_input"])
        np.testing.assert_allclose([row[name], row[f"{name}_p"]], expected, atol=1e-9)
    assert done[name].isna().tolist() == [True, False, True, False, False, False, True]
    row = summarise(done, [name]).iloc[0]
    assert (row["n"], row["undefined"], row["left_out"], row["unit"]) == (4, 2, 1, "tau-b")
    assert row["value"] == pytest.approx(done[name].mean())
    too_long = [[of, 1, 7, "longer than 2 tokens"] for of in ("gradient_times_input", name)]
    assert left_out(done).values.tolist() == [*too_long, [name, 2, 7, "undefined"]]
    one_class = done.assign(prediction=0)  # table 2 has the mean and sd of its texts, and the share that is significant
    shown = tables.taus(one_class, {"tau": name}, ("bad", "good")).data
    cells = (f"{done[name].mean():.2f}\u00a0±\u00a0{done[name].std():.2f}", f"{done[f'{name}_significant'].mean():.3f}")
    assert all(f">{cell.replace('-', '−')}<" in shown for cell in cells) and ">bad<" in shown and ">good<" not in shown
    with pytest.raises(ValueError, match="2 tokens, the other 4"):
        correlate(frame[1:2].assign(a=[np.ones(2)], b=[np.ones(4)]), [("a", "b")])


def test_summarise_is_the_closed_form_for_a_mean():
    frame = table()
    row = summarise(frame, ["tau"]).iloc[0]
    averaged = frame.groupby("instance")["tau"].mean()
    assert row["value"] == pytest.approx(averaged.mean(), abs=1e-12)
    half = 1.96 * averaged.std() / np.sqrt(len(averaged))
    assert (row["high_texts"] - row["low_texts"]) / 2 == pytest.approx(half, rel=0.06)
    scipys = stats.bootstrap((averaged,), np.mean, n_resamples=4000, method="percentile", rng=1).confidence_interval
    np.testing.assert_allclose([row["low_texts"], row["high_texts"]], scipys, atol=0.1 * half)
    by_seed = frame.groupby("seed")["tau"]
    assert row["sd_seeds"] == pytest.approx(by_seed.mean().std())
    t = stats.t.interval(0.95, 2, by_seed.mean().mean(), stats.sem(by_seed.mean()))
    assert (row["high"] - row["low"]) / 2 == pytest.approx(np.hypot(half, (t[1] - t[0]) / 2), rel=0.06)
    assert (row["n"], row["seeds"], row["undefined"]) == (400, 3, 0)


def test_an_undefined_value_is_counted_and_never_averaged_in():
    frame = table(50)
    frame.loc[(frame["instance"] == 7) | ((frame["instance"] == 9) & (frame["seed"] == 1)), "tau"] = np.nan
    row = summarise(frame, ["tau"]).iloc[0]
    assert (row["n"], row["undefined"]) == (49, 4)
    assert row["value"] == pytest.approx(frame.groupby("seed")["tau"].mean().mean())
    one = summarise(frame[frame["seed"].eq(2)], ["tau"]).iloc[0]
    assert np.isnan(one["sd_seeds"]) and one["seeds"] == 1
    with pytest.raises(ValueError, match="duplicate"):
        summarise(pd.concat([frame, frame]), ["tau"])
    frame["tau"] = np.nan
    row, none = summarise(frame, ["tau"]).iloc[0], mean_effect(frame, "tau")
    assert np.isnan([row["value"], row["low"], row["high"]]).all() and (row["n"], row["undefined"]) == (0, 150)
    assert none.n == 0 and np.isnan([none.value, none.se, *none.by_run.values()]).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_the_bootstraps_weights_are_counts_and_weighted_scores_scikit_learns(classes):
    label, prediction = np.random.default_rng(0).integers(0, classes, (2, 300))
    weights = bootstrap(lambda weights: weights, 300, 20)
    average = "binary" if classes == 2 else "macro"
    f1 = [judge.f1_score(label, prediction, average=average, sample_weight=row) for row in weights]
    np.testing.assert_allclose(ours.weighted_f1(weights, label, prediction, classes), f1)
    np.testing.assert_array_equal(bootstrap(lambda weights: weights, 300, 20), weights)
    many = bootstrap(lambda weights: weights, 40_000, 120)  # in several chunks
    assert many.shape == (120, 40_000) and (many.sum(axis=1) == 40_000).all()
    assert many.var() == pytest.approx(1, abs=0.01)


def test_classification_is_scikit_learns_over_the_seeds():
    frame = table()
    rows = classification(frame).set_index("quantity")
    runs = [run for _, run in frame.groupby("seed")]
    for name, score in {"accuracy": judge.accuracy_score, "f1": judge.f1_score}.items():
        ours, row = [score(run["label"], run["prediction"]) for run in runs], rows.loc[name]
        assert row["value"] == pytest.approx(np.mean(ours)) and row["sd_seeds"] == pytest.approx(np.std(ours, ddof=1))
        assert row["low"] < row["value"] < row["high"] and row["unit"] == "fraction"
    correct = (frame["label"] == frame["prediction"]).groupby(frame["instance"]).mean()
    half = 1.96 * correct.std() / np.sqrt(len(correct))
    assert (rows.loc["accuracy", "high_texts"] - rows.loc["accuracy", "low_texts"]) / 2 == pytest.approx(half, rel=0.1)
    rows = classification(table(20).assign(label=0, prediction=0)).set_index("quantity")
    assert rows.loc["accuracy", "value"] == 1 and np.isnan(rows.loc["f1", "value"]), "without a positive text"
    with pytest.raises(ValueError, match="different instances"):
        classification(frame.iloc[1:])


AVERAGE_LESS_BILSTM = {"encoder": "average"}, {"encoder": "bilstm"}


def test_a_difference_is_paired_by_text_and_seed():
    both = pd.concat([table(), table(encoder="average", shift=0.02)])
    row = effects_between(both, ["tau"], AVERAGE_LESS_BILSTM)[0]
    paired = both.pivot(index=["instance", "seed"], columns="encoder", values="tau")
    deltas = paired["average"] - paired["bilstm"]
    assert row.value == pytest.approx(deltas.mean()) and row.n == 400
    assert row.by_run == pytest.approx(deltas.groupby("seed").mean().to_dict())
    assert np.ptp(row.interval()) < 0.03  # unpaired it would be .056: the texts' own sd of .2 cancels
    assert effects_between(both, ["tau"], AVERAGE_LESS_BILSTM[::-1])[0].value == pytest.approx(-row.value)
    apart = both[both["encoder"].eq("average") == (both["instance"] > 5)]
    assert np.isnan(effects_between(apart, ["tau"], AVERAGE_LESS_BILSTM)[0].value), "no text is in both"
    for where, number in (({"attention": "additive"}, 2), ({"encoder": "conv"}, 0)):
        with pytest.raises(ValueError, match=f"selects {number} configurations"):
            effects_between(both, ["tau"], (where, {"encoder": "bilstm"}))
    with pytest.raises(ValueError, match="on other texts"):
        effects_between(both[both["encoder"].eq("average") | (both["instance"] > 5)], ["f1"], AVERAGE_LESS_BILSTM)
    with pytest.raises(KeyError, match="recall"):
        effects_between(both, ["recall"], AVERAGE_LESS_BILSTM)


def test_intervals_cover_what_other_texts_and_seeds_would_give():
    random, seeds, covered, of_texts, paired = np.random.default_rng(3), 3, 0, 0, 0
    for _ in range(200):
        values = 0.4 + random.normal(0, 0.15, (100, 1, 1)) + random.normal(0, 0.05, (1, 1, seeds))
        others = values + 0.1 + random.normal(0, 0.05, (1, 1, seeds))
        (effect,) = estimate(["tau"], weighted_mean, [values], range(seeds), 200)
        covered += effect.interval()[0] <= 0.4 <= effect.interval()[1]
        of_texts += abs(effect.value - 0.4) <= 1.96 * effect.se
        low, high = estimate(["tau"], weighted_mean, [others, values], range(seeds), 200)[0].interval()
        paired += low <= 0.1 <= high
    assert covered >= 184 and paired >= 184, "at least 92 of 100"
    assert of_texts < 150, "an interval over texts alone knows nothing of other seeds"


def test_a_name_is_declared_once_with_one_unit():
    name = tau_name(("a", "b"))
    assert [unit_of(one) for one in (name, f"{name}_significant", f"{name}_p")] == ["tau-b", "fraction", "p-value"]
    assert title_of(f"{name}_significant") == "a / b, share with p ≤ .05" and bounds_of("length") == (0, np.inf)
    parts = Quantity("parts", two, {"low": "fraction", "word_ids": "1"}, {"low": (0.0, 0.5)})
    assert (unit_of("parts_low"), bounds_of("parts_low")) == ("fraction", (0, 0.5))
    assert declare("parts_low", "fraction", title="low part") == "parts_low"
    assert (title_of("parts_low"), bounds_of("parts_low")) == ("low part", (0, 0.5))
    with pytest.raises(ValueError, match="'parts_low' is declared in fraction, not nats"):
        declare("parts_low", "nats")
    with pytest.raises(KeyError, match=r"the quantity 'parts_high' is not declared"):
        unit_of("parts_high")
    assert parts.columns == ["parts_low", "parts_word_ids"]


def test_a_weighted_median_is_that_of_repeated_texts():
    random = np.random.default_rng(0)
    values, weights = random.normal(size=(31, 3)), random.integers(0, 4, (40, 31)).astype(float)
    values[5, 0], values[3, 1], values[:, 2] = values[6, 0], np.nan, np.nan
    found = ours.weighted_median(weights, values)
    for row, column in product(range(40), range(2)):
        repeated = np.repeat(values[:, column], weights[row].astype(int))
        assert found[row, column] == pytest.approx(np.nanmedian(repeated))
    assert np.isnan(found[:, 2]).all() and np.isnan(ours.weighted_median(np.ones((1, 0)), np.empty((0, 2)))).all()
    frame = table(40)
    median = mean_effect(frame, "tau", middle=ours.weighted_median)
    assert median.by_run == pytest.approx(frame.groupby("seed")["tau"].median().to_dict())


def test_an_interval_adds_the_squares_of_what_texts_and_seeds_vary():
    values, se, texts = np.array([0.10, 0.14, 0.18, np.nan]), 0.02, 400
    half = np.hypot(stats.t.ppf(0.975, 2) * 0.04 / np.sqrt(3), stats.t.ppf(0.975, texts - 1) * se)
    assert interval(0.14, se, values, texts) == pytest.approx((0.14 - half, 0.14 + half))
    assert interval(0.14, np.nan, values) == pytest.approx(t_interval(values)), "with seeds alone it is Student's"
    assert interval(0.12, se, values[:2]) == pytest.approx((0.12 - 1.959964 * se, 0.12 + 1.959964 * se))
    assert np.isnan([*interval(0.12, np.nan, values[:2]), *interval(np.nan, se, values)]).all()


def test_examples_follow_their_rule():
    frame = table(60, range(4))
    frame["label"] = frame["instance"] % 2
    frame["probability"] = np.random.default_rng(0).uniform(0, 0.4, len(frame)) + 0.6 * frame["label"]
    frame["prediction"] = frame["label"].mask((frame["probability"] - 0.5).abs() > 0.45, 1 - frame["label"])
    chosen = analysis.examples(frame, ("bad", "good"), far="tau")
    first = frame[frame["seed"] == 0]
    right = first[first["label"] == first["prediction"]]
    assert chosen["seed"].eq(0).all()
    assert chosen.iloc[0]["probability"] == right.loc[right["label"] == 0, "probability"].min()
    assert chosen.iloc[1]["probability"] == right.loc[right["label"] == 1, "probability"].max()
    assert chosen.iloc[2]["instance"] == first.loc[(first["probability"] - 0.5).abs().idxmin(), "instance"]
    assert chosen.iloc[3]["instance"] == first.loc[first["tau"].idxmax(), "instance"]
    assert "good" in chosen.iloc[1]["why"]


def test_joined_adds_columns_and_refuses_what_does_not_fit():
    frame = table(60)
    run = [*vars(RUN), "instance", "left_out"]
    more = frame[run].assign(extra=1.5, left_out=[(("extra", "why"),)] * len(frame))
    both = joined(frame, more)
    assert both["extra"].eq(1.5).all() and both["left_out"].iloc[0] == (("extra", "why"),)
    arrays = frame[run].assign(weights=[np.array([0.5, np.nan])] * len(frame), left_out=more["left_out"])
    weighed = joined(both, arrays)
    pd.testing.assert_frame_equal(joined(weighed, arrays.copy(deep=True)), weighed)  # a cell run again
    assert joined(weighed, more.assign(extra=1.6))["extra"].eq(1.6).all(), "what is measured anew takes its place"
    with pytest.raises(ValueError, match="not of the same runs"):
        joined(frame, more.iloc[::-1])
