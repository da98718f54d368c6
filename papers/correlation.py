"""Jain & Wallace (2019)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import ClassVar

import numpy as np
import pandas as pd
from pydantic import PositiveFloat
from pydantic.dataclasses import dataclass

from lib import analysis
from lib.analysis import mean_effect
from lib.analysis.statistics import Effect, weighted_median
from lib.analysis.summaries import configurations
from lib.datasets import spec
from lib.models.attention import QUERY_INITS
from lib.quantity import CHANGE_BOUNDS, declare, tau_name, title_of, unit_of
from lib.training import Run
from papers import published
from papers.effects import UNIFORM, model_name, split_models
from papers.paper import Paper
from papers.settings import Attentions, Distinct, Encoders, OwnModel, Settings, one_of, setting

KEY = "jain2019"


# Runs

VECTOR_SCALES = {"quick": (0.1,), "paper": (0.3, 0.1)}  # beside 1, the vectors as they are
# Of tasks with a question, by how their name begins: the batch and the sizes of their code (a BiLSTM's are those of its
# two directions together), and the epochs: theirs, and enough for the part that `quick` reads. The words of bAbI's
# stories stand for nothing else, so their vectors are random.
BATCH = {"snli": 128, "babi": 50}
EPOCHS = {"paper": {"snli": 25, "babi": 100}, "quick": {"snli": 6, "babi": 25}}
SMALL = {"bilstm": 64, "average": 32, "conv": 32}
SMALL_VECTORS = 50


@dataclass(frozen=True)
class CorrelationSettings(Settings):
    """The settings of `correlation`, the notebook that also reads texts with a question.

    With query_init "default", as torch initialises it, dot attention often stays uniform; "normal" is N(0, 1), of Tutek
    & Šnajder (2020, appendix C).
    """

    answers_questions: ClassVar[bool] = True

    model: OwnModel = None
    encoders: Encoders = setting(("bilstm", "average", "conv"), "of lib.models.ENCODERS")
    attentions: Attentions = setting(("additive", "dot"), "of lib.models.ATTENTIONS")
    query_init: one_of(QUERY_INITS) = setting(
        "default", "start of the query of dot attention: as torch initialises it, or normal, N(0, 1)"
    )
    shorter_vectors: bool = setting(True, "section 6: models from shorter word vectors; no: it is left out")
    vector_scales: Distinct[PositiveFloat] | None = setting(
        None, "of section 6: word vectors times these; None: the profile's"
    )


def every_model(settings: Settings) -> list[Run]:
    """Every encoder with every attention, several seeds."""
    chosen = product(settings.encoders, settings.attentions, settings.seeds_or())
    asks = spec(settings.dataset).asks
    runs = [answering(settings, *model) if asks else settings.run(*model) for model in chosen]
    start = (("query_init", settings.query_init),) if settings.query_init != "default" else ()
    return [replace(run, options=run.options + start * (run.attention == "dot")) for run in runs]


def answering(settings: Settings, encoder: str, attention: str, seed: int) -> Run:
    """A model that answers questions, trained as their code trains it."""
    task = settings.dataset.rstrip("123")
    options = {"batch_size": BATCH[task], "epochs": EPOCHS[settings.profile][task]}
    run = settings.run(encoder, attention, seed, recipe="jain2019-questions")
    if task == "babi":
        options["hidden_size"] = SMALL.get(encoder)
        if run.vectors in ("auto", "random"):  # not a file's that a reader chose
            options["embedding_size"] = SMALL_VECTORS
            run = replace(run, vectors="random")
    return replace(run, options=tuple(options.items()))


def vector_scales(settings: Settings) -> list[Run]:
    """Every run again with shorter word vectors; in `quick` the first alone: do they explain other taus?

    Not at scale 1: the vectors as they are, which the runs of every model have.
    """
    if not settings.shorter_vectors:
        return []
    if settings.profile == "quick":
        first = {"encoders": settings.encoders[:1], "attentions": settings.attentions[:1]}
        settings = replace(settings, **first, seeds=tuple(settings.seeds_or()[:1]))
    scales = settings.vector_scales or VECTOR_SCALES[settings.profile]
    chosen = product([scale for scale in scales if scale != 1], every_model(settings))
    return [replace(run, options=(*run.options, ("vector_scale", scale))) for scale, run in chosen]


# Published values that ours miss


def explained_by_norm(scales: pd.DataFrame, theirs: pd.DataFrame) -> pd.DataFrame:
    """Each published tau or share with ours at every norm of the word vectors: does it explain what ours miss?

    Args:
        scales: of `lib.analysis.taus_by_option` with vector_scale.
    Returns:
        encoder, attention, quantity, theirs, "ours at NUMBER" of each norm, and `norm`: "the same" where ours agree
        with the vectors as they are, "explains it" where they agree with shorter ones or theirs lie between ours at two
        norms, "explains a part" where shorter ones are nearer by half or more, else "does not explain it".
    """
    keys = ["encoder", "attention", "quantity"]
    wide = scales.pivot(index=keys, columns="vector_scale", values="value").sort_index(axis=1, ascending=False)
    both = theirs[[*keys, "unit", "value"]].merge(wide.reset_index(), on=keys)
    allowed = np.array([published.tolerance(*row) for row in both[["quantity", "unit", "value"]].to_numpy()])
    apart = both[list(wide)].sub(both["value"], axis=0)
    usual, least = apart[1.0].abs(), apart.abs().min(axis=1)
    between = apart.min(axis=1) * apart.max(axis=1) < 0
    words = np.select(
        [usual <= allowed, between | (least <= allowed), least <= usual / 2],
        ["the same", "explains it", "explains a part"],
        "does not explain it",
    )
    named = {norm: f"ours at {norm:g}" for norm in wide}
    both = both.drop(columns="unit")
    return both.rename(columns={"value": "theirs", **named}).assign(norm=words)


# What its findings read

PAIR = ("attention", "gradient_times_input")
GRADIENTS = ("gradient_times_input", "gradient_of_input")  # that attention is held against, J7
SEARCH = "adversary_gradient_jsd"
TITLES = {  # and bounds, where a difference has others
    "permutation_of_uneven": ("permutation, where attention is not uniform",),
    "permutation_share": ("permutation, share of the largest change",),
    "permutation_beyond_chance": ("permutation less that by chance", (-1, 1)),
    "adversary_share": ("adversary, share of the largest JSD",),
    "search_share": ("gradient search, share of the largest JSD",),
    "chance_share": ("adversary by chance, share of the largest JSD",),
    "adversary_beyond_chance": ("adversary less the one by chance", (-1, 1)),
}


def with_gaps(instances: pd.DataFrame) -> pd.DataFrame:
    """The instances with how much less attention agrees than other measures do: differences of taus (tau-b).

    gap_to_gradient         gradient × input / leave-one-out less attention / gradient × input
    gap_to_leave_one_out    gradient × input / leave-one-out less attention / leave-one-out
    gap_to_norm             norm of the gradient / leave-one-out less attention / leave-one-out
    agreement_beyond_chance    attention / gradient × input less agreement_by_chance
    """
    by_gradient, by_norm = ((name, "leave_one_out_of_input") for name in GRADIENTS)
    attention = ("attention", "leave_one_out_of_input")
    gaps = {"gap_to_gradient": (by_gradient, PAIR), "gap_to_leave_one_out": (by_gradient, attention)}
    gaps["gap_to_norm"] = (by_norm, attention)
    columns = {name: instances[tau_name(one)] - instances[tau_name(less)] for name, (one, less) in gaps.items()}
    titles = {name: " less ".join(title_of(tau_name(pair)) for pair in pairs) for name, pairs in gaps.items()}
    columns["agreement_beyond_chance"] = instances[tau_name(PAIR)] - instances["agreement_by_chance"]
    titles["agreement_beyond_chance"] = f"{title_of(tau_name(PAIR))} less that by chance"
    return instances.assign(**{declare(name, "tau-b", titles[name], (-2, 2)): of for name, of in columns.items()})


def with_classes(instances: pd.DataFrame) -> pd.DataFrame:
    """With the taus of attention, and whether they are significant, by predicted class: NaN in texts of the other.

    As table 2 prints them, of two classes: kendall_tau_attention_vs_gradient_times_input_class_0 and the like.
    """
    taus = [tau_name(PAIR), tau_name(("attention", "leave_one_out_of_input"))]
    names = [name for tau in taus for name in (tau, f"{tau}_significant") if name in instances]
    columns = {
        declare(f"{name}_class_{kind}", unit_of(name)): instances[name].where(instances["prediction"] == kind)
        for name in names
        for kind in two_classes(instances)
    }
    return instances.assign(**columns)


def two_classes(instances: pd.DataFrame) -> tuple[int, ...]:
    """The classes, where there are two; none where there are more."""
    return (0, 1) if instances[["label", "prediction"]].max().max() < 2 else ()


def permutation_medians(instances: pd.DataFrame) -> pd.DataFrame:
    """The median change by permuting, by the largest weight (bins of .25) and the predicted class, as figure 6 has it.

    Rows of `lib.analysis.summarise` with the quantities permutation_median_bin_1_class_0 and the like.
    """
    rows, kinds = [], two_classes(instances)
    for key, group in configurations(instances):
        bins = np.ceil(group["max_attention"].clip(1e-9) * 4)
        for number, kind in product(range(1, 5), kinds):
            name = declare(f"permutation_median_bin_{number}_class_{kind}", "fraction")
            inside = group["permutation"].where(bins.eq(number) & group["prediction"].eq(kind))
            median = mean_effect(group.assign(**{name: inside}), name, middle=weighted_median)
            about = {"quantity": name, "value": median.value, "unit": "fraction", "of_seeds": median.by_run}
            rows += [key | about | {"se_texts": median.se, "n": median.n}] if median.n else []
    return pd.DataFrame(rows)


def with_violation_gaps(instances: pd.DataFrame) -> pd.DataFrame:
    """With how often the top word is evidence against the prediction (`lib.analysis.add_violations`), and two columns:

    violation_gap               of a random word less that of the most attended one
    violation_beyond_chance     it less violation_by_chance
    """
    measures = ("attention_times_norm", "attention_times_contribution", "gradient_times_input")
    rows = analysis.add_violations(instances, ("attention", *measures))
    gap = rows["violation_random"] - rows["violation_attention"]
    name = declare("violation_gap", "fraction", "faithfulness violation / random less attention", CHANGE_BOUNDS)
    beyond = declare("violation_beyond_chance", "fraction", f"{title_of(name)}, less chance", (-2, 2))
    return rows.assign(**{name: gap, beyond: gap - rows["violation_by_chance"]})


def with_shares(instances: pd.DataFrame) -> pd.DataFrame:
    """The instances with what permuting and the adversary do, as fractions; NaN where a text says nothing about it.

    permutation_of_uneven    `permutation`, of texts whose attention is not uniform
    permutation_share        of the largest change, of these texts
    permutation_beyond_chance        it less permutation_share_by_chance
    adversary_share, chance_share    JSD of the adversary, and of the one by chance, of the largest that there is
    search_share             the same of the gradient search, where the adversary is the exact optimum
    adversary_beyond_chance          the one less the other

    Needs `permutation`, `largest_change`, permutation_share_by_chance, the adversary (`adversary_of`), the one by
    chance, `largest_jsd`, and entropy_of_attention.
    """
    jsd, most = adversary_of(instances), instances["largest_jsd"].where(instances["length"] > 1)
    uneven, change = instances["entropy_of_attention"] <= UNIFORM, instances["largest_change"]
    own, chance = (instances[name] / most for name in (jsd, jsd.replace("_jsd", "_by_chance")))
    share = (instances["permutation"] / change).where(uneven & (change > 0))
    columns = {
        "permutation_of_uneven": instances["permutation"].where(uneven),
        "permutation_share": share,
        "permutation_beyond_chance": share - instances["permutation_share_by_chance"],
        "adversary_share": own,
        "chance_share": chance,
        "adversary_beyond_chance": own - chance,
    }
    columns |= {"search_share": instances[SEARCH] / most} if jsd != SEARCH and SEARCH in instances else {}
    return instances.assign(**{declare(name, "fraction", *TITLES[name]): one for name, one in columns.items()})


def adversary_of(instances: pd.DataFrame) -> str:
    """The column of the per-instance adversary's JSD: the exact optimum, or with several outputs the search's."""
    return next(name for name in ("adversary_exact_jsd", SEARCH) if name in instances)


def attention_against_the_best_gradient(tables: Mapping[str, pd.DataFrame]) -> Iterator[tuple]:
    """J7: tau of attention with leave-one-out, less that of the gradient that agrees with it best in the same run."""
    for key, rows in split_models(tables["measured"], ["encoder", "attention"]):
        gaps = [mean_effect(rows, name) for name in ("gap_to_leave_one_out", "gap_to_norm")]
        best = {seed: -max(gap.by_run[seed] for gap in gaps) for seed in gaps[0].by_run}
        widest = max(gaps, key=lambda gap: gap.value)
        effect = Effect("gap_to_best_gradient", float(np.mean([*best.values()])), best, widest.se, widest.n)
        yield {"model": model_name(key.values())}, [rows], effect


PAPER = Paper(
    "correlation",
    KEY,
    CorrelationSettings,
    (every_model,),
    beside=(vector_scales,),
)
