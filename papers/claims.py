"""A paper's claims as data, the evidence on them, and the verdicts that follow."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from io import StringIO
from math import inf, isnan, nan
from typing import NamedTuple

import pandas as pd

from lib.analysis.baseline import WEAK, excluded_by
from lib.analysis.verdicts import KINDS, Verdict, judge, judge_runs, judge_trend
from lib.quantity import title_of

# A row for each claim, model and seed (of a trend for each point of its dial too): what a verdict is made from.
EVIDENCE = [
    *("paper", "short", "model", "within", "seed", "at", "value", "first", "second", "se", "n"),
    *("printed", "witness", "excluded", "note"),
]
NUMBERS = ("at", "value", "first", "second", "se", "printed")
VERDICT = [
    *("paper", "short", "claim", "model", "verdict", "evidence", "effect", "low", "high", "unit", "bound", "kind"),
    *("seeds", "n", "of_seeds", "p", "needed", "reason", "halved", "doubled", "witness", "printed", "source", "scope"),
    *("control", "refuted", "side", "question", "signed", "sides", "proves_little"),
]
UNIFORM = 0.97  # of the entropy of equal weights: attention beyond counts as uniform
TINY = 1e-6  # a p below is shown as a bound
CONTRAST = "contrast"  # in place of a verdict, outside a claim's scope


class Question(NamedTuple):
    """What is asked of attention as an explanation, and the two answers as clauses."""

    asked: str
    yes: str
    no: str


# A claim that speaks for attention as an explanation says yes to one of these, one against it no.
QUESTIONS = {
    "matters": Question(
        "Does what gets the most attention matter more to the prediction than by chance?",
        "what gets the most attention matters more to the prediction than by chance",
        "what gets the most attention often matters little to the prediction",
    ),
    "needed": Question(
        "Does the prediction need this attention?",
        "the prediction needs its attention",
        "the prediction does not need its attention",
    ),
    "alone": Question(
        "Is this attention hard to replace by another?",
        "attention is hard to replace by another",
        "other attention gives the same prediction",
    ),
    "ranks": Question(
        "Does attention over an encoder's states rank words as gradients and leave-one-out do?",
        "attention over an encoder's states ranks words as gradients and leave-one-out do",
        "attention over an encoder's states does not rank words as gradients and leave-one-out do",
    ),
    "words": Question(
        "Is attention to a hidden state attention to its word?",
        "attention to a hidden state is attention to its word",
        "attention to a hidden state is not attention to its word",
    ),
}


@dataclass(frozen=True)
class Claim:
    """What a paper claims, and how it is judged.

    short, sentence   a name, and what is claimed
    source            section, table or figure of the paper; "ours" where the paper does not claim it
    kind              of lib.analysis.verdicts.KINDS
    bound, unit       delta of an effect that would matter, or the least effect
    scope             what the paper claims it of, in words; elsewhere the number is shown as contrast
    control           what a model without any skill gives, and how the effect excludes it
    refuted           what would refute it
    sides             what the effect compares, in a word each; none for an effect that is one number
    speaks            "for" or "against" attention as an explanation, where it is supported; refuted, the other way
    question          which of QUESTIONS it then helps to answer
    refuted_by_none   whether a negligible effect refutes it too, unless its interval is wholly above 0
    proves_little     whether weights that chance has placed, or a model without skill, could support it too
    needs             what the second side must exceed, over all seeds of a model, and why there is no verdict else
    """

    paper: str
    short: str
    sentence: str
    source: str
    kind: str
    bound: float
    unit: str
    scope: str
    control: str
    refuted: str
    sides: tuple[str, str] = ("", "")
    speaks: str = ""
    question: str = ""
    refuted_by_none: bool = False
    proves_little: bool = False
    needs: tuple[float, str] = (-inf, "")

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind {self.kind!r} of the claim {self.short!r}; known: {', '.join(KINDS)}")
        if self.speaks not in ("", "for", "against"):
            raise ValueError(f"the claim {self.short!r} speaks {self.speaks!r}; allowed: for, against, or nothing")
        if self.question not in (QUESTIONS if self.speaks else ("",)):
            allowed = f"one of {', '.join(QUESTIONS)}, as it speaks" if self.speaks else "none, as it does not speak"
            raise ValueError(f"the claim {self.short!r} has the question {self.question!r}; allowed: {allowed}")
        if self.speaks and self.proves_little:
            raise ValueError(f"the claim {self.short!r} proves little, and can't speak {self.speaks} anything")

    def side(self, word: str, low: float) -> str:
        """What a verdict speaks for, "for" or "against" attention as an explanation; "" for neither.

        Args:
            low: where the interval of its effect begins.
        """
        if word == "contradicted" or (word == "negligible" and self.refuted_by_none and low <= 0):
            return {"for": "against", "against": "for"}.get(self.speaks, "")
        return self.speaks if word == "supported" else ""

    @property
    def is_difference(self) -> bool:
        """Whether its effect is the difference of two sides; of shares of runs and of trends it is not."""
        return all(self.sides) and self.kind not in ("most runs", "trend")

    @property
    def signed(self) -> bool:
        """Whether its effect has a sign; a level, which is to be little or to reach a bound, has none."""
        return self.kind not in ("little", "at least") or self.is_difference or self.unit.startswith("log")

    @property
    def limits(self) -> tuple[float, float]:
        """Between which its effect lies: a level is a fraction, and so are the two sides of most differences."""
        beyond = self.unit.startswith(("nats", "log", "tau-b"))
        return (-inf, inf) if beyond else (-1.0 if self.signed else 0.0, 1.0)

    def evidence(
        self,
        model: str,
        of_seeds: Mapping[int, float] | pd.Series,
        first: Mapping[int, float] | float = nan,
        second: Mapping[int, float] | float = nan,
        se: float = 0.0,
        n: int = 0,
        within: bool = True,
        printed: float = nan,
        witness: str = "",
        excluded: str = "",
        note: str = "",
    ) -> pd.DataFrame:
        """The rows of EVIDENCE of one model.

        Args:
            of_seeds: the effect in each seed; of a trend by (seed, value of the dial); of "most runs" 1 where it holds.
            first, second: what the effect compares, in each seed or in all.
            se: standard error over texts of the mean over these seeds. n: texts.
            within: the claim's scope.
            printed: the effect by the paper's own printed numbers, where they say something about it.
            witness: good or weak (`lib.analysis.witnesses`). excluded: why the model allows no verdict at all.
        """
        rows = []
        for key, value in dict(of_seeds).items():
            seed, at = key if isinstance(key, tuple) else (key, nan)
            one, other = (side.get(seed, nan) if isinstance(side, Mapping) else side for side in (first, second))
            rows.append((self.paper, self.short, model, within, seed, at, value, one, other, se, n))
        rows = rows or [(self.paper, self.short, model, within, -1, nan, nan, first, second, se, n)]
        return pd.DataFrame([(*row, printed, witness, excluded, note) for row in rows], columns=EVIDENCE)

    def compared(self, model: str, row: Mapping, **more) -> pd.DataFrame:
        """`evidence` of a row of `lib.analysis.contrast`, or of `mean_effect`; more: other arguments."""
        first, second = row.get("sides", (row["first"], row["second"]))
        parts = {"first": first, "second": second} | {name: row[name] for name in ("of_seeds", "se", "n")}
        return self.evidence(model, **(parts | more))


def verdicts(evidence: pd.DataFrame, claims: Mapping[str, Claim], these_models: bool = False) -> pd.DataFrame:
    """Each claim with its verdict for each model: the columns VERDICT.

    What excludes one seed of a model excludes it, whether its seeds ran together or not.

    Args:
        evidence: rows of EVIDENCE, of one study; kept ones say in the column looked with how many seeds they were
            judged so far. claims: by `short`.
        these_models: the answers are about these models alone (profile quick), and only texts vary.
    """
    rows = []
    for short, same in evidence.groupby("short", sort=False):
        models = {model: gated(claims[short], some) for model, some in same.groupby("model", sort=False)}
        judged = [model for model, some in models.items() if some["excluded"].eq("").all()]
        scope = {model: some["within"].iloc[0] for model, some in models.items()}
        for model, some in models.items():
            others = [name for name in judged if name != model and scope[name] == scope[model]]
            like = [models[name]["value"].to_numpy(float) for name in others]
            rows.append(row_of(claims[short], model, some, like, these_models))
    return pd.DataFrame(rows, columns=VERDICT)


def gated(claim: Claim, some: pd.DataFrame) -> pd.DataFrame:
    """The evidence of one model, none of it allowed where the second side is not above what the claim needs."""
    (least, reason), there = claim.needs, some.loc[some["excluded"].eq(""), "second"].astype(float).mean()
    if there > least or not reason or not some["within"].iloc[0]:
        return some
    return some.assign(excluded=some["excluded"].mask(some["excluded"].eq(""), reason.format(there)))


def read_evidence(text: str) -> pd.DataFrame:
    """Rows of EVIDENCE from CSV text; every other column is text."""
    given = pd.read_csv(StringIO(text), dtype=object, keep_default_na=False)
    numbers = {name: pd.to_numeric(given[name]) for name in NUMBERS}
    whole = {name: given[name].astype(int) for name in ("seed", "n")}
    return given.assign(**numbers, **whole, within=given["within"] == "True")


def row_of(claim: Claim, model: str, some: pd.DataFrame, like: list, these_models: bool) -> dict[str, object]:
    """The verdict on a claim for one model, with all that a reader needs to see beside it.

    Of several kept studies the model is as good a witness as in the worst.
    """
    found, first = verdict_of(claim, some, like, these_models), some.iloc[0]
    word = found.word if first["within"] else CONTRAST
    if word == CONTRAST:  # the number alone: no answer, with any bound
        found = replace(found, p=nan, needed=0, reason=excluded_by(*some["excluded"]), halved="", doubled="")
    row = vars(found) | vars(claim) | {"claim": claim.sentence, "model": model, "verdict": word}
    row |= {
        "signed": claim.signed,
        "side": claim.side(word, found.low),
        "sides": sides_in_words(claim, some) if claim.is_difference else "",
    }
    row |= {"seeds": len(found.of_seeds), "of_seeds": " ".join(f"{value:.4g}" for value in found.of_seeds)}
    row |= {
        "witness": WEAK if some["witness"].eq(WEAK).any() else first["witness"],
        "printed": first["printed"],
        "evidence": in_words(claim, some, found),
    }
    return {name: row[name] for name in VERDICT}


def looks(some: pd.DataFrame) -> int:
    """How often a model was judged: once with each number of seeds, three or more, that it has had."""
    return max(len({size for sizes in some.get("looked", ()) for size in sizes.split()}), 1)


def verdict_of(claim: Claim, some: pd.DataFrame, like: list, these_models: bool) -> Verdict:
    """The verdict on a claim from the evidence rows of one model."""
    often = looks(some)
    if claim.kind == "trend":
        table = some.pivot(index="seed", columns="at", values="value")
        found = judge_trend(table.columns, table.to_numpy(), often)
        found = replace(found, low=nan, high=nan)  # its p is by permutation, and an interval over few taus is not
    elif claim.kind == "most runs":
        found = judge_runs(some["value"].dropna(), often)
    else:
        values, like = some["value"].to_numpy(float), [values[~pd.isna(values)] for values in like]
        se = float(some["se"].mean())  # of several kept studies: an upper bound for all of their seeds
        found = judge(
            *(claim.kind, claim.bound, values, se, int(some["n"].max()), like, these_models, claim.refuted_by_none),
            looks=often,
        )
        least, most = claim.limits
        found = replace(found, low=max(found.low, least), high=min(found.high, most))
    if some["excluded"].ne("").any():
        parts = {name: getattr(found, name) for name in ("effect", "low", "high", "of_seeds", "n")}
        return Verdict("no verdict", reason=excluded_by(*some["excluded"]), **parts)
    return found


def in_words(claim: Claim, some: pd.DataFrame, found: Verdict) -> str:
    """average 0.360, BiLSTM 0.210; difference +0.150 [+0.100, +0.200] tau-b; 3 seeds, 1,725 texts"""
    parts = [sides_in_words(claim, some)]
    if not isnan(found.effect):
        parts.append(effect_in_words(claim, found))
    if claim.kind != "most runs" and found.of_seeds:
        of = "values of the dial" if claim.kind == "trend" else "pairs of models" if claim.unit == "AUROC" else "texts"
        texts = f", {found.n:,} {of}" if found.n else ""
        parts.append(f"{counted(len(found.of_seeds), 'seed')}{texts}")
    return "; ".join(filter(None, [*parts, *notes(some)])) or found.reason


def notes(some: pd.DataFrame) -> list[str]:
    """What is noted; of several studies, with all seeds of each: ["seeds 0, 1: of whole texts +0.022"]."""
    studies = dict(list(some.groupby("note", sort=False)))
    if len(studies) < 2:
        return list(studies)
    whole = "run_seeds" in some  # else of those that are judged
    seeds = {
        note: same["run_seeds"].iloc[0].split() if whole else [str(seed) for seed in same["seed"].unique()]
        for note, same in studies.items()
        if note
    }
    return [f"seed{'s'[: len(given) > 1]} {', '.join(given)}: {note}" for note, given in seeds.items()]


def sides_in_words(claim: Claim, some: pd.DataFrame) -> str:
    """average 0.360, BiLSTM 0.210: what the effect compares, means over seeds; "" where nothing is known.

    Of several studies that kept their means alone these may be of other seeds than the effect is: "" then.
    """
    means = some[["first", "second"]].astype(float).mean()
    apart = abs(abs(means["first"] - means["second"]) - abs(some["value"].astype(float).mean()))
    if claim.is_difference and "run_seeds" in some and some["run_seeds"].nunique() > 1 and apart > 0.0005:
        return ""
    return ", ".join(
        f"{side} {mean:.3f}" for side, mean in zip(claim.sides, means, strict=True) if side and not isnan(mean)
    )


def effect_in_words(claim: Claim, found: Verdict) -> str:
    """The effect of a verdict with its interval and unit; a fourth digit where three would put an end on the bound."""
    numbers = (found.effect, found.low, found.high)
    digits = 4 if claim.bound in {round(abs(number), 3) for number in numbers if abs(number) != claim.bound} else 3
    form = f"{'+' if claim.signed else ''}.{digits}f"
    effect, low, high = (format(number, form) for number in numbers)
    interval = "" if isnan(found.low) else f" [{low}, {high}]"
    if claim.kind == "most runs":
        runs, limits = len(found.of_seeds), f"limits {found.low:.0%} and {found.high:.0%}"
        return f"in {round(found.effect * runs)} of {counted(runs, 'run')} ({limits})"
    if claim.kind == "trend":
        chance = "" if isnan(found.p) else f", {p_in_words(found.p)}"
        each = f" (of single seeds {', '.join(f'{tau:{form}}' for tau in found.of_seeds)})"
        return f"tau-b with what is varied, in the claim's direction, {effect}{each}{chance}"
    name = "difference " if claim.is_difference else ""
    return f"{name}{effect}{interval} {claim.unit}"


def by_their_numbers(kind: str, bound: float, printed: float) -> str:
    """What a paper's own printed effect says of its claim, which carries no seeds: its sign alone; "" without one."""
    if isnan(printed):
        return ""
    of_kind = {"little": bound - abs(printed), "at least": printed - bound, "most runs": printed - 0.5}
    beyond = round(of_kind.get(kind, printed), 9)  # .911 - .891 is a little more than .02 in floating point
    return f"{'for it' if beyond > 0 else 'against it' if beyond < 0 else 'neither'} ({printed:+.3g})"


def p_in_words(p: float) -> str:
    """p 0.031; of a tiny one a bound."""
    return f"p {p:.2g}" if p >= TINY else f"p < {TINY:g}"


def by_weak(number: int) -> str:
    """ " (1 by a weak witness)", " (2 by weak witnesses)"; "" for none."""
    return f" ({number} by weak witnesses)" if number > 1 else " (1 by a weak witness)" if number else ""


def counted(number: int, noun: str) -> str:
    """1 seed, 2 seeds"""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def anchor(short: str) -> str:
    """The id of a claim's place in a report: claim-attention-correlates-weakly."""
    return "claim-" + re.sub(r"\W+", "-", short.lower()).strip("-")


def uniform_attention(rows: pd.DataFrame, whose: str = "its") -> str:
    """Why attention allows no verdict: nearly uniform in a run, by the mean of entropy_of_attention; else ""."""
    most = rows.groupby("seed")["entropy_of_attention"].mean().max()
    return f"{whose} attention is nearly uniform: {most:.1%} of the largest entropy" if most > UNIFORM else ""


def by_model(frame: pd.DataFrame, *by: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """(model in words, its rows) for each value of the columns `by`."""
    for key, rows in frame.groupby(list(by), sort=False):
        yield " + ".join(title_of(part) for part in key), rows


def adversary_of(instances: pd.DataFrame) -> str:
    """The column of the per-instance adversary's JSD: the exact optimum, or with several outputs the search's."""
    return next(name for name in ("adversary_exact_jsd", "adversary_gradient_jsd") if name in instances)
