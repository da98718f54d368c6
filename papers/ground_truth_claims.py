"""What is claimed where the reason is known, and the evidence on it."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from lib.analysis import mean_effect, witness_of
from lib.analysis.ground_truth import DETECTORS
from lib.analysis.summarising import configurations
from lib.analysis.token_values import with_entropies
from lib.quantity import declare, title_of
from papers.claims import EVIDENCE, Claim, uniform_attention

KEY = "ours2026"
TRIVIAL = next(test for test in DETECTORS if test.startswith("trivial"))
OF_STATES = ("attention_weights", "attention_times_norm", "attention_times_contribution", "leave_one_out_of_hidden")
NAMES = "a model that learned nothing is no witness; random tokens name the reason alike often on both sides"


claim = partial(Claim, KEY)  # ours, on a paper's explanation or test
CLAIMS = {
    one.short: one
    for one in (
        claim(
            "attention names the reason",
            "The most attended word is part of the reason more often than gradient × input's top word",
            "ours, for Jain & Wallace",
            "direction",
            0.05,
            "of the texts",
            scope="good witnesses on texts with a known reason that they answer right; not adversaries, which are to "
            "attend elsewhere",
            control=f"{NAMES}; no verdict where attention is nearly uniform",
            refuted="a gradient that names the reason as often or more",
            sides=("attention", "gradient × input"),
        ),
        claim(
            "attention names the shortcut",
            "The most attended word is part of the shortcut more often than gradient × input's top word",
            "ours, for Bastings et al.",
            "direction",
            0.05,
            "of the texts",
            scope="models that follow the shortcut, on copies of test texts with it",
            control=NAMES,
            refuted="a gradient that names the shortcut as often or more",
            sides=("attention", "gradient × input"),
        ),
        claim(
            "redundancy hides the reason",
            "The more words say the same, the less leave-one-out finds them",
            "ours",
            "trend",
            0.0,
            "beyond chance",
            scope="leave-one-out; other explanations beside it",
            control="average precision as a share of the way from chance to 1, so that more words are not found more "
            "easily; a random order has 0 everywhere",
            refuted="leave-one-out that finds the words of redundant reasons as well",
        ),
        claim(
            "what cannot be used gets no credit",
            "The top word of an explanation is one that a blinded model can use",
            "ours",
            "little",
            0.05,
            "of the texts",
            scope="explanations of words; states carry words to their neighbours, and are shown beside",
            control="a random order names a word outside of the reason as often as there are such words",
            refuted="a top word outside of the reason in more texts",
        ),
        claim(
            "the test finds liars",
            "The papers' tests suspect models that hide their reasons more than honest ones",
            "ours, for the five papers",
            "at least",
            0.8,
            "AUROC",
            scope="liars that classify as well and use the reason as much; the direction of each test is its paper's",
            control="a test that says nothing has .5",
            refuted="an AUROC below the bound",
        ),
        claim(
            "the test finds more than the entropy does",
            "The test tells liars from honest models better than the attention's entropy does",
            "ours, for the five papers",
            "direction",
            0.05,
            "AUROC",
            scope="as above",
            control="the entropy needs no experiment",
            refuted="an entropy that tells them apart as well",
            sides=("test", "entropy"),
        ),
    )
}


def evidence(
    reasons: pd.DataFrame,
    copies: pd.DataFrame,
    turned: pd.DataFrame,
    framed: pd.DataFrame,
    suspicion: pd.DataFrame,
    known: pd.DataFrame,
    explanations: list[str],
) -> pd.DataFrame:
    """What each claim is judged by: rows of EVIDENCE; of a part that was not measured, none.

    Args:
        reasons, copies, turned, framed: of `lib.analysis.ground_truth.explained`: the models, those with shortcuts,
            along the dials , and blinded.
        suspicion: of `suspicions`, of the models that count. known: of `witnesses`.
        explanations: their columns.
    """
    rows = [
        *naming("attention names the reason", reasons, known),
        *naming("attention names the shortcut", copies, known),
    ]
    rows += [*along_cues(turned, explanations), *outside(framed, explanations), *areas(suspicion)]
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=EVIDENCE)


def naming(short: str, instances: pd.DataFrame, known: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """How much more often attention names the reason than the gradient does, of each model."""
    if instances.empty:
        return
    sides = [f"reason_top_{name}" for name in ("attention_weights", "gradient_times_input")]
    name = declare("reason_top_gap", "fraction", "attention names it more often than the gradient", (-1, 1))
    for key, group in configurations(instances.assign(**{name: instances[sides[0]] - instances[sides[1]]})):
        first, second = (group.groupby("seed")[side].mean().to_dict() for side in sides)
        row = mean_effect(group, name).to_dict() | {"first": first, "second": second}
        entropies = with_entropies(group, ["attention"])
        about = witness_of(known, group, reasons=[uniform_attention(entropies)])
        about["within"] = key["variant"] != "adversary"
        parts = [key[part] for part in ("encoder", "attention", "projection", "variant")]
        parts.append(key["dataset"].partition("shortcut=")[2])
        model = " + ".join(title_of(part) for part in parts if part not in ("", "softmax", "base"))
        yield CLAIMS[short].compared(model, row, **about)


def along_cues(turned: pd.DataFrame, explanations: list[str]) -> Iterator[pd.DataFrame]:
    """How much less each explanation finds of the reason as more words say the same."""
    cues = turned["dataset"].str.extract(r"cues=(\d)", expand=False).dropna() if len(turned) else ()
    for name in explanations if len(cues) else ():
        means = turned.loc[cues.index].groupby(["seed", cues.astype(float)])[f"beyond_chance_{name}"].mean()
        within = name == "leave_one_out_of_input"
        yield CLAIMS["redundancy hides the reason"].evidence(title_of(name), -means, within=within, n=len(cues))


def outside(framed: pd.DataFrame, explanations: list[str]) -> Iterator[pd.DataFrame]:
    """How often the top word of each explanation is outside of what a blinded model can use."""
    for name in (one for one in explanations if one != "integrated_gradients_unknown") if len(framed) else ():
        column = declare(f"outside_{name}", "fraction", f"{title_of(name)}, top word outside")
        for key, group in configurations(framed.assign(**{column: 1 - framed[f"reason_top_{name}"]})):
            row = mean_effect(group, column)
            yield CLAIMS["what cannot be used gets no credit"].compared(
                f"{title_of(key['encoder'])}: {title_of(name)}", row, within=name not in OF_STATES
            )


def areas(suspicion: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Each test's AUROC, and what it has beyond the entropy's, with DeLong's standard error (1988).

    By pairs of a liar and an honest model: the mean over the pairs is the AUROC, their spread its error.
    """
    kinds = suspicion.index.get_level_values("variant") if len(suspicion) else ()
    pairs = min((kinds == "liar").sum(), (kinds == "base").sum()) if len(suspicion) else 0
    if pairs < 2:
        return
    found = {}
    for test in suspicion:
        liars, honest = (suspicion.loc[kinds == kind, test].dropna().to_numpy()[:pairs] for kind in ("liar", "base"))
        if min(len(liars), len(honest)) == pairs:
            above = (liars[:, None] > honest) + 0.5 * (liars[:, None] == honest)
            found[test] = above.mean(axis=1) + above.mean(axis=0) - above.mean()
    note = f"{pairs} liars and as many honest models"
    for test, values in found.items():
        yield CLAIMS["the test finds liars"].evidence(test, **over_pairs(values), note=note, within=test != TRIVIAL)
    for test in (one for one in found if one != TRIVIAL):
        first, second = (float(np.mean(found[one])) for one in (test, TRIVIAL))
        more = {"first": first, "second": second, "note": note}
        gain = over_pairs(found[test] - found[TRIVIAL])
        yield CLAIMS["the test finds more than the entropy does"].evidence(test, **gain, **more)


def over_pairs(values: np.ndarray) -> dict:
    """The mean over pairs of models as evidence of one study: its error is between the pairs, not between its seeds.

    It is at least that of one pair, as in `lib.analysis.ground_truth.auroc`.
    """
    error = max(values.std(ddof=1) / np.sqrt(len(values)), 1 / len(values))
    return {"of_seeds": dict.fromkeys(range(len(values)), float(values.mean())), "se": float(error), "n": len(values)}
