"""How an effect is judged: five answers, from the values of single seeds and the standard error over texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import factorial, isnan, nan

import numpy as np
import pandas as pd
from scipy import stats

from lib.analysis.correlation import kendall
from lib.analysis.statistics import FEW, LEVEL, SEED, Estimate, Spread, t_interval

ANSWERS = ("supported", "contradicted", "negligible", "open", "no verdict")
KINDS = {
    "direction": "the effect is above 0; within the bound of 0 it is negligible",
    "little": "the effect is within the bound of 0",
    "at least": "the effect is above the bound",
    "most runs": "it holds for more than half of the runs, each judged by itself",
    "trend": "the effect rises with what is varied, in every seed",
}
ENOUGH = 5  # seeds: with fewer their spread is pooled over like models
MOST = 20  # seeds that are worth asking for
NOT_BY_SEEDS = "more seeds would not decide it"
SHUFFLES = 10_000  # of a dial's values, where there are more orders than that


@dataclass(frozen=True)
class Verdict:
    """An answer with what it rests on.

    word         one of ANSWERS
    reason       why there is none, or why it is open
    effect, low, high    in the claim's unit; of a trend Kendall's tau with the dial, of "most runs" a share
    p            of this one answer; NaN where there is none
    of_seeds     the effect in each seed
    needed       seeds that would decide an open one if the effect is as it looks; 0: seeds would not (at most MOST)
    halved, doubled      the word with half the bound, and with twice the bound; "" where there is no bound
    """

    word: str
    effect: float = nan
    low: float = nan
    high: float = nan
    p: float = nan
    of_seeds: tuple[float, ...] = ()
    n: int = 0
    reason: str = ""
    needed: int = 0
    halved: str = ""
    doubled: str = ""


def answer(kind: str, low: float, high: float, bound: float) -> str:
    """The word for an interval: a partition by the bound.

    direction    negligible within +-bound, else supported above 0 and contradicted below
    little       supported within +-bound, contradicted wholly beyond
    at least     supported above the bound, contradicted below
    """
    if isnan(low) or isnan(high):
        return "open"
    if kind == "at least":
        return "supported" if low > bound else "contradicted" if high < bound else "open"
    within = -bound <= low and high <= bound
    if kind == "little":
        return "supported" if within else "contradicted" if low > bound or high < -bound else "open"
    if within:
        return "negligible"
    return "supported" if low > 0 else "contradicted" if high < 0 else "open"


def judge(
    kind: str,
    bound: float,
    values: Sequence[float],
    se_texts: float = 0.0,
    texts: int = 0,
    like: Iterable[Sequence[float]] = (),
    these_models: bool = False,
    refuted_by_none: bool = False,
    looks: int = 1,
) -> Verdict:
    """Judges an effect of kind direction, little or at least.

    Args:
        bound: delta, or the least effect.
        values: the effect in each seed (seed,). se_texts: the standard error over texts of their mean; texts: how many.
        like: the values of like models, over which the spread of fewer than ENOUGH seeds is pooled.
        these_models: the answer is about these models alone, so that only texts vary (profile quick).
        refuted_by_none: of a negligible effect p is that of one as large as the bound, whatever lies below 0.
        looks: how often it was judged, as seeds were added: each look has its share of the 5% (Bonferroni).
    """
    values = np.asarray(values, dtype=float)
    values = values[~np.isnan(values)]
    if not len(values):
        return Verdict("no verdict", reason="the effect is defined of no text")
    spread = Spread(0.0, 0) if these_models else spread_of(values, like)
    found = Estimate.over(float(values.mean()), [(spread, len(values))], se_texts, texts)
    low, high = found.interval(level_of(looks))
    about = Verdict("open", found.effect, low, high, of_seeds=tuple(values), n=texts)
    few = len(values) < FEW and not these_models  # these say nothing about training in general
    word = "open" if few else answer(kind, low, high, bound)
    if word == "open":
        level = level_of(looks if few else looks + 1)
        enough = needed(kind, bound, found.effect, len(values), spread, se_texts, texts, level)
        about = replace(about, needed=enough)
    if few:  # an interval over texts, or over two seeds, would seem to decide
        return replace(about, low=nan, high=nan, reason="one run" if len(values) == 1 else f"fewer than {FEW} seeds")
    about = replace(about, word=word, p=min(1.0, looks * p_of(found, kind, bound, word, refuted_by_none)))
    about = replace(about, halved=answer(kind, low, high, bound / 2), doubled=answer(kind, low, high, bound * 2))
    if word == "open":
        return replace(about, reason="" if these_models else "too few seeds" if about.needed else NOT_BY_SEEDS)
    return about


def spread_of(values: np.ndarray, like: Iterable[Sequence[float]]) -> Spread:
    """Between the seeds of a model, pooled over like models where it has fewer than ENOUGH.

    Not where its own seeds spread more than that: a model whose training is less stable is not judged by the others.
    """
    own = Spread.of([values])
    pooled = own if len(values) >= ENOUGH else Spread.of([values, *like])
    return own if own.df and own.variance > pooled.variance else pooled


def p_of(found: Estimate, kind: str, bound: float, word: str, refuted_by_none: bool = False) -> float:
    """One p for an answer: two-sided; where it says that the effect is within the bound that of two one-sided tests."""
    if kind == "at least":
        return 2 * min(found.p_above(bound), 1 - found.p_above(bound))
    if kind == "little" and word == "contradicted":
        return 2 * min(found.p_above(bound), 1 - found.p_above(-bound))
    if word == "negligible" and refuted_by_none:
        return 1 - found.p_above(bound)
    if kind == "little" or word == "negligible":
        return max(found.p_above(-bound), 1 - found.p_above(bound))
    return 2 * min(found.p_above(0), 1 - found.p_above(0))


def level_of(looks: int) -> float:
    """The level of each interval where so many are looked at, of the same model with more and more seeds."""
    return 1 - (1 - LEVEL) / looks


def needed(
    kind: str, bound: float, effect: float, seeds: int, spread: Spread, se_texts: float, texts: int, level: float
) -> int:
    """How many seeds would decide, if effect and spread are as they look; 0 where MOST would not, or it is unknown.

    Args:
        level: of the interval at the look that these seeds would be.
    """
    if not spread.df:
        return 0
    for more in range(max(seeds + 1, FEW), MOST + 1):
        own = Spread(spread.variance, max(spread.df, more - 1))
        if answer(kind, *Estimate.over(effect, [(own, more)], se_texts, texts).interval(level), bound) != "open":
            return more
    return 0


def judge_runs(holds: Sequence[bool], looks: int = 1) -> Verdict:
    """Judges "in most runs", where each run is judged by itself: k of n with its exact one-sided 95% limits.

    For runs that fall into two groups, of which a mean says nothing. looks: as of `judge`.
    """
    holds = np.asarray(holds, dtype=float)
    k, n = int(holds.sum()), len(holds)
    low, high = share_limits(k, n, level_of(looks))
    word = answer("at least", low, high, 0.5)
    p = float(stats.binom.sf(k - 1, n, 0.5) if 2 * k >= n else stats.binom.cdf(k, n, 0.5)) if n else nan
    about = Verdict(word, k / n if n else nan, low, high, min(1.0, looks * p) if n else nan, tuple(holds))
    if word != "open":
        return about
    share = k / max(n, 1)
    level = level_of(looks + 1)
    limits = ((more, share_limits(round(share * more), more, level)) for more in range(n + 1, MOST + 1))
    least = next((more for more, of in limits if answer("at least", *of, 0.5) != "open"), 0)
    return replace(about, needed=least, reason="too few runs" if least else NOT_BY_SEEDS)


def share_limits(k: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """The one-sided limits of a share, below and above (Clopper & Pearson 1934)."""
    low = stats.beta.ppf(1 - level, k, n - k + 1) if k else 0.0
    high = stats.beta.ppf(level, k + 1, n - k) if k < n else 1.0
    return float(low), float(high)


def judge_trend(at: Sequence[float], values: np.ndarray, looks: int = 1) -> Verdict:
    """Judges whether a quantity rises along a dial, such as an adversary's lambda.

    The effect is the mean over seeds of Kendall's tau-b within each seed. Its p is two-sided, against the dial's
    values shuffled within each seed: all orders, or SHUFFLES of them. Decided with the same sign in each of at least
    FEW seeds. Where seeds have different points, those count that all have, if they are three or more.

    Args:
        at: the dial's values (point,). values: (seed, point). looks: as of `judge`.
    """
    at, values = np.array(at, dtype=float), np.array(values, dtype=float)  # copies: torch wants to write
    if (whole := ~np.isnan(values).any(axis=0)).sum() >= 3:
        at, values = at[whole], values[:, whole]
    if len(at) < 3:
        return Verdict(
            "no verdict", reason=f"{len(at)} values make no trend" if len(at) > 1 else "one value makes no trend"
        )
    taus = kendall(at, values)
    values, taus = values[~np.isnan(taus)], taus[~np.isnan(taus)]
    if not len(taus):
        return Verdict("no verdict", reason="it is constant along the dial")
    effect, seeds = float(taus.mean()), len(taus)
    shuffled = shuffled_taus(at, values)
    p = min(1.0, looks * float((np.abs(shuffled) >= abs(effect) - 1e-12).mean()))
    low, high = np.clip(t_interval(taus), -1, 1)
    about = Verdict("open", effect, float(low), float(high), p, tuple(taus), n=len(at))
    if seeds < FEW:
        return replace(about, reason=f"a trend needs {FEW} seeds")
    agree = abs(np.sign(taus).sum()) == seeds
    if p <= 1 - LEVEL and agree:
        return replace(about, word="supported" if effect > 0 else "contradicted")
    z = stats.norm.ppf((1 + LEVEL) / 2)
    wanted = int(np.ceil((z * shuffled.std() * np.sqrt(seeds) / effect) ** 2)) if effect else MOST + 1
    enough = max(wanted, seeds + 1) if agree and wanted <= MOST else 0
    return replace(about, needed=enough, reason="too few seeds" if enough else NOT_BY_SEEDS)


def trend(instances: pd.DataFrame, by: str, quantity: str) -> pd.Series:
    """Kendall's tau-b between a dial and a quantity's mean over the texts (Meister et al. 2021, table 2).

    Returns:
        quantity, tau (the mean over seeds of tau within each), tau_low, tau_high (`t_interval`),
        sd_seeds (of tau), p (`judge_trend`), first, last (the quantity's mean at the least and the largest value),
        points, seeds, n (texts).
    """
    means = instances.groupby(["seed", by])[quantity].mean().unstack()
    found = judge_trend(means.columns, means.to_numpy())
    parts = {"quantity": quantity, "tau": found.effect, "tau_low": found.low, "tau_high": found.high, "p": found.p}
    ends = {"sd_seeds": pd.Series(found.of_seeds, dtype=float).std()}
    ends |= {"first": means.iloc[:, 0].mean(), "last": means.iloc[:, -1].mean()}
    counts = {"points": means.shape[1], "seeds": len(means), "n": instances["instance"].nunique()}
    return pd.Series(parts | ends | counts)


def shuffled_taus(at: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The mean over seeds of tau with the dial's values shuffled within each: all orders where SHUFFLES hold them.

    The order as it is counts among them: with it the p is (b + 1) / (m + 1).
    """
    seeds, points = values.shape
    if factorial(points) ** seeds <= SHUFFLES:
        orders = np.array(list(permutations(range(points))))
        each = [kendall(at, row[orders]) for row in values]
        total = each[0]
        for taus in each[1:]:
            total = (total[:, None] + taus).ravel()
        return total / seeds
    random = np.random.default_rng(SEED)
    shuffled = random.permuted(np.broadcast_to(values, (SHUFFLES, seeds, points)), axis=2)
    return np.append(kendall(at, shuffled).mean(axis=1), kendall(at, values).mean())
