"""The evidence on what Tutek & Snajder (2020) claim: an effect for each claim, model and seed, and what excludes it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import hypot

import numpy as np
import pandas as pd

from lib.analysis import difference, fragility_by_length, fragility_difference, score_difference, witness_of
from lib.analysis.correlation import kendall
from lib.analysis.summarising import rows_where
from lib.analysis.word_states import NAME, SAMPLES, information_difference
from lib.quantity import declare, title_of
from papers import published
from papers.claims import EVIDENCE, UNIFORM
from papers.published import printed_effect
from papers.regularization_claims import ATTENDS, CLAIMS, KEY, LEARNED_TYING, ON_PAR, RECOMMENDED

SHOWN = ("concat", "residual", *RECOMMENDED)  # the first two are baselines to the paper: contrast
JUDGED = (*RECOMMENDED, LEARNED_TYING)  # where substituted attention is all that counts
PERMUTED = "f1_drop_permuted"
RATIONALE = declare("rationale_average_precision_attention", "fraction")
ALONE, WHOLE = (declare(name, "fraction") for name in ("token_probability_mean", "confidence"))


@dataclass(frozen=True)
class Models:
    """The models of one dataset, and what decides which of them may be judged.

    measured   every variant, with one layer or more, measured with substituted attention and token_probability_mean,
               with the rationale's average precision where there is one; LEARNED_TYING, whose embeddings learn, with
               substituted attention alone
    epochs     rows of lib.analysis.kept_epochs
    witnesses  rows of lib.analysis.witnesses
    frozen     the variants whose embeddings do not learn
    """

    measured: pd.DataFrame
    epochs: pd.DataFrame
    witnesses: pd.DataFrame
    frozen: tuple[str, ...] = ()

    @property
    def two_classes(self) -> bool:
        """The paper is about two classes alone."""
        return bool(self.measured["label"].max() < 2)

    @property
    def attention(self) -> str:
        """The attention of what was done with one alone: clusters, adversaries, depth."""
        return self.measured["attention"].iloc[0]

    def each(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """(attention, variant) of those that were measured with one layer."""
        rows = rows_where(self.measured, {"layers": 1})[["attention", "variant"]].drop_duplicates()
        known = set(rows.itertuples(index=False, name=None))
        return [pair for pair in product(rows["attention"].unique(), names) if pair in known]

    def trios(self, names: Iterable[str] = SHOWN) -> Iterator[tuple[dict, dict, dict]]:
        """(variant, its control, base): the control is the base whose embeddings are fixed where the variant's are."""
        for attention, variant in self.each(names):
            fixed = variant in self.frozen and (attention, "frozen") in self.each(["frozen"])
            yield at(attention, variant), at(attention, "frozen" if fixed else "base"), at(attention, "base")

    def depths(self, variant: str) -> list[dict]:
        """The models of a variant by their layers."""
        rows = rows_where(self.measured, {"attention": self.attention, "variant": variant})
        return [at(self.attention, variant, int(layers)) for layers in sorted(rows["layers"].unique())]

    def printed(self, table: str, quantity: str, first: dict, second: dict) -> float:
        """The paper's own difference; NaN where it prints none."""
        theirs = published.table(KEY, str(self.measured["dataset"].iloc[0]))
        return printed_effect(theirs, quantity, {"table": table} | first, {"table": table} | second)

    def judged(self, *models: dict, reasons: Iterable[str] = (), within: bool = True) -> dict[str, str | bool]:
        """within, witness and excluded of an evidence row about these models; the paper is about two classes alone.

        Contrast answers nothing, so that it needs no reasons.
        """
        found = witness_of(self.witnesses, *(rows_where(self.measured, one) for one in models), reasons=reasons)
        within = within and self.two_classes
        return found | {"within": within} | ({} if within else {"excluded": ""})

    def gates(self, its: dict, control: dict) -> list[str]:
        """Why what it loses with other attention, beyond its control, says nothing about attention."""
        base = at(its["attention"], "base")
        worse = self.off_par(its, base) + (self.off_par(control, base) if control != base else [])
        return worse + self.even(its, control)

    def unfinished(self, *models: dict) -> list[str]:
        """Which of them kept their last epoch: with more epochs they might be better."""
        words = []
        for one in models:
            rows = rows_where(self.epochs, one)
            last = int((rows["epoch"] == rows["of"]).sum())
            if last:
                words.append(f"{named(one)} kept its last epoch of {rows['of'].max()} in {last} of {len(rows)} runs")
        return [f"not trained to the end: {', '.join(words)}"] if words else []

    def even(self, *models: dict) -> list[str]:
        """Which of them attend uniformly in a run, so that other weights change nothing."""
        uniform = {named(one): rows_where(self.epochs, one)["entropy"].max() for one in models}
        return [
            f"{name} attends uniformly ({of:.3f} of the entropy of equal weights)"
            for name, of in uniform.items()
            if of >= UNIFORM
        ]

    def off_par(self, model: dict, base: dict) -> list[str]:
        """Whether it classifies worse than the base: then what it loses is that of a worse model."""
        row = score_difference(self.measured, "f1", (model, base), draws=0, test=False)
        below = f"F1 of {named(model)} is {-row['difference']:.3f} below that of {named(base)}: not on par"
        return [below] if row["difference"] < -ON_PAR else []

    def compare(self, between: tuple[dict, dict], quantities: list[str], draws: int = 1000) -> pd.DataFrame:
        """Rows of `fragility_difference` by quantity."""
        return fragility_difference(self.measured, between, quantities, draws).set_index("quantity")


def at(attention: str, variant: str, layers: int = 1) -> dict:
    """The columns that select a model."""
    return {"attention": attention, "variant": variant, "layers": layers}


def named(model: dict) -> str:
    """tying + additive, 2 layers"""
    depth = f", {model['layers']} layers" if model["layers"] > 1 else ""
    return f"{title_of(model['variant'])} + {title_of(model['attention'])}{depth}"


def signed(row: pd.Series) -> str:
    """A difference with its interval: "-0.012 [-0.020, -0.004]"; of two runs or fewer without one."""
    interval = "" if np.isnan(row["low"]) else f" [{row['low']:+.3f}, {row['high']:+.3f}]"
    return f"{row['difference']:+.3f}{interval}"


def evidence(
    measured: pd.DataFrame,
    deeper: pd.DataFrame,
    epochs: pd.DataFrame,
    witnesses: pd.DataFrame,
    information: pd.DataFrame,
    prices: pd.DataFrame,
    starts: pd.DataFrame,
    of_starts: pd.DataFrame,
    frozen: Iterable[str] = (),
) -> pd.DataFrame:
    """Rows of papers.claims.EVIDENCE on each of CLAIMS.

    Args:
        measured, deeper: models of one layer and of more, epochs, witnesses, frozen: as `Models` has them.
        information: rows of lib.analysis.information. prices: rows of lib.analysis.prices. starts: of `evenness`.
        of_starts: rows of lib.analysis.witnesses of the models of `starts`.
    """
    both = pd.concat([measured, deeper]) if len(deeper) else measured
    models = Models(both, epochs, witnesses, tuple(frozen))
    rows = [*on_par(models), *fragile(models), *informed(models, information), *costly(models, prices)]
    rows += [*grounded(models), *robust_by_depth(models), *diminishing(models), *alike(models), *by_length(models)]
    rows += [*collapses(models, starts, of_starts), *on_the_rationale(models)]
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=EVIDENCE)


def on_par(models: Models) -> Iterator[pd.DataFrame]:
    """Section 4.1: they classify about as well."""
    for attention, variant in models.each((*SHOWN, LEARNED_TYING)):
        its, base, frozen = (at(attention, name) for name in (variant, "base", "frozen"))
        row, note = score_difference(models.measured, "f1", (its, base), test=False), ""
        if (attention, "frozen") in models.each(["frozen"]):
            note = f"freezing alone {signed(score_difference(models.measured, 'f1', (frozen, base), test=False))}"
        reasons = models.unfinished(its, base) + models.even(its, base)
        how = models.judged(its, base, reasons=reasons, within=variant in JUDGED)
        how |= {"printed": models.printed("table1", "f1", its, base), "note": note}
        yield CLAIMS["without a loss"].compared(named(its), row, **how)


def fragile(models: Models) -> Iterator[pd.DataFrame]:
    """Section 4.1: with other attention they lose more F1."""
    shorts = {"permuted": "attention matters more", "uniform": "equal weights cost more"}
    wanted = [f"{score}_drop_{under}" for under in shorts for score in ("f1", "balanced_accuracy", "auc")]
    for its, control, base in models.trios((*SHOWN, LEARNED_TYING)):
        rows = models.compare((control, its), wanted)
        against = models.compare((base, its), wanted[::3]) if control != base else None
        how = models.judged(its, control, reasons=models.gates(its, control), within=its["variant"] in JUDGED)
        for under, short in shorts.items():
            name = f"f1_drop_{under}"
            note = f"of balanced accuracy {signed(rows.loc[f'balanced_accuracy_drop_{under}'])}"
            note += f", of AUC {signed(rows.loc[f'auc_drop_{under}'])}" if models.two_classes else ""
            note += f"; against the base {signed(against.loc[name])}" if control != base else ""
            printed = models.printed("table1", name, base, its)
            yield CLAIMS[short].compared(named(its), rows.loc[name], printed=printed, note=note, **how)


def informed(models: Models, information: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Section 4.2: their hidden states know more about the words than freezing alone gives."""
    known, attention = set(information["variant"]), models.attention
    for its, control, base in models.trios():
        if its["attention"] != attention or not {its["variant"], control["variant"], "base"} <= known:
            continue
        pair = its["variant"], control["variant"]
        row, other = (information_difference(information, NAME + of, pair) for of in SAMPLES)
        whole = information_difference(information, NAME + SAMPLES[0], (its["variant"], "base"))["difference"]
        note = f"above the base {whole:+.3f}, of which freezing gives {whole - row['difference']:+.3f}; "
        note += f"of a random sample of words {other['difference']:+.3f}"
        how = models.judged(its, control, within=attention == "additive" and its["variant"] in RECOMMENDED)
        how |= {"printed": models.printed("table2", NAME + SAMPLES[0], its, base), "note": note}
        yield CLAIMS["words are kept"].compared(named(its), row, **how)


def costly(models: Models, prices: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Section 4.3: an imitation of theirs pays more in its predictions for the same distance."""
    for _, row in prices.iterrows():
        its, base = (at(models.attention, name) for name in (row["variant"], "base"))
        reasons = priceless(row) + models.even(its, base)
        how = models.judged(its, base, reasons=reasons, within=row["variant"] == "mlm")
        how["note"] = (
            f"mean TVD over {row['from']:.2f} to {row['to']:.2f} nats of JSD, less the floors of {row['floor']:.3f} "
            f"and {row['base_floor']:.3f}; with nothing subtracted {row['raw']:+.3f}"
        )
        how |= {} if row["of_seeds"] else {"note": ""}
        yield CLAIMS["adversaries are harder to find"].compared(named(its), row, **how)


def priceless(row: pd.Series) -> list[str]:
    """Why a row of `prices` allows no verdict."""
    if not row["of_seeds"]:
        return ["one value of lambda makes no curve" if row["points"] < 2 else "the two curves share no JSD"]
    return [row["failed"], "one seed" if len(row["of_seeds"]) < 2 else ""]


def grounded(models: Models) -> Iterator[pd.DataFrame]:
    """Section 5: most of their tokens alone decide less."""
    right = models.measured[models.measured["label"] == models.measured["prediction"]]
    sure = right["probability"]
    right = right.assign(**{WHOLE: np.maximum(sure, 1 - sure) if models.two_classes else sure})
    for its, control, base in models.trios():
        row, whole = (difference(right, of, (control, its), paired=True) for of in (ALONE, WHOLE))
        reasons, note = models.gates(its, control), f"of whole texts {whole['difference']:+.3f}"
        if 0 < row["difference"] <= whole["difference"]:
            reasons.append(f"whole texts lose as much confidence, {whole['difference']:.3f}")
        if control != base:
            note += f"; against the base {signed(difference(right, ALONE, (base, its), paired=True))}"
        how = models.judged(its, control, reasons=reasons, within=its["variant"] in RECOMMENDED)
        how |= {"printed": models.printed("table3", ALONE, base, its), "note": note}
        yield CLAIMS["neutral words stay neutral"].compared(named(its), row, **how)


def robust_by_depth(models: Models) -> Iterator[pd.DataFrame]:
    """Appendix B: the more layers, the less the base loses."""
    one, *deeper = models.depths("base")
    for deep in deeper:
        row = models.compare((deep, one), [PERMUTED]).iloc[0]
        how = models.judged(deep, one, reasons=models.off_par(deep, one) + models.even(deep, one))
        printed = models.printed("table6", PERMUTED, deep, one)
        yield CLAIMS["depth makes attention matter less"].compared(named(deep), row, printed=printed, **how)


def diminishing(models: Models) -> Iterator[pd.DataFrame]:
    """Appendix B: the more layers, the less a variant loses beyond its control."""
    shallow = at(models.attention, "base")
    for variant in SHOWN:
        fixed = variant in models.frozen and len(models.depths("frozen")) > 1
        controls = {one["layers"]: one for one in models.depths("frozen" if fixed else "base")}
        pairs = [(its, controls[its["layers"]]) for its in models.depths(variant) if its["layers"] in controls]
        if len(pairs) < 2:
            continue
        extra = {its["layers"]: models.compare((its, one), [PERMUTED], 0).iloc[0]["of_seeds"] for its, one in pairs}
        of_seeds = {(seed, layers): value for layers, values in extra.items() for seed, value in values.items()}
        every = [one for pair in pairs for one in pair]
        reasons = [why for one in every for why in models.off_par(one, shallow)] + models.even(*every)
        how = models.judged(*every, reasons=reasons, within=variant in RECOMMENDED)
        printed = [models.printed("table6", PERMUTED, its, its | {"variant": "base"}) for its, _ in pairs]
        printed = np.array(printed)
        how["printed"] = float(kendall(np.array([*extra]), printed)) if not np.isnan(printed).any() else np.nan
        means = ", ".join(f"{layers}: {np.mean([*values.values()]):+.3f}" for layers, values in extra.items())
        note = f"its change of F1 less its control's, by layers: {means}"
        yield CLAIMS["regularization does less in depth"].evidence(named(pairs[0][0]), of_seeds, note=note, **how)


def alike(models: Models) -> Iterator[pd.DataFrame]:
    """Section 4.1: residual is comparable to concat, each less its own control."""
    own = {(its["attention"], its["variant"]): (its, control) for its, control, _ in models.trios()}
    for attention in {one: None for one, variant in own if {(one, "concat"), (one, "residual")} <= set(own)}:
        pairs = [own[attention, name] for name in ("residual", "concat")]
        first, second = (models.compare(pair, [PERMUTED]).iloc[0] for pair in pairs)
        seeds = first["of_seeds"].keys() & second["of_seeds"].keys()
        of_seeds = {seed: first["of_seeds"][seed] - second["of_seeds"][seed] for seed in sorted(seeds)}
        reasons = [why for pair in pairs for why in models.gates(*pair)]
        if max(abs(first["first"]), abs(second["first"])) <= ON_PAR:
            reasons.append("permuted attention costs neither more than .02 of F1")
        how = models.judged(pairs[0][0], pairs[1][0], reasons=reasons)
        how |= {"first": first["difference"], "second": second["difference"], "n": first["n"]}
        how["se"] = hypot(first["se"], second["se"])  # at most: the texts are the same
        yield CLAIMS["residual is like concat"].evidence(f"residual + {title_of(attention)}", of_seeds, **how)


def by_length(models: Models) -> Iterator[pd.DataFrame]:
    """Appendix A: the longer the texts, the more permuted attention costs."""
    for attention, variant in models.each(("base", *RECOMMENDED)):
        its = at(attention, variant)
        row = fragility_by_length(models.measured, its)
        how = models.judged(its, reasons=models.off_par(its, at(attention, "base")) + models.even(its))
        yield CLAIMS["longer texts are more fragile"].compared(named(its), row, **how)


def evenness(histories: dict[tuple[str, int], tuple[dict, ...]]) -> pd.DataFrame:
    """The attention's entropy on dev at the last epoch, a row for each start of the query and seed."""
    rows = [
        {"start": start, "seed": seed, "entropy": history[-1]["dev_attention_entropy"]}
        for (start, seed), history in histories.items()
    ]
    return pd.DataFrame(rows)


def collapses(models: Models, starts: pd.DataFrame, known: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Appendix C: dot attention stays uniform under the framework's default initialisation, not under N(0, 1)."""
    pairs = starts.pivot(index="seed", columns="start", values="entropy")
    holds = (pairs["default"] >= UNIFORM) & (pairs["normal"] <= ATTENDS)
    first, second = dict(pairs["default"]), dict(pairs["normal"])
    how = witness_of(known, known) | {"within": models.two_classes}
    yield CLAIMS["initialisation decides"].evidence("base + dot", holds.astype(float), first, second, **how)


def on_the_rationale(models: Models) -> Iterator[pd.DataFrame]:
    """Section 6, the paper's open question: does attention come onto the words that people name?"""
    if RATIONALE not in models.measured or models.measured[RATIONALE].isna().all():
        return
    for its, control, base in models.trios():
        row = difference(models.measured, RATIONALE, (its, control), paired=True)
        note = ""
        if control != base:
            note = f"against the base {signed(difference(models.measured, RATIONALE, (its, base), paired=True))}"
        how = models.judged(its, control, reasons=models.gates(its, control), within=its["variant"] != "concat")
        yield CLAIMS["attention comes onto the reason"].compared(named(its), row, note=note, **how)
