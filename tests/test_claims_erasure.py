"""The claims of Serrano & Smith on made-up measurements whose truth is known, and what makes each of them fail."""

from functools import cache

import numpy as np
import pandas as pd
import planned
import pytest
from scipy.stats import binomtest

import papers
from lib.analysis import flips_sooner, witnesses
from lib.importance.rankings import RANKINGS
from lib.interventions import single_erasure, until_flip
from papers.erasure_claims import CLAIMS
from papers.erasure_evidence import BEYOND, FEWEST_TEXTS

MEASURED = single_erasure(RANKINGS), until_flip(RANKINGS)  # whose columns the tables here have
PAPER = papers.PAPERS["erasure"]
RUN = {"dataset": "d", "attention": "additive", "projection": "softmax", "variant": "base", "layers": 1}
REACH = {"flan-rnn": 3, "flan-conv": 2, "flan-noenc": 1, "han-rnn": 3}
TEXTS = 200


@cache
def story(encoder: str, seed: int) -> pd.DataFrame:
    """The texts of one model, of ten items each, as the paper reports them."""
    random = np.random.default_rng(seed)
    noise, even, fifth = random.normal(0, 0.01, TEXTS), np.arange(TEXTS) % 2 == 0, np.arange(TEXTS) % 5 == 0
    context = encoder != "flan-noenc"
    share = 0.2 * REACH[encoder] + noise

    def flips(of_hundred: int) -> np.ndarray:
        return (random.permutation(TEXTS) % 100 < of_hundred).astype(float)

    columns = {
        "label": np.arange(TEXTS) % 5,
        "prediction": np.where(random.random(TEXTS) < 0.8, np.arange(TEXTS) % 5, 0),
        **{f"top_{of}_js": 0.3 + noise for of in ("attention", "gradient", "product")},
        "top_attention_others_js": 0.1 + noise / 2,
        "top_attention_paper_delta_alpha": np.where(fifth, 0.05, 0.4) + noise,
        "top_attention_paper_delta_js": np.where(fifth, -0.01, np.where(even, 0.02, 0.2)),
        "top_attention_flip": flips(10),
        "top_attention_others_flip": flips(2),
        "top_gradient_flip": flips(5),
        "top_product_flip": flips(20),
        "removed_items": 10,
        "removed_attention_count": 6 if context else 4,
        "removed_gradient_count": 4 if context else 5,
        "removed_product_count": np.where(even, 1, 3),
        "removed_fewest_count": np.where(even, 1, 3),
        "removed_random_1_count": 8,
        "removed_attention_fraction": share + 0.2,
        "removed_product_fraction": share,
        "removed_fewest_fraction": share,
        "removed_attention_mass": 0.8 + noise,
        **{f"removed_{of}_mass": 0.4 + noise for of in ("gradient", "product")},
    }
    whole = pd.DataFrame(columns).astype(float).assign(instance=range(TEXTS), encoder=encoder, seed=seed, **RUN)
    return whole.assign(attention_weights=[np.array([0.5, *[0.5 / 9] * 9])] * TEXTS, left_out=[()] * TEXTS)


def measured(*encoders: str, seeds: int = 5, **changed) -> pd.DataFrame:
    """Several models by their stories, with some columns set to other values."""
    rows = [story(encoder, seed) for encoder in encoders or REACH for seed in range(seeds)]
    whole = pd.concat(rows, ignore_index=True)
    return whole.assign(**{name: value(whole) if callable(value) else value for name, value in changed.items()})


def without_skill(frame: pd.DataFrame) -> pd.DataFrame:
    """The same models, whose top item is one like another, and along whose attention items go as at random."""
    tops = {f"top_attention_{part}": frame[f"top_attention_others_{part}"] for part in ("js", "flip")}
    return frame.assign(**tops, removed_attention_count=frame["removed_random_1_count"])


def judged(
    frame: pd.DataFrame, these_models: bool = False, short: str = "", shuffled: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The verdicts, on all claims or on one; the baseline answers 60% of the texts.

    Args:
        shuffled: what is measured under shuffled weights; None: `without_skill`.
    """
    shuffled = without_skill(frame) if shuffled is None else shuffled
    answers = frame[(frame["encoder"] == frame["encoder"].iloc[0]) & (frame["seed"] == 0)][["instance", "label"]]
    answers = answers.assign(prediction=np.where(answers["instance"] % 10 < 6, answers["label"], 9))
    evidence = PAPER.evidence(frame, shuffled, witnesses(frame, answers, these_models))
    return papers.verdicts(evidence[evidence["short"].eq(short) | (not short)], PAPER.claims, these_models)


def words(found: pd.DataFrame, short: str) -> set[str]:
    return set(found.loc[(found["short"] == short) & (found["verdict"] != "contrast"), "verdict"])


def test_the_papers_story_supports_every_claim_where_it_is_made():
    found = judged(measured())
    assert list(dict.fromkeys(found["short"])) == list(CLAIMS)
    for short in CLAIMS:
        assert words(found, short) == {"supported"}, short
    outside = found[found["verdict"] == "contrast"].groupby("short")["model"].apply(set)
    assert outside["gradients flip sooner"] == {"FLAN-noenc"}
    assert outside["erasing it flips few decisions"] == {"FLAN-rnn", "FLAN-conv", "FLAN-noenc"}


def as_often(frame: pd.DataFrame) -> pd.Series:
    """The gradient is sooner in 11 of 20 texts, and later in the others."""
    return frame["removed_attention_count"] + np.where(frame["instance"] % 20 < 11, -1, 1)


ORDERS = ("gradient", "product")
REFUTING = [  # a claim, what refutes it, the verdict then
    ("the top item matters most", {"top_attention_js": 0.1, "top_attention_others_js": 0.3}, "contradicted"),
    ("the top item matters most", {"top_attention_js": 0.1, "top_attention_others_js": 0.1}, "negligible"),
    (
        "where another item matters more, their weights are closer",
        {"top_attention_paper_delta_alpha": lambda frame: 0.4 + frame["top_attention_js"] / 100},
        "negligible",
    ),
    *((short, {}, "negligible") for short in BEYOND),  # with what shuffled weights give as well
    ("a far larger weight often matters little more", {"top_attention_paper_delta_js": 0.2}, "contradicted"),
    (
        "a far larger weight often matters little more",  # as little as any item does
        {f"top_{of}_js": 0.01 for of in ("attention", *ORDERS)},
        "no verdict",
    ),
    (
        "the top item decides more often",
        {"top_attention_others_flip": lambda frame: frame["top_attention_flip"]},
        "negligible",
    ),
    (
        "erasing it flips few decisions",
        {"top_attention_flip": lambda frame: frame["instance"] % 2 * 1.0},
        "contradicted",
    ),
    ("erasing it flips few decisions", {"removed_fewest_count": 3}, "no verdict"),  # as few as any item does
    (
        "attention flips sooner than a random order",
        {"removed_random_1_count": lambda frame: frame["removed_attention_count"]},
        "negligible",
    ),
    ("gradients flip sooner", {"removed_gradient_count": 9}, "contradicted"),
    ("gradients flip sooner 1.6 times as often", {"removed_gradient_count": as_often}, "contradicted"),
    (
        "gradients flip most texts sooner",
        {"removed_gradient_count": lambda frame: np.where(frame["instance"] % 10 < 4, 4, 6)},
        "contradicted",
    ),
    (
        "products flip sooner",
        {"removed_product_count": lambda frame: frame["removed_attention_count"]},
        "negligible",
    ),
    (
        "attention does not find the fewest",
        {"removed_attention_count": lambda frame: frame["removed_fewest_count"]},
        "contradicted",
    ),
    (
        "attention does not find the fewest",  # too hard for every order
        {"removed_fewest_count": 1, "removed_product_count": 2, "removed_gradient_count": 2},
        "contradicted",
    ),
    ("decisions flip late", {"removed_product_fraction": 0.05}, "contradicted"),
    ("context delays flips (along attention)", {"removed_attention_fraction": 0.5}, "negligible"),
    ("context delays flips (with the fewest items possible)", {"removed_fewest_fraction": 0.5}, "negligible"),
    ("without an encoder attention is on par", {"removed_attention_count": 6}, "contradicted"),
    (
        "the product's top item decides more often",
        {"top_product_flip": lambda frame: frame["top_attention_flip"]},
        "negligible",
    ),
    ("the gradient's top item decides less often", {"top_gradient_flip": 1.0}, "contradicted"),
    ("other orders erase a quarter less attention", {f"removed_{of}_mass": 0.7 for of in ORDERS}, "contradicted"),
]


def test_every_claim_can_fail():
    assert {short for short, *_ in REFUTING} == set(CLAIMS)


@pytest.mark.parametrize(("short", "changed", "word"), REFUTING, ids=[f"{one[0]}: {one[2]}" for one in REFUTING])
def test_what_refutes_a_claim(short, changed, word):
    frame = measured("flan-rnn", "flan-noenc", "han-rnn", **changed)
    shuffled = frame if short in BEYOND else None
    assert words(judged(frame, short=short, shuffled=shuffled), short) == {word}


def test_rankings_without_skill_support_nothing_about_their_order():
    random = np.random.default_rng(3)
    names = [f"removed_{of}_count" for of in ("attention", "random_1", *ORDERS)]
    names += [f"top_{of}_flip" for of in ("attention", *ORDERS)]
    drawn = {name: lambda frame: random.integers(0, 2, len(frame)).astype(float) + 4 for name in names[:4]}
    drawn |= {name: lambda frame: random.integers(0, 2, len(frame)).astype(float) for name in names[4:]}
    drawn["top_attention_others_flip"] = 0.5
    found = judged(frame := measured(seeds=3, **drawn), shuffled=frame)
    about_order = [short for short in CLAIMS if "sooner" in short or "decides" in short]
    assert len(about_order) == 10
    for short in about_order:
        assert "supported" not in words(found, short), short
    found = judged(
        frame := measured(**drawn), shuffled=frame
    )  # five seeds, with which the claims on most runs can be decided
    of_order = found[found["short"].isin(about_order) & ~found["verdict"].isin(["contrast", "no verdict"])]
    assert len(of_order) > 25 and of_order["verdict"].eq("supported").sum() <= 0.05 * len(of_order), (
        "as often as chance has it"
    )


def test_models_that_learned_nothing_give_no_verdict():
    random = np.random.default_rng(0)
    found = judged(measured(label=lambda frame: random.permuted(frame["label"])[frame["instance"]].astype(float)))
    assert set(found["verdict"]) == {"no verdict", "contrast"}
    one = found[found["short"] == "the top item matters most"].iloc[0]
    assert "is not above the largest class" in one["reason"] and one["effect"] == pytest.approx(0.2, abs=0.01)


def test_models_over_sentences_are_judged_by_long_texts_alone():
    found = judged(measured("han-rnn", removed_items=2))
    assert set(found["verdict"]) == {"no verdict", "contrast"}
    assert f"0 texts of at least 4 sentences; {FEWEST_TEXTS} are needed" in found["reason"].iloc[0]
    some = measured("han-rnn", removed_items=lambda frame: np.where(frame["instance"] < 60, 4, 3))
    some.loc[some["instance"] >= 60, "top_attention_js"] = 0.0  # would refute the first claim
    one = judged(some).iloc[0]
    assert (one["verdict"], one["n"]) == ("supported", 60)
    assert "supported" in words(judged(measured("flan-rnn", removed_items=2)), "the top item matters most")


def test_uniform_attention_decides_nothing_and_one_run_nothing_about_training():
    frame = measured("flan-rnn", seeds=2)
    frame["attention_weights"] = [np.full(10, 0.1)] * len(frame)
    assert set(judged(frame)["verdict"]) == {"no verdict", "contrast"}
    once, of_it = (judged(measured("flan-rnn", seeds=1), these_models=alone) for alone in (False, True))
    assert set(once["verdict"]) <= {"open", "contrast"} and "supported" in set(of_it["verdict"])


def test_with_two_classes_the_product_cannot_lose_and_is_a_contrast():
    found = judged(measured(label=lambda frame: frame["instance"] % 2, prediction=lambda frame: frame["instance"] % 2))
    for short in ("products flip sooner", "the product's top item decides more often"):
        assert words(found, short) == set(), short


def test_a_count_of_zero_has_an_exact_interval():
    gradient = {"removed_gradient_count": lambda frame: np.where(frame["instance"] < 6, 4.0, 6.0)}
    frame = measured("flan-rnn", **gradient)
    row = flips_sooner(frame, "gradient", "attention").iloc[0]
    assert (row["first_texts"], row["second_texts"], row["high"]) == (6, 0, np.inf)
    low = binomtest(6, 6).proportion_ci().low
    assert row["low"] == pytest.approx(low / (1 - low))
    short = "gradients flip sooner 1.6 times as often"
    one = judged(frame).set_index("short").loc[short]
    assert one["verdict"] == "open" and "6 : 0 texts" in one["evidence"]
    many = measured("flan-rnn", removed_gradient_count=lambda frame: np.where(frame["instance"] < 60, 4.0, 6.0))
    assert words(judged(many), short) == {"supported"}
    none = measured("flan-rnn", removed_gradient_count=6.0)
    assert words(judged(none), short) == {"no verdict"}


def test_a_read_out_that_is_not_affine_leaves_the_fewest_unknown():
    found = judged(measured("flan-rnn", removed_fewest_count=np.nan, removed_fewest_fraction=np.nan))
    one = found.set_index("short").loc["attention does not find the fewest"]
    assert one["verdict"] == "no verdict" and "not affine" in one["reason"]


def test_the_notebook_takes_a_projection_for_every_model():
    runs = planned.runs("erasure", "planted-documents", projection="sparsemax", device="cpu")
    assert len({run.encoder for run in runs}) == 6 and {run.projection for run in runs} == {"sparsemax"}
